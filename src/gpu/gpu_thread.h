/*
 * The thread that makes NVML's calls, and the mailbox that it shares with the loop. Only this
 * module knows of threads and locks. All functions here are for the loop, and none of them waits,
 * except gpu_thread_stop.
 */
#pragma once

#include "base/list.h"
#include "gpu/gpu_limit.h"
#include "gpu/gpu_scan.h"
#include "gpu_measure.h"

struct gpu_thread;

struct gpu_thread_settings {
    const char *library; /* strings are copied */
    const char *sys;
    const char *proc;
    const char *cgroup;  /* NULL: limits of memory are not asked for */
    uint64_t card_bytes; /* see struct gpu_roots */
    uint64_t poll_ms;
    uint64_t probe_ms;
    uint64_t wait_ms;
    uint64_t retry_ms;
    uint64_t rest_ms;
};

enum gpu_post_kind {
    GPU_POST_SCAN,
    GPU_POST_DOWN, /* NVML is not there, or stopped working */
    GPU_POST_XID,
    GPU_POST_USAGE,
    GPU_POST_LIMIT,
};

/* A message to the loop. */
struct gpu_post {
    struct list_link link;
    enum gpu_post_kind kind;
    struct gpu_scan scan;      /* SCAN */
    bool no_library;           /* DOWN */
    bool unloaded;             /* DOWN: the driver was, which resets the cards */
    char uuid[GPU_UUID_BYTES]; /* XID: of the card */
    uint64_t xid;
    uint32_t gpu_instance;
    uint64_t ticket;            /* USAGE, LIMIT */
    enum errc result;           /* USAGE */
    struct gpu_usage usage;     /* USAGE */
    struct gpu_limit limit;     /* LIMIT */
    char why[GPU_REASON_BYTES]; /* DOWN, USAGE */
};

void gpu_post_free(struct gpu_post *p);

/* wake_fd: an eventfd of the caller, written after each post until gpu_thread_stop returns. */
enum errc gpu_thread_start(const struct gpu_thread_settings *s, int wake_fd,
                           struct gpu_thread **ret, struct err *reterr) _must_use_;

/* Waits until the thread has ended, for at most within_ms. Otherwise the thread frees itself
 * later. */
void gpu_thread_stop(struct gpu_thread *t, uint64_t within_ms);

/* Moves the posts to an initialized, empty list. The caller frees each. */
void gpu_thread_take(struct gpu_thread *t, struct list *to);

/* How often the thread has come back from its calls. */
uint64_t gpu_thread_beats(struct gpu_thread *t);
/* XIDs for which there was no room. */
uint64_t gpu_thread_dropped(struct gpu_thread *t);

/* Whether to open NVML anew every probe_ms, because a card is away; and whether to close it for
 * rest_ms after each look at the cards, so that one can be reset. Questions wait meanwhile. */
void gpu_thread_probe(struct gpu_thread *t, bool wanted, bool rests);

/* Asks for the usage of the card with this UUID, or, if the cgroup is not empty, for
 * gpu_limit_ensure; answered by a post. The path is copied. ERR_NOMEM; ERR_LIMIT: too many
 * questions wait. */
enum errc gpu_thread_ask(struct gpu_thread *t, const char *uuid, struct str cgroup, uint64_t bytes,
                         uint64_t ticket) _must_use_;
