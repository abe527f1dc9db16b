/*
 * A coordination.k8s.io/v1 Lease, as far as leader election reads and writes it. An update is an
 * edit of the JSON that was read, so fields that we don't know survive it.
 */
#pragma once

#include "arena.h"
#include "jwrite.h"

/* The annotation by which a replica asks the leader to hand over: "IDENTITY TIME". */
#define LEASE_WANTED_BY "cardpack.io/wanted-by"

/* Views point into the JSON, or into the arena where they held an escape. */
struct lease_view {
    struct str version; /* metadata.resourceVersion; never empty */
    struct str holder;  /* absent or empty: nobody */
    struct str acquired;
    int64_t duration_s; /* 0: absent */
    int64_t transitions;
    struct str wanted; /* of LEASE_WANTED_BY */
    struct str spec;   /* as it stands: another text means that the holder has been heard of */
};

enum errc lease_read(struct str json, struct arena *arena, struct lease_view *ret,
                     struct err *reterr) _must_use_;

struct lease_edit {
    struct str holder;   /* "" for nobody */
    struct str acquired; /* MicroTime, as the next */
    struct str renewed;
    int64_t duration_s;
    int64_t transitions;
};

/* The first one; its failure is the buf's. */
void lease_write_new(struct jwrite *w, struct str namespace, struct str name,
                     const struct lease_edit *e);

/* `json` with spec's fields as in *e; it must have been read without failure. */
void lease_write_edited(struct jwrite *w, struct str json, struct arena *arena,
                        const struct lease_edit *e);

/* `json` with the annotation LEASE_WANTED_BY, and nothing else changed. */
void lease_write_wanted(struct jwrite *w, struct str json, struct arena *arena, struct str wanted);

/* The API server takes MicroTime with six digits behind the point and no other number of them. */
#define MICRO_TIME_BYTES (sizeof("2006-01-02T15:04:05.000000Z"))
struct str micro_time_print(uint64_t unix_ns, char text[MICRO_TIME_BYTES]);
