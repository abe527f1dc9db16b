/*
 * A watch on the double of NVML, with times of milliseconds, a state file and files of /proc in the
 * folder of its world.
 */
#pragma once

#include "gpu/gpu_watch.h"
#include "nvml_world.h"

#define REAL_CLOCK
#include "on_loop.h"

#define HOUR_MS UINT64_C(3600000)

struct gpu_rig {
    struct nvml_world world;
    struct gpu_watch_settings s; /* may be changed until gpu_rig_start */
    struct loop *loop;
    struct gpu_watch *watch;
    uint64_t busy; /* a bit for each index that pods use */
    char state[64];
    char proc[64];
    char cards[1024]; /* as gpu_rig_cards wrote them last */
};

static inline bool gpu_rig_in_use(void *ctx, uint32_t index)
{
    const struct gpu_rig *r = ctx;
    return index < 64 && (r->busy >> index & 1) != 0;
}

static inline void gpu_rig_open(struct gpu_rig *r, const char *world)
{
    *r = (struct gpu_rig){.busy = 0};
    world_open(&r->world, world);
    (void)snprintf(r->state, sizeof(r->state), "%s/cards", r->world.dir);
    (void)snprintf(r->proc, sizeof(r->proc), "%s/proc", r->world.dir);
    r->loop = loop_make();
    r->s = (struct gpu_watch_settings){.library = NVML_DOUBLE,
                                       .state = r->state,
                                       .proc = r->proc,
                                       .sys = r->proc,
                                       .cooldown_ms = HOUR_MS,
                                       .poll_ms = 5,
                                       .probe_ms = 10,
                                       .wait_ms = 2,
                                       .retry_ms = 5,
                                       .rest_ms = 5,
                                       .in_use = gpu_rig_in_use,
                                       .ctx = r};
}

/* The device nodes of a slice, as the kernel module lists them. */
static inline void gpu_rig_nodes(const struct gpu_rig *r, unsigned minor, unsigned gi)
{
    char command[512];
    (void)snprintf(command, sizeof(command),
                   "d=%s/driver/nvidia-caps && mkdir -p $d && "
                   "printf 'gpu%u/gi%u/access %u\\ngpu%u/gi%u/ci0/access %u\\n' >>$d/mig-minors",
                   r->proc, minor, gi, minor * 100 + gi * 2, minor, gi, minor * 100 + gi * 2 + 1);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test's own folder */
}

static inline void gpu_rig_start(struct gpu_rig *r)
{
    struct err e = ERR_INIT;
    ck_assert_ok(gpu_watch_new(r->loop, &r->s, &r->watch, &e), &e);
}

static inline void gpu_rig_stop(struct gpu_rig *r)
{
    r->watch = gpu_watch_free(r->watch, 60000);
}

static inline void gpu_rig_close(struct gpu_rig *r)
{
    gpu_rig_stop(r);
    r->loop = loop_free(r->loop);
    world_close(&r->world);
}

/* "0=GPU-1 1=GPU-2!": ~ stands behind a card that is warned, ! behind an unhealthy one, and ?
 * behind a missing one. */
static inline const char *gpu_rig_cards(struct gpu_rig *r)
{
    static const char *const marks[] = {"", "~", "!"};
    size_t n = 0;
    struct buf b = BUF_ON(r->cards);
    const struct gpu_card *c = gpu_watch_cards(r->watch, &n);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%u=%.*s%s", i == 0 ? "" : " ", c[i].index, STR_ARG(c[i].uuid),
                   c[i].missing ? "?" : marks[c[i].health]);
    buf_putc(&b, '\0');
    ck_assert(!buf_failed(&b));
    return r->cards;
}

static inline void gpu_rig_until_here(struct gpu_rig *r, enum gpu_watch_phase phase,
                                      const char *cards, const char *file, int line)
{
    char what[2048];
    struct wait w = wait_begin(r->loop, (struct here){file, line, what});
    while (gpu_watch_state(r->watch).phase != phase || strcmp(gpu_rig_cards(r), cards) != 0) {
        (void)snprintf(what, sizeof(what), "waiting for \"%s\" in phase %d, with \"%s\" in %d,",
                       cards, (int)phase, r->cards, (int)gpu_watch_state(r->watch).phase);
        wait_turn(&w);
    }
}

/* Runs the loop until the cards are these. */
#define gpu_rig_until(r, cards) \
    gpu_rig_until_here((r), GPU_WATCH_RUNNING, (cards), __FILE__, __LINE__)
#define gpu_rig_until_phase(r, phase, cards) \
    gpu_rig_until_here((r), (phase), (cards), __FILE__, __LINE__)

/* Until each card was polled since now. */
static inline void gpu_rig_poll(struct gpu_rig *r)
{
    uint64_t polls = gpu_watch_state(r->watch).polls;
    run_while(r->loop, gpu_watch_state(r->watch).polls < polls + 2);
}

#define assert_reason(r, index, part)                                                   \
    do {                                                                                \
        const struct gpu_card *c_ = gpu_watch_find((r)->watch, (index));                \
        ck_assert_ptr_nonnull(c_);                                                      \
        ck_assert_msg(memmem(c_->reason.p, c_->reason.n, (part), strlen(part)) != NULL, \
                      "the reason is \"%.*s\"", STR_ARG(c_->reason));                   \
    } while (0)
