/* A list replaces the one that was not used for the longest time, in the same memory if that is
 * enough, and all lists soon have room for the longest: lists of a cluster that does not grow need
 * no allocation. */
#include "codec/name_lists.h"

#include "base/mem.h"
#include "codec/limit.h"

#include <endian.h>

/* A shorter list is read as fast. */
#define NAMES_MIN 32

/* One of so many unknown lists is remembered: in a cluster where the order is never the same that
 * would be for nothing. */
#define LEARN_EACH 4

#define CAP_MIN 1024

void name_lists_done(struct name_lists *l)
{
    for (size_t i = 0; i < NAME_LISTS; i++) {
        mem_free(l->all[i].bytes);
        mem_free(l->all[i].names);
        mem_free(l->all[i].keys);
    }
    *l = (struct name_lists){.ids = 0};
}

const struct name_list *name_lists_find(struct name_lists *l, struct str rest)
{
    for (size_t i = 0; i < NAME_LISTS; i++) {
        struct name_list *x = &l->all[i];
        if (x->id != 0 && x->n_bytes <= rest.n && memcmp(x->bytes, rest.p, x->n_bytes) == 0) {
            x->asked = ++l->asked;
            return x;
        }
    }
    return NULL;
}

/* Makes room for so many bytes in *p, or for as many as any other list has. False: no memory; *p is
 * as before. */
static bool name_lists_grow(char **p, size_t *cap, size_t bytes, size_t others)
{
    size_t more = MAX_OF(MAX_OF(*cap, others), (size_t)CAP_MIN);
    while (more < bytes)
        more *= 2;
    if (more == *cap)
        return true;
    char *grown = mem_resize(*p, more);
    if (grown == NULL)
        return false;
    *p = grown;
    *cap = more;
    return true;
}

static bool name_lists_make_room(const struct name_lists *l, struct name_list *x, size_t bytes,
                                 size_t n)
{
    char *names = (char *)x->names;
    char *keys = (char *)x->keys;
    struct name_list most = {.id = 0};
    for (size_t i = 0; i < NAME_LISTS; i++) {
        most.cap_bytes = MAX_OF(most.cap_bytes, l->all[i].cap_bytes);
        most.cap_names = MAX_OF(most.cap_names, l->all[i].cap_names);
        most.cap_keys = MAX_OF(most.cap_keys, l->all[i].cap_keys);
    }
    x->id = 0;
    bool there = name_lists_grow(&x->bytes, &x->cap_bytes, bytes, most.cap_bytes) &&
                 name_lists_grow(&names, &x->cap_names, n * sizeof(*x->names), most.cap_names) &&
                 name_lists_grow(&keys, &x->cap_keys, n * sizeof(*x->keys), most.cap_keys);
    x->keys = (uint64_t *)(void *)keys;
    x->names = (struct str *)(void *)names;
    return there;
}

/* The bytes at the start of all names. */
static size_t name_lists_common(const struct str *names, size_t n)
{
    size_t common = names[0].n;
    for (size_t i = 1; i < n; i++) {
        size_t same = 0;
        common = MIN_OF(common, names[i].n);
        while (same < common && names[i].p[same] == names[0].p[same])
            same++;
        common = same;
    }
    return common;
}

/* The key is the next eight bytes: two names whose keys differ have the order of their keys. */
static void name_lists_make_keys(struct name_list *x)
{
    size_t common = name_lists_common(x->names, x->n);
    for (size_t i = 0; i < x->n; i++) {
        uint64_t key = 0;
        struct str rest = str_skip(x->names[i], common);
        if (rest.n > 0)
            memcpy(&key, rest.p, MIN_OF(rest.n, sizeof(key)));
        x->keys[i] = be64toh(key);
    }
}

void name_lists_learn(struct name_lists *l, struct str text, const struct str *names, size_t n)
{
    struct name_list *x = &l->all[0];
    if (n < NAMES_MIN || text.n + n * sizeof(*names) > LIMIT_NAME_LIST_BYTES ||
        l->unknown++ % LEARN_EACH != 0)
        return;
    for (size_t i = 1; i < NAME_LISTS; i++)
        x = l->all[i].asked < x->asked ? &l->all[i] : x;
    if (!name_lists_make_room(l, x, text.n, n))
        return;
    memcpy(x->bytes, text.p, text.n);
    for (size_t i = 0; i < n; i++)
        x->names[i] = (struct str){x->bytes + (names[i].p - text.p), names[i].n};
    x->n_bytes = text.n;
    x->n = n;
    name_lists_make_keys(x);
    x->id = ++l->ids;
    x->asked = ++l->asked;
}
