/* Asserts what must be true between any two events. For tests. */
#include "cache_cardless.h"
#include "cache_dra.h"
#include "cache_quota.h"
#include "cache_store.h"

/* Every group has the number of holders that it counts, and no group is empty. */
static void cache_check_groups(const struct cache *c)
{
    size_t cursor = 0;
    size_t members = 0;
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        members += p->group != NULL ? 1 : 0;
        assert(p->group == NULL || map_get(&c->groups, p->group->key) == p->group);
        assert(p->group == NULL || pod_holds(p));
        assert(!pod_holds(p) || p->allocation->n_shares == 0 ||
               (p->group != NULL) == cache_group_holds(c, p->namespace, p->request->affinity));
        assert(p->group == NULL || p->allocation->n_shares > 0);
    }
    cursor = 0;
    for (const struct group *g = map_next(&c->groups, &cursor); g != NULL;
         g = map_next(&c->groups, &cursor)) {
        assert(g->holders > 0 && g->holders <= members);
        members -= g->holders;
    }
    assert(members == 0);
}

static void cache_check_pending(const struct cache *c)
{
    size_t n = 0;
    LIST_FOR_EACH (const struct pod, p, &c->pending, pending) {
        assert(p->state == POD_PENDING && map_get(&c->pods, p->uid) == p);
        n++;
    }
    assert(n == c->n_pending);
}

/* Every changed node is in the list once. */
static void cache_check_changes(const struct cache *c)
{
    size_t n = 0;
    uint64_t version = 0;
    for (const struct change_link *x = changes_after(&c->changes, 0); x != NULL;
         x = changes_next(&c->changes, x)) {
        const struct node *node = cache_changed_node(x);
        assert(x->version > version && map_get(&c->nodes, node->name) == node);
        version = x->version;
        n++;
    }
    assert(version <= c->changes.version && n <= c->nodes.n);
}

/* Every node has a slot, and every other slot is free. */
static void cache_check_slots(const struct cache *c)
{
    size_t taken = 0;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const struct node *n = c->slots[i];
        assert(n != NULL || i >= c->first_slot);
        if (n == NULL)
            continue;
        assert(n->slot == i && i < c->end_slot && map_get(&c->nodes, n->name) == n);
        taken++;
    }
    assert(taken == c->nodes.n);
}

void cache_check(const struct cache *c)
{
    size_t cursor = 0;
    size_t holders = 0;
    size_t labelled = 0;
    size_t sized = 0;
    size_t pending = 0;
    uint32_t locks = c->n_locks;
    size_t edited = 0;
    cache_check_groups(c);
    cache_check_pending(c);
    cache_check_changes(c);
    cache_check_slots(c);
    for (const struct pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        pod_check(p);
        request_check(&c->requests, p->request);
        if (p->labels != NULL)
            labels_check(&c->labels, p->labels);
        if (p->edited != NULL)
            request_check(&c->requests, p->edited);
        edited += p->edited != NULL ? 1 : 0;
        labelled += p->labels != NULL ? 1 : 0;
        assert(map_get(&c->pods, p->uid) == p);
        assert(p->node == NULL || map_get(&c->nodes, p->node->name) == p->node);
        assert(p->keeper == NULL || map_get(&c->nodes, p->keeper->name) == p->keeper);
        assert(p->node == NULL || p->node->assume_ns >= p->assume_ns);
        holders += pod_holds(p) ? 1 : 0;
        pending += pod_holds(p) ? 0 : 1;
    }
    assert(pending == c->n_pending);
    intern_check(&c->requests, c->pods.n + edited);
    intern_check(&c->labels, labelled);
    cursor = 0;
    for (const struct node *n = map_next(&c->nodes, &cursor); n != NULL;
         n = map_next(&c->nodes, &cursor)) {
        node_check(n);
        locks -= n->lock != NULL ? 1 : 0;
        assert(!n->locked || n->lock != NULL);
        sized += n->sizes != NULL ? 1 : 0;
        assert(map_get(&c->nodes, n->name) == n);
        assert(!node_is_hidden(n) || n->n_cardless > 0);
        assert(n->n_pods <= holders);
        holders -= n->n_pods;
    }
    assert(holders == 0 && locks == 0);
    intern_check(&c->sizes, sized);
    cache_quota_check(c);
    cache_cardless_check(c);
    cache_dra_check(c);
}
