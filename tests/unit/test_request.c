/* What a pod asks for: the formula over its containers, and invalid quantities. */
#include "core/request/request.h"

#include "unit.h"

#define MAIN(q)                                                 \
    {                                                           \
        .name = STR("m"), .mem = STR(q), .kind = CONTAINER_MAIN \
    }
#define INIT(q)                                                 \
    {                                                           \
        .name = STR("i"), .mem = STR(q), .kind = CONTAINER_INIT \
    }
#define SIDECAR(q)                                                 \
    {                                                              \
        .name = STR("s"), .mem = STR(q), .kind = CONTAINER_SIDECAR \
    }

enum {
    CONTAINERS = 5
};

static enum errc read_of(const struct container_view *containers, const char *overhead,
                         struct request *ret, struct err *reterr)
{
    struct pod_view pod = {.name = STR("p"), .containers = containers};
    while (pod.n_containers < CONTAINERS && containers[pod.n_containers].name.p != NULL)
        pod.n_containers++;
    if (overhead != NULL)
        pod.mem_overhead = str_of(overhead);
    return request_read(&pod, ret, reterr);
}

/* Calculated by hand from the formula of k8s.io/component-helpers; containers in the order of the
 * spec. */
static const struct {
    struct container_view containers[CONTAINERS];
    const char *overhead;
    int64_t mem;
} formula[] = {
    {{{.kind = CONTAINER_MAIN}}, NULL, 0},
    {{MAIN("8")}, NULL, 8},
    {{MAIN("0")}, NULL, 0},
    {{MAIN("8"), MAIN("4")}, NULL, 12},
    {{INIT("8")}, NULL, 8},
    {{INIT("8"), MAIN("4")}, NULL, 8},
    {{INIT("4"), MAIN("8")}, NULL, 8},
    {{INIT("4"), INIT("9"), INIT("2"), MAIN("8")}, NULL, 9},
    {{SIDECAR("3"), MAIN("4")}, NULL, 7},
    {{SIDECAR("3"), INIT("5"), MAIN("4")}, NULL, 8},
    {{INIT("5"), SIDECAR("3"), MAIN("4")}, NULL, 7},
    {{SIDECAR("1"), INIT("5"), SIDECAR("2"), INIT("9"), MAIN("4")}, NULL, 12},
    {{SIDECAR("1"), SIDECAR("2"), INIT("1"), MAIN("4")}, NULL, 7},
    {{SIDECAR("3")}, NULL, 3},
    /* Main containers have no order: some encoders write them first. */
    {{MAIN("4"), SIDECAR("3"), INIT("5")}, NULL, 8},
    {{MAIN("8")}, "2", 10},
    {{INIT("9"), MAIN("8")}, "2", 11},
    {{{.kind = CONTAINER_MAIN}}, "2", 2},
    {{MAIN("16k")}, NULL, 16000},
    {{MAIN("1e3")}, NULL, 1000},
    {{MAIN("64Ki")}, NULL, 65536},
    {{MAIN("67108864")}, NULL, 67108864},
    {{MAIN("1099511627776")}, NULL, REQUEST_MEM_MAX},
    {{MAIN("2000m")}, NULL, 2},
    {{MAIN(" 8 ")}, NULL, 8},
};

TEST_EACH(follows_the_formula, COUNT_OF(formula))
{
    struct request r;
    struct err e = ERR_INIT;
    ck_assert_ok(read_of(formula[_i].containers, formula[_i].overhead, &r, &e), &e);
    ck_assert_int_eq(r.mem, formula[_i].mem);
}

