/* LIST and WATCH of the simulated API server (contract kubernetes 3). */
#include "server.h"

#include <stdlib.h>

#define SESSIONS    16
#define MAX_LISTED  MAX_PODS
#define BOOKMARK_MS 60000
#define SELECTOR    STR("status.phase!=Succeeded,status.phase!=Failed")

/* A paged list: every page shows the objects of the first page's moment. */
struct session {
    uint64_t id; /* 0: expired */
    uint64_t rv;
    enum cache_kind kind;
    unsigned n;
    unsigned slots[MAX_LISTED];
    union object objects[MAX_LISTED];
};

static struct session sessions[SESSIONS];
static uint64_t last_session;

void lists_expire(void)
{
    for (size_t i = 0; i < SESSIONS; i++)
        sessions[i].id = 0;
}

void lists_reset(void)
{
    lists_expire();
    last_session = 0;
}

/* Entry CACHE_KINDS is PodDisruptionBudgets; there are none. */
static const char *const list_kinds[CACHE_KINDS + 1] = {[CACHE_NODES] = "NodeList",
                                                        [CACHE_PODS] = "PodList",
                                                        [CACHE_HEALTH] = "ConfigMapList",
                                                        [CACHE_KINDS] = "PodDisruptionBudgetList"};
static const char *const object_kinds[CACHE_KINDS + 1] = {[CACHE_NODES] = "Node",
                                                          [CACHE_PODS] = "Pod",
                                                          [CACHE_HEALTH] = "ConfigMap",
                                                          [CACHE_KINDS] = "PodDisruptionBudget"};

static void session_add(struct session *s, unsigned slot, uint64_t lag_ms)
{
    union object *o = &s->objects[s->n];
    if (!history_object(s->kind, slot, lag_ms, o))
        return;
    if (s->kind == CACHE_PODS && pod_object_terminal(&o->pod))
        return;
    s->slots[s->n++] = slot;
}

static struct session *session_new(enum cache_kind kind, uint64_t lag_ms)
{
    struct session *s = &sessions[++last_session % SESSIONS];
    const unsigned slots[CACHE_KINDS + 1] = {[CACHE_PODS] = store.n_pods,
                                             [CACHE_NODES] = store.n_nodes,
                                             [CACHE_HEALTH] = COUNT_OF(store.healths)};
    s->id = last_session;
    s->rv = history_version(lag_ms);
    s->kind = kind;
    s->n = 0;
    for (unsigned i = 0; i < slots[kind]; i++)
        session_add(s, i, lag_ms);
    return s;
}

/* The token is "/+ID:OFFSET=": opaque as the real ones, with characters that a client must
 * escape. */
static struct session *session_find(struct str token, unsigned *ret_offset)
{
    struct str id_text;
    struct str offset_text;
    uint64_t id = 0;
    uint64_t offset = 0;
    bool whole = str_starts(token, STR("/+")) && str_ends(token, STR("="));
    sim_check(whole);
    token = (struct str){token.p + 2, token.n - 3};
    whole = str_cut(token, ':', &id_text, &offset_text) && str_to_u64(id_text, UINT64_MAX, &id) &&
            str_to_u64(offset_text, MAX_LISTED, &offset);
    sim_check(whole);
    struct session *s = &sessions[id % SESSIONS];
    *ret_offset = (unsigned)offset;
    return s->id == id && !fault(FAULT_CONTINUE_GONE) ? s : NULL;
}

