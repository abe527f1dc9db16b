/*
 * A model of the cache with quotas, as simple as possible: a few nodes and pods by number, no sums
 * kept, everything counted again for each question. Written from the rules in cache.h and
 * docs/quota.md, not from the code.
 */
#pragma once

#include "core/cache/cache.h"

enum {
    M_NODES = 3,
    M_PODS = 9,
    M_CARDS = 4,
    M_SPACES = 3, /* a pod's namespace is its number modulo this */
    M_LIMITS = 3
};

/* A node's size in numbers; the test writes the API's texts. -1: no such field. */
struct m_size {
    bool present;
    struct host host; /* -1: no such field, -2: not a quantity */
    int64_t mem;      /* -2: not a quantity */
    int64_t count;
    int64_t allocatable;
    bool table;
    int64_t cards[M_CARDS]; /* sizes of the table's cards; 0: no card has this index */
    int pool;               /* 0: none */
    int model;              /* of all cards; 0: unknown */
};

/* Limits of a namespace; the last entry is for namespaces without an entry. */
struct m_entry {
    bool is;
    unsigned pools; /* bits of the pools it may use; 0: all */

    struct {
        enum quota_scope scope;
        int name;                  /* a pool's or a model's number */
        int64_t most[QUOTA_KINDS]; /* -1: no limit */
    } limits[M_LIMITS];
};

struct m_quota {
    bool is;
    bool named; /* named by the list of ConfigMaps */
    struct m_entry entries[M_SPACES];
};

/* What a pod asks for: an amount over some cards, an equal part on each. */
struct m_ask {
    int64_t mem; /* -2: not a quantity */
    int cores;
    int cards;
    struct host host;
};

/* The cards that a pod has; an equal part on each. */
struct m_place {
    int n;
    int cards[M_CARDS]; /* ascending; no node has a card 9 */
};

struct m_node {
    struct m_size size;
    bool listed; /* named by the nodes' list under way */
    unsigned unhealthy;
    bool health_listed;
    uint64_t last_ns;
};

struct m_pod {
    bool known;
    enum pod_state state;
    bool seen;
    bool missing;
    bool asked;
    bool awaiting;
    bool news;  /* first seen since the pods' list began */
    bool named; /* named by that list */
    struct m_ask ask;
    bool unwanting; /* reserved, and its object now asks for nothing */
    bool edited;    /* reserved, and its object now asks for `next` */
    struct m_ask next;
    int node; /* -1: pending */
    struct m_place place;
    /* What its object requests as a bound pod that asks for no card. */
    bool other;
    int other_node;
    struct host other_host;
    bool other_named; /* named by the pods' list under way, or shown since it began */
};

struct model {
    struct m_node nodes[M_NODES];
    struct m_pod pods[M_PODS];
    struct m_quota quota;
    bool torn[CACHE_KINDS];
};

/* A pod as an event shows it. */
struct m_view {
    int uid;
    int node; /* -1: unbound */
    struct m_ask ask;
    struct m_place place;
    bool terminal;
    bool awaiting;
    uint64_t assume_ns; /* 0: none that counts */
};

static inline bool m_holds(const struct m_pod *p)
{
    return p->known && p->state != POD_PENDING;
}

static inline enum node_fault m_fault(const struct m_size *s)
{
    if (!s->present)
        return NODE_ABSENT;
    if (s->mem == -2 || s->count == -2 || s->allocatable == -2)
        return NODE_BAD_QUANTITY;
    if (s->mem <= 0)
        return NODE_NOT_SHARED;
    return s->table || s->count > 0 ? NODE_OK : NODE_NO_CARDS;
}

/* One more than the highest card index. */
static inline int m_cards(const struct m_node *n)
{
    int cards = 0;
    if (m_fault(&n->size) != NODE_OK)
        return 0;
    for (int i = 0; i < M_CARDS; i++)
        cards = n->size.cards[i] > 0 ? i + 1 : cards;
    return n->size.table ? cards : (int)n->size.count;
}

/* 0: no such card. */
static inline int64_t m_card_total(const struct m_node *n, int card)
{
    if (card < 0 || card >= m_cards(n))
        return 0;
    return n->size.table ? n->size.cards[card] : n->size.mem / n->size.count;
}

