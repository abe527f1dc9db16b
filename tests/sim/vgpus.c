/* Volcano's vGPU plugins; see vgpus.h. */
#include "vgpus.h"

#include "api/plugins.h"
#include "locks.h"

#define NO_POD    MAX_PODS
#define EXPIRES_S 300 /* of a lock */
#define DAY_S     86400
#define SERVED    "18446744073709551615"

static struct {
    struct happening release[MAX_NODES];
    struct lock_object served[MAX_NODES]; /* the lock that was there at the plugin's last call */
    bool strayed[MAX_NODES];              /* a lock was removed for another pod than its own */
    struct lock_object lock[MAX_PODS];    /* that was there when the pod was bound */
    struct grants_object given[MAX_PODS]; /* by the plugin to the pod's container */
} all;

void vgpus_reset(void)
{
    for (unsigned i = 0; i < MAX_NODES; i++)
        unplan(&all.release[i]);
    memset(&all, 0, sizeof(all));
}

static bool is_on(const struct pod_object *p, unsigned node)
{
    return p->plugin == PLUGIN_VGPU && pod_object_holds_on(p, &store.nodes[node]);
}

static bool is_allocating(const struct pod_object *p)
{
    return strcmp(p->assigned.z, "allocating") == 0;
}

bool vgpu_waits(const struct pod_object *p, unsigned node)
{
    return is_on(p, node) && plugin_waits(p) && (p->phase == PHASE_PENDING || is_allocating(p));
}

/* Whether the plugin still has to serve this pod of cardpack's on the node. */
static bool is_ours(unsigned slot, unsigned node)
{
    const struct pod_object *p = &store.pods[slot];
    return oracle_by(slot) != NULL && is_on(p, node) && is_allocating(p);
}

/* The order of pods is that of their times, so nobody else may write these. */
static bool is_strict(void)
{
    return locks_strict() && world.set.permille[FAULT_EDIT] == 0 &&
           world.set.permille[FAULT_TIME_JUMP] == 0;
}

/* ---- locks ---- */

static uint64_t two_digits(const char *z)
{
    return (uint64_t)(10 * (z[0] - '0') + z[1] - '0');
}

/* Of "2023-11-14T22:13:20.123456789Z"; wall clocks that have not jumped run from the epoch on. */
static uint64_t age_s(const struct lock_object *l)
{
    sim_check(strlen(l->z) == 30 && l->z[10] == 'T' && l->z[29] == 'Z');
    uint64_t set_s =
        3600 * two_digits(l->z + 11) + 60 * two_digits(l->z + 14) + two_digits(l->z + 17);
    uint64_t now_s = SIM_EPOCH_NS / 1000000000 + world.now_ms / 1000;
    return (now_s + DAY_S - set_s) % DAY_S;
}

void vgpus_written(const struct lock_object *lock, unsigned node)
{
    const struct lock_object *old = &store.nodes[node].vgpu_lock;
    bool replaces = lock_object_set(lock) && lock_object_set(old) && !lock_object_same(lock, old);
    if (replaces && !lock_object_odd(old) && world.set.permille[FAULT_TIME_JUMP] == 0)
        sim_check(age_s(old) >= EXPIRES_S);
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (!is_ours(i, node) || !lock_object_set(&all.lock[i]))
            continue;
        if (lock_object_set(lock))
            sim_check(lock_object_same(lock, &all.lock[i]));
        else
            sim_check(!locks_strict() || !lock_object_same(old, &all.lock[i]));
    }
    if (lock_object_set(lock))
        all.strayed[node] = false;
}

void vgpus_bound(unsigned slot)
{
    unsigned node = store_find_node(name_str(&store.pods[slot].node));
    sim_check(node != MAX_NODES);
    for (unsigned i = 0; i < store.n_pods; i++)
        sim_check(i == slot || !is_ours(i, node));
    all.lock[slot] = store.nodes[node].vgpu_lock;
    sim_check(!locks_strict() || lock_object_set(&all.lock[slot]) || all.strayed[node]);
}

static void unlock(unsigned node, const char *why)
{
    struct node_object n = store.nodes[node];
    if (!n.exists || !lock_object_set(&n.vgpu_lock))
        return;
    trace(why, str_of(n.vgpu_lock.z), node, lock_object_same(&n.vgpu_lock, &all.served[node]));
    all.strayed[node] = all.strayed[node] || !lock_object_same(&n.vgpu_lock, &all.served[node]);
    n.vgpu_lock = (struct lock_object){.z = ""};
    store_put_node(node, &n);
}

static void on_release(struct happening *h)
{
    unlock((unsigned)(h - all.release), "plugin unlocks");
}

static void release_later(unsigned node)
{
    all.release[node].fire = on_release;
    plan(&all.release[node], draw(2) == 0 ? 0 : draw(3000));
}

/* The lock of a pod that has ended. */
static void unlock_of_ended(unsigned node)
{
    const struct lock_object *l = &store.nodes[node].vgpu_lock;
    for (unsigned i = 0; lock_object_set(l) && i < store.n_pods; i++) {
        if (!lock_object_same(l, &all.lock[i]) || pod_object_holds(&store.pods[i]))
            continue;
        unlock(node, "administrator unlocks");
        return;
    }
}

