/* What cards and pods really use, in both forms of inspect. */
#include "report/inspect_write.h"

#include "objects/kube.h"
#include "objects/usage.h"
#include "unit.h"

#include <stdio.h>

#define POD(name, card, mem)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"uid-" name               \
    "\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" card "\"}},\"spec\":{\"nodeName\":\"n\"," \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem    \
    "\"}}}]},\"status\":{\"phase\":\"Running\"}}"

#define USAGE                                                      \
    "{\"seen\":\"2026-11-25T19:20:00Z\","                          \
    "\"cards\":[{\"index\":0,\"usedMiB\":9300,\"totalMiB\":16384," \
    "\"busyPercent\":37}],"                                        \
    "\"pods\":[{\"uid\":\"uid-a\",\"namespace\":\"ns\",\"name\":"  \
    "\"a\","                                                       \
    "\"card\":0,\"usedMiB\":4096},"                                \
    "{\"uid\":\"uid-b\",\"namespace\":\"ns\",\"name\":\"b\","      \
    "\"card\":0,\"usedMiB\":4200}]}"

static struct cache cache;
static struct measured measured;
static struct buf out;

static void take(enum cache_event_type type, const char *json)
{
    struct arena a;
    struct jread r;
    struct effect effect;
    struct cache_event e = {.type = type};
    arena_init(&a, MIB);
    jread_init(&r, str_of(json), &a);
    if (type == CACHE_NODE_SET)
        kube_read_node(&r, &a, &e.node);
    else
        kube_read_pod(&r, &a, &e.pod);
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_int_eq(cache_apply(&cache, &e, 0, &effect), OK);
    arena_done(&a);
}

static void set_up(void)
{
    cache_init(&cache, (struct map_seed){1, 2});
    measured_init(&measured, (struct map_seed){3, 4}, 0);
    buf_init(&out, MIB);
    take(CACHE_NODE_SET, "{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":{"
                         "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\"}}}");
    take(CACHE_POD_SET, POD("c", "1", "4"));
    take(CACHE_POD_SET, POD("b", "0", "4"));
    take(CACHE_POD_SET, POD("a", "0", "4"));
}

static void tear_down(void)
{
    buf_done(&out);
    measured_done(&measured);
    cache_done(&cache);
}

static struct str inspect(enum inspect_form form, const struct measured *m)
{
    struct arena a;
    arena_init(&a, MIB);
    buf_clear(&out, MIB);
    ck_assert_int_eq(inspect_write(&cache, m, STR_NULL, form, &a, &out), OK);
    arena_done(&a);
    return buf_str(&out);
}

static void show_usage(void)
{
    struct arena a;
    struct usage_view view;
    arena_init(&a, MIB);
    ck_assert_int_eq(usage_read(STR(USAGE), &a, &view, NULL), OK);
    ck_assert_int_eq(measured_set(&measured, STR("n"), &view, 1795634400, 0), OK);
    arena_done(&a);
}

TEST(cards_have_what_is_measured)
{
    show_usage();
    ck_assert_str_is(
        inspect(INSPECT_CARDS, &measured),
        "{\"nodes\":[{\"name\":\"n\",\"totalGPU\":32,\"usedGPU\":12,\"freeGPU\":20,"
        "\"measured\":\"2026-11-25T19:20:00Z\",\"devs\":["
        "{\"id\":0,\"totalGPU\":16,\"usedGPU\":8,\"freeGPU\":8,\"compute\":0,\"state\":\"ok\","
        "\"usedMiB\":9300,\"sizeMiB\":16384,\"busyPercent\":37,\"pods\":["
        "{\"name\":\"a\",\"namespace\":\"ns\",\"usedGPU\":4,\"usedMiB\":4096},"
        "{\"name\":\"b\",\"namespace\":\"ns\",\"usedGPU\":4,\"usedMiB\":4200,\"exceeds\":true}]},"
        "{\"id\":1,\"totalGPU\":16,\"usedGPU\":4,\"freeGPU\":12,\"compute\":0,\"state\":\"ok\","
        "\"pods\":[{\"name\":\"c\",\"namespace\":\"ns\",\"usedGPU\":4}]}]}]}");
}

/* gpushare's form has them only if they are asked for. */
TEST(gpushares_form_can_have_what_is_measured)
{
    show_usage();
    ck_assert_str_is(
        inspect(INSPECT_GPUSHARE, &measured),
        "{\"nodes\":[{\"name\":\"n\",\"totalGPU\":32,\"usedGPU\":12,"
        "\"measured\":\"2026-11-25T19:20:00Z\",\"devs\":["
        "{\"id\":0,\"totalGPU\":16,\"usedGPU\":8,"
        "\"usedMiB\":9300,\"sizeMiB\":16384,\"busyPercent\":37,\"pods\":["
        "{\"name\":\"a\",\"namespace\":\"ns\",\"usedGPU\":4,\"usedMiB\":4096},"
        "{\"name\":\"b\",\"namespace\":\"ns\",\"usedGPU\":4,\"usedMiB\":4200,\"exceeds\":true}]},"
        "{\"id\":1,\"totalGPU\":16,\"usedGPU\":4,"
        "\"pods\":[{\"name\":\"c\",\"namespace\":\"ns\",\"usedGPU\":4}]}]}]}");
}

/* Tools that read gpushare's form get the same bytes as without figures, and so does a cluster
 * without cardpack-node. */
TEST(without_figures_nothing_changes)
{
    char before[2][2048];
    for (int form = 0; form < 2; form++)
        (void)snprintf(before[form], sizeof(before[form]), "%.*s",
                       STR_ARG(inspect((enum inspect_form)form, &measured)));
    show_usage();
    ck_assert_str_is(inspect(INSPECT_GPUSHARE, NULL), before[INSPECT_GPUSHARE]);
    ck_assert_str_is(inspect(INSPECT_CARDS, NULL), before[INSPECT_CARDS]);
}

int main(void)
{
    TCase *tc = unit_case("inspect_write");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