static inline bool m_has_card(const struct m_node *n, int card)
{
    return card >= 0 && card < m_cards(n) && (!n->size.table || n->size.cards[card] > 0);
}

static inline int64_t m_limit(const struct m_node *n)
{
    if (m_fault(&n->size) != NODE_OK)
        return 0;
    return n->size.allocatable < 0 ? n->size.mem : MIN_OF(n->size.mem, n->size.allocatable);
}

static inline int m_part_cores(const struct m_pod *p)
{
    return p->place.n == 0 ? 0 : (p->ask.cores + p->place.n - 1) / p->place.n;
}

/* Usage of a card, of no existing card (-1) or of the whole node (-2). */
static inline int64_t m_used(const struct model *m, int node, int card)
{
    int64_t sum = 0;
    const struct m_size *size = &m->nodes[node].size;
    if (size->present && size->mem == -1 && size->count == -1)
        return 0; /* the kubelet gives pods nothing of a resource that the node does not have */
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        if (!m_holds(p) || p->node != node)
            continue;
        if (card == -2 || (card == -1 && p->place.n == 0))
            sum += p->ask.mem;
        for (int k = 0; card != -2 && k < p->place.n; k++) {
            bool placed = m_has_card(&m->nodes[node], p->place.cards[k]);
            if (card == -1 ? !placed : placed && p->place.cards[k] == card)
                sum += p->ask.mem / p->place.n;
        }
    }
    return sum;
}

/* The compute that pods use on a card; *ret_pods: their number. */
static inline int m_cores(const struct model *m, int node, int card, unsigned *ret_pods)
{
    int sum = 0;
    *ret_pods = 0;
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        for (int k = 0; m_holds(p) && p->node == node && k < p->place.n; k++) {
            if (p->place.cards[k] != card)
                continue;
            sum += m_part_cores(p);
            (*ret_pods)++;
        }
    }
    return sum;
}

static inline bool m_usable(const struct model *m, int node, int card)
{
    const struct m_node *n = &m->nodes[node];
    return m_has_card(n, card) && (n->unhealthy >> card & 1) == 0;
}

static inline int64_t m_free(const struct model *m, int node, int card)
{
    int64_t left = m_card_total(&m->nodes[node], card) - m_used(m, node, card);
    return m_usable(m, node, card) ? MAX_OF(left, 0) : 0;
}

/* Whether the cache must still know the name. */
static inline bool m_node_known(const struct model *m, int node)
{
    bool known = m->nodes[node].size.present || m->nodes[node].unhealthy != 0;
    for (int i = 0; i < M_PODS; i++)
        known = known || (m_holds(&m->pods[i]) && m->pods[i].node == node);
    return known;
}

/* A node that the cache forgets loses all its fields. */
static inline void m_forget(struct model *m)
{
    for (int i = 0; i < M_NODES; i++) {
        bool other = false;
        for (int k = 0; k < M_PODS; k++)
            other = other || (m->pods[k].other && m->pods[k].other_node == i);
        if (!other && !m_node_known(m, i))
            m->nodes[i].last_ns = 0;
    }
}

static inline enum verdict m_card(const struct model *m, int node, int card,
                                  const struct m_ask *ask)
{
    unsigned pods = 0;
    int64_t part = ask->mem / ask->cards;
    if (!m_usable(m, node, card))
        return VERDICT_UNUSABLE;
    if (part > m_card_total(&m->nodes[node], card))
        return VERDICT_TOO_LARGE;
    if (ask->cores > 0 && ask->cores / ask->cards > 100 - m_cores(m, node, card, &pods))
        return VERDICT_NO_CORES;
    return part > m_free(m, node, card) ? VERDICT_NO_CARD_FREE : VERDICT_FITS;
}

/* Whether the limit counts usage on this card of the node; -1: on no existing card. */
static inline bool m_within(const struct model *m, const struct m_entry *e, int limit, int node,
                            int card)
{
    const struct m_size *s = &m->nodes[node].size;
    int name = e->limits[limit].name;
    if (e->limits[limit].scope == QUOTA_POOL)
        return (s->present ? s->pool : 0) == name;
    return e->limits[limit].scope == QUOTA_TOTAL ||
           (m_has_card(&m->nodes[node], card) && s->model == name);
}

