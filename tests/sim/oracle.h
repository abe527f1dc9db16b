/*
 * What must hold, judged from the API server's objects and from what each process was surely told,
 * by arithmetic that shares nothing with the product's.
 */
#pragma once

#include "proc.h"

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
    bool bare;
    unsigned sender;
};

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

void oracle_posted(const struct order *o);

/* The pod of this slot has just been bound by it: no card over its size by a decision of ours. */
void oracle_committed(const struct order *o, unsigned slot);

/* An answer leaves a process: success is told of what is so. */
void oracle_answered(const struct ask *a);

/* All is quiet: the cache is what the API server's objects say, and nothing is left over. */
void oracle_rest(void);

/* Whether a request of that size fits on the node, at rest. */
bool oracle_fits(unsigned node, int64_t mem);
