/*
 * Fields of struct gpu_thread above the line belong to the thread, those below it to the mutex. A
 * call of NVML is never made with the mutex held, so the loop never waits for NVML.
 */
#include "gpu_thread.h"

#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define RETRY_MOST 30 /* the longest delay, in first delays */
#define ASKS_MOST  LIMIT_GPU_CARDS
#define ASK_PAUSE  UINT64_C(100) /* ms; the longest between two requests of a round */
#define EVENTS \
    (NVML_EVENT_XID | NVML_EVENT_DOUBLE_BIT | NVML_EVENT_SINGLE_BIT | NVML_EVENT_MIG_CONFIG)

struct gpu_ask {
    struct list_link link;
    uint64_t ticket;
    char uuid[GPU_UUID_BYTES];
    uint64_t limit; /* bytes */
    char cgroup[];  /* empty: a question for the usage */
};

struct gpu_thread {
    struct gpu_thread_settings settings;
    char library[PATH_MAX];
    char sys[PATH_MAX];
    char proc[PATH_MAX];
    char cgroup[PATH_MAX];
    struct gpu_roots roots;
    struct nvml *nvml; /* NULL: not open */
    struct nvml_events *events;
    struct nvml_device *heard[LIMIT_GPU_CARDS]; /* whose events are registered */
    size_t n_heard;
    struct nvml_event event; /* the last */
    bool kept;               /* it is not posted yet: there was no memory */
    struct gpu_scan scan;
    uint64_t sessions; /* how often NVML was opened */
    uint64_t poll_due;
    uint64_t opened_at;
    bool asked;        /* a request was answered, and the next of its round may follow at once */
    uint64_t delay_ms; /* after a failure; 0: the last try was good */
    char why[GPU_REASON_BYTES];
    bool no_library;

    pthread_t id;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* for the thread: a request or the stop */
    pthread_cond_t gone;    /* for the loop: ended is true */
    struct list posts;
    struct list asks;
    size_t n_xids;
    size_t n_asks;
    uint64_t dropped;
    uint64_t beats;
    int wake_fd;
    bool stop;
    bool ended;
    bool orphan; /* the loop does not wait any more: the thread frees all */
    bool probe;
    bool rests;
};

static uint64_t gpu_thread_now_ms(void)
{
    struct timespec t;
    int r = clock_gettime(CLOCK_MONOTONIC, &t);
    assert(r == 0);
    (void)r;
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct timespec gpu_thread_time(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

void gpu_post_free(struct gpu_post *p)
{
    if (p == NULL)
        return;
    gpu_scan_done(&p->scan);
    mem_free(p->usage.processes);
    mem_free(p);
}

/* With the mutex held. A second scan, or the same failure, takes the place of the first. */
static void gpu_thread_put(struct gpu_thread *t, struct gpu_post *p)
{
    struct gpu_post *last = LIST_LAST(&t->posts, struct gpu_post, link);
    if (p->kind == GPU_POST_XID && t->n_xids == LIMIT_GPU_EVENTS) {
        t->dropped++;
        gpu_post_free(p);
        return;
    }
    if (last != NULL && last->kind == p->kind &&
        (p->kind == GPU_POST_SCAN || p->kind == GPU_POST_DOWN)) {
        p->unloaded = p->unloaded || last->unloaded;
        list_remove(&last->link);
        gpu_post_free(last);
    }
    t->n_xids += p->kind == GPU_POST_XID;
    list_push_back(&t->posts, &p->link);
}

/* p may be NULL: there was no memory, and the next poll tries again. */
static void gpu_thread_post(struct gpu_thread *t, struct gpu_post *p)
{
    const uint64_t one = 1;
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&t->mutex);
    gpu_thread_put(t, p);
    /* It fails only if the eventfd is full, and then it is readable anyway. */
    ssize_t n = t->orphan ? 0 : write(t->wake_fd, &one, sizeof(one));
    (void)n;
    (void)pthread_mutex_unlock(&t->mutex);
}

static struct gpu_post *gpu_thread_new_post(enum gpu_post_kind kind)
{
    struct gpu_post *p = mem_alloc(sizeof(*p));
    if (p != NULL)
        p->kind = kind;
    return p;
}

static void gpu_thread_post_scan(struct gpu_thread *t)
{
    struct gpu_post *p = gpu_thread_new_post(GPU_POST_SCAN);
    if (p != NULL && gpu_scan_copy(&t->scan, &p->scan))
        gpu_thread_post(t, p);
    else
        gpu_post_free(p);
}

/* NVML also answers that no driver is loaded where the device nodes can't be opened; only a driver
 * that is not in the kernel has let go of its cards. */
static bool gpu_thread_is_unloaded(const struct gpu_thread *t, int code)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/module/nvidia", t->roots.sys);
    return code == NVML_DRIVER_NOT_LOADED && n > 0 && (size_t)n < sizeof(path) &&
           access(path, F_OK) != 0 && errno == ENOENT;
}

