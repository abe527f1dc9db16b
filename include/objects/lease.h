/*
 * A coordination.k8s.io/v1 Lease: the fields of leader election. An update edits the JSON that was
 * read, so unknown fields survive it.
 */
#pragma once

#include "base/arena.h"
#include "json/jwrite.h"

/* Annotation with which a replica requests the leadership from the leader: "IDENTITY TIME". */
#define LEASE_WANTED_BY "cardpack.io/wanted-by"

/* Annotation that a release writes: its renewTime. Each later renewal has another time, so an edit
 * that leaves the Lease without a holder is not taken for a release. */
#define LEASE_RELEASED_AT "cardpack.io/released-at"

/* Views point into the JSON, or into the arena if they contained an escape. */
struct lease_view {
    struct str version; /* metadata.resourceVersion; never empty */
    struct str holder;  /* absent or empty: no holder */
    struct str acquired;
    struct str renewed;
    int64_t duration_s; /* 0: absent */
    int64_t transitions;
    struct str wanted;   /* value of LEASE_WANTED_BY */
    struct str released; /* value of LEASE_RELEASED_AT */
    struct str spec;     /* unchanged JSON; a different text shows that the holder is alive */
};

enum errc lease_read(struct str json, struct arena *arena, struct lease_view *ret,
                     struct err *reterr) _must_use_;

struct lease_edit {
    struct str holder;   /* "": no holder */
    struct str acquired; /* MicroTime, like renewed */
    struct str renewed;
    int64_t duration_s;
    int64_t transitions;
};

/* Writes a new Lease. A failure is stored in the buf. */
void lease_write_new(struct jwrite *w, struct str namespace, struct str name,
                     const struct lease_edit *e);

/* An annotation of the Lease; a key without text: none. */
struct lease_note {
    struct str key;
    struct str value;
};

/* Writes `json` with the fields of *e in its spec (NULL: as it was) and with the annotation.
 * lease_read must have accepted `json`. */
void lease_write_edited(struct jwrite *w, struct str json, struct arena *arena,
                        const struct lease_edit *e, struct lease_note note);

/* The API server accepts MicroTime only with exactly six digits after the point. */
#define MICRO_TIME_BYTES (sizeof("2006-01-02T15:04:05.000000Z"))
struct str micro_time_print(uint64_t unix_ns, char text[MICRO_TIME_BYTES]);
