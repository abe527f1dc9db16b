/*
 * The filter verb: evaluates the request's nodes from the cache and reserves nothing; bind
 * reserves. daemon.c passes each result on to the metrics, the page and the evictor. While victims
 * of the pod are ending, filter answers the evictor's error instead.
 *
 * Every node that is not feasible gets a reason, because kube-scheduler since 1.31 takes a node
 * without one for unresolvable, where preemption cannot help. Nodes that the shortlist leaves out
 * get none: they are feasible, and kube-scheduler has other nodes to continue with. It scores each
 * node of the answer, and that costs it more time than the whole filter.
 */
#include "base/log.h"
#include "core/place/fit.h"
#include "core/place/rank.h"
#include "daemon/service.h"
#include "objects/kube.h"
#include "report/evaluate.h"
#include "report/shortfall_write.h"

#include <limits.h>

#define OUT_OF_MEMORY "cardpack is out of memory"

/*
 * Reasons that name their node, for at most this many nodes: kube-scheduler can't count them
 * together, and an event would have no bytes left for the reasons of the other nodes.
 */
#define NODES_NAMED 3

/*
 * A quota's refusal and its text. The text is the same for most nodes, and making it takes longer
 * than evaluating a node.
 */
struct written {
    struct quota_refusal refusal;
    struct str text; /* in the arena of the HTTP request */
};

struct filter {
    const struct cache *cache;
    struct arena *arena;
    const struct filter_args *args;
    struct candidates candidates;
    unsigned char *offers;      /* enum offer of each candidate */
    const unsigned char *kinds; /* of each candidate; see filter_kinds */
    struct buf scratch;         /* text of the last reason */
    char scratch_bytes[512];
    struct written written[8];
    size_t n_written;
    struct str
        *refusals; /* texts of quota refusals by the index of evaluate_first; NULL: none yet */
    struct str texts[VERDICT_COUNT]; /* the reasons that all nodes of a verdict have; absent: not
                                        written yet */
};

static struct str filter_tell_quota(struct filter *f, const struct quota_refusal *refusal)
{
    for (size_t i = 0; i < f->n_written; i++) {
        if (quota_refusal_equal(&f->written[i].refusal, refusal))
            return f->written[i].text;
    }
    buf_clear(&f->scratch, SIZE_MAX);
    quota_refusal_write(refusal, &f->scratch);
    if (f->n_written == COUNT_OF(f->written))
        return buf_str(&f->scratch);
    struct str text = arena_dup(f->arena, buf_str(&f->scratch));
    if (text.p == NULL)
        return buf_str(&f->scratch);
    f->written[f->n_written++] = (struct written){*refusal, text};
    return text;
}

/*
 * Finds the reason once for each node that is evaluated separately: that takes as long as the
 * evaluation. Absent: no quota refuses the node.
 */
static struct str filter_refusal_of(struct filter *f, const struct node *n, enum verdict v,
                                    size_t i)
{
    struct quota_refusal refusal;
    size_t first = evaluate_first(&f->candidates, n, i);
    if (f->refusals == NULL)
        f->refusals = arena_array(f->arena, f->args->n, sizeof(*f->refusals));
    if (f->refusals != NULL && f->refusals[first].p != NULL)
        return f->refusals[first];
    if (!fit_refusal(n, &f->candidates.evaluation, v, &refusal))
        return STR_NULL;
    struct str text = filter_tell_quota(f, &refusal);
    if (f->refusals != NULL && text.p == f->scratch.p)
        text = arena_dup(f->arena, text);
    if (f->refusals != NULL)
        f->refusals[first] = text;
    return text;
}

/* The reason that all nodes with this verdict have, written for the first of them. */
static struct str filter_tell(struct filter *f, enum verdict v)
{
    const struct candidates *j = &f->candidates;
    if (f->texts[v].p != NULL)
        return f->texts[v];
    buf_clear(&f->scratch, SIZE_MAX);
    shortfall_write(&f->scratch, v, &j->evaluation, j->shortfalls);
    f->texts[v] = arena_dup(f->arena, buf_str(&f->scratch));
    return f->texts[v].p != NULL ? f->texts[v] : buf_str(&f->scratch);
}

/* Whether the reason is about the node alone, and not about the request. */
static bool filter_is_of_node(enum verdict v)
{
    return v == VERDICT_UNKNOWN_NODE || v == VERDICT_NOT_SHARED || v == VERDICT_BAD_CARDS;
}

/* The reason of a quota that the memo does not have. Absent: no quota refuses the node. */
static struct str filter_reason_of_quota(struct filter *f, enum verdict v, size_t i)
{
    const struct node *n = cache_node(f->cache, f->args->names[i]);
    return n == NULL ? STR_NULL : filter_refusal_of(f, n, v, i);
}

