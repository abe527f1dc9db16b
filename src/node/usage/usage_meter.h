/*
 * Measures every interval_ms which pod uses how much of which card: asks NVML for the processes of
 * one card after the other, and finds the pod of each process by its cgroup. Warns a pod by an
 * event that it uses more than its share, and hands the figures to usage_post.
 *
 *     gpu_watch --PID, bytes--> /proc/PID/cgroup --ID--> containers --pod--> tally --> post, events
 *
 * NVML's PIDs are those of the host's namespace: this program must be in it.
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "kube/events.h"
#include "node/containers/containers.h"
#include "node/usage/usage_post.h"

struct usage_meter;

/* What a pod has been promised of a card. */
typedef void usage_promise_fn(void *ctx, const struct usage_owner *pod, uint64_t bytes);

/* Borrowed until usage_meter_free; strings are copied. */
struct usage_meter_settings {
    struct loop *loop;
    struct kube_api *api;
    struct events *events; /* NULL: no events */
    struct str node;
    struct gpu_watch *gpu;
    const struct containers *containers;
    const char *proc; /* NULL: "/proc" */
    uint64_t interval_ms;
    uint64_t write_ms;
    uint64_t late_ms; /* a round that takes so long makes its figures unknown; 0: 30,000, and at
                         least three intervals */
    /* Calls `each` for each pod that has cards, with its share of this one: 0 if it has none. */
    void (*promises)(void *ctx, uint32_t card, usage_promise_fn *each, void *each_ctx);
    /* Sets what the ConfigMap says of the kubelet's list of devices; NULL: nothing. */
    void (*compared)(void *ctx, struct usage_view *v);
    void *ctx;
};

enum errc usage_meter_new(const struct usage_meter_settings *s, struct usage_meter **ret,
                          struct err *reterr) _must_use_;
struct usage_meter *usage_meter_free(struct usage_meter *m); /* before the gpu_watch; NULL */

/* The pod is gone. */
void usage_meter_gone(struct usage_meter *m, struct str uid);

/* What `compared` sets has changed: it is written as soon as another figure would be. */
void usage_meter_urge(struct usage_meter *m);

/* For the metrics. */
const struct usage_tally *usage_meter_tally(const struct usage_meter *m);
struct usage_post_counts usage_meter_posted(const struct usage_meter *m);

struct usage_meter_counts {
    uint64_t rounds;   /* since the start, as failures */
    uint64_t failures; /* samples of a card that failed */
    bool blind;        /* cards have processes, and /proc has none of them */
};
struct usage_meter_counts usage_meter_counts(const struct usage_meter *m);
