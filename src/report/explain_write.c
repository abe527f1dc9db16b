/* Evaluates all nodes for one pod and writes each verdict, with a reason for each card, as JSON. */
#include "report/explain_write.h"

#include "core/limit.h"
#include "core/place/score.h"
#include "core/state/quota_usage.h"
#include "objects/stamp.h"
#include "report/cost_write.h"
#include "report/plan.h"
#include "report/reason.h"
#include "json/jwrite.h"

#include <stdlib.h>

struct entry {
    const struct node *node;
    uint64_t score;
    enum verdict verdict;
};

struct explain {
    const struct cache *cache;
    const struct pod_view *pod;
    const struct pod *held; /* the pod in the cache if it holds cards already; or NULL */
    struct str there;       /* the node where it has its cards already, ours or DRA's; or absent */
    struct request request;
    struct evaluation evaluation;
    struct score score;
    struct err fault; /* why the pod's request is invalid */
    struct entry *entries;
    size_t n;
    unsigned counts[VERDICT_COUNT];
};

static int explain_write_by_score_and_name(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    bool fits = x->verdict == VERDICT_FITS;
    if (fits != (y->verdict == VERDICT_FITS))
        return fits ? -1 : 1;
    if (fits && x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return str_cmp(x->node->name, y->node->name);
}

static enum verdict explain_write_evaluate_node(const struct explain *e, const struct node *n)
{
    if (e->fault.code != OK)
        return VERDICT_BAD_REQUEST;
    if (e->there.n > 0)
        return str_eq(n->name, e->there) ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
    return plan_evaluate(n, &e->evaluation);
}

/* Evaluates and sorts every node that exists on the API server. */
static enum errc explain_write_evaluate_all(struct explain *e, struct arena *a)
{
    const struct cache *c = e->cache;
    size_t cursor = 0;
    enum policy policy =
        policy_choose(e->request.node_policy, POLICY_UNSET, c->settings.node_policy);
    score_begin(&e->score, &e->evaluation, policy);
    e->entries = arena_array(a, c->nodes.n, sizeof(*e->entries));
    if (e->entries == NULL)
        return arena_fault(a);
    for (const struct node *n = cache_next_node(c, &cursor);
         n != NULL && !step_budget_is_spent(e->evaluation.step_budget);
         n = cache_next_node(c, &cursor)) {
        struct entry *entry = &e->entries[e->n];
        if (n->fault == NODE_ABSENT)
            continue;
        e->n++;
        evaluation_count_steps(&e->evaluation, 1);
        *entry = (struct entry){.node = n, .verdict = explain_write_evaluate_node(e, n)};
        e->counts[entry->verdict]++;
        if (entry->verdict == VERDICT_FITS && request_shares(&e->request) && n->n_cards > 0)
            entry->score = score_node(&e->score, n);
        step_budget_next_node(e->evaluation.step_budget);
    }
    if (e->n > 1)
        qsort(e->entries, e->n, sizeof(*e->entries), explain_write_by_score_and_name);
    return OK;
}

void explain_write_placement(struct jwrite *w, const struct grant *grants, uint32_t n)
{
    jwrite_array_at(w, STR("placement"));
    for (uint32_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        jwrite_object_begin(w);
        if (g->container != UINT16_MAX)
            jwrite_i64_at(w, STR("container"), g->container);
        jwrite_i64_at(w, STR("card"), g->card);
        jwrite_i64_at(w, STR("memory"), g->mem);
        if (g->cores > 0)
            jwrite_i64_at(w, STR("compute"), g->cores);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

static void explain_write_card(struct jwrite *w, const struct explain *e,
                               const struct reason_scene *scene, uint32_t card)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    enum verdict v = reason_evaluate(scene, &e->evaluation, card);
    reason_card(&text, scene, &e->evaluation, card, v, REASON_FOR_ALL);
    jwrite_object_begin(w);
    jwrite_i64_at(w, STR("card"), card);
    jwrite_bool_at(w, STR("fits"), v == VERDICT_FITS);
    jwrite_str_at(w, STR("verdict"), str_of(verdict_name(v)));
    jwrite_str_at(w, STR("reason"), buf_str(&text));
    jwrite_object_end(w);
}

static void explain_write_cards(struct jwrite *w, const struct explain *e, const struct node *n,
                                const struct reason_scene *scene)
{
    jwrite_array_at(w, STR("cards"));
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!n->cards[i].absent)
            explain_write_card(w, e, scene, i);
    }
    jwrite_array_end(w);
}

