/* Labels and annotations of a pod, contradictions in them, and copies of a request. */
#include "asked.h"
#include "base/mem.h"
#include "core/limit.h"
#include "fail_alloc.h"

static const struct {
    struct pod_view pod;
    struct request request;
} good[] = {
    {PLAIN("p", "8"), {.mem = 8, .lasting_mem = 8, .n_demands = 1}},
    {PLAIN("p", "0"), {.mem = 0}},
    {POD("p", CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN_CORES(1, "4", "20"))),
     {.mem = 12, .lasting_mem = 12, .cores = 50, .lasting_cores = 50, .n_demands = 2}},
    {POD("p", CONTAINERS(1, SIDECAR(0, "3"), INIT(1, "5"), MAIN(0, "4"))),
     {.mem = 8, .lasting_mem = 7, .n_demands = 3}},
    {POD("p", CONTAINERS(1, {.name = S("i"), .cores = S("80"), .kind = CONTAINER_INIT},
                         MAIN_CORES(0, "4", "30"))),
     {.mem = 4, .lasting_mem = 4, .cores = 80, .lasting_cores = 30, .n_demands = 2}},
    {POD("p", CONTAINERS(1, {.name = S("i"), .exclusive = S("2"), .kind = CONTAINER_INIT},
                         {.name = S("m"), .exclusive = S("1")})),
     {.exclusive = 2}},
    {PLAIN("p", "8", .count_label = S(" 2 ")),
     {.mem = 8, .lasting_mem = 8, .cards = 2, .n_demands = 1}},
    {PLAIN("p", "8", .count_label = S("1")),
     {.mem = 8, .lasting_mem = 8, .cards = 1, .n_demands = 1}},
    {PLAIN("p", "64", .count_label = S("64")),
     {.mem = 64, .lasting_mem = 64, .cards = 64, .n_demands = 1}},
    {PLAIN("p", "0", .count_label = S("2")), {.cards = 0}},
    {PLAIN("p", "1", .percent = S("50")),
     {.mem = 1, .lasting_mem = 1, .percent = 50, .n_demands = 1}},
    {PLAIN("p", "2", .percent = S("100"), .count_label = S("2")),
     {.mem = 2, .lasting_mem = 2, .percent = 100, .cards = 2, .n_demands = 1}},
    /* The kubelet gives the second container no card. */
    {POD("p", .percent = S("50"), CONTAINERS(2, MAIN(0, "3"), MAIN(1, "0"))),
     {.mem = 3, .lasting_mem = 3, .percent = 50, .n_demands = 1}},
    {PLAIN("p", "8", WHOLE), {.mem = 8, .lasting_mem = 8, .whole = true, .n_demands = 1}},
    {PLAIN("p", "8", .policy = S("spread")),
     {.mem = 8,
      .lasting_mem = 8,
      .n_demands = 1,
      .node_policy = POLICY_SPREAD,
      .card_policy = POLICY_SPREAD}},
    {PLAIN("p", "8", .policy = S("spread"), .node_policy = S("binpack")),
     {.mem = 8,
      .lasting_mem = 8,
      .n_demands = 1,
      .node_policy = POLICY_BINPACK,
      .card_policy = POLICY_SPREAD}},
    {PLAIN("p", "8", .require_isolation = S(" true ")),
     {.mem = 8, .lasting_mem = 8, .n_demands = 1, .isolated = true}},
    {PLAIN("p", "13", .require_isolation = S("false")),
     {.mem = 13, .lasting_mem = 13, .n_demands = 1}},
    {PLAIN("p", "8", .card_policy = S(" binpack ")),
     {.mem = 8, .lasting_mem = 8, .n_demands = 1, .card_policy = POLICY_BINPACK}},
    {PLAIN("p", "8", .card_model = S(" A10 "), .card_uuid = S("!G"), .affinity = S("a"),
           .anti_affinity = S("b"), .priority = -5, .never_preempts = true),
     {.mem = 8,
      .lasting_mem = 8,
      .n_demands = 1,
      .models = S("A10"),
      .uuids = S("!G"),
      .affinity = S("a"),
      .anti_affinity = S("b"),
      .priority = -5,
      .never_preempts = true}},
    /* For a pod without a card of cardpack, labels and annotations about cards are ignored. */
    {POD("p", .count_label = S("x"), .percent = S("x"), .policy = S("x"), .n_mains = 1), {0}},
    {POD("p", CONTAINERS(2, MAIN_CORES(0, "1", "100"), MAIN_CORES(1, "1", "100"))),
     {.mem = 2, .lasting_mem = 2, .cores = 200, .lasting_cores = 200, .n_demands = 2}},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "200")), .count_label = S("2")),
     {.mem = 8, .lasting_mem = 8, .cores = 200, .lasting_cores = 200, .cards = 2, .n_demands = 1}},
};

