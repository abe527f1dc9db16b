/*
 * kube-schedulers: a filter for an unbound pod, then a bind to one of the feasible nodes. They also
 * give up, repeat requests, send them twice, choose another node, or bind pods that no longer
 * exist.
 */
#include "actors.h"

#include "claims.h"
#include "history.h"
#include "kinds.h"
#include "locks.h"
#include "managers.h"
#include "net.h"
#include "oracle.h"
#include "quotas.h"
#include "ranks.h"
#include "vgpus.h"

#include <jansson.h>

#define CYCLES  4
#define PROBES  10
#define BIND_MS 2000 /* at rest: one read and one Binding, without failures */

/* The scheduling of one pod. */
struct cycle {
    struct happening h;
    struct ask *ask;
    unsigned slot;
    unsigned binds; /* binds that it still sends for this pod */
    struct name node;
};

static struct cycle cycles[CYCLES];
static bool stopped;
static uint64_t not_before_ms[MAX_PODS]; /* backoff of pods that could not be bound */

static bool one_replica; /* all requests go to one replica, whichever leads */
static unsigned favourite;

void schedulers_move(void)
{
    one_replica = true;
    favourite = draw(world.set.replicas);
}

static struct proc *some_proc(void)
{
    if (one_replica && draw(20) > 0)
        return &procs[favourite];
    for (unsigned i = 0; i < 4; i++) {
        struct proc *p = &procs[draw(world.set.replicas)];
        if (proc_ready(p))
            return p;
    }
    return &procs[draw(world.set.replicas)];
}

static void begin(struct happening *h);

/* Mostly begins at once; a pod that is feasible nowhere waits. */
static void begin_later(struct cycle *c, unsigned most_ms)
{
    c->h.fire = begin;
    if (stopped)
        unplan(&c->h);
    else
        plan(&c->h, draw(most_ms));
}

static void back_off(const struct cycle *c)
{
    if (world.set.backoff_ms > 0)
        not_before_ms[c->slot] = world.now_ms + draw(world.set.backoff_ms);
}

static void pause_then_begin(struct cycle *c)
{
    begin_later(c, draw(4) == 0 ? 1000 : 60);
}

static bool taken(const struct cycle *me, unsigned slot)
{
    for (unsigned i = 0; i < CYCLES; i++) {
        if (&cycles[i] != me && cycles[i].ask != NULL && cycles[i].slot == slot)
            return true;
    }
    return false;
}

static unsigned pick_pod(const struct cycle *c)
{
    unsigned n = 0;
    unsigned found = MAX_PODS;
    bool careless = fault(FAULT_IMPATIENT);
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        bool waits = p->exists && !p->deleting && p->node.z[0] == '\0' && !p->gated &&
                     !pod_object_terminal(p) && !taken(c, i) && not_before_ms[i] <= world.now_ms;
        if ((waits || careless) && draw(++n) == 0)
            found = i;
    }
    return found;
}

/* ---- bind ---- */

static void put_field(struct text *t, const char *key, const struct name *value)
{
    text_z(t, key);
    text_quoted(t, name_str(value));
}

static void bind_done(struct ask *a);

static struct ask *bind_ask(const struct pod_object *p, const struct name *node,
                            void (*done)(struct ask *a), void *owner)
{
    struct ask *a = ask_new(ASK_BIND, "/gpushare-scheduler/bind", done, owner);
    a->uid = p->uid;
    a->node = *node;
    put_field(&a->body, "{\"PodName\":", &p->name);
    put_field(&a->body, ",\"PodNamespace\":", &p->ns);
    put_field(&a->body, ",\"PodUID\":", &p->uid);
    put_field(&a->body, ",\"Node\":", node);
    text_z(&a->body, "}");
    return a;
}

/* kube-scheduler makes a claim where a class serves the pod's exclusive cards, and writes that into
 * the pod's status before it binds it. */
