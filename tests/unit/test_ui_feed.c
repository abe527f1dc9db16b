/* The page's events over a real socket, compared with the cache. */
#include "ui_client.h"

#include "base/log.h"
#include "core/limit.h"
#include "daemon/limit.h"
#include "daemon/page/ui_history.h"
#include "fail_alloc.h"
#include "seeded.h"

#include <stdio.h>

#define NODES 300

static void open_stage(struct ui_fixture *g)
{
    struct err e = ERR_INIT;
    *g = (struct ui_fixture){.service.loop = loop_make()};
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&g->service.cache, (struct map_seed){1, 2});
    measured_init(&g->service.measured, (struct map_seed){1, 2}, 0);
    ck_assert_ok(embedded_new(g->service.loop, &g->service.cache, &g->service.measured, STR(""),
                              STR("none"), &g->service.embedded, &e),
                 &e);
    g->service.backend = embedded_interface(g->service.embedded);
    ck_assert_ok(ui_feed_new(&g->service, 1, &g->feed, &e), &e);
    g->service.ui = g->feed;
    struct http_server_settings set = {
        .address = STR("127.0.0.1"),
        .max_body = MIB,
        .max_connections = 100,
        .request_timeout_ms = 60000,
        .idle_seconds = 60,
        .stall_ms = 60000,
        .handle = routes_handle,
        .too_large = routes_too_large,
        .ctx = &g->service,
    };
    ck_assert_ok(http_server_new(g->service.loop, &set, &g->server, &e), &e);
}

static void close_stage(struct ui_fixture *g)
{
    g->server = http_server_free(g->server);
    g->feed = ui_feed_free(g->feed);
    g->service.embedded = embedded_free(g->service.embedded);
    cache_check(&g->service.cache);
    measured_done(&g->service.measured);
    cache_done(&g->service.cache);
    g->service.loop = loop_free(g->service.loop);
}

/* ---- changes of the cache ---- */

static void apply(struct ui_fixture *g, const struct cache_event *e)
{
    struct effect effect;
    ck_assert_int_eq(cache_apply(&g->service.cache, e, 1000, &effect), OK);
}

static struct str name_of(char text[static 32], const char *what, unsigned i)
{
    int n = snprintf(text, 32, "%s-%u", what, i);
    return (struct str){text, (size_t)n};
}

/* mem 0: no memory, so a node without cards to share. */
static void set_node(struct ui_fixture *g, unsigned i, unsigned mem)
{
    char name[32];
    char total[32];
    struct cache_event e = {.type = CACHE_NODE_SET, .node = {.name = name_of(name, "n", i)}};
    (void)snprintf(total, sizeof(total), "%u", mem);
    if (mem > 0)
        e.node.mem = e.node.mem_allocatable = str_of(total);
    e.node.count = STR("4");
    apply(g, &e);
}

static void del_node(struct ui_fixture *g, unsigned i)
{
    char name[32];
    apply(g,
          &(struct cache_event){.type = CACHE_NODE_GONE, .node = {.name = name_of(name, "n", i)}});
}

/* node 0: the pod is pending. */
static void set_pod(struct ui_fixture *g, unsigned i, unsigned node)
{
    char name[32];
    char place[32];
    struct container_view c = {.name = STR("c"), .mem = STR("2")};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = name_of(name, "p", i),
                                    .name = name_of(name, "p", i),
                                    .namespace = STR("ns"),
                                    .created_s = 1000000 - i,
                                    .containers = &c,
                                    .n_containers = 1,
                                    .n_mains = 1}};
    if (node > 0) {
        e.pod.node = name_of(place, "n", node);
        e.pod.idx = i % 5 == 0 ? STR("9") : STR("1");
    }
    apply(g, &e);
}

static void del_pod(struct ui_fixture *g, unsigned i)
{
    char name[32];
    apply(g, &(struct cache_event){.type = CACHE_POD_GONE, .pod = {.uid = name_of(name, "p", i)}});
}

static void disturb(struct ui_fixture *g, uint64_t *state)
{
    unsigned node = 1 + seeded_draw(state, NODES);
    unsigned pod = seeded_draw(state, 2 * NODES);
    switch (seeded_draw(state, 8)) {
    case 0:
        set_node(g, node, 16 * seeded_draw(state, 4));
        break;
    case 1:
        del_node(g, node);
        break;
    case 2:
        del_pod(g, pod);
        break;
    case 3:
        set_pod(g, pod, 0);
        break;
    case 4:
        apply(g, &(struct cache_event){
                     .type = seeded_draw(state, 2) == 0 ? CACHE_HEALTH_SET : CACHE_HEALTH_GONE,
                     .health = {.node = name_of((char[32]){0}, "n", node), .gpus = STR("1")}});
        break;
    default:
        set_pod(g, pod, node);
        break;
    }
}