TEST_EACH(reads_what_is_asked_for, COUNT_OF(good))
{
    struct request r;
    struct err e = ERR_INIT;
    const struct request *x = &good[_i].request;
    ck_assert_ok(request_read(&good[_i].pod, &r, &e), &e);
    ck_assert_int_eq(r.mem, x->mem);
    ck_assert_int_eq(r.lasting_mem, x->lasting_mem);
    ck_assert_uint_eq(r.cores, x->cores);
    ck_assert_uint_eq(r.lasting_cores, x->lasting_cores);
    ck_assert_uint_eq(r.cards, x->cards);
    ck_assert_uint_eq(r.exclusive, x->exclusive);
    ck_assert_uint_eq(r.percent, x->percent);
    ck_assert_uint_eq(r.n_demands, x->n_demands);
    ck_assert(r.whole == x->whole && r.never_preempts == x->never_preempts);
    ck_assert(r.isolated == x->isolated);
    ck_assert_int_eq(r.node_policy, x->node_policy);
    ck_assert_int_eq(r.card_policy, x->card_policy);
    ck_assert_int_eq(r.priority, x->priority);
    ck_assert(str_eq(r.models, x->models) && str_eq(r.uuids, x->uuids));
    ck_assert(str_eq(r.affinity, x->affinity) && str_eq(r.anti_affinity, x->anti_affinity));
    ck_assert_int_eq(request_share(&r).mem,
                     (r.mem + MAX_OF(r.cards, 1U) - 1) / MAX_OF(r.cards, 1U));
}

#define LONG_NAME                                                                          \
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdef" \
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdef" \
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghi"

#define LONG_HEAD "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"

