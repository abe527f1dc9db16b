/*
 * Performs the actions of election_step: one call at a time and one timer. It keeps the whole Lease
 * as last read or written, because an update edits that object. A change of its spec or annotation
 * shows that another replica wrote.
 */
#include "kube/election.h"

#include "base/limit.h"
#include "base/mem.h"
#include "objects/lease.h"
#include "objects/watch.h"

#define TEXT_MAX    (4 * KIB)
#define LEASE_MAX   (256 * KIB)
#define REPLY_ARENA (1 * MIB)

/* leaseDurationSeconds after a release, as in client-go. */
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
    struct buf path; /* of the namespace's Leases, then the Lease's name from name_at on */
    size_t name_at;

    struct kube_call call;
    struct buf body;
    struct deferred unsent; /* reports a request that was not sent: no memory for its body */

    struct buf lease; /* as read or written last */
    struct arena arena;
    struct lease_view view; /* points into lease and arena; valid if seen */
    bool seen;
    bool failing;               /* a failed call was noted, and no such call has succeeded since */
    bool denied;                /* that call was denied: a right is missing */
    enum election_phase failed; /* the kind of that call */
};

static void election_react(struct election *e, const struct election_input *in,
                           const struct err *err);

/* ---- content of the Lease ---- */

static bool election_spec_is_new(const struct election *e, const struct lease_view *v)
{
    return !e->seen || !str_eq(v->spec, e->view.spec);
}

static bool election_wanted_is_new(const struct election *e, const struct lease_view *v)
{
    return e->seen && !str_eq(v->wanted, e->view.wanted);
}

static bool election_wanted_by_other(const struct election *e, const struct lease_view *v)
{
    struct str who;
    struct str when;
    (void)str_cut(v->wanted, ' ', &who, &when);
    return who.n > 0 && !str_eq(who, buf_str(&e->identity));
}

/* Whether its last holder has released the Lease: the time of the release is that of the last
 * write, and no replica has taken the Lease since. An edit, or an earlier object restored, is none.
 */
static bool election_is_released(const struct election *e, const struct lease_view *v)
{
    return v->holder.n == 0 && v->duration_s == RELEASED_S && v->renewed.n > 0 &&
           str_eq(v->released, v->renewed) && (!e->seen || v->transitions >= e->view.transitions);
}