struct until_right {
    struct ui_client *page;
    struct ui_fixture *stage;
};

static bool comes_right(void *ctx)
{
    struct until_right *u = ctx;
    ui_client_read(u->page);
    return is_right(u->page, u->stage);
}

static void await_right(struct ui_client *p, struct ui_fixture *g)
{
    struct until_right u = {p, g};
    run_until(g->service.loop, comes_right, &u);
}

/* ---- the tests ---- */

START_TEST(a_page_comes_to_show_what_is)
{
    struct ui_fixture g;
    struct ui_client p[3];
    uint64_t state = (uint64_t)_i;
    open_stage(&g);
    for (unsigned i = 1; i <= NODES; i++)
        set_node(&g, i, i % 7 == 0 ? 0 : 64);
    for (size_t i = 0; i < COUNT_OF(p); i++)
        ui_client_open(&p[i], &g);
    for (int round = 0; round < 60; round++) {
        unsigned n = seeded_draw(&state, round % 20 == 0 ? 2000 : 30);
        while (n-- > 0)
            disturb(&g, &state);
        /* The last page does not read for long periods, and still gets everything. */
        p[2].peer.deaf = round % 30 != 29;
        if (!p[2].peer.closed)
            raw_conn_watch(&p[2].peer);
        run_turns(g.service.loop, (int)seeded_draw(&state, 5));
        if (round % 10 == 9) {
            await_right(&p[0], &g);
            await_right(&p[1], &g);
        }
        if (round % 30 == 29)
            await_right(&p[2], &g);
    }
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        await_right(&p[i], &g);
        ui_client_close(&p[i]);
    }
    close_stage(&g);
}

/* More objects are deleted than names are kept: the page starts again, once. */
TEST(when_too_many_go_it_begins_anew)
{
    struct ui_fixture g;
    struct ui_client p;
    open_stage(&g);
    for (unsigned i = 1; i <= NODES; i++)
        set_node(&g, i, 64);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    for (unsigned i = 1; i <= LIMIT_GONE; i++)
        del_node(&g, i);
    await_right(&p, &g);
    ck_assert_uint_eq(p.hellos, 1);
    for (unsigned i = LIMIT_GONE + 1; i <= 2 * LIMIT_GONE + 1; i++)
        del_node(&g, i);
    await_right(&p, &g);
    ck_assert_uint_eq(p.hellos, 2);
    run_turns(g.service.loop, 20);
    ui_client_read(&p);
    ck_assert_uint_eq(p.hellos, 2);
    ui_client_close(&p);
    close_stage(&g);
}

TEST(the_oldest_pods_are_shown_and_all_counted)
{
    struct ui_fixture g;
    struct ui_client p;
    open_stage(&g);
    set_node(&g, 1, 64);
    for (unsigned i = 0; i < LIMIT_UI_PENDING + 100; i++)
        set_pod(&g, i, 0);
    struct shortfall shortfalls[VERDICT_COUNT] = {
        [VERDICT_NO_CARD_FREE] = {.free = 1, .largest = 2}};
    struct candidates j = {.counts = {[VERDICT_NO_CARD_FREE] = 3, [VERDICT_TOO_LARGE] = 1},
                           .shortfalls = shortfalls};
    ui_reasons_filtered(g.service.reasons, STR("p-550"), &j);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    const char *pods = buf_cstr(&p.pods);
    ck_assert_ptr_nonnull(strstr(pods, "],\"total\":600}"));
    ck_assert(str_starts(buf_str(&p.pods), STR("{\"pods\":[{\"namespace\":\"ns\",\"name\":"
                                               "\"p-599\",\"mem\":2,\"wants\":\"2\","
                                               "\"since\":\"1970-01-12T13:36:41Z\"}")));
    ck_assert_ptr_nonnull(strstr(pods, "\"p-100\""));
    ck_assert_ptr_null(strstr(pods, "\"p-99\""));
    ck_assert_ptr_nonnull(
        strstr(pods, "\"because\":{\"too_large\":{\"nodes\":1,\"text\":\"2 asked, the largest card "
                     "has 0\"},\"no_card_free\":{\"nodes\":3,\"text\":\"2 asked, the most that is "
                     "free on a card: 1\"}}}"));
    j.counts[VERDICT_FITS] = 1;
    ui_reasons_filtered(g.service.reasons, STR("p-550"), &j);
    await_right(&p, &g);
    ck_assert_ptr_null(strstr(buf_cstr(&p.pods), "because"));
    ui_client_close(&p);
    close_stage(&g);
}

