/* LIST and WATCH of the simulated API server: when it answers, and the faults. */
#include "api/lists.h"

#include "server.h"

#define BOOKMARK_MS 60000

static void on_listed(void *ctx, unsigned kind, unsigned slot, uint64_t rv)
{
    flight_mark(ctx, kind, slot, rv);
}

void serve_list(struct flight *f, unsigned kind, struct str query)
{
    sim_check(selector_is_right(kind, query));
    struct page page = list_page(kind, query, server_lag_ms());
    if (page.list == NULL || (page.continued && fault(FAULT_CONTINUE_GONE))) {
        list_write_expired(&f->reply);
        f->status = 410;
        return;
    }
    f->n_marks = 0;
    f->status = 200;
    list_write(&f->reply, &page, on_listed, f);
}

/* ---- watches ---- */

static void put_change(struct flight *f, const struct change *c)
{
    if (!change_shows(c))
        return;
    unsigned times = fault(FAULT_WATCH_DOUBLED) ? 2 : 1;
    for (unsigned i = 0; i < times; i++)
        change_write(&f->reply, c);
    flight_mark(f, c->kind, c->slot, c->rv);
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
    bookmark_write(&f->reply, f->kind, version);
}

static void put_some_error(struct flight *f)
{
    switch (draw(5)) {
    case 0:
        watch_error_write(&f->reply, 410, "Expired", "too old resource version: 1 (2)", "");
        break;
    case 1:
        watch_error_write(&f->reply, 410, "Gone", "too old resource version: 1 (2)", "");
        break;
    case 2:
        watch_error_write(&f->reply, 429, "TooManyRequests", "storage is (re)initializing", "");
        break;
    case 3:
        watch_error_write(&f->reply, 500, "InternalError", "etcdserver: no leader", "");
        break;
    default:
        watch_error_write(&f->reply, 504, "Timeout", "Too large resource version: 9, current: 8",
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

void server_tell(unsigned kind)
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
        watch_error_write(&f->reply, 410, "Expired", "too old resource version: 1 (2)", "");
        flight_answer(f, 200, net_latency());
    }
    return true;
}

void serve_watch(struct flight *f, unsigned kind, struct str query)
{
    sim_check(selector_is_right(kind, query));
    struct watch_query watch = watch_query_read(query);
    f->status = 200;
    if (f->call == NULL) {
        flight_break(f, HTTP_UNKNOWN, 0);
        return;
    }
    if (watch_refused(f, watch.version))
        return;
    f->stage = FLIGHT_WATCHING;
    f->kind = kind;
    f->version = watch.version;
    f->lag_ms = draw(2) == 0 ? server_lag_ms() : 0;
    f->next_change = history_after(watch.version);
    f->ends_ms = world.now_ms + watch.seconds * 1000;
    f->bookmark_ms = world.now_ms + BOOKMARK_MS;
    f->h.fire = on_watch;
    plan(&f->h, net_latency());
}

bool server_told_all(const struct proc *p)
{
    unsigned whole = 0;
    for (const struct flight *f = flights; f != NULL; f = f->next) {
        if (f->proc != p || f->stage != FLIGHT_WATCHING || f->kind == API_BUDGETS)
            continue;
        bool said = f->next_change == history_size();
        for (size_t i = f->next_change; !said && i < history_size(); i++) {
            if (history_at(i)->kind == f->kind)
                break;
            said = i + 1 == history_size();
        }
        whole += said && f->consumed == f->reply.n ? 1 : 0;
    }
    return whole == (store.serves_dra ? CACHE_ALL_KINDS : CACHE_KINDS);
}
