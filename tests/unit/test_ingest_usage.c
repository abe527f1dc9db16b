/* The ConfigMaps with what cards and pods use: which are taken, and when figures become unknown. */
#include "kube/ingest.h"

#include "objects/stamp.h"
#include "on_loop.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct loop *l;
static struct cache cache;
static struct measured measured;
static struct ingest in;
static int log_file;

static void set_up(void)
{
    l = loop_make();
    log_file = memfd_create("log", MFD_CLOEXEC);
    log_setup(log_file, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    cache_init(&cache, (struct map_seed){1, 2});
    measured_init(&measured, (struct map_seed){1, 2}, INGEST_USAGE_MS);
    ingest_init(&in, l, &cache);
    in.measured = &measured;
}

static void tear_down(void)
{
    ingest_done(&in);
    measured_done(&measured);
    cache_check(&cache);
    cache_done(&cache);
    l = loop_free(l);
    (void)close(log_file);
}

/* The ConfigMap of node n, whose figures are so old by the node's clock. */
static void show(const char *data, uint32_t age_s, bool gone)
{
    char text[512];
    char stamp[STAMP_BYTES];
    uint32_t now_s = (uint32_t)(loop_wall_ns(l) / 1000000000);
    (void)stamp_print(now_s - age_s, stamp);
    int size =
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"cardpack-usage-n\",\"namespace\":\"kube-system\"},"
                 "\"data\":{%s%s%s}}",
                 data != NULL ? data : "\"usage\":\"{\\\"seen\\\":\\\"", data != NULL ? "" : stamp,
                 data != NULL ? ""
                              : "\\\",\\\"cards\\\":[{\\\"index\\\":0,\\\"usedMiB\\\":7,"
                                "\\\"totalMiB\\\":9}]}\"");
    ck_assert(size > 0 && (size_t)size < sizeof(text));
    ingest_configmap(&in, str_of(text), gone);
}

static bool knows(void)
{
    const struct measured_card *c = measured_card_of(measured_of(&measured, STR("n")), 0);
    ck_assert(c == NULL || c->used_mib == 7);
    return c != NULL;
}

