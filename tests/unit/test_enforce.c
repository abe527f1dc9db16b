/* What a node enforces, by setting, cards and labels. */
#include "node/isolation/enforce.h"

#include "unit.h"

enum {
    NOTHING,
    LIMITS,
    FOUND,
    OLD,
    LOST,
    SLICE,
    SERVED
};

/* One card of each kind, by the letters below. */
static const struct gpu_card kinds[] = {
    [NOTHING] = {.uuid = STR("GPU-n"), .seen = true, .limits = GPU_NOT_ASKED},
    [LIMITS] = {.uuid = STR("GPU-l"), .seen = true, .limits = NVML_NOT_FOUND},
    [FOUND] = {.uuid = STR("GPU-f"), .seen = true, .limits = NVML_OK},
    [OLD] = {.uuid = STR("GPU-o"), .seen = true, .limits = NVML_FUNCTION_NOT_FOUND},
    [LOST] = {.uuid = STR("GPU-x"), .seen = true, .limits = NVML_GPU_IS_LOST},
    [SLICE] = {.uuid = STR("MIG-s"), .seen = true, .limits = GPU_NOT_ASKED, .mig = true},
    [SERVED] = {.uuid = STR("GPU-m"), .seen = true, .limits = NVML_NOT_SUPPORTED},
};
static const char letters[] = "nlfoxsm";

static bool serves(void *ctx, const struct gpu_card *c)
{
    ck_assert_ptr_null(ctx);
    return str_eq(c->uuid, STR("GPU-m"));
}

static const struct {
    enum settings_isolation asked;
    const char *cards;
    bool cgroup2;
    bool label;
    enum isolation means;
    enum isolation is;
    bool lacks;
} rows[] = {
    {SETTINGS_ISOLATION_AUTO, "", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_AUTO, "lf", true, false, ISOLATION_DRIVER_LIMITS, ISOLATION_DRIVER_LIMITS,
     false},
    {SETTINGS_ISOLATION_AUTO, "lo", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_AUTO, "n", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_AUTO, "l", false, false, ISOLATION_NONE, ISOLATION_NONE, false},
    /* a lost card changes nothing, alone or beside others */
    {SETTINGS_ISOLATION_AUTO, "x", true, false, ISOLATION_UNKNOWN, ISOLATION_UNKNOWN, false},
    {SETTINGS_ISOLATION_AUTO, "xl", true, false, ISOLATION_DRIVER_LIMITS, ISOLATION_DRIVER_LIMITS,
     false},
    {SETTINGS_ISOLATION_AUTO, "lx", true, false, ISOLATION_DRIVER_LIMITS, ISOLATION_DRIVER_LIMITS,
     false},
    {SETTINGS_ISOLATION_AUTO, "lxo", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_AUTO, "ss", true, true, ISOLATION_MIG, ISOLATION_MIG, false},
    {SETTINGS_ISOLATION_AUTO, "sl", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_NONE, "ss", true, true, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_NONE, "l", true, true, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_DRIVER_LIMITS, "l", true, true, ISOLATION_DRIVER_LIMITS,
     ISOLATION_DRIVER_LIMITS, false},
    {SETTINGS_ISOLATION_DRIVER_LIMITS, "l", false, false, ISOLATION_NONE, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_DRIVER_LIMITS, "lo", true, false, ISOLATION_NONE, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_DRIVER_LIMITS, "s", true, false, ISOLATION_NONE, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_DRIVER_LIMITS, "x", true, false, ISOLATION_UNKNOWN, ISOLATION_UNKNOWN,
     true},
    /* MPS: by the label, or forced; containers get it before it is verified */
    {SETTINGS_ISOLATION_AUTO, "m", true, true, ISOLATION_MPS, ISOLATION_MPS, false},
    {SETTINGS_ISOLATION_AUTO, "m", true, false, ISOLATION_NONE, ISOLATION_NONE, false},
    {SETTINGS_ISOLATION_AUTO, "mo", true, true, ISOLATION_MPS, ISOLATION_MPS, false},
    {SETTINGS_ISOLATION_AUTO, "l", true, true, ISOLATION_MPS, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_MPS, "m", false, false, ISOLATION_MPS, ISOLATION_MPS, false},
    {SETTINGS_ISOLATION_MPS, "o", false, false, ISOLATION_MPS, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_MPS, "ms", false, false, ISOLATION_NONE, ISOLATION_NONE, true},
    {SETTINGS_ISOLATION_MPS, "s", false, false, ISOLATION_NONE, ISOLATION_NONE, true},
};

TEST_EACH(one_row, COUNT_OF(rows))
{
    struct gpu_card cards[8];
    size_t n = strlen(rows[_i].cards);
    const struct settings s = {.isolation = rows[_i].asked, .cards = STR("all")};
    const struct enforce_facts f = {
        .cgroup2 = rows[_i].cgroup2, .mps_label = rows[_i].label, .mps_serves = serves};
    for (size_t i = 0; i < n; i++) {
        cards[i] = kinds[strchr(letters, rows[_i].cards[i]) - letters];
        cards[i].index = (uint32_t)i;
    }
    struct enforce e = enforce_decide(&s, &f, cards, n);
    ck_assert_int_eq(e.means, rows[_i].means);
    ck_assert_int_eq(e.label, rows[_i].is);
    ck_assert_int_eq(e.lack != NULL, rows[_i].lacks);
}

/* A card that is not offered has no say. */
TEST(cards_that_are_not_offered)
{
    struct gpu_card cards[] = {kinds[LIMITS], kinds[OLD]};
    const struct settings s = {.isolation = SETTINGS_ISOLATION_AUTO, .cards = STR("GPU-l")};
    const struct enforce_facts f = {.cgroup2 = true, .mps_serves = serves};
    ck_assert_int_eq(enforce_decide(&s, &f, cards, 2).label, ISOLATION_DRIVER_LIMITS);
}
