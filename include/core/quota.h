/*
 * Limits on what the pods of a namespace hold on cards: in total, on the nodes of a pool, and on
 * cards of a model; and which pools and models the namespace may use.
 *
 * Usage is summed only for the limits in force, so without limits there is nothing to store. A pod
 * joins its namespace first, which may fail for lack of memory; a charge never fails afterwards:
 *
 *   a pod becomes known, is forgotten   quota_join, quota_leave
 *   it comes to a node, leaves it       quota_charge with 1, with -1, for each of its shares
 *   a node's pool or cards change       all of its shares with -1 before, with 1 after
 *   the limits change                   quota_set, then all shares that are held with 1
 *   may it hold this as well?           quota_account, quota_fit
 *
 * The work is O(limits of the namespace), independent of its number of pods.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

enum quota_kind {
    QUOTA_MEMORY,  /* in the device plugin's unit */
    QUOTA_CARDS,   /* cards that it holds a share of, or holds whole */
    QUOTA_COMPUTE, /* percent of a card; 100 is a whole card */
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
    struct str name; /* the pool, or the pattern of models (pattern.h); absent for QUOTA_TOTAL */
    int64_t most[QUOTA_KINDS]; /* QUOTA_UNLIMITED: no limit of this kind */
};

struct quota_entry {
    struct str namespace;             /* "*": all namespaces without an entry of their own */
    const struct quota_limit *limits; /* a share must respect every limit that applies to it */
    size_t n_limits;
    const struct str *pools; /* allowed pools; "": nodes without a pool. None: all pools */
    size_t n_pools;
    const struct str *models; /* patterns of the allowed models. None: all models */
    size_t n_models;
};

/* No namespace occurs twice. */
struct quota_view {
    const struct quota_entry *entries;
    size_t n;
};

/* A share of a card, or several shares of cards of one model in one pool. */
struct quota_use {
    struct str pool;  /* empty or absent: the node has none */
    struct str model; /* empty or absent: unknown */
    int64_t amount[QUOTA_KINDS];
};

/* 128 bits: the sum of all possible charges cannot overflow, even for pods that another scheduler
 * bound. */
struct quota_sum {
    __int128 of[QUOTA_KINDS];
};

struct quota_tenant {
    struct str namespace; /* key of the map; stored behind the struct */
    size_t members;
    const struct quota_entry *entry; /* NULL: no limits */
    struct quota_sum *used;          /* owned; one for each of entry->limits */
    uint64_t version;                /* see quota_account */
    uint64_t *stamps;                /* those of its quota */
    struct quota_sum *next;          /* owned; only while the limits change */
};

struct quota {
    struct map entries; /* by namespace: struct quota_entry, in the arena */
    struct map tenants; /* by namespace: struct quota_tenant; only those with members */
    struct arena arena;
    uint64_t stamps;  /* how many versions were given */
    uint64_t version; /* of the namespaces without members */
};

void quota_init(struct quota *q, struct map_seed seed);

/* Frees everything, even if there are members. */
void quota_done(struct quota *q);

/* Copies new limits. Their usage starts at 0: the caller charges everything that is held. ERR_NOMEM
 * (never for an empty view): nothing has changed. */
enum errc quota_set(struct quota *q, const struct quota_view *view) _must_use_;

/* NULL: allocation failed. */
struct quota_tenant *quota_join(struct quota *q, struct str namespace) _must_use_;

/* When the last member leaves, its namespace must hold nothing. */
void quota_leave(struct quota *q, struct quota_tenant *t);

/* sign 1: the namespace holds the use from now on; -1: it no longer does, with the same use as
 * before. */
void quota_charge(struct quota_tenant *t, const struct quota_use *use, int sign);

/* The limits and the usage of a namespace, with members or without. Borrowed until q changes. A
 * quota with members must stay where it is: they point to its stamps. */
struct quota_account {
    struct str namespace;
    const struct quota_entry *entry; /* NULL: no limits */
    const struct quota_sum *used;    /* NULL: nothing */
    /* Changes when a sum or the limits change. No two times of a quota give the same, whichever
     * namespaces come and go between them. */
    uint64_t version;
};

struct quota_account quota_account(const struct quota *q, struct str namespace);

enum quota_fault {
    QUOTA_EXCEEDED,
    QUOTA_POOL_DENIED,
    QUOTA_MODEL_DENIED,
};

/* The strings are those of the account and of the use. */
struct quota_refusal {
    enum quota_fault fault;
    struct str namespace;
    enum quota_scope scope; /* EXCEEDED */
    struct str name;        /* the denied pool or model; EXCEEDED: the name of the limit */
    enum quota_kind kind;   /* EXCEEDED; also the fields below */
    int64_t limit;
    int64_t used; /* may exceed the limit: newer limits, or binds by another scheduler */
    int64_t asked;
};

/*
 * Whether the namespace may hold all these uses as well. A limit refuses only a request for more of
 * its kind, so a limit that is exceeded does not stop a pod that wants none of it. An amount below
 * 0 is released by other pods: victims of an eviction. If false, *ret is the first reason in this
 * order: a pool, a model, the limits in the order of the entry. The reason contains no node name,
 * so that kube-scheduler can count equal reasons instead of listing the nodes. *compared as in
 * pattern_match.
 */
bool quota_fit(const struct quota_account *a, const struct quota_use *uses, size_t n,
               struct quota_refusal *ret, uint64_t *compared);

/* Whether both are the same reason, with the same text. The namespace is not compared. */
bool quota_refusal_equal(const struct quota_refusal *a, const struct quota_refusal *b);

/* Even a namespace without usage could not hold it: no eviction helps. */
bool quota_refusal_is_final(const struct quota_refusal *r);

/* "quota of namespace team-a: memory in pool gold: 30 of 32 used, 4 asked" */
void quota_refusal_write(const struct quota_refusal *r, struct buf *to);

/* For tests: asserts the invariants. */
void quota_check(const struct quota *q);
