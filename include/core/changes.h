/*
 * What has changed since somebody looked, without a log of it: all things in the order of their
 * last change, and the names of the last few that are gone. Who looks keeps a version up to which
 * he knows all; however long he was away, each thing is found once.
 *
 * A thing that nobody has looked at since it changed stays where it is: a busy one costs nothing.
 */
#pragma once

#include "limit.h"
#include "str.h"

struct changes;

struct change_link {
    struct changes *list;     /* NULL: nobody wants to know of it */
    struct change_link *next; /* the least recently changed first */
    struct change_link *prev;
    uint64_t version; /* of the last change; 0: none yet, and it is in no list */
};

#define CHANGES_NAME_MAX 253

struct change_gone {
    uint64_t version;
    size_t n;
    char name[CHANGES_NAME_MAX];
};

struct changes {
    struct change_link ring;
    uint64_t version; /* of the last change of all */
    uint64_t seen;    /* up to here somebody has looked */
    struct change_gone gone[LIMIT_GONE];
    uint64_t n_gone; /* so many in all */
    uint64_t lost;   /* who knows less than this has missed one that is gone */
};

void changes_init(struct changes *c);

void change_move(struct change_link *x);

/* It has changed. */
static inline void change_touch(struct change_link *x)
{
    if (x->list != NULL && (x->version == 0 || x->version <= x->list->seen))
        change_move(x);
}

/* It is about to be freed. */
void change_end(struct change_link *x, struct str name);

/* Now the caller may look at all up to the version that is returned. */
uint64_t changes_see(struct changes *c);

/* The least recently changed after that version; NULL: none. */
const struct change_link *changes_after(const struct changes *c, uint64_t version);
const struct change_link *changes_next(const struct changes *c, const struct change_link *x);

/* The next that is gone since that version; start with *cursor 0. */
const struct change_gone *changes_gone(const struct changes *c, uint64_t version, uint64_t *cursor);
