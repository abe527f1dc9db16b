/* Users, kubelets with their device plugin, administrators, and faults: one random action at a
 * time. */
#include "actors.h"

#include "api/leases.h"
#include "claims.h"
#include "daemon/bind/bind.h"
#include "daemon/bind/bind_op.h"
#include "kinds.h"
#include "locks.h"
#include "managers.h"
#include "plugins.h"
#include "quotas.h"
#include "server.h"
#include "swaps.h"
#include "vgpus.h"

#define OTHER_OBJECT (MAX_HEALTHS - 2) /* index in store.healths; the nodes have the first */

static uint64_t born; /* number of pods created so far */

static unsigned some_pod(bool (*suits)(const struct pod_object *p))
{
    unsigned n = 0;
    unsigned found = MAX_PODS;
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (store.pods[i].exists && suits(&store.pods[i]) && draw(++n) == 0)
            found = i;
    }
    return found;
}

static bool any(const struct pod_object *p)
{
    (void)p;
    return true;
}

static bool unbound(const struct pod_object *p)
{
    return p->node.z[0] == '\0';
}

static bool bound(const struct pod_object *p)
{
    return p->node.z[0] != '\0' && !pod_object_terminal(p);
}

static bool deleting(const struct pod_object *p)
{
    return p->deleting;
}

static bool initialized(const struct pod_object *p)
{
    return bound(p) && p->initialized;
}

static bool uninitialized(const struct pod_object *p)
{
    return bound(p) && !p->initialized;
}

/* ---- pods ---- */

static void create_as(const struct name *ns, const struct name *name)
{
    if (store.n_pods == MAX_PODS || store_find_pod(name_str(ns), name_str(name)) != MAX_PODS)
        return;
    struct pod_object p = pod_some(ns, name);
    p.uid = name_of("uid-", ++born);
    p.gated = draw(40) == 0;
    if (draw(6) == 0)
        p.note = name_from(STR("a \"quote\" \\ {}[],"));
    /* Annotations copied with a manifest; they mean nothing before the pod is bound. */
    if (p.plugin != PLUGIN_GPUSHARE) {
        if (draw(6) == 0)
            (void)plugins_allocate(&p);
        store_put_pod(store.n_pods++, &p);
        return;
    }
    if (draw(10) == 0)
        p.idx = name_of("", draw(3));
    if (kind(KIND_ALLOCATIONS) && draw(4) == 0)
        pod_allocate(&p);
    store_put_pod(store.n_pods++, &p);
}

static void create(void)
{
    struct name ns = name_of("ns-", draw(2));
    struct name name = name_of("pod-", draw(world.set.names));
    create_as(&ns, &name);
}

static void remove_pod(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    p.exists = false;
    store_put_pod(slot, &p);
}

static void delete_gracefully(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    bool finalizers = kind(KIND_NOMINATED) && draw(4) == 0;
    if (p.deleting || (unbound(&p) && !finalizers)) {
        remove_pod(slot);
        return;
    }
    p.deleting = true;
    store_put_pod(slot, &p);
}

/* A pod with a bind under way in some process, and the node of that bind. */
static unsigned pod_in_work(struct name *ret_node)
{
    const struct proc *p = &procs[draw(world.set.replicas)];
    unsigned n = 0;
    unsigned slot = MAX_PODS;
    if (!proc_runs(p))
        return slot;
    LIST_FOR_EACH (const struct bind_op, op, bind_ops(p->daemon.service.binder), link) {
        unsigned of = store_find_uid(op->uid);
        if (of == MAX_PODS || !store.pods[of].exists || !unbound(&store.pods[of]) || draw(++n) > 0)
            continue;
        slot = of;
        *ret_node = name_from(op->node);
    }
    return slot;
}

/* Deletes and creates a pod again; preferably one whose bind is under way. */
static void recreate(void)
{
    struct name node;
    unsigned slot = draw(3) > 0 ? pod_in_work(&node) : MAX_PODS;
    if (slot == MAX_PODS)
        slot = some_pod(draw(3) > 0 ? unbound : any);
    if (slot == MAX_PODS)
        return;
    struct pod_object p = store.pods[slot];
    remove_pod(slot);
    create_as(&p.ns, &p.name);
}

