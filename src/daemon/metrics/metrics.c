/*
 * Counts requests, and writes the answer of /metrics. All metrics are written in one go into the
 * answer, in time that is linear in its length.
 */
#include "daemon/metrics/metrics.h"

#include "daemon/limit.h"
#include "daemon/service.h"
#include "io/process.h"

#define NS_A_MS UINT64_C(1000000)

/* The outcomes that a verb can have; a series of another one would always be 0. */
#define BIT(outcome) (1U << OUTCOME_##outcome)

static const struct {
    const char *name;
    unsigned outcomes;
} verbs[METRICS_VERBS] = {
    [METRICS_OTHER] = {"other", BIT(OK) | BIT(ERROR)},
    [METRICS_FILTER] = {"filter", BIT(OK) | BIT(REFUSED) | BIT(ERROR)},
    [METRICS_PRIORITIZE] = {"prioritize", BIT(OK) | BIT(ERROR)},
    [METRICS_PREEMPT] = {"preempt", BIT(OK) | BIT(REFUSED) | BIT(ERROR)},
    [METRICS_BIND] = {"bind", BIT(OK) | BIT(REFUSED) | BIT(IN_DOUBT) | BIT(ERROR)},
    [METRICS_INSPECT] = {"inspect", BIT(OK) | BIT(ERROR)},
    [METRICS_EXPLAIN] = {"explain", BIT(OK) | BIT(ERROR)},
    [METRICS_FIT] = {"fit", BIT(OK) | BIT(ERROR)},
    [METRICS_METRICS] = {"metrics", BIT(OK) | BIT(ERROR)},
    [METRICS_CARDS] = {"cards", BIT(OK) | BIT(ERROR)},
    [METRICS_UI] = {"page", BIT(OK) | BIT(ERROR)},
    [METRICS_EMBEDDED] = {"cluster", BIT(OK) | BIT(ERROR)},
    [METRICS_PROBE] = {"probe", BIT(OK) | BIT(ERROR)},
};

static const char *const outcomes[OUTCOME_COUNT] = {[OUTCOME_OK] = "ok",
                                                    [OUTCOME_REFUSED] = "refused",
                                                    [OUTCOME_IN_DOUBT] = "in_doubt",
                                                    [OUTCOME_ERROR] = "error"};

/* ---- counting ---- */

void metrics_answered(void *service, const struct http_request *r, unsigned status)
{
    struct service *s = service;
    enum request_outcome outcome = (enum request_outcome)r->outcome;
    assert(r->kind < METRICS_VERBS && outcome < OUTCOME_COUNT);
    if (outcome == OUTCOME_UNSAID)
        outcome = status < 400 ? OUTCOME_OK : OUTCOME_ERROR;
    expo_observe(&s->metrics.requests[r->kind][outcome], loop_clock_ns(s->loop) - r->start_ns);
}

void metrics_count_verdicts(struct metrics *m, const unsigned counts[static VERDICT_COUNT])
{
    for (size_t v = 0; v < VERDICT_COUNT; v++)
        m->verdicts[v] += counts[v];
}

/* ---- writing ---- */

static void metrics_write_durations(struct metrics_writer *w)
{
    const struct metrics *m = w->metrics;
    expo_family(&w->expo, EXPO_HISTOGRAM, "cardpack_request_duration_seconds",
                "From a request's first line to its answer, by what was asked and how it was "
                "answered.");
    for (size_t v = 0; v < METRICS_VERBS; v++) {
        for (size_t o = 0; o < OUTCOME_COUNT; o++) {
            if ((verbs[v].outcomes & 1U << o) == 0)
                continue;
            const struct expo_label labels[] = {{"verb", str_of(verbs[v].name)},
                                                {"outcome", str_of(outcomes[o])}};
            expo_histogram(&w->expo, labels, COUNT_OF(labels), &m->requests[v][o]);
        }
    }
}

static void metrics_write_verdicts(struct metrics_writer *w)
{
    expo_family(&w->expo, EXPO_COUNTER, "cardpack_filter_verdicts_total",
                "Nodes that filter was asked about, by what it found; fits, or why not.");
    for (size_t v = 0; v < VERDICT_COUNT; v++) {
        const struct expo_label label = {"verdict", str_of(verdict_name((enum verdict)v))};
        expo_u64(&w->expo, &label, 1, w->metrics->verdicts[v]);
    }
}

