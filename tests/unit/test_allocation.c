/* Allocations in a pod's annotation: reading, writing, ceilings and lack of memory. */
#include "objects/allocation.h"

#include "base/mem.h"
#include "core/limit.h"
#include "fail_alloc.h"
#include "objects/kube.h"
#include "objects/limit.h"
#include "unit.h"

#include <stdio.h>

enum {
    FEW = 4
};

static const struct {
    const char *text;
    bool readable;
    size_t n;
    struct grant_view grants[FEW];
} texts[] = {
    {"{\"0\":{\"1\":8},\"2\":{\"0\":4}}", true, 2, {{0, 1, 8}, {2, 0, 4}}},
    {"{\"0\":{\"1\":8,\"3\":2}}", true, 2, {{0, 1, 8}, {0, 3, 2}}},
    {" { \"65534\" : { \"65534\" : 9223372036854775807 } } ", true, 1, {{65534, 65534, INT64_MAX}}},
    {"{\"0\":{\"1\":-9223372036854775808}}", true, 1, {{0, 1, INT64_MIN}}}, /* core/ checks it */
    {"{\"0\":{\"1\":8,\"1\":8}}", true, 2, {{0, 1, 8}, {0, 1, 8}}},
    {"{}", true, 0, {{0}}},
    {"{\"0\":{}}", true, 0, {{0}}},
    {"{\"0\":null}", true, 0, {{0}}},
    {"", false, 0, {{0}}},
    {"null", false, 0, {{0}}},
    {"[]", false, 0, {{0}}},
    {"{\"0\":{\"1\":8}", false, 0, {{0}}},
    {"{\"0\":{\"1\":8}} x", false, 0, {{0}}},
    {"{\"0\":{\"1\":8.5}}", false, 0, {{0}}},
    {"{\"0\":{\"1\":\"8\"}}", false, 0, {{0}}},
    {"{\"0\":{\"1\":9223372036854775808}}", false, 0, {{0}}},
    {"{\"0\":8}", false, 0, {{0}}},
    {"{\"a\":{\"1\":8}}", false, 0, {{0}}},
    {"{\"-1\":{\"1\":8}}", false, 0, {{0}}},
    {"{\"65535\":{\"1\":8}}", false, 0, {{0}}}, /* this number means the whole pod */
    {"{\"0\":{\"GPU-1\":8}}", false, 0, {{0}}},
    {"{\"0\":{\"65535\":8}}", false, 0, {{0}}},
    {"{\"0\":{\"01\":8}}", false, 0, {{0}}},
    {"{\"00\":{\"1\":8}}", false, 0, {{0}}},
};

TEST_EACH(reads_an_allocation_or_none, COUNT_OF(texts))
{
    struct arena a;
    struct pod_view v = {.has_allocation = true};
    arena_init(&a, MIB);
    ck_assert(allocation_read(str_of(texts[_i].text), &a, &v));
    ck_assert(v.has_allocation == texts[_i].readable);
    ck_assert_uint_eq(v.n_grants, texts[_i].n);
    for (size_t i = 0; i < v.n_grants; i++) {
        ck_assert_uint_eq(v.grants[i].container, texts[_i].grants[i].container);
        ck_assert_uint_eq(v.grants[i].card, texts[_i].grants[i].card);
        ck_assert_int_eq(v.grants[i].mem, texts[_i].grants[i].mem);
    }
    arena_done(&a);
}

/* More entries than one of cardpack's pods has, and more text than these take. */
TEST(an_allocation_has_a_ceiling)
{
    static char text[LIMIT_ALLOCATION_BYTES + 1];
    struct arena a;
    struct pod_view v = {.has_allocation = true};
    size_t n = (size_t)snprintf(text, sizeof(text), "{\"0\":{");
    arena_init(&a, MIB);
    for (int i = 0; i < REQUEST_GRANTS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"%d\":1", i == 0 ? "" : ",", i);
    memset(text + n, ' ', sizeof(text) - n);
    memcpy(text + n, "}}", 2);
    ck_assert(allocation_read((struct str){text, LIMIT_ALLOCATION_BYTES}, &a, &v));
    ck_assert(v.has_allocation && v.n_grants == REQUEST_GRANTS_MAX);
    ck_assert(allocation_read((struct str){text, LIMIT_ALLOCATION_BYTES + 1}, &a, &v));
    ck_assert(!v.has_allocation);
    memcpy(text + n, ",\"999\":1}}", 10);
    ck_assert(allocation_read((struct str){text, LIMIT_ALLOCATION_BYTES}, &a, &v));
    ck_assert(!v.has_allocation);
    arena_done(&a);
}