static void set_phase(unsigned slot, enum object_phase phase)
{
    struct pod_object p = store.pods[slot];
    p.phase = phase;
    store_put_pod(slot, &p);
}

/* The kubelet refuses a pod for lack of something else, and does not ask the plugin. */
static void reject(unsigned node)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (!vgpu_waits(&store.pods[i], node) || store.pods[i].phase != PHASE_PENDING)
            continue;
        trace("rejected", name_str(&store.pods[i].uid), node, 0);
        set_phase(i, PHASE_FAILED);
        return;
    }
}

void vgpus_act(void)
{
    unsigned node = draw(store.n_nodes);
    if (draw(2) == 0)
        reject(node);
    unlock_of_ended(node);
}

bool vgpus_keep_out(unsigned node)
{
    const struct lock_object *l = &store.nodes[node].vgpu_lock;
    return lock_object_set(l) && !lock_object_odd(l) &&
           (world.set.permille[FAULT_TIME_JUMP] > 0 || age_s(l) <= EXPIRES_S);
}

uint64_t vgpus_free_in_ms(unsigned node)
{
    const struct lock_object *l = &store.nodes[node].vgpu_lock;
    if (!lock_object_set(l) || lock_object_odd(l) || world.set.permille[FAULT_TIME_JUMP] > 0)
        return 0;
    return 1000 * (EXPIRES_S + 1 - MIN_OF(age_s(l), (uint64_t)EXPIRES_S));
}

/* ---- the pod of a call ---- */

static uint64_t time_of(const struct pod_object *p)
{
    uint64_t s = UINT64_MAX;
    return str_to_u64(name_str(&p->assume), UINT64_MAX, &s) ? s : UINT64_MAX;
}

static bool is_candidate(const struct pod_object *p, unsigned node, unsigned cards)
{
    return p->exists && p->plugin == PLUGIN_VGPU && p->allocation.there && plugin_waits(p) &&
           p->allocation.n == cards && strcmp(p->on.z, store.nodes[node].name.z) == 0;
}

/* The API server lists pods by namespace and name. */
static bool is_listed_before(const struct pod_object *a, const struct pod_object *b)
{
    int order = strcmp(a->ns.z, b->ns.z);
    return order != 0 ? order < 0 : strcmp(a->name.z, b->name.z) < 0;
}

static unsigned found_by_plugin(unsigned node, unsigned cards)
{
    unsigned last = NO_POD;
    unsigned first = NO_POD; /* of those with the smallest time */
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (!is_candidate(p, node, cards))
            continue;
        if (last == NO_POD || is_listed_before(&store.pods[last], p))
            last = i;
        if (first == NO_POD || time_of(p) < time_of(&store.pods[first]) ||
            (time_of(p) == time_of(&store.pods[first]) && is_listed_before(p, &store.pods[first])))
            first = i;
    }
    return last != NO_POD && time_of(&store.pods[last]) == time_of(&store.pods[first]) ? last
                                                                                       : first;
}

/* ---- what the plugin has given ---- */

static void check_given(unsigned node, int64_t card)
{
    struct card_object row = node_object_row(&store.nodes[node], card);
    int64_t mem = 0;
    unsigned cores = 0;
    unsigned parts = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct grants_object *g = &all.given[i];
        for (unsigned k = 0; is_on(&store.pods[i], node) && k < g->n; k++) {
            if (g->at[k].card != card)
                continue;
            mem += g->at[k].amount;
            cores += g->at[k].cores;
            parts++;
        }
    }
    trace("plugin has given", name_str(&store.nodes[node].name), mem, row.mem);
    sim_check(mem <= row.mem && cores <= 100 && parts <= row.count);
}

static void end(unsigned slot, const char *phase)
{
    struct pod_object p = store.pods[slot];
    p.assigned = name_from(str_of(phase));
    p.assume = name_from(STR(SERVED));
    store_put_pod(slot, &p);
}

/* The pod that calls goes on with the cards of the pod that was found. */
static void give(unsigned node, unsigned slot, unsigned found)
{
    all.given[slot] = store.pods[found].allocation;
    end(found, "success");
    for (int64_t card = 0; is_strict() && card < MAX_CARDS; card++)
        check_given(node, card);
    if (draw(12) > 0)
        release_later(node);
    if (draw(20) == 0)
        set_phase(slot, PHASE_FAILED); /* the answer is lost */
    else if (found != slot)
        set_phase(slot, PHASE_RUNNING);
}

void vgpus_call(unsigned slot, unsigned node)
{
    const struct pod_object *p = &store.pods[slot];
    if (!is_on(p, node) || p->phase != PHASE_PENDING || !plugin_waits(p))
        return;
    unsigned found = found_by_plugin(node, pod_object_cards(p));
    trace("plugin is called", name_str(&p->uid), (int64_t)found, (int64_t)slot);
    if (oracle_by(slot) != NULL && is_strict() && is_allocating(p))
        sim_check(found == slot);
    all.served[node] = store.nodes[node].vgpu_lock;
    if (found != NO_POD && draw(16) > 0) {
        give(node, slot, found);
        return;
    }
    if (found != NO_POD)
        end(found, "failed");
    release_later(node);
    set_phase(slot, PHASE_FAILED);
}
