/* What a cache has of its nodes and pods, as text, for comparing two runs. */
#pragma once

#include "core/cache/cache.h"

static inline void cache_text(const struct cache *c, struct buf *out)
{
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        buf_printf(out, "%.*s %lld %lld %d", STR_ARG(n->name), (long long)n->total,
                   (long long)n->used, (int)n->fault);
        for (uint32_t i = 0; i < n->n_cards; i++)
            buf_printf(out, " %lld%s%s", (long long)n->cards[i].used,
                       n->cards[i].unhealthy ? "!" : "", n->cards[i].claimed ? "c" : "");
        buf_putc(out, '\n');
    }
    cursor = 0;
    for (const struct pod *p = cache_next_pod(c, &cursor); p != NULL;
         p = cache_next_pod(c, &cursor))
        buf_printf(out, "%.*s %.*s %lld %d %d %d\n", STR_ARG(p->uid), STR_ARG(p->name),
                   (long long)p->request->mem, (int)p->state, (int)p->card, p->unreadable);
}
