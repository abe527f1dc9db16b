/*
 * Asks the kubelet which devices each container has (podresources, List of v1): every
 * LISTER_EVERY_MS, and soon after a container was started. What comes is compared with the
 * annotations (compare.h). A container that differs in two answers is reported once, by the log and
 * an event on its pod, and to the owner, until it agrees or is gone.
 *
 * Nothing waits for it: without the kubelet's socket the log says so once, and all else goes on.
 */
#pragma once

#include "kube/events.h"
#include "node/kubelet/compare.h"

#define LISTER_EVERY_MS UINT64_C(30000)
#define LISTER_SOON_MS  UINT64_C(5000)  /* after a start; no two requests are closer */
#define LISTER_AGAIN_MS UINT64_C(10000) /* a difference is looked at again */

#define LISTER_SOCKET "pod-resources/kubelet.sock"

struct lister;

/* Since the start, but for the last two. */
struct lister_counts {
    uint64_t answers;
    uint64_t failures;
    bool asked;           /* the kubelet answers, and an answer was compared */
    uint32_t compared;    /* containers with devices in the last answer; 0 if it does not */
    uint32_t differences; /* containers that differ, and were reported */
};

/* Borrowed until lister_free, but for the socket, which is copied. */
struct lister_settings {
    struct loop *loop;
    struct events *events; /* NULL: no events */
    const char *socket;
    uint64_t every_ms; /* 0: LISTER_EVERY_MS, and so on */
    uint64_t soon_ms;
    uint64_t again_ms;
    /* Compares the list with the annotations. False: the pods are not known now. The views in *ret
     * are valid until the caller returns to the loop. */
    bool (*compare)(void *ctx, const struct pod_resources *list, struct comparison *ret);
    void (*changed)(void *ctx); /* lister_view has changed */
    void *ctx;
};

enum errc lister_new(const struct lister_settings *s, struct lister **ret, struct err *reterr)
    _must_use_;
struct lister *lister_free(struct lister *l); /* returns NULL */

/* The kubelet has given or started something. */
void lister_nudge(struct lister *l);

struct lister_counts lister_counts(const struct lister *l);

/* Sets the fields of the comparison; they are valid until the loop's next turn. l may be NULL. */
void lister_view(struct lister *l, struct usage_view *v);
