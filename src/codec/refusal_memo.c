/* Maps are written at the third question with the same reasons: pods that come once or twice are
 * not worth it. They stay as they are. A question of which they miss too much is another one, even
 * if its reasons are the same: pods of two kinds may have a reason in common, and maps that are
 * written for one and the other in turn serve none. */
#include "codec/refusal_memo.h"

#include "base/mem.h"
#include "codec/limit.h"

#include <limits.h>

/* Questions after the first one before the maps are written. */
#define WAITS 2

/* Candidates that the maps may miss: one of so many, or this number. */
#define MISSED_PART 16
#define MISSED_MIN  16

/* Maps that were in use within so many questions do not make room for others. */
#define IN_USE 32

/* After so many maps that were for nothing, and for one that had no room, none is written within
 * RETRY questions. */
#define UNUSED_MAX 4
#define RETRY      32

static void refusal_memo_drop_maps(struct refusal_known *k)
{
    for (unsigned i = 0; i < REFUSAL_MAPS; i++) {
        mem_free(k->maps[i].bytes);
        mem_free(k->maps[i].at);
        k->maps[i] = (struct refusal_text){NULL, NULL};
    }
    mem_free(k->kinds);
    k->kinds = NULL;
    k->bytes = 0;
}

static void refusal_memo_forget(struct refusal_known *k)
{
    refusal_memo_drop_maps(k);
    k->list = 0;
    k->asked = 0;
}

void refusal_memo_done(struct refusal_memo *m)
{
    for (unsigned i = 0; i < REFUSAL_KNOWN; i++)
        refusal_memo_forget(&m->all[i]);
}

struct refusal_known *refusal_memo_begin(struct refusal_memo *m, uint64_t list, size_t n)
{
    struct refusal_known *k = &m->all[0];
    for (unsigned i = 1; i < REFUSAL_KNOWN; i++)
        k = m->all[i].asked < k->asked ? &m->all[i] : k;
    refusal_memo_drop_maps(k);
    k->list = list;
    k->asked = ++m->asked;
    k->n = n;
    k->n_reasons = 0;
    k->n_texts = 0;
    k->waits = 0;
    k->retry = 0;
    return k;
}

void refusal_memo_note(struct refusal_known *k, const struct refusal_reason *r)
{
    assert(r->kind != 0);
    if (k->list == 0)
        return;
    if (k->n_reasons == REFUSAL_REASONS || r->text.n > sizeof(k->texts) - k->n_texts) {
        refusal_memo_forget(k);
        return;
    }
    char *text = k->texts + k->n_texts;
    memcpy(text, r->text.p, r->text.n);
    k->n_texts += r->text.n;
    k->reasons[k->n_reasons++] =
        (struct refusal_reason){r->kind, r->unresolvable, {text, r->text.n}};
}

bool refusal_memo_misses_many(size_t n, size_t missed)
{
    return missed > MAX_OF(n / MISSED_PART, (size_t)MISSED_MIN);
}

/* ---- writing the maps ---- */

/* The reasons by kind. */
struct refusal_table {
    const struct refusal_reason *of[UCHAR_MAX + 1];
};

static void refusal_memo_tabulate(const struct refusal_known *k, struct refusal_table *ret)
{
    *ret = (struct refusal_table){.of = {NULL}};
    for (unsigned i = 0; i < k->n_reasons; i++)
        ret->of[k->reasons[i].kind] = &k->reasons[i];
}

static bool refusal_memo_has(const struct refusal_reason *r, enum refusal_map which)
{
    return r != NULL && (which == REFUSAL_ALL || r->unresolvable);
}

static size_t refusal_memo_bytes(const struct refusal_known *k, const struct refusal_table *t,
                                 enum refusal_map which, const struct str *names,
                                 const unsigned char *kinds)
{
    size_t bytes = 0;
    for (size_t i = 0; i < k->n; i++) {
        const struct refusal_reason *r = t->of[kinds[i]];
        bytes += refusal_memo_has(r, which) ? strlen(",\"") + names[i].n + r->text.n : 0;
    }
    return bytes;
}

static bool refusal_memo_write(struct refusal_known *k, const struct refusal_table *t,
                               enum refusal_map which, size_t bytes, const struct str *names)
{
    struct refusal_text *map = &k->maps[which];
    map->bytes = mem_alloc(bytes + 1);
    map->at = mem_alloc((k->n + 1) * sizeof(*map->at));
    if (map->bytes == NULL || map->at == NULL)
        return false;
    char *to = map->bytes;
    for (size_t i = 0; i < k->n; i++) {
        const struct refusal_reason *r = t->of[k->kinds[i]];
        map->at[i] = (uint32_t)(to - map->bytes);
        if (!refusal_memo_has(r, which))
            continue;
        *to++ = ',';
        *to++ = '"';
        to = str_copy(to, names[i]);
        to = str_copy(to, r->text);
    }
    map->at[k->n] = (uint32_t)(to - map->bytes);
    assert(map->at[k->n] == bytes);
    return true;
}

