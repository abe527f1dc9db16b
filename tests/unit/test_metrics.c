/* GET /metrics of an embedded cluster, over a real connection. */
#include "daemon/limit.h"
#include "daemon/reload.h"
#include "fail_alloc.h"
#include "metrics_rig.h"

static const char *const lines[] = {
    "cardpack_nodes{state=\"sharing\"} 2",
    "cardpack_nodes{state=\"not_shared\"} 1",
    "cardpack_cards{state=\"usable\"} 3",
    "cardpack_cards{state=\"cordoned\"} 1",
    "cardpack_cards_overcommitted 0",
    "cardpack_memory_units 80",
    "cardpack_memory_allocated_units 8",
    "cardpack_pods{state=\"bound\"} 1",
    "cardpack_metrics_nodes_left_out 0",
    "cardpack_node_memory_units{node=\"node-a\"} 32",
    "cardpack_node_memory_allocated_units{node=\"node-a\"} 8",
    "cardpack_node_memory_most_free_units{node=\"node-a\"} 8",
    "cardpack_node_memory_most_free_units{node=\"node-b\"} 24",
    "cardpack_node_pods{node=\"node-a\"} 1",
    "cardpack_card_memory_units{node=\"node-b\",card=\"1\"} 24",
    "cardpack_card_memory_allocated_units{node=\"node-a\",card=\"0\"} 8",
    "cardpack_card_compute_allocated_ratio{node=\"node-a\",card=\"0\"} 0.3",
    "cardpack_card_pods{node=\"node-a\",card=\"0\"} 1",
    "cardpack_card_unusable{node=\"node-a\",card=\"1\",reason=\"cordoned\"} 1",
    "cardpack_card_info{node=\"node-a\",card=\"1\",model=\"O\\\"M\\\"\\\\\\n1\",uuid=\"\"} 1",
    "cardpack_leader 1",
    "cardpack_ready 1",
    "cardpack_binds_active 0",
    "cardpack_reservation_oldest_age_seconds 0",
};

TEST(shows_the_cluster)
{
    struct office o;
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        ck_assert_msg(says(&o, lines[i]), "no line \"%s\" in %s", lines[i], buf_cstr(&o.peer.in));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "secretive"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "hidden"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "{node=\"plain\""));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "cardpack_watches"));
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_card_unusable{"), 1);
    office_close(&o);
}

static void show_pod(struct office *o, const char *name, const char *card, const char *mem)
{
    struct effect fx;
    struct container_view container = {.name = STR("c"), .mem = str_of(mem)};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(name),
                                    .namespace = STR("ns"),
                                    .name = str_of(name),
                                    .node = STR("node-b"),
                                    .phase = STR("Running"),
                                    .idx = str_of(card),
                                    .containers = &container,
                                    .n_containers = 1,
                                    .n_mains = 1}};
    ck_assert_int_eq(cache_apply(&o->service.cache, &e, 1, &fx), OK);
    cache_check(&o->service.cache);
}

/* node-b has cards of 24. */
TEST(a_full_card_is_not_overcommitted)
{
    struct office o;
    office_open(&o);
    show_pod(&o, "whole", "0", "24");
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_card_memory_allocated_units{node=\"node-b\",card=\"0\"} 24"));
    ck_assert(says(&o, "cardpack_cards_overcommitted 0"));
    show_pod(&o, "more", "0", "1");
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_cards_overcommitted 1"));
    office_close(&o);
}

/* Memory that is charged to no card still counts as allocated. */
TEST(memory_without_a_card_is_allocated)
{
    struct office o;
    office_open(&o);
    show_pod(&o, "placed", "1", "4");
    show_pod(&o, "unplaced", "x", "5");
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_node_memory_allocated_units{node=\"node-b\"} 9"));
    ck_assert(says(&o, "cardpack_node_memory_unplaced_units{node=\"node-b\"} 5"));
    ck_assert(says(&o, "cardpack_memory_allocated_units 17"));
    ck_assert(says(&o, "cardpack_memory_unplaced_units 5"));
    office_close(&o);
}

TEST(a_pod_that_can_not_be_read_is_counted)
{
    struct office o;
    struct effect fx;
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = STR("odd"),
                                    .namespace = STR("ns"),
                                    .name = STR("odd"),
                                    .node = STR("node-b"),
                                    .fault = STR("it is odd")}};
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_pods_unreadable 0"));
    ck_assert_int_eq(cache_apply(&o.service.cache, &e, 1, &fx), OK);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_pods_unreadable 1"));
    ck_assert(says(&o, "cardpack_pods{state=\"bound\"} 2"));
    office_close(&o);
}