/* Writes one field of the counts, for each port. */
static void metrics_write_port(struct metrics_writer *w, enum expo_type type, const char *name,
                               const char *help, uint64_t (*of)(const struct http_server_counts *c))
{
    static const char *const names[METRICS_PORTS] = {"main", "probes"};
    expo_family(&w->expo, type, name, help);
    for (size_t i = 0; i < (w->metrics->probes ? METRICS_PORTS : METRICS_PROBES); i++) {
        const struct expo_label label = {"port", str_of(names[i])};
        expo_u64(&w->expo, &label, 1, of(&w->metrics->ports[i]));
    }
}

static uint64_t metrics_connections_of(const struct http_server_counts *c)
{
    return c->connections;
}

static uint64_t metrics_handshakes_of(const struct http_server_counts *c)
{
    return c->handshakes;
}

static uint64_t metrics_not_admitted_of(const struct http_server_counts *c)
{
    return c->not_admitted;
}

static uint64_t metrics_open_of(const struct http_server_counts *c)
{
    return c->open;
}

static uint64_t metrics_active_of(const struct http_server_counts *c)
{
    return c->active;
}

static uint64_t metrics_unsent_of(const struct http_server_counts *c)
{
    return c->unsent_bytes;
}

static uint64_t metrics_no_memory_of(const struct http_server_counts *c)
{
    return c->no_memory;
}

static void metrics_write_requests(struct metrics_writer *w)
{
    metrics_write_durations(w);
    metrics_write_verdicts(w);
    metrics_write_port(w, EXPO_COUNTER, "cardpack_http_connections_accepted_total",
                       "Connections that were accepted.", metrics_connections_of);
    metrics_write_port(w, EXPO_COUNTER, "cardpack_http_handshakes_refused_total",
                       "TLS handshakes that failed because of the client's certificate.",
                       metrics_handshakes_of);
    metrics_write_port(w, EXPO_COUNTER, "cardpack_http_requests_not_admitted_total",
                       "Requests that were answered 401, 403 or 431 before their body was read.",
                       metrics_not_admitted_of);
    metrics_write_port(w, EXPO_GAUGE, "cardpack_http_connections", "Connections that are open.",
                       metrics_open_of);
    metrics_write_port(
        w, EXPO_GAUGE, "cardpack_http_requests_in_flight",
        "Requests that are not answered yet; binds that wait for the API server, mostly.",
        metrics_active_of);
    metrics_write_port(w, EXPO_GAUGE, "cardpack_http_unsent_bytes",
                       "Bytes of answers that have not left yet.", metrics_unsent_of);
    metrics_write_port(w, EXPO_COUNTER, "cardpack_http_requests_without_memory_total",
                       "Requests that were answered 503 because memory-budget was spent.",
                       metrics_no_memory_of);
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_http_memory_bytes",
                "Memory of requests that memory-budget counts.");
    expo_u64(&w->expo, NULL, 0, w->service->memory.used);
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_http_memory_budget_bytes", "The memory-budget.");
    expo_u64(&w->expo, NULL, 0, w->service->memory.max);
}

/*
 * Refuses the answer while too many bytes of answers are unsent, so that clients that do not read
 * their answers cannot use up the memory.
 */
static bool metrics_has_room(const struct metrics *m)
{
    size_t unsent = 0;
    for (size_t i = 0; i < METRICS_PORTS; i++)
        unsent += m->ports[i].unsent_bytes;
    return unsent <= LIMIT_METRICS_UNSENT;
}

/*
 * Limits all answers together to a quarter of the time, because filter waits while a large answer
 * is written.
 */
static bool metrics_is_too_soon(const struct service *s)
{
    const struct metrics *m = &s->metrics;
    return m->answer_ns >= LIMIT_METRICS_CHEAP_NS &&
           loop_clock_ms(s->loop) < m->answer_ms + 3 * m->answer_ns / NS_A_MS;
}

void metrics_handle(struct service *s, struct http_request *r)
{
    uint64_t began_ns = process_cpu_ns();
    struct metrics_writer w = {
        .service = s, .metrics = &s->metrics, .arena = r->arena, .now_ms = loop_now_ms(s->loop)};
    if (!metrics_has_room(&s->metrics)) {
        http_respond_error(r, 503, STR("answers before this one have not left yet"));
        return;
    }
    if (metrics_is_too_soon(s)) {
        http_request_header(r, "Retry-After", "1");
        http_respond_error(r, 503, STR("the page before this one was written a moment ago"));
        return;
    }
    expo_init(&w.expo, r->answer);
    metrics_write_process(&w);
    metrics_write_requests(&w);
    metrics_write_kubernetes(&w);
    metrics_write_cards(&w);
    metrics_write_lessons(&w);
    s->metrics.answer_ns = process_cpu_ns() - began_ns;
    s->metrics.answer_ms = loop_clock_ms(s->loop);
    http_request_respond(r, 200, EXPO_CONTENT_TYPE);
}