static void gpu_thread_post_down(struct gpu_thread *t, int code)
{
    struct gpu_post *p = gpu_thread_new_post(GPU_POST_DOWN);
    if (p == NULL)
        return;
    p->no_library = t->no_library;
    p->unloaded = gpu_thread_is_unloaded(t, code);
    memcpy(p->why, t->why, sizeof(p->why));
    gpu_thread_post(t, p);
}

static void gpu_thread_close(struct gpu_thread *t)
{
    gpu_scan_done(&t->scan);
    t->kept = false;
    if (t->nvml == NULL)
        return;
    nvml_events_free(t->nvml, t->events);
    t->events = NULL;
    (void)nvml_shutdown(t->nvml);
    t->nvml = nvml_close(t->nvml);
}

/* Reports it to the loop, and waits longer each time. */
static void gpu_thread_fail(struct gpu_thread *t, const char *call, int code)
{
    if (code != NVML_OK)
        (void)snprintf(t->why, sizeof(t->why), "%s: NVML error %d (%s)", call, code,
                       nvml_text(t->nvml, code));
    gpu_thread_post_down(t, code);
    gpu_thread_close(t);
    uint64_t most = t->settings.retry_ms * RETRY_MOST;
    t->delay_ms = t->delay_ms == 0 ? t->settings.retry_ms : MIN_OF(t->delay_ms * 2, most);
}

static bool gpu_thread_hears(const struct gpu_thread *t, const struct nvml_device *card)
{
    for (size_t i = 0; i < t->n_heard; i++)
        if (t->heard[i] == card)
            return true;
    return false;
}

/* Registers the scan's cards that are new: one in MIG mode is in the scan only when it has slices.
 * A card whose events can't be registered is polled only. */
static void gpu_thread_register(struct gpu_thread *t)
{
    t->scan.unheard = 0;
    for (size_t i = 0; i < t->scan.n; i++) {
        uint64_t types = 0;
        struct nvml_device *card = t->scan.items[i].card;
        if (gpu_thread_hears(t, card) || (i > 0 && t->scan.items[i - 1].card == card))
            continue;
        if (t->events != NULL && t->n_heard < COUNT_OF(t->heard) &&
            nvml_events_supported(t->nvml, card, &types) == NVML_OK && (types & EVENTS) != 0 &&
            nvml_events_register(t->nvml, t->events, card, types & EVENTS) == NVML_OK)
            t->heard[t->n_heard++] = card;
        else
            t->scan.unheard++;
    }
}

static bool gpu_thread_open(struct gpu_thread *t)
{
    struct err why = ERR_INIT;
    t->no_library = nvml_open(t->library, &t->nvml, &why) != OK;
    if (t->no_library) {
        (void)snprintf(t->why, sizeof(t->why), "%.*s", (int)sizeof(t->why) - 1, why.text);
        gpu_thread_fail(t, "", NVML_OK);
        return false;
    }
    int code = nvml_init(t->nvml);
    if (code != NVML_OK) {
        gpu_thread_fail(t, "nvmlInit", code);
        return false;
    }
    code = gpu_scan_read(t->nvml, &t->roots, &t->scan);
    if (code != NVML_OK) {
        gpu_thread_fail(t, "nvmlDeviceGetCount", code);
        return false;
    }
    t->scan.session = ++t->sessions;
    t->n_heard = 0;
    if (nvml_events_new(t->nvml, &t->events) != NVML_OK)
        t->events = NULL;
    gpu_thread_register(t);
    t->delay_ms = 0;
    gpu_thread_post_scan(t);
    t->opened_at = gpu_thread_now_ms();
    t->poll_due = t->opened_at + t->settings.poll_ms;
    return true;
}

/* A new scan takes the place of the last. But a card that can't be described any more stays, with
 * its error: the last scan has its handle. */
