/* What doctor finds in nodes with other device plugins than gpushare's. */
#include "core/dialect/card_resources.h"
#include "doctor_rig.h"

#include <stdio.h>

#define LOCKED(d, ...)                                                                 \
    NODE(.of = {[d] = {.count = S("20"),                                               \
                       CARDS({.index = 0, .mem = 16, .numa = -1, .uuid = S("GPU-a")}), \
                       .lock = {__VA_ARGS__}}})

static const struct {
    struct node_view node;
    const char *found; /* "": nothing */
    const char *advice;
} locks[] = {
    {LOCKED(DIALECT_VGPU, .text = S("x")),
     "WARN node/n: annotation hamivgpu: \"x\" is no lock: it has no time, and cardpack does not "
     "obey it\n",
     "if no scheduler of HAMi or Volcano binds a pod there now, remove it: kubectl annotate node n "
     "hamivgpu-"},
    {LOCKED(DIALECT_HAMI, .text = S("2100-01-01T00:00:00Z,ns,p"), .since_s = 4102444800),
     "WARN node/n: annotation hami.io/mutex.lock: \"2100-01-01T00:00:00Z,ns,p\" has a time in the "
     "future: cardpack does not obey it\n",
     "compare it with date -u: if the clocks of the nodes and of this machine are right, remove "
     "it: kubectl annotate node n hami.io/mutex.lock-"},
    {LOCKED(DIALECT_VGPU, .text = S("+5 min"), .since_s = NOW + LOCK_EXPIRES_S), "", ""},
    {LOCKED(DIALECT_VGPU, .text = S("old"), .since_s = NOW - 86400), "", ""},
    /* Of a dialect that the node does not have. */
    {NODE(.of = {{.mem = S("32"), .count = S("2")}, [DIALECT_VGPU] = {.lock = {.text = S("x")}}}),
     "", ""},
};

TEST_EACH(checks_locks, COUNT_OF(locks))
{
    dialects_use(DIALECTS_ALL);
    set_node(&rig, locks[_i].node);
    doctor_node(&found, &locks[_i].node, cache_node(&rig.cache, STR("n")), &(struct doctor_marks){},
                NOW);
    ck_assert_str_eq(findings(), locks[_i].found);
    if (found.n > 0)
        ck_assert_str_eq(found.items[0].advice, locks[_i].advice);
}

/* The GPU Operator keeps cardpack-node away: the node is not meant to have its devices now. */
TEST(a_paused_node_misses_nothing)
{
    const struct node_view bare = {.name = STR("n"), .mem = STR("0")};
    const struct doctor_marks marks = {.ours = true, .table = true, .paused = STR("k=v")};
    set_node(&rig, bare);
    doctor_node(&found, &bare, cache_node(&rig.cache, STR("n")), &marks, NOW);
    ck_assert_str_eq(findings(), "");
}

#define BOUND  .node = S("n"), .phase = S("Running")
#define SHARED "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\""
#define TWICE  " beside its aliyun.com/gpu-mem, and cardpack does not know what that is\n"

