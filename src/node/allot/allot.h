/*
 * Gives containers their cards. It answers the kubelet's Allocate, PreStartContainer and
 * GetPreferredAllocation from what it knows of the pods (roster.h), whom an Allocate is for
 * (pod_match.h) and what the kubelet's checkpoint says; and it writes the annotations of pods that
 * got other cards (exchange.h).
 *
 *     pods (watch) --------+
 *     checkpoint (file) ---+--> roster --> pod_match --> answer to Allocate
 *                                 |
 *                                 +------> exchange --> PATCH of pods --> answer to PreStart
 *
 * With late binding (late_binding.h) no pod is matched: Allocate is answered at once, and
 * PreStartContainer gives the container the cards of its pod's annotations.
 *
 * What is not known yet is waited for: an Allocate, which blocks the kubelet, for ALLOT_MATCH_MS at
 * most, and a PreStartContainer, which the kubelet repeats, for ALLOT_START_MS.
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "grpc/grpc_server.h"
#include "kube/events.h"
#include "kube/kube_api.h"
#include "kubelet/device_plugin.h"
#include "node/announce/offer.h"
#include "node/kubelet/compare.h"
#include "node/roster/roster.h"
#include "node/roster/share.h"

#define ALLOT_MATCH_MS UINT64_C(3000)
#define ALLOT_START_MS UINT64_C(20000)
#define ALLOT_AGAIN_MS                                                        \
    UINT64_C(5000) /* then the pods are listed anew, if one could not be kept \
                    */

struct allot;

/* Since the start. */
struct allot_counts {
    uint64_t allocated; /* answers to Allocate with cards */
    uint64_t refused;   /* Allocate failed */
    uint64_t started;   /* answers to PreStartContainer that allow the start */
    uint64_t held;      /* PreStartContainer failed */
    uint64_t exchanged; /* pods whose cards were written anew */
    uint64_t patches;
    uint64_t patch_failures;
};

/* Borrowed until allot_free, but for the strings, which are copied. */
struct allot_settings {
    struct loop *loop;
    struct kube_api *api;
    struct events *events; /* NULL: no events */
    struct str checkpoint; /* path of the kubelet's file */
    struct str resource;
    struct str cdi_dir; /* where container runtimes read CDI specs */
    bool device_nodes;
    struct str mps_dir; /* as in answer.h, where MPS serves the cards */
    int64_t unit_bytes; /* memory that a device stands for */
    /* The card with this index; NULL: none. The view is valid until the loop's next turn. */
    const struct gpu_card *(*card)(void *ctx, uint32_t index);
    /* Asks for a list of the pods; allot_list_end follows when it is complete. */
    void (*relist)(void *ctx);
    void *ctx;
};

enum errc allot_new(const struct allot_settings *s, struct allot **ret, struct err *reterr)
    _must_use_;
struct allot *allot_free(struct allot *a); /* the calls must have ended; returns NULL */

void allot_set_offer(struct allot *a, const struct offer *o);
void allot_set_cgpu(struct allot *a, bool disable);
void allot_set_means(struct allot *a, enum isolation means); /* what containers are given */

/* Whether the next Allocate is answered with a CDI device (late_binding.h). What was allocated
 * otherwise before stays as it is. */
void allot_set_late(struct allot *a, bool late);

/* The pods of the node, as struct pod_watch_ops. */
void allot_list_begin(struct allot *a);
void allot_list_end(struct allot *a);
void allot_set_pod(struct allot *a, const struct pod_view *view, uint64_t version);
void allot_remove_pod(struct allot *a, struct str uid);

/* The kubelet's calls, as struct plugin_ops. */
void allot_allocate(struct allot *a, struct grpc_call *call, const struct allocate_request *q);
void allot_pre_start(struct allot *a, struct grpc_call *call, const struct allocate_container *ids);
void allot_preferred(struct allot *a, struct grpc_call *call, const struct preferred_request *q);
void allot_gone(struct allot *a, struct grpc_call *call);
void allot_registered(struct allot *a, bool kubelet_restarted);

/* Calls `each` for each pod with cards, with its units of this card: 0 if it has others only. */
void allot_promises(const struct allot *a, uint32_t card,
                    void (*each)(void *ctx, const struct roster_pod *p, int64_t units), void *ctx);

/* Whether the pod, or any pod, has the card, by the kubelet's checkpoint: see roster_is_on. */
bool allot_is_on(const struct allot *a, struct str uid, uint32_t card);
bool allot_uses(const struct allot *a, uint32_t card);

/* What the container may use; false: it asks for no card, or its pod is not known now. */
bool allot_share(struct allot *a, struct str uid, struct str container, struct card_share *ret);

/* Compares the kubelet's list of devices with the pods. False: they are not listed now. */
bool allot_compare(struct allot *a, const struct pod_resources *list, struct comparison *ret);

struct allot_counts allot_counts(const struct allot *a);