static void expect_node(const struct ui_fixture *g, const char *name, const char *text, bool has)
{
    struct buf out;
    struct jwrite w;
    char all[4096];
    buf_init(&out, sizeof(all) - 1);
    jwrite_init(&w, &out);
    ui_write_node(&w, &g->service.measured, cache_node(&g->service.cache, str_of(name)));
    (void)snprintf(all, sizeof(all), "%.*s", STR_ARG(buf_str(&out)));
    ck_assert_msg((strstr(all, text) != NULL) == has, "%s in %s", text, all);
    buf_done(&out);
}

/* A page on which a card has more free than a new pod could get would promise too much. */
TEST(a_node_with_less_left_than_its_cards_says_so)
{
    struct ui_fixture g;
    struct cache_event e = {
        .type = CACHE_NODE_SET,
        .node = {
            .name = STR("n-1"), .mem = STR("40"), .mem_allocatable = STR("10"), .count = STR("4")}};
    open_stage(&g);
    apply(&g, &e);
    set_pod(&g, 1, 1);
    expect_node(&g, "n-1", "\"total\":40,\"used\":2,\"limit\":10,\"left\":8,", true);
    set_node(&g, 1, 40);
    expect_node(&g, "n-1", "\"left\"", false);
    close_stage(&g);
}

/* A page that is open gets the figures when they come, and the node without them when they are too
 * old. */
TEST(what_is_really_used_comes_and_goes)
{
    struct ui_fixture g;
    struct ui_client p;
    struct usage_card cards[] = {{0, 9000, 16384, 37}};
    struct usage_view view = {.cards = cards, .n_cards = 1};
    open_stage(&g);
    set_node(&g, 1, 40);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    expect_node(&g, "n-1", "usedMiB", false);
    ck_assert_int_eq(measured_set(&g.service.measured, STR("n-1"), &view, 1, 0), OK);
    apply(&g, &(struct cache_event){.type = CACHE_NODE_NOTED, .node = {.name = STR("n-1")}});
    await_right(&p, &g);
    expect_node(&g, "n-1", "\"usedMiB\":9000,\"sizeMiB\":16384,\"busy\":37,", true);
    ck_assert(measured_drop(&g.service.measured, STR("n-1")));
    apply(&g, &(struct cache_event){.type = CACHE_NODE_NOTED, .node = {.name = STR("n-1")}});
    await_right(&p, &g);
    expect_node(&g, "n-1", "usedMiB", false);
    ui_client_close(&p);
    close_stage(&g);
}

static bool has_waste(void *ctx)
{
    return strstr(buf_cstr(&((struct ui_client *)ctx)->status), "waste") != NULL;
}

/* Before the first lesson there is no figure. */
TEST(the_waste_is_told_once_it_is_known)
{
    struct ui_fixture g;
    struct ui_client p;
    open_stage(&g);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    ck_assert(!has_waste(&p));
    g.service.learn.known = true;
    g.service.learn.waste = 12.0581;
    for (unsigned i = 0; i < 1000 && !has_waste(&p); i++) {
        idle_clock_pass(10);
        run_turns(g.service.loop, 10);
        ui_client_read(&p);
    }
    ck_assert_ptr_nonnull(strstr(buf_cstr(&p.status), ",\"cards\":0,\"waste\":12.06}"));
    ui_client_close(&p);
    close_stage(&g);
}

/* The limits of entries, and of "*" for a namespace with pods; a namespace without limits is left
 * out. */