static inline const struct m_entry *m_entry_of(const struct model *m, int space)
{
    const struct m_entry *own = &m->quota.entries[space];
    return own->is ? own : &m->quota.entries[M_SPACES - 1];
}

/* What a pod counts with on one of its cards, or in all if none is known. */
static inline int64_t m_counted(const struct m_pod *p, enum quota_kind kind)
{
    bool known = p->place.n > 0;
    if (kind == QUOTA_MEMORY)
        return known ? p->ask.mem / p->place.n : p->ask.mem;
    if (kind == QUOTA_COMPUTE)
        return known ? m_part_cores(p) : p->ask.cores;
    return known ? 1 : p->ask.mem > 0 || p->ask.cores > 0 ? p->ask.cards : 0;
}

/* What a namespace's pods hold of one kind under this limit. */
static inline int64_t m_held(const struct model *m, int space, int limit, enum quota_kind kind)
{
    const struct m_entry *e = m_entry_of(m, space);
    int64_t sum = 0;
    for (int i = space; i < M_PODS; i += M_SPACES) {
        const struct m_pod *p = &m->pods[i];
        for (int k = 0; m_holds(p) && k < MAX_OF(p->place.n, 1); k++) {
            if (m_within(m, e, limit, p->node, p->place.n == 0 ? -1 : p->place.cards[k]))
                sum += m_counted(p, kind);
        }
    }
    return sum;
}

/* The quota's verdict on one more pod on cards of the node. The node has cards. */
static inline enum verdict m_quota_fit(const struct model *m, int node, int space,
                                       const struct m_ask *ask)
{
    const struct m_entry *e = m_entry_of(m, space);
    const int64_t asked[QUOTA_KINDS] = {
        [QUOTA_MEMORY] = ask->mem, [QUOTA_CARDS] = ask->cards, [QUOTA_COMPUTE] = ask->cores};
    if (!m->quota.is || !e->is)
        return VERDICT_FITS;
    if (e->pools != 0 && (e->pools >> m->nodes[node].size.pool & 1) == 0)
        return VERDICT_QUOTA_DENIED;
    for (int i = 0; i < M_LIMITS; i++) {
        for (int k = 0; k < QUOTA_KINDS && m_within(m, e, i, node, 0); k++) {
            int64_t most = e->limits[i].most[k];
            if (most >= 0 && asked[k] > 0 &&
                m_held(m, space, i, (enum quota_kind)k) + asked[k] > most)
                return asked[k] > most ? VERDICT_QUOTA_DENIED : VERDICT_QUOTA;
        }
    }
    return VERDICT_FITS;
}

/* The verdict. If enough cards would be feasible with fewer pods: why one of those is not feasible
 * now, or that the quota refuses the pod. Else: why the other cards never can be, or that there are
 * too few. */
static inline enum verdict m_fit(const struct model *m, int node, int space,
                                 const struct m_ask *ask)
{
    const struct m_node *n = &m->nodes[node];

    static const enum verdict verdicts[] = {
        [NODE_ABSENT] = VERDICT_UNKNOWN_NODE,
        [NODE_NOT_SHARED] = VERDICT_NOT_SHARED,
        [NODE_NO_CARDS] = VERDICT_NO_CARDS,
        [NODE_BAD_QUANTITY] = VERDICT_NO_CARDS,
    };

    int fit = 0;
    int could = 0;
    enum verdict nearest = VERDICT_UNUSABLE;
    if (m_fault(&n->size) != NODE_OK)
        return verdicts[m_fault(&n->size)];
    for (int i = 0; i < m_cards(n); i++) {
        enum verdict v = m_card(m, node, i, ask);
        fit += v == VERDICT_FITS ? 1 : 0;
        could += v == VERDICT_UNUSABLE || v == VERDICT_TOO_LARGE ? 0 : 1;
        nearest = MAX_OF(nearest, v);
    }
    if (could == 0)
        return nearest;
    enum verdict quota = m_quota_fit(m, node, space, ask);
    if (could < ask->cards && quota != VERDICT_QUOTA_DENIED)
        return VERDICT_TOO_FEW;
    if (quota != VERDICT_FITS)
        return quota;
    if (fit < ask->cards)
        return nearest;
    return ask->mem > m_limit(n) - m_used(m, node, -2) ? VERDICT_NODE_FULL : VERDICT_FITS;
}

