/*
 * The cards of this node, kept up to date by one thread of its own, because calls of NVML block:
 * for seconds as a rule, for ever if the driver hangs. The thread makes all of these calls. It
 * shares with the loop one mailbox under a mutex: it posts scans, events and answers there, and
 * wakes the loop by an eventfd. Everything else, these functions included, is on the loop.
 *
 * The thread waits for events, polls, and looks for all cards again every probe_ms while one is
 * missing or lost: for that it closes and opens NVML, because NVML lists cards when it is opened.
 * If the library is missing or the driver does not answer, it tries again with a growing delay.
 *
 * While a card waits for its reset and no pod uses it, NVML is closed, and open only for a look at
 * the cards and the requests of that moment every rest_ms: the driver resets no card that a process
 * has open. XIDs of other cards are not heard meanwhile.
 *
 * The state file is read at the start and written on the loop whenever a card gets an index, which
 * is at the first start and when the hardware changes.
 */
#pragma once

#include "gpu/gpu_limit.h"
#include "gpu/gpu_list.h"
#include "io/loop.h"

struct gpu_watch;

/* Strings are copied. Zero for a time: the default. */
struct gpu_watch_settings {
    const char *library;  /* path or name; NULL: "libnvidia-ml.so.1" */
    const char *state;    /* path of the state file; NULL: indices are not kept */
    const char *sys;      /* NULL: "/sys" */
    const char *proc;     /* NULL: "/proc" */
    const char *cgroup;   /* see struct gpu_roots; NULL: none */
    uint64_t card_bytes;  /* see struct gpu_roots */
    struct str disable;   /* DP_DISABLE_HEALTHCHECKS; absent: not set */
    struct str enable;    /* DP_ENABLE_HEALTHCHECKS */
    uint64_t cooldown_ms; /* without a fault until a card is healthy again; 300,000 */
    uint64_t poll_ms;     /* 10,000 */
    uint64_t probe_ms;    /* 30,000 */
    uint64_t wait_ms;     /* for events; a request and the stop wait as long: 1,000 */
    uint64_t retry_ms; /* the first delay after NVML failed; doubles up to 30 times this: 1,000 */
    uint64_t ask_ms;   /* until a request is answered with an error; 10,000 */
    uint64_t rest_ms;  /* so long NVML is closed at a time, for a reset; 20,000 */
    uint64_t hang_ms;  /* so long without an answer of NVML: no card can be used; 60,000 */

    /*
     * Whether pods use the card with this index, so that a new card may not have it. While the pods
     * are not known, the answer must be true. NULL: all indices are in use.
     */
    bool (*in_use)(void *ctx, uint32_t index);
    /* The cards, their health or the state has changed; may be called often. Must not free the
     * watch. */
    void (*on_change)(void *ctx);
    void *ctx;
};

enum gpu_watch_phase {
    GPU_WATCH_STARTING, /* no answer yet */
    GPU_WATCH_RUNNING,
    GPU_WATCH_NO_LIBRARY, /* libnvidia-ml.so.1 is not there, or too old */
    GPU_WATCH_NO_DRIVER,  /* NVML can't be initialized, or stopped answering */
    GPU_WATCH_HANGS,      /* a call does not return */
};

/* Views are valid until the next on_change. */
struct gpu_watch_state {
    enum gpu_watch_phase phase;
    struct str why;          /* in words; empty while it runs */
    struct str driver;       /* version; empty if not known */
    struct str state_fault;  /* why the last scan can't be used or the state file not written */
    struct str bad_setting;  /* a word in `disable` or `enable` that is not understood; or empty */
    struct str left_out_why; /* about three cards or slices that NVML lists and the watch can't
                                offer; fewer if there are no more */
    uint32_t left_out;
    uint32_t unheard; /* cards of which the driver reports no XIDs to us */
    bool rests;       /* NVML is closed most of the time, so that a card can be reset */
    /* So long the driver could not be used, and a new container may help: there is no library, or
     * no driver for it, or no card's device node may be opened. 0: it can; or a call hangs. */
    uint64_t shut_ms;
    uint64_t scans; /* since the start: a list of cards that arrived */
    uint64_t polls;
    uint64_t xids;     /* ignored ones included */
    uint64_t dropped;  /* events for which the mailbox had no room */
    uint64_t last_xid; /* 0: none */
};

