/* What limits.c and limits_check.c share. */
#pragma once

#include "node/containers/cgroup.h"
#include "node/isolation/limit_step.h"
#include "node/isolation/limits.h"

#include <limits.h>

/* A container that is watched. Strings are behind the struct, in the same block. */
struct held {
    struct list_link link;
    struct limits *owner;
    struct list tracks; /* one for each of its cards */
    struct str uid;
    struct str namespace;
    struct str pod;
    struct str name;
    char id[CGROUP_ID_BYTES]; /* of the container that runs; empty: none does */
    char folder[PATH_MAX];    /* of its cgroup; empty: not found yet */
    bool isolated;            /* its pod requires isolation */
};

struct track {
    struct list_link link;
    struct held *held;
    uint32_t card;
    struct limit_state state;
    struct timer timer; /* the pause before a check */
    struct gpu_limit_request request;
    bool asked;            /* the request is under way */
    struct list_link wait; /* in `ready` or `sought` while its check waits */
    uint64_t since;        /* if sought: the last walk that had begun before */
    enum errc found;       /* if ready: why no walk has found the cgroup */
    char why[GPU_REASON_BYTES];
    char fault[GPU_REASON_BYTES * 2]; /* what limits_fault answers */
};

struct limits {
    struct limits_settings s;
    struct list held;
    size_t n; /* tracks */
    bool on;
    bool said_ours;       /* the log has that the container runtime sets no limits */
    struct deferred late; /* a fault has changed: reported when no track is in use */
    struct limits_counts counts;
    /* checks */
    struct timer turn;
    struct list ready;  /* tracks to be looked at */
    struct list sought; /* tracks whose cgroup is looked for */
    unsigned asked;     /* tracks whose request is under way */
    struct cgroup_walk walk;
    bool walking;
    uint64_t walks; /* begun since the start */
};

/* The next step of a track, which may be a check. */
void limits_react(struct track *t, enum limit_event event);

void limits_check_init(struct limits *l);
void limits_check_done(struct limits *l); /* no track is left */

/* The answer is an event for limits_react, in a later turn. */
void limits_check(struct track *t);
void limits_check_cancel(struct track *t); /* does nothing if no check is under way */

/* Whether its card can't be asked: it gets no pods, and the limit is checked when it is back. */
bool limits_check_is_lost(const struct track *t);