static void finish(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    p.phase = draw(2) == 0 ? PHASE_SUCCEEDED : PHASE_FAILED;
    store_put_pod(slot, &p);
}

/* The device plugin sets ASSIGNED; on a later call the kubelet runs the pod. */
static void run(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    if (p.phase != PHASE_PENDING)
        return;
    if (plugin_has_devices(p.plugin) && plugin_waits(&p)) {
        locks_call(slot);
        return;
    }
    if (p.plugin == PLUGIN_TENCENT) {
        managers_run(slot);
        return;
    }
    if (plugin_waits(&p)) {
        p.assigned = name_from(STR("true"));
        p.assume = name_of("", SIM_EPOCH_NS + world.now_ms * 1000000);
    } else {
        p.phase = PHASE_RUNNING;
    }
    store_put_pod(slot, &p);
}

static void initialize(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    p.initialized = true;
    store_put_pod(slot, &p);
}

/* The kubelet makes a new sandbox, and the init containers run again. */
static void begin_again(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    p.initialized = false;
    store_put_pod(slot, &p);
}

/* As a preemption by the scheduler: nominates a node, and deletes a pod there. */
static void nominate(unsigned slot)
{
    struct pod_object p = store.pods[slot];
    if (!kind(KIND_NOMINATED))
        return;
    p.nominated = draw(4) == 0 ? name_from(STR("")) : store.nodes[draw(store.n_nodes)].name;
    store_put_pod(slot, &p);
    unsigned victim = some_pod(bound);
    if (victim != MAX_PODS && strcmp(store.pods[victim].node.z, p.nominated.z) == 0)
        delete_gracefully(victim);
}

/* Other clients also write lists of cards. */
static struct name some_index(unsigned n)
{
    static const char *const lists[] = {"0", "1", "1,0", "2", "4,x, 2"};
    return name_from(str_of(lists[draw(n)]));
}

static void edit(void)
{
    struct name node;
    unsigned slot = draw(4) == 0 ? pod_in_work(&node) : some_pod(any);
    if (slot == MAX_PODS)
        return;
    struct pod_object p = store.pods[slot];
    if (plugins_edit(&p)) {
        store_put_pod(slot, &p);
        return;
    }
    /* An API server before 1.27 binds the pod all the same. */
    if (world.set.preconditions && p.node.z[0] == '\0' && kind(KIND_PERCENT) && draw(2) == 0) {
        p.percent = 1 + draw(100);
        store_put_pod(slot, &p);
        return;
    }
    switch (draw(kind(KIND_ALLOCATIONS) ? 9 : 7)) {
    case 6:
        p.policy = name_from(draw(2) == 0 ? STR("spread") : STR(""));
        break;
    case 7:
        pod_allocate(&p);
        break;
    case 8:
        p.allocation = (struct grants_object){.there = false};
        break;
    case 0:
        p.idx = some_index(5);
        break;
    case 1:
        p.idx = name_from(draw(2) == 0 ? STR("") : STR("-1"));
        break;
    case 2:
        p.assigned = name_from(draw(2) == 0 ? STR("") : STR("false"));
        break;
    case 3:
        p.assume = name_from(draw(2) == 0 ? STR("soon") : STR("1"));
        break;
    default:
        p.note = name_of("edited ", draw(1000));
        p.containers[0].cpu = 100 * (int64_t)(store.rv % 4); /* a resize in place */
        break;
    }
    p.gated = false;
    store_put_pod(slot, &p);
}

/* Another client binds a pod, as another scheduler or an old DaemonSet's nodeName; mostly a pod
 * that cardpack is binding. */
static void bind_foreign(void)
{
    struct name node =
        draw(8) == 0 ? name_from(STR("nowhere")) : store.nodes[draw(store.n_nodes)].name;
    unsigned slot = pod_in_work(&node);
    if (slot == MAX_PODS)
        slot = some_pod(unbound);
    if (slot == MAX_PODS || store.pods[slot].deleting)
        return;
    struct pod_object p = store.pods[slot];
    unsigned on = store_find_node(name_str(&node));
    if (!plugins_may_bind(&p, on == MAX_NODES ? NULL : &store.nodes[on]))
        return;
    p.node = node;
    p.claimed = pod_object_exclusive(&p) > 0 && on != MAX_NODES && claims_serve(&store.nodes[on]);
    if (draw(3) > 0 && !plugins_allocate(&p)) {
        p.idx = some_index(3);
        p.assigned = name_from(STR("false"));
        p.assume = name_of("", SIM_EPOCH_NS);
    }
    if (p.plugin == PLUGIN_GPUSHARE && kind(KIND_ALLOCATIONS) && draw(2) == 0)
        pod_allocate(&p);
    store_put_pod(slot, &p);
}

