/* Locks of nodes; see locks.h. */
#include "locks.h"

#include "api/plugins.h"
#include "server.h"
#include "vgpus.h"

#include <stdlib.h>

/* The API server's --request-timeout, and one second for etcd. */
#define LATE_MS 61000

/* A PATCH of a node's lock, of HAMi's or of Volcano's. */
struct lock_write {
    struct happening h; /* fires a late one */
    struct lock_write *next;
    struct name node;
    uint64_t rv; /* the version of the node that it is for */
    enum plugin plugin;
    struct lock_object lock;
    unsigned sender;
    uint64_t incarnation;
};

static struct lock_write *late;

/* The last lock that was set on each node. */
static struct set {
    struct happening release; /* of `served` by the plugin */
    struct lock_object served;
    struct lock_object lock;
    unsigned sender;
    uint64_t incarnation;
    bool bound;   /* its pod was bound to the node */
    bool refused; /* the API server said since that the process has no right to nodes */
} sets[PLUGINS][MAX_NODES];

void locks_reset(void)
{
    while (late != NULL) {
        struct lock_write *w = late;
        late = w->next;
        unplan(&w->h);
        free(w);
    }
    for (unsigned i = 0; i < PLUGINS * MAX_NODES; i++) {
        struct set *s = &sets[i / MAX_NODES][i % MAX_NODES];
        unplan(&s->release);
        *s = (struct set){.bound = false};
    }
    vgpus_reset();
}

static struct lock_object *lock_of(struct node_object *n, enum plugin plugin)
{
    return plugin == PLUGIN_VGPU ? &n->vgpu_lock : &n->lock;
}

/* ---- who waits ---- */

static bool waits_on(const struct pod_object *p, unsigned node)
{
    return p->plugin == PLUGIN_HAMI && pod_object_holds_on(p, &store.nodes[node]) &&
           p->phase == PHASE_PENDING && plugin_waits(p);
}

bool locks_wait(unsigned node, enum plugin plugin)
{
    bool any = false;
    for (unsigned i = 0; i < store.n_pods; i++)
        any = any || (plugin == PLUGIN_VGPU ? vgpu_waits(&store.pods[i], node)
                                            : waits_on(&store.pods[i], node));
    return any;
}

/* Whether the lock names a pod of this name. */
static bool names(const struct lock_object *l, const struct pod_object *p)
{
    struct str time;
    struct str rest;
    struct str ns;
    struct str name;
    return str_cut(str_of(l->z), ',', &time, &rest) && str_cut(rest, ',', &ns, &name) &&
           str_eq(ns, name_str(&p->ns)) && str_eq(name, name_str(&p->name));
}

/* The pod that exists and has the name that the lock names; MAX_PODS: none. */
static unsigned named_by(const struct lock_object *l)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (store.pods[i].exists && names(l, &store.pods[i]))
            return i;
    }
    return MAX_PODS;
}

/* Whether nothing but cardpack and the plugin decides which pod waits. Other clients bind pods
 * without a lock, a node that comes back has none, and a pod may get the Binding of another one. */
bool locks_strict(void)
{
    return world.set.permille[FAULT_FOREIGN] == 0 && world.set.permille[FAULT_NODES] == 0 &&
           !world.set.foreign && world.set.preconditions && !world.set.rogue;
}

/* ---- writes ---- */

/* The lock may be set for one pod and removed only while no other pod that cardpack placed waits.
 */
static void check_write(const struct lock_write *w, unsigned node)
{
    const struct lock_object *old = &store.nodes[node].lock;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (oracle_by(i) == NULL || !waits_on(p, node))
            continue;
        if (lock_object_set(&w->lock))
            sim_check(names(&w->lock, p));
        else
            sim_check(!locks_strict() || !names(old, p));
    }
}

/* Whether the pod that the lock names is bound to the node, perhaps by another client. */
static bool is_named_on(const struct lock_object *l, unsigned node)
{
    unsigned slot = named_by(l);
    return slot != MAX_PODS && strcmp(store.pods[slot].node.z, store.nodes[node].name.z) == 0;
}

/* Whether another client has bound a pod to the node: perhaps the one that the lock is for. */
static bool has_foreign(unsigned node)
{
    bool any = false;
    for (unsigned i = 0; i < store.n_pods; i++)
        any = any ||
              (oracle_by(i) == NULL && strcmp(store.pods[i].node.z, store.nodes[node].name.z) == 0);
    return any;
}

/* Volcano's lock names no pod: that of a pod that was bound is known by its text. */
static void note_set(const struct lock_write *w, struct set *s, unsigned node)
{
    bool again = lock_object_same(&s->lock, &w->lock);
    s->bound = w->plugin == PLUGIN_VGPU ? has_foreign(node) || (again && s->bound)
                                        : is_named_on(&w->lock, node);
    s->lock = w->lock;
    s->sender = w->sender;
    s->incarnation = w->incarnation;
    s->refused = false;
}

