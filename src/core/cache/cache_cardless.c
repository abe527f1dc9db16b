/* The charge of a pod without a GPU request. No placement depends on it, so it is no change that
 * effect.changed or the list of changes would show. */
#include "cache_cardless.h"

#include "cache_store.h"

static void cache_cardless_remove(struct cache *c, struct cardless_pod *x)
{
    struct node *n = x->node;
    node_charge_cardless(n, x->host, -1);
    cardless_pods_del(&c->cardless, x);
    cache_node_release(c, n);
}

void cache_cardless_drop(struct cache *c, struct str uid)
{
    struct cardless_pod *x = cardless_pods_get(&c->cardless, uid);
    if (x != NULL)
        cache_cardless_remove(c, x);
}

enum errc cache_cardless_set(struct cache *c, struct str uid, struct str node, struct host host)
{
    if (host_is_zero(host)) {
        cache_cardless_drop(c, uid);
        return OK;
    }
    struct node *n = cache_node_get_or_add(c, node);
    if (n == NULL)
        return ERR_NOMEM;
    struct cardless_pod *x = cardless_pods_get_or_add(&c->cardless, uid);
    if (x == NULL) {
        cache_node_release(c, n);
        return ERR_NOMEM;
    }
    x->epoch = c->lists[CACHE_PODS].epoch;
    struct node *old = x->node;
    if (old == n && host_equal(x->host, host))
        return OK;
    if (old == NULL && n->n_cards > 0)
        cache_learn(c, &(struct request){.host = host});
    node_charge_cardless(n, host, 1);
    if (old != NULL)
        node_charge_cardless(old, x->host, -1);
    x->node = n;
    x->host = host;
    if (old != NULL)
        cache_node_release(c, old);
    return OK;
}

bool cache_cardless_seen(struct cache *c, struct str uid)
{
    struct cardless_pod *x = cardless_pods_get(&c->cardless, uid);
    if (x != NULL)
        x->epoch = c->lists[CACHE_PODS].epoch;
    return x != NULL;
}

void cache_cardless_sweep(struct cache *c, struct effect *ret)
{
    for (uint32_t i = 0; i < c->cardless.n;) {
        struct cardless_pod *x = cardless_pods_at(&c->cardless, i);
        if (x->epoch == c->lists[CACHE_PODS].epoch) {
            i++;
            continue;
        }
        cache_cardless_remove(c, x);
        ret->swept++;
    }
}

/* In O(nodes * pods): for the small caches of tests. */
static void cache_cardless_check_node(const struct cache *c, const struct node *n)
{
    struct host used = {0};
    uint32_t cardless = 0;
    for (const struct pod *p = n->pods; p != NULL; p = p->next)
        host_charge(&used, p->request->host, 1);
    for (uint32_t i = 0; i < c->cardless.n; i++) {
        const struct cardless_pod *x = cardless_pods_at(&c->cardless, i);
        if (x->node != n)
            continue;
        host_charge(&used, x->host, 1);
        cardless++;
    }
    assert(host_equal(n->host_used, used) && n->n_cardless == cardless);
}

void cache_cardless_check(const struct cache *c)
{
    size_t cursor = 0;
    uint64_t all = 0;
    cardless_pods_check(&c->cardless);
    for (const struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        cache_cardless_check_node(c, n);
        all += n->n_cardless;
    }
    assert(all == c->cardless.n);
}