/* The pods for which room on the node is kept. The cards' reasons say how much. */
static void explain_write_kept(struct jwrite *w, const struct explain *e, const struct node *n)
{
    char bytes[512];
    jwrite_array_at(w, STR("kept"));
    for (const struct pod *p = n->kept_for; p != NULL; p = p->next) {
        struct buf name = BUF_ON(bytes);
        if (!pod_is_kept_before(p, &e->evaluation))
            continue;
        buf_printf(&name, "%.*s/%.*s", STR_ARG(p->namespace), STR_ARG(p->name));
        jwrite_str(w, buf_str(&name));
    }
    jwrite_array_end(w);
}

/* Each card, and the pods for which room is kept. */
static void explain_write_inside(struct jwrite *w, const struct explain *e, const struct node *n)
{
    struct reason_scene scene _uninitialized_;
    reason_scene_open(&scene, n, &e->evaluation);
    if (n->kept_for != NULL)
        explain_write_kept(w, e, n);
    if (request_shares(&e->request))
        explain_write_cards(w, e, n, &scene);
}

/* The best nodes of which explain says why one is better than the other. */
#define COMPARED 2

static void explain_write_cost(struct jwrite *w, const struct explain *e, const struct entry *entry,
                               const struct placement *there)
{
    struct cost_write cost = {.score = &e->score, .best = e->entries[0].node};
    bool compared = entry < e->entries + COMPARED;
    if (cost_write_applies(&e->score))
        cost_write(w, &cost, entry->node, compared ? there : NULL);
}

static void explain_write_where(struct jwrite *w, const struct explain *e,
                                const struct entry *entry)
{
    struct placement there _uninitialized_;
    if (e->held != NULL) {
        explain_write_placement(w, e->held->allocation->grants, e->held->allocation->n_grants);
    } else if (fit_place(entry->node, &e->evaluation, &there) == VERDICT_FITS) {
        explain_write_placement(w, there.grants, there.n);
        explain_write_cost(w, e, entry, &there);
    }
}

static struct str explain_write_reason_of(const struct explain *e, const struct entry *entry,
                                          struct buf *scratch)
{
    const struct node *n = entry->node;
    if (entry->verdict == VERDICT_BAD_REQUEST)
        return str_of(e->fault.text);
    if (entry->verdict == VERDICT_FITS && e->there.n > 0)
        return STR("the pod is there");
    if (entry->verdict == VERDICT_FITS && !request_wants(&e->request) && e->evaluation.devices == 0)
        return STR("the pod asks for no card");
    return reason_node(scratch, n->name, n, &e->evaluation, entry->verdict);
}

static void explain_write_node(struct jwrite *w, const struct explain *e, const struct entry *entry)
{
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    bool fits = entry->verdict == VERDICT_FITS;
    size_t before = w->out->n;
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("node"), entry->node->name);
    jwrite_bool_at(w, STR("fits"), fits);
    jwrite_str_at(w, STR("verdict"), str_of(verdict_name(entry->verdict)));
    jwrite_str_at(w, STR("reason"), explain_write_reason_of(e, entry, &scratch));
    if (fits)
        explain_write_where(w, e, entry);
    if (e->held == NULL && e->fault.code == OK && request_wants(&e->request))
        explain_write_inside(w, e, entry->node);
    jwrite_object_end(w);
    evaluation_count_steps(&e->evaluation, (w->out->n - before) / LIMIT_STEP_BYTES);
}

/* The pod's state in the cache; for a pod that is not in the cache, the state of its object. */
static struct str explain_write_state_of(const struct explain *e)
{
    static const char *const states[] = {[POD_PENDING] = "pending",
                                         [POD_RESERVED] = "reserved",
                                         [POD_CONFIRMED] = "confirmed",
                                         [POD_BOUND] = "bound"};
    if (e->evaluation.self != NULL)
        return str_of(states[e->evaluation.self->state]);
    if (pod_view_terminal(e->pod))
        return STR("ended");
    return pod_view_bound(e->pod) ? STR("bound") : STR("unknown");
}

/* The pod's condition PodScheduled, as the API server's object has it. */
static void explain_write_condition(struct jwrite *w, const struct condition_view *c)
{
    char text[STAMP_BYTES];
    jwrite_object_at(w, STR("condition"));
    jwrite_str_at(w, STR("status"), c->status);
    if (c->reason.n > 0)
        jwrite_str_at(w, STR("reason"), c->reason);
    if (c->message.n > 0)
        jwrite_str_at(w, STR("message"), c->message);
    if (c->since_s > 0)
        jwrite_str_at(w, STR("since"), stamp_print(c->since_s, text));
    jwrite_object_end(w);
}

