/*
 * A model of the cache with quotas, as simple as possible: a few nodes and pods by number, no sums
 * kept, everything counted again for each question. Written from the rules in cache.h, not from the
 * code.
 */
#pragma once

#include "core/cache.h"

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
    int64_t mem; /* -2: not a quantity */
    int64_t count;
    int64_t allocatable;
    int pool;  /* 0: none */
    int model; /* of all cards; 0: unknown */
};

/* Limits of a namespace; the last entry is for namespaces without an entry. */
struct m_entry {
    bool is;
    unsigned pools; /* bits of the pools it may use; 0: all */

    struct {
        enum quota_scope scope;
        int name; /* a pool's or a model's number */
        int64_t mem;
        int64_t cards; /* both -1: no limit */
    } limits[M_LIMITS];
};

struct m_quota {
    bool is;
    bool named; /* named by the list of ConfigMaps */
    struct m_entry entries[M_SPACES];
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
    int64_t mem;
    bool unwanting; /* reserved, and its object now asks for nothing */
    bool edited;    /* reserved, and its object now asks for something else */
    int64_t next;
    int node; /* -1: pending */
    int card;
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
    int node;    /* -1: unbound */
    int64_t mem; /* -2: not a quantity */
    int card;    /* -1: none, or not a number */
    bool terminal;
    bool awaiting;
    uint64_t assume_ns; /* 0: none that is valid */
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
    return s->count <= 0 ? NODE_NO_CARDS : NODE_OK;
}

static inline int64_t m_cards(const struct m_node *n)
{
    return m_fault(&n->size) == NODE_OK ? n->size.count : 0;
}

static inline int64_t m_card_total(const struct m_node *n)
{
    return m_cards(n) == 0 ? 0 : n->size.mem / n->size.count;
}

static inline int64_t m_limit(const struct m_node *n)
{
    if (m_fault(&n->size) != NODE_OK)
        return 0;
    return n->size.allocatable < 0 ? n->size.mem : MIN_OF(n->size.mem, n->size.allocatable);
}

/* Usage of a card, of no existing card (-1) or of the whole node (-2). */
static inline int64_t m_used(const struct model *m, int node, int card)
{
    int64_t sum = 0;
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        bool placed = p->card >= 0 && p->card < m_cards(&m->nodes[node]);
        if (m_holds(p) && p->node == node &&
            (card == -2 || (card == -1 ? !placed : placed && p->card == card)))
            sum += p->mem;
    }
    return sum;
}

static inline int64_t m_free(const struct model *m, int node, int card)
{
    const struct m_node *n = &m->nodes[node];
    bool ill = (n->unhealthy >> card & 1) != 0;
    return ill ? 0 : MAX_OF(m_card_total(n) - m_used(m, node, card), 0);
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
        if (!m_node_known(m, i))
            m->nodes[i].last_ns = 0;
    }
}

/* Whether the limit counts usage on this node and card (-1: no card). */
static inline bool m_within(const struct model *m, const struct m_entry *e, int limit, int node,
                            int card)
{
    const struct m_size *s = &m->nodes[node].size;
    int name = e->limits[limit].name;
    if (e->limits[limit].scope == QUOTA_POOL)
        return (s->present ? s->pool : 0) == name;
    return e->limits[limit].scope == QUOTA_TOTAL ||
           (card >= 0 && card < m_cards(&m->nodes[node]) && s->model == name);
}

static inline int64_t m_held(const struct model *m, int space, int limit, bool cards)
{
    const struct m_entry *own = &m->quota.entries[space];
    const struct m_entry *e = own->is ? own : &m->quota.entries[M_SPACES - 1];
    int64_t sum = 0;
    for (int i = space; i < M_PODS; i += M_SPACES) {
        const struct m_pod *p = &m->pods[i];
        if (m_holds(p) && m_within(m, e, limit, p->node, p->card))
            sum += !cards ? p->mem : p->card >= 0 || p->mem > 0 ? 1 : 0;
    }
    return sum;
}

/* The quota's verdict on one more pod of `mem` on a card of the node. The node has cards. */
static inline enum verdict m_quota_fit(const struct model *m, int node, int space, int64_t mem)
{
    const struct m_entry *own = &m->quota.entries[space];
    const struct m_entry *e = own->is ? own : &m->quota.entries[M_SPACES - 1];
    if (!m->quota.is || !e->is)
        return VERDICT_FITS;
    if (e->pools != 0 && (e->pools >> m->nodes[node].size.pool & 1) == 0)
        return VERDICT_QUOTA_DENIED;
    for (int i = 0; i < M_LIMITS; i++) {
        int64_t most[] = {e->limits[i].mem, e->limits[i].cards};
        int64_t asked[] = {mem, 1};
        for (int k = 0; k < 2 && m_within(m, e, i, node, 0); k++) {
            if (most[k] >= 0 && m_held(m, space, i, k == 1) + asked[k] > most[k])
                return asked[k] > most[k] ? VERDICT_QUOTA_DENIED : VERDICT_QUOTA;
        }
    }
    return VERDICT_FITS;
}

