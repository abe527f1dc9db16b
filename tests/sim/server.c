/* Where requests arrive at the simulated API server: applies faults and passes each request to its
 * handler. See server.h. */
#include "server.h"

#include "api/leases.h"
#include "api/lists.h"
#include "locks.h"
#include "oracle.h"

static struct {
    bool up;
    struct happening back;
    unsigned token;
} server;

static void on_back(struct happening *h)
{
    (void)h;
    server.up = true;
    trace("server is back", STR(""), 0, 0);
}

/* ---- what the store calls ---- */

void api_fail(const char *file, int line, const char *why)
{
    sim_fail(file, line, why);
}

static uint64_t now_ms(void)
{
    return world.now_ms;
}

static void on_changed(const struct change *c)
{
    const union object *o = &c->new;
    bool there = o->any.exists;
    oracle_changed(c);
    if (c->kind == CACHE_PODS)
        trace("pod", name_str(&o->pod.uid), there ? (int64_t)o->pod.phase : -1,
              pod_object_card(&o->pod));
    else if (c->kind == CACHE_NODES)
        trace("node", name_str(&o->node.name), there ? o->node.mem : -2, o->node.count);
    else if (c->kind == CACHE_SLICES)
        trace("slice", name_str(&o->slice.name), there, o->slice.n_devices);
    else if (c->kind == CACHE_CLAIMS)
        trace("claim", name_str(&o->claim.uid), there, o->claim.n_results);
    else if (c->kind == CACHE_CLASSES)
        trace("class", name_str(&o->class.name), there, o->class.serves);
    else
        trace("configmap", name_str(&o->health.name), there, 0);
    server_tell(c->kind);
}

void server_reset(void)
{
    store_reset();
    store.now_ms = now_ms;
    store.changed = on_changed;
    store.ignores_preconditions = !world.set.preconditions;
    store.serves_dra = world.set.kinds[KIND_CLAIMS];
    server.up = true;
    server.token = 1;
    server.back = (struct happening){.fire = on_back};
    lists_reset();
    leases_reset();
    lease_writes_reset();
    bindings_reset();
    locks_reset();
}

bool server_is_up(void)
{
    return server.up;
}

struct name server_token(void)
{
    return name_of("token-", server.token);
}

void server_rotate_token(void)
{
    server.token++;
}

void server_compact(void)
{
    store.oldest_rv = store.rv;
    lists_expire();
}

uint64_t server_lag_ms(void)
{
    return world.quiet ? 0 : world.set.lag_ms;
}

void server_restart(uint64_t away_ms)
{
    struct flight *next = NULL;
    server.up = false;
    plan(&server.back, away_ms);
    for (struct flight *f = flights; f != NULL; f = next) {
        next = f->next;
        if (f->stage != FLIGHT_CONNECTING && f->stage != FLIGHT_SENT && f->stage != FLIGHT_OVER)
            flight_over(f, HTTP_UNKNOWN);
    }
    bindings_end_with_server();
    if (chance(500))
        server_compact();
}

/* ---- replies ---- */

void reply_status(struct flight *f, unsigned code, const char *reason, const char *message,
                  const char *more)
{
    f->status = code;
    status_write(&f->reply, code, reason, message, more);
}

static void reply_plain(struct flight *f, unsigned code, const char *body)
{
    f->reply.n = 0;
    f->status = code;
    text_z(&f->reply, body);
}

/* ---- handlers by path ---- */

/* Events: the one to patch may have expired (404), the one to create may exist already (409). */
static void serve_event(struct flight *f)
{
    bool patch = strcmp(f->method, "PATCH") == 0;
    if (draw(8) == 0)
        reply_status(f, patch ? 404 : 409, patch ? "NotFound" : "AlreadyExists", "events", "");
    else
        reply_status(f, patch ? 200 : 201, "", "", "");
}

static void serve_get(struct flight *f, const struct api_request *r)
{
    uint64_t rv = 0;
    unsigned slot = pod_write(&f->reply, r, server_lag_ms(), &rv);
    f->status = slot == MAX_PODS ? 404 : 200;
    if (slot == MAX_PODS)
        return;
    flight_mark(f, CACHE_PODS, slot, rv);
    f->marks[f->n_marks - 1].of_get = true;
}

static struct api_request request_of(const struct flight *f)
{
    return api_request_read(str_of(f->method), text_str(&f->path));
}