static unsigned commit(const struct lock_write *w)
{
    unsigned node = store_find_node(name_str(&w->node));
    if (node == MAX_NODES || !store.nodes[node].exists)
        return 404;
    if (store.nodes[node].rv != w->rv)
        return 409;
    if (w->plugin == PLUGIN_VGPU)
        vgpus_written(&w->lock, node);
    else
        check_write(w, node);
    struct node_object n = store.nodes[node];
    *lock_of(&n, w->plugin) = w->lock;
    if (lock_object_set(&w->lock))
        note_set(w, &sets[w->plugin][node], node);
    trace("lock", str_of(w->lock.z), node, w->sender);
    store_put_node(node, &n);
    return 200;
}

static void on_late(struct happening *h)
{
    struct lock_write *w = CONTAINER_OF(h, struct lock_write, h);
    struct lock_write **at = &late;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    trace("late lock", name_str(&w->node), commit(w), w->sender);
    free(w);
}

static void write_later(const struct lock_write *w)
{
    struct lock_write *copy = sim_alloc(sizeof(*copy));
    *copy = *w;
    copy->h = (struct happening){.fire = on_late};
    copy->next = late;
    late = copy;
    server_orphan(w->sender);
    plan(&copy->h, draw(2) == 0 ? draw(LATE_MS) : draw(3000));
}

/* The PATCH commits now, later or never; there is no answer, or one that does not say it. */
static void write_in_doubt(struct flight *f, const struct lock_write *w)
{
    if (draw(2) == 0)
        write_later(w);
    else if (draw(2) == 0)
        (void)commit(w);
    f->status = 0;
    if (draw(2) == 0)
        reply_status(f, 504, "Timeout", "request did not complete within requested timeout", "");
}

/* {"metadata":{"resourceVersion":"7","annotations":{"hami.io/mutex.lock":TEXT or null}}}, or
 * hamivgpu in place of it. */
static struct lock_write write_read(const struct flight *f, const struct api_request *r)
{
    json_error_t error;
    struct lock_write w = {.node = name_from(r->name),
                           .plugin = PLUGIN_HAMI,
                           .sender = f->sender,
                           .incarnation = f->incarnation};
    json_t *root = json_loadb(f->body.p, f->body.n, 0, &error);
    json_t *metadata = json_object_get(root, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    if (json_object_get(notes, hami_locks[PLUGIN_VGPU]) != NULL)
        w.plugin = PLUGIN_VGPU;
    json_t *lock = json_object_get(notes, hami_locks[w.plugin]);
    const char *rv = json_string_value(json_object_get(metadata, "resourceVersion"));
    sim_check(json_object_size(root) == 1 && json_object_size(notes) == 1 && rv != NULL);
    sim_check(str_to_u64(str_of(rv), UINT64_MAX, &w.rv));
    sim_check(json_is_null(lock) || json_string_length(lock) > 0);
    sim_check(json_string_length(lock) < sizeof(w.lock.z));
    if (!json_is_null(lock))
        memcpy(w.lock.z, json_string_value(lock), json_string_length(lock));
    json_decref(root);
    return w;
}

static void answer_node(struct flight *f, unsigned node)
{
    f->status = 200;
    f->reply.n = 0;
    render_object(&f->reply, CACHE_NODES, &(const union object){.node = store.nodes[node]}, false);
}

void serve_node(struct flight *f, const struct api_request *r)
{
    unsigned node = store_find_node(r->name);
    bool there = node != MAX_NODES && store.nodes[node].exists;
    if (strcmp(f->method, "PATCH") == 0) {
        struct lock_write w = write_read(f, r);
        if (fault(FAULT_LATE_COMMIT)) {
            write_in_doubt(f, &w);
            return;
        }
        if (commit(&w) == 409) {
            reply_status(f, 409, "Conflict", "the object has been modified",
                         ",\"details\":{\"kind\":\"nodes\"}");
            return;
        }
    }
    if (there)
        answer_node(f, node);
    else
        reply_status(f, 404, "NotFound", "nodes not found", ",\"details\":{\"kind\":\"nodes\"}");
}

void locks_refused(const struct flight *f, const struct api_request *r)
{
    unsigned node = store_find_node(r->name);
    for (unsigned i = 0; r->verb == API_NODE && node != MAX_NODES && i < PLUGINS; i++) {
        struct set *s = &sets[i][node];
        s->refused = s->refused || s->sender == f->sender;
    }
}

/* ---- Bindings ---- */

void locks_bound(const struct order *o, unsigned slot)
{
    const struct pod_object *p = &store.pods[slot];
    unsigned node = store_find_node(name_str(&p->node));
    if (o->is.plugin == PLUGIN_VGPU)
        vgpus_bound(slot);
    if (o->is.plugin != PLUGIN_HAMI)
        return;
    sim_check(node != MAX_NODES);
    for (unsigned i = 0; i < store.n_pods; i++)
        sim_check(i == slot || oracle_by(i) == NULL || !waits_on(&store.pods[i], node));
    sim_check(!locks_strict() || names(&store.nodes[node].lock, p));
}

void locks_changed(const struct change *c)
{
    const struct pod_object *p = &c->new.pod;
    bool bound = c->kind == CACHE_PODS && p->plugin == PLUGIN_VGPU && p->node.z[0] != '\0' &&
                 c->old.pod.node.z[0] == '\0';
    for (unsigned i = 0; c->kind == CACHE_PODS && i < store.n_nodes; i++) {
        struct set *s = sets[PLUGIN_HAMI];
        if (lock_object_set(&s[i].lock) && is_named_on(&s[i].lock, i))
            s[i].bound = true;
        if (bound && strcmp(p->node.z, store.nodes[i].name.z) == 0)
            sets[PLUGIN_VGPU][i].bound = true;
    }
}

/* ---- the plugin ---- */

static void on_release(struct happening *h)
{
    struct set *s = CONTAINER_OF(h, struct set, release);
    unsigned node = (unsigned)(s - sets[PLUGIN_HAMI]);
    struct node_object n = store.nodes[node];
    if (!n.exists || !lock_object_set(&n.lock) || !lock_object_same(&n.lock, &s->served))
        return;
    trace("plugin unlocks", name_str(&n.name), 0, 0);
    n.lock = (struct lock_object){.z = ""};
    store_put_node(node, &n);
}

/* Without a lock the plugin takes the first pod of the node that waits. */
static unsigned found_by_plugin(unsigned node)
{
    if (lock_object_set(&store.nodes[node].lock))
        return named_by(&store.nodes[node].lock);
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (waits_on(&store.pods[i], node))
            return i;
    }
    return MAX_PODS;
}