static const struct {
    struct pod_view pod;
    enum errc code;
    const char *text;
} bad[] = {
    {PLAIN("p", "8", .annotation_bytes = LIMIT_ANNOTATIONS_BYTES + 1), ERR_RANGE,
     "its annotations have 163841 bytes, 163840 at most: the Binding adds some, and above 262144 "
     "the API server refuses every change of a pod; remove or shorten annotations"},
    {PLAIN("p", "1", WHOLE, .annotation_bytes = LIMIT_ANNOTATIONS_API_BYTES), ERR_RANGE,
     "its annotations have 262144 bytes, 163840 at most: the Binding adds some, and above 262144 "
     "the API server refuses every change of a pod; remove or shorten annotations"},
    {PLAIN("p", "8", .count_label = S("3")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"3\" does not divide the aliyun.com/gpu-mem of 8 of a "
     "container"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "25")), .count_label = S("2")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"2\" does not divide the aliyun.com/gpu-core.percentage of 25 "
     "of "
     "a container"},
    {PLAIN("p", "8", .count_label = S("0")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"0\" must be a number of cards, 1 to 64"},
    {PLAIN("p", "8", .count_label = S("-2")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"-2\" must be a number of cards, 1 to 64"},
    {PLAIN("p", "8", .count_label = S("65")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"65\" must be a number of cards, 1 to 64"},
    {PLAIN("p", "8", .count_label = S("")), ERR_RANGE,
     "label aliyun.com/gpu-count: \"\" must be a number of cards, 1 to 64"},
    {POD("p", .count_label = S("64"),
         CONTAINERS(5, MAIN(0, "64"), MAIN(1, "64"), MAIN(2, "64"), MAIN(3, "64"), MAIN(4, "64"))),
     ERR_RANGE, "label aliyun.com/gpu-count: \"64\" is too many for so many containers"},
    {PLAIN("p", "0", .percent = S("50")), ERR_RANGE,
     "annotation cardpack.io/gpu-mem-percent: \"50\" needs a container with a limit "
     "aliyun.com/gpu-mem of 1 or more: with 0 it gets no card"},
    {PLAIN("p", "0", WHOLE, .percent = S("50")), ERR_RANGE,
     "label ack.gpushare.placement: \"require-whole-device\" needs a container with a limit "
     "aliyun.com/gpu-mem of 1 or more: with 0 it gets no card"},
    {PLAIN("p", "8", .percent = S("0")), ERR_RANGE,
     "annotation cardpack.io/gpu-mem-percent: \"0\" must be a whole number from 1 to 100, without "
     "a percent sign"},
    {PLAIN("p", "8", .percent = S("101")), ERR_RANGE,
     "annotation cardpack.io/gpu-mem-percent: \"101\" must be a whole number from 1 to 100, "
     "without a percent sign"},
    {PLAIN("p", "8", .percent = S("50%")), ERR_RANGE,
     "annotation cardpack.io/gpu-mem-percent: \"50%\" must be a whole number from 1 to 100, "
     "without a percent sign"},
    {PLAIN("p", "8", .whole_label = S("whole")), ERR_RANGE,
     "label ack.gpushare.placement: \"whole\" must be require-whole-device"},
    {PLAIN("p", "8", .policy = S("pack")), ERR_RANGE,
     "annotation cardpack.io/policy: \"pack\" must be binpack, spread, fgd or bid-price"},
    {PLAIN("p", "8", .node_policy = S("pack")), ERR_RANGE,
     "annotation cardpack.io/node-policy: \"pack\" must be binpack, spread, fgd or bid-price"},
    {PLAIN("p", "8", .card_policy = S("")), ERR_RANGE,
     "annotation cardpack.io/card-policy: \"\" must be binpack, spread, fgd or bid-price"},
    {PLAIN("p", "8", .require_isolation = S("yes")), ERR_RANGE,
     "annotation cardpack.io/require-isolation: \"yes\" must be true or false"},
    {PLAIN("p", "8", .require_isolation = S("")), ERR_RANGE,
     "annotation cardpack.io/require-isolation: \"\" must be true or false"},
    {PLAIN("p", "8", .affinity = S("g"), .anti_affinity = S(" g")), ERR_RANGE,
     "annotation cardpack.io/card-anti-affinity-group: \"g\" is also its "
     "cardpack.io/card-affinity-group: one "
     "card can't be the same and another"},
    {PLAIN("p", "8", .affinity = S(LONG_NAME)), ERR_RANGE,
     "annotation cardpack.io/card-affinity-group: \"" LONG_HEAD "...\" has 255 bytes: 253 at most"},
    {PLAIN("p", "8", .policy = S(LONG_NAME)), ERR_RANGE,
     "annotation cardpack.io/policy: \"" LONG_HEAD
     "...\" must be binpack, spread, fgd or bid-price"},
    {PLAIN("p", LONG_NAME), ERR_RANGE,
     "container \"m0\": aliyun.com/gpu-mem: \"" LONG_HEAD "...\" is out of range"},
    {POD("p", CONTAINERS(1, {.name = S("m"), .cores = S("30")})), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"30\" without aliyun.com/gpu-mem: add a limit "
     "aliyun.com/gpu-mem"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "0", "30"))), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"30\" without aliyun.com/gpu-mem: add a limit "
     "aliyun.com/gpu-mem"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "101"))), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"101\" is more than 100 of 1 card"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "202")), .count_label = S("2")), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"202\" is more than 200 of 2 cards, the number in label "
     "aliyun.com/gpu-count"},
    {POD("p", CONTAINERS(2, MAIN_CORES(0, "8", "101"), MAIN(1, "8"))), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"101\" is more than 100 of 1 card"},
    {POD("p", CONTAINERS(2, MAIN_CORES(0, "1", "60"), MAIN_CORES(1, "1", "60")), WHOLE), ERR_RANGE,
     "aliyun.com/gpu-core.percentage: \"120\" is more than 100 of 1 card"},
    {POD("p", CONTAINERS(1, INIT(0, "1"),
                         {.name = S("s"), .mem = S("1"), .cores = S("60"), .kind = CONTAINER_INIT},
                         MAIN_CORES(0, "1", "160"))),
     ERR_RANGE, "aliyun.com/gpu-core.percentage: \"160\" is more than 100 of 1 card"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "6401"))), ERR_RANGE,
     "container \"m0\": aliyun.com/gpu-core.percentage: \"6401\" is out of range: a card has 100"},
    {POD("p", CONTAINERS(1, MAIN_CORES(0, "8", "0.5"))), ERR_RANGE,
     "container \"m0\": aliyun.com/gpu-core.percentage: \"0.5\" is not a whole number"},
    {POD("p", CONTAINERS(1, {.name = S("m"), .exclusive = S("2147483648")})), ERR_RANGE,
     "container \"m\": nvidia.com/gpu: \"2147483648\" is out of range: no node has so many cards"},
    {POD("p", CONTAINERS(1, {.name = S("m"), .exclusive = S("-1")})), ERR_RANGE,
     "container \"m\": nvidia.com/gpu: \"-1\" is negative"},
};

