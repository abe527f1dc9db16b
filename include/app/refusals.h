/*
 * Pods that filter has refused for the cards alone, since when, and on which nodes: those that it
 * was last asked about and that have the memory, but not on the cards that are wanted. A table of
 * fixed size; what is noted stays until it is forgotten, or makes room for a pod of more weight.
 */
#pragma once

#include "buf.h"
#include "limit.h"

/* Of a UID: what the API server would allow is shorter by far. */
#define REFUSAL_UID_BYTES 128

struct refusal {
    char uid[REFUSAL_UID_BYTES];
    size_t uid_n; /* 0: unused */
    int32_t priority;
    uint64_t since_ms; /* without a break */
    uint64_t last_ms;
    uint64_t not_before_ms; /* nothing is done about it */
    unsigned tries;         /* so often something was */
    struct buf nodes;       /* names, each with a NUL behind */
    uint32_t n_nodes;
};

struct refusals {
    struct refusal all[LIMIT_REFUSALS];
};

void refusals_init(struct refusals *r);
void refusals_done(struct refusals *r);

/* The entry, its nodes forgotten; NULL where there are more important ones. */
struct refusal *refusals_note(struct refusals *r, struct str uid, int32_t priority,
                              uint64_t now_ms);

/* More than LIMIT_REFUSAL_NODES are left out. */
void refusal_add(struct refusal *f, struct str node);

/* NULL where it is not noted. */
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

/* The next of `nodes`, as in struct refusal; start with *cursor 0. False: there are no more. */
bool refusal_next(struct str nodes, size_t *cursor, struct str *ret);

/* Of those that have been refused for after_ms and may be helped now, the one of most weight; of
 * equals the one that has waited longest. NULL: none. */
struct refusal *refusals_due(struct refusals *r, uint64_t after_ms, uint64_t now_ms);