static void claim_cards(unsigned slot, const struct name *node)
{
    struct pod_object p = store.pods[slot];
    unsigned on = store_find_node(name_str(node));
    bool claims = on != MAX_NODES && claims_serve(&store.nodes[on]) && pod_object_exclusive(&p) > 0;
    if (!p.exists || p.node.z[0] != '\0' || p.claimed == claims)
        return;
    p.claimed = claims;
    store_put_pod(slot, &p);
}

static void send_bind(struct cycle *c)
{
    claim_cards(c->slot, &c->node);
    c->ask = bind_ask(&store.pods[c->slot], &c->node, bind_done, c);
    ask_send(c->ask, some_proc());
}

static void give_up(struct happening *h)
{
    struct cycle *c = CONTAINER_OF(h, struct cycle, h);
    trace("scheduler gives up", name_str(&store.pods[c->slot].uid), 0, 0);
    if (c->ask != NULL)
        ask_leave(c->ask);
    c->ask = NULL;
    if (c->binds > 0) {
        c->binds--;
        if (draw(2) == 0)
            c->node = store.nodes[draw(store.n_nodes)].name;
        send_bind(c);
        plan(&c->h, world.set.http_timeout_ms);
        return;
    }
    back_off(c);
    pause_then_begin(c);
}

static void wait_for_answer(struct cycle *c)
{
    bool hasty = fault(FAULT_IMPATIENT);
    c->h.fire = give_up;
    plan(&c->h, hasty ? draw(50) : world.set.http_timeout_ms);
}

static void bind_done(struct ask *a)
{
    struct cycle *c = a->owner;
    bool bound = str_eq(text_str(&a->answer), STR("{\"Error\":\"\"}"));
    trace("bind", name_str(&a->uid), bound, a->status);
    c->ask = NULL;
    if (!bound && c->binds > 0) {
        c->binds--;
        send_bind(c);
        wait_for_answer(c);
        return;
    }
    if (!bound)
        back_off(c);
    pause_then_begin(c);
}

/* ---- filter ---- */

struct filter_answer {
    unsigned fits[MAX_NODES];
    unsigned n;
    unsigned listed; /* a bit for each node */
    unsigned failed;
    bool refused;
};

/* Each candidate is in the answer at most once: as feasible, or with a reason. Only the shortlist
 * leaves out candidates. */
static void read_filter(const struct ask *a, struct filter_answer *ret)
{
    json_error_t error;
    json_t *root = json_loadb(a->answer.p, a->answer.n, 0, &error);
    json_t *names = json_object_get(root, "NodeNames");
    json_t *failed = json_object_get(root, "FailedNodes");
    const char *why = json_string_value(json_object_get(root, "Error"));
    sim_check(root != NULL && why != NULL);
    *ret = (struct filter_answer){.refused = why[0] != '\0'};
    for (unsigned i = 0; i < store.n_nodes && !ret->refused; i++) {
        bool in = false;
        for (size_t k = 0; k < json_array_size(names); k++) {
            const char *name = json_string_value(json_array_get(names, k));
            in = in || strcmp(name, store.nodes[i].name.z) == 0;
        }
        const char *reason = json_string_value(json_object_get(failed, store.nodes[i].name.z));
        sim_check(reason == NULL ? in || world.set.shortens : !in && reason[0] != '\0');
        ret->listed |= in ? 1U << i : 0;
        ret->failed |= reason != NULL ? 1U << i : 0;
        if (in)
            ret->fits[ret->n++] = i;
    }
    json_decref(root);
}

static void filter_done(struct ask *a)
{
    struct cycle *c = a->owner;
    struct filter_answer answer = {.n = 0};
    c->ask = NULL;
    if (a->status == 200)
        read_filter(a, &answer);
    if (answer.n == 0) {
        begin_later(c, 2000);
        return;
    }
    c->node = store.nodes[answer.fits[draw(answer.n)]].name;
    c->binds = fault(FAULT_IMPATIENT) ? draw(3) : 0;
    send_bind(c);
    wait_for_answer(c);
}