TEST_EACH(names_what_contradicts, COUNT_OF(bad))
{
    struct request r;
    struct err e = ERR_INIT;
    ck_assert_int_eq(request_read(&bad[_i].pod, &r, &e), bad[_i].code);
    ck_assert_str_eq(e.text, bad[_i].text);
    ck_assert_int_eq(request_read(&bad[_i].pod, &r, NULL), bad[_i].code);
    ck_assert_uint_le(r.affinity.n, REQUEST_GROUP_MAX);
}

/* A list of `n` items with `bytes` bytes in all. */
static struct str list_of(char *to, size_t n, size_t bytes)
{
    memset(to, 'a', bytes);
    for (size_t i = 1; i < n; i++)
        to[2 * i - 1] = ',';
    return (struct str){to, bytes};
}

static const struct {
    size_t n;
    size_t bytes;
    const char *fault; /* NULL: valid */
} lists[] = {
    {LIMIT_WISH_ITEMS, LIMIT_WISH_BYTES, NULL},
    {1, LIMIT_WISH_BYTES + 1, "has 4097 bytes: 4096 at most"},
    {1, 250000, "has 250000 bytes: 4096 at most"},
    {LIMIT_WISH_ITEMS + 1, LIMIT_WISH_BYTES, "has 129 items: 128 at most"},
};

TEST_EACH(a_list_of_wishes_has_a_ceiling, COUNT_OF(lists))
{
    static char text[250000];
    struct str list = list_of(text, lists[_i].n, lists[_i].bytes);
    struct pod_view pods[] = {PLAIN("p", "8"), PLAIN("p", "8")};
    pods[0].card_model = pods[1].card_uuid = list;
    for (size_t i = 0; i < COUNT_OF(pods); i++) {
        struct request r;
        struct err e = ERR_INIT;
        enum errc code = request_read(&pods[i], &r, &e);
        ck_assert_int_eq(code, lists[_i].fault == NULL ? OK : ERR_RANGE);
        ck_assert(lists[_i].fault == NULL || strstr(e.text, lists[_i].fault) != NULL);
        ck_assert(code == OK || strstr(e.text, i == 0 ? "cardpack.io/card-model: \"a"
                                                      : "cardpack.io/card-uuid: \"a") != NULL);
        /* If the pod is bound all the same, none of it is kept. */
        ck_assert_uint_eq(r.models.n + r.uuids.n, code == OK ? list.n : 0);
        ck_assert_int_eq(r.mem, 8);
    }
}

/* No two containers have the same index; else a card would be written for the wrong one. */
TEST_EACH(no_container_behind_the_last_index, 6)
{
    static const struct {
        enum container_kind kind;
        uint32_t index;
        uint32_t n_mains;
        enum errc code;
    } cases[] = {{CONTAINER_MAIN, UINT16_MAX - 1, UINT16_MAX, OK},
                 {CONTAINER_MAIN, UINT16_MAX, 65536, ERR_RANGE},
                 {CONTAINER_MAIN, 65536, 65537, ERR_RANGE},
                 {CONTAINER_INIT, 0, UINT16_MAX - 1, OK},
                 {CONTAINER_INIT, 0, UINT16_MAX, ERR_RANGE},
                 {CONTAINER_INIT, 1, UINT32_MAX, ERR_RANGE}};
    struct request r;
    struct err e = ERR_INIT;
    struct container_view c = {
        .name = STR("c"), .mem = STR("1"), .kind = cases[_i].kind, .index = cases[_i].index};
    struct pod_view pod = {.containers = &c, .n_containers = 1, .n_mains = cases[_i].n_mains};
    ck_assert_int_eq(request_read(&pod, &r, &e), cases[_i].code);
    ck_assert_int_eq(r.mem, 1); /* charged nevertheless */
    if (cases[_i].code == OK)
        ck_assert_uint_eq(r.demands[0].index, UINT16_MAX - 1);
    else
        ck_assert_str_eq(e.text, "container \"c\": it comes after more than 65534 others");
}

