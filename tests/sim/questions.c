/*
 * At rest, asks each ready replica prioritize, explain, fit and preempt, and compares each answer
 * with the oracle. Each question must get an answer.
 */
#include "actors.h"

#include "kinds.h"
#include "oracle.h"
#include "quotas.h"
#include "ranks.h"

#include <jansson.h>

#define QUESTIONS 4
#define REPLICAS  3

static struct pod_object pods[QUESTIONS];
static unsigned open_questions;

static struct ask *question(enum ask_kind kind, const char *path, void (*done)(struct ask *),
                            struct pod_object *p)
{
    open_questions++;
    return ask_new(kind, path, done, p);
}

static void put_pod(struct text *t, const struct pod_object *p)
{
    union object o = {.pod = *p};
    render_object(t, CACHE_PODS, &o, true);
}

static json_t *answer_of(const struct ask *a)
{
    json_error_t error;
    sim_check(a->status == 200);
    open_questions--;
    json_t *root = json_loadb(a->answer.p, a->answer.n, 0, &error);
    sim_check(root != NULL);
    return root;
}

static unsigned node_of(json_t *object, const char *key)
{
    const char *name = json_string_value(json_object_get(object, key));
    sim_check(name != NULL);
    unsigned node = store_find_node(str_of(name));
    sim_check(node != MAX_NODES);
    return node;
}

/* The oracle does not count exclusive cards; explain, fit and prioritize do: the answer is open. */
static enum fits fits_of(unsigned node, const struct pod_object *p)
{
    enum fits fits = oracle_answers(node, p);
    return fits == FITS && pod_object_exclusive(p) > 0 ? FITS_PERHAPS : fits;
}

/* ---- prioritize: 10 for the best node, 0 where the pod does not fit ---- */

static void prioritized(struct ask *a)
{
    const struct pod_object *p = a->owner;
    json_t *root = answer_of(a);
    json_t *row = NULL;
    size_t i = 0;
    int64_t best = 0;
    bool fits = false;
    int64_t scores[MAX_NODES] = {0};
    sim_check(json_array_size(root) == store.n_nodes);
    json_array_foreach(root, i, row)
    {
        unsigned node = node_of(row, "Host");
        int64_t score = json_integer_value(json_object_get(row, "Score"));
        enum fits wanted = fits_of(node, p);
        scores[node] = score;
        trace("score", name_str(&p->name), score, wanted);
        sim_check(score >= 0 && score <= 10 && (wanted != FITS_NOT || score == 0));
        best = MAX_OF(best, score);
        fits = fits || (wanted == FITS && pod_object_shares(p));
    }
    sim_check(!fits || best == 10);
    ranks_check_scores(p, scores);
    json_decref(root);
}

/* ---- explain: a verdict for each node ---- */

static size_t existing_nodes(void)
{
    size_t n = 0;
    for (unsigned i = 0; i < store.n_nodes; i++)
        n += store.nodes[i].exists ? 1 : 0;
    return n;
}

/* Whether the reason, such as "memory: 30 of 32 used, 4 asked", is one that no eviction ends: what
 * is asked is over the limit, or a place is not allowed. */
static bool is_final(const char *reason)
{
    struct str rest = str_of(strrchr(reason, ':'));
    struct str word;
    uint64_t numbers[3] = {0}; /* used, the limit, asked */
    unsigned n = 0;
    while (n < COUNT_OF(numbers) && rest.n > 0) {
        (void)str_cut(rest, ' ', &word, &rest);
        n += str_to_u64(word, UINT64_MAX, &numbers[n]) ? 1 : 0;
    }
    return n == 0 || numbers[2] > numbers[1];
}

/* The reason of a quota must be true. */
static void check_reason(const struct quota_room *room, unsigned node, json_t *row)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    const char *verdict = json_string_value(json_object_get(row, "verdict"));
    sim_check(reason != NULL && verdict != NULL);
    sim_check(quotas_is_reason(reason) == (strncmp(verdict, "quota", 5) == 0));
    if (!quotas_is_reason(reason))
        return;
    sim_check(quotas_explain(room, node, reason));
    sim_check((strcmp(verdict, "quota_denied") == 0) == is_final(reason));
}