TEST(quotas_have_their_usage)
{
    struct ui_fixture g;
    struct ui_client p;
    const struct quota_limit own[] = {{.scope = QUOTA_TOTAL, .most = {10, -1, 400}},
                                      {QUOTA_POOL, STR("gold"), {-1, 2, -1}},
                                      {QUOTA_MODEL, STR("A*"), {3, -1, -1}}};
    const struct quota_limit others[] = {{.scope = QUOTA_TOTAL, .most = {0, -1, -1}}};
    struct quota_entry entries[] = {
        {.namespace = STR("absent"), .limits = own, .n_limits = 1},
        {.namespace = STR("free")},
        {.namespace = STR("*"), .limits = others, .n_limits = 1},
        {.namespace = STR("ns"), .limits = own, .n_limits = COUNT_OF(own)},
    };
    open_stage(&g);
    set_node(&g, 1, 64);
    for (unsigned i = 1; i <= 3; i++)
        set_pod(&g, i, 1);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    ck_assert_str_eq(buf_cstr(&p.quotas), "{\"namespaces\":[],\"total\":0}");
    apply(&g, &(struct cache_event){.type = CACHE_QUOTA_SET, .quota = {entries, 4}});
    await_right(&p, &g);
    ck_assert_str_eq(buf_cstr(&p.quotas),
                     "{\"namespaces\":["
                     "{\"name\":\"absent\",\"limits\":["
                     "{\"kind\":\"memory\",\"used\":0,\"limit\":10},"
                     "{\"kind\":\"compute\",\"used\":0,\"limit\":400}]},"
                     "{\"name\":\"ns\",\"limits\":["
                     "{\"kind\":\"memory\",\"used\":6,\"limit\":10},"
                     "{\"kind\":\"compute\",\"used\":0,\"limit\":400},"
                     "{\"kind\":\"cards\",\"pool\":\"gold\",\"used\":0,\"limit\":2},"
                     "{\"kind\":\"memory\",\"model\":\"A*\",\"used\":0,\"limit\":3}]}],"
                     "\"total\":2}");
    apply(&g, &(struct cache_event){.type = CACHE_QUOTA_SET, .quota = {entries, 3}});
    await_right(&p, &g);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&p.quotas),
                                 "{\"name\":\"ns\",\"limits\":["
                                 "{\"kind\":\"memory\",\"used\":6,\"limit\":0}]}"));
    ui_client_close(&p);
    close_stage(&g);
}

/* With more quotas than a page shows, the first by name are shown and all are counted. */
TEST(quotas_have_a_ceiling)
{
    static char names[LIMIT_UI_QUOTAS + 100][16];
    static struct quota_entry entries[LIMIT_UI_QUOTAS + 100];
    const struct quota_limit limit = {.scope = QUOTA_TOTAL, .most = {10, -1, -1}};
    struct ui_fixture g;
    struct buf out;
    struct jwrite w;
    open_stage(&g);
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        int n = snprintf(names[i], sizeof(names[i]), "team-%04zu", COUNT_OF(entries) - 1 - i);
        entries[i] = (struct quota_entry){
            .namespace = {names[i], (size_t)n}, .limits = &limit, .n_limits = 1};
    }
    apply(&g,
          &(struct cache_event){.type = CACHE_QUOTA_SET, .quota = {entries, COUNT_OF(entries)}});
    buf_init(&out, MIB);
    jwrite_init(&w, &out);
    ui_quota_write(&w, &g.service.cache.quota);
    const char *text = buf_cstr(&out);
    ck_assert_ptr_nonnull(strstr(text, "[{\"name\":\"team-0000\""));
    ck_assert_ptr_nonnull(strstr(text, "\"team-0300\""));
    ck_assert_ptr_null(strstr(text, "\"team-0500\""));
    ck_assert_ptr_nonnull(strstr(text, "],\"total\":600}"));
    ck_assert_uint_lt(out.n, UI_QUOTA_BYTES + KIB);
    buf_done(&out);
    close_stage(&g);
}