static struct ask *filter_new(const struct pod_object *p, void (*done)(struct ask *a), void *owner)
{
    struct ask *a = ask_new(ASK_FILTER, "/gpushare-scheduler/filter", done, owner);
    union object o = {.pod = *p};
    text_z(&a->body, "{\"Pod\":");
    render_object(&a->body, CACHE_PODS, &o, true);
    text_z(&a->body, ",\"Nodes\":null,\"NodeNames\":[");
    for (unsigned i = 0; i < store.n_nodes; i++) {
        text_z(&a->body, i > 0 ? "," : "");
        text_quoted(&a->body, name_str(&store.nodes[i].name));
    }
    text_z(&a->body, "]}");
    return a;
}

static void nonsense_done(struct ask *a)
{
    (void)a;
}

static void send_nonsense(void)
{
    static const char *const bodies[] = {
        "",
        "{",
        "null",
        ("{\"PodName\":\"pod-1\",\"PodNamespace\":\"ns-0\","
         "\"PodUID\":\"uid-none\",\"Node\":\"n0\"}"),
        ("{\"PodName\":\"nobody\",\"PodNamespace\":\"ns-0\","
         "\"PodUID\":\"uid-1\",\"Node\":\"n1\"}"),
    };
    static const char *const paths[] = {"/gpushare-scheduler/bind", "/gpushare-scheduler/filter"};
    struct ask *a = ask_new(ASK_NONSENSE, paths[draw(2)], nonsense_done, NULL);
    text_z(&a->body, bodies[draw(COUNT_OF(bodies))]);
    ask_send(a, some_proc());
}

static void begin(struct happening *h)
{
    struct cycle *c = CONTAINER_OF(h, struct cycle, h);
    if (stopped)
        return;
    if (fault(FAULT_NONSENSE))
        send_nonsense();
    c->slot = pick_pod(c);
    if (c->slot == MAX_PODS) {
        begin_later(c, 300);
        return;
    }
    c->binds = 0;
    if (fault(FAULT_IMPATIENT)) {
        c->node = store.nodes[draw(store.n_nodes)].name;
        c->binds = draw(2);
        send_bind(c);
    } else {
        c->ask = filter_new(&store.pods[c->slot], filter_done, c);
        ask_send(c->ask, some_proc());
    }
    wait_for_answer(c);
}

void schedulers_begin(void)
{
    stopped = false;
    one_replica = false;
    memset(not_before_ms, 0, sizeof(not_before_ms));
    for (unsigned i = 0; i < world.set.schedulers; i++)
        pause_then_begin(&cycles[i]);
}

void schedulers_stop(void)
{
    stopped = true;
    for (unsigned i = 0; i < CYCLES; i++) {
        if (cycles[i].ask != NULL)
            ask_leave(cycles[i].ask);
        cycles[i].ask = NULL;
        unplan(&cycles[i].h);
    }
}

/* ---- the oracle's questions ---- */

static struct pod_object probes[PROBES];

/* The reasons of quotas must be true. */
static void check_reasons(const struct ask *a, const struct pod_object *p)
{
    json_error_t error;
    const char *name = NULL;
    json_t *reason = NULL;
    struct quota_room room;
    json_t *root = json_loadb(a->answer.p, a->answer.n, 0, &error);
    quotas_room(p, &room);
    json_object_foreach(json_object_get(root, "FailedNodes"), name, reason)
    {
        const char *text = json_string_value(reason);
        sim_check(!quotas_is_reason(text) ||
                  quotas_explain(&room, store_find_node(str_of(name)), text));
    }
    json_decref(root);
}

static void probe_done(struct ask *a)
{
    const struct pod_object *p = a->owner;
    struct filter_answer answer;
    sim_check(a->status == 200);
    read_filter(a, &answer);
    sim_check(!answer.refused);
    check_reasons(a, p);
    ranks_check_shortlist(p, answer.listed, answer.failed);
    for (unsigned i = 0; i < store.n_nodes; i++) {
        bool in = (answer.failed >> i & 1) == 0;
        enum fits wanted = oracle_answers(i, p);
        trace("probe", name_str(&store.nodes[i].name), in, wanted);
        sim_check(wanted == FITS_PERHAPS || in == (wanted == FITS));
    }
}

