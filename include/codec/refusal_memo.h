/*
 * The refusals of the last answers about a list of names, as they were written. kube-scheduler asks
 * about pods of few sizes again and again, and from one to the next few nodes change: what the
 * others get is copied in long pieces.
 *
 * A text belongs to a number, the kind, that some candidates of a question have (see
 * filter_reason_fn), and may change from question to question. So the caller compares the texts
 * first, and then the kinds.
 *
 * A failed allocation only means that less is remembered.
 */
#pragma once

#include "base/str.h"

#define REFUSAL_KNOWN       8
#define REFUSAL_REASONS     8
#define REFUSAL_TEXTS_BYTES 1024 /* of all reasons */

/* The maps of an answer. */
enum refusal_map {
    REFUSAL_ALL,
    REFUSAL_UNRESOLVABLE,
    REFUSAL_MAPS,
};

/* What the candidates of one kind got. */
struct refusal_reason {
    unsigned char kind;
    bool unresolvable;
    struct str text; /* as written, from the quote behind the name on; a view of `texts` */
};

/* The candidates' entries in a map, each with a comma before it. */
struct refusal_text {
    char *bytes;  /* owned */
    uint32_t *at; /* by candidate: where its entry begins, and at last where all end; owned */
};

/* The last questions about one list that had the same reasons. */
struct refusal_known {
    uint64_t list;  /* name_list.id; 0: empty */
    uint64_t asked; /* refusal_memo.asked at the last question */
    size_t n;       /* candidates */
    struct refusal_reason reasons[REFUSAL_REASONS];
    unsigned n_reasons;
    size_t n_texts;
    char texts[REFUSAL_TEXTS_BYTES];
    unsigned waits; /* questions since `begin`, while the maps are empty */
    uint64_t retry; /* refusal_memo.asked at which the maps may be written; there was no room */
    size_t bytes;   /* of the maps and the kinds */
    /* Of each candidate when the maps were written, 0 for one without an entry. Owned; NULL: the
     * maps are empty. */
    unsigned char *kinds;
    struct refusal_text maps[REFUSAL_MAPS];
};

/* Zeros: nothing is remembered. */
struct refusal_memo {
    struct refusal_known all[REFUSAL_KNOWN];
    uint64_t asked;  /* questions so far */
    uint64_t tries;  /* how often maps were written, or had no room */
    unsigned unused; /* maps in a row that answered no question after the one that wrote them */
    uint64_t retry;  /* `asked` at which maps may be written after too many of those */
};

/* Whether a question with the reasons of a known one is another one like it. */
enum refusal_likeness {
    REFUSAL_OTHER,  /* too many of its candidates have another kind */
    REFUSAL_NOTED,  /* it is, but the maps are empty */
    REFUSAL_COPIES, /* the maps have most of its entries */
};

void refusal_memo_done(struct refusal_memo *m);

/* A question whose reasons are not known. Takes the place of the one that was not asked for the
 * longest time. */
struct refusal_known *refusal_memo_begin(struct refusal_memo *m, uint64_t list, size_t n);

/* Another one of its reasons. Too many or too long: the question is not remembered. */
void refusal_memo_note(struct refusal_known *k, const struct refusal_reason *r);

/* Whether so many of n candidates are too many to be without an entry in the maps. */
bool refusal_memo_misses_many(size_t n, size_t missed);

/* A question with the known reasons, whose candidates have these kinds: 0 for one that is not
 * refused. Writes the maps if such a question was asked often enough. */
enum refusal_likeness refusal_memo_prepare(struct refusal_memo *m, struct refusal_known *k,
                                           const struct str *names, const unsigned char *kinds);

/* The first candidate from i on whose kind is another one than the maps were written with, or n. */
size_t refusal_memo_same(const struct refusal_known *k, const unsigned char *kinds, size_t i);

/* The entries of candidates from `begin` on, each with a comma before it. */
struct str refusal_memo_entries(const struct refusal_known *k, enum refusal_map which, size_t begin,
                                size_t end);
