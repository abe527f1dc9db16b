/*
 * Table of pods that filter has refused only because of the cards: since when, and on which nodes.
 * The nodes are candidates of the last filter call that have enough free memory in total, but not
 * on the cards that the pod needs. The table has a fixed size: an entry stays until it is forgotten
 * or a pod of higher priority needs its place.
 */
#pragma once

#include "base/buf.h"
#include "daemon/limit.h"

/* The longest UID: those of the API server are much shorter. */
#define REFUSAL_UID_BYTES 128

struct refusal {
    char uid[REFUSAL_UID_BYTES];
    size_t uid_n; /* 0: unused */
    int32_t priority;
    uint64_t since_ms;      /* refused in every filter call since */
    uint64_t last_ms;       /* the last filter call */
    uint64_t not_before_ms; /* no rescue before this time */
    unsigned tries;         /* rescues without success */
    struct buf nodes;       /* names, each followed by a NUL */
    uint32_t n_nodes;
};

struct refusals {
    struct refusal all[LIMIT_REFUSALS];
};

void refusals_init(struct refusals *r);
void refusals_done(struct refusals *r);

/* Finds or adds the entry and clears its nodes. NULL: the table is full, and no entry has a lower
 * priority. */
struct refusal *refusals_note(struct refusals *r, struct str uid, int32_t priority,
                              uint64_t now_ms);

/* Adds a node; ignored beyond LIMIT_REFUSAL_NODES. */
void refusal_add(struct refusal *f, struct str node);

/* NULL: no entry. */
struct refusal *refusals_get(struct refusals *r, struct str uid);
void refusals_forget(struct refusals *r, struct str uid);

static inline bool refusal_used(const struct refusal *f)
{
    return f->uid_n > 0;
}

static inline struct str refusal_uid(const struct refusal *f)
{
    return (struct str){f->uid, f->uid_n};
}

/* The next name of `nodes` (struct refusal); start with *cursor 0. False: no more names. */
bool refusal_next(struct str nodes, size_t *cursor, struct str *ret);

/* The pod with the highest priority that has been refused for after_ms and may be rescued now;
 * among equals the one refused first. NULL: none. */
struct refusal *refusals_due(struct refusals *r, uint64_t after_ms, uint64_t now_ms);