void schedulers_probe(void)
{
    static const int64_t sizes[] = {0, 1, 5, 16};
    struct name ns = name_from(STR("ns-0"));
    struct name name = name_from(STR("probe"));
    for (size_t k = 0; k < PROBES; k++) {
        probes[k] = pod_some(&ns, &name);
        if (k < COUNT_OF(sizes))
            probes[k] = (struct pod_object){.exists = true,
                                            .ns = ns,
                                            .name = name,
                                            .n_mains = 1,
                                            .n_containers = 1,
                                            .containers = {{.named = true, .mem = sizes[k]}}};
        probes[k].uid = name_from(STR("uid-probe"));
    }
    for (unsigned i = 0; i < world.set.replicas; i++) {
        for (size_t k = 0; proc_ready(&procs[i]) && k < PROBES; k++)
            ask_send(filter_new(&probes[k], probe_done, &probes[k]), &procs[i]);
    }
}

static void answer_ignored(struct ask *a)
{
    (void)a;
}

void schedulers_turn_to(struct proc *p)
{
    ask_send(filter_new(&probes[0], answer_ignored, NULL), p);
}

static void bound_at_rest(struct ask *a)
{
    bool bound = str_eq(text_str(&a->answer), STR("{\"Error\":\"\"}"));
    trace("bound at rest", name_str(&a->uid), bound, a->status);
}

/* The annotations of these plugins name the cards of the containers. */
static bool is_on_card(const struct pod_object *p, int64_t card)
{
    struct slices all;
    pod_object_slices(p, false, &all);
    return all.n > 0 && all.at[0].card == card &&
           (p->plugin > PLUGIN_VOLCANO || pod_object_card(p) == card);
}

/* The first call may fail because the token is too old; then the scheduler repeats it. */
static void bind_at_rest(unsigned slot, unsigned node)
{
    claim_cards(slot, &store.nodes[node].name);
    const struct pod_object *p = &store.pods[slot];
    int64_t card = oracle_card(node, p);
    for (unsigned tries = 0; tries < 2 && p->node.z[0] == '\0'; tries++) {
        for (unsigned i = 0; i < world.set.replicas; i++) {
            if (proc_ready(&procs[i]))
                ask_send(bind_ask(p, &store.nodes[node].name, bound_at_rest, NULL), &procs[i]);
        }
        history_go_on(BIND_MS);
    }
    sim_check(strcmp(p->node.z, store.nodes[node].name.z) == 0);
    sim_check(card < 0 || is_on_card(p, card));
    for (unsigned i = p->plugin == PLUGIN_TENCENT ? draw(4) : 0; i > 0; i--) {
        managers_run(slot);
        history_go_on(BIND_MS);
    }
    if (p->plugin == PLUGIN_VGPU && draw(4) > 0) {
        locks_call(slot);
        history_go_on(BIND_MS);
    }
}

/* Nothing but time removes a lock whose pod ended before Volcano's plugin had served it. */
static void await_lock(const struct pod_object *p)
{
    unsigned node = 0;
    while (node < store.n_nodes && (oracle_fits(node, p) != FITS || !locks_keep_out(node, p)))
        node++;
    if (node < store.n_nodes && p->plugin == PLUGIN_VGPU && draw(2) == 0)
        history_go_on(vgpus_free_in_ms(node));
}

void schedulers_bind_all(void)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        unsigned node = 0;
        if (!p->exists || p->deleting || p->gated || p->node.z[0] != '\0' || pod_object_terminal(p))
            continue;
        await_lock(p);
        while (node < store.n_nodes && (oracle_fits(node, p) != FITS || locks_keep_out(node, p)))
            node++;
        if (node < store.n_nodes)
            bind_at_rest(i, node);
    }
}
