/* The locks of nodes: which of them keep pods away. */
#include "cache_lock.h"

#include "base/mem.h"
#include "core/state/lock.h"

static bool cache_lock_same(const struct lock_view *l, struct str text)
{
    return l == NULL ? text.p == NULL : text.p != NULL && str_eq(l->text, text);
}

static struct str cache_lock_part(const struct lock_view *v, struct str part, const char *text)
{
    return part.p == NULL ? STR_NULL : (struct str){text + (part.p - v->text.p), part.n};
}

static struct lock_view *cache_lock_new(const struct lock_view *v)
{
    struct lock_view *l = mem_alloc(sizeof(*l) + v->text.n);
    if (l == NULL)
        return NULL;
    char *at = (char *)(l + 1);
    const char *text = at;
    *l = *v;
    l->text = str_store(&at, v->text);
    l->namespace = cache_lock_part(v, v->namespace, text);
    l->name = cache_lock_part(v, v->name, text);
    return l;
}

static bool cache_lock_is_of(const struct lock_view *l, const struct pod *p)
{
    return str_eq(l->namespace, p->namespace) && str_eq(l->name, p->name);
}

/* Whether the pod that the lock names is on the node. */
static bool cache_lock_is_alive(const struct node *n)
{
    const struct pod *p = n->pods;
    while (p != NULL && !cache_lock_is_of(n->lock, p))
        p = p->next;
    return p != NULL;
}

static bool cache_lock_waits(const struct node *n)
{
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        if (pod_starts(p) && p->ack != POD_ACK_SERVED)
            return true;
    }
    return false;
}

static bool cache_lock_holds(struct node *n, uint64_t now_s)
{
    const struct lock_view *l = n->lock;
    if (l == NULL)
        return false;
    if (cache_lock_waits(n))
        n->idle_s = 0;
    else if (n->idle_s == 0)
        n->idle_s = now_s;
    return n->idle_s > 0 && now_s >= n->idle_s + LOCK_GRACE_S && lock_is_fresh(l, now_s) &&
           (l->name.p == NULL || cache_lock_is_alive(n));
}

static void cache_lock_look(struct node *n, uint64_t now_s)
{
    bool locked = cache_lock_holds(n, now_s);
    if (locked == n->locked)
        return;
    n->locked = locked;
    node_stamp(n);
    change_touch(&n->change);
}

enum errc cache_lock_set(struct cache *c, struct node *n, const struct lock_view *v,
                         uint64_t now_ns, struct effect *ret)
{
    if (!cache_lock_same(n->lock, v->text)) {
        struct lock_view *l = v->text.p == NULL ? NULL : cache_lock_new(v);
        if (l == NULL && v->text.p != NULL)
            return ERR_NOMEM;
        c->n_locks += (l != NULL ? 1U : 0U) - (n->lock != NULL ? 1U : 0U);
        mem_free(n->lock);
        n->lock = l;
        n->idle_s = v->since_s;
        ret->odd_lock = lock_is_odd(v, now_ns / 1000000000);
    }
    cache_lock_look(n, now_ns / 1000000000);
    return OK;
}

void cache_lock_drop(struct cache *c, struct node *n)
{
    c->n_locks -= n->lock != NULL ? 1 : 0;
    mem_free(n->lock);
    n->lock = NULL;
    n->locked = false;
}

void cache_locks_look(struct cache *c, uint64_t now_ns)
{
    for (uint32_t i = 0; c->n_locks > 0 && i < c->end_slot; i++) {
        if (c->slots[i] != NULL && c->slots[i]->lock != NULL)
            cache_lock_look(c->slots[i], now_ns / 1000000000);
    }
}
