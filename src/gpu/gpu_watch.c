/*
 * The loop's side: takes the posts of the thread, updates the list of cards, and calls the owner
 * once for all posts of a turn.
 */
#include "gpu/gpu_watch.h"

#include "gpu_faults.h"
#include "gpu_thread.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define COOLDOWN_MS UINT64_C(300000)
#define POLL_MS     UINT64_C(10000)
#define PROBE_MS    UINT64_C(30000)
#define WAIT_MS     UINT64_C(1000)
#define RETRY_MS    UINT64_C(1000)
#define REST_MS     UINT64_C(20000)
#define HANG_MS     UINT64_C(60000)
#define ASK_MS      UINT64_C(10000)

#define LEFT_OUT_NAMED 3 /* of the cards and slices that are left out */

#define HANG_LOOKS 4 /* how often the watch looks in hang_ms whether the thread goes on */

struct gpu_watch {
    struct loop *loop;
    struct gpu_thread *thread;
    struct loop_fd wake;
    struct timer look;
    struct gpu_list list;
    struct list requests; /* struct gpu_request, under way */
    uint64_t last_ticket;
    uint64_t hang_ms;
    uint64_t ask_ms;
    uint64_t rest_ms;
    uint64_t beats;
    uint64_t beat_at; /* ms; when they last grew */
    uint64_t shut_at; /* ms; since when the driver can't be used; 0: it can */
    bool unsaved;
    bool changed;
    bool ending;
    bool (*in_use)(void *ctx, uint32_t index);
    void (*on_change)(void *ctx);
    void *ctx;
    char path[PATH_MAX];   /* of the state file; empty: none */
    char faults[PATH_MAX]; /* of the file of faults; empty: none */
    struct buf boot;       /* its first line */
    struct buf on_disk;    /* its content */
    struct gpu_watch_state state;
    char why[GPU_REASON_BYTES];
    char driver[GPU_NAME_BYTES];
    char fault[sizeof(((struct err *)NULL)->text)];
    char bad[64];
    char left_out[LEFT_OUT_NAMED * GPU_REASON_BYTES];
};

static void gpu_watch_phase(struct gpu_watch *w, enum gpu_watch_phase phase, const char *why)
{
    if (w->state.phase == phase && strcmp(w->why, why) == 0)
        return;
    w->state.phase = phase;
    (void)snprintf(w->why, sizeof(w->why), "%s", why);
    w->changed = true;
}

static void gpu_watch_shut(struct gpu_watch *w, bool shut)
{
    uint64_t since = w->shut_at == 0 ? MAX_OF(loop_now_ms(w->loop), UINT64_C(1)) : w->shut_at;
    w->shut_at = shut ? since : 0;
}

static void gpu_watch_fault(struct gpu_watch *w, const char *text)
{
    w->changed = w->changed || strcmp(w->fault, text) != 0;
    (void)snprintf(w->fault, sizeof(w->fault), "%s", text);
}

static enum errc gpu_watch_save_faults(struct gpu_watch *w, struct err *reterr)
{
    struct buf text;
    enum errc code = OK;
    if (w->faults[0] == '\0')
        return OK;
    buf_init(&text, LIMIT_GPU_STATE_BYTES);
    gpu_faults_write(&w->list, buf_str(&w->boot), &text);
    if (buf_failed(&text))
        code = err_set(reterr, buf_fault(&text), "%s: no room for the text", w->faults);
    else if (!str_eq(buf_str(&text), buf_str(&w->on_disk)))
        code = file_replace(str_of(w->faults), buf_str(&text), reterr);
    if (code == OK) {
        struct buf before = w->on_disk;
        w->on_disk = text;
        text = before;
    }
    buf_done(&text);
    return code;
}

/* An index is on the disk before pods can get it, as far as the disk works. */
static void gpu_watch_save(struct gpu_watch *w)
{
    struct err e = ERR_INIT;
    w->unsaved =
        w->unsaved && w->path[0] != '\0' && gpu_identity_save(w->path, &w->list.identity, &e) != OK;
    bool good = !w->unsaved && gpu_watch_save_faults(w, &e) == OK;
    gpu_watch_fault(w, good ? "" : e.text);
}

