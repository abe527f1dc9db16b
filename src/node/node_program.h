/*
 * Builds all parts of cardpack-node on a loop, connects them, and frees them again. main.c adds
 * what belongs to the process.
 *
 *     gpu_watch --cards--> offer --> announce --> API server
 *                            |          |
 *                            +<- health +--> the kubelet
 *     pods ----> in_use ----> gpu_watch: which indices are in use
 *        \-----> allot: which cards a container gets <----> plugin <----> the kubelet
 *       \---> containers --> usage_meter <-- gpu_watch: what pods use, for the API server
 *     containers, allot --> limits <--> gpu_watch: whether each container has its limit
 *     lister <--> the kubelet: what containers have; allot compares, usage_meter writes it
 *     own_node --> announce: whether the node is as it was announced
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "io/http_server.h"
#include "node/allot/allot.h"
#include "node/announce/announce.h"
#include "node/announce/offer.h"
#include "node/containers/containers.h"
#include "node/isolation/enforce.h"
#include "node/isolation/limits.h"
#include "node/isolation/mps.h"
#include "node/isolation/mps_daemon.h"
#include "node/isolation/overrides.h"
#include "node/kubelet/lister.h"
#include "node/kubelet/plugin.h"
#include "node/pods/pod_watch.h"
#include "node/roster/in_use.h"
#include "node/usage/usage_meter.h"

#define NODE_DRAIN_MS UINT64_C(500) /* for events, at the end */
/* For the thread that calls NVML, at the end: it may wait for an event for a second. */
#define NODE_LEAVE_MS UINT64_C(2500)
/* So long the driver may be away before the kubelet is to start a new container. */
#define NODE_SHUT_MS UINT64_C(300000)

/* Borrowed until node_program_close. */
struct node_program_settings {
    struct loop *loop;
    const struct settings *settings;
    struct str service_host; /* KUBERNETES_SERVICE_HOST and so on, for a pod without a kubeconfig */
    struct str service_port;
    struct str home;
};

struct node_program {
    struct node_program_settings s;
    uint64_t start_ns;
    struct kube_api *api;
    struct events *events;
    struct events_counts event_counts;
    struct pod_watch *pods;
    struct in_use in_use;
    struct containers containers;
    struct overrides overrides;
    struct own_node *own;
    struct gpu_watch *gpu;
    struct usage_meter *usage; /* NULL: the setting `usage-interval` is 0 */
    struct announce *announce;
    struct allot *allot;
    struct plugin *plugin;
    struct lister *lister;
    struct limits *limits;
    struct mps *mps;
    struct enforce enforce;           /* what is announced, and what containers are given */
    struct buf cgroup;                /* our own */
    bool mps_serves[LIMIT_GPU_CARDS]; /* at mps_at_ms; if not, mps_why */
    char mps_why[LIMIT_GPU_CARDS][GPU_REASON_BYTES];
    uint64_t mps_at_ms;
    bool cgroup2;      /* the setting cgroup-root is of version 2 */
    bool mps_label;    /* label of the node */
    bool own_known;    /* the own node has been shown, with its labels */
    bool listing;      /* a list of the pods is under way */
    bool owes_list;    /* another one is to follow it */
    struct buf folder; /* of device plugins */
    struct buf checkpoint;
    struct buf lists;                 /* the socket of podresources */
    struct http_server *server;       /* NULL: the setting `listen` is empty */
    struct offer offer;               /* what the kubelet is offered */
    uint64_t offers;                  /* how often that has changed */
    struct timer refresh;             /* announces again what lack of memory has left out */
    bool disable_cgpu;                /* label of the node */
    bool late;                        /* see allot_set_late */
    enum gpu_watch_phase phase;       /* as the log has it */
    size_t levels[GPU_UNHEALTHY + 1]; /* announced cards by health */
    uint32_t left_out;                /* cards and slices, as the log has them */
    char left_out_why[4 * GPU_REASON_BYTES];
    uint32_t unheard;  /* cards without XIDs, likewise */
    bool rests;        /* NVML is closed for a reset, as the log has it */
    bool unlimited;    /* the driver has said that a limit of memory is missing; until ... */
    uint64_t preset;   /* ... the container runtime has set more than these */
    uint64_t means_ms; /* when the means began, on the loop's clock */
    /* The label stays `none`, as the program before this one left it, until the limits of the
     * containers that run have been checked. */
    bool proven;
    bool warned; /* the log has the settings that are not understood */
};

/* Call node_program_close after a failure too. n must not move until then. */
enum errc node_program_open(struct node_program *n, const struct node_program_settings *s,
                            struct err *reterr) _must_use_;

/* Sends the events that wait; then calls done, from the loop. */
void node_program_drain(struct node_program *n, void (*done)(void *ctx), void *ctx);
void node_program_close(struct node_program *n); /* n may be all zero; does not free the loop */

/* Whether this container of cardpack-node may go on. False: a new container would help, and
 * *ret_why says why: NVIDIA's runtime gives a container the library and the device nodes as they
 * are at its start. */
bool node_program_is_alive(const struct node_program *n, struct str *ret_why);

/* Whether the kubelet and cardpack can rely on what this node announces; if not, why. */
bool node_program_is_ready(const struct node_program *n, struct str *ret_missing);

/* node_enforce.c: the cgroup whose limits the watch asks NVML for, or NULL; after the watch is
 * opened, and whenever cards have changed; what it marks is unhealthy. */
const char *node_enforce_cgroup(struct node_program *n);
enum errc node_enforce_open(struct node_program *n, void (*changed)(void *ctx), struct err *reterr)
    _must_use_;
/* What has changed of the cards: in the log, and in events of the node. */
void node_report(struct node_program *n, const struct gpu_watch_state *state,
                 const struct announce_card *cards, size_t n_cards);

void node_enforce_decide(struct node_program *n, const struct gpu_card *cards, size_t n_cards);
void node_enforce_mark(struct node_program *n, struct announce_card *cards, size_t n_cards);

/* Handler of the HTTP server; ctx is the node. */
void node_http_handle(void *ctx, struct http_request *r);
void node_http_too_large(void *ctx, struct http_request *r, uint64_t body_bytes);
void node_metrics_write(const struct node_program *n, struct buf *out);