static struct str filter_reason_of(void *ctx, size_t i, bool *ret_common)
{
    struct filter *f = ctx;
    const struct candidates *j = &f->candidates;
    enum verdict v = (enum verdict)j->verdicts[i];
    struct str name = f->args->names[i];
    struct str text = evaluate_refusal(j, i);
    *ret_common = v == VERDICT_BAD_REQUEST || text.p != NULL;
    if (*ret_common)
        return text.p != NULL ? text : str_of(j->bad_request.text);
    if (v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED)
        text = filter_reason_of_quota(f, v, i);
    if (text.p != NULL)
        return text;
    if (filter_is_of_node(v) && j->counts[v] <= NODES_NAMED)
        return fit_reason(v == VERDICT_BAD_CARDS ? cache_node(f->cache, name) : NULL, v, name,
                          &f->scratch);
    *ret_common = true;
    return filter_tell(f, v);
}

/* Numbers by which filter_reason_of has common texts. NULL: no memory. */
static const unsigned char *filter_kinds(const struct filter *f)
{
    const struct candidates *j = &f->candidates;
    unsigned char *kinds = NULL;
    static_assert(VERDICT_COUNT + EVALUATION_OUTCOMES_MAX <= UCHAR_MAX, "numbers fit into a byte");
    static_assert(VERDICT_FITS == 0, "the kind of candidates that are not refused");
    if (j->refusals == NULL)
        return j->verdicts;
    kinds = arena_alloc(f->arena, f->args->n);
    for (size_t i = 0; kinds != NULL && i < f->args->n; i++)
        kinds[i] =
            (unsigned char)(j->refusals[i] == 0 ? j->verdicts[i] : VERDICT_COUNT + j->refusals[i]);
    return kinds;
}

/* Logs how many candidates got each verdict. */
static void filter_report(const struct filter *f)
{
    const unsigned *counts = f->candidates.counts;
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    if (counts[VERDICT_FITS] == 0)
        verdict_counts(&text, counts);
    if (counts[VERDICT_FITS] == 0)
        log_info("pod fits on no node", kv_str("namespace", f->args->pod.namespace),
                 kv_str("pod", f->args->pod.name), kv_int("mem", f->candidates.request.mem),
                 kv_uint("nodes", f->args->n), kv_str("because", buf_str(&text)),
                 kv_cstr("error", f->candidates.bad_request.text));
    else
        log_debug("filtered", kv_str("namespace", f->args->pod.namespace),
                  kv_str("pod", f->args->pod.name), kv_int("mem", f->candidates.request.mem),
                  kv_uint("nodes", f->args->n), kv_uint("fit", counts[VERDICT_FITS]));
}

static enum offer filter_offer_for(enum verdict v)
{
    if (v == VERDICT_FITS)
        return OFFER_FITS;
    return verdict_unresolvable(v) ? OFFER_UNRESOLVABLE : OFFER_REFUSED;
}

/* fits: what feasible nodes get. */
static void filter_offer_all(struct filter *f, enum offer fits)
{
    const unsigned char *verdicts = f->candidates.verdicts;
    unsigned char *offers = f->offers;
    size_t n = f->args->n;
    unsigned char offer_of[VERDICT_COUNT];
    if (f->candidates.counts[VERDICT_FITS] == n) {
        memset(offers, (int)fits, n);
        return;
    }
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        offer_of[v] = (unsigned char)filter_offer_for((enum verdict)v);
    offer_of[VERDICT_FITS] = (unsigned char)fits;
    for (size_t i = 0; i < n; i++)
        offers[i] = offer_of[verdicts[i]];
}

static void filter_rank(const struct filter *f, struct rank *best)
{
    const struct filter_args *args = f->args;
    for (size_t i = 0; i < args->n; i++) {
        uint64_t score = f->candidates.scores[i];
        if (score != SCORE_NONE && !rank_is_below(best, score, args->names[i]))
            rank_offer(best, (struct rank_entry){score, args->names[i], i});
    }
}

/*
 * Offers the `max` best of the feasible nodes, all of which are left out before. A node that is
 * named twice takes two places: kube-scheduler names each node once.
 */
static enum errc filter_shorten(struct filter *f, struct arena *a, size_t max)
{
    struct rank best = {.max = MIN_OF(max, f->args->n)};
    best.entries = arena_array(a, best.max, sizeof(*best.entries));
    if (best.entries == NULL)
        return arena_fault(a);
    filter_rank(f, &best);
    for (size_t i = 0; i < best.n; i++)
        f->offers[best.entries[i].i] = OFFER_FITS;
    return OK;
}

/* Whether the request has whole nodes, and none of them exists: cluster-autoscaler asks about nodes
 * that it may add. They are judged by the request. */
static bool filter_is_of_templates(const struct service *s, const struct filter_args *args)
{
    for (size_t i = 0; !args->by_name && i < args->n; i++) {
        if (cache_node(&s->cache, args->names[i]) != NULL)
            return false;
    }
    return !args->by_name && args->n > 0;
}