static void explain_write_pod(struct jwrite *w, const struct explain *e)
{
    const struct pod *p = e->evaluation.self;
    struct str node = p == NULL ? e->pod->node : e->held != NULL ? p->node->name : STR_NULL;
    jwrite_object_at(w, STR("pod"));
    jwrite_str_at(w, STR("namespace"), e->pod->namespace);
    jwrite_str_at(w, STR("name"), e->pod->name);
    jwrite_str_at(w, STR("state"), explain_write_state_of(e));
    if (node.n > 0)
        jwrite_str_at(w, STR("node"), node);
    if (p != NULL && p->keeper != NULL)
        jwrite_str_at(w, STR("nominated"), p->keeper->name);
    if (e->held != NULL)
        explain_write_placement(w, e->held->allocation->grants, e->held->allocation->n_grants);
    if (e->pod->scheduled.status.n > 0)
        explain_write_condition(w, &e->pod->scheduled);
    jwrite_object_end(w);
}

static void explain_write_request(struct jwrite *w, const struct explain *e)
{
    const struct request *r = &e->request;
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    reason_request(&text, r, e->evaluation.devices);
    jwrite_object_at(w, STR("request"));
    jwrite_str_at(w, STR("text"), buf_str(&text));
    jwrite_i64_at(w, STR("memory"), r->mem);
    jwrite_i64_at(w, STR("compute"), r->cores);
    jwrite_i64_at(w, STR("cards"), request_shares(r) ? request_cards(r) : 0);
    jwrite_bool_at(w, STR("whole"), r->whole);
    if (r->isolated)
        jwrite_bool_at(w, STR("isolated"), true);
    jwrite_i64_at(w, STR("percent"), r->percent);
    jwrite_i64_at(w, STR("exclusive"), r->exclusive);
    if (e->evaluation.devices > 0)
        jwrite_i64_at(w, STR("devices"), e->evaluation.devices);
    jwrite_i64_at(w, STR("priority"), r->priority);
    jwrite_object_end(w);
}

void explain_write_refused(struct jwrite *w, const unsigned counts[static VERDICT_COUNT])
{
    jwrite_object_at(w, STR("refused"));
    for (unsigned v = VERDICT_FITS + 1; v < VERDICT_COUNT; v++) {
        if (counts[v] > 0)
            jwrite_u64_at(w, str_of(verdict_name((enum verdict)v)), counts[v]);
    }
    jwrite_object_end(w);
}

static void explain_write_counts(struct jwrite *w, const struct explain *e)
{
    jwrite_i64_at(w, STR("nodes"), (int64_t)e->n);
    jwrite_i64_at(w, STR("fit"), e->counts[VERDICT_FITS]);
    explain_write_refused(w, e->counts);
}

/* Of a bound pod that asks DRA alone, the claim counts already. */
static void explain_write_find(struct explain *e)
{
    const struct pod *self = e->evaluation.self;
    if (self != NULL && pod_holds(self)) {
        e->held = self;
        e->there = self->node->name;
    } else if (e->evaluation.devices > 0 && !request_wants(&e->request) && pod_view_bound(e->pod) &&
               !pod_view_terminal(e->pod)) {
        e->there = e->pod->node;
    }
}

enum errc explain_write(const struct cache *c, struct step_budget *step_budget,
                        const struct pod_view *pod, struct arena *a, struct buf *out,
                        struct err *reterr)
{
    struct jwrite w;
    struct explain e = {.cache = c, .pod = pod, .fault = ERR_INIT};
    enum errc code = request_read(pod, &e.request, &e.fault);
    e.fault.code = code;
    cache_evaluation(c, pod->uid, &e.request, &e.evaluation);
    /* Twice the nodes: a feasible node is evaluated a second time, for its cards. */
    step_budget_begin(step_budget, 2 * c->nodes.n);
    e.evaluation.step_budget = step_budget;
    if (e.evaluation.account.entry != NULL)
        e.evaluation.memo = arena_alloc(a, sizeof(*e.evaluation.memo));
    explain_write_find(&e);
    code = explain_write_evaluate_all(&e, a);
    if (code != OK)
        return err_set(reterr, code, "cardpack is out of memory");
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    explain_write_pod(&w, &e);
    explain_write_request(&w, &e);
    jwrite_str_at(&w, STR("error"), str_of(e.fault.text));
    explain_write_counts(&w, &e);
    jwrite_array_at(&w, STR("verdicts"));
    for (size_t i = 0; i < e.n && !step_budget_is_spent(step_budget); i++) {
        explain_write_node(&w, &e, &e.entries[i]);
        step_budget_next_node(step_budget);
    }
    jwrite_array_end(&w);
    jwrite_object_end(&w);
    if (step_budget_is_spent(step_budget))
        return step_budget_fail(reterr);
    return buf_failed(out) ? err_set(reterr, buf_fault(out), "no room for the answer") : OK;
}