/* The ring keeps the last 60 samples, with the figures of inspect. */
TEST(the_last_hour_is_kept)
{
    struct ui_fixture g;
    struct ui_client p;
    static struct ui_history h;
    struct buf out;
    struct jwrite w;
    open_stage(&g);
    buf_init(&out, MIB);
    jwrite_init(&w, &out);
    ui_history_write(&w, &h);
    ck_assert_str_eq(buf_cstr(&out), "{\"total\":[],\"used\":[],\"free\":[],\"pending\":[]}");
    set_node(&g, 1, 64);
    set_node(&g, 2, 0);
    ui_history_take(&h, &g.service.cache);
    set_pod(&g, 1, 1);
    set_pod(&g, 2, 0);
    set_node(&g, 3, 80);
    ui_history_take(&h, &g.service.cache);
    buf_clear(&out, SIZE_MAX);
    jwrite_init(&w, &out);
    ui_history_write(&w, &h);
    ck_assert_str_eq(buf_cstr(&out), "{\"total\":[64,144],\"used\":[0,2],\"free\":[16,20],"
                                     "\"pending\":[0,1]}");
    for (int i = 0; i < UI_HISTORY_SAMPLES; i++)
        ui_history_take(&h, &g.service.cache);
    set_pod(&g, 2, 1);
    ui_history_take(&h, &g.service.cache);
    buf_clear(&out, SIZE_MAX);
    jwrite_init(&w, &out);
    ui_history_write(&w, &h);
    const char *text = buf_cstr(&out);
    ck_assert_msg(str_starts(buf_str(&out), STR("{\"total\":[144,144,")), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, ",2,2,4],\"free\":[20,"));
    size_t commas = 0;
    for (size_t i = 0; i < out.n; i++)
        commas += text[i] == ',' ? 1 : 0;
    ck_assert_uint_eq(commas, 4 * (UI_HISTORY_SAMPLES - 1) + 3);
    buf_done(&out);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    ck_assert_uint_eq(p.histories, 1);
    ui_client_close(&p);
    close_stage(&g);
}

TEST(so_many_pages_and_no_more)
{
    struct ui_fixture g;
    struct ui_client p[LIMIT_UI_STREAMS];
    struct raw_conn late;
    open_stage(&g);
    set_node(&g, 1, 64);
    for (size_t i = 0; i < COUNT_OF(p); i++) {
        ui_client_open(&p[i], &g);
        await_right(&p[i], &g);
    }
    ask(&g, &late, "/ui/events");
    raw_conn_await(&late, "HTTP/1.1 503 ", 1);
    raw_conn_await(&late, "as many pages are open", 1);
    ck_assert_uint_eq(raw_conn_count(&late, "Retry-After: 5"), 1);
    raw_conn_close(&late);
    ask(&g, &late, "/ui/");
    raw_conn_await(&late, "HTTP/1.1 200 OK", 1);
    raw_conn_close(&late);
    /* One page disconnects, and its slot is free as soon as the server notices. */
    ui_client_close(&p[7]);
    run_turns(g.service.loop, 5);
    ui_client_open(&p[7], &g);
    await_right(&p[7], &g);
    for (size_t i = 0; i < COUNT_OF(p); i++)
        ui_client_close(&p[i]);
    close_stage(&g);
}

static bool right_or_cut(void *ctx)
{
    struct until_right *u = ctx;
    if (u->page->peer.closed || raw_conn_count(&u->page->peer, "HTTP/1.1 503") > 0)
        return true;
    return comes_right(ctx);
}

/* If memory for a page fails, the page is refused or cut; what it shows is right in any case. */
TEST(without_memory_a_page_is_cut_or_right)
{
    struct ui_fixture g;
    struct ui_client p;
    open_stage(&g);
    for (unsigned i = 1; i <= 3; i++)
        set_node(&g, i, 64);
    set_pod(&g, 1, 1);
    set_pod(&g, 2, 0);
    struct candidates j = {.counts = {[VERDICT_NO_CARD_FREE] = 3}};
    bool hit = true;
    size_t nth = 0;
    while (hit) {
        ui_client_open(&p, &g);
        ck_assert(buf_reserve(&p.peer.in, MIB) && buf_reserve(&p.peer.out, KIB));
        ck_assert(buf_reserve(&p.body, MIB) && buf_reserve(&p.pods, MIB / 2));
        ck_assert(buf_reserve(&p.quotas, KIB));
        fail_alloc_arm(FAIL_ONCE, ++nth);
        ui_reasons_note(g.service.reasons, STR("p-2"), &j);
        /* Only the test allocates for the page: it reads after the failing allocations. */
        run_turns(g.service.loop, 12);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        struct until_right u = {&p, &g};
        run_until(g.service.loop, right_or_cut, &u);
        ui_client_close(&p);
        run_turns(g.service.loop, 3);
    }
    ck_assert_uint_gt(nth, 6);
    ui_client_open(&p, &g);
    await_right(&p, &g);
    ui_client_close(&p);
    close_stage(&g);
}

int main(void)
{
    TCase *c = unit_case("ui_feed");
    tcase_add_loop_test(c, a_page_comes_to_show_what_is, 1, 4);
    return unit_run();
}