/* What NVML lists and the list does not have. */
static void gpu_watch_left_out(struct gpu_watch *w, const struct gpu_scan *scan)
{
    uint32_t n = scan->left_out + w->list.no_index;
    char bytes[sizeof(w->left_out)] = "";
    struct buf why = BUF_ON(bytes);
    if (w->list.no_index > 0)
        buf_printf(&why, "all %d indices are taken", LIMIT_GPU_CARDS);
    for (uint32_t i = 0; i < MIN_OF(scan->left_out, LEFT_OUT_NAMED); i++)
        buf_printf(&why, "%s%s", why.n == 0 ? "" : "; ", scan->left[i].why);
    (void)buf_cstr(&why);
    w->changed = w->changed || w->state.left_out != n || w->state.unheard != scan->unheard ||
                 strcmp(bytes, w->left_out) != 0;
    memcpy(w->left_out, bytes, sizeof(bytes));
    w->state.left_out = n;
    w->state.unheard = scan->unheard;
}

static void gpu_watch_scanned(struct gpu_watch *w, struct gpu_scan *scan)
{
    bool changed = false;
    bool save = false;
    bool away = false;
    uint64_t now_ms = MAX_OF(loop_now_ms(w->loop), UINT64_C(1));
    enum errc code = gpu_list_scan(&w->list, scan, w->in_use, w->ctx, now_ms, &changed, &save);
    w->state.polls++;
    if (code != OK) {
        gpu_watch_fault(w, "no memory for the list of cards");
        return;
    }
    w->changed = w->changed || changed;
    w->state.scans += changed;
    w->unsaved = w->unsaved || save;
    gpu_watch_save(w);
    gpu_watch_phase(w, GPU_WATCH_RUNNING, "");
    gpu_watch_shut(w, gpu_scan_is_shut(scan));
    memcpy(w->driver, scan->driver, sizeof(w->driver));
    gpu_watch_left_out(w, scan);
    for (size_t i = 0; i < w->list.n; i++)
        away = away || w->list.entries[i].missing || w->list.entries[i].health.away;
    bool rests = gpu_list_awaits_reset(&w->list, w->in_use, w->ctx);
    w->changed = w->changed || rests != w->state.rests;
    w->state.rests = rests;
    gpu_thread_probe(w->thread, away, rests);
}

/* The request that asked for this post, which is then under way no more; NULL: it was taken back.
 */
static struct gpu_request *gpu_watch_answered(struct gpu_watch *w, const struct gpu_post *p)
{
    LIST_FOR_EACH (struct gpu_request, r, &w->requests, link) {
        if (r->ticket != p->ticket)
            continue;
        gpu_watch_cancel(r);
        r->result = p->result;
        memcpy(r->why, p->why, sizeof(r->why));
        return r;
    }
    return NULL;
}

static void gpu_watch_answered_usage(struct gpu_watch *w, const struct gpu_post *p)
{
    struct gpu_request *base = gpu_watch_answered(w, p);
    if (base == NULL)
        return;
    struct gpu_usage_request *r = CONTAINER_OF(base, struct gpu_usage_request, base);
    r->processes = p->usage.processes;
    r->n = p->usage.n;
    r->mps_known = p->usage.mps_known;
    r->cut = p->usage.cut;
    r->used_bytes = p->usage.used_bytes;
    r->total_bytes = p->usage.total_bytes;
    r->busy_percent = p->usage.busy_percent;
    r->on_done(r);
}

static void gpu_watch_answered_limit(struct gpu_watch *w, const struct gpu_post *p)
{
    struct gpu_request *base = gpu_watch_answered(w, p);
    if (base == NULL)
        return;
    struct gpu_limit_request *r = CONTAINER_OF(base, struct gpu_limit_request, base);
    r->limit = p->limit;
    r->on_done(r);
}

static void gpu_watch_down(struct gpu_watch *w, const struct gpu_post *p)
{
    gpu_watch_phase(w, p->no_library ? GPU_WATCH_NO_LIBRARY : GPU_WATCH_NO_DRIVER, p->why);
    gpu_watch_shut(w, true);
    w->changed = gpu_list_no_driver(&w->list, p->why, p->unloaded) || w->changed;
}