static void reply_page(struct flight *f, const struct session *s, unsigned from, unsigned to)
{
    struct text *t = &f->reply;
    t->n = 0;
    f->n_marks = 0;
    f->status = 200;
    text_z(t, "{\"kind\":\"");
    text_z(t, list_kinds[s->kind]);
    text_z(t, "\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"");
    text_u64(t, s->rv);
    text_z(t, "\"");
    if (to < s->n) {
        text_z(t, ",\"continue\":\"/+");
        text_u64(t, s->id);
        text_z(t, ":");
        text_u64(t, to);
        text_z(t, "=\",\"remainingItemCount\":");
        text_u64(t, s->n - to);
    }
    text_z(t, "},\"items\":[");
    for (unsigned i = from; i < to; i++) {
        text_z(t, i > from ? "," : "");
        render_object(t, s->kind, &s->objects[i], true);
        const union object *o = &s->objects[i];
        uint64_t rv = s->kind == CACHE_PODS    ? o->pod.rv
                      : s->kind == CACHE_NODES ? o->node.rv
                                               : o->health.rv;
        flight_mark(f, s->kind, s->slots[i], rv);
    }
    text_z(t, "]}\n");
}

void serve_list(struct flight *f, enum cache_kind kind, struct str query)
{
    struct text value = {.p = NULL};
    uint64_t limit = 0;
    unsigned from = 0;
    struct session *s = NULL;
    if (query_get(query, "limit", &value))
        sim_check(str_to_u64(text_str(&value), 10000, &limit));
    bool cached = query_get(query, "resourceVersion", &value);
    sim_check(!cached || str_eq(text_str(&value), STR("0")));
    bool selects = query_get(query, "fieldSelector", &value);
    sim_check(selects == (kind == CACHE_PODS));
    sim_check(!selects || str_eq(text_str(&value), SELECTOR));
    if (query_get(query, "continue", &value)) {
        s = session_find(text_str(&value), &from);
        text_done(&value);
        if (s == NULL) {
            reply_status(f, 410, "Expired", "The provided continue parameter is too old", "");
            return;
        }
    } else {
        s = session_new(kind, cached ? server_lag_ms() : 0);
    }
    text_done(&value);
    unsigned to = limit > 0 && from + limit < s->n ? from + (unsigned)limit : s->n;
    reply_page(f, s, from, to);
}

/* ---- watches ---- */

static bool selected(const struct change *c, bool exists, const union object *o)
{
    return exists && (c->kind != CACHE_PODS || !pod_object_terminal(&o->pod));
}

static void put_event(struct flight *f, const struct change *c, const char *type,
                      const union object *o)
{
    union object object = *o;
    if (c->kind == CACHE_PODS)
        object.pod.rv = c->rv;
    else if (c->kind == CACHE_NODES)
        object.node.rv = c->rv;
    else
        object.health.rv = c->rv;
    unsigned times = fault(FAULT_WATCH_DOUBLED) ? 2 : 1;
    for (unsigned i = 0; i < times; i++) {
        text_z(&f->reply, "{\"type\":\"");
        text_z(&f->reply, type);
        text_z(&f->reply, "\",\"object\":");
        render_object(&f->reply, c->kind, &object, false);
        text_z(&f->reply, "}\n");
    }
    flight_mark(f, c->kind, c->slot, c->rv);
}

static void put_change(struct flight *f, const struct change *c)
{
    bool was = selected(c, c->existed, &c->old);
    bool is = selected(c, c->exists, &c->new);
    if (is)
        put_event(f, c, was ? "MODIFIED" : "ADDED", &c->new);
    else if (was) /* also when the object no longer matches the selector: then with its old
                   * content */
        put_event(f, c, "DELETED", &c->old);
}

/* When the server of this watch learns of the next change, in ms. */
static uint64_t known_ms(const struct flight *f)
{
    if (f->next_change == history_size())
        return UINT64_MAX;
    return history_at(f->next_change)->at_ms + (world.quiet ? 0 : f->lag_ms);
}

/* The bookmark's version is at least the watch's first version. */
static void put_bookmark(struct flight *f)
{
    uint64_t version =
        f->next_change == history_size() ? store.rv : history_at(f->next_change)->rv - 1;
    if (version < f->version)
        return;
    text_z(&f->reply, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"");
    text_z(&f->reply, object_kinds[f->kind]);
    text_z(&f->reply, "\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"");
    text_u64(&f->reply, version);
    text_z(&f->reply, "\",\"creationTimestamp\":null}}}\n");
}

static void put_error(struct flight *f, unsigned code, const char *reason, const char *message,
                      const char *more)
{
    struct flight status = {.reply = {.p = NULL}};
    reply_status(&status, code, reason, message, more);
    text_z(&f->reply, "{\"type\":\"ERROR\",\"object\":");
    text_put(&f->reply, (struct str){status.reply.p, status.reply.n - 1});
    text_z(&f->reply, "}\n");
    text_done(&status.reply);
}

static void put_some_error(struct flight *f)
{
    switch (draw(5)) {
    case 0:
        put_error(f, 410, "Expired", "too old resource version: 1 (2)", "");
        break;
    case 1:
        put_error(f, 410, "Gone", "too old resource version: 1 (2)", "");
        break;
    case 2:
        put_error(f, 429, "TooManyRequests", "storage is (re)initializing", "");
        break;
    case 3:
        put_error(f, 500, "InternalError", "etcdserver: no leader", "");
        break;
    default:
        put_error(f, 504, "Timeout", "Too large resource version: 9, current: 8",
                  ",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}");
        break;
    }
}

static void put_news(struct flight *f)
{
    if (f->consumed == f->reply.n) {
        f->reply.n = f->arrived = f->consumed = 0;
        f->n_marks = 0;
    }
    for (; f->next_change < history_size() && known_ms(f) <= world.now_ms; f->next_change++) {
        const struct change *c = history_at(f->next_change);
        if (c->kind == f->kind)
            put_change(f, c);
    }
    if (world.now_ms >= f->bookmark_ms) {
        put_bookmark(f);
        f->bookmark_ms = world.now_ms + BOOKMARK_MS;
    }
}

/* Whether the stream breaks here. What the server sent before still arrives. */
static bool watch_breaks(struct flight *f)
{
    if (fault(FAULT_WATCH_ERROR)) {
        put_some_error(f);
        flight_arrived(f, f->reply.n - f->arrived);
        flight_over(f, HTTP_ANSWERED);
        return true;
    }
    if (fault(FAULT_WATCH_GARBLED)) {
        text_z(&f->reply, draw(2) == 0 ? "{\"type\":\"MODI" : "{]\n");
        flight_arrived(f, f->reply.n - f->arrived);
        flight_over(f, draw(2) == 0 ? HTTP_ANSWERED : HTTP_UNKNOWN);
        return true;
    }
    if (fault(FAULT_WATCH_CUT)) {
        size_t left = f->reply.n - f->arrived;
        flight_arrived(f, left == 0 ? 0 : draw((unsigned)left + 1));
        flight_over(f, f->arrived == f->reply.n ? HTTP_ANSWERED : HTTP_UNKNOWN);
        return true;
    }
    f->silent = fault(FAULT_WATCH_SILENT);
    return f->silent;
}

static void on_watch(struct happening *h)
{
    struct flight *f = CONTAINER_OF(h, struct flight, h);
    if (f->lag_until_ms > world.now_ms) {
        plan(h, f->lag_until_ms - world.now_ms);
        return;
    }
    put_news(f);
    if (watch_breaks(f))
        return;
    size_t left = f->reply.n - f->arrived;
    size_t part = left > 1 && fault(FAULT_TORN) ? 1 + draw((unsigned)left) : left;
    if (left > 0)
        flight_arrived(f, part);
    if (part < left)
        plan(h, net_latency());
    else if (world.now_ms >= f->ends_ms)
        flight_over(f, HTTP_ANSWERED);
    else
        plan(h, MIN_OF(MAX_OF(known_ms(f), world.now_ms), MIN_OF(f->bookmark_ms, f->ends_ms)) -
                    world.now_ms);
}

void server_tell(enum cache_kind kind)
{
    for (struct flight *f = flights; f != NULL; f = f->next) {
        if (f->stage != FLIGHT_WATCHING || f->kind != kind || f->silent)
            continue;
        if (fault(FAULT_WATCH_LAG))
            f->lag_until_ms = world.now_ms + draw(5000);
        uint64_t delay_ms = net_latency();
        if (f->h.at == 0 || f->h.due_ms > world.now_ms + delay_ms)
            plan(&f->h, delay_ms);
    }
}

static bool watch_refused(struct flight *f, uint64_t version)
{
    if (version >= store.oldest_rv)
        return false;
    trace("watch is too old", text_str(&f->path), (int64_t)version, (int64_t)store.oldest_rv);
    f->reply.n = 0;
    if (draw(2) == 0) {
        reply_status(f, 410, draw(2) == 0 ? "Expired" : "Gone", "too old resource version", "");
        flight_answer(f, 410, net_latency());
    } else {
        put_error(f, 410, "Expired", "too old resource version: 1 (2)", "");
        flight_answer(f, 200, net_latency());
    }
    return true;
}

void serve_watch(struct flight *f, enum cache_kind kind, struct str query)
{
    struct text value = {.p = NULL};
    uint64_t version = 0;
    uint64_t seconds = 0;
    sim_check(query_get(query, "resourceVersion", &value));
    sim_check(str_to_u64(text_str(&value), UINT64_MAX, &version) && version > 0);
    sim_check(query_get(query, "timeoutSeconds", &value));
    sim_check(str_to_u64(text_str(&value), 3600, &seconds));
    bool selects = query_get(query, "fieldSelector", &value);
    sim_check(selects == (kind == CACHE_PODS));
    sim_check(version <= store.rv);
    text_done(&value);
    f->status = 200;
    if (f->call == NULL) {
        flight_break(f, HTTP_UNKNOWN, 0);
        return;
    }
    if (watch_refused(f, version))
        return;
    f->stage = FLIGHT_WATCHING;
    f->kind = kind;
    f->version = version;
    f->lag_ms = draw(2) == 0 ? server_lag_ms() : 0;
    f->next_change = history_size();
    while (f->next_change > 0 && history_at(f->next_change - 1)->rv > version)
        f->next_change--;
    f->ends_ms = world.now_ms + seconds * 1000;
    f->bookmark_ms = world.now_ms + BOOKMARK_MS;
    f->h.fire = on_watch;
    plan(&f->h, net_latency());
}

bool server_told_all(const struct proc *p)
{
    unsigned whole = 0;
    for (const struct flight *f = flights; f != NULL; f = f->next) {
        if (f->proc != p || f->stage != FLIGHT_WATCHING || f->kind == CACHE_KINDS)
            continue;
        bool said = f->next_change == history_size();
        for (size_t i = f->next_change; !said && i < history_size(); i++) {
            if (history_at(i)->kind == f->kind)
                break;
            said = i + 1 == history_size();
        }
        whole += said && f->consumed == f->reply.n ? 1 : 0;
    }
    return whole == CACHE_KINDS;
}
