/*
 * The cardless pods, those without a GPU request, that are bound: what each requests of its node's
 * host. There are many more of them than of the pods that cardpack places, so a record is small. It
 * has no name and no UID, only a hash of 128 bits of the UID, keyed with random numbers of the
 * process. Two UIDs with one hash are not expected: among 10^6 pods the probability is below
 * 10^-26.
 *
 * The records are numbered from 0 to n - 1 without a gap: removing one moves the last one into its
 * place, so that memory is given back.
 */
#pragma once

#include "base/map.h"
#include "core/request/host.h"

struct node;

struct cardless_pod {
    uint64_t key[2];
    struct node *node;
    struct host host;
    uint32_t epoch; /* of the last list that contained it */
    uint32_t next;  /* number of the next record in the same chain, plus 1; 0: none */
};

struct cardless_pods {
    struct cardless_pod **chunks; /* owned; n_chunks of them */
    uint32_t n_chunks;
    uint32_t n;
    uint32_t *heads; /* owned; numbers plus 1; cap of them, a power of two, or NULL */
    size_t cap;
    struct map_seed seed;
};

void cardless_pods_init(struct cardless_pods *o, struct map_seed seed);
void cardless_pods_done(struct cardless_pods *o);

/* NULL: there is no record. Valid until the next cardless_pods_del. */
struct cardless_pod *cardless_pods_get(const struct cardless_pods *o, struct str uid);

/* The record, or a new one that is zero but for its key: its node is NULL. NULL: allocation
 * failed. */
struct cardless_pod *cardless_pods_get_or_add(struct cardless_pods *o, struct str uid);

void cardless_pods_del(struct cardless_pods *o, struct cardless_pod *x);

/* The record of this number. After cardless_pods_del it is the one that was the last, if any. */
struct cardless_pod *cardless_pods_at(const struct cardless_pods *o, uint32_t i);

/* For tests: asserts that each record is found by its key, once. */
void cardless_pods_check(const struct cardless_pods *o);
