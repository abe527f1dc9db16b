/*
 * The preempt verb: on which of kube-scheduler's candidates room can be made for a pod, and which
 * pods must go there. Pure: it only reads the cache. kube-scheduler evicts the victims and
 * nominates the pod, and from then on filter keeps the room for it.
 *
 * kube-scheduler's own victims stay in the answer in any case: it needs them gone for resources
 * that cardpack does not know. A node without any victim is left out, because every kube-scheduler
 * so far fails on an empty list of pods. A node that is unknown, or where no eviction helps, is
 * left out too. kube-scheduler gives up all its preemptions if it gets no answer, so an error goes
 * to the log, and the answer has no nodes.
 */
#include "extender/extender_preempt.h"

#include "base/log.h"
#include "core/limit.h"
#include "core/preempt/victims.h"
#include "daemon/service.h"
#include "extender/extender.h"

struct preempt {
    struct service *service;
    struct arena *arena;
    struct preempt_args args;
    struct request request;
    struct evaluation evaluation;
    unsigned steps; /* steps left for the nodes that are not decided yet */
    unsigned part;  /* steps for the present node; afterwards what it left of them */
    unsigned refused[VERDICT_COUNT]; /* nodes without a solution, by verdict */
    unsigned idle;                   /* nodes without any victim */
    unsigned undecided;              /* nodes that are left out because of LIMIT_REQUEST_STEPS */
    struct buf story;                /* the victims by node, for the log; may be cut */
    char story_bytes[1024];
};

static void preempt_tell(struct preempt *p, const struct node_victims *asked,
                         const struct victims *chosen)
{
    buf_printf(&p->story, "%s%.*s", p->story.n == 0 ? "" : "; ", STR_ARG(asked->node));
    if (chosen->card >= 0)
        buf_printf(&p->story, " card %d", chosen->card);
    buf_printf(&p->story, ": %zu asked", asked->n);
    for (uint32_t i = 0; i < chosen->cost.n; i++)
        buf_printf(&p->story, " + %.*s/%.*s", STR_ARG(chosen->pods[i]->namespace),
                   STR_ARG(chosen->pods[i]->name));
    if (chosen->cost.violations > 0)
        buf_printf(&p->story, " against %u budgets", chosen->cost.violations);
}

/*
 * Chooses victims beyond those of kube-scheduler. The cache must know the latter on this node;
 * otherwise they count for nothing here, but stay in the answer.
 */
static enum errc preempt_choose(struct preempt *p, const struct node_victims *asked,
                                struct victims *ret)
{
    const struct cache *cache = &p->service->cache;
    struct victims_question q = {.node = cache_node(cache, asked->node),
                                 .evaluation = &p->evaluation,
                                 .budgets = &p->service->budgets,
                                 .steps = &p->part};
    const struct pod **given = arena_array(p->arena, asked->n, sizeof(struct pod *));
    if (given == NULL)
        return arena_fault(p->arena);
    evaluation_count_steps(&p->evaluation, 1 + asked->n);
    for (size_t i = 0; i < asked->n; i++) {
        const struct pod *victim = cache_pod(cache, asked->uids[i]);
        if (victim != NULL && q.node != NULL && victim->node == q.node)
            given[q.n_given++] = victim;
    }
    q.given = given;
    return victims_choose(&q, p->arena, ret);
}

/* Writes all victims of the node into `node`; none: the node is left out. */
static enum errc preempt_decide_node(struct preempt *p, struct node_victims *node)
{
    struct victims chosen = {.card = -1};
    enum errc code = preempt_choose(p, node, &chosen);
    if (code != OK)
        return code;
    if (chosen.verdict != VERDICT_FITS) {
        p->refused[chosen.verdict]++;
        node->n = 0;
        return OK;
    }
    struct str *uids = arena_array(p->arena, node->n + chosen.cost.n, sizeof(*uids));
    if (uids == NULL)
        return arena_fault(p->arena);
    for (size_t i = 0; i < node->n; i++)
        uids[i] = node->uids[i];
    for (uint32_t i = 0; i < chosen.cost.n; i++)
        uids[node->n + i] = chosen.pods[i]->uid;
    if (node->n + chosen.cost.n == 0)
        p->idle++;
    else
        preempt_tell(p, node, &chosen);
    node->uids = uids;
    node->n += chosen.cost.n;
    node->num_pdb_violations += chosen.cost.violations;
    return OK;
}

