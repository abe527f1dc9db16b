/*
 * What has changed since a reader last looked, without a log of changes: all things in the order of
 * their last change, and the names of the last few that were removed. Each reader keeps the version
 * up to which it has read. However long it was away, it finds each changed thing once.
 *
 * A thing that changes again before any reader has looked keeps its place: frequent changes cost
 * nothing.
 */
#pragma once

#include "base/list.h"
#include "base/str.h"
#include "core/limit.h"

struct changes;

struct change_link {
    struct changes *list;  /* NULL: changes are not recorded */
    struct list_link link; /* in the list's `all` */
    uint64_t version;      /* of the last change; 0: no change yet, and not in the list */
};

#define CHANGES_NAME_MAX 253

struct change_gone {
    uint64_t version;
    size_t n;
    char name[CHANGES_NAME_MAX];
};

struct changes {
    struct list all;  /* changed things, the least recently changed first */
    uint64_t version; /* of the latest change of any thing */
    uint64_t seen;    /* the latest version that a reader has seen */
    uint64_t stamps;  /* how many were given by change_stamp */
    struct change_gone gone[LIMIT_GONE];
    uint64_t n_gone; /* how many were removed in all */
    uint64_t lost;   /* a reader below this version has missed a removal */
};

void changes_init(struct changes *c);

void change_move(struct change_link *x);

/* Records that the thing has changed. */
static inline void change_touch(struct change_link *x)
{
    if (x->list != NULL && (x->version == 0 || x->version <= x->list->seen))
        change_move(x);
}

/* A number that no other call for this list returned before. Without a list: last + 1. */
static inline uint64_t change_stamp(const struct change_link *x, uint64_t last)
{
    return x->list == NULL ? last + 1 : ++x->list->stamps;
}

/* Records that the thing is about to be freed. */
void change_end(struct change_link *x, struct str name);

/* Returns the current version. The caller may now read all changes up to it. */
uint64_t changes_see(struct changes *c);

/* The least recently changed thing after that version; NULL: none. */
const struct change_link *changes_after(const struct changes *c, uint64_t version);
const struct change_link *changes_next(const struct changes *c, const struct change_link *x);

/* The next thing that was removed after that version. Start with *cursor 0. */
const struct change_gone *changes_gone(const struct changes *c, uint64_t version, uint64_t *cursor);