/* Stores the Lease of a reply. in->changed and similar fields compare it with the one before. */
static enum errc election_keep(struct election *e, struct election_input *in, struct err *reterr)
{
    struct arena arena;
    struct lease_view v;
    arena_init(&arena, REPLY_ARENA);
    enum errc code = lease_read(buf_str(&e->call.http.reply), &arena, &v, reterr);
    if (code == OK) {
        in->held = v.holder.n > 0;
        in->mine = str_eq(v.holder, buf_str(&e->identity));
        in->released = election_is_released(e, &v);
        in->taken = e->seen && v.transitions != e->view.transitions;
        in->changed = election_spec_is_new(e, &v);
        in->duration_ms = MIN_OF((uint64_t)v.duration_s, UINT64_MAX / 1000) * 1000;
        in->wanted_changed = election_wanted_is_new(e, &v);
        in->wanted_by_other = election_wanted_by_other(e, &v);
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

/* Whether the API server itself refused with this code and reason. A load balancer's 403, 404 or
 * 409 says nothing about the Lease or about the rights to it. */
static bool election_is_refused(struct election *e, unsigned code, struct str reason)
{
    const struct http_call *h = &e->call.http;
    struct kube_status status;
    struct arena arena;
    if (h->status != code)
        return false;
    arena_init(&arena, REPLY_ARENA);
    bool is = kube_status_read(buf_str(&h->reply), &arena, &status, NULL) == OK &&
              kube_status_is_failure(&status, code) && str_eq(status.reason, reason);
    arena_done(&arena);
    return is;
}

/* Puts the missing right before the API server's message, whose end may be cut off. */
static void election_name_right(const struct election *e, struct err *err)
{
    static const char *const verbs[] = {[ELECTION_WAITING] = "",
                                        [ELECTION_READING] = "get",
                                        [ELECTION_CREATING] = "create",
                                        [ELECTION_WRITING] = "update"};
    (void)err_wrap(err,
                   "no right to %s leases.coordination.k8s.io \"%.*s\" in namespace \"%.*s\" "
                   "(needed: get, create, update)",
                   verbs[e->state.phase], STR_ARG(buf_str(&e->name)),
                   STR_ARG(buf_str(&e->namespace)));
}

static enum election_event election_event_of(struct election *e, struct err *reterr)
{
    const struct http_call *h = &e->call.http;
    bool reading = e->state.phase == ELECTION_READING;
    if (kube_call_result(&e->call, reterr) == OK)
        return reading ? ELECTION_ON_READ : ELECTION_ON_WROTE;
    if (h->outcome != HTTP_ANSWERED)
        return ELECTION_ON_FAILED;
    if (h->status == 401)
        kube_api_refresh(e->api);
    if (election_is_refused(e, 403, STR("Forbidden")))
        election_name_right(e, reterr);
    bool absent = election_is_refused(e, 404, STR("NotFound"));
    if (reading)
        return absent ? ELECTION_ON_ABSENT : ELECTION_ON_FAILED;
    /* 404 to an update: the Lease was deleted. As after a conflict, it is read and then created. */
    bool conflict = election_is_refused(e, 409, STR("Conflict")) ||
                    election_is_refused(e, 409, STR("AlreadyExists")) ||
                    (absent && e->state.phase == ELECTION_WRITING);
    return conflict ? ELECTION_ON_CONFLICT : ELECTION_ON_FAILED;
}

static void election_on_done(struct http_call *http)
{
    struct kube_call *call = CONTAINER_OF(http, struct kube_call, http);
    struct election *e = CONTAINER_OF(call, struct election, call);
    struct err err = ERR_INIT;
    struct election_input in = {.event = election_event_of(e, &err)};
    if (in.event == ELECTION_ON_READ || in.event == ELECTION_ON_WROTE) {
        bool holds = e->state.phase != ELECTION_READING && e->state.write <= ELECTION_WRITE_RENEW;
        enum errc code = election_keep(e, &in, &err);
        if (code == OK && holds && !in.mine)
            code = err_set(&err, ERR_SYNTAX, "the answer to a write of the lease is another lease");
        if (code != OK)
            in.event = ELECTION_ON_FAILED; /* a read will show the current Lease */
    }
    kube_call_done(&e->call);
    election_react(e, &in, &err);
}

static void election_start(struct election *e, const char *method, size_t path_n)
{
    e->call.http = (struct http_call){
        .timeout_ms = e->call_timeout_ms,
        .max_reply = LEASE_MAX,
        .body = e->body.n > 0 ? buf_str(&e->body) : STR_NULL,
        .on_done = election_on_done,
    };
    if (buf_failed(&e->body))
        loop_defer(e->loop, &e->unsent);
    else
        kube_call_start(e->api, &e->call, method, (struct str){e->path.p, path_n});
}

static void election_on_unsent(struct deferred *d)
{
    struct election *e = CONTAINER_OF(d, struct election, unsent);
    struct election_input in = {.event = ELECTION_ON_FAILED};
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_NOMEM, "no memory to write the lease");
    election_react(e, &in, &err);
}

static void election_write_lease(struct election *e, bool create, enum election_write write)
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
    struct lease_note note = {.key = release ? STR(LEASE_RELEASED_AT) : STR_NULL, .value = now};
    char wanted[TEXT_MAX];
    struct buf text = BUF_ON(wanted);
    arena_init(&arena, REPLY_ARENA);
    buf_clear(&e->body, LEASE_MAX);
    jwrite_init(&w, &e->body);
    if (create) {
        lease_write_new(&w, buf_str(&e->namespace), buf_str(&e->name), &edit);
    } else if (write == ELECTION_WRITE_WANT) {
        buf_printf(&text, "%.*s %.*s", STR_ARG(identity), STR_ARG(now));
        note = (struct lease_note){.key = STR(LEASE_WANTED_BY), .value = buf_str(&text)};
        lease_write_edited(&w, buf_str(&e->lease), &arena, NULL, note);
    } else {
        if (write == ELECTION_WRITE_ACQUIRE && edit.transitions < INT32_MAX)
            edit.transitions++;
        lease_write_edited(&w, buf_str(&e->lease), &arena, &edit, note);
    }
    arena_done(&arena);
    election_start(e, create ? "POST" : "PUT", create ? e->name_at - 1 : e->path.n);
}

/* ---- what to do next ---- */

/*
 * Notes each kind of failure once. A successful read does not end a failure by a missing right to
 * write: the next write would be denied again, and noted again.
 */