/* Whether all maps fit into the limit with so many bytes more, after those that are not in use are
 * gone. */
static bool refusal_memo_make_room(struct refusal_memo *m, size_t bytes)
{
    size_t held = 0;
    for (unsigned i = 0; i < REFUSAL_KNOWN; i++) {
        struct refusal_known *k = &m->all[i];
        if (m->asked - k->asked > IN_USE)
            refusal_memo_drop_maps(k);
        held += k->bytes;
    }
    return bytes <= LIMIT_REFUSALS_BYTES && held <= LIMIT_REFUSALS_BYTES - bytes;
}

/* Candidates of a kind that has no text in common get no entry. */
static size_t refusal_memo_count_without(const struct refusal_known *k,
                                         const struct refusal_table *t, const unsigned char *kinds)
{
    size_t without = 0;
    for (size_t i = 0; i < k->n; i++)
        without += kinds[i] != 0 && t->of[kinds[i]] == NULL ? 1 : 0;
    return without;
}

static bool refusal_memo_keep_kinds(struct refusal_known *k, const struct refusal_table *t,
                                    const unsigned char *kinds)
{
    k->kinds = mem_alloc(k->n);
    for (size_t i = 0; k->kinds != NULL && i < k->n; i++)
        k->kinds[i] = t->of[kinds[i]] == NULL ? 0 : kinds[i];
    return k->kinds != NULL;
}

static bool refusal_memo_learn(struct refusal_memo *m, struct refusal_known *k,
                               const struct refusal_table *t, const struct str *names,
                               const unsigned char *kinds)
{
    size_t bytes[REFUSAL_MAPS];
    size_t all = k->n + REFUSAL_MAPS * (k->n + 1) * sizeof(uint32_t);
    for (unsigned i = 0; i < REFUSAL_MAPS; i++) {
        bytes[i] = refusal_memo_bytes(k, t, (enum refusal_map)i, names, kinds);
        all += bytes[i];
    }
    m->tries++;
    if (!refusal_memo_make_room(m, all)) {
        k->retry = m->asked + RETRY;
        return false;
    }
    k->bytes = all;
    if (refusal_memo_keep_kinds(k, t, kinds) &&
        refusal_memo_write(k, t, REFUSAL_ALL, bytes[REFUSAL_ALL], names) &&
        refusal_memo_write(k, t, REFUSAL_UNRESOLVABLE, bytes[REFUSAL_UNRESOLVABLE], names))
        return true;
    refusal_memo_forget(k);
    return false;
}

static enum refusal_likeness refusal_memo_recall(struct refusal_memo *m, struct refusal_known *k,
                                                 const unsigned char *kinds)
{
    size_t missed = 0;
    for (size_t i = 0; i < k->n; i++)
        missed += k->kinds[i] != kinds[i] ? 1 : 0;
    if (refusal_memo_misses_many(k->n, missed))
        return REFUSAL_OTHER;
    k->asked = ++m->asked;
    m->unused = 0;
    return REFUSAL_COPIES;
}

enum refusal_likeness refusal_memo_prepare(struct refusal_memo *m, struct refusal_known *k,
                                           const struct str *names, const unsigned char *kinds)
{
    struct refusal_table t;
    if (k->kinds != NULL)
        return refusal_memo_recall(m, k, kinds);
    if (m->asked < k->retry || (m->unused >= UNUSED_MAX && m->asked < m->retry)) {
        k->asked = ++m->asked;
        return REFUSAL_NOTED;
    }
    refusal_memo_tabulate(k, &t);
    if (refusal_memo_misses_many(k->n, refusal_memo_count_without(k, &t, kinds)))
        return REFUSAL_OTHER;
    k->asked = ++m->asked;
    if (++k->waits < WAITS || !refusal_memo_learn(m, k, &t, names, kinds))
        return REFUSAL_NOTED;
    m->unused++;
    m->retry = m->asked + RETRY;
    return REFUSAL_COPIES;
}

/* ---- questions ---- */

size_t refusal_memo_same(const struct refusal_known *k, const unsigned char *kinds, size_t i)
{
    uint64_t known = 0;
    uint64_t asked = 0;
    for (; i + sizeof(known) <= k->n; i += sizeof(known)) {
        memcpy(&known, k->kinds + i, sizeof(known));
        memcpy(&asked, kinds + i, sizeof(asked));
        if (known != asked)
            break;
    }
    while (i < k->n && k->kinds[i] == kinds[i])
        i++;
    return i;
}

struct str refusal_memo_entries(const struct refusal_known *k, enum refusal_map which, size_t begin,
                                size_t end)
{
    const struct refusal_text *map = &k->maps[which];
    assert(begin <= end && end <= k->n);
    return (struct str){map->bytes + map->at[begin], map->at[end] - map->at[begin]};
}