/* `charged`: the cost of such a pod on its node, if another client has bound it. */
static const struct {
    struct container_view containers[CONTAINERS];
    const char *overhead;
    enum errc code;
    const char *text;
    int64_t charged;
} refused[] = {
    {{MAIN("1.5")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem: \"1.5\" is not a whole number",
     2},
    {{MAIN("-1")}, NULL, ERR_RANGE, "container \"m\": aliyun.com/gpu-mem: \"-1\" is negative", 0},
    {{MAIN("")},
     NULL,
     ERR_SYNTAX,
     "container \"m\": aliyun.com/gpu-mem: \"\" is not a quantity",
     0},
    {{INIT("abc")},
     NULL,
     ERR_SYNTAX,
     "init container \"i\": aliyun.com/gpu-mem: \"abc\" is not a quantity",
     0},
    {{SIDECAR("1e31")},
     NULL,
     ERR_RANGE,
     "init container \"s\": aliyun.com/gpu-mem: \"1e31\" is out of range",
     0},
    {{MAIN("100E")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem asks for 9223372036854775807 or more units of GiB or "
     "MiB; write 100, not 100E",
     REQUEST_MEM_MAX},
    {{MAIN("1Ei")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem asks for 1152921504606846976 units of GiB or MiB; "
     "write 1, not 1Ei",
     REQUEST_MEM_MAX},
    {{MAIN("-100E")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem: \"-100E\" is negative",
     0},
    {{MAIN("1099511627777")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem: \"1099511627777\" is out of range: no card has that "
     "much "
     "memory",
     REQUEST_MEM_MAX},
    /* Bytes: such a pod is charged what its object says. */
    {{MAIN("16Gi")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem asks for 17179869184 units of GiB or MiB; write 16, not "
     "16Gi",
     INT64_C(16) << 30},
    {{INIT("64Mi"), MAIN("3")},
     NULL,
     ERR_RANGE,
     "init container \"i\": aliyun.com/gpu-mem asks for 67108864 units of GiB or MiB; write 64, "
     "not "
     "64Mi",
     67108864},
    {{MAIN("68M")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem asks for 68000000 units of GiB or MiB; write 68, not 68M",
     68000000},
    {{MAIN("1.5Gi")},
     NULL,
     ERR_RANGE,
     "container \"m\": aliyun.com/gpu-mem asks for 1610612736 units of GiB or MiB; write a whole "
     "number, not 1.5Gi",
     1610612736},
    /* If one container can't be read, the others still count. */
    {{MAIN("8"), MAIN("abc"), MAIN("4")},
     NULL,
     ERR_SYNTAX,
     "container \"m\": aliyun.com/gpu-mem: \"abc\" is not a quantity",
     12},
    {{MAIN("x"), MAIN("1.5"), INIT("6")},
     NULL,
     ERR_SYNTAX,
     "container \"m\": aliyun.com/gpu-mem: \"x\" is not a quantity",
     6},
    {{MAIN("1099511627776"), MAIN("1")},
     NULL,
     ERR_RANGE,
     "aliyun.com/gpu-mem: the containers' sum is out of range",
     REQUEST_MEM_MAX},
    {{SIDECAR("1099511627776"), INIT("1")},
     NULL,
     ERR_RANGE,
     "aliyun.com/gpu-mem: the containers' sum is out of range",
     REQUEST_MEM_MAX},
    {{MAIN("1099511627776")},
     "1",
     ERR_RANGE,
     "aliyun.com/gpu-mem: the containers' sum is out of range",
     REQUEST_MEM_MAX},
    {{MAIN("8")},
     "-2",
     ERR_RANGE,
     "overhead of pod \"p\": aliyun.com/gpu-mem: \"-2\" is negative",
     8},
};

TEST_EACH(says_what_it_refuses, COUNT_OF(refused))
{
    struct request r;
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_of(refused[_i].containers, refused[_i].overhead, &r, &e),
                     refused[_i].code);
    ck_assert_str_eq(e.text, refused[_i].text);
    ck_assert_int_eq(r.mem, refused[_i].charged);
    ck_assert_int_eq(read_of(refused[_i].containers, refused[_i].overhead, &r, NULL),
                     refused[_i].code);
}

/* Sizes and sums saturate, so no number of the largest ones can overflow. */
TEST(no_number_of_containers_overflows)
{
    enum {
        MANY = 1 << 16
    };
    struct container_view *containers = calloc(MANY, sizeof(*containers));
    struct pod_view pod = {.containers = containers, .n_containers = MANY};
    struct request r;
    for (size_t i = 0; i < MANY; i++) {
        struct str mem = str_of(i % 2 == 0 ? "1099511627776" : "9223372036854775807");
        containers[i] = (struct container_view){
            .name = STR("c"), .mem = mem, .kind = (enum container_kind)(i % 3)};
    }
    ck_assert_int_eq(request_read(&pod, &r, NULL), ERR_RANGE);
    ck_assert_int_eq(r.mem, REQUEST_MEM_MAX);
    free(containers);
}
