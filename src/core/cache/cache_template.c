/* A cache with other nodes, for questions about nodes that do not exist yet. */
#include "core/cache/cache.h"

void cache_template_init(struct cache *ret, const struct cache *of)
{
    *ret = *of;
    ret->slots = NULL;
    ret->n_slots = 0;
    map_init(&ret->nodes, offsetof(struct node, name), of->nodes.seed);
    intern_init(&ret->sizes, of->nodes.seed);
}

enum errc cache_template_add(struct cache *c, const struct node_view *view)
{
    bool changed = false;
    if (map_get(&c->nodes, view->name) != NULL)
        return OK;
    struct node *n = node_new(view->name, c->settings.swap_guard == SWAP_GUARD_REQUIRE);
    if (n == NULL)
        return ERR_NOMEM;
    if (node_resize(n, &c->sizes, view, &changed) == OK && map_put(&c->nodes, n) == OK)
        return OK;
    node_drop(n, &c->sizes);
    return ERR_NOMEM;
}

void cache_template_done(struct cache *c)
{
    size_t cursor = 0;
    for (struct node *n = map_next(&c->nodes, &cursor); n != NULL; n = map_next(&c->nodes, &cursor))
        node_drop(n, &c->sizes);
    map_done(&c->nodes);
    intern_done(&c->sizes);
}