/* ---- nodes ---- */

static void change_node(void)
{
    unsigned slot = draw(store.n_nodes);
    struct node_object n = store.nodes[slot];
    node_change(&n);
    plugins_settle_node(&n);
    store_put_node(slot, &n);
}

/* Mostly of a node to which a pod is being bound. */
static void change_plugin(void)
{
    struct name name = store.nodes[draw(store.n_nodes)].name;
    (void)pod_in_work(&name);
    unsigned slot = store_find_node(name_str(&name));
    struct node_object n = store.nodes[slot == MAX_NODES ? 0 : slot];
    if (slot == MAX_NODES || !n.exists)
        return;
    plugins_replace(&n);
    plugins_settle_node(&n);
    store_put_node(slot, &n);
}

static void label_node(void)
{
    unsigned slot = draw(store.n_nodes);
    struct node_object n = store.nodes[slot];
    node_label(&n);
    store_put_node(slot, &n);
}

static void change_health(void)
{
    unsigned slot = draw(8) == 0 ? OTHER_OBJECT : draw(store.n_nodes);
    struct health_object h = store.healths[slot];
    if (slot == OTHER_OBJECT)
        h.name = name_from(STR("kube-root-ca.crt"));
    else
        h.name = name_of("unhealthy-gpu-n", slot);
    h.exists = draw(4) > 0;
    switch (draw(3)) {
    case 0:
        h.gpus = name_of("", draw(3));
        break;
    case 1:
        h.gpus = name_from(STR("0, 2"));
        break;
    default:
        h.gpus = name_from(STR(""));
        break;
    }
    store_put_health(slot, &h);
}

void users_begin(void)
{
    born = 0;
    store.n_nodes = world.set.nodes;
    for (unsigned i = 0; i < store.n_nodes; i++) {
        struct node_object n = {.exists = true, .name = name_of("n", i)};
        node_size(&n);
        plugins_make_node(&n);
        if (kind(KIND_CLAIMS) && world.set.partition)
            claims_part(&n);
        store_put_node(i, &n);
    }
    if (kind(KIND_CLAIMS))
        claims_begin();
    for (unsigned i = draw(6); i > 0; i--)
        create();
    if (kind(KIND_QUOTAS) && draw(2) == 0)
        quotas_change();
}

/* ---- faults ---- */

static struct proc *some_proc(void)
{
    return &procs[draw(world.set.replicas)];
}

/* Changes the file of all replicas. Some are restarted now; the others go on with their settings
 * until the end of the episode, or until they end for another reason. */
static void roll_out(void)
{
    struct swarm *s = &world.set;
    switch (draw(8)) {
    case 7:
        s->node_spread = !s->node_spread;
        break;
    case 6:
        s->shortlist = s->shortens ? draw(4) : 0;
        break;
    case 5:
        s->guard = draw(SWAP_GUARDS);
        break;
    case 0:
        s->shrink = !s->shrink;
        break;
    case 1:
        s->spread = !s->spread;
        break;
    case 2:
        s->bind_timeout_ms = 1000 + draw(30000);
        break;
    case 3:
        s->page_size = 1 + draw(20);
        break;
    default:
        s->evicts = kind(KIND_EVICTIONS) && !s->evicts;
        break;
    }
    trace("settings change", STR(""), s->shrink, s->evicts);
    world.writes++;
    for (unsigned i = 0; i < s->replicas; i++) {
        if (draw(2) == 0)
            proc_stop(&procs[i]);
    }
}