static inline bool m_has_twin(const struct model *m, int node, int card, const struct m_ask *ask)
{
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        if (m_holds(p) && p->node == node && p->place.n == 1 && p->place.cards[0] == card &&
            p->ask.mem == ask->mem && p->awaiting && ask->cards == 1)
            return true;
    }
    return false;
}

/* The next card: one with a twin first, then the least free, then the lowest index. */
static inline int m_next(const struct model *m, int node, const struct m_ask *ask, unsigned taken)
{
    for (int twin = 1; twin >= 0; twin--) {
        int best = -1;
        for (int i = 0; i < m_cards(&m->nodes[node]); i++) {
            bool fits = (taken >> i & 1) == 0 && m_card(m, node, i, ask) == VERDICT_FITS;
            bool wanted = twin == 0 || m_has_twin(m, node, i, ask);
            if (fits && wanted && (best < 0 || m_free(m, node, i) < m_free(m, node, best)))
                best = i;
        }
        if (best >= 0)
            return best;
    }
    return -1;
}

/* As many cards as the pod asks for. */
static inline struct m_place m_pick(const struct model *m, int node, const struct m_ask *ask)
{
    unsigned taken = 0;
    struct m_place place = {.n = 0};
    for (int i = 0; i < ask->cards; i++)
        taken |= 1U << m_next(m, node, ask, taken);
    for (int i = 0; i < M_CARDS; i++) {
        if ((taken >> i & 1) != 0)
            place.cards[place.n++] = i;
    }
    return place;
}

static inline void m_place(struct model *m, struct m_pod *p, const struct m_view *v)
{
    p->node = v->node;
    p->place = v->place;
    p->ask = v->ask;
    p->ask.mem = MAX_OF(v->ask.mem, 0);
    if (p->ask.mem == 0 && p->ask.cores == 0)
        p->place.n = 0; /* it asks for nothing that could be read */
    p->awaiting = v->awaiting;
    p->missing = false;
    p->asked = false;
    m->nodes[v->node].last_ns = MAX_OF(m->nodes[v->node].last_ns, v->assume_ns);
}

/* Makes it an unknown pod. What its object requests without a card stays. */
static inline void m_pod_reset(struct m_pod *p, struct m_pod to)
{
    to.other = p->other;
    to.other_node = p->other_node;
    to.other_host = p->other_host;
    to.other_named = p->other_named;
    *p = to;
}

/* What the object says of a pod that asks for no card. */
static inline void m_other_set(struct m_pod *p, const struct m_view *v, bool wants)
{
    p->other_named = true;
    if (v->node < 0 && !v->terminal)
        return; /* older than what is known */
    if (v->node < 0 && m_holds(p))
        return;
    p->other = !wants && !v->terminal && (v->ask.host.cpu > 0 || v->ask.host.memory > 0);
    p->other_node = v->node;
    p->other_host = v->ask.host;
}

static inline void m_pod_set(struct model *m, const struct m_view *v)
{
    struct m_pod *p = &m->pods[v->uid];
    bool wants = v->ask.mem != 0 || v->ask.cores != 0;
    bool older = p->other && !p->known && v->node < 0;
    m_other_set(p, v, wants);
    if (older)
        return;
    if (m_holds(p) && v->node < 0) {
        p->seen = true;
        p->unwanting = p->state == POD_RESERVED && !wants;
        p->edited = p->state == POD_RESERVED;
        p->next = v->ask;
        p->next.mem = MAX_OF(v->ask.mem, 0);
        p->named = true;
        p->missing = p->state == POD_RESERVED && v->terminal;
        p->asked = false;
        return;
    }
    if (v->terminal || !wants) {
        p->known = false;
        return;
    }
    if (!p->known)
        m_pod_reset(p, (struct m_pod){.known = true, .node = -1, .news = true});
    p->seen = true;
    p->named = true;
    if (v->node < 0) {
        p->ask = v->ask;
        p->ask.mem = MAX_OF(v->ask.mem, 0);
        return;
    }
    m_place(m, p, v);
    p->state = POD_BOUND;
}

