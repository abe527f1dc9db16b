/*
 * The thin half: one call at a time and one timer. What was read or written last is kept whole,
 * because an update is an edit of it; its spec and its annotation tell whether anybody was heard
 * of.
 */
#include "election.h"

#include "lease.h"
#include "limit.h"
#include "mem.h"
#include "watch.h"

#define TEXT_MAX    (4 * KIB)
#define LEASE_MAX   (256 * KIB)
#define REPLY_ARENA (1 * MIB)

/* The duration that a release leaves, ours as client-go's: somebody's hand would leave the old. */
#define RELEASED_S 1

struct election {
    struct loop *loop;
    struct kube_api *api;
    struct election_sink sink;
    struct election_state state;
    uint64_t call_timeout_ms;
    struct timer timer;

    struct buf identity;
    struct buf namespace;
    struct buf name;
    struct buf path; /* of all leases of the namespace; with the name from name_at on */
    size_t name_at;

    struct kube_call call;
    struct buf body;
    struct deferred unsent; /* the body did not fit into memory */

    struct buf lease; /* as read or written last */
    struct arena arena;
    struct lease_view view; /* into both; valid if seen */
    bool seen;
    bool failing; /* the last call failed, and that was told */
};

static void react(struct election *e, const struct election_input *in, const struct err *err);

/* ---- what the lease says ---- */

static bool spec_is_new(const struct election *e, const struct lease_view *v)
{
    return !e->seen || !str_eq(v->spec, e->view.spec);
}

static bool wanted_is_new(const struct election *e, const struct lease_view *v)
{
    return e->seen && !str_eq(v->wanted, e->view.wanted);
}

static bool wanted_by_other(const struct election *e, const struct lease_view *v)
{
    struct str who;
    struct str when;
    (void)str_cut(v->wanted, ' ', &who, &when);
    return who.n > 0 && !str_eq(who, buf_str(&e->identity));
}

/* Keeps the object of a reply; in->changed and the like compare it with the one before. */
static enum errc keep(struct election *e, struct election_input *in, struct err *reterr)
{
    struct arena arena;
    struct lease_view v;
    arena_init(&arena, REPLY_ARENA);
    enum errc code = lease_read(buf_str(&e->call.http.reply), &arena, &v, reterr);
    if (code == OK) {
        in->held = v.holder.n > 0;
        in->mine = str_eq(v.holder, buf_str(&e->identity));
        in->released = !in->held && v.duration_s == RELEASED_S;
        in->taken = e->seen && v.transitions != e->view.transitions;
        in->changed = spec_is_new(e, &v);
        in->duration_ms = MIN_OF((uint64_t)v.duration_s, UINT64_MAX / 1000) * 1000;
        in->wanted_changed = wanted_is_new(e, &v);
        in->wanted_by_other = wanted_by_other(e, &v);
    }
    arena_done(&arena);
    if (code != OK)
        return code;
    buf_clear(&e->lease, LEASE_MAX);
    buf_put(&e->lease, buf_str(&e->call.http.reply));
    arena_reset(&e->arena);
    e->seen =
        !buf_failed(&e->lease) && lease_read(buf_str(&e->lease), &e->arena, &e->view, reterr) == OK;
    return e->seen ? OK : err_set(reterr, ERR_NOMEM, "no memory for the lease");
}

/* ---- calls ---- */

static bool reason_is(struct election *e, struct str reason)
{
    struct kube_status status;
    struct arena arena;
    arena_init(&arena, REPLY_ARENA);
    bool is = kube_status_read(buf_str(&e->call.http.reply), &arena, &status, NULL) == OK &&
              str_eq(status.reason, reason);
    arena_done(&arena);
    return is;
}

/* A load balancer has its own 403 and 404, which say nothing of the lease: only a Status does. */
static enum election_event event_of(struct election *e, struct err *reterr)
{
    const struct http_call *h = &e->call.http;
    bool reading = e->state.phase == ELECTION_READING;
    if (kube_call_result(&e->call, reterr) == OK)
        return reading ? ELECTION_ON_READ : ELECTION_ON_WROTE;
    if (h->outcome != HTTP_ANSWERED)
        return ELECTION_ON_FAILED;
    if (h->status == 401)
        kube_api_refresh(e->api);
    if (h->status == 403 && reason_is(e, STR("Forbidden")))
        return ELECTION_ON_DENIED;
    bool absent = h->status == 404 && reason_is(e, STR("NotFound"));
    if (reading)
        return absent ? ELECTION_ON_ABSENT : ELECTION_ON_FAILED;
    /* A lease that is gone under an update is read, and then created, as any. */
    return h->status == 409 || (absent && e->state.phase == ELECTION_WRITING) ? ELECTION_ON_CONFLICT
                                                                              : ELECTION_ON_FAILED;
}

