/* Pods that set a variable by themselves: read from the spec, and kept over lists. */
#include "node/isolation/overrides.h"

#include "base/limit.h"
#include "unit.h"

#define POD(containers) "{\"spec\":{" containers "},\"status\":{\"env\":1}}"
#define ENV(name, variable)                                                                        \
    "{\"name\":\"" name "\",\"env\":[{\"name\":\"A\"},{\"name\":\"" variable "\",\"value\":\"x\"}" \
    "]}"

static const struct {
    const char *json;
    const char *container; /* "": none */
    const char *variable;
    bool memory; /* a variable of the driver's limits is among them */
} rows[] = {
    {POD(""), "", "", false},
    {POD("\"containers\":[" ENV("c", "PATH") "]"), "", "", false},
    {POD("\"containers\":[{\"name\":\"c\"}," ENV("d", "NVIDIA_VISIBLE_DEVICES") "]"), "d",
     "NVIDIA_VISIBLE_DEVICES", false},
    {POD("\"containers\":[{\"env\":[{\"name\":\"CUDA_MPS_PIPE_DIRECTORY\"}],\"name\":\"c\"}]"), "c",
     "CUDA_MPS_PIPE_DIRECTORY", false},
    {POD("\"initContainers\":[" ENV("i", "NVIDIA_GPU_MEMORY_LIMIT") "],\"containers\":[" ENV(
         "c", "NVIDIA_GPU_MEMORY_REQUEST") "]"),
     "i", "NVIDIA_GPU_MEMORY_LIMIT", true},
    {POD("\"containers\":[" ENV("c", "CUDA_VISIBLE_DEVICES") "," ENV(
         "d", "NVIDIA_GPU_MEMORY_REQUEST") "]"),
     "c", "CUDA_VISIBLE_DEVICES", true},
    {POD("\"containers\":[" ENV("c", "PATH") "],\"ephemeralContainers\":[" ENV(
         "e", "NVIDIA_VISIBLE_DEVICES") "]"),
     "e", "NVIDIA_VISIBLE_DEVICES", false},
    {POD("\"containers\":[{\"name\":\"c\",\"args\":[\"NVIDIA_VISIBLE_DEVICES\"]}]"), "", "", false},
    {POD("\"containers\":[" ENV("c", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") "]"), "c",
     "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", false},
    /* What can't be read counts as one that overrides a variable: its cards are not limited. */
    {POD("\"containers\":7"), "?", "spec.containers: expected a list, got a number at offset 22",
     true},
    {POD("\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"\xff\"}]}]"), "?",
     "spec.containers[0].env[0].name: invalid UTF-8 at offset 51", true},
    {POD("\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"A\",\"value\":\"\xff\"}]}]"), "", "",
     false},
};

TEST_EACH(one_spec, COUNT_OF(rows))
{
    struct arena a;
    struct override found;
    arena_init(&a, MIB);
    overrides_read(str_of(rows[_i].json), &a, &found);
    ck_assert_str_is(found.variable, rows[_i].variable);
    if (found.variable.n > 0)
        ck_assert_str_is(found.container, rows[_i].container);
    ck_assert_int_eq(found.memory, rows[_i].memory);
    arena_done(&a);
}

static struct overrides o;

static const char *there[8]; /* "u1": on the cards "0,2" */
static size_t n_there;

static bool is_on(void *ctx, struct str uid, uint32_t card)
{
    ck_assert_ptr_eq(ctx, there);
    for (size_t i = n_there; i > 0; i -= 2) {
        if (!str_eq(uid, str_of(there[i - 2])))
            continue;
        for (struct str word, rest = str_of(there[i - 1]); rest.p != NULL;) {
            uint64_t n = 0;
            (void)str_cut(rest, ',', &word, &rest);
            if (str_to_u64(word, UINT32_MAX, &n) && n == card)
                return true;
        }
        return false;
    }
    return false;
}

static const struct override *on(uint32_t card)
{
    return overrides_on(&o, card, is_on, there);
}

static void set_over(const char *uid, const char *cards, const char *phase, bool overrides,
                     bool over)
{
    struct container_view asks = {.name = STR("c"), .mem = STR("4")};
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = STR("ns"),
                               .name = STR("p"),
                               .phase = str_of(phase),
                               .idx = STR("0,1,2,3"), /* of its author */
                               .containers = &asks,
                               .n_containers = 1};
    if (n_there == COUNT_OF(there))
        n_there = 0;
    there[n_there++] = uid;
    there[n_there++] = cards;
    overrides_set(&o, &v,
                  overrides ? STR(POD("\"containers\":[" ENV("c", "CUDA_VISIBLE_DEVICES") "]"))
                            : STR(POD("")),
                  over);
}

static void set(const char *uid, const char *cards, const char *phase, bool overrides)
{
    set_over(uid, cards, phase, overrides, false);
}

TEST(over_a_life)
{
    overrides_init(&o, (struct map_seed){1, 2});
    overrides_begin(&o);
    set("u1", "0,2", "Running", true);
    set("u2", "1", "Running", false);
    set("u3", "12", "Pending", true);
    overrides_end(&o);
    ck_assert_ptr_nonnull(on(0));
    ck_assert_ptr_nonnull(on(2));
    ck_assert_ptr_null(on(1));
    ck_assert_str_is(on(12)->uid, "u3");
    set("u1", "0,2", "Succeeded", true);
    ck_assert_ptr_null(on(0));
    overrides_begin(&o);
    overrides_end(&o);
    ck_assert_ptr_null(on(12));
    set("u4", "3", "Running", true);
    overrides_gone(&o, STR("u4"));
    ck_assert_ptr_null(on(3));
    /* it is being deleted, and its containers have ended */
    set("u5", "3", "Running", true);
    set_over("u5", "3", "Running", true, true);
    ck_assert_ptr_null(on(3));
    set("u6", "3", "Running", true);
    overrides_done(&o);
}