TEST(no_more_containers_than_there_is_room_for)
{
    struct container_view c[REQUEST_DEMANDS_MAX + 1];
    struct pod_view pod = {.containers = c, .n_containers = COUNT_OF(c)};
    struct request r;
    struct err e = ERR_INIT;
    for (uint32_t i = 0; i < COUNT_OF(c); i++)
        c[i] = (struct container_view){.name = STR("c"), .mem = STR("1"), .index = i};
    ck_assert_int_eq(request_read(&pod, &r, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "container \"c\": more than 16 containers ask for cards");
    ck_assert_int_eq(r.mem, REQUEST_DEMANDS_MAX + 1); /* charged nevertheless */
    ck_assert_uint_eq(r.n_demands, REQUEST_DEMANDS_MAX);
    c[3].mem = STR("0"); /* a container that asks for nothing does not count */
    ck_assert_int_eq(request_read(&pod, &r, NULL), OK);
}

TEST_EACH(copies_are_equal_and_differences_are_seen, COUNT_OF(good))
{
    struct request a;
    struct request b;
    struct request loaded;
    enum errc code = request_read(&good[_i].pod, &a, NULL);
    ck_assert_int_eq(code, OK);
    struct request *copy = request_copy(&a);
    ck_assert_ptr_nonnull(copy);
    ck_assert(request_equal(copy, &a));
    request_load(&loaded, copy);
    ck_assert(request_equal(&loaded, &a));
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        code = request_read(&good[i].pod, &b, NULL);
        bool none = i == 9 && _i == 1; /* these two ask for nothing, in two ways */
        none = none || (i == 1 && _i == 9);
        ck_assert_msg(code == OK && request_equal(copy, &b) == ((size_t)_i == i || none),
                      "%d and %zu", _i, i);
    }
    if (a.n_demands > 0) {
        loaded.demands[a.n_demands - 1].kind = CONTAINER_SIDECAR;
        loaded.demands[a.n_demands - 1].index++;
        ck_assert(!request_equal(&loaded, &a));
    }
    mem_free(copy);
}

/* All in one table, each twice: equal requests share a copy, different ones do not. */
TEST(who_asks_alike_shares_a_copy)
{
    const struct request *taken[2 * COUNT_OF(good)];
    struct intern_table table;
    struct request r;
    intern_init(&table, (struct map_seed){1, 2});
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        ck_assert_int_eq(request_read(&good[i % COUNT_OF(good)].pod, &r, NULL), OK);
        taken[i] = request_take(&table, &r);
        ck_assert_ptr_nonnull(taken[i]);
        ck_assert(request_equal(taken[i], &r));
        for (size_t k = 0; k < i; k++)
            ck_assert((taken[k] == taken[i]) == request_equal(taken[k], &r));
        request_check(&table, taken[i]);
    }
    intern_check(&table, COUNT_OF(taken));
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        request_give(&table, taken[i]);
    request_give(&table, NULL);
    intern_done(&table);
}

static enum errc take_and_give(void *ctx)
{
    struct intern_table table;
    const struct request *taken[2];
    intern_init(&table, (struct map_seed){1, 2});
    for (size_t i = 0; i < 2; i++)
        taken[i] = request_take(&table, ctx);
    bool whole = taken[0] != NULL && taken[1] != NULL;
    intern_check(&table, whole ? 2 : taken[0] != NULL || taken[1] != NULL ? 1 : 0);
    for (size_t i = 0; i < 2; i++)
        request_give(&table, taken[i]);
    intern_done(&table);
    return whole ? OK : ERR_NOMEM;
}

TEST(a_shared_copy_without_memory)
{
    struct request r;
    ck_assert_int_eq(request_read(&good[0].pod, &r, NULL), OK);
    ck_assert_uint_eq(fail_alloc_each(take_and_give, &r), 2);
}

/* The largest that are accepted. */
static const struct pod_view annotated[] = {
    PLAIN("p", "8", .annotation_bytes = LIMIT_ANNOTATIONS_BYTES),
    /* The Binding's are among them. */
    PLAIN("p", "8", .node = S("n"), .annotation_bytes = LIMIT_ANNOTATIONS_API_BYTES + 1),
    /* Its Binding has none. */
    POD("p", CONTAINERS(1, {.name = S("m"), .exclusive = S("1")}),
        .annotation_bytes = LIMIT_ANNOTATIONS_API_BYTES),
};

TEST_EACH(annotations_leave_room_for_those_of_a_binding, COUNT_OF(annotated))
{
    struct request r;
    struct err e = ERR_INIT;
    ck_assert_ok(request_read(&annotated[_i], &r, &e), &e);
    ck_assert(request_wants(&r));
}

TEST_EACH(only_memory_of_one_card_is_plain, COUNT_OF(good))
{
    static const bool plain[COUNT_OF(good)] = {[0] = true,  [7] = true,  [14] = true, [15] = true,
                                               [16] = true, [17] = true, [18] = true, [19] = true};
    struct request r;
    ck_assert_int_eq(request_read(&good[_i].pod, &r, NULL), OK);
    ck_assert(request_plain(&r) == plain[_i]);
}