static void on_done(struct http_call *http)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct election *e = CONTAINER_OF(call, struct election, call);
    struct err err = ERR_INIT;
    struct election_input in = {.event = event_of(e, &err)};
    if (in.event == ELECTION_ON_READ || in.event == ELECTION_ON_WROTE) {
        bool holds = e->state.phase != ELECTION_READING && e->state.write <= ELECTION_WRITE_RENEW;
        enum errc code = keep(e, &in, &err);
        if (code == OK && holds && !in.mine)
            code = err_set(&err, ERR_SYNTAX, "the answer to a write of the lease is another lease");
        if (code != OK)
            in.event = ELECTION_ON_FAILED; /* what it is now, a read tells */
    }
    kube_call_done(&e->call);
    react(e, &in, &err);
}

static void start(struct election *e, const char *method, size_t path_n)
{
    e->call.http = (struct http_call){
        .timeout_ms = e->call_timeout_ms,
        .max_reply = LEASE_MAX,
        .body = e->body.n > 0 ? buf_str(&e->body) : STR_NULL,
        .on_done = on_done,
    };
    if (buf_failed(&e->body))
        loop_defer(e->loop, &e->unsent);
    else
        kube_call_start(e->api, &e->call, method, (struct str){e->path.p, path_n});
}

static void on_unsent(struct deferred *d)
{
    struct election *e = CONTAINER_OF(d, struct election, unsent);
    struct election_input in = {.event = ELECTION_ON_FAILED};
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_NOMEM, "no memory to write the lease");
    react(e, &in, &err);
}

static void write_lease(struct election *e, bool create, enum election_write write)
{
    char now_text[MICRO_TIME_BYTES];
    struct jwrite w;
    struct arena arena;
    const struct lease_view *v = &e->view;
    struct str now = micro_time_print(loop_wall_ns(e->loop), now_text);
    struct str identity = buf_str(&e->identity);
    bool renews = !create && write == ELECTION_WRITE_RENEW && v->acquired.n > 0;
    bool release = write == ELECTION_WRITE_RELEASE;
    struct lease_edit edit = {
        .holder = release ? STR("") : identity,
        .acquired = renews ? v->acquired : now,
        .renewed = now,
        .duration_s = release ? RELEASED_S : (int64_t)(e->state.times.lease_ms / 1000),
        .transitions = create ? 0 : v->transitions,
    };
    arena_init(&arena, REPLY_ARENA);
    buf_clear(&e->body, LEASE_MAX);
    jwrite_init(&w, &e->body);
    if (create) {
        lease_write_new(&w, buf_str(&e->namespace), buf_str(&e->name), &edit);
    } else if (write == ELECTION_WRITE_WANT) {
        char wanted[TEXT_MAX];
        struct buf text = {.p = wanted, .cap = sizeof(wanted), .max = sizeof(wanted) - 1};
        buf_printf(&text, "%.*s %.*s", STR_ARG(identity), STR_ARG(now));
        lease_write_wanted(&w, buf_str(&e->lease), &arena, buf_str(&text));
    } else {
        if (write == ELECTION_WRITE_ACQUIRE && edit.transitions < INT32_MAX)
            edit.transitions++;
        lease_write_edited(&w, buf_str(&e->lease), &arena, &edit);
    }
    arena_done(&arena);
    start(e, create ? "POST" : "PUT", create ? e->name_at - 1 : e->path.n);
}

/* ---- what to do next ---- */

static void complain(struct election *e, enum election_event event, const struct err *err)
{
    bool failed = event == ELECTION_ON_FAILED || event == ELECTION_ON_DENIED;
    bool answered = event == ELECTION_ON_READ || event == ELECTION_ON_WROTE;
    if (failed && !e->failing)
        e->sink.note(e->sink.ctx, "the lease can't be read or written", err);
    else if (answered && e->failing)
        e->sink.note(e->sink.ctx, "the lease can be read and written again", NULL);
    if (failed || answered)
        e->failing = failed;
}

static void tell(struct election *e, const struct election_action *a, const struct err *err)
{
    const struct election_sink *s = &e->sink;
    switch (a->news) {
    case ELECTION_NO_NEWS:
        return;
    case ELECTION_WON:
        s->won(s->ctx, a->handed_over, a->ended_ms);
        return;
    case ELECTION_LOST:
        s->lost(s->ctx);
        return;
    case ELECTION_RUNS_ALONE:
        s->alone(s->ctx, a->ended_ms, err);
        return;
    case ELECTION_ASKED_FOR:
        s->wanted(s->ctx);
        return;
    }
}