/* Only a card of which it is known has series; without figures there are none. */
TEST(shows_what_is_really_used)
{
    struct usage_card cards[] = {{0, 9000, 16384, 37}, {1, 0, 16384, USAGE_BUSY_UNKNOWN}};
    struct usage_pod pods[] = {{STR("u-1"), STR("hidden"), STR("secretive"), 0, 8193}};
    struct usage_view view = {.cards = cards, .n_cards = 2, .pods = pods, .n_pods = 1};
    struct office o;
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_nodes_measured 0"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "cardpack_card_memory_used_bytes{"));
    ck_assert_int_eq(measured_set(&o.service.measured, STR("node-a"), &view, 1, 0), OK);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_nodes_measured 1"));
    ck_assert(says(&o, "cardpack_card_memory_used_bytes{node=\"node-a\",card=\"0\"} 9437184000"));
    ck_assert(says(&o, "cardpack_card_memory_used_bytes{node=\"node-a\",card=\"1\"} 0"));
    ck_assert(says(&o, "cardpack_card_memory_bytes{node=\"node-a\",card=\"0\"} 17179869184"));
    ck_assert(says(&o, "cardpack_card_busy_ratio{node=\"node-a\",card=\"0\"} 0.37"));
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_card_busy_ratio{"), 1);
    ck_assert(says(&o, "cardpack_card_pods_exceeding{node=\"node-a\",card=\"0\"} 1"));
    ck_assert(says(&o, "cardpack_card_pods_exceeding{node=\"node-a\",card=\"1\"} 0"));
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_card_pods_exceeding{"), 2);
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "secretive"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "\ncardpack_containers_differing{"));
    view.asked = true; /* the kubelet lists devices there */
    view.n_differences = 3;
    ck_assert_int_eq(measured_set(&o.service.measured, STR("node-a"), &view, 2, 0), OK);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_containers_differing{node=\"node-a\"} 3"));
    office_close(&o);
}

/* A pod that waits; 0: it asks for no card. */
static void await_card(struct office *o, unsigned n, const char *mem, struct str models)
{
    char name[32];
    struct effect fx;
    struct container_view container = {.name = STR("c"), .mem = str_of(mem)};
    (void)snprintf(name, sizeof(name), "secretive-%u", n);
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = str_of(name),
                                    .namespace = STR("ns"),
                                    .name = str_of(name),
                                    .phase = STR("Pending"),
                                    .card_model = models,
                                    .host = {.cpu = 1500},
                                    .containers = &container,
                                    .n_containers = 1,
                                    .n_mains = 1}};
    ck_assert_int_eq(cache_apply(&o->service.cache, &e, 1, &fx), OK);
}

static bool has_learned(void *ctx)
{
    return ((struct office *)ctx)->service.learn.known;
}

/* The policies learn from 32 pods at the earliest. */
static void learn(struct office *o)
{
    learn_start(&o->service.learn, o->service.loop, &o->service.cache, o->service.backend);
    run_until(o->service.loop, has_learned, o);
    learn_stop(&o->service.learn);
}

static const char *const learned[] = {
    "cardpack_fragmentation_cards", "cardpack_idle_value_cards",   "cardpack_turnover_ratio",
    "cardpack_shape_price_cards",   "cardpack_shape_weight_ratio",
};

#define OF_EIGHT "{cpu=\"1500m\",cards=\"1\",share=\"8\",models=\"\"}"

/* The pod of the cluster asks for no CPU, and is counted with the 63 that wait. */
TEST(shows_what_the_policies_have_learned)
{
    char sample[128];
    struct office o;
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_lessons_total 0"));
    for (size_t i = 0; i < COUNT_OF(learned); i++) {
        (void)snprintf(sample, sizeof(sample), "# TYPE %s gauge", learned[i]);
        ck_assert(says(&o, sample));
        (void)snprintf(sample, sizeof(sample), "\n%s", learned[i]);
        ck_assert_uint_eq(raw_conn_count(&o.peer, sample), 0);
    }
    for (unsigned i = 0; i < 63; i++)
        await_card(&o, i, i < 47 ? "8" : "24", STR(""));
    learn(&o);
    o.service.learn.waste = 1.25;
    o.service.learn.value = 0.000002;
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_lessons_total 1"));
    ck_assert(says(&o, "cardpack_fragmentation_cards 1.25"));
    ck_assert(says(&o, "cardpack_idle_value_cards 0.000002"));
    ck_assert(says(&o, "cardpack_turnover_ratio 0"));
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_shape_price_cards" OF_EIGHT " 0."), 1);
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_shape_weight_ratio" OF_EIGHT " 0.73"), 1);
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "secretive"));
    office_close(&o);
}

