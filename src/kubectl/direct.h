/* A question of the command line, and its answer computed here from the API server's objects. */
#pragma once

#include "core/state/measured.h"
#include "kube/ingest.h"
#include "kubectl/client.h"
#include "kubectl/pod_file.h"

struct kubectl_question {
    enum kubectl_command command; /* TOP, CARDS, EXPLAIN or FIT; VERSION, DOCTOR: the daemon's */
    struct str node;              /* CARDS; absent: all nodes */
    struct str namespace;         /* EXPLAIN of an existing pod */
    struct str name;
    const struct kubectl_pod *pod; /* a pod from a file; NULL: the existing pod */
    uint32_t replicas;             /* FIT */
};

/* The answer computed from the API server's objects. */
enum errc kubectl_ask_directly(struct kubectl_client *c, const struct kubectl_question *q,
                               struct arena *a, struct str *ret, struct err *reterr) _must_use_;

/* Reads a list into the cache. ERR_DENIED: the user may not. With the nodes it is settled which
 * dialects are read: see kubectl_use_dialects. */
enum errc kubectl_ingest_list(struct kubectl_client *c, struct ingest *in, enum cache_kind kind,
                              struct err *reterr) _must_use_;

/* Reads what the cards and pods really use, and passes it on. ERR_DENIED: the user may not read the
 * ConfigMaps of kube-system. */
enum errc kubectl_read_measured(struct kubectl_client *c,
                                void (*use)(void *ctx, const struct measured *m), void *ctx,
                                struct err *reterr) _must_use_;

/* {"replicas": N, "pod": {...}}: the body of fit. Absent if the arena failed. */
struct str kubectl_fit_body(const struct kubectl_question *q, struct arena *a);
