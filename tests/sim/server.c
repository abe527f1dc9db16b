/* Where requests arrive at the simulated API server: applies faults and passes each request to its
 * handler. See server.h. */
#include "server.h"

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

void server_reset(void)
{
    server.up = true;
    server.token = 1;
    server.back = (struct happening){.fire = on_back};
    lists_reset();
    leases_reset();
    bindings_reset();
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
    f->reply.n = 0;
    f->status = code;
    text_z(&f->reply, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"");
    text_z(&f->reply, code < 300 ? "Success" : "Failure");
    text_z(&f->reply, "\",\"message\":");
    text_quoted(&f->reply, str_of(message));
    text_z(&f->reply, ",\"reason\":");
    text_quoted(&f->reply, str_of(reason));
    text_z(&f->reply, more);
    text_z(&f->reply, ",\"code\":");
    text_u64(&f->reply, code);
    text_z(&f->reply, "}\n");
}

static void reply_plain(struct flight *f, unsigned code, const char *body)
{
    f->reply.n = 0;
    f->status = code;
    text_z(&f->reply, body);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool query_get(struct str query, const char *key, struct text *ret)
{
    struct str part;
    struct str name;
    struct str value;
    while (query.n > 0) {
        (void)str_cut(query, '&', &part, &query);
        if (!str_cut(part, '=', &name, &value) || !str_eq(name, str_of(key)))
            continue;
        ret->n = 0;
        for (size_t i = 0; i < value.n; i++) {
            char c = value.p[i];
            if (c == '%' && i + 2 < value.n) {
                c = (char)(hex_digit(value.p[i + 1]) * 16 + hex_digit(value.p[i + 2]));
                i += 2;
            }
            text_put(ret, (struct str){&c, 1});
        }
        return true;
    }
    return false;
}

/* ---- handlers by path ---- */

/* True for a watch, which sends its answer itself. */
static bool serve_collection(struct flight *f, enum cache_kind kind, struct str query)
{
    struct text watch = {.p = NULL};
    bool watches = query_get(query, "watch", &watch) && str_eq(text_str(&watch), STR("true"));
    text_done(&watch);
    if (watches)
        serve_watch(f, kind, query);
    else
        serve_list(f, kind, query);
    return watches;
}

/* Events: the one to patch may have expired (404), the one to create may exist already (409). */
static void serve_event(struct flight *f)
{
    bool patch = strcmp(f->method, "PATCH") == 0;
    if (draw(8) == 0)
        reply_status(f, patch ? 404 : 409, patch ? "NotFound" : "AlreadyExists", "events", "");
    else
        reply_status(f, patch ? 200 : 201, "", "", "");
}

static bool is_post(const struct flight *f, struct str path, struct str of)
{
    return strcmp(f->method, "POST") == 0 && str_ends(path, of);
}

static bool serve(struct flight *f)
{
    static const struct str pods = STR("/api/v1/namespaces/");
    static const struct str leases = STR("/apis/coordination.k8s.io/v1/namespaces/");
    struct str path;
    struct str query;
    (void)str_cut(text_str(&f->path), '?', &path, &query);
    if (str_eq(path, STR("/api/v1/nodes")))
        return serve_collection(f, CACHE_NODES, query);
    if (str_eq(path, STR("/api/v1/pods")))
        return serve_collection(f, CACHE_PODS, query);
    if (str_eq(path, STR("/api/v1/namespaces/kube-system/configmaps")))
        return serve_collection(f, CACHE_HEALTH, query);
    if (str_eq(path, STR("/apis/policy/v1/poddisruptionbudgets")))
        return serve_collection(f, CACHE_KINDS, query);
    if (str_eq(path, STR("/apis/policy/v1beta1/poddisruptionbudgets"))) {
        reply_plain(f, 404, "404 page not found\n"); /* as an API server from 1.25 on */
        return false;
    }
    if (is_post(f, path, STR("/binding")))
        serve_binding(f, str_skip(path, pods.n), query);
    else if (is_post(f, path, STR("/eviction")))
        serve_eviction(f, str_skip(path, pods.n), query);
    else if (is_post(f, path, STR("/events")) || strcmp(f->method, "PATCH") == 0)
        serve_event(f);
    else if (str_starts(path, leases))
        serve_lease(f, str_skip(path, leases.n));
    else if (str_starts(path, pods) && strcmp(f->method, "GET") == 0)
        serve_get(f, str_skip(path, pods.n), query);
    else
        sim_fail(__FILE__, __LINE__, "a request that the API server does not know");
    return false;
}

void serve_get(struct flight *f, struct str path, struct str query)
{
    struct str ns;
    struct str name;
    struct text value = {.p = NULL};
    union object o;
    (void)str_cut(path, '/', &ns, &name);
    sim_check(str_starts(name, STR("pods/")));
    bool cached = query_get(query, "resourceVersion", &value);
    unsigned slot = store_find_pod(ns, str_skip(name, 5));
    text_done(&value);
    if (slot == MAX_PODS || !history_object(CACHE_PODS, slot, cached ? server_lag_ms() : 0, &o)) {
        reply_status(f, 404, "NotFound", "pods not found", ",\"details\":{\"kind\":\"pods\"}");
        return;
    }
    f->reply.n = 0;
    f->status = 200;
    render_object(&f->reply, CACHE_PODS, &o, false);
    flight_mark(f, CACHE_PODS, slot, o.pod.rv);
    f->marks[f->n_marks - 1].of_get = true;
}

/* A 4xx without a Status, as from a load balancer: the caller can't tell whether the request was
 * done. */
static void reply_of_balancer(struct flight *f)
{
    static const unsigned codes[] = {404, 404, 400, 401, 403, 409, 422};
    reply_plain(f, codes[draw(COUNT_OF(codes))], "<html>the load balancer says no</html>");
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
            reply_status(f, 403, "Forbidden", "forbidden for a moment", "");
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
    static const struct str pods = STR("/api/v1/namespaces/");
    struct str path;
    struct str query;
    (void)str_cut(text_str(&f->path), '?', &path, &query);
    if (!is_post(f, path, STR("/binding")))
        return NULL;
    return copy_binding(f, str_skip(path, pods.n), query);
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
