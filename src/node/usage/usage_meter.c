/*
 * One round at a time, one card at a time. A turn of the loop reads the files of at most
 * PROCESSES_A_TURN processes.
 */
#include "node/usage/usage_meter.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/containers/cgroup.h"

#define PROCESSES_A_TURN 64
#define ROUNDS_LATE      3
#define LATE_MS          UINT64_C(30000)
#define EVENT_TEXT_BYTES 160
#define MIB_SHIFT        20

struct usage_meter {
    struct usage_meter_settings s;
    struct usage_tally tally;
    struct usage_post *post;
    struct usage_meter_counts counts;
    struct timer tick;
    struct timer turn; /* goes on with the card's processes */
    struct gpu_usage_request ask;
    struct buf scratch; /* for one file */
    bool busy;          /* a round is under way, since began_ms */
    uint64_t began_ms;
    uint32_t next;                  /* the least index that has not been asked for */
    struct nvml_process *processes; /* owned; of the card, with room for LIMIT_GPU_PROCESSES */
    size_t n;
    size_t at;
    struct usage_reading reading;
    uint64_t listed; /* processes of this round */
    uint64_t found;  /* of them, in /proc */
    bool warned;     /* the log has that none is */
};

/* ---- events ---- */

/* "9,100" */
static void usage_meter_put(struct buf *out, uint64_t n)
{
    uint64_t unit = 1;
    while (n / unit >= 1000)
        unit *= 1000;
    buf_put_u64(out, n / unit);
    for (; unit > 1; unit /= 1000)
        buf_printf(out, ",%03u", (unsigned)(n % unit / (unit / 1000)));
}

static void usage_meter_on_over(void *ctx, const struct usage_use *u)
{
    struct usage_meter *m = ctx;
    char bytes[EVENT_TEXT_BYTES];
    struct buf text = BUF_ON(bytes);
    uint64_t used = (u->bytes + (UINT64_C(1) << MIB_SHIFT) - 1) >> MIB_SHIFT;
    uint64_t share = u->promised >> MIB_SHIFT;
    const struct event_subject pod = {u->pod.namespace, u->pod.name, u->pod.uid};
    buf_put(&text, u->partial ? STR("uses at least ") : STR("uses "));
    usage_meter_put(&text, used);
    buf_printf(&text, " MiB of card %u, its share is ", u->card);
    usage_meter_put(&text, share);
    buf_put(&text, STR(" MiB"));
    log_warn("a pod uses more of a card than its share", kv_str("namespace", u->pod.namespace),
             kv_str("pod", u->pod.name), kv_uint("card", u->card), kv_uint("used_mib", used),
             kv_bool("at_least", u->partial), kv_uint("share_mib", share));
    if (m->s.events != NULL)
        events_post(m->s.events, &pod, EVENT_WARNING, STR("GPUMemoryOverShare"), buf_str(&text));
}

/* ---- a round ---- */

/* PIDs of another namespace: nothing is found, or the wrong process. */
static void usage_meter_judge(struct usage_meter *m)
{
    m->counts.blind = m->listed > 0 && m->found == 0;
    if (m->counts.blind == m->warned || m->listed == 0)
        return;
    m->warned = m->counts.blind;
    if (m->warned)
        log_warn("no process that uses a card is in /proc: what pods use is not known; "
                 "cardpack-node must run in the host's PID namespace (hostPID)",
                 kv_uint("processes", m->listed));
    else
        log_info("the processes that use cards are in /proc again");
}

static void usage_meter_end(struct usage_meter *m)
{
    m->busy = false;
    m->counts.rounds++;
    usage_tally_round_end(&m->tally);
    usage_meter_judge(m);
    usage_post_weigh(m->post);
}

static const struct gpu_card *usage_meter_next_card(const struct usage_meter *m)
{
    size_t n = 0;
    const struct gpu_card *cards = gpu_watch_cards(m->s.gpu, &n);
    for (size_t i = 0; i < n; i++) {
        if (cards[i].index >= m->next && !cards[i].missing)
            return &cards[i];
    }
    return NULL;
}

static void usage_meter_ask(struct usage_meter *m)
{
    const struct gpu_card *c = usage_meter_next_card(m);
    if (c == NULL) {
        usage_meter_end(m);
        return;
    }
    m->ask.base.index = c->index;
    m->next = c->index + 1;
    gpu_watch_usage(m->s.gpu, &m->ask);
}

static void usage_meter_on_promise(void *ctx, const struct usage_owner *pod, uint64_t bytes)
{
    struct usage_meter *m = ctx;
    usage_tally_promise(&m->tally, pod, bytes);
}

static void usage_meter_count(struct usage_meter *m, const struct nvml_process *p)
{
    struct str id = STR_NULL;
    struct str proc = str_of(m->s.proc);
    m->listed++;
    if (cgroup_process_id(proc, p->pid, &m->scratch, &id, NULL) != OK) {
        usage_tally_miss(&m->tally);
        return;
    }
    m->found++;
    if (id.p == NULL)
        return;
    const struct container *c = containers_find(m->s.containers, id);
    if (c == NULL) { /* its pod's status may not have it yet */
        usage_tally_miss(&m->tally);
        return;
    }
    const struct usage_owner pod = {c->pod->uid, c->pod->namespace, c->pod->name};
    usage_tally_process(&m->tally, &pod, p->bytes);
}