static void election_complain(struct election *e, enum election_phase phase,
                              enum election_event event, const struct err *err)
{
    bool denied = err->code == ERR_DENIED;
    bool may_not_write = e->denied && e->failed == ELECTION_WRITING;
    bool over = event == ELECTION_ON_WROTE || (event == ELECTION_ON_READ && !may_not_write);
    if (event == ELECTION_ON_FAILED) {
        if (!e->failing || e->denied != denied || (denied && e->failed != phase))
            e->sink.note(e->sink.ctx, "the lease can't be read or written", err);
        e->failing = true;
        e->failed = phase;
        e->denied = denied;
    } else if (e->failing && over) {
        e->sink.note(e->sink.ctx, "the lease can be read and written again", NULL);
        e->failing = false;
    }
}

static void election_tell(struct election *e, const struct election_action *a)
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
    case ELECTION_ASKED_FOR:
        s->wanted(s->ctx);
        return;
    }
}

static void election_perform(struct election *e, const struct election_action *a)
{
    switch (a->what) {
    case ELECTION_DO_NOTHING:
        break;
    case ELECTION_DO_WAIT:
        timer_arm(e->loop, &e->timer, a->delay_ms);
        break;
    case ELECTION_DO_READ:
        buf_clear(&e->body, LEASE_MAX);
        election_start(e, "GET", e->path.n);
        break;
    case ELECTION_DO_CREATE:
    case ELECTION_DO_WRITE:
        election_write_lease(e, a->what == ELECTION_DO_CREATE, a->write);
        break;
    }
    election_tell(e, a); /* last: the sink may call election_hand_over or election_stop */
}

/*
 * Input from a call or the timer. Reads the clock now: the loop's turn may have begun long ago, and
 * then the leader's last sign of life would get too early a time.
 */
static void election_react(struct election *e, const struct election_input *in,
                           const struct err *err)
{
    election_complain(e, e->state.phase, in->event, err);
    struct election_action a =
        election_step(&e->state, in, loop_clock_ms(e->loop), loop_random(e->loop));
    election_perform(e, &a);
}

static void election_on_timer(struct timer *t)
{
    struct election *e = CONTAINER_OF(t, struct election, timer);
    const struct election_input in = {.event = ELECTION_ON_TIMER};
    const struct err none = ERR_INIT;
    election_react(e, &in, &none);
}

/* Input from the caller, at any time: a new action replaces the wait or the call under way. */
static void election_wish(struct election *e, enum election_event event)
{
    const struct election_input in = {.event = event};
    struct election_action a =
        election_step(&e->state, &in, loop_clock_ms(e->loop), loop_random(e->loop));
    if (a.what != ELECTION_DO_NOTHING || a.news == ELECTION_LOST) {
        timer_cancel(&e->timer);
        deferred_cancel(&e->unsent);
        kube_call_cancel(&e->call);
        kube_call_done(&e->call);
    }
    election_perform(e, &a);
}

void election_asked(struct election *e)
{
    election_wish(e, ELECTION_ON_ASKED);
}

void election_hand_over(struct election *e)
{
    election_wish(e, ELECTION_ON_RELEASE);
}

void election_stop(struct election *e)
{
    assert(!e->state.stopping);
    election_wish(e, ELECTION_ON_STOP);
}

bool election_leading(const struct election *e)
{
    return election_leads(&e->state, loop_clock_ms(e->loop));
}

bool election_following(const struct election *e)
{
    const struct election_state *s = &e->state;
    return s->held && !s->mine && loop_clock_ms(e->loop) < s->heard_ms + s->duration_ms;
}

struct str election_holder(const struct election *e)
{
    return e->seen && e->state.held ? e->view.holder : STR("");
}

bool election_had_leader(const struct election *e)
{
    return !e->state.created;
}

/* ---- create and free ---- */

static bool election_copy_settings(struct election *e, const struct election_settings *s)
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
    e->timer.fire = election_on_timer;
    e->unsent.run = election_on_unsent;
    /* So that at least two tries fit into renew_deadline. */
    e->call_timeout_ms = s->times.renew_deadline_ms / 2;
    election_state_init(&e->state, &s->times);
    buf_init(&e->body, LEASE_MAX);
    buf_init(&e->lease, LEASE_MAX);
    arena_init(&e->arena, REPLY_ARENA);
    if (!election_copy_settings(e, s)) {
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
