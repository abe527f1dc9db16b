/* Random containers with cards, of all dialects. */
#pragma once

#include "dialect_rig.h"

static inline void draw_containers(uint64_t *dice, enum dialect d, char *out, size_t size)
{
    uint32_t n = d == DIALECT_VOLCANO ? 1 : 1 + seeded_draw(dice, 3);
    bool whole = d != DIALECT_VOLCANO && seeded_draw(dice, 5) == 0;
    struct buf text;
    const struct dialect_facts *f = dialect_facts(d);
    buf_init(&text, size);
    buf_put(&text, STR("\"containers\":["));
    for (uint32_t i = 0; i < (whole ? 1 : n); i++) {
        buf_printf(&text, "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{", i == 0 ? "" : ",", i);
        if (whole)
            buf_printf(&text, "\"%.*s\":\"%u\"", STR_ARG(f->cores),
                       100 * (1 + seeded_draw(dice, 2)));
        else if (d == DIALECT_VOLCANO)
            buf_printf(&text, "\"%.*s\":\"%u\"", STR_ARG(f->mem), 1 + seeded_draw(dice, 12));
        else
            buf_printf(&text, "\"%.*s\":\"%u\",\"%.*s\":\"%u\"", STR_ARG(f->mem),
                       1 + seeded_draw(dice, 8), STR_ARG(f->cores), 5 * (1 + seeded_draw(dice, 9)));
        buf_put(&text, STR("}}}"));
    }
    buf_put(&text, STR("]"));
    ck_assert_uint_lt(text.n, size);
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    buf_done(&text);
}

/* A container with cards of a dialect whose pods name their cards by UUID. */
struct asked {
    uint32_t part; /* its place in the list */
    uint32_t cards;
    int64_t mem; /* of each card; 0: percent */
    uint32_t percent;
    uint32_t cores;
    enum container_kind kind;
};

#define ASKED_MAX 6

struct drawn {
    char containers[4096];
    struct asked asked[ASKED_MAX]; /* init containers first */
    uint32_t n;
    uint32_t n_inits; /* of them, with the sidecars */
};

static inline void draw_limits(uint64_t *dice, const struct dialect_facts *f, struct asked *a,
                               struct buf *text)
{
    uint32_t kind = seeded_draw(dice, 4);
    a->cards = 1 + seeded_draw(dice, 2);
    a->percent = 100;
    buf_printf(text, "\"%.*s\":\"%u\"", STR_ARG(f->count), a->cards);
    if (kind < 2) {
        a->mem = 1 + seeded_draw(dice, 8);
        buf_printf(text, ",\"%.*s\":\"%lld\"", STR_ARG(f->mem), (long long)a->mem);
    } else if (kind == 2) {
        a->percent = 5 + seeded_draw(dice, 50);
        buf_printf(text, ",\"%.*s\":\"%u\"", STR_ARG(f->percent), a->percent);
    }
    if (seeded_draw(dice, 2) == 0) {
        a->cores = 10 * (1 + seeded_draw(dice, 10));
        buf_printf(text, ",\"%.*s\":\"%u\"", STR_ARG(f->cores), a->cores);
    }
}

/* Up to three init containers, of which some have cards and some are sidecars. Volcano's plugin
 * serves none of them, and does not count them. */
static inline uint32_t draw_inits(uint64_t *dice, const struct dialect_facts *f, struct drawn *ret,
                                  struct buf *text)
{
    uint32_t inits = seeded_draw(dice, 4);
    if (inits > 0)
        buf_put(text, STR("\"initContainers\":["));
    for (uint32_t i = 0; i < inits; i++) {
        bool sidecar = seeded_draw(dice, 3) == 0;
        buf_printf(text, "%s{\"name\":\"i%u\"%s", i == 0 ? "" : ",", i,
                   sidecar ? ",\"restartPolicy\":\"Always\"" : "");
        if (f->inits && seeded_draw(dice, 2) == 0) {
            struct asked *a = &ret->asked[ret->n++];
            *a = (struct asked){.part = i, .kind = sidecar ? CONTAINER_SIDECAR : CONTAINER_INIT};
            buf_put(text, STR(",\"resources\":{\"limits\":{"));
            draw_limits(dice, f, a, text);
            buf_put(text, STR("}}"));
        }
        buf_put(text, STR("}"));
    }
    if (inits > 0)
        buf_put(text, STR("],"));
    ret->n_inits = ret->n;
    return inits;
}

/* One to three containers with cards among others; Volcano's plugin serves one. */
static inline void draw_devices(uint64_t *dice, enum dialect d, struct drawn *ret)
{
    const struct dialect_facts *f = dialect_facts(d);
    uint32_t wanted = f->one ? 1 : 1 + seeded_draw(dice, 3);
    struct buf text = BUF_ON(ret->containers);
    ret->n = 0;
    uint32_t inits = draw_inits(dice, f, ret, &text);
    uint32_t part = f->inits_first ? inits : 0;
    buf_put(&text, STR("\"containers\":["));
    for (uint32_t i = 0; i < wanted; i++) {
        for (uint32_t between = seeded_draw(dice, 3); between > 0; between--)
            buf_printf(&text, "{\"name\":\"b%u\"},", part++);
        struct asked *a = &ret->asked[ret->n++];
        *a = (struct asked){.part = part};
        buf_printf(&text, "{\"name\":\"c%u\",\"resources\":{\"limits\":{", part++);
        draw_limits(dice, f, a, &text);
        buf_put(&text, i + 1 < wanted ? STR("}}},") : STR("}}}"));
    }
    if (seeded_draw(dice, 2) == 0)
        buf_put(&text, STR(",{\"name\":\"last\"}"));
    buf_printf(&text, "]%c", 0);
    ck_assert(!buf_failed(&text));
}