static const struct {
    struct placement there;
    const char *index;
    const char *mem;
    const char *cores;
} written[] = {
    {{0}, "", "{}", "{}"},
    {{1, {{8, 3, 0, 0}}}, "3", "{\"0\":{\"3\":8}}", "{}"},
    {{2, {{8, 3, 0, 30}, {4, 0, 2, 0}}},
     "0,3",
     "{\"0\":{\"3\":8},\"2\":{\"0\":4}}",
     "{\"0\":{\"3\":30}}"},
    {{4, {{8, 1, 1, 10}, {8, 2, 1, 10}, {4, 1, 0, 20}, {4, 2, 0, 20}}},
     "1,2",
     "{\"1\":{\"1\":8,\"2\":8},\"0\":{\"1\":4,\"2\":4}}",
     "{\"1\":{\"1\":10,\"2\":10},\"0\":{\"1\":20,\"2\":20}}"},
    /* In any order of the grants, each container is written once. */
    {{4, {{8, 1, 1, 0}, {4, 1, 0, 0}, {8, 2, 1, 0}, {4, 2, 0, 0}}},
     "1,2",
     "{\"1\":{\"1\":8,\"2\":8},\"0\":{\"1\":4,\"2\":4}}",
     "{}"},
};

TEST_EACH(writes_what_is_held, COUNT_OF(written))
{
    char bytes[512];
    struct buf out = BUF_ON(bytes);
    struct request r = {.mem = 0};
    struct pod_allocation *h = pod_allocation_new(&r, &written[_i].there, false);
    ck_assert_ptr_nonnull(h);
    allocation_write_index(&out, h);
    ck_assert_str_is(buf_str(&out), written[_i].index);
    out.n = 0;
    allocation_write(&out, h, ALLOCATION_OF_MEM);
    ck_assert_str_is(buf_str(&out), written[_i].mem);
    out.n = 0;
    allocation_write(&out, h, ALLOCATION_OF_CORES);
    ck_assert_str_is(buf_str(&out), written[_i].cores);
    mem_free(h);
}

/* The largest allocation fits the ceiling of its text, and reading it back gives the same. */
TEST(the_most_is_written_and_read_back)
{
    struct request r = {.cards = REQUEST_CARDS_MAX, .n_demands = 4};
    struct placement p = {.n = 0};
    struct placement again;
    struct arena a;
    struct buf out;
    struct pod_view v = {.uid = STR_NULL};
    for (uint32_t i = 0; i < r.n_demands; i++) {
        r.demands[i] = (struct demand){
            .mem = (REQUEST_MEM_MAX / 8), .cores = 6400, .index = (uint16_t)(60000 + i)};
        for (uint32_t c = 0; c < REQUEST_CARDS_MAX; c++)
            p.grants[p.n++] = (struct grant){.mem = REQUEST_MEM_MAX / 8 / REQUEST_CARDS_MAX,
                                             .card = LIMIT_CARDS - REQUEST_CARDS_MAX + c,
                                             .container = r.demands[i].index,
                                             .cores = 100};
    }
    ck_assert_uint_eq(p.n, REQUEST_GRANTS_MAX);
    buf_init(&out, LIMIT_ALLOCATION_BYTES);
    arena_init(&a, MIB);
    r.mem = REQUEST_MEM_MAX / 2;
    struct pod_allocation *h = pod_allocation_new(&r, &p, false);
    ck_assert_ptr_nonnull(h);
    allocation_write_index(&out, h);
    size_t index = out.n;
    allocation_write(&out, h, ALLOCATION_OF_MEM);
    size_t mem = out.n - index;
    allocation_write(&out, h, ALLOCATION_OF_CORES);
    ck_assert(!buf_failed(&out));
    ck_assert(allocation_read((struct str){out.p + index, mem}, &a, &v));
    ck_assert(v.has_allocation);
    placement_read(&v, &r, &again);
    ck_assert(pod_allocation_has(h, &again));
    mem_free(h);
    buf_done(&out);
    arena_done(&a);
}

static const char pod[] = "{\"metadata\":{\"name\":\"p\",\"annotations\":{"
                          "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":8,"
                          "\\\"2\\\":8,\\\"\\\\u0033\\\":8}}\"}}}";

/* Without memory the reader must fail, not fall back to charging the pod by its index. */
static enum errc read_pod(void *ctx)
{
    struct arena a;
    struct jread r;
    struct pod_view v;
    (void)ctx;
    arena_init(&a, MIB);
    jread_init(&r, str_of(pod), &a);
    kube_read_pod(&r, &a, &v);
    enum errc code = jread_finish(&r, NULL);
    if (code == OK)
        ck_assert(v.has_allocation && v.n_grants == 3);
    arena_done(&a);
    return code;
}

TEST(want_of_memory_is_the_readers_failure)
{
    ck_assert_uint_gt(fail_alloc_each(read_pod, NULL), 0);
    for (size_t max = 0; max < 600; max++) {
        struct arena a;
        struct jread r;
        struct pod_view v;
        arena_init(&a, max);
        jread_init(&r, str_of(pod), &a);
        kube_read_pod(&r, &a, &v);
        if (jread_finish(&r, NULL) == OK)
            ck_assert_msg(v.has_allocation && v.n_grants == 3, "with %zu bytes", max);
        arena_done(&a);
    }
}
