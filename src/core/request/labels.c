/* Packs a pod's labels into one shared block: for a hundred thousand pods with seven labels each
 * the struct label_view entries alone would take 22 MB. */
#include "core/request/labels.h"

#include "base/mem.h"

struct lengths {
    uint16_t key;
    uint16_t value;
};

struct labels {
    struct interned interned;
    uint32_t n;
    struct lengths lengths[]; /* the texts are stored behind them */
};

static bool labels_is_kept(const struct label_view *v)
{
    return v->key.n <= UINT16_MAX && v->value.n <= UINT16_MAX;
}

static const char *labels_texts_of(const struct labels *l)
{
    return (const char *)(l->lengths + l->n);
}

static enum errc labels_copy(const struct label_view *views, size_t n, struct labels **ret)
{
    size_t kept = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        kept += labels_is_kept(&views[i]) ? 1 : 0;
        bytes += labels_is_kept(&views[i]) ? views[i].key.n + views[i].value.n : 0;
    }
    *ret = NULL;
    if (kept == 0)
        return OK;
    struct labels *l = mem_alloc(sizeof(*l) + kept * sizeof(l->lengths[0]) + bytes);
    if (l == NULL)
        return ERR_NOMEM;
    char *at = (char *)(l->lengths + kept);
    for (size_t i = 0; i < n; i++) {
        if (!labels_is_kept(&views[i]))
            continue;
        l->lengths[l->n++] = (struct lengths){(uint16_t)views[i].key.n, (uint16_t)views[i].value.n};
        (void)str_store(&at, views[i].key);
        (void)str_store(&at, views[i].value);
    }
    assert(l->n == kept);
    *ret = l;
    return OK;
}

/* All bytes except the header of the table: equal bytes are equal labels. */
static struct str labels_bytes_of(const struct labels *l)
{
    const char *start = (const char *)l->lengths;
    const char *end = labels_texts_of(l);
    for (uint32_t i = 0; i < l->n; i++)
        end += l->lengths[i].key + l->lengths[i].value;
    return (struct str){start, (size_t)(end - start)};
}

static bool labels_is_like(const struct interned *thing, const void *like)
{
    const struct labels *l = (const struct labels *)(const void *)thing;
    const struct labels *other = like;
    return l->n == other->n && str_eq(labels_bytes_of(l), labels_bytes_of(other));
}

static uint64_t labels_hash_of(const struct intern_table *table, const struct labels *l)
{
    return siphash13(table->seed, labels_bytes_of(l));
}

enum errc labels_take(struct intern_table *table, const struct label_view *views, size_t n,
                      struct labels **ret)
{
    struct labels *l = NULL;
    *ret = NULL;
    enum errc code = labels_copy(views, n, &l);
    if (l == NULL)
        return code;
    struct interned *kept =
        intern_keep(table, &l->interned, labels_hash_of(table, l), labels_is_like);
    if (kept == NULL)
        return ERR_NOMEM;
    *ret = CONTAINER_OF(kept, struct labels, interned);
    return OK;
}

void labels_give(struct intern_table *table, struct labels *l)
{
    if (l != NULL)
        intern_give(table, &l->interned);
}

void labels_check(const struct intern_table *table, const struct labels *l)
{
    assert(intern_find(table, labels_hash_of(table, l), labels_is_like, l) == &l->interned);
}

/* Returns the label at *at and moves *at behind it. */
static struct label_view labels_label_next(const struct labels *l, uint32_t i, const char **at)
{
    assert(i < l->n);
    struct label_view v = {.key = {*at, l->lengths[i].key},
                           .value = {*at + l->lengths[i].key, l->lengths[i].value}};
    *at += v.key.n + v.value.n;
    return v;
}

bool labels_same(const struct labels *l, const struct label_view *views, size_t n)
{
    uint32_t at = 0;
    const char *text = l == NULL ? NULL : labels_texts_of(l);
    for (size_t i = 0; i < n; i++) {
        if (!labels_is_kept(&views[i]))
            continue;
        if (at == labels_count(l))
            return false;
        struct label_view mine = labels_label_next(l, at++, &text);
        if (!str_eq(mine.key, views[i].key) || !str_eq(mine.value, views[i].value))
            return false;
    }
    return at == labels_count(l);
}

uint32_t labels_count(const struct labels *l)
{
    return l == NULL ? 0 : l->n;
}

void labels_view(const struct labels *l, struct label_view *ret)
{
    const char *text = l == NULL ? NULL : labels_texts_of(l);
    for (uint32_t i = 0; i < labels_count(l); i++)
        ret[i] = labels_label_next(l, i, &text);
}
