/*
 * Which cards a pod holds, for which of its containers, and what that comes to on each card.
 *
 * Init containers run one after another on the cards of the pod's first container that lasts, as
 * the kubelet gives devices of init containers on to those that follow; so on a card they cost what
 * the largest of them has beside the sidecars before it, if that is more than what lasts.
 */
#pragma once

#include "request.h"

/* So much of a card for one container. */
struct grant {
    int64_t mem;
    uint32_t card;
    uint16_t container; /* as demand.index */
    uint16_t cores;
};

struct placement {
    uint32_t n;
    struct grant grants[REQUEST_GRANTS_MAX];
};

/* So much of a card for the pod. Of a whole card, or by percentage, it may be more: see
 * share_charge. */
struct share {
    int64_t mem;
    uint32_t card;
    uint32_t cores;
};

struct holding {
    uint32_t n_shares;
    uint32_t n_grants;
    const struct grant *grants; /* both stored behind the struct */
    struct share *shares;       /* by card */
};

/* What the grants come to, in ascending order of cards; ret has room for n. */
uint32_t shares_of(const struct request *r, const struct grant *grants, uint32_t n,
                   bool initialized, struct share *ret);

/* What a share costs on a card of that size. */
static inline int64_t share_charge(const struct request *r, const struct share *s, int64_t total)
{
    if (r->whole)
        return MAX_OF(total, s->mem);
    return r->percent == 0 ? s->mem
                           : MAX_OF(s->mem, (total / 100) * r->percent +
                                                ((total % 100) * r->percent + 99) / 100);
}

/* What one of the cards has to have for a request that is kept together. */
struct share request_share(const struct request *r);

/* NULL without memory; mem_free frees it whole. */
struct holding *holding_new(const struct request *r, const struct placement *p, bool initialized);

/* The init containers are done, or run again. */
void holding_settle(struct holding *h, const struct request *r, bool initialized);

/*
 * The cards that a bound pod's annotations name: the allocation, if it gives every container what
 * its spec asks for and the index names no other card; else the index, for all of it; else none.
 */
void placement_read(const struct pod_view *pod, const struct request *r, struct placement *ret);

bool holding_has(const struct holding *h, const struct placement *p);

/* Whether one of its cards is that. */
bool holding_is_on(const struct holding *h, uint32_t card);