static void usage_meter_go_on(struct usage_meter *m)
{
    for (size_t i = 0; i < PROCESSES_A_TURN && m->at < m->n; i++)
        usage_meter_count(m, &m->processes[m->at++]);
    if (m->at < m->n) {
        timer_arm(m->s.loop, &m->turn, 0);
        return;
    }
    m->s.promises(m->s.ctx, m->tally.at, usage_meter_on_promise, m);
    usage_tally_end(&m->tally, &m->reading, loop_now_ms(m->s.loop), usage_meter_on_over, m);
    usage_meter_ask(m);
}

static void usage_meter_on_turn(struct timer *t)
{
    usage_meter_go_on(CONTAINER_OF(t, struct usage_meter, turn));
}

static bool usage_meter_store(struct usage_meter *m, const struct gpu_usage_request *r)
{
    if (m->processes == NULL)
        m->processes = mem_alloc(LIMIT_GPU_PROCESSES * sizeof(*m->processes));
    if (m->processes == NULL)
        return false;
    m->at = 0;
    m->n = MIN_OF(r->n, (size_t)LIMIT_GPU_PROCESSES);
    if (m->n > 0)
        memcpy(m->processes, r->processes, m->n * sizeof(*m->processes));
    return true;
}

static void usage_meter_on_done(struct gpu_usage_request *r)
{
    struct usage_meter *m = CONTAINER_OF(r, struct usage_meter, ask);
    const struct gpu_card *c = gpu_watch_find(m->s.gpu, r->base.index);
    m->reading = (struct usage_reading){r->used_bytes, r->total_bytes, r->busy_percent};
    if (c != NULL && r->base.result == OK && !r->cut && usage_meter_store(m, r) &&
        usage_tally_begin(&m->tally, r->base.index, c->uuid) == OK) {
        usage_meter_go_on(m);
        return;
    }
    m->counts.failures++;
    log_debug("what pods use of a card can't be read", kv_uint("card", r->base.index),
              kv_cstr("why", r->cut ? "too many processes" : r->base.why));
    if (c != NULL)
        usage_tally_fail(&m->tally, r->base.index, c->uuid,
                         r->base.result == OK ? &m->reading : NULL);
    usage_meter_ask(m);
}

static void usage_meter_on_tick(struct timer *t)
{
    struct usage_meter *m = CONTAINER_OF(t, struct usage_meter, tick);
    uint64_t now = loop_now_ms(m->s.loop);
    timer_arm(m->s.loop, t, m->s.interval_ms);
    if (m->busy) { /* NVML blocks */
        if (now - m->began_ms < m->s.late_ms)
            return;
        usage_tally_forget(&m->tally);
        usage_post_weigh(m->post);
        return;
    }
    if (gpu_watch_state(m->s.gpu).phase == GPU_WATCH_STARTING)
        return;
    m->busy = true;
    m->began_ms = now;
    m->next = 0;
    m->listed = m->found = 0;
    usage_tally_round_begin(&m->tally);
    usage_meter_ask(m);
}

/* ---- questions ---- */

void usage_meter_urge(struct usage_meter *m)
{
    usage_post_urge(m->post);
}

void usage_meter_gone(struct usage_meter *m, struct str uid)
{
    usage_tally_gone(&m->tally, uid);
}

const struct usage_tally *usage_meter_tally(const struct usage_meter *m)
{
    return &m->tally;
}

struct usage_post_counts usage_meter_posted(const struct usage_meter *m)
{
    return usage_post_counts(m->post);
}

struct usage_meter_counts usage_meter_counts(const struct usage_meter *m)
{
    return m->counts;
}

/* ---- life ---- */

enum errc usage_meter_new(const struct usage_meter_settings *s, struct usage_meter **ret,
                          struct err *reterr)
{
    struct usage_meter *m = mem_alloc(sizeof(*m));
    if (m == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory to measure what pods use");
    *m = (struct usage_meter){.s = *s,
                              .tick = {.fire = usage_meter_on_tick},
                              .turn = {.fire = usage_meter_on_turn},
                              .ask = {.on_done = usage_meter_on_done}};
    if (m->s.proc == NULL)
        m->s.proc = "/proc";
    if (m->s.late_ms == 0)
        m->s.late_ms = MAX_OF(LATE_MS, ROUNDS_LATE * s->interval_ms);
    usage_tally_init(&m->tally);
    buf_init(&m->scratch, CGROUP_TEXT_MAX);
    const struct usage_post_settings post = {.loop = s->loop,
                                             .api = s->api,
                                             .node = s->node,
                                             .tally = &m->tally,
                                             .write_ms = s->write_ms,
                                             .round_ms = s->interval_ms,
                                             .compared = s->compared,
                                             .ctx = s->ctx};
    enum errc code = usage_post_new(&post, &m->post, reterr);
    if (code != OK) {
        (void)usage_meter_free(m);
        return code;
    }
    /* Nodes that start together do not write together. */
    timer_arm(s->loop, &m->tick, loop_random(s->loop) % s->interval_ms);
    *ret = m;
    return OK;
}

struct usage_meter *usage_meter_free(struct usage_meter *m)
{
    if (m == NULL)
        return NULL;
    timer_cancel(&m->tick);
    timer_cancel(&m->turn);
    gpu_watch_cancel(&m->ask.base);
    m->post = usage_post_free(m->post);
    usage_tally_done(&m->tally);
    buf_done(&m->scratch);
    mem_free(m->processes);
    mem_free(m);
    return NULL;
}
