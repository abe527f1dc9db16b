/*
 * Limits of what the pods of a namespace hold on cards: in total, on the nodes of a pool, on cards
 * of a model; and which pools and models it may use at all.
 *
 * What is held is summed for the limits in force only, so nothing is kept where there are none.
 * Who holds something joins first, which may find no memory; to charge it then never fails:
 *
 *     a pod becomes known, is forgotten   quota_join, quota_leave
 *     it comes to a node, goes from it    quota_charge with 1, with -1, for each of its shares
 *     a node's pool or cards change       all of its shares with -1 before, with 1 after
 *     the limits change                   quota_set, then everything that is held with 1
 *     may it hold this, too?              quota_account, quota_fit
 *
 * Work is O(limits of the namespace), however many pods it has.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "map.h"

enum quota_kind {
    QUOTA_MEMORY,  /* in the device plugin's unit */
    QUOTA_CARDS,   /* of which it holds a share, or the whole */
    QUOTA_COMPUTE, /* percent of a card: 100 are a whole one */
    QUOTA_KINDS
};

#define QUOTA_UNLIMITED INT64_C(-1)

enum quota_scope {
    QUOTA_TOTAL,
    QUOTA_POOL,
    QUOTA_MODEL,
};

struct quota_limit {
    enum quota_scope scope;
    struct str name;           /* the pool; the pattern of models (pattern.h); absent: total */
    int64_t most[QUOTA_KINDS]; /* or QUOTA_UNLIMITED */
};

struct quota_entry {
    struct str namespace;             /* "*": each that has no entry of its own */
    const struct quota_limit *limits; /* every one that a share is within has to hold */
    size_t n_limits;
    const struct str *pools; /* that it may use; "": nodes without one. None: every one */
    size_t n_pools;
    const struct str *models; /* patterns of those that it may use. None: every one */
    size_t n_models;
};

/* No namespace is named twice. */
struct quota_view {
    const struct quota_entry *entries;
    size_t n;
};

/* A share of a card, or several of cards of one model in one pool. */
struct quota_use {
    struct str pool;  /* empty or absent: the node has none */
    struct str model; /* empty or absent: not known */
    int64_t amount[QUOTA_KINDS];
};

/* 128 bits: no sum of what can be charged overflows, whatever pods by other hands may say. */
struct quota_sum {
    __int128 of[QUOTA_KINDS];
};

struct quota_tenant {
    struct str namespace; /* key of the map; stored behind the struct */
    size_t members;
    const struct quota_entry *entry; /* NULL: no limits */
    struct quota_sum *used;          /* owned; one for each of entry->limits */
    struct quota_sum *next;          /* while the limits change */
};

struct quota {
    struct map entries; /* by namespace: struct quota_entry, in the arena */
    struct map tenants; /* by namespace: struct quota_tenant; only with members */
    struct arena arena;
};

void quota_init(struct quota *q, struct map_seed seed);

/* Whatever its members are. */
void quota_done(struct quota *q);

/*
 * Other limits, copied; nothing is used of them yet: the caller charges everything that is held.
 * ERR_NOMEM (never for an empty view): nothing has changed.
 */
enum errc quota_set(struct quota *q, const struct quota_view *view) _must_use_;

/* NULL without memory. */
struct quota_tenant *quota_join(struct quota *q, struct str namespace) _must_use_;

/* The last one to leave has to hold nothing. */
void quota_leave(struct quota *q, struct quota_tenant *t);

/* sign: 1 holds it from now on, -1 does so no more, with the same use as before. */
void quota_charge(struct quota_tenant *t, const struct quota_use *use, int sign);

/* What holds for a namespace, a member or not. Borrowed until q changes. */
struct quota_account {
    struct str namespace;
    const struct quota_entry *entry; /* NULL: no limits */
    const struct quota_sum *used;    /* NULL: nothing */
};

struct quota_account quota_account(const struct quota *q, struct str namespace);

enum quota_fault {
    QUOTA_EXCEEDED,
    QUOTA_POOL_DENIED,
    QUOTA_MODEL_DENIED,
};

/* Views: the account's and the use's. */
struct quota_refusal {
    enum quota_fault fault;
    struct str namespace;
    enum quota_scope scope; /* EXCEEDED */
    struct str name;        /* the pool or the model that is denied; EXCEEDED: the limit's */
    enum quota_kind kind;   /* EXCEEDED, as those below */
    int64_t limit;
    int64_t used; /* may be above the limit: it came later, or another hand bound the pods */
    int64_t asked;
};

/*
 * Whether all of these could be held as well. A limit refuses only what asks for more of its kind,
 * so one that is exceeded stops no pod that wants none of it. Amounts below 0 are given back by
 * others: pods that would be evicted. On false *ret is the first reason in this order: a pool, a
 * model, the limits as they stand in the entry. That needs no node's name, so that a scheduler
 * counts nodes instead of listing them.
 */
bool quota_fit(const struct quota_account *a, const struct quota_use *uses, size_t n,
               struct quota_refusal *ret);

/* Even an empty namespace could not hold it: no eviction helps. */
bool quota_refusal_is_final(const struct quota_refusal *r);

/* "quota of namespace team-a: memory in pool gold: 30 of 32 used, 4 asked" */
void quota_refusal_write(const struct quota_refusal *r, struct buf *to);

/* Asserts what must be true of it: for tests. */
void quota_check(const struct quota *q);