static const struct str node =
    STR("{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":{"
        "\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"2\"}}}");

static void list_nodes(bool with)
{
    ingest_list_begin(&in, CACHE_NODES);
    if (with)
        ingest_node(&in, node, false);
    (void)ingest_list_end(&in, CACHE_NODES);
}

TEST(figures_come_and_go_with_their_configmap)
{
    list_nodes(true);
    uint64_t before = changes_see(&cache.changes);
    show(NULL, 0, false);
    ck_assert(knows());
    ck_assert_uint_gt(cache.changes.version, before);
    ck_assert(timer_armed(&in.usage_tick));
    before = changes_see(&cache.changes);
    show(NULL, 0, true);
    ck_assert(!knows());
    ck_assert_uint_gt(cache.changes.version, before);
    ck_assert(!timer_armed(&in.usage_tick));
}

TEST(figures_go_with_their_node)
{
    list_nodes(true);
    show(NULL, 0, false);
    ingest_node(&in, node, true);
    ck_assert(!knows() && measured.nodes.n == 0);
}

TEST(only_nodes_that_exist_have_figures)
{
    show(NULL, 0, false);
    ck_assert_msg(knows(), "the list of nodes may come later");
    list_nodes(true);
    ck_assert(knows());
    list_nodes(false);
    ck_assert(!knows() && measured.nodes.n == 0);
    show(NULL, 0, false);
    ck_assert(!knows() && measured.nodes.n == 0);
}

TEST(a_list_without_the_configmap_ends_them)
{
    list_nodes(true);
    for (int with = 1; with >= 0; with--) {
        ingest_list_begin(&in, CACHE_HEALTH);
        if (with)
            show(NULL, 0, false);
        (void)ingest_list_end(&in, CACHE_HEALTH);
        ck_assert_int_eq(knows(), with);
    }
}

TEST(figures_become_unknown_with_time)
{
    list_nodes(true);
    show(NULL, 0, false);
    uint64_t before = changes_see(&cache.changes);
    struct measured_node *n = LIST_FIRST(&measured.ages, struct measured_node, age);
    in.usage_tick.fire(&in.usage_tick);
    ck_assert(knows() && timer_armed(&in.usage_tick));
    n->came_ms = loop_now_ms(l) - INGEST_USAGE_MS;
    in.usage_tick.fire(&in.usage_tick);
    ck_assert(!knows() && !timer_armed(&in.usage_tick));
    ck_assert_uint_gt(cache.changes.version, before);
}

TEST(figures_of_a_program_that_ended_long_ago_are_not_taken)
{
    list_nodes(true);
    show(NULL, 3590, false);
    ck_assert(knows());
    show(NULL, 3610, false);
    ck_assert(!knows());
    measured.lasts_ms = 0; /* the embedded cluster: its file is not written again */
    show(NULL, 3610, false);
    ck_assert(knows());
}

#define RANGE                                                 \
    "\"usage\":\"{\\\"seen\\\":\\\"2026-11-25T19:20:00Z\\\"," \
    "\\\"cards\\\":[{\\\"index\\\":2000}]}\""

static const char *const bad[] = {"", "\"usage\":\"\"", RANGE};

static const char *const whys[] = {
    "error=\"it has no usage\"",
    "error=",
    "error=\"cards[0].index: 2000 must be 0 to 1023\"",
};

TEST_EACH(an_unreadable_text_is_told_once, COUNT_OF(bad))
{
    char text[4096] = "";
    list_nodes(true);
    show(NULL, 0, false);
    show(bad[_i], 0, false);
    show(bad[_i], 0, false);
    ck_assert(!knows() && !in.lost && !in.torn[CACHE_HEALTH]);
    ck_assert_int_gt(pread(log_file, text, sizeof(text) - 1, 0), 0);
    const char *told = strstr(text, "what a node's cards and pods use can't be read");
    ck_assert_msg(told != NULL && strstr(told, "node=n") != NULL && strstr(told, whys[_i]) != NULL,
                  "%s", text);
    ck_assert_ptr_null(strstr(told + 1, "what a node's"));
    show(NULL, 0, false);
    ck_assert(knows());
}

static uint32_t start_s;

static void show_differing(bool differs, uint32_t age_s)
{
    char text[1024];
    char stamp[STAMP_BYTES];
    (void)stamp_print(start_s - age_s, stamp);
    int size =
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"cardpack-usage-n\",\"namespace\":\"kube-system\"},"
                 "\"data\":{\"usage\":\"{\\\"seen\\\":\\\"%s\\\",\\\"compared\\\":1,"
                 "\\\"differences\\\":[%s]}\"}}",
                 stamp,
                 differs ? "{\\\"namespace\\\":\\\"ns\\\",\\\"name\\\":\\\"p\\\","
                           "\\\"container\\\":\\\"c\\\",\\\"kind\\\":\\\"cards\\\","
                           "\\\"annotated\\\":\\\"0\\\",\\\"given\\\":\\\"1\\\"}"
                         : "");
    ck_assert(size > 0 && (size_t)size < sizeof(text));
    ingest_configmap(&in, str_of(text), false);
}

static size_t lines_with(const char *what)
{
    static char text[64 * 1024];
    size_t n = 0;
    ssize_t size = pread(log_file, text, sizeof(text) - 1, 0);
    ck_assert_int_ge(size, 0);
    text[size] = '\0';
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

#define DIFFER "containers have other cards"

/* A program on a node that writes a difference again and again does not fill the log. */
TEST(differences_are_told_and_do_not_flood_the_log)
{
    start_s = (uint32_t)(loop_wall_ns(l) / 1000000000);
    list_nodes(true);
    show_differing(false, 300);
    ck_assert_uint_eq(lines_with(DIFFER), 0);
    show_differing(true, 299);
    ck_assert_uint_eq(lines_with(DIFFER), 1);
    show_differing(true, 298);
    ck_assert_uint_eq(lines_with(DIFFER), 1);
    for (uint32_t i = 0; i < 100; i++)
        show_differing(i % 2 != 0, 200 - i);
    ck_assert_uint_eq(measured_of(&measured, STR("n"))->n_differences, 1);
    ck_assert_uint_le(lines_with(DIFFER), LOG_LIMIT_LINES);
}

/* Another text with the time of the one before is not taken: then nothing is told of it either. */
TEST(what_is_not_taken_is_not_told)
{
    start_s = (uint32_t)(loop_wall_ns(l) / 1000000000);
    list_nodes(true);
    show_differing(false, 300);
    show_differing(true, 300);
    ck_assert_uint_eq(measured_of(&measured, STR("n"))->n_differences, 0);
    ck_assert_uint_eq(lines_with(DIFFER), 0);
}

int main(void)
{
    TCase *tc = unit_case("ingest_usage");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