static bool lists_are_missing(struct backend *b, struct str *ret_text)
{
    (void)b;
    *ret_text = STR("the first list of pods is not in yet");
    return false;
}

TEST(learns_nothing_before_the_first_lists_are_in)
{
    struct office o;
    office_open(&o);
    struct learn *l = &o.service.learn;
    const struct market *m = &o.service.cache.learned.market;
    struct backend early = {.stands_by = lists_are_missing};
    for (unsigned i = 0; i < 63; i++)
        await_card(&o, i, "8", STR(""));
    learn_start(l, o.service.loop, &o.service.cache, &early);
    l->tick.fire(&l->tick);
    ck_assert(m->solve == NULL && m->solved == 0);
    l->backend = o.service.backend;
    l->tick.fire(&l->tick);
    ck_assert(m->solve != NULL || m->solved == 1);
    learn_stop(l);
    office_close(&o);
}

/* Each model is asked for once, but for the first two. No card has one of them, so there are no
 * prices. */
TEST(shows_the_most_frequent_kinds_of_pods_alone)
{
    struct office o;
    office_open(&o);
    for (unsigned i = 0; i < 80; i++) {
        char model[8];
        (void)snprintf(model, sizeof(model), "M%u", i < 40 ? i % 2 : i);
        await_card(&o, i, "4", str_of(model));
    }
    learn(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert_uint_eq(raw_conn_count(&o.peer, "\ncardpack_shape_weight_ratio{"), 20);
    ck_assert_uint_eq(raw_conn_count(&o.peer, ",share=\"4\",models=\"M0\"}"), 1);
    ck_assert_uint_eq(raw_conn_count(&o.peer, ",share=\"4\",models=\"M1\"}"), 1);
    office_close(&o);
}

/* No label is longer than this, and no two samples have the same labels. */
TEST(cuts_what_users_wrote)
{
    static const char ends[] = "xy";
    char long_models[SHAPE_MODELS_MAX];
    struct office o;
    office_open(&o);
    memset(long_models, 'a', sizeof(long_models));
    for (unsigned i = 0; i < 64; i++) {
        long_models[sizeof(long_models) - 1] = ends[i % 2];
        await_card(&o, i, "4",
                   i < 32   ? (struct str){long_models, sizeof(long_models)}
                   : i < 48 ? STR("a\n\"b\\*")
                            : STR("*"));
    }
    learn(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert_uint_eq(raw_conn_count(&o.peer, "models=\"a\\n\\\"b\\\\*\u2026"), 1);
    ck_assert_uint_eq(raw_conn_count(&o.peer, "models=\"*\"}"), 2);
    char cut[128];
    (void)snprintf(cut, sizeof(cut), "models=\"%.100s\u2026", long_models);
    ck_assert_uint_ge(raw_conn_count(&o.peer, cut), 2);
    const char *first = strstr(buf_cstr(&o.peer.in), cut);
    const char *second = strstr(first + 1, cut);
    ck_assert_int_ne(memcmp(first, second, strlen(cut) + 16), 0);
    ck_assert_int_eq(first[strlen(cut) + 16], '"');
    office_close(&o);
}

/* Prometheus 3 refuses another content type. */
TEST(names_the_format)
{
    struct office o;
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert_uint_eq(raw_conn_count(&o.peer, "Content-Type: " EXPO_CONTENT_TYPE "\r\n"), 1);
    ck_assert(says(&o, "# TYPE cardpack_build_info gauge"));
    office_close(&o);
}

TEST(shows_no_more_nodes_than_it_may)
{
    struct office o;
    office_open(&o);
    o.service.metrics.max_nodes = 1;
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_metrics_nodes_left_out 1"));
    ck_assert(says(&o, "cardpack_memory_units 80"));
    ck_assert(says(&o, "cardpack_node_memory_units{node=\"node-a\"} 32"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "node-b"));
    o.service.metrics.max_nodes = 0;
    ask(&o, "/metrics", METRICS_TEXT);
    ck_assert(says(&o, "cardpack_metrics_nodes_left_out 2"));
    ck_assert_ptr_null(strstr(buf_cstr(&o.peer.in), "node-a"));
    office_close(&o);
}

#define COUNT_LINE "cardpack_request_duration_seconds_count{verb=\"%s\",outcome=\"%s\"} %u"

static const struct {
    const char *path;
    const char *verb;
    const char *outcome;
    const char *end;
} requests[] = {
    {"/gpushare-scheduler/inspect", "inspect", "ok", "]}"},
    {"/gpushare-scheduler/inspect/node-a", "inspect", "ok", "]}"},
    {"/gpushare-scheduler/explain/ns/p", "explain", "error", "}"},
    {"/version", "probe", "ok", CARDPACK_VERSION},
    {"/readyz", "probe", "ok", "ok\n"},
    {"/nowhere", "other", "error", "}"},
    {"/gpushare-scheduler/filter", "other", "error", "}"}, /* 405 */
    {"/metrics", "metrics", "ok", "\ncardpack_card_info{node=\"node-a\",card=\"1\""},
};

TEST_EACH(counts_requests_by_verb_and_outcome, COUNT_OF(requests))
{
    char line[256];
    struct office o;
    office_open(&o);
    ask(&o, requests[_i].path, requests[_i].end);
    ask(&o, requests[_i].path, requests[_i].end);
    ask(&o, "/metrics", METRICS_TEXT);
    (void)snprintf(line, sizeof(line), COUNT_LINE, requests[_i].verb, requests[_i].outcome, 2U);
    ck_assert_msg(says(&o, line), "no line \"%s\"", line);
    office_close(&o);
}

TEST(gives_nothing_to_who_does_not_read)
{
    struct office o;
    office_open(&o);
    struct http_server_counts *probes = &o.service.metrics.ports[METRICS_PROBES];
    probes->unsent_bytes = LIMIT_METRICS_UNSENT;
    ask(&o, "/metrics", METRICS_TEXT);
    probes->unsent_bytes++;
    ask(&o, "/metrics", "have not left yet");
    ck_assert_uint_eq(raw_conn_count(&o.peer, "HTTP/1.1 503 "), 1);
    office_close(&o);
}

/* The answers may take a quarter of the time at most: a client that repeats its request at once
 * would delay filter. */
TEST(a_large_answer_is_not_written_again_at_once)
{
    struct office o;
    office_open(&o);
    ask(&o, "/metrics", METRICS_TEXT);
    o.service.metrics.answer_ns = UINT64_C(3600000000000);
    ask(&o, "/metrics", "written a moment ago");
    ck_assert_uint_eq(raw_conn_count(&o.peer, "Retry-After: 1"), 1);
    o.service.metrics.answer_ns = LIMIT_METRICS_CHEAP_NS - 1;
    ask(&o, "/metrics", METRICS_TEXT);
    office_close(&o);
}

/* An answer that took 100 s is written again 300 s after its end, not 200 s after it. */
TEST(a_pause_is_three_times_as_long_as_the_answer_took)
{
    const uint64_t took_ms = 100000;
    struct office o;
    office_open(&o);
    struct metrics *m = &o.service.metrics;
    m->answer_ns = took_ms * 1000000;
    m->answer_ms = loop_clock_ms(o.service.loop) - 2 * took_ms;
    ask(&o, "/metrics", "written a moment ago");
    m->answer_ms = loop_clock_ms(o.service.loop) - 3 * took_ms;
    ask(&o, "/metrics", METRICS_TEXT);
    office_close(&o);
}

TEST(says_what_came_of_reloads)
{
    struct office o;
    struct reload_counts counts = {.taken = 2, .unchanged = 1, .refused = 3, .waiting = 4};
    counts.taken_ns = UINT64_C(4102444800000000001);
    office_open(&o);
    ask(&o, "/metrics", "cardpack_config_reloads_total{result=\"taken\"} 0\n");
    o.service.reloads = &counts;
    ask(&o, "/metrics", "cardpack_config_reloads_total{result=\"refused\"} 3\n");
    ask(&o, "/metrics", "cardpack_config_settings_waiting 4\n");
    ask(&o, "/metrics", "cardpack_config_last_reload_successful 1\n");
    ask(&o, "/metrics", "_success_timestamp_seconds 4102444800\n");
    counts.bad = true;
    ask(&o, "/metrics", "cardpack_config_last_reload_successful 0\n");
    office_close(&o);
}

/* Either the whole answer or a 503, never a part. */
TEST(fails_whole)
{
    bool hit = true;
    for (size_t nth = 1; hit; nth++) {
        struct office o;
        office_open(&o);
        ask(&o, "/version", CARDPACK_VERSION); /* a connection, and room for a request */
        ck_assert(buf_reserve(&o.peer.in, MIB));
        fail_alloc_arm(FAIL_ONCE, nth);
        ask(&o, "/metrics", "\r\n\r\n");
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert_uint_eq(raw_conn_count(&o.peer, hit ? "HTTP/1.1 503 " : "HTTP/1.1 200 "), 1);
        ck_assert(hit || raw_conn_count(&o.peer, METRICS_TEXT) == 1);
        ck_assert(!hit || raw_conn_count(&o.peer, "cardpack_") == 0);
        ck_assert(hit || nth > 1);
        office_close(&o);
    }
}