/* The policy of cards, and one NUMA node for several cards. */
static void check_cards(const struct pod_object *p, unsigned node, json_t *placement)
{
    json_t *row = NULL;
    size_t i = 0;
    int first = -1;
    int64_t wanted = placement == NULL ? -1 : oracle_card(node, p);
    bool one = placement != NULL && oracle_one_numa(node, p);
    json_array_foreach(placement, i, row)
    {
        int64_t card = json_integer_value(json_object_get(row, "card"));
        int numa = node_object_numa(&store.nodes[node], card);
        first = i == 0 ? numa : first;
        trace("would get", name_str(&p->name), card, wanted);
        sim_check(wanted < 0 || card == wanted);
        sim_check(!one || (numa >= 0 && numa == first));
    }
}

static void explained(struct ask *a)
{
    const struct pod_object *p = a->owner;
    json_t *root = answer_of(a);
    json_t *row = NULL;
    size_t i = 0;
    json_int_t n = 0;
    struct quota_room room;
    unsigned before = MAX_NODES;
    json_t *verdicts = json_object_get(root, "verdicts");
    quotas_room(p, &room);
    sim_check(json_array_size(verdicts) == existing_nodes());
    json_array_foreach(verdicts, i, row)
    {
        unsigned node = node_of(row, "node");
        enum fits wanted = fits_of(node, p);
        bool fits = json_is_true(json_object_get(row, "fits"));
        trace("explained", name_str(&p->name), fits, wanted);
        sim_check(wanted == FITS_PERHAPS || fits == (wanted == FITS));
        check_reason(&room, node, row);
        check_cards(p, node, json_object_get(row, "placement"));
        if (fits && before != MAX_NODES)
            ranks_check_order(p, before, node);
        before = fits ? node : before;
        n += fits ? 1 : 0;
    }
    sim_check(json_integer_value(json_object_get(root, "fit")) == n);
    json_decref(root);
}

/* ---- fit: at least one replica fits if the pod fits on some node ---- */

static void fitted(struct ask *a)
{
    const struct pod_object *p = a->owner;
    json_t *root = answer_of(a);
    json_int_t fit = json_integer_value(json_object_get(root, "fit"));
    bool surely = false;
    bool perhaps = false;
    for (unsigned i = 0; i < store.n_nodes; i++) {
        enum fits one = fits_of(i, p);
        surely = surely || one == FITS;
        perhaps = perhaps || one != FITS_NOT;
    }
    trace("fit", name_str(&p->name), fit, surely);
    sim_check(fit >= 0 && fit <= REPLICAS && (!surely || fit > 0) && (perhaps || fit == 0));
    json_decref(root);
}

/* ---- preempt: victims of lower priority, without which the pod fits ---- */

static void check_victims(const struct pod_object *p, const char *node_name, json_t *victims)
{
    static struct store before;
    json_t *row = NULL;
    size_t i = 0;
    unsigned node = store_find_node(str_of(node_name));
    sim_check(node != MAX_NODES && json_array_size(victims) > 0);
    before = store;
    for (unsigned k = 0; k < store.n_pods; k++) {
        if (store.pods[k].deleting && strcmp(store.pods[k].node.z, node_name) == 0)
            store.pods[k].exists = false; /* preempt assumes that this pod ends */
    }
    json_array_foreach(victims, i, row)
    {
        const char *uid = json_string_value(json_object_get(row, "UID"));
        unsigned slot = uid == NULL ? MAX_PODS : store_find_uid(str_of(uid));
        sim_check(slot != MAX_PODS && pod_object_holds(&store.pods[slot]));
        sim_check(strcmp(store.pods[slot].node.z, node_name) == 0);
        sim_check(store.pods[slot].priority < p->priority);
        store.pods[slot].exists = false;
    }
    enum fits fits = oracle_fits(node, p);
    store = before;
    trace("preempted for", name_str(&p->name), (int64_t)i, fits);
    sim_check(fits != FITS_NOT);
}