/* The capacity of a node, and what doctor says of it. */
static const struct {
    const char *capacity;
    const char *annotations;
    const char *setting;
    const char *found;
} offers[] = {
    {SHARED ",\"nvidia.com/gpu-h100\":\"4\"", "", "",
     "FAIL node/n: it offers nvidia.com/gpu-h100" TWICE},
    {SHARED ",\"nvidia.com/GPU.shared\":\"4\"", "", "",
     "FAIL node/n: it offers nvidia.com/GPU.shared" TWICE},
    {SHARED ",\"acme.io/gpu\":4", "", "", "FAIL node/n: it offers acme.io/gpu" TWICE},
    {SHARED ",\"acme.io/gpu\":\"4x\"", "", "", "FAIL node/n: it offers acme.io/gpu" TWICE},
    /* NVIDIA has resources for networks, too. */
    {SHARED ",\"nvidia.com/mps\":\"4\"", "", "", "WARN node/n: it offers nvidia.com/mps" TWICE},
    {SHARED ",\"nvidia.com/mps\":\"4\",\"nvidia.com/vgpu-a\":\"4\"", "", "",
     "FAIL node/n: it offers nvidia.com/vgpu-a" TWICE},
    {SHARED ",\"nvidia.com/vgpu-a\":\"4\",\"nvidia.com/z\":\"4\"", "", "",
     "FAIL node/n: it offers nvidia.com/vgpu-a" TWICE},
    {"\"volcano.sh/gpu-memory\":\"32\",\"volcano.sh/gpu-number\":\"2\",\"acme.io/gpu\":\"4\"", "",
     "",
     "FAIL node/n: it offers acme.io/gpu beside its volcano.sh/gpu-memory, and cardpack does not "
     "know what that is\n"},
    /* What is well. */
    {SHARED ",\"nvidia.com/gpu-h100\":\"0\"", "", "", ""},
    {SHARED ",\"nvidia.com/gpu-h100\":\"4\"", "", "nvidia.com/gpu-*", ""},
    {SHARED ",\"nvidia.com/gpu-h100\":\"4\"", "\"cardpack.io/exclusive-cards\":\"1\"", "", ""},
    {SHARED ",\"nvidia.com/gpu\":\"4\",\"nvidia.com/gpu.shared\":\"4\"", "", "", ""},
    {SHARED ",\"aliyun.com/gpu-core.percentage\":\"200\",\"cpu\":\"4\"", "", "", ""},
    {SHARED ",\"amd.com/gpu\":\"1\",\"gpu.intel.com/i915\":\"1\"", "", "", ""},
    {SHARED ",\"nvidia.com/gpu-h100\":{}", "", "", ""},
    {"\"nvidia.com/gpu-h100\":\"4\"", "", "", ""}, /* it shares none */
};

TEST_EACH(checks_what_is_offered_twice, COUNT_OF(offers))
{
    char json[1024];
    struct jread r;
    struct node_view v;
    struct err e = ERR_INIT;
    dialects_use(DIALECTS_ALL);
    card_resources_use(str_of(offers[_i].setting));
    (void)snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"n\",\"annotations\":{%s}},\"status\":{\"capacity\":{%s}}}",
        offers[_i].annotations, offers[_i].capacity);
    jread_init(&r, str_of(json), &arena);
    kube_read_node(&r, &arena, &v);
    ck_assert_ok(jread_finish(&r, &e), &e);
    set_node(&rig, v);
    doctor_dialect(&found, &v, cache_node(&rig.cache, STR("n")));
    ck_assert_str_eq(findings(), offers[_i].found);
}

/* A pod of NVIDIA's plugin, and one that shares a card. */
static const struct {
    const char *wholes;
    const char *aside;
    const char *found;
} mixed[] = {
    {"1", NULL,
     "WARN node/n: its pods hold 1 cards of another device plugin, and 1 pods share cards beside "
     "them: no card is set aside, so a card may be used twice\n"},
    {"1", "1", ""},
    {"0", NULL, ""},
};

TEST_EACH(checks_pods_of_two_plugins, COUNT_OF(mixed))
{
    struct node_view node = TWO_CARDS;
    dialects_use(DIALECT_BIT(DIALECT_GPUSHARE));
    node.exclusive_cards = mixed[_i].aside == NULL ? STR_NULL : str_of(mixed[_i].aside);
    node.exclusive = STR("2");
    set_node(&rig, node);
    set_pod(&rig, (struct pod_view)PLAIN("p", "8", AT(0)));
    struct container_view whole = {.name = S("m0"), .exclusive = str_of(mixed[_i].wholes)};
    set_pod(&rig, (struct pod_view)POD("q", .containers = &whole, .n_containers = 1, .n_mains = 1,
                                       BOUND));
    doctor_mixed(&found, cache_node(&rig.cache, STR("n")));
    ck_assert_str_eq(findings(), mixed[_i].found);
}

int main(void)
{
    TCase *tc = unit_case("doctor_nodes");
    tcase_add_checked_fixture(tc, setup, teardown);
    return unit_run();
}