static void gpu_watch_xid(struct gpu_watch *w, const struct gpu_post *p)
{
    w->state.xids++;
    w->state.last_xid = p->xid;
    bool changed = gpu_list_xid(&w->list, p->uuid, p->xid, p->gpu_instance,
                                MAX_OF(loop_now_ms(w->loop), UINT64_C(1)));
    w->changed = w->changed || changed;
    if (changed)
        gpu_watch_save(w);
}

static void gpu_watch_take(struct gpu_watch *w, struct gpu_post *p)
{
    switch (p->kind) {
    case GPU_POST_SCAN:
        gpu_watch_scanned(w, &p->scan);
        break;
    case GPU_POST_DOWN:
        gpu_watch_down(w, p);
        break;
    case GPU_POST_XID:
        gpu_watch_xid(w, p);
        break;
    case GPU_POST_USAGE:
        gpu_watch_answered_usage(w, p);
        break;
    case GPU_POST_LIMIT:
        gpu_watch_answered_limit(w, p);
        break;
    }
}

static void gpu_watch_notify(struct gpu_watch *w)
{
    if (!w->changed)
        return;
    w->changed = false;
    if (w->on_change != NULL)
        w->on_change(w->ctx);
}

static void gpu_watch_ready(struct loop_fd *f, uint32_t events)
{
    struct gpu_watch *w = CONTAINER_OF(f, struct gpu_watch, wake);
    struct list posts;
    uint64_t count = 0;
    (void)events;
    ssize_t n = read(f->fd, &count, sizeof(count));
    (void)n;
    list_init(&posts);
    gpu_thread_take(w->thread, &posts);
    LIST_FOR_EACH (struct gpu_post, p, &posts, link) {
        list_remove(&p->link);
        gpu_watch_take(w, p);
        gpu_post_free(p);
    }
    gpu_watch_notify(w);
}

/* Whether the thread goes on; a call that does not return is seen here only. */
static void gpu_watch_check_hang(struct timer *t)
{
    struct gpu_watch *w = CONTAINER_OF(t, struct gpu_watch, look);
    char why[GPU_REASON_BYTES];
    uint64_t now_ms = loop_now_ms(w->loop);
    uint64_t beats = gpu_thread_beats(w->thread);
    if (beats != w->beats) {
        w->beats = beats;
        w->beat_at = now_ms;
    } else if (now_ms - w->beat_at >= w->hang_ms) {
        (void)snprintf(why, sizeof(why), "a call of NVML does not return since %llu s",
                       (unsigned long long)(w->hang_ms / 1000));
        gpu_watch_phase(w, GPU_WATCH_HANGS, why);
        gpu_watch_shut(w, false);
        w->changed = gpu_list_no_driver(&w->list, why, false) || w->changed;
    }
    timer_arm(w->loop, t, MAX_OF(w->hang_ms / HANG_LOOKS, UINT64_C(1)));
    gpu_watch_notify(w);
}

static enum errc gpu_watch_load(struct gpu_watch *w, const struct gpu_watch_settings *s,
                                struct err *reterr)
{
    struct gpu_identity id = {.n = 0};
    struct str bad;
    uint64_t cooldown = s->cooldown_ms == 0 ? COOLDOWN_MS : s->cooldown_ms;
    struct gpu_health_rules rules = gpu_health_rules(s->disable, s->enable, cooldown, &bad);
    gpu_list_init(&w->list, &rules);
    (void)snprintf(w->bad, sizeof(w->bad), "%.*s", STR_ARG(bad));
    if (s->state == NULL)
        return OK;
    if (snprintf(w->path, sizeof(w->path), "%s", s->state) >= (int)sizeof(w->path))
        return err_set(reterr, ERR_RANGE, "the path of the state file is too long");
    if (snprintf(w->faults, sizeof(w->faults), "%s.faults", s->state) >= (int)sizeof(w->faults))
        return err_set(reterr, ERR_RANGE, "the path of the state file is too long");
    enum errc code = gpu_identity_load(w->path, &id, reterr);
    if (code != OK)
        return code;
    code = gpu_list_load(&w->list, &id);
    if (code != OK)
        return err_set(reterr, code, "no memory for the list of cards");
    gpu_faults_boot(s->proc == NULL ? "/proc" : s->proc, &w->boot);
    gpu_faults_load(w->faults, buf_str(&w->boot), &w->list,
                    MAX_OF(loop_now_ms(w->loop), UINT64_C(1)));
    gpu_faults_write(&w->list, buf_str(&w->boot), &w->on_disk);
    return OK;
}