static void gpu_thread_poll(struct gpu_thread *t)
{
    struct gpu_scan now = {.n = 0};
    int code = gpu_scan_read(t->nvml, &t->roots, &now);
    if (code == NVML_MEMORY) { /* which says nothing about the cards */
        t->poll_due = gpu_thread_now_ms() + t->settings.poll_ms;
        return;
    }
    if (code != NVML_OK) {
        gpu_thread_fail(t, "nvmlDeviceGetCount", code);
        return;
    }
    if (gpu_scan_lacks_faulty(t->nvml, &t->roots, &now, &t->scan)) {
        gpu_scan_done(&now);
    } else {
        gpu_scan_done(&t->scan);
        t->scan = now;
        t->scan.session = t->sessions;
        gpu_thread_register(t);
    }
    gpu_thread_post_scan(t);
    /* From its end, as a slow driver would else be polled all the time, and its events not read. */
    t->poll_due = gpu_thread_now_ms() + t->settings.poll_ms;
}

/* False: no memory. */
static bool gpu_thread_event(struct gpu_thread *t, const struct nvml_event *e)
{
    if (e->type != NVML_EVENT_XID) {
        /* What it means is in the next poll; many events in a row have one together. */
        t->poll_due = MIN_OF(t->poll_due, gpu_thread_now_ms() + t->settings.wait_ms);
        return true;
    }
    for (size_t i = 0; i < t->scan.n; i++) {
        const struct gpu_found *f = &t->scan.items[i];
        if (f->card != e->device)
            continue;
        struct gpu_post *p = gpu_thread_new_post(GPU_POST_XID);
        if (p == NULL)
            return false;
        memcpy(p->uuid, f->mig ? f->parent : f->uuid, sizeof(p->uuid));
        p->xid = e->data;
        p->gpu_instance = e->gpu_instance;
        gpu_thread_post(t, p);
        /* What the driver makes of it is in a poll, soon; many XIDs in a row have one together. */
        t->poll_due = MIN_OF(t->poll_due, gpu_thread_now_ms() + t->settings.wait_ms);
        break;
    }
    return true;
}

/* Until a request, the stop, or the end of the time. */
static void gpu_thread_sleep(struct gpu_thread *t, uint64_t ms)
{
    struct timespec until = gpu_thread_time(gpu_thread_now_ms() + ms);
    (void)pthread_mutex_lock(&t->mutex);
    int r = 0;
    while (!t->stop && list_is_empty(&t->asks) && r == 0)
        r = pthread_cond_timedwait(&t->changed, &t->mutex, &until);
    (void)pthread_mutex_unlock(&t->mutex);
}

static void gpu_thread_wait(struct gpu_thread *t)
{
    uint64_t now = gpu_thread_now_ms();
    if (now >= t->poll_due)
        return;
    uint64_t ms = MIN_OF(t->settings.wait_ms, t->poll_due - now);
    if (t->asked) { /* no request ends the wait for events, which the driver keeps meanwhile */
        t->asked = false;
        gpu_thread_sleep(t, MIN_OF(ms, ASK_PAUSE));
        return;
    }
    if (t->events == NULL) {
        gpu_thread_sleep(t, ms);
        return;
    }
    int code = t->kept ? NVML_OK : nvml_events_wait(t->nvml, t->events, (uint32_t)ms, &t->event);
    if (code == NVML_OK) {
        t->kept = !gpu_thread_event(t, &t->event);
        if (t->kept)
            gpu_thread_sleep(t, ms);
    } else if (code != NVML_TIMEOUT) {
        /* As for a lost card, and then at every call: the poll says which card it is. */
        gpu_thread_sleep(t, ms);
    }
}

static enum errc gpu_thread_measure(struct gpu_thread *t, const struct gpu_found *f,
                                    struct gpu_post *p)
{
    int code = gpu_measure(t->nvml, f->device, &p->usage);
    if (code == NVML_OK)
        return OK;
    (void)snprintf(p->why, sizeof(p->why), "NVML error %d (%s)", code, nvml_text(t->nvml, code));
    return code == NVML_MEMORY ? ERR_NOMEM : ERR_UNAVAILABLE;
}

static void gpu_thread_answer_limit(struct gpu_thread *t, const struct gpu_ask *ask)
{
    struct gpu_post *p = gpu_thread_new_post(GPU_POST_LIMIT);
    if (p == NULL)
        return;
    p->ticket = ask->ticket;
    p->limit = (struct gpu_limit){.bytes = NVML_LIMIT_NONE};
    if (t->nvml == NULL)
        memcpy(p->limit.why, t->why, sizeof(t->why));
    else
        p->limit.outcome = GPU_LIMIT_NO_CARD;
    for (size_t i = 0; i < t->scan.n; i++)
        if (strcmp(t->scan.items[i].uuid, ask->uuid) == 0)
            gpu_limit_ensure(t->nvml, t->scan.items[i].device, ask->cgroup, ask->limit, &p->limit);
    gpu_thread_post(t, p);
}

