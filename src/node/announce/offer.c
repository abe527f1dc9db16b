/* Decides what is offered of each card. */
#include "node/announce/offer.h"

int64_t offer_units(uint64_t memory_bytes, const struct settings *s)
{
    assert(s->unit_bytes > 0);
    if (memory_bytes <= s->reserve_bytes)
        return 0;
    return (int64_t)((memory_bytes - s->reserve_bytes) / s->unit_bytes);
}

/* A slice belongs to the setting as its card does. */
bool offer_has(const struct gpu_card *c, const struct settings *s)
{
    return settings_has_card(s, c->index, c->uuid) ||
           (c->parent.n > 0 && settings_has_card(s, UINT32_MAX, c->parent));
}

size_t offer_select(const struct gpu_card *cards, size_t n, const struct settings *s,
                    struct announce_card *ret)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gpu_card *c = &cards[i];
        if (!offer_has(c, s))
            continue;
        ret[found++] = (struct announce_card){.index = c->index,
                                              .units = offer_units(c->memory_bytes, s),
                                              .numa = c->numa,
                                              .health = c->health,
                                              .reason = c->reason,
                                              .needs_reset = c->needs_reset,
                                              .uuid = c->uuid,
                                              .pci = c->pci,
                                              .model = c->model,
                                              .profile = c->profile};
    }
    return found;
}

static const struct card_offer *offer_find(const struct offer *o, uint32_t index)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->items[i].index == index)
            return &o->items[i];
    }
    return NULL;
}

bool offer_update(struct offer *o, const struct announce_card *cards, size_t n,
                  bool (*has_written)(void *ctx, uint32_t index), void *ctx)
{
    bool changed = false;
    struct offer next = {.n = 0};
    for (size_t i = 0; i < n && next.n < LIMIT_GPU_CARDS; i++) {
        const struct announce_card *c = &cards[i];
        const struct card_offer *was = offer_find(o, c->index);
        if (c->units <= 0)
            continue;
        bool hold = was != NULL && was->healthy && !has_written(ctx, c->index);
        struct card_offer *now = &next.items[next.n++];
        *now = (struct card_offer){.index = c->index,
                                   .units = c->units,
                                   .healthy = c->health != GPU_UNHEALTHY || hold,
                                   .numa = c->numa};
        changed = changed || was == NULL || was->units != now->units ||
                  was->healthy != now->healthy || was->numa != now->numa;
    }
    changed = changed || next.n != o->n;
    *o = next;
    return changed;
}
