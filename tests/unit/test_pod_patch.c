/* The bodies of the PATCHes that carry out exchanges, byte by byte. */
#include "node/pods/pod_patch.h"
#include "unit.h"

struct patch_case {
    enum exchange_action action;
    const char *plan; /* cards of the containers, one after the other */
    struct card_list vacated;
    bool assigned;
    bool said_allocation;
    bool said_cores;
    const char *body;
    bool held;
};

#define ANY  "{\"metadata\":{\"uid\":\"u\",\"annotations\":{"
#define HEAD "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"77\",\"annotations\":{"

static const struct patch_case cases[] = {
    {EXCHANGE_MARK,
     "00",
     {2, {0, 3}},
     false,
     false,
     false,
     HEAD "\"cardpack.io/vacated-cards\":\"0,3\"}}}",
     false},
    {EXCHANGE_FINISH,
     "00",
     {0, {0}},
     true,
     false,
     false,
     HEAD "\"cardpack.io/vacated-cards\":null,\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}}}",
     false},
    {EXCHANGE_ASSIGN,
     "00",
     {0, {0}},
     true,
     false,
     false,
     ANY "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}}}",
     false},
    {EXCHANGE_MOVE,
     "11",
     {0, {0}},
     false,
     false,
     false,
     HEAD "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\",\"ALIYUN_COM_GPU_MEM_DEV\":\"24\"}}}",
     false},
    {EXCHANGE_MOVE,
     "01",
     {0, {0}},
     true,
     true,
     true,
     HEAD
     "\"ALIYUN_COM_GPU_MEM_IDX\":\"0,1\",\"ALIYUN_COM_GPU_MEM_DEV\":\"16\","
     "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4},\\\"1\\\":{"
     "\\\"1\\\":2}}\",\"gpushare.alibabacloud.com/core-percentage\":\"{\\\"0\\\":{\\\"0\\\":30}"
     "}\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}}}",
     false},
    /* Its cards are known: whatever was edited since, this is true. */
    {EXCHANGE_MOVE,
     "11",
     {0, {0}},
     false,
     false,
     false,
     ANY "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\",\"ALIYUN_COM_GPU_MEM_DEV\":\"24\"}}}",
     true},
    {EXCHANGE_FINISH,
     "00",
     {0, {0}},
     false,
     false,
     false,
     ANY "\"cardpack.io/vacated-cards\":null}}}",
     true},
};

/* A pod with two containers, of 4 and 2 units. */
static void set_pod(struct roster *r, const struct patch_case *c)
{
    struct container_view containers[] = {
        {.name = STR("a"), .mem = STR("4"), .cores = STR("30")},
        {.name = STR("b"), .mem = STR("2"), .index = 1},
    };
    const struct pod_view v = {.uid = STR("u"),
                               .namespace = STR("ns"),
                               .name = STR("p"),
                               .node = STR("n"),
                               .phase = STR("Pending"),
                               .idx = STR("0"),
                               .former = {c->said_allocation, c->said_cores, false},
                               .n_mains = 2,
                               .containers = containers,
                               .n_containers = 2};
    ck_assert_int_eq(roster_set(r, &v, 77), OK);
}

TEST_EACH(a_step_is_written, COUNT_OF(cases))
{
    const struct patch_case *c = &cases[_i];
    static struct roster r;
    const struct roster_card cards[] = {{0, 16}, {1, 24}};
    struct buf out;
    roster_init(&r);
    roster_set_cards(&r, cards, COUNT_OF(cards));
    set_pod(&r, c);
    struct roster_pod *p = roster_find(&r, STR("u"));
    ck_assert_uint_eq(p->plan.n, 2);
    p->held = c->held;
    for (uint32_t i = 0; i < 2; i++)
        p->plan.grants[i].card = (uint32_t)(c->plan[i] - '0');
    const struct exchange_step step = {
        .action = c->action, .pod = p, .vacated = c->vacated, .assigned = c->assigned};
    buf_init(&out, 4096);
    ck_assert_int_eq(pod_patch_write(&out, &r, &step), OK);
    ck_assert_str_eq(buf_cstr(&out), c->body);
    buf_done(&out);
    buf_init(&out, 16);
    ck_assert_int_eq(pod_patch_write(&out, &r, &step), ERR_LIMIT);
    buf_done(&out);
    roster_done(&r);
}