static void gpu_thread_answer(struct gpu_thread *t, const struct gpu_ask *ask)
{
    struct gpu_post *p = gpu_thread_new_post(GPU_POST_USAGE);
    if (p == NULL)
        return;
    p->ticket = ask->ticket;
    p->result = t->nvml == NULL ? ERR_UNAVAILABLE : ERR_NOTFOUND;
    p->usage = (struct gpu_usage){.used_bytes = NVML_BYTES_UNKNOWN,
                                  .total_bytes = NVML_BYTES_UNKNOWN,
                                  .busy_percent = UINT32_MAX};
    (void)snprintf(p->why, sizeof(p->why), "%.*s", (int)sizeof(p->why) - 1,
                   t->nvml == NULL ? t->why : "NVML does not list the card");
    for (size_t i = 0; i < t->scan.n; i++)
        if (strcmp(t->scan.items[i].uuid, ask->uuid) == 0)
            p->result = gpu_thread_measure(t, &t->scan.items[i], p);
    gpu_thread_post(t, p);
}

/* Takes what the loop has asked for. False: stop. */
static bool gpu_thread_serve(struct gpu_thread *t, bool *ret_probe, bool *ret_rests)
{
    struct list asks;
    list_init(&asks);
    (void)pthread_mutex_lock(&t->mutex);
    t->beats++;
    bool goes_on = !t->stop;
    *ret_probe = t->probe;
    *ret_rests = t->rests;
    list_move(&asks, &t->asks);
    t->n_asks = 0;
    (void)pthread_mutex_unlock(&t->mutex);
    LIST_FOR_EACH (struct gpu_ask, ask, &asks, link) {
        list_remove(&ask->link);
        t->asked = true;
        if (goes_on && ask->cgroup[0] != '\0')
            gpu_thread_answer_limit(t, ask);
        else if (goes_on)
            gpu_thread_answer(t, ask);
        mem_free(ask);
    }
    return goes_on;
}

static void gpu_thread_free(struct gpu_thread *t)
{
    LIST_FOR_EACH (struct gpu_post, p, &t->posts, link) {
        list_remove(&p->link);
        gpu_post_free(p);
    }
    LIST_FOR_EACH (struct gpu_ask, ask, &t->asks, link) {
        list_remove(&ask->link);
        mem_free(ask);
    }
    (void)pthread_cond_destroy(&t->changed);
    (void)pthread_cond_destroy(&t->gone);
    (void)pthread_mutex_destroy(&t->mutex);
    mem_free(t);
}

/* The driver refuses to reset a card while a process has its device node open. False: stop. */
static bool gpu_thread_rest(struct gpu_thread *t)
{
    struct timespec until = gpu_thread_time(gpu_thread_now_ms() + t->settings.rest_ms);
    gpu_thread_close(t);
    (void)pthread_mutex_lock(&t->mutex);
    int r = 0;
    while (!t->stop && r == 0)
        r = pthread_cond_timedwait(&t->changed, &t->mutex, &until);
    bool goes_on = !t->stop;
    (void)pthread_mutex_unlock(&t->mutex);
    return goes_on;
}

static void *gpu_thread_main(void *arg)
{
    struct gpu_thread *t = arg;
    bool probe = false;
    bool rests = false;
    while (gpu_thread_serve(t, &probe, &rests)) {
        uint64_t now = gpu_thread_now_ms();
        if (t->nvml != NULL && probe && now - t->opened_at >= t->settings.probe_ms)
            gpu_thread_close(t);
        if (t->nvml != NULL && rests && !t->asked && !gpu_thread_rest(t))
            break;
        if (t->nvml == NULL) {
            if (!gpu_thread_open(t))
                gpu_thread_sleep(t, t->delay_ms);
        } else if (now >= t->poll_due) {
            gpu_thread_poll(t);
        } else {
            gpu_thread_wait(t);
        }
    }
    gpu_thread_close(t);
    (void)pthread_mutex_lock(&t->mutex);
    bool orphan = t->orphan;
    t->ended = true;
    (void)pthread_cond_signal(&t->gone);
    (void)pthread_mutex_unlock(&t->mutex);
    if (orphan)
        gpu_thread_free(t);
    return NULL;
}

static bool gpu_thread_copy(const char *from, char to[PATH_MAX])
{
    return snprintf(to, PATH_MAX, "%s", from) < PATH_MAX;
}