/* A user deletes the Leases, or leaves them without a holder as a release does. */
static void lose_leases(void)
{
    if (draw(2) == 0 && leases_forge()) {
        trace("lease is forged", STR(""), 0, 0);
        return;
    }
    for (unsigned n = leases_delete(); n > 0; n--)
        trace("lease is deleted", STR(""), 0, 0);
}

static bool awaits_hami(const struct pod_object *p)
{
    return plugin_has_devices(p->plugin) && bound(p) && p->phase == PHASE_PENDING &&
           plugin_waits(p);
}

/* The kubelet calls a plugin of HAMi's family soon, or else no further pod could come. */
static void call_plugin(void)
{
    unsigned slot = some_pod(awaits_hami);
    if (slot != MAX_PODS)
        locks_call(slot);
}

static bool awaits_manager(const struct pod_object *p)
{
    return p->plugin == PLUGIN_TENCENT && bound(p) && p->phase == PHASE_PENDING;
}

/* The same with gpu-manager, or with swap-guard "require" no further pod could come. */
static void call_manager(void)
{
    unsigned slot = some_pod(awaits_manager);
    if (slot != MAX_PODS)
        managers_run(slot);
    if (draw(8) == 0)
        managers_act();
}

static void act_by_kinds(void)
{
    if ((world.set.plugins >> PLUGIN_TENCENT & 1) != 0 && draw(2) == 0)
        call_manager();
    if ((world.set.plugins & (1U << PLUGIN_HAMI | 1U << PLUGIN_VGPU)) != 0 && draw(4) == 0)
        call_plugin();
    if ((world.set.plugins & (1U << PLUGIN_HAMI | 1U << PLUGIN_VGPU)) != 0 &&
        !world.set.faultless && draw(16) == 0)
        locks_act();
    if ((world.set.plugins >> PLUGIN_VGPU & 1) != 0 && draw(6) == 0)
        vgpus_act();
    if (world.set.foreign && draw(16) == 0)
        change_plugin();
    if (kind(KIND_CLAIMS) && draw(2) == 0)
        claims_act();
    if (kind(KIND_QUOTAS) && draw(12) == 0)
        quotas_change();
    if (kind(KIND_QUOTAS) && draw(24) == 0)
        label_node();
}

static void fate(void)
{
    act_by_kinds();
    if (fault(FAULT_ROLLOUT))
        roll_out();
    if (fault(FAULT_KILL))
        proc_kill(some_proc());
    if (fault(FAULT_STOP))
        proc_stop(some_proc());
    if (fault(FAULT_PAUSE))
        proc_pause(some_proc(), draw(3) == 0 ? draw(60000) : draw(3000));
    if (fault(FAULT_TIME_JUMP))
        sim_wall_jump(((int64_t)draw(200000) - 100000) * 1000000000);
    if (fault(FAULT_RESTART) && server_is_up())
        server_restart(draw(2) == 0 ? draw(500) : draw(30000));
    if (fault(FAULT_COMPACTION))
        server_compact();
    if (fault(FAULT_TOKEN))
        server_rotate_token();
    if (fault(FAULT_LEASE))
        lose_leases();
    if (fault(FAULT_DENIED))
        leases_deny(draw(world.set.replicas));
    if (fault(FAULT_MOVE))
        schedulers_move();
    if (fault(FAULT_RECREATE))
        recreate();
    if (fault(FAULT_EDIT))
        edit();
    if (fault(FAULT_FOREIGN))
        bind_foreign();
    if (fault(FAULT_NODES))
        change_node();
    if (fault(FAULT_HEALTH))
        change_health();
}

void users_act(void)
{
    static const struct {
        unsigned weight;
        bool (*suits)(const struct pod_object *p);
        void (*act)(unsigned slot);
    } acts[] = {
        {15, bound, delete_gracefully},
        {8, any, delete_gracefully},
        {10, deleting, remove_pod},
        {15, bound, finish},
        {25, bound, run},
        {10, uninitialized, initialize},
        {3, initialized, begin_again},
        {6, unbound, nominate},
    };

    unsigned dice = draw(129);
    fate();
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        if (dice >= acts[i].weight) {
            dice -= acts[i].weight;
            continue;
        }
        unsigned slot = some_pod(acts[i].suits);
        if (slot != MAX_PODS)
            acts[i].act(slot);
        return;
    }
    create();
}