static void preempt_report(const struct preempt *p)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    verdict_counts(&text, p->refused);
    if (p->idle > 0)
        buf_printf(&text, "%sno eviction is needed: %u", text.n == 0 ? "" : ", ", p->idle);
    if (p->undecided > 0)
        buf_printf(&text, "%snot searched to the end: %u", text.n == 0 ? "" : ", ", p->undecided);
    log_info("preemption", kv_str("namespace", p->args.pod.namespace),
             kv_str("pod", p->args.pod.name), kv_int("priority", p->request.priority),
             kv_int("mem", p->request.mem), kv_uint("nodes", p->args.n),
             kv_str("victims", buf_str(&p->story)), kv_str("left_out", buf_str(&text)));
}

/* Why no pod may be evicted for this pod; NULL: evictions are allowed. */
static const char *preempt_refuse(struct preempt *p, struct err *e)
{
    struct str missing;
    if (!service_ready(p->service, &missing)) {
        (void)err_set(e, ERR_UNAVAILABLE, "cardpack is not ready: %.*s", STR_ARG(missing));
        return e->text;
    }
    if (request_read(&p->args.pod, &p->request, e) != OK)
        return e->text;
    cache_evaluation(&p->service->cache, p->args.pod.uid, &p->request, &p->evaluation);
    if (p->evaluation.self != NULL && pod_holds(p->evaluation.self))
        return "it holds its cards already";
    return p->request.never_preempts ? "its preemptionPolicy is Never" : NULL;
}

/* OUTCOME_OK if at least one node has victims. */
static enum request_outcome preempt_outcome_of(const struct preempt *p, const char *why)
{
    if (why != NULL)
        return OUTCOME_ERROR;
    for (size_t i = 0; i < p->args.n; i++) {
        if (p->args.nodes[i].n > 0)
            return OUTCOME_OK;
    }
    return OUTCOME_REFUSED;
}

static const char *preempt_decide(struct preempt *p, struct err *e)
{
    const char *why = preempt_refuse(p, e);
    step_budget_begin(&p->service->step_budget, p->args.n);
    p->evaluation.step_budget = &p->service->step_budget;
    if (why != NULL || !request_wants(&p->request))
        return why;
    for (size_t i = 0; i < p->args.n; i++) {
        /* Steps that one node does not use are left for the next ones. */
        unsigned part = p->steps / (unsigned)(p->args.n - i);
        p->part = part;
        if (step_budget_is_spent(p->evaluation.step_budget)) {
            p->args.nodes[i].n = 0;
            p->undecided++;
            continue;
        }
        if (preempt_decide_node(p, &p->args.nodes[i]) != OK)
            return "cardpack is out of memory";
        p->steps -= part - p->part;
        step_budget_next_node(p->evaluation.step_budget);
    }
    preempt_report(p);
    return NULL;
}

void preempt_handle(struct service *s, struct http_request *r)
{
    struct preempt p = {.service = s, .arena = r->arena, .steps = LIMIT_VICTIM_STEPS};
    struct err e = ERR_INIT;
    p.story = BUF_ON(p.story_bytes);
    const char *why = extender_preempt_read(r->body, r->arena, &p.args, &e) != OK
                          ? e.text
                          : preempt_decide(&p, &e);
    if (why != NULL)
        log_warn("no pod is preempted", kv_str("peer", r->peer),
                 kv_str("namespace", p.args.pod.namespace), kv_str("pod", p.args.pod.name),
                 kv_cstr("error", why));
    r->outcome = (unsigned char)preempt_outcome_of(&p, why);
    extender_preempt_write(r->answer, p.args.nodes, why == NULL ? p.args.n : 0);
    http_request_respond(r, 200, "application/json");
}
