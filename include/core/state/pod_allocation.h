/*
 * Which cards a pod holds, for which of its containers, and the resulting charge on each card.
 *
 * Init containers run one after another, on the cards of the pod's first lasting container, because
 * the kubelet passes the devices of init containers on to later containers; where each container
 * has cards of its own, on those. So the charge on a card is the larger of two sums: all lasting
 * containers, or the largest init container plus the sidecars before it.
 */
#pragma once

#include "core/request/request.h"

/* A container's part of a card. */
struct grant {
    int64_t mem;
    uint32_t card;
    uint16_t container; /* as demand.index; UINT16_MAX: the pod as a whole */
    uint16_t cores;
};

struct placement {
    uint32_t n;
    struct grant grants[REQUEST_GRANTS_MAX];
};

/* The pod's part of a card. For a whole card or a percentage the charge may be larger: see
 * share_charge. */
struct share {
    int64_t mem;
    uint32_t card;
    uint32_t cores;
    /* Only where each container has cards of its own (request_by_container). */
    uint32_t takers; /* how many containers have the card */
    bool whole;      /* one of them wants it whole */
};

struct pod_allocation {
    uint32_t n_shares;
    uint32_t n_grants;
    const struct grant *grants; /* both arrays are stored behind the struct */
    struct share *shares;       /* in ascending order of cards */
};

/* Sums the grants by card, in ascending order of cards. ret has room for n. Returns the number of
 * shares. */
uint32_t shares_of(const struct request *r, const struct grant *grants, uint32_t n,
                   bool initialized, struct share *ret);

/* The percentage of a card of size `total`: rounded up, but down as HAMi's family does it, so that
 * four pods with a quarter fit on each card. At least 1: for HAMi's library a limit of 0 is none.
 */
static inline int64_t percent_of(enum dialect d, uint32_t percent, int64_t total)
{
    int64_t up = dialect_has_uuids(d) ? 0 : 99;
    int64_t part = (total / 100) * percent + ((total % 100) * percent + up) / 100;
    return MAX_OF(part, MIN_OF(total, (int64_t)1));
}

static inline int64_t request_part_of(const struct request *r, int64_t total)
{
    return percent_of(r->dialect, r->percent, total);
}

/* What a container with cards of its own gets of a card of size `total`. */
static inline int64_t demand_part_of(const struct request *r, const struct demand *d, int64_t total)
{
    int64_t mem = d->mem / d->cards;
    return d->percent == 0 ? mem : MAX_OF(mem, percent_of(r->dialect, d->percent, total));
}

/* Whether no other pod may share the card. */
static inline bool share_is_whole(const struct request *r, const struct share *s)
{
    return request_by_container(r) ? s->whole : r->whole;
}

/* How many of the card's places for pods it takes: HAMi's scheduler counts containers. */
static inline uint32_t share_takers(const struct share *s)
{
    return MAX_OF(s->takers, 1U);
}

/* The charge of a share on a card of size `total`. */
static inline int64_t share_charge(const struct request *r, const struct share *s, int64_t total)
{
    if (share_is_whole(r, s))
        return MAX_OF(total, s->mem);
    return r->percent == 0 || request_by_container(r) ? s->mem
                                                      : MAX_OF(s->mem, request_part_of(r, total));
}

/* The demand of this container, as in grant.container. NULL: it has none. */
const struct demand *request_demand(const struct request *r, uint32_t container);

/* What each card must have free for a request whose containers stay together. */
struct share request_share(const struct request *r);

/* NULL: allocation failed. One mem_free frees it. */
struct pod_allocation *pod_allocation_new(const struct request *r, const struct placement *p,
                                          bool initialized);

/* Replaces the grants, n_grants of them, of a dialect with UUIDs. */
void pod_allocation_move(struct pod_allocation *h, const struct request *r,
                         const struct grant *grants, bool initialized);

/* Recomputes the shares when the init containers are done, or run again. */
void pod_allocation_recompute(struct pod_allocation *h, const struct request *r, bool initialized);

/* The cards that a bound pod's annotations name. The allocation is used if it gives every container
 * what its spec asks for and the index names the same cards. Otherwise the index, as the cards of
 * the whole pod. Otherwise none. In another dialect than gpushare's: its own annotations, if they
 * name cards for every container that has any; with UUIDs the cards are still to be found, see
 * vgpu_locate. */
void placement_read(const struct pod_view *pod, const struct request *r, struct placement *ret);

bool grants_have_card(const struct grant *grants, uint32_t n, uint32_t card);

/* The index of a card in any form in which a plugin may read one: Go's Atoi takes "+1" and "-0",
 * and some trim blanks. */
bool placement_read_index(struct str text, uint32_t *ret);

bool pod_allocation_has(const struct pod_allocation *h, const struct placement *p);

/* Whether the allocation has a share of the card. */
bool pod_allocation_is_on(const struct pod_allocation *h, uint32_t card);
