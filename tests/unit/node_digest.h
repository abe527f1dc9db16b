/*
 * A digest of all that a verdict or a cost can depend on at one node, to prove the rule of
 * node.version: while the version is the same, so is the digest.
 */
#pragma once

#include "core/request/request.h"
#include "core/state/node.h"

struct node_digest {
    uint64_t version; /* 0: the node has not been seen yet */
    uint64_t digest;
};

static inline void digest_u64(uint64_t *d, uint64_t value)
{
    *d = (*d ^ value) * 0x9E3779B97F4A7C15U;
    *d ^= *d >> 29;
}

static inline void digest_i64(uint64_t *d, int64_t value)
{
    digest_u64(d, (uint64_t)value);
}

static inline void digest_str(uint64_t *d, struct str s)
{
    digest_u64(d, s.n);
    for (size_t i = 0; i < s.n; i++)
        digest_u64(d, (unsigned char)s.p[i]);
}

static inline void digest_request(uint64_t *d, const struct request *r)
{
    digest_u64(d, (uintptr_t)r); /* equal requests are one object */
    digest_i64(d, r->mem);
    digest_i64(d, r->host.cpu);
    digest_i64(d, r->host.memory);
    digest_i64(d, r->priority);
}

static inline void digest_pod(uint64_t *d, const struct pod *p)
{
    digest_str(d, p->uid);
    digest_request(d, p->request);
    digest_u64(d, (uint64_t)p->state);
    digest_u64(d, (uint64_t)p->start);
    digest_u64(d, (uint64_t)p->ack);
    digest_u64(d, (p->exchanging ? 1U : 0U) | (p->initialized ? 2U : 0U) |
                      (pod_holds(p) && p->deleting ? 4U : 0U));
    for (uint32_t i = 0; p->allocation != NULL && i < p->allocation->n_shares; i++) {
        const struct share *s = &p->allocation->shares[i];
        digest_u64(d, s->card);
        digest_i64(d, s->mem);
        digest_u64(d, s->cores);
    }
}

static inline void digest_card(uint64_t *d, const struct node *n, uint32_t i)
{
    const struct card *c = &n->cards[i];
    struct uuid_room room;
    digest_i64(d, c->total);
    digest_i64(d, c->used);
    digest_u64(d, (uint64_t)c->cores << 32 | c->pods);
    digest_u64(d, (uint64_t)c->wholes << 32 | (c->absent ? 1U : 0U) | (c->unhealthy ? 2U : 0U) |
                      (c->cordoned ? 4U : 0U) | (c->aside ? 8U : 0U) | (c->given ? 16U : 0U) |
                      (c->claimed ? 32U : 0U));
    digest_u64(d, c->lent);
    digest_str(d, node_card_model(n, i));
    digest_str(d, node_card_uuid(n, i, &room));
    digest_i64(d, node_card_numa(n, i));
}

static inline void digest_sizes(uint64_t *d, const struct node_sizes *s)
{
    digest_u64(d, (uint64_t)s->max_pods << 32 | s->exclusive);
    digest_u64(d, (uint64_t)s->placement << 32 | (uint64_t)s->isolation);
    digest_str(d, s->pool);
}

static inline uint64_t node_digest_of(const struct node *n)
{
    uint64_t d = (uint64_t)n->fault;
    const int64_t figures[] = {n->limit,
                               n->remainder,
                               n->counted,
                               n->unplaced,
                               n->exclusive,
                               n->renamed,
                               n->largest,
                               n->most_free,
                               n->total,
                               n->used,
                               n->simple,
                               n->crowded,
                               n->host_total.cpu,
                               n->host_used.cpu,
                               n->host_total.memory,
                               n->host_used.memory,
                               (int64_t)n->n_pods,
                               (int64_t)n->n_sharing,
                               (int64_t)n->n_starting,
                               n->n_exchanging,
                               n->delegated ? 1 : 0,
                               n->sliced ? 1 : 0,
                               n->uneven ? 1 : 0,
                               n->guarded ? 1 : 0};
    for (size_t i = 0; i < COUNT_OF(figures); i++)
        digest_i64(&d, figures[i]);
    if (n->sizes != NULL)
        digest_sizes(&d, n->sizes);
    for (uint32_t i = 0; i < n->n_cards; i++)
        digest_card(&d, n, i);
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        digest_pod(&d, p);
    digest_u64(&d, UINT64_MAX);
    for (const struct pod *p = n->kept_for; p != NULL; p = p->next)
        digest_pod(&d, p);
    return d;
}

/* Whether the node keeps the rule, compared with when `last` was taken. Takes it again. */
static inline bool node_digest_holds(struct node_digest *last, const struct node *n)
{
    struct node_digest now = {.version = n->version, .digest = node_digest_of(n)};
    bool holds = now.version > 0 && (now.version != last->version || now.digest == last->digest);
    *last = now;
    return holds;
}
