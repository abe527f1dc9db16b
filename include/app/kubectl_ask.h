/*
 * A question of the command line, and its answer: the daemon's, through the API server's proxy to
 * its Service, or our own, from what the API server says of nodes and pods. Both are the same JSON,
 * made by the same code.
 */
#pragma once

#include "kubectl_client.h"
#include "kubectl_pod.h"

struct kubectl_question {
    enum kubectl_command command; /* TOP, CARDS, EXPLAIN or FIT; VERSION: the daemon's */
    struct str node;              /* CARDS; absent: of all */
    struct str namespace;         /* EXPLAIN of a pod that there is */
    struct str name;
    const struct kubectl_pod *pod; /* of a file; NULL: that one */
    uint32_t replicas;             /* FIT */
};

/*
 * Where the daemon is not to be had and the API server is read instead, that is said on standard
 * error, with the reason. The answer is the arena's; of VERSION it is plain text.
 */
enum errc kubectl_ask(struct kubectl_client *c, const struct kubectl_question *q, struct arena *a,
                      struct str *ret, struct err *reterr) _must_use_;

/* What kubectl_ask asks the daemon. ERR_UNAVAILABLE: it is not to be had. */
enum errc kubectl_ask_daemon(struct kubectl_client *c, const struct kubectl_question *q,
                             struct arena *a, struct str *ret, struct err *reterr) _must_use_;

/* And what it reads and reckons itself. */
enum errc kubectl_ask_directly(struct kubectl_client *c, const struct kubectl_question *q,
                               struct arena *a, struct str *ret, struct err *reterr) _must_use_;

/* {"replicas": N, "pod": {...}}: the body of fit. Absent where the arena failed. */
struct str kubectl_fit_body(const struct kubectl_question *q, struct arena *a);

/* A line on standard error. */
void kubectl_say(const char *fmt, ...) _printf_(1, 2);
