/* Reads and writes the three gpushare annotations that say where a pod's memory and cores are. */
#include "objects/allocation.h"

#include "objects/limit.h"
#include "json/jread.h"
#include "json/jwrite.h"

struct grants {
    struct grant_view *items;
    size_t n;
    size_t cap;
};

/* Only the usual form of an index: "01" would be a second name for 1. */
static uint32_t allocation_read_key(struct jread *r, struct str key)
{
    uint64_t index = 0;
    bool padded = key.n > 1 && key.p[0] == '0';
    if (padded || !str_to_u64(key, UINT16_MAX - 1, &index))
        jread_fail(r, ERR_SYNTAX, "\"%.*s\" is no index", STR_ARG(key));
    return (uint32_t)index;
}

static void allocation_read_container(struct jread *r, struct arena *a, uint32_t container,
                                      struct grants *g)
{
    struct str key;
    jread_object (r, key) {
        uint32_t card = allocation_read_key(r, key);
        if (g->n == REQUEST_GRANTS_MAX)
            jread_fail(r, ERR_RANGE, "more than %d entries", REQUEST_GRANTS_MAX);
        struct grant_view one = {.container = container, .card = card, .mem = jread_i64(r)};
        struct grant_view *grown = arena_grow(a, g->items, g->n, &g->cap, sizeof(one));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for an allocation");
            continue;
        }
        g->items = grown;
        g->items[g->n++] = one;
    }
}

bool allocation_read(struct str text, struct arena *a, struct pod_view *ret)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct str key;
    struct grants g = {.n = 0};
    ret->has_allocation = false;
    if (text.n > LIMIT_ALLOCATION_BYTES)
        return true;
    jread_init(&r, text, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        uint32_t container = allocation_read_key(&r, key);
        allocation_read_container(&r, a, container, &g);
    }
    if (jread_finish(&r, &e) != OK)
        return !arena_failed(a);
    ret->has_allocation = true;
    ret->grants = g.items;
    ret->n_grants = g.n;
    return true;
}

void allocation_write_index(struct buf *out, const struct pod_allocation *h)
{
    for (uint32_t i = 0; i < h->n_shares; i++) {
        if (i > 0)
            buf_put(out, STR(","));
        buf_put_u64(out, h->shares[i].card);
    }
}

static void allocation_write_key(struct jwrite *w, uint32_t index)
{
    char digits[16];
    struct buf text = BUF_ON(digits);
    buf_put_u64(&text, index);
    jwrite_key(w, buf_str(&text));
}

static bool allocation_is_first(const struct pod_allocation *h, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (h->grants[j].container == h->grants[i].container)
            return false;
    }
    return true;
}

static void allocation_write_container(struct jwrite *w, const struct pod_allocation *h,
                                       uint16_t container, enum allocation_of what)
{
    allocation_write_key(w, container);
    jwrite_object_begin(w);
    for (uint32_t i = 0; i < h->n_grants; i++) {
        const struct grant *g = &h->grants[i];
        if (g->container != container)
            continue;
        allocation_write_key(w, g->card);
        jwrite_i64(w, what == ALLOCATION_OF_MEM ? g->mem : g->cores);
    }
    jwrite_object_end(w);
}

void allocation_write(struct buf *out, const struct pod_allocation *h, enum allocation_of what)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    for (uint32_t i = 0; i < h->n_grants; i++) {
        bool asked = what == ALLOCATION_OF_MEM || h->grants[i].cores > 0;
        if (asked && allocation_is_first(h, i))
            allocation_write_container(&w, h, h->grants[i].container, what);
    }
    jwrite_object_end(&w);
}

void allocation_write_plain(struct buf *out, const struct request *r, uint32_t card)
{
    const struct demand *d = &r->demands[0];
    if (r->n_demands == 1 && d->kind != CONTAINER_INIT)
        buf_printf(out, "{\"%u\":{\"%u\":%lld}}", d->index, card, (long long)d->mem);
    else
        buf_put(out, STR("{}"));
}