static struct gpu_thread *gpu_thread_new(const struct gpu_thread_settings *s, int wake_fd)
{
    pthread_condattr_t attributes;
    struct gpu_thread *t = mem_alloc(sizeof(*t));
    if (t == NULL)
        return NULL;
    t->settings = *s;
    t->roots = (struct gpu_roots){.sys = t->sys,
                                  .proc = t->proc,
                                  .cgroup = s->cgroup == NULL ? NULL : t->cgroup,
                                  .card_bytes = s->card_bytes};
    t->wake_fd = wake_fd;
    list_init(&t->posts);
    list_init(&t->asks);
    (void)pthread_mutex_init(&t->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->changed, &attributes);
    (void)pthread_cond_init(&t->gone, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return t;
}

enum errc gpu_thread_start(const struct gpu_thread_settings *s, int wake_fd,
                           struct gpu_thread **ret, struct err *reterr)
{
    sigset_t all;
    sigset_t before;
    struct gpu_thread *t = gpu_thread_new(s, wake_fd);
    if (t == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    if (!gpu_thread_copy(s->library, t->library) || !gpu_thread_copy(s->sys, t->sys) ||
        !gpu_thread_copy(s->proc, t->proc) ||
        !gpu_thread_copy(s->cgroup == NULL ? "" : s->cgroup, t->cgroup)) {
        gpu_thread_free(t);
        return err_set(reterr, ERR_RANGE, "a path is too long");
    }
    /* All signals go to the loop. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->id, NULL, gpu_thread_main, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        gpu_thread_free(t);
        return err_set(reterr, ERR_UNAVAILABLE, "no thread: %s", strerror(error));
    }
    *ret = t;
    return OK;
}

void gpu_thread_stop(struct gpu_thread *t, uint64_t within_ms)
{
    struct timespec until = gpu_thread_time(gpu_thread_now_ms() + within_ms);
    (void)pthread_mutex_lock(&t->mutex);
    t->stop = true;
    (void)pthread_cond_signal(&t->changed);
    int r = 0;
    while (!t->ended && r == 0)
        r = pthread_cond_timedwait(&t->gone, &t->mutex, &until);
    bool ended = t->ended;
    pthread_t id = t->id;
    t->orphan = !ended;
    (void)pthread_mutex_unlock(&t->mutex);
    if (!ended) {
        (void)pthread_detach(id);
        return;
    }
    (void)pthread_join(id, NULL);
    gpu_thread_free(t);
}

void gpu_thread_take(struct gpu_thread *t, struct list *to)
{
    (void)pthread_mutex_lock(&t->mutex);
    list_move(to, &t->posts);
    t->n_xids = 0;
    (void)pthread_mutex_unlock(&t->mutex);
}

static uint64_t gpu_thread_count(struct gpu_thread *t, const uint64_t *count)
{
    (void)pthread_mutex_lock(&t->mutex);
    uint64_t n = *count;
    (void)pthread_mutex_unlock(&t->mutex);
    return n;
}

uint64_t gpu_thread_beats(struct gpu_thread *t)
{
    return gpu_thread_count(t, &t->beats);
}

uint64_t gpu_thread_dropped(struct gpu_thread *t)
{
    return gpu_thread_count(t, &t->dropped);
}

void gpu_thread_probe(struct gpu_thread *t, bool wanted, bool rests)
{
    (void)pthread_mutex_lock(&t->mutex);
    t->probe = wanted;
    t->rests = rests;
    (void)pthread_mutex_unlock(&t->mutex);
}

enum errc gpu_thread_ask(struct gpu_thread *t, const char *uuid, struct str cgroup, uint64_t bytes,
                         uint64_t ticket)
{
    struct gpu_ask *ask = mem_alloc(sizeof(*ask) + cgroup.n + 1);
    if (ask == NULL)
        return ERR_NOMEM;
    ask->ticket = ticket;
    ask->limit = bytes;
    memcpy(ask->cgroup, cgroup.p, cgroup.n);
    ask->cgroup[cgroup.n] = '\0';
    (void)snprintf(ask->uuid, sizeof(ask->uuid), "%s", uuid);
    (void)pthread_mutex_lock(&t->mutex);
    bool room = t->n_asks < ASKS_MOST;
    if (room) {
        list_push_back(&t->asks, &ask->link);
        t->n_asks++;
        (void)pthread_cond_signal(&t->changed);
    }
    (void)pthread_mutex_unlock(&t->mutex);
    if (!room)
        mem_free(ask);
    return room ? OK : ERR_LIMIT;
}