/* The pod gets a second write, of the lock, some time after the first. */
static void acknowledge(unsigned slot, unsigned node)
{
    struct pod_object p = store.pods[slot];
    p.assigned = name_from(STR("success"));
    store_put_pod(slot, &p);
    if (!names(&store.nodes[node].lock, &p))
        return;
    struct set *s = &sets[PLUGIN_HAMI][node];
    s->served = store.nodes[node].lock;
    s->release.fire = on_release;
    plan(&s->release, draw(2) == 0 ? 0 : draw(3000));
}

void locks_call(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    unsigned node = store_find_node(name_str(&p.node));
    if (p.plugin == PLUGIN_VGPU && node != MAX_NODES)
        vgpus_call(slot, node);
    if (node == MAX_NODES || !waits_on(&p, node))
        return;
    unsigned found = found_by_plugin(node);
    trace("plugin is called", name_str(&p.uid), (int64_t)found, (int64_t)slot);
    if (oracle_by(slot) != NULL && locks_strict())
        sim_check(found == slot && lock_object_set(&store.nodes[node].lock));
    if (found != MAX_PODS && waits_on(&store.pods[found], node)) {
        acknowledge(found, node);
        return;
    }
    p.phase =
        PHASE_FAILED; /* no pod has a part for this call: the kubelet does not admit the pod */
    store_put_pod(slot, &p);
}

/* ---- at rest ---- */

static bool is_settled(unsigned node, enum plugin plugin)
{
    const struct lock_object *l = lock_of(&store.nodes[node], plugin);
    const struct set *s = &sets[plugin][node];
    const struct proc *p = &procs[s->sender];
    return !store.nodes[node].exists || !lock_object_set(l) || !lock_object_same(l, &s->lock) ||
           s->bound || s->refused || !proc_runs(p) || p->incarnation != s->incarnation;
}

bool locks_settled(void)
{
    for (unsigned i = 0; i < store.n_nodes; i++) {
        if (!is_settled(i, PLUGIN_HAMI) || !is_settled(i, PLUGIN_VGPU))
            return false;
    }
    return late == NULL;
}

void locks_act(void)
{
    static const char *const odd[] = {"x", "2100-01-01T00:00:00Z",
                                      "2100-01-01T00:00:00Z,ns-1,pod-1", ",,"};
    unsigned i = draw(store.n_nodes);
    struct node_object n = store.nodes[i];
    enum plugin plugin = node_object_plugin(&n);
    if (!n.exists || !plugin_has_devices(plugin) || lock_object_set(lock_of(&n, plugin)) ||
        locks_wait(i, plugin))
        return;
    struct lock_object *l = lock_of(&n, plugin);
    (void)snprintf(l->z, sizeof(l->z), "%s", odd[draw(COUNT_OF(odd))]);
    trace("odd lock", str_of(l->z), i, 0);
    store_put_node(i, &n);
}

bool locks_may_refuse(unsigned node, const struct pod_object *p)
{
    if (!plugin_has_devices(p->plugin))
        return false;
    const struct lock_object *l = lock_of(&store.nodes[node], p->plugin);
    return lock_object_set(l) && !lock_object_odd(l);
}

bool locks_keep_out(unsigned node, const struct pod_object *p)
{
    const struct lock_object *l = &store.nodes[node].lock;
    if (p->plugin == PLUGIN_VGPU)
        return vgpus_keep_out(node);
    return p->plugin == PLUGIN_HAMI && lock_object_set(l) && !lock_object_odd(l) && !names(l, p);
}
