/*
 * Objects of JSON that were read lately, and where in each of them the values end that the reader
 * skipped. kube-scheduler sends a pod to filter and then the same bytes to prioritize: most of them
 * are skipped, and the second time without being looked at.
 *
 * What is remembered is a fact about the bytes, not about the decoder that read them: a decoder
 * that skips other values finds them as it does without.
 *
 * A failed allocation only means that less is remembered.
 */
#pragma once

#include "base/str.h"

#define JMEMO_TEXTS 4

/* Offsets in the object of a skipped value's first byte, and of the byte behind it. */
struct jmemo_skip {
    uint32_t from;
    uint32_t to;
};

struct jmemo_text {
    char *bytes; /* owned */
    size_t n;    /* 0: empty, or being learned */
    size_t cap;
    struct jmemo_skip *skips; /* in their order; owned */
    uint32_t n_skips;
    uint32_t cap_skips;
    unsigned depth; /* open objects and arrays around it: the reader limits the nesting */
    bool torn;      /* a skip could not be noted */
    uint64_t asked; /* jmemo.asked at the last use */
};

/* Zeros are no texts. */
struct jmemo {
    struct jmemo_text all[JMEMO_TEXTS];
    uint64_t asked;
};

/* The object that is being read. Zeros: none. */
struct jmemo_read {
    const struct jmemo_text *known; /* NULL: it is not */
    struct jmemo_text *learned;     /* NULL: it need not be */
    uint32_t next;                  /* skip of the known one */
};

void jmemo_done(struct jmemo *m);

/* The object with which the rest of a document begins, this deep in it. NULL: it is not known.
 * Valid until the next call of jmemo_begin. */
const struct jmemo_text *jmemo_find(struct jmemo *m, struct str rest, unsigned depth);

/* An object is about to be read; not another one before jmemo_end. */
struct jmemo_read jmemo_begin(struct jmemo *m, struct str rest, unsigned depth);

/* In a known object: where the value ends that begins here, if it was skipped before; else 0. From
 * each call to the next, `from` grows. */
size_t jmemo_skip(struct jmemo_read *r, size_t from);

/* In an object to be learned: a value was skipped, behind those before. */
void jmemo_note(struct jmemo_read *r, size_t from, size_t to);

/* The object was read without a failure; it is kept if it has at most LIMIT_JMEMO_BYTES. */
void jmemo_end(struct jmemo *m, struct jmemo_read *r, struct str text, unsigned depth);