/* A node that can't be read stays unknown. */
static enum errc filter_read_templates(struct cache *c, const struct filter_args *args,
                                       struct arena *a, struct err *reterr)
{
    for (size_t i = 0; i < args->n; i++) {
        struct jread r;
        struct node_view v;
        jread_init(&r, args->objects[i], a);
        kube_read_node(&r, a, &v);
        if (jread_finish(&r, NULL) == OK && cache_template_add(c, &v) != OK)
            return err_set(reterr, ERR_NOMEM, OUT_OF_MEMORY);
    }
    return arena_failed(a) ? err_set(reterr, arena_fault(a), OUT_OF_MEMORY) : OK;
}

static enum errc filter_decide(struct service *s, struct filter *f, struct arena *a,
                               struct err *reterr)
{
    bool exist = f->cache == &s->cache;
    bool shorter = exist && s->shortlist > 0 && f->args->n > s->shortlist;
    enum errc code = evaluate(f->cache, exist ? &s->evaluation_memo : NULL, &s->step_budget,
                              f->args, a, shorter, &f->candidates, reterr);
    if (code != OK)
        return code;
    f->offers = arena_alloc(a, f->args->n);
    f->kinds = filter_kinds(f);
    if (f->offers == NULL || f->kinds == NULL)
        return err_set(reterr, arena_fault(a), OUT_OF_MEMORY);
    shorter = shorter && request_shares(&f->candidates.request); /* else scores do not differ */
    filter_offer_all(f, shorter ? OFFER_LEFT_OUT : OFFER_FITS);
    if (!shorter || filter_shorten(f, a, s->shortlist) == OK)
        return OK;
    return err_set(reterr, arena_fault(a), OUT_OF_MEMORY);
}

static void filter_fail(struct http_request *r, enum request_outcome outcome, struct str error)
{
    r->outcome = (unsigned char)outcome;
    extender_write_filter_error(r->answer, error);
    http_request_respond(r, 200, "application/json");
}

/* Judges the nodes of f->cache, and writes the answer. */
static void filter_answer(struct service *s, struct filter *f, struct http_request *r)
{
    const struct filter_args *args = f->args;
    struct err e = ERR_INIT;
    bool exist = f->cache == &s->cache;
    if (filter_decide(s, f, r->arena, &e) != OK) {
        log_warn("a filter request is not answered", kv_str("namespace", args->pod.namespace),
                 kv_str("pod", args->pod.name), kv_uint("nodes", args->n),
                 kv_cstr("error", e.text));
        filter_fail(r, OUTCOME_ERROR, str_of(e.text));
        return;
    }
    advise_pod(&s->advise, s->events, &args->pod, &f->candidates.bad_request);
    r->outcome = f->candidates.counts[VERDICT_FITS] > 0 ? OUTCOME_OK : OUTCOME_REFUSED;
    filter_report(f);
    bool followed = exist && s->filtered != NULL;
    struct str later = followed ? s->filtered(s, args, &f->candidates) : STR_NULL;
    if (later.n > 0) {
        filter_fail(r, OUTCOME_REFUSED, later);
        return;
    }
    extender_write_filter(r->answer, args, f->offers, f->kinds, filter_reason_of, f);
    http_request_respond(r, 200, "application/json");
}

static void filter_answer_templates(struct service *s, struct filter *f, struct http_request *r)
{
    struct cache templates _uninitialized_;
    struct err e = ERR_INIT;
    cache_template_init(&templates, &s->cache);
    f->cache = &templates;
    if (filter_read_templates(&templates, f->args, r->arena, &e) == OK)
        filter_answer(s, f, r);
    else
        filter_fail(r, OUTCOME_ERROR, str_of(e.text));
    f->cache = &s->cache;
    cache_template_done(&templates);
}

void filter_handle(struct service *s, struct http_request *r)
{
    struct filter_args args;
    struct str missing;
    struct err e = ERR_INIT;
    if (extender_read_filter(r->body, r->arena, &args, &e) != OK) {
        log_warn("bad filter request", kv_str("peer", r->peer), kv_cstr("error", e.text));
        filter_fail(r, OUTCOME_ERROR, str_of(e.text));
        return;
    }
    if (!service_ready(s, &missing)) {
        (void)err_set(&e, ERR_UNAVAILABLE, "cardpack is not ready: %.*s", STR_ARG(missing));
        filter_fail(r, OUTCOME_ERROR, str_of(e.text));
        return;
    }
    struct filter f = {.cache = &s->cache, .arena = r->arena, .args = &args};
    f.scratch = BUF_ON(f.scratch_bytes);
    if (filter_is_of_templates(s, &args))
        filter_answer_templates(s, &f, r);
    else
        filter_answer(s, &f, r);
}
