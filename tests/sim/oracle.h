/*
 * What must hold, judged from the API server's objects and from what each process was surely told,
 * by arithmetic that shares nothing with the product's.
 */
#pragma once

#include "proc.h"
#include "slices.h"

/* What a reservation, or the sending of its Binding, was decided on. */
struct decision {
    unsigned slot;
    unsigned proc;
    unsigned node;
    uint64_t cards;           /* a bit for each of its */
    int64_t total[MAX_CARDS]; /* of these, as they were believed to be */
    int64_t limit;            /* of the node: the largest that it may have been believed to be, */
    int64_t max_pods;         /* the same */
    bool shrink;              /* the setting was so */
    bool divided;             /* it may have been believed to be */
    uint64_t aside;           /* a bit for each of its cards that surely was another plugin's */
    uint64_t rv;
    bool known[MAX_PODS]; /* foreign pods that it had been told of */
    bool lasts[MAX_PODS]; /* whose init containers it may have believed to be done */
};

static inline bool decision_has(const struct decision *d, int64_t card)
{
    return (d->cards >> card & 1) != 0;
}

/* A Binding as it was sent. */
struct order {
    struct name ns;
    struct name name;
    struct name uid;
    struct name node;
    struct name idx;
    struct name dev;
    struct name mem;
    struct name assigned;
    struct name assume;
    struct grants_object allocation;
    struct grants_object cores;
    bool bare;
    unsigned sender;
    const struct decision *decision; /* that it was sent by; NULL: it asks for nothing */
};

/* Against what was decided. */
void order_check(const struct order *o, const struct decision *d);

void oracle_reset(void);
void oracle_started(const struct proc *p);

/*
 * After whatever a process was handed, and before it sends a Binding: what it has just decided is
 * noted, with what it knew. By the end of its turn it may know better.
 */
void oracle_decided(const struct proc *p);

/* At any time there is at most one process that would decide. */
void oracle_stepped(void);

/* After each turn: its cache agrees with itself. */
void oracle_turned(const struct proc *p);

/* Finds its decision, too. */
void oracle_posted(struct order *o);

/* The pod of this slot has just been bound by it: no card over its size by a decision of ours. */
void oracle_committed(const struct order *o, unsigned slot);

/* An answer leaves a process: success is told of what is so. */
void oracle_answered(const struct ask *a);

/* All is quiet: the cache is what the API server's objects say, and nothing is left over. */
void oracle_rest(void);

/* ---- whether there is room, at rest ---- */

enum fits {
    FITS_NOT,
    FITS,
    FITS_PERHAPS, /* it depends on which of several cards are taken, for it or for others */
};

enum fits oracle_fits(unsigned node, const struct pod_object *p);

/* What the pods on a node hold of it, by the API server's objects; card -1: of all of it. */
struct usage {
    int64_t mem;
    int64_t counted; /* as the kubelet does: by the specs */
    int64_t cores;
    int64_t unplaced; /* on no card that there is */
    int64_t exclusive;
    unsigned pods;
    unsigned sharing;
    unsigned wholes;
};

struct usage oracle_usage(unsigned node, int64_t card);

/* Whether it lasts by now, as far as that is given back in this world. */
bool oracle_lasts(const struct pod_object *p);
