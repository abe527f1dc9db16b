/* Writes filter's reasons: a sentence for the verdict, then the figures of the request and of the
 * nodes. */
#include "report/shortfall_write.h"

#include "core/dialect/gpushare.h"
#include "core/state/pod_allocation.h"
#include "report/reason.h"

/* Longest name or list from an annotation that a reason quotes, in bytes. */
#define SHOWN ((size_t)40)

#define FIGURES_BYTES ((size_t)300)

static void shortfall_write_quoted(struct buf *out, struct str s)
{
    struct str head = str_head(s, SHOWN);
    buf_printf(out, "\"%.*s%s\"", STR_ARG(head), head.n < s.n ? "..." : "");
}

/* "asks 12", "asks 8 on each of 2 cards", "asks 11 by 2 containers, 6 by the largest" */
static void shortfall_write_asked(struct buf *out, const struct evaluation *e)
{
    const struct request *r = e->request;
    int64_t most = 0;
    buf_put(out, STR("asks "));
    reason_request(out, r, e->devices);
    if (!r->whole && r->percent > 0 && request_share(r).mem > 1 && !request_by_container(r))
        buf_printf(out, " and at least %lld", (long long)request_share(r).mem);
    if (!request_may_part(r))
        return;
    for (uint32_t i = 0; i < r->n_demands; i++)
        most = MAX_OF(most, r->demands[i].mem);
    buf_printf(out, " by %u containers, %lld by the largest", request_lasting(r), (long long)most);
}

/* How many cards of the best node are feasible, if the pod needs several. */
static void shortfall_write_fit(struct buf *out, const struct request *r, const struct shortfall *l)
{
    if (request_cards(r) > 1 && l->fit > 0)
        buf_printf(out, ", at most %u of a node's cards fit%s", l->fit, l->fit == 1 ? "s" : "");
}

static void shortfall_write_memory(struct buf *out, const struct evaluation *e,
                                   const struct shortfall *l)
{
    const struct request *r = e->request;
    const char *of = request_cards(r) > 1 && l->fit > 0 ? " of the others" : "";
    shortfall_write_asked(out, e);
    shortfall_write_fit(out, r, l);
    if (!r->whole) { /* without printf: most requests need this text */
        buf_put(out, STR(", largest free"));
        buf_put(out, str_of(of));
        buf_putc(out, ' ');
        buf_put_i64(out, l->free);
    }
    buf_put(out, STR(", largest card "));
    buf_put_i64(out, l->largest);
}

static void shortfall_write_cores(struct buf *out, const struct evaluation *e,
                                  const struct shortfall *l)
{
    const struct request *r = e->request;
    const char *of = request_cards(r) > 1 && l->fit > 0 ? " of the others" : "";
    shortfall_write_asked(out, e);
    shortfall_write_fit(out, r, l);
    buf_printf(out, ", largest free%s %u percent", of, l->cores);
}

static void shortfall_write_unusable(struct buf *out, const struct shortfall *l)
{
    const struct {
        uint64_t n;
        const char *what;
    } kinds[] = {{l->unhealthy, "unhealthy"}, {l->cordoned, "cordoned"}, {l->aside, "set aside"}};

    const char *between = "";
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (kinds[i].n == 0)
            continue;
        buf_printf(out, "%s%llu %s", between, (unsigned long long)kinds[i].n, kinds[i].what);
        between = ", ";
    }
}

static void shortfall_write_models(struct buf *out, const struct request *r,
                                   const struct shortfall *l)
{
    buf_put(out, STR("asks "));
    shortfall_write_quoted(out, r->models);
    for (uint32_t i = 0; i < l->n_models; i++) {
        buf_put(out, i == 0 ? STR(", there are ") : STR(", "));
        shortfall_write_quoted(out, l->models[i]);
    }
    if (l->more_models)
        buf_put(out, STR(", ..."));
    if (l->unnamed > 0)
        buf_printf(out, ", %llu with no known model", (unsigned long long)l->unnamed);
}

static void shortfall_write_uuids(struct buf *out, const struct request *r,
                                  const struct shortfall *l)
{
    buf_put(out, STR("asks "));
    shortfall_write_quoted(out, r->uuids);
    if (l->named > 0)
        buf_printf(out, ", %llu with another uuid", (unsigned long long)l->named);
    if (l->unnamed > 0)
        buf_printf(out, ", %llu with no known uuid", (unsigned long long)l->unnamed);
}

static void shortfall_write_shared(struct buf *out, const struct evaluation *e,
                                   const struct shortfall *l)
{
    if (request_shares(e->request) && e->request->exclusive > 0) {
        buf_printf(out, "asks both, and the node has no %.*s",
                   STR_ARG(CARDPACK_ANNOTATION_EXCLUSIVE));
        return;
    }
    shortfall_write_asked(out, e);
    buf_printf(out, ", %llu pod%s share%s", (unsigned long long)l->pods, l->pods == 1 ? "" : "s",
               l->pods == 1 ? "s" : "");
}

static void shortfall_write_kept(struct buf *out, const struct evaluation *e,
                                 const struct shortfall *l)
{
    shortfall_write_asked(out, e);
    buf_printf(out, " with priority %d, kept for %llu pod%s", e->request->priority,
               (unsigned long long)l->pods, l->pods == 1 ? "" : "s");
}