static inline enum verdict m_fit(const struct model *m, int node, int space, int64_t mem)
{
    const struct m_node *n = &m->nodes[node];

    static const enum verdict verdicts[] = {
        [NODE_ABSENT] = VERDICT_UNKNOWN_NODE,
        [NODE_NOT_SHARED] = VERDICT_NOT_SHARED,
        [NODE_NO_CARDS] = VERDICT_NO_CARDS,
        [NODE_BAD_QUANTITY] = VERDICT_NO_CARDS,
    };

    int64_t freest = 0;
    if (m_fault(&n->size) != NODE_OK)
        return verdicts[m_fault(&n->size)];
    bool usable = false;
    for (int i = 0; i < m_cards(n); i++) {
        freest = MAX_OF(freest, m_free(m, node, i));
        usable = usable || (n->unhealthy >> i & 1) == 0;
    }
    if (!usable)
        return VERDICT_UNUSABLE;
    if (mem > m_card_total(n))
        return VERDICT_TOO_LARGE;
    if (m_quota_fit(m, node, space, mem) != VERDICT_FITS)
        return m_quota_fit(m, node, space, mem);
    if (mem > freest)
        return VERDICT_NO_CARD_FREE;
    return mem > m_limit(n) - m_used(m, node, -2) ? VERDICT_NODE_FULL : VERDICT_FITS;
}

static inline bool m_has_twin(const struct model *m, int node, int card, int64_t mem)
{
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        if (m_holds(p) && p->node == node && p->card == card && p->mem == mem && p->awaiting)
            return true;
    }
    return false;
}

/* Picks a card with a twin first, then the least free, then the lowest index. */
static inline int m_pick(const struct model *m, int node, int64_t mem)
{
    for (int twin = 1; twin >= 0; twin--) {
        int best = -1;
        for (int i = 0; i < m_cards(&m->nodes[node]); i++) {
            bool fits = m_free(m, node, i) >= mem;
            bool wanted = twin == 0 || m_has_twin(m, node, i, mem);
            if (fits && wanted && (best < 0 || m_free(m, node, i) < m_free(m, node, best)))
                best = i;
        }
        if (best >= 0)
            return best;
    }
    return -1;
}

static inline void m_place(struct model *m, struct m_pod *p, const struct m_view *v)
{
    p->node = v->node;
    p->card = v->card;
    p->mem = MAX_OF(v->mem, 0);
    p->awaiting = v->awaiting;
    p->missing = false;
    p->asked = false;
    m->nodes[v->node].last_ns = MAX_OF(m->nodes[v->node].last_ns, v->assume_ns);
}

static inline void m_pod_set(struct model *m, const struct m_view *v)
{
    struct m_pod *p = &m->pods[v->uid];
    if (m_holds(p) && v->node < 0) {
        p->seen = true;
        p->unwanting = p->state == POD_RESERVED && v->mem == 0;
        p->edited = p->state == POD_RESERVED;
        p->next = MAX_OF(v->mem, 0);
        p->named = true;
        p->missing = p->state == POD_RESERVED && v->terminal;
        p->asked = false;
        return;
    }
    if (v->terminal || v->mem == 0) {
        p->known = false;
        return;
    }
    if (!p->known)
        *p = (struct m_pod){.known = true, .node = -1, .card = -1, .news = true};
    p->seen = true;
    p->named = true;
    if (v->node < 0) {
        p->mem = MAX_OF(v->mem, 0);
        return;
    }
    m_place(m, p, v);
    p->state = POD_BOUND;
}

static inline void m_pod_gone(struct model *m, int uid)
{
    struct m_pod *p = &m->pods[uid];
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
    p->mem = p->edited ? p->next : p->mem;
    p->awaiting = false;
    p->node = -1;
    p->card = -1;
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

/* Ends the list. Returns how many objects it removed. */
static inline unsigned m_list_end(struct model *m, enum cache_kind kind, unsigned *ret_unproven)
{
    unsigned swept = 0;
    for (int i = 0; i < M_PODS && kind == CACHE_PODS; i++)
        swept += m_sweep_pod(&m->pods[i], ret_unproven);
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