/* True for a watch, which sends its answer itself. */
static bool serve(struct flight *f)
{
    struct api_request r = request_of(f);
    switch (r.verb) {
    case API_LIST:
        serve_list(f, r.kind, r.query);
        return false;
    case API_WATCH:
        serve_watch(f, r.kind, r.query);
        return true;
    case API_GET:
        serve_get(f, &r);
        return false;
    case API_NODE:
        serve_node(f, &r);
        return false;
    case API_BIND:
        serve_binding(f, &r);
        return false;
    case API_EVICT:
        serve_eviction(f, &r);
        return false;
    case API_EVENT:
        serve_event(f);
        return false;
    case API_LEASE:
        serve_lease(f, &r);
        return false;
    case API_GROUP:
        f->status = 200;
        text_z(&f->reply, "{\"kind\":\"APIResourceList\"}");
        return false;
    case API_ABSENT:
        reply_plain(f, 404, "404 page not found\n"); /* as an API server from 1.25 on */
        return false;
    case API_UNKNOWN:
        break;
    }
    sim_fail(__FILE__, __LINE__, "a request that the API server does not know");
}

/* A 4xx without a Status, as from a load balancer: the caller can't tell whether the request was
 * done. */
static void reply_of_balancer(struct flight *f)
{
    static const unsigned codes[] = {404, 404, 400, 401, 403, 409, 422};
    reply_plain(f, codes[draw(COUNT_OF(codes))], "<html>the load balancer says no</html>");
}

static void refuse(struct flight *f)
{
    struct api_request r = request_of(f);
    reply_status(f, 403, "Forbidden", "forbidden for a moment", "");
    locks_refused(f, &r);
}

/* Refuses a request before it is served, with a status that says so. */
static bool turned_away(struct flight *f)
{
    struct name token = server_token();
    if (!str_eq(name_str(&f->bearer), name_str(&token))) {
        reply_status(f, 401, "Unauthorized", "Unauthorized", "");
        return true;
    }
    if (fault(FAULT_THROTTLED)) {
        reply_plain(f, 429, "Too many requests, please try again later.\n");
        f->retry_after_ms = draw(4) * UINT64_C(1000);
        if (draw(20) == 0)
            f->retry_after_ms = 3600 * UINT64_C(1000);
        return true;
    }
    if (fault(FAULT_5XX)) {
        if (draw(2) == 0)
            reply_plain(f, 503, "<html>no upstream</html>");
        else if (draw(6) == 0)
            refuse(f);
        else
            reply_status(f, 500, "InternalError", "a webhook is not well", "");
        f->retry_after_ms = draw(2) * UINT64_C(1000);
        return true;
    }
    if (fault(FAULT_BARE_4XX)) {
        reply_of_balancer(f);
        return true;
    }
    return false;
}

/* Sends the answer of a request that was served; the answer may get lost. */
static void send_back(struct flight *f)
{
    uint64_t delay_ms = f->delay_ms + net_latency();
    /* The load balancer answers in place of the API server, though the request was served. */
    if (fault(FAULT_BARE_4XX))
        reply_of_balancer(f);
    if (fault(FAULT_ANSWER_LOST)) {
        f->reply.n = 0;
        flight_break(f, HTTP_UNKNOWN, delay_ms);
    } else if (fault(FAULT_SILENT)) {
        f->reply.n = 0;
        f->stage = FLIGHT_WAITING;
        if (f->call == NULL)
            flight_break(f, HTTP_UNKNOWN, delay_ms);
    } else {
        bool cut = f->call != NULL && f->reply.n > 1 && fault(FAULT_ANSWER_CUT);
        if (cut)
            f->reply.n = 1 + draw((unsigned)f->reply.n - 1);
        flight_answer(f, f->status, delay_ms);
        if (cut)
            f->outcome = HTTP_UNKNOWN;
    }
}

static void answer(struct flight *f)
{
    if (f->status == 0) /* no answer: the caller's timeout expires */
        flight_break(f, HTTP_UNKNOWN, draw(2) == 0 ? net_latency() : 120000);
    else
        send_back(f);
}

/* Makes a copy if this is a Binding; else NULL. */
static struct pending *copy(const struct flight *f)
{
    struct api_request r = request_of(f);
    return r.verb == API_BIND ? copy_binding(f, &r) : NULL;
}

void server_arrive(struct flight *f)
{
    trace("arrives", text_str(&f->path), f->sender, 0);
    if (!server.up || fault(FAULT_REFUSED)) {
        flight_break(f, HTTP_NOT_SENT, net_latency());
        return;
    }
    if (fault(FAULT_LOST)) {
        flight_break(f, HTTP_UNKNOWN, draw(2) == 0 ? net_latency() : 60000);
        return;
    }
    f->stage = FLIGHT_WAITING;
    struct pending *twin = fault(FAULT_COPIED) ? copy(f) : NULL;
    if (!turned_away(f)) {
        if (serve(f))
            return;
        if (f->status != 0 && fault(FAULT_DOUBLED))
            (void)serve(f);
    }
    if (twin != NULL)
        copy_answered(twin, f->status);
    answer(f);
}