static void perform(struct election *e, const struct election_action *a, const struct err *err)
{
    switch (a->what) {
    case ELECTION_DO_NOTHING:
        break;
    case ELECTION_DO_WAIT:
        timer_arm(e->loop, &e->timer, a->delay_ms);
        break;
    case ELECTION_DO_READ:
        buf_clear(&e->body, LEASE_MAX);
        start(e, "GET", e->path.n);
        break;
    case ELECTION_DO_CREATE:
    case ELECTION_DO_WRITE:
        write_lease(e, a->what == ELECTION_DO_CREATE, a->write);
        break;
    }
    tell(e, a, err); /* last: it may wish for something else */
}

/* What a call or the timer has brought. */
static void react(struct election *e, const struct election_input *in, const struct err *err)
{
    complain(e, in->event, err);
    struct election_action a =
        election_step(&e->state, in, loop_now_ms(e->loop), loop_random(e->loop));
    perform(e, &a, err);
}

static void on_timer(struct timer *t)
{
    struct election *e = CONTAINER_OF(t, struct election, timer);
    const struct election_input in = {.event = ELECTION_ON_TIMER};
    const struct err none = ERR_INIT;
    react(e, &in, &none);
}

/* From outside, at any time: what it asks for takes the place of the wait, or of the call. */
static void wish(struct election *e, enum election_event event)
{
    const struct election_input in = {.event = event};
    const struct err none = ERR_INIT;
    struct election_action a =
        election_step(&e->state, &in, loop_now_ms(e->loop), loop_random(e->loop));
    if (a.what != ELECTION_DO_NOTHING || a.news == ELECTION_LOST) {
        timer_cancel(&e->timer);
        deferred_cancel(&e->unsent);
        kube_call_cancel(&e->call);
        kube_call_done(&e->call);
    }
    perform(e, &a, &none);
}

void election_asked(struct election *e)
{
    wish(e, ELECTION_ON_ASKED);
}

void election_hand_over(struct election *e)
{
    wish(e, ELECTION_ON_RELEASE);
}

void election_stop(struct election *e)
{
    assert(!e->state.stopping);
    wish(e, ELECTION_ON_STOP);
}

bool election_leading(const struct election *e)
{
    return election_leads(&e->state, loop_clock_ms(e->loop));
}

struct str election_holder(const struct election *e)
{
    return e->seen && e->state.held ? e->view.holder : STR("");
}

/* ---- life ---- */

static bool copy_settings(struct election *e, const struct election_settings *s)
{
    buf_init(&e->identity, TEXT_MAX);
    buf_put(&e->identity, s->identity);
    buf_init(&e->namespace, TEXT_MAX);
    buf_put(&e->namespace, s->namespace);
    buf_init(&e->name, TEXT_MAX);
    buf_put(&e->name, s->name);
    buf_init(&e->path, 4 * TEXT_MAX);
    buf_put(&e->path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    kube_put_segment(&e->path, s->namespace);
    buf_put(&e->path, STR("/leases/"));
    e->name_at = e->path.n;
    kube_put_segment(&e->path, s->name);
    return !buf_failed(&e->identity) && !buf_failed(&e->namespace) && !buf_failed(&e->name) &&
           !buf_failed(&e->path);
}

enum errc election_new(struct loop *l, struct kube_api *api, const struct election_settings *s,
                       const struct election_sink *sink, struct election **ret, struct err *reterr)
{
    struct election *e = mem_alloc(sizeof(*e));
    if (e == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for an election");
    e->loop = l;
    e->api = api;
    e->sink = *sink;
    e->timer.fire = on_timer;
    e->unsent.run = on_unsent;
    /* Two tries, at least, before the time to renew is over. */
    e->call_timeout_ms = s->times.renew_deadline_ms / 2;
    election_state_init(&e->state, &s->times);
    buf_init(&e->body, LEASE_MAX);
    buf_init(&e->lease, LEASE_MAX);
    arena_init(&e->arena, REPLY_ARENA);
    if (!copy_settings(e, s)) {
        (void)election_free(e);
        return err_set(reterr, ERR_NOMEM, "no memory for an election");
    }
    timer_arm(l, &e->timer, 0);
    *ret = e;
    return OK;
}

struct election *election_free(struct election *e)
{
    if (e == NULL)
        return NULL;
    timer_cancel(&e->timer);
    deferred_cancel(&e->unsent);
    kube_call_cancel(&e->call);
    kube_call_done(&e->call);
    arena_done(&e->arena);
    buf_done(&e->lease);
    buf_done(&e->body);
    buf_done(&e->path);
    buf_done(&e->name);
    buf_done(&e->namespace);
    buf_done(&e->identity);
    mem_free(e);
    return NULL;
}
