/* Goes round the cards, one question at a time. What a card's last answer has shown stays until
 * its next one; and which pods have their event, until they are gone: a container that starts again
 * and again has another process each time. */
#include "node/isolation/mps.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/containers/cgroup.h"

#include <stdio.h>

#define MPS_OUTSIDE_MAX    256               /* pods on cards that are kept; more say nothing new */
#define MPS_EVENT_PAUSE_MS UINT64_C(3600000) /* between two events about a pod and a card */

/* A pod that has, or had, a process on the card that is no client of MPS. */
struct outside {
    uint32_t card;
    char uid[EVENT_UID_BYTES + 1];
    unsigned n;   /* such processes in the card's last answer */
    unsigned now; /* in the one that is read now */
    uint64_t event_ms;
    char fault[GPU_REASON_BYTES];
};

struct mps {
    struct mps_settings s;
    struct gpu_usage_request request;
    struct timer timer;
    struct buf scratch; /* a process' cgroups */
    bool on;
    size_t at;                   /* which of the cards is next */
    bool unreadable;             /* the log has that a process' cgroup can't be read */
    bool blind[LIMIT_GPU_CARDS]; /* NVML does not report the card's clients */
    struct outside items[MPS_OUTSIDE_MAX];
    size_t n;
    uint64_t found;
};

/* ---- processes ---- */

static void mps_report(struct mps *m, struct outside *o, uint32_t pid, const struct container *c)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {c->pod->namespace, c->pod->name, c->pod->uid};
    m->found++;
    o->event_ms = loop_now_ms(m->s.loop);
    log_warn("a process uses a card past MPS", kv_str("namespace", c->pod->namespace),
             kv_str("pod", c->pod->name), kv_str("container", c->name), kv_uint("card", o->card),
             kv_uint("pid", pid));
    buf_printf(&text,
               "process %u of container %.*s uses card %u past MPS, which limits it in nothing. "
               "The card gets no more pods until that process has ended",
               pid, STR_ARG(c->name), o->card);
    if (m->s.events != NULL)
        events_post(m->s.events, &pod, EVENT_WARNING, STR("GPUProcessOutsideMPS"), buf_str(&text));
}

/* The server of MPS, which is none of its own clients, runs in a pod of manifests/node-mps.yaml. No
 * user may make pods in kube-system. */
static bool mps_is_server(const struct container *c)
{
    return str_eq(c->pod->namespace, STR("kube-system")) &&
           str_starts(c->pod->name, STR("cardpack-mps-"));
}

/* The container of the process; NULL: it is in none of this node's pods, or the server of MPS. */
static const struct container *mps_container(struct mps *m, uint32_t pid)
{
    struct str id = STR_NULL;
    struct err e = ERR_INIT;
    enum errc code = cgroup_process_id(m->s.proc, pid, &m->scratch, &id, &e);
    if (code != OK && !m->unreadable) {
        m->unreadable = true;
        log_warn("the container of a process on a card is not known", kv_uint("pid", pid),
                 kv_cstr("error", e.text));
    }
    const struct container *c =
        code == OK && id.p != NULL ? containers_find(m->s.containers, id) : NULL;
    return c == NULL || mps_is_server(c) ? NULL : c;
}

/* Of the pod on the card; a new one has no event yet. NULL: there is no room. */
static struct outside *mps_outside(struct mps *m, uint32_t card, struct str uid)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->items[i].card == card && str_eq(str_of(m->items[i].uid), uid))
            return &m->items[i];
    }
    if (m->n == MPS_OUTSIDE_MAX || uid.n > EVENT_UID_BYTES)
        return NULL;
    struct outside *o = &m->items[m->n++];
    *o = (struct outside){.card = card};
    (void)snprintf(o->uid, sizeof(o->uid), "%.*s", STR_ARG(uid));
    return o;
}

