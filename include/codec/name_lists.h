/*
 * The lists of names of earlier requests. kube-scheduler sends mostly the same names in the same
 * order, thousands of them: a list that is known is compared as a whole, and not read.
 *
 * A failed allocation only means that less is remembered.
 */
#pragma once

#include "base/str.h"

#define NAME_LISTS 4

struct name_list {
    uint64_t id;    /* no two lists ever have the same; 0: empty */
    uint64_t asked; /* name_lists.asked at the last use */
    char *bytes;    /* the elements as JSON and the bracket behind them; owned */
    size_t n_bytes;
    struct str *names; /* views of the bytes; owned */
    uint64_t
        *keys; /* of the names: if two differ, the names have the same order as the keys; owned */
    size_t n;
    size_t cap_bytes;
    size_t cap_names;
    size_t cap_keys;
};

/* Zeros are no lists. */
struct name_lists {
    struct name_list all[NAME_LISTS];
    uint64_t ids;
    uint64_t asked;
    unsigned unknown; /* lists that were learned or could have been */
};

void name_lists_done(struct name_lists *l);

/* The list with which the rest of a JSON document begins, from an array's first element on. NULL:
 * it is not known. Valid until the next call of name_lists_learn. */
const struct name_list *name_lists_find(struct name_lists *l, struct str rest);

/* Remembers some of the lists that were not found. text: the elements, which are the names in
 * quotes with a comma between two, and the bracket behind them. */
void name_lists_learn(struct name_lists *l, struct str text, const struct str *names, size_t n);