/* Verdicts about other pods on the cards. */
static void shortfall_write_beside(struct buf *out, enum verdict v, const struct evaluation *e,
                                   const struct shortfall *l)
{
    if (v == VERDICT_AFFINITY) {
        buf_put(out, STR("group "));
        shortfall_write_quoted(out, e->request->affinity);
    } else if (v == VERDICT_ANTI_AFFINITY) {
        buf_put(out, STR("group "));
        shortfall_write_quoted(out, e->request->anti_affinity);
        buf_printf(out, " is on %llu device%s", (unsigned long long)l->foes,
                   l->foes == 1 ? "" : "s");
    } else if (v == VERDICT_HELD_WHOLE) {
        shortfall_write_asked(out, e);
        buf_printf(out, ", %llu %s held whole", (unsigned long long)l->held,
                   l->held == 1 ? "is" : "are");
    } else if (v == VERDICT_CLAIMED) {
        buf_printf(out, "%llu held", (unsigned long long)l->claimed);
    } else if (v == VERDICT_POD_LIMIT) {
        buf_printf(out, "the limit is %u", l->max_pods);
    } else if (v == VERDICT_EXCLUSIVE) {
        shortfall_write_asked(out, e);
        buf_printf(out, ", they hold %llu", (unsigned long long)l->exclusive);
    } else if (v == VERDICT_HELD_ELSEWHERE && e->self != NULL && e->self->node != NULL) {
        buf_put(out, STR("on node "));
        shortfall_write_quoted(out, e->self->node->name);
    }
}

/* Verdicts about how many cards a node has. */
static void shortfall_write_count(struct buf *out, enum verdict v, const struct request *r,
                                  const struct shortfall *l)
{
    buf_printf(out, "asks %u", request_cards(r));
    if (v == VERDICT_TOO_FEW)
        buf_printf(out, ", at most %u on a node", l->could);
}

static void shortfall_write_figures(struct buf *out, enum verdict v, const struct evaluation *e,
                                    const struct shortfall *l)
{
    const struct request *r = e->request;
    if (v == VERDICT_TOO_LARGE || v == VERDICT_NO_CARD_FREE) {
        shortfall_write_memory(out, e, l);
    } else if (v == VERDICT_NO_CORES) {
        shortfall_write_cores(out, e, l);
    } else if (v == VERDICT_NODE_FULL) {
        shortfall_write_asked(out, e);
        buf_printf(out, ", most free on a node %lld", (long long)l->left);
    } else if (v == VERDICT_TOO_FEW || v == VERDICT_NOT_EMPTY) {
        shortfall_write_count(out, v, r, l);
    } else if (v == VERDICT_UNUSABLE) {
        shortfall_write_unusable(out, l);
    } else if (v == VERDICT_MODEL) {
        shortfall_write_models(out, r, l);
    } else if (v == VERDICT_UUID) {
        shortfall_write_uuids(out, r, l);
    } else if (v == VERDICT_SHARED) {
        shortfall_write_shared(out, e, l);
    } else if (v == VERDICT_KEPT) {
        shortfall_write_kept(out, e, l);
    } else if (v == VERDICT_SWAP || v == VERDICT_LOCKED) {
        shortfall_write_asked(out, e);
    } else {
        shortfall_write_beside(out, v, e, l);
    }
}

/* Appends the verdict's sentence; without the node's name where it has one. */
static void shortfall_write_sentence(struct buf *out, enum verdict v, enum dialect d)
{
    char bytes[256];
    struct buf text = BUF_ON(bytes);
    if (v == VERDICT_UNKNOWN_NODE)
        buf_put(out, STR("node not found"));
    else if (v == VERDICT_NOT_SHARED)
        buf_put(out, STR("The node is not for GPU share, need skip"));
    else
        buf_put(out, verdict_reason_in(v, d, STR(""), &text));
}

bool shortfall_is_of_few(enum verdict v, const struct request *r, uint32_t fit)
{
    bool of_all = v == VERDICT_HELD_WHOLE || v == VERDICT_NOT_EMPTY || v == VERDICT_POD_LIMIT ||
                  v == VERDICT_ANTI_AFFINITY;
    return of_all && fit > 0 && fit < request_cards(r);
}

void shortfall_write(struct buf *out, enum verdict v, const struct evaluation *e,
                     const struct shortfall *sums)
{
    const struct request *r = e->request;
    struct shortfall l = {.free = 0};
    if (sums != NULL)
        l = shortfall_of_sentence(sums, v);
    char figures_bytes[FIGURES_BYTES];
    struct buf figures = BUF_ON(figures_bytes);
    bool few = shortfall_is_of_few(v, r, l.fit);
    if (few)
        buf_printf(out, SHORTFALL_FEW ": at most %u free of %u asked", l.fit, request_cards(r));
    else
        shortfall_write_sentence(out, v, r->dialect);
    if (few && v == VERDICT_HELD_WHOLE)
        buf_printf(out, ", %llu held whole", (unsigned long long)l.held);
    else if (!few && (sums != NULL || v == VERDICT_HELD_ELSEWHERE))
        shortfall_write_figures(&figures, v, e, &l);
    if (figures.n > 0 && !buf_failed(&figures)) {
        buf_put(out, STR(": "));
        buf_put(out, buf_str(&figures));
    }
}