/*
 * Starts the thread. A bad state file is an error (ERR_SYNTAX, ...): with an empty one instead,
 * pods would lose their cards. A missing library is none.
 */
enum errc gpu_watch_new(struct loop *l, const struct gpu_watch_settings *s, struct gpu_watch **ret,
                        struct err *reterr) _must_use_;

/*
 * Ends the thread. Waits for it for at most within_ms; a thread that hangs in NVML is left to
 * itself, touches nothing of the loop, and frees what it has if the call ever returns. Requests
 * under way are answered first. Returns NULL.
 */
struct gpu_watch *gpu_watch_free(struct gpu_watch *w, uint64_t within_ms);

/* By index; valid until the next on_change. Empty until the first scan, but for the cards of the
 * state file, which are missing until then. */
const struct gpu_card *gpu_watch_cards(const struct gpu_watch *w, size_t *ret_n);
const struct gpu_card *gpu_watch_find(const struct gpu_watch *w, uint32_t index);
struct gpu_watch_state gpu_watch_state(const struct gpu_watch *w);

/*
 * A question to the thread about one card. The caller embeds it in one of the two below and keeps
 * that until on_done or gpu_watch_cancel. Each has one answer, never from within the call that
 * asks: the thread's; after ask_ms, and rest_ms while NVML is closed for a reset, ERR_TIMEOUT;
 * while a call hangs, and from gpu_watch_free, ERR_UNAVAILABLE.
 */
struct gpu_request {
    uint32_t index; /* the caller's */
    /* Valid in on_done: */
    enum errc result; /* ERR_NOTFOUND: no such card; ERR_UNAVAILABLE and ERR_TIMEOUT: see above */
    char why[GPU_REASON_BYTES];
    /* private */
    struct gpu_watch *watch; /* NULL: not under way */
    uint64_t ticket;
    struct list_link link;
    struct deferred late; /* an answer that is known already */
    struct timer end;
    void (*done)(struct gpu_request *r);
};

/* Does nothing if it is not under way. */
void gpu_watch_cancel(struct gpu_request *r);

/* The processes of the card with their memory. */
struct gpu_usage_request {
    struct gpu_request base;
    /* The caller's; once. Must not free the watch. May ask again, which gpu_watch_free ignores. */
    void (*on_done)(struct gpu_usage_request *r);
    /* Valid in on_done: */
    struct nvml_process *processes; /* valid until on_done returns */
    size_t n;
    bool mps_known;      /* NVML has reported which of them are clients of MPS */
    bool cut;            /* there are more than LIMIT_GPU_PROCESSES */
    uint64_t used_bytes; /* of the card, by all processes and the driver; NVML_BYTES_UNKNOWN */
    uint64_t total_bytes;
    uint32_t busy_percent; /* UINT32_MAX: not known */
};

void gpu_watch_usage(struct gpu_watch *w, struct gpu_usage_request *r);

/* A limit of memory that is to be: see gpu_limit_ensure. */
struct gpu_limit_request {
    struct gpu_request base;
    struct str cgroup; /* the caller's, as bytes; copied */
    uint64_t bytes;
    void (*on_done)(struct gpu_limit_request *r); /* as above */
    /* Valid in on_done. Without an answer of the thread UNKNOWN, with the reason; NO_CARD if there
     * is no such card. */
    struct gpu_limit limit;
};

void gpu_watch_limit(struct gpu_watch *w, struct gpu_limit_request *r);
