/* The reference policy BestFit. */
#include "sim/bestfit.h"

/* The largest node of the trace. */
#define CPU_MAX   128000.0
#define CARDS_MAX 8000.0

/* Keeps nodes beyond that size, whose number is negative, above SCORE_NONE. */
#define ABOVE_NONE INT64_C(1000000)

uint64_t bestfit_score(const struct node *n, struct host left, const struct sim_shape *s)
{
    double cpu = (double)(left.cpu - s->request.host.cpu) / CPU_MAX;
    double cards = (double)(n->total - n->used - s->mem) / CARDS_MAX;
    int64_t score = (int64_t)(100.0 * (1.0 - 0.5 * cpu - 0.5 * cards));
    return (uint64_t)(MAX_OF(score, -ABOVE_NONE + 1) + ABOVE_NONE);
}
