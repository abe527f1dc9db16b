/*
 * Reads the table of cards of HAMi's family. As with cardpack's own table, a bad one is not an
 * error of the caller: the node's cards are not used then.
 */
#include "objects/vgpu_cards.h"

#include "core/limit.h"
#include "core/request/request.h"
#include "objects/limit.h"
#include "json/jread.h"

struct vgpu_table {
    struct arena *arena;
    struct str cordon;
    struct card_view *items;
    size_t n;
    size_t cap;
    const char *fault;
    bool indexed; /* each card has an index of its own */
};

/* What the fields of one card say, before they are checked. */
struct vgpu_row {
    struct str uuid;
    struct str type;
    struct str mode;
    int64_t count;
    int64_t mem;
    int64_t cores; /* percent of its compute for pods, more with deviceCoreScaling */
    int64_t index; /* -1: none */
    int64_t numa;
    bool healthy;
};

#define FIELDS_MAX 9

static void vgpu_cards_fail(struct vgpu_table *t, const char *why)
{
    if (t->fault == NULL)
        t->fault = why;
}

static bool vgpu_cards_are_known(const struct vgpu_table *t, struct str uuid)
{
    for (size_t i = 0; i < t->n; i++) {
        if (str_eq(t->items[i].uuid, uuid))
            return true;
    }
    return false;
}

/* Whether a list as "GPU-a,GPU-b" has the UUID. */
static bool vgpu_cards_name(struct str list, struct str uuid)
{
    struct str one;
    while (list.n > 0) {
        (void)str_cut(list, ',', &one, &list);
        if (str_eq(str_trim(one), uuid))
            return true;
    }
    return false;
}

/* A pod's list names the card by it, so it must not have a character that divides the list. */
static bool vgpu_cards_is_id(struct str uuid)
{
    for (size_t i = 0; i < uuid.n; i++) {
        if (memchr(",:;[", uuid.p[i], 4) != NULL)
            return false;
    }
    return uuid.n > 0 && uuid.n <= LIMIT_CARD_NAME;
}

static void vgpu_cards_add(struct vgpu_table *t, const struct vgpu_row *row)
{
    struct str model = str_starts(row->type, STR("NVIDIA-")) ? str_skip(row->type, 7) : row->type;
    bool usable = row->healthy && row->mem > 0 && row->count > 0 && !str_eq(row->mode, STR("mig"));
    if (!vgpu_cards_is_id(row->uuid) || model.n > LIMIT_CARD_NAME)
        vgpu_cards_fail(t, "has a card without a usable ID");
    else if (row->mem < 0 || row->mem > REQUEST_MEM_MAX)
        vgpu_cards_fail(t, "has a card with an impossible memory");
    else if (row->count < 0 || row->count > UINT32_MAX)
        vgpu_cards_fail(t, "has a card with an impossible count");
    else if (row->cores < 0)
        vgpu_cards_fail(t, "has a card with an impossible compute");
    else if (t->n == LIMIT_CARDS)
        vgpu_cards_fail(t, "has too many cards");
    else if (vgpu_cards_are_known(t, row->uuid))
        vgpu_cards_fail(t, "has an ID twice");
    if (t->fault != NULL)
        return;
    struct card_view *grown = arena_grow(t->arena, t->items, t->n, &t->cap, sizeof(*t->items));
    if (grown == NULL)
        return;
    t->items = grown;
    t->indexed = t->indexed && row->index >= 0 && row->index < LIMIT_CARDS;
    for (size_t i = 0; i < t->n && t->indexed; i++)
        t->indexed = t->items[i].index != (uint32_t)row->index;
    t->items[t->n++] = (struct card_view){
        .index = t->indexed ? (uint32_t)row->index : 0,
        .max_pods = (uint32_t)row->count,
        .mem = row->mem,
        .withheld = (uint8_t)MAX_OF(REQUEST_CORES_MAX - row->cores, (int64_t)0),
        .numa = row->numa < 0 || row->numa > INT32_MAX ? -1 : (int32_t)row->numa,
        .unhealthy = !usable,
        .cordoned = vgpu_cards_name(t->cordon, row->uuid),
        .model = model,
        .uuid = row->uuid,
    };
}

