/* The samples are taken whether a page is open or not, so that a page has its past at once. */
#include "daemon/page/ui_history.h"

#include "daemon/page/ui_write.h"

#include <stddef.h>
#include <string.h>

void ui_history_take(struct ui_history *h, const struct cache *c)
{
    struct ui_sample s = {.total = 0};
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (!ui_shows(n))
            continue;
        s.total += n->total;
        s.used += n->used;
        s.free = MAX_OF(s.free, MIN_OF(n->most_free, node_left(n)));
    }
    LIST_FOR_EACH (const struct pod, p, &c->pending, pending)
        s.pending += ui_waits(p) ? 1 : 0;
    h->samples[h->next] = s;
    h->next = (h->next + 1) % UI_HISTORY_SAMPLES;
    h->taken++;
}

static void ui_history_put(struct jwrite *w, const struct ui_history *h, struct str key,
                           size_t field)
{
    size_t n = (size_t)MIN_OF(h->taken, (uint64_t)UI_HISTORY_SAMPLES);
    jwrite_array_at(w, key);
    for (size_t i = 0; i < n; i++) {
        size_t at = (h->next + UI_HISTORY_SAMPLES - n + i) % UI_HISTORY_SAMPLES;
        int64_t value;
        memcpy(&value, (const char *)&h->samples[at] + field, sizeof(value));
        jwrite_i64(w, value);
    }
    jwrite_array_end(w);
}

void ui_history_write(struct jwrite *w, const struct ui_history *h)
{
    jwrite_object_begin(w);
    ui_history_put(w, h, STR("total"), offsetof(struct ui_sample, total));
    ui_history_put(w, h, STR("used"), offsetof(struct ui_sample, used));
    ui_history_put(w, h, STR("free"), offsetof(struct ui_sample, free));
    ui_history_put(w, h, STR("pending"), offsetof(struct ui_sample, pending));
    jwrite_object_end(w);
}
