/*
 * The prioritize verb: 10 for the best node, 9 for the next best, and so on; kube-scheduler adds
 * that to its own scores. The answer has ranks, and not proportional scores, because
 * kube-scheduler's own scores differ by tens. Proportional scores would differ by fractions, and a
 * node with one slice more would seldom win.
 *
 * kube-scheduler ignores an answer with an error without any log line. So the answer is always a
 * list, and errors go to the log.
 */
#include "base/log.h"
#include "core/place/rank.h"
#include "daemon/service.h"
#include "report/evaluate.h"

static void prioritize_respond_nothing(struct http_request *r, const char *why)
{
    log_warn("no priorities", kv_str("peer", r->peer), kv_cstr("error", why));
    r->outcome = OUTCOME_ERROR;
    extender_write_no_priorities(r->answer);
    http_request_respond(r, 200, "application/json");
}

/* Converts the nodes' scores into ranks of 0 to 10. */
static void prioritize_rank_all(const struct candidates *j, size_t n, unsigned char *ret)
{
    struct rank_levels levels = {.n = 0};
    const uint64_t *scores = j->scores;
    size_t i = 0;
    while (i < n && scores[i] == SCORE_NONE)
        i++;
    /* A node without a score counts as the one before it: which nodes have one is not predictable.
     */
    for (uint64_t score = SCORE_NONE; i < n; i++) {
        score = scores[i] == SCORE_NONE ? score : scores[i];
        rank_levels_add(&levels, score);
    }
    for (i = 0; i < n; i++)
        ret[i] = (unsigned char)rank_level(&levels, scores[i]);
}

void prioritize_handle(struct service *s, struct http_request *r)
{
    struct filter_args args;
    struct candidates j;
    struct str missing;
    struct err e = ERR_INIT;
    if (extender_read_filter(r->body, r->arena, &args, &e) != OK) {
        prioritize_respond_nothing(r, e.text);
        return;
    }
    unsigned char *scores = arena_alloc(r->arena, args.n); /* all 0 */
    if (scores == NULL) {
        prioritize_respond_nothing(r, "out of memory");
        return;
    }
    if (evaluate(&s->cache, &s->evaluation_memo, &s->step_budget, &args, r->arena, true, &j, &e) !=
        OK) {
        prioritize_respond_nothing(r, e.text);
        return;
    }
    bool ready = service_ready(s, &missing);
    if (ready)
        prioritize_rank_all(&j, args.n, scores);
    r->outcome = ready ? OUTCOME_OK : OUTCOME_ERROR;
    log_debug("prioritized", kv_str("namespace", args.pod.namespace), kv_str("pod", args.pod.name),
              kv_uint("nodes", args.n), kv_bool("ready", ready));
    extender_write_priorities(r->answer, &args, scores);
    http_request_respond(r, 200, "application/json");
}