static void vgpu_cards_read_object(struct jread *r, struct vgpu_row *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("id")))
            ret->uuid = jread_str(r);
        else if (str_eq(key, STR("type")))
            ret->type = jread_str(r);
        else if (str_eq(key, STR("mode")))
            ret->mode = jread_str(r);
        else if (str_eq(key, STR("count")))
            ret->count = jread_i64(r);
        else if (str_eq(key, STR("devmem")))
            ret->mem = jread_i64(r);
        else if (str_eq(key, STR("devcore")))
            ret->cores = jread_i64(r);
        else if (str_eq(key, STR("index")))
            ret->index = jread_i64(r);
        else if (str_eq(key, STR("numa")))
            ret->numa = jread_i64(r);
        else if (str_eq(key, STR("health")))
            ret->healthy = jread_bool(r);
        else
            jread_skip(r);
    }
}

/* A field that is zero or false is left out. */
static void vgpu_cards_read_json(struct vgpu_table *t, struct str text)
{
    struct jread r;
    struct err e = ERR_INIT;
    jread_init(&r, text, t->arena);
    jread_array (&r) {
        struct vgpu_row row = {.index = 0};
        vgpu_cards_read_object(&r, &row);
        if (!jread_failed(&r))
            vgpu_cards_add(t, &row);
    }
    if (jread_finish(&r, &e) != OK)
        vgpu_cards_fail(t, "can't be read");
}

static bool vgpu_cards_read_bool(struct str text, bool *ret)
{
    *ret = str_eq(text, STR("true"));
    return *ret || str_eq(text, STR("false"));
}

/* n: how many fields there are, which says which program wrote them. */
static bool vgpu_cards_read_fields(const struct str *f, size_t n, struct vgpu_row *ret)
{
    bool hami = n >= 7;
    struct str health = f[hami ? 6 : 4];
    if (n != 5 && n != 6 && n != 7 && n != 9)
        return false;
    *ret = (struct vgpu_row){
        .uuid = f[0], .type = f[hami ? 4 : 3], .cores = REQUEST_CORES_MAX, .index = -1, .numa = -1};
    if (!str_to_i64(f[1], &ret->count) || !str_to_i64(f[2], &ret->mem) ||
        (hami && !str_to_i64(f[3], &ret->cores)) || !vgpu_cards_read_bool(health, &ret->healthy) ||
        (hami && !str_to_i64(f[5], &ret->numa)) || (n == 9 && !str_to_i64(f[7], &ret->index)))
        return false;
    if (n == 6 || n == 9)
        ret->mode = f[n - 1];
    return true;
}

static void vgpu_cards_read_lines(struct vgpu_table *t, struct str text)
{
    struct str rest = text;
    while (rest.n > 0 && t->fault == NULL) {
        struct str fields[FIELDS_MAX];
        struct vgpu_row row;
        struct str line;
        size_t n = 0;
        (void)str_cut(rest, ':', &line, &rest);
        if (line.n == 0)
            continue;
        while (line.n > 0 && n < FIELDS_MAX)
            (void)str_cut(line, ',', &fields[n++], &line);
        if (line.n > 0 || n < 5 || !vgpu_cards_read_fields(fields, n, &row))
            vgpu_cards_fail(t, "can't be read");
        else
            vgpu_cards_add(t, &row);
    }
}

bool vgpu_cards_read(struct str text, struct str name, struct arena *a, struct capacity_view *ret)
{
    struct vgpu_table t = {.arena = a, .cordon = ret->cordon, .indexed = true};
    struct str all = str_trim(text);
    ret->has_cards = true;
    if (all.n > LIMIT_CARDS_TEXT)
        vgpu_cards_fail(&t, "is too long");
    else if (all.n > 0 && all.p[0] == '[')
        vgpu_cards_read_json(&t, all);
    else
        vgpu_cards_read_lines(&t, all);
    if (t.fault == NULL && t.n == 0)
        vgpu_cards_fail(&t, "has no card");
    for (size_t i = 0; i < t.n && !t.indexed; i++)
        t.items[i].index = (uint32_t)i;
    if (t.fault == NULL) {
        ret->cards = t.items;
        ret->n_cards = t.n;
        return !arena_failed(a);
    }
    char bytes[128];
    struct buf sentence = BUF_ON(bytes);
    buf_printf(&sentence, "%.*s %s", STR_ARG(name), t.fault);
    struct str why = buf_str(&sentence);
    char *copy = arena_alloc(a, why.n + 1);
    ret->cards_fault = copy;
    if (copy != NULL)
        memcpy(copy, why.p, why.n);
    return !arena_failed(a);
}