static inline void m_pod_gone(struct model *m, int uid)
{
    struct m_pod *p = &m->pods[uid];
    p->other = false;
    if (p->known && p->state == POD_RESERVED) {
        p->missing = true;
        p->asked = false;
        return;
    }
    p->known = false;
}

/* Whether a confirmation is refused. For a pod that a list lacked it is, unless an earlier
 * confirmation was refused and this one comes from a read (read_back). */
static inline bool m_refused(struct m_pod *p, bool read_back)
{
    bool refused = p->missing && !(p->asked && read_back);
    p->asked = p->missing;
    return refused;
}

static inline enum errc m_pod_read(struct model *m, const struct m_view *v)
{
    struct m_pod *p = &m->pods[v->uid];
    if (!m_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND || v->node < 0)
        return OK;
    if (m_refused(p, true))
        return ERR_CONFLICT;
    p->other = false;
    if (v->terminal) {
        p->known = false;
        return OK;
    }
    m_place(m, p, v);
    p->state = POD_CONFIRMED;
    return OK;
}

static inline enum errc m_confirm(struct model *m, int uid, bool read_back)
{
    struct m_pod *p = &m->pods[uid];
    if (!m_holds(p))
        return ERR_NOTFOUND;
    if (p->state == POD_BOUND)
        return OK;
    if (m_refused(p, read_back))
        return ERR_CONFLICT;
    p->missing = false;
    p->asked = false;
    p->state = POD_CONFIRMED;
    return OK;
}

static inline void m_cancel(struct model *m, int uid)
{
    struct m_pod *p = &m->pods[uid];
    if (!p->known || p->state != POD_RESERVED)
        return;
    if (!p->seen || p->missing || p->unwanting) {
        p->known = false;
        return;
    }
    p->state = POD_PENDING;
    p->ask = p->edited ? p->next : p->ask;
    p->awaiting = false;
    p->node = -1;
    p->place.n = 0;
}

static inline void m_list_begin(struct model *m, enum cache_kind kind)
{
    m->torn[kind] = false;
    if (kind == CACHE_HEALTH)
        m->quota.named = false;
    for (int i = 0; i < M_NODES; i++) {
        if (kind == CACHE_NODES)
            m->nodes[i].listed = false;
        if (kind == CACHE_HEALTH)
            m->nodes[i].health_listed = false;
    }
    for (int i = 0; i < M_PODS && kind == CACHE_PODS; i++) {
        m->pods[i].named = false;
        m->pods[i].news = false;
        m->pods[i].other_named = false;
    }
}

static inline unsigned m_sweep_pod(struct m_pod *p, unsigned *ret_unproven)
{
    if (!p->known || p->named)
        return 0;
    if (p->state != POD_RESERVED && !p->news) {
        p->known = false;
        return 1;
    }
    p->missing = true;
    p->asked = false;
    *ret_unproven += p->state == POD_CONFIRMED ? 1 : 0;
    return 0;
}

static inline unsigned m_sweep_other(struct m_pod *p)
{
    unsigned swept = p->other && !p->other_named ? 1 : 0;
    p->other = p->other && p->other_named;
    return swept;
}

/* Ends the list. Returns how many objects it removed. */
static inline unsigned m_list_end(struct model *m, enum cache_kind kind, unsigned *ret_unproven)
{
    unsigned swept = 0;
    for (int i = 0; i < M_PODS && kind == CACHE_PODS; i++)
        swept += m_sweep_pod(&m->pods[i], ret_unproven) + m_sweep_other(&m->pods[i]);
    for (int i = 0; i < M_NODES; i++) {
        struct m_node *n = &m->nodes[i];
        if (kind == CACHE_NODES && n->size.present && !n->listed) {
            n->size.present = false;
            swept++;
        }
        if (kind == CACHE_HEALTH && n->unhealthy != 0 && !n->health_listed) {
            n->unhealthy = 0;
            swept++;
        }
    }
    if (kind == CACHE_HEALTH && m->quota.is && !m->quota.named) {
        m->quota.is = false;
        swept++;
    }
    return swept;
}