static void preempted(struct ask *a)
{
    const struct pod_object *p = a->owner;
    json_t *root = answer_of(a);
    json_t *nodes = json_object_get(root, "NodeNameToMetaVictims");
    const char *name = NULL;
    json_t *row = NULL;
    sim_check(json_is_object(nodes));
    json_object_foreach(nodes, name, row)
    {
        check_victims(p, name, json_object_get(row, "Pods"));
    }
    json_decref(root);
}

/* ---- all of them ---- */

static void put_nodes(struct text *t)
{
    text_z(t, ",\"Nodes\":null,\"NodeNames\":[");
    for (unsigned i = 0; i < store.n_nodes; i++) {
        text_z(t, i > 0 ? "," : "");
        text_quoted(t, name_str(&store.nodes[i].name));
    }
    text_z(t, "]}");
}

static void put_meta_victims(struct text *t)
{
    text_z(t, ",\"NodeNameToMetaVictims\":{");
    for (unsigned i = 0; i < store.n_nodes; i++) {
        text_z(t, i > 0 ? "," : "");
        text_quoted(t, name_str(&store.nodes[i].name));
        text_z(t, ":{\"Pods\":[],\"NumPDBViolations\":0}");
    }
    text_z(t, "}}");
}

static void ask(struct proc *to, struct pod_object *p)
{
    struct ask *a = question(ASK_OTHER, "/gpushare-scheduler/prioritize", prioritized, p);
    text_z(&a->body, "{\"Pod\":");
    put_pod(&a->body, p);
    put_nodes(&a->body);
    ask_send(a, to);

    a = question(ASK_OTHER, "/gpushare-scheduler/explain", explained, p);
    put_pod(&a->body, p);
    ask_send(a, to);

    a = question(ASK_OTHER, "/gpushare-scheduler/fit", fitted, p);
    text_z(&a->body, "{\"replicas\":");
    text_f(&a->body, "%u", REPLICAS);
    text_z(&a->body, ",\"pod\":");
    put_pod(&a->body, p);
    text_z(&a->body, "}");
    ask_send(a, to);

    a = question(ASK_OTHER, "/gpushare-scheduler/preempt", preempted, p);
    text_z(&a->body, "{\"Pod\":");
    put_pod(&a->body, p);
    put_meta_victims(&a->body);
    ask_send(a, to);
}

/*
 * The API server refuses a call whose token is too old: 502. For the next call cardpack reads the
 * token again.
 */
static void explained_by_name(struct ask *a)
{
    if (a->status == 502)
        open_questions--;
    else
        explained(a);
}

/* Explains pending pods by name: cardpack reads each pod from the API server. */
static void ask_by_name(struct proc *to)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        struct pod_object *p = &store.pods[i];
        if (!p->exists || p->node.z[0] != '\0' || p->deleting || pod_object_terminal(p) ||
            pod_object_bad(p) || p->allocation.there || p->idx.z[0] != '\0' || draw(3) > 0)
            continue;
        struct ask *a =
            question(ASK_OTHER_GET, "/gpushare-scheduler/explain/", explained_by_name, p);
        text_put(&a->path, name_str(&p->ns));
        text_z(&a->path, "/");
        text_put(&a->path, name_str(&p->name));
        ask_send(a, to);
    }
}

void questions_ask(void)
{
    open_questions = 0;
    struct name ns = name_from(STR("ns-0"));
    struct name name = name_from(STR("question"));
    for (size_t k = 0; k < QUESTIONS; k++) {
        pods[k] = pod_some(&ns, &name);
        pods[k].uid = name_from(STR("uid-question"));
        pods[k].priority = (int)draw(3) * 10;
    }
    for (unsigned i = 0; i < world.set.replicas; i++) {
        if (!proc_ready(&procs[i]))
            continue;
        for (size_t k = 0; k < QUESTIONS; k++)
            ask(&procs[i], &pods[k]);
        ask_by_name(&procs[i]);
    }
}

bool questions_answered(void)
{
    return open_questions == 0;
}