static enum errc gpu_watch_start(struct gpu_watch *w, const struct gpu_watch_settings *s,
                                 struct err *reterr)
{
    struct gpu_thread_settings settings = {
        .library = s->library == NULL ? "libnvidia-ml.so.1" : s->library,
        .sys = s->sys == NULL ? "/sys" : s->sys,
        .proc = s->proc == NULL ? "/proc" : s->proc,
        .cgroup = s->cgroup,
        .card_bytes = s->card_bytes,
        .poll_ms = s->poll_ms == 0 ? POLL_MS : s->poll_ms,
        .probe_ms = s->probe_ms == 0 ? PROBE_MS : s->probe_ms,
        .wait_ms = s->wait_ms == 0 ? WAIT_MS : s->wait_ms,
        .retry_ms = s->retry_ms == 0 ? RETRY_MS : s->retry_ms,
        .rest_ms = w->rest_ms,
    };
    w->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->wake.fd < 0)
        return err_set(reterr, ERR_UNAVAILABLE, "eventfd: %s", strerror(errno));
    enum errc code = loop_fd_add(w->loop, &w->wake, reterr);
    if (code == OK)
        code = gpu_thread_start(&settings, w->wake.fd, &w->thread, reterr);
    return code;
}

enum errc gpu_watch_new(struct loop *l, const struct gpu_watch_settings *s, struct gpu_watch **ret,
                        struct err *reterr)
{
    struct gpu_watch *w = mem_alloc(sizeof(*w));
    if (w == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    w->loop = l;
    w->wake = (struct loop_fd){.fd = -1, .events = EPOLLIN, .ready = gpu_watch_ready};
    w->look.fire = gpu_watch_check_hang;
    w->in_use = s->in_use;
    w->on_change = s->on_change;
    w->ctx = s->ctx;
    w->hang_ms = s->hang_ms == 0 ? HANG_MS : s->hang_ms;
    w->rest_ms = s->rest_ms == 0 ? REST_MS : s->rest_ms;
    w->ask_ms = s->ask_ms == 0 ? ASK_MS : s->ask_ms;
    w->beat_at = loop_now_ms(l);
    buf_init(&w->boot, KIB);
    buf_init(&w->on_disk, LIMIT_GPU_STATE_BYTES);
    list_init(&w->requests);
    enum errc code = gpu_watch_load(w, s, reterr);
    if (code == OK)
        code = gpu_watch_start(w, s, reterr);
    if (code != OK) {
        (void)gpu_watch_free(w, 0);
        return code;
    }
    timer_arm(l, &w->look, MAX_OF(w->hang_ms / HANG_LOOKS, UINT64_C(1)));
    *ret = w;
    return OK;
}

static void gpu_watch_late(struct deferred *d)
{
    struct gpu_request *r = CONTAINER_OF(d, struct gpu_request, late);
    gpu_watch_cancel(r);
    r->done(r);
}

static void gpu_watch_refuse(struct gpu_request *r, enum errc result, const char *why)
{
    gpu_watch_cancel(r);
    r->result = result;
    (void)snprintf(r->why, sizeof(r->why), "%s", why);
    r->done(r);
}

static void gpu_watch_refuse_all(struct gpu_watch *w)
{
    w->ending = true;
    while (!list_is_empty(&w->requests)) {
        struct gpu_request *r = LIST_FIRST(&w->requests, struct gpu_request, link);
        if (r->result == OK)
            gpu_watch_refuse(r, ERR_UNAVAILABLE, "the watch has ended");
        else
            gpu_watch_late(&r->late);
    }
}

struct gpu_watch *gpu_watch_free(struct gpu_watch *w, uint64_t within_ms)
{
    if (w == NULL)
        return NULL;
    timer_cancel(&w->look);
    gpu_watch_refuse_all(w);
    if (w->thread != NULL)
        gpu_thread_stop(w->thread, within_ms);
    loop_fd_del(&w->wake);
    if (w->wake.fd >= 0)
        (void)close(w->wake.fd);
    gpu_list_done(&w->list);
    buf_done(&w->boot);
    buf_done(&w->on_disk);
    mem_free(w);
    return NULL;
}

const struct gpu_card *gpu_watch_cards(const struct gpu_watch *w, size_t *ret_n)
{
    *ret_n = w->list.n;
    return w->list.cards;
}

const struct gpu_card *gpu_watch_find(const struct gpu_watch *w, uint32_t index)
{
    return gpu_list_find(&w->list, index);
}

struct gpu_watch_state gpu_watch_state(const struct gpu_watch *w)
{
    struct gpu_watch_state s = w->state;
    s.why = str_of(w->why);
    s.driver = str_of(w->driver);
    s.state_fault = str_of(w->fault);
    s.bad_setting = str_of(w->bad);
    s.left_out_why = str_of(w->left_out);
    s.shut_ms = w->shut_at == 0 ? 0 : loop_now_ms(w->loop) - w->shut_at;
    s.dropped = gpu_thread_dropped(w->thread);
    return s;
}

/* ---- requests ---- */

static void gpu_watch_timed_out(struct timer *t)
{
    gpu_watch_refuse(CONTAINER_OF(t, struct gpu_request, end), ERR_TIMEOUT, "NVML does not answer");
}

/* Asks the thread. A limit's cgroup is not empty. What is known without the thread is the answer at
 * the end of the turn. */
static void gpu_watch_ask(struct gpu_watch *w, struct gpu_request *r, struct str cgroup,
                          uint64_t bytes)
{
    const struct gpu_card *card = gpu_watch_find(w, r->index);
    const char *why = "too many requests";
    r->watch = w;
    r->ticket = ++w->last_ticket;
    r->late = (struct deferred){.run = gpu_watch_late};
    r->end = (struct timer){.fire = gpu_watch_timed_out};
    r->why[0] = '\0';
    list_push_back(&w->requests, &r->link);
    if (card == NULL) {
        r->result = ERR_NOTFOUND;
        why = "no card has this index";
    } else if (w->state.phase == GPU_WATCH_HANGS) {
        r->result = ERR_UNAVAILABLE;
        why = w->why;
    } else {
        r->result = gpu_thread_ask(w->thread, card->uuid.p, cgroup, bytes, r->ticket);
    }
    if (r->result == OK) {
        timer_arm(w->loop, &r->end, w->ask_ms + (w->state.rests ? w->rest_ms : 0));
        return;
    }
    (void)snprintf(r->why, sizeof(r->why), "%s", why);
    loop_defer(w->loop, &r->late);
}

void gpu_watch_cancel(struct gpu_request *r)
{
    if (r->watch == NULL)
        return;
    deferred_cancel(&r->late);
    timer_cancel(&r->end);
    list_remove(&r->link);
    r->watch = NULL;
}

/* Without an answer of the thread. */
static void gpu_watch_usage_done(struct gpu_request *base)
{
    struct gpu_usage_request *r = CONTAINER_OF(base, struct gpu_usage_request, base);
    r->on_done(r);
}

void gpu_watch_usage(struct gpu_watch *w, struct gpu_usage_request *r)
{
    assert(r->base.watch == NULL);
    if (w->ending)
        return;
    *r = (struct gpu_usage_request){
        .base = {.index = r->base.index, .done = gpu_watch_usage_done},
        .on_done = r->on_done,
        .used_bytes = NVML_BYTES_UNKNOWN,
        .total_bytes = NVML_BYTES_UNKNOWN,
        .busy_percent = UINT32_MAX,
    };
    gpu_watch_ask(w, &r->base, STR(""), 0);
}

static void gpu_watch_limit_done(struct gpu_request *base)
{
    struct gpu_limit_request *r = CONTAINER_OF(base, struct gpu_limit_request, base);
    r->limit.outcome = base->result == ERR_NOTFOUND ? GPU_LIMIT_NO_CARD : GPU_LIMIT_UNKNOWN;
    memcpy(r->limit.why, base->why, sizeof(r->limit.why));
    r->on_done(r);
}

void gpu_watch_limit(struct gpu_watch *w, struct gpu_limit_request *r)
{
    assert(r->base.watch == NULL && r->cgroup.n > 0);
    if (w->ending)
        return;
    r->base.done = gpu_watch_limit_done;
    r->limit = (struct gpu_limit){.bytes = NVML_LIMIT_NONE};
    gpu_watch_ask(w, &r->base, r->cgroup, r->bytes);
}