static void mps_note(struct mps *m, uint32_t card, uint32_t pid, const struct container *c)
{
    struct outside *o = mps_outside(m, card, c->pod->uid);
    if (o == NULL || o->now++ > 0 || o->n > 0)
        return;
    (void)snprintf(o->fault, sizeof(o->fault),
                   "container %.*s of pod %.*s/%.*s uses the card past MPS", STR_ARG(c->name),
                   STR_ARG(c->pod->namespace), STR_ARG(c->pod->name));
    if (o->event_ms == 0 || loop_now_ms(m->s.loop) - o->event_ms >= MPS_EVENT_PAUSE_MS)
        mps_report(m, o, pid, c);
}

/* The answer of the card is read. Returns whether a pod has begun or stopped to use it so. */
static bool mps_sweep(struct mps *m, uint32_t card)
{
    size_t kept = 0;
    bool changed = false;
    for (size_t i = 0; i < m->n; i++) {
        struct outside *o = &m->items[i];
        if (o->card == card) {
            changed = changed || (o->n > 0) != (o->now > 0);
            o->n = o->now;
        }
        if (o->n > 0 || containers_pod(m->s.containers, str_of(o->uid)) != NULL)
            m->items[kept++] = *o;
    }
    m->n = kept;
    return changed;
}

static void mps_read(struct mps *m, const struct gpu_usage_request *r)
{
    for (size_t i = 0; i < m->n; i++)
        m->items[i].now = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct container *c =
            r->processes[i].mps ? NULL : mps_container(m, r->processes[i].pid);
        if (c != NULL)
            mps_note(m, r->base.index, r->processes[i].pid, c);
    }
    if (mps_sweep(m, r->base.index))
        m->s.changed(m->s.ctx);
}

/* ---- turns ---- */

static void mps_ask(struct mps *m)
{
    size_t n = 0;
    if (!m->on)
        return; /* `changed` has switched it off */
    const struct gpu_card *cards = gpu_watch_cards(m->s.gpu, &n);
    if (m->at >= n) {
        m->at = 0;
        timer_arm(m->s.loop, &m->timer, MPS_LOOK_MS);
        return;
    }
    m->request.base.index = cards[m->at++].index;
    gpu_watch_usage(m->s.gpu, &m->request);
}

static void mps_on_done(struct gpu_usage_request *r)
{
    struct mps *m = CONTAINER_OF(r, struct mps, request);
    bool known = r->mps_known && !r->cut;
    if (r->base.result == OK && m->blind[r->base.index] == known) {
        m->blind[r->base.index] = !known;
        m->s.changed(m->s.ctx);
    }
    if (m->on && r->base.result == OK && known)
        mps_read(m, r);
    mps_ask(m);
}

static void mps_on_timer(struct timer *t)
{
    mps_ask(CONTAINER_OF(t, struct mps, timer));
}

void mps_enable(struct mps *m, bool on)
{
    if (m->on == on)
        return;
    m->on = on;
    m->n = 0;
    m->at = 0;
    memset(m->blind, 0, sizeof(m->blind));
    timer_cancel(&m->timer);
    gpu_watch_cancel(&m->request.base);
    if (on)
        timer_arm(m->s.loop, &m->timer, 1);
}

/* ---- questions, life ---- */

struct str mps_fault(const struct mps *m, uint32_t card)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->items[i].card == card && m->items[i].n > 0)
            return str_of(m->items[i].fault);
    }
    return m->blind[card] ? STR("MPS: NVML does not report which processes are its clients")
                          : STR("");
}

struct mps_counts mps_counts(const struct mps *m)
{
    struct mps_counts counts = {.found = m->found};
    for (size_t i = 0; i < m->n; i++)
        counts.outside += m->items[i].n;
    return counts;
}

enum errc mps_new(const struct mps_settings *s, struct mps **ret, struct err *reterr)
{
    struct mps *m = mem_alloc(sizeof(*m));
    if (m == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for MPS");
    *m =
        (struct mps){.s = *s, .request = {.on_done = mps_on_done}, .timer = {.fire = mps_on_timer}};
    buf_init(&m->scratch, CGROUP_TEXT_MAX);
    *ret = m;
    return OK;
}

struct mps *mps_free(struct mps *m)
{
    if (m == NULL)
        return NULL;
    timer_cancel(&m->timer);
    gpu_watch_cancel(&m->request.base);
    buf_done(&m->scratch);
    mem_free(m);
    return NULL;
}
