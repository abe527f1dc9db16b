/*
 * The pods without a GPU request that are bound: what each requests of its node's host. There are
 * many more of them than of the pods that cardpack places, so a record is small. It has no name and
 * no UID, only a hash of 128 bits of the UID, keyed with random numbers of the process. Two UIDs
 * with one hash are not expected: among 10^6 pods the probability is below 10^-26.
 *
 * The records are numbered from 0 to n - 1 without a gap: removing one moves the last one into its
 * place, so that memory is given back.
 */
#pragma once

#include "base/map.h"
#include "core/request/host.h"

struct node;

struct other {
    uint64_t key[2];
    struct node *node;
    struct host host;
    uint32_t epoch; /* of the last list that contained it */
    uint32_t next;  /* number of the next record in the same chain, plus 1; 0: none */
};

struct others {
    struct other **chunks; /* owned; n_chunks of them */
    uint32_t n_chunks;
    uint32_t n;
    uint32_t *heads; /* owned; numbers plus 1; cap of them, a power of two, or NULL */
    size_t cap;
    struct map_seed seed;
};

void others_init(struct others *o, struct map_seed seed);
void others_done(struct others *o);

/* NULL: there is no record. Valid until the next others_del. */
struct other *others_get(const struct others *o, struct str uid);

/* The record, or a new one that is zero but for its key: its node is NULL. NULL: allocation
 * failed. */
struct other *others_get_or_add(struct others *o, struct str uid);

void others_del(struct others *o, struct other *x);

/* The record of this number. After others_del it is the one that was the last, if any. */
struct other *others_at(const struct others *o, uint32_t i);

/* For tests: asserts that each record is found by its key, once. */
void others_check(const struct others *o);
