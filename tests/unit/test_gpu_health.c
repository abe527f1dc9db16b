/* What XIDs and polls make of a card. The times are arguments: no test waits. */
#include "gpu/gpu_health.h"
#include "unit.h"

#define COOLDOWN 300000

static struct gpu_health_rules rules_of(const char *disable, const char *enable)
{
    struct str bad;
    return gpu_health_rules(str_of(disable), str_of(enable), COOLDOWN, &bad);
}

TEST_EACH(each_xid_has_its_class, 32)
{
    static const struct {
        const char *disable;
        const char *enable;
        uint64_t xid;
        enum gpu_xid_class class;
    } cases[] = {
        {NULL, NULL, 13, GPU_XID_IGNORED},
        {NULL, NULL, 31, GPU_XID_IGNORED},
        {NULL, NULL, 43, GPU_XID_IGNORED},
        {NULL, NULL, 45, GPU_XID_IGNORED},
        {NULL, NULL, 68, GPU_XID_IGNORED},
        {NULL, NULL, 109, GPU_XID_IGNORED},
        {NULL, NULL, 63, GPU_XID_WARN},
        {NULL, NULL, 92, GPU_XID_WARN},
        {NULL, NULL, 94, GPU_XID_WARN},
        {NULL, NULL, 48, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 64, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 74, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 79, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 95, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 119, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 120, GPU_XID_NEEDS_RESET},
        {NULL, NULL, 1, GPU_XID_UNHEALTHY},
        {NULL, NULL, 999, GPU_XID_UNHEALTHY},
        {NULL, NULL, UINT64_MAX, GPU_XID_UNHEALTHY},
        {"79", NULL, 79, GPU_XID_IGNORED},
        {"79", NULL, 74, GPU_XID_NEEDS_RESET},
        {" 74 ,79", NULL, 79, GPU_XID_IGNORED},
        {"all", NULL, 79, GPU_XID_IGNORED},
        {"ALL", NULL, 5000, GPU_XID_IGNORED},
        {"xids", NULL, 1, GPU_XID_IGNORED},
        {"all", "79", 79, GPU_XID_NEEDS_RESET},
        {"all", "79", 74, GPU_XID_IGNORED},
        {"79", "79", 79, GPU_XID_NEEDS_RESET},
        {NULL, "31", 31, GPU_XID_UNHEALTHY},
        {NULL, "31", 43, GPU_XID_IGNORED},
        {"all", "all", 13, GPU_XID_UNHEALTHY},
        {"", "", 79, GPU_XID_NEEDS_RESET},
    };
    struct gpu_health_rules rules = rules_of(cases[_i].disable, cases[_i].enable);
    ck_assert_int_eq(gpu_health_xid_class(&rules, cases[_i].xid), cases[_i].class);
}

TEST(a_word_that_is_not_understood_is_named)
{
    struct str bad;
    struct gpu_health_rules rules =
        gpu_health_rules(STR("79,xid,,-3"), STR("nonsense"), COOLDOWN, &bad);
    ck_assert_str_is(bad, "xid");
    ck_assert_int_eq(gpu_health_xid_class(&rules, 79), GPU_XID_IGNORED);
    ck_assert_int_eq(gpu_health_xid_class(&rules, 3), GPU_XID_UNHEALTHY);
    (void)gpu_health_rules(STR("all, 79"), STR_NULL, COOLDOWN, &bad);
    ck_assert_ptr_null(bad.p);
}

TEST(a_reset_and_the_cooldown_make_a_card_healthy_again)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample good = {.error = NVML_OK};
    struct gpu_sample lost = {.error = NVML_GPU_IS_LOST, .error_text = "GPU is lost"};
    ck_assert(!gpu_health_poll(&h, &rules, &good, 1000));
    ck_assert(gpu_health_xid(&h, &rules, 79, 2000));
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert_str_eq(h.reason, "XID 79 (GPU has fallen off the bus): it needs a reset");
    ck_assert(!gpu_health_xid(&h, &rules, 79, 2001)); /* nothing new */
    /* Without a reset no time is long enough. */
    ck_assert(!gpu_health_poll(&h, &rules, &good, 3000));
    ck_assert(!gpu_health_poll(&h, &rules, &good, 3000 + 100 * COOLDOWN));
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    uint64_t t = 4000 + 100 * COOLDOWN;
    ck_assert(gpu_health_poll(&h, &rules, &lost, t));
    ck_assert_str_eq(h.reason, "XID 79 (GPU has fallen off the bus): NVML error 15 (GPU is lost)");
    ck_assert(gpu_health_poll(&h, &rules, &good, t + 1000));
    ck_assert_str_eq(
        h.reason,
        "XID 79 (GPU has fallen off the bus): it answers again, and is watched for a while");
    ck_assert(!gpu_health_poll(&h, &rules, &good, t + 1000 + COOLDOWN - 1));
    ck_assert(gpu_health_poll(&h, &rules, &good, t + 1000 + COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY);
    ck_assert_str_eq(h.reason, "");
}

TEST(a_new_fault_in_the_cooldown_starts_it_again)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample good = {.error = NVML_OK};
    ck_assert(gpu_health_xid(&h, &rules, 1, 1000)); /* of those without a reset */
    ck_assert(gpu_health_poll(&h, &rules, &good, 2000));
    (void)gpu_health_xid(&h, &rules, 1, 200000);
    (void)gpu_health_poll(&h, &rules, &good, 210000);
    (void)gpu_health_poll(&h, &rules, &good, 2000 + COOLDOWN);
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert(gpu_health_poll(&h, &rules, &good, 210000 + COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY);
}

TEST_EACH(each_poll_has_its_level, 14)
{
    static const struct {
        struct gpu_sample sample;
        enum gpu_level level;
        const char *reason;
    } cases[] = {
        {{.rows_known = true}, GPU_HEALTHY, ""},
        {{.rows_known = true, .rows_failure = true},
         GPU_UNHEALTHY,
         "a defective memory row can't be remapped, no spare row is left"},
        {{.rows_known = true, .rows_pending = true},
         GPU_WARNED,
         "a memory row is remapped at the next reset: drain and reset it"},
        {{.pages_pending = true},
         GPU_WARNED,
         "a memory page is retired at the next reset: drain and reset it"},
        {{.ecc_known = true, .uncorrected = 3},
         GPU_UNHEALTHY,
         "3 uncorrected memory errors since the last reset"},
        {{.ecc_known = true, .rows_known = true, .uncorrected = 3},
         GPU_WARNED,
         "3 uncorrected memory errors since the last reset"},
        {{.error = NVML_GPU_IS_LOST, .error_text = "GPU is lost"},
         GPU_UNHEALTHY,
         "NVML error 15 (GPU is lost)"},
        {{.error = NVML_RESET_REQUIRED, .error_text = "GPU requires reset"},
         GPU_UNHEALTHY,
         "NVML error 16 (GPU requires reset)"},
        {{.recovery_known = true, .rows_known = true}, GPU_HEALTHY, ""},
        {{.recovery_known = true, .recovery = NVML_RECOVERY_RESET},
         GPU_UNHEALTHY,
         "by the driver it needs a reset"},
        {{.recovery_known = true, .recovery = NVML_RECOVERY_DRAIN_P2P},
         GPU_UNHEALTHY,
         "by the driver its peer-to-peer traffic must be drained"},
        {{.recovery_known = true, .recovery = NVML_RECOVERY_SYSTEM_REBOOT},
         GPU_UNHEALTHY,
         "by the driver the system needs a reboot"},
        {{.recovery_known = true, .recovery = 8},
         GPU_UNHEALTHY,
         "by the driver it needs recovery action 8"},
        {{.recovery_known = false, .recovery = NVML_RECOVERY_RESET}, GPU_HEALTHY, ""},
    };
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health_rules off = rules_of("all", NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_health unwatched = {.level = GPU_HEALTHY};
    ck_assert_int_eq(gpu_health_poll(&h, &rules, &cases[_i].sample, 1000),
                     cases[_i].level != GPU_HEALTHY);
    ck_assert_int_eq(h.level, cases[_i].level);
    ck_assert_str_eq(h.reason, cases[_i].reason);
    ck_assert(!gpu_health_poll(&unwatched, &off, &cases[_i].sample, 1000));
    ck_assert_int_eq(unwatched.level, GPU_HEALTHY);
}

/* An XID that the table does not know: only the driver knows that the card needs a reset. */
TEST(the_driver_says_until_when_a_card_needs_a_reset)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample none = {.recovery_known = true};
    struct gpu_sample reset = {.recovery_known = true, .recovery = NVML_RECOVERY_RESET};
    struct gpu_sample lost = {.error = NVML_GPU_IS_LOST, .error_text = "GPU is lost"};
    ck_assert(!gpu_health_poll(&h, &rules, &none, 1000));
    ck_assert(gpu_health_xid(&h, &rules, 140, 2000));
    ck_assert(gpu_health_poll(&h, &rules, &reset, 3000));
    ck_assert_str_eq(h.reason, "XID 140 (an error of the GPU or its driver): by the driver it "
                               "needs a reset");
    /* Neither time nor a pause in its answers makes up for it. */
    (void)gpu_health_poll(&h, &rules, &lost, 3000 + COOLDOWN);
    (void)gpu_health_poll(&h, &rules, &reset, 3000 + 2 * COOLDOWN);
    (void)gpu_health_poll(&h, &rules, &reset, 3000 + 9 * COOLDOWN);
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert(gpu_health_poll(&h, &rules, &none, 4000 + 9 * COOLDOWN));
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert(gpu_health_poll(&h, &rules, &none, 4000 + 10 * COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY);
}

/* What an XID says of a reset, and from when on the card needs one. */
TEST(an_xid_claims_no_reset_where_the_driver_tells)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_health older = {.level = GPU_HEALTHY};
    struct gpu_sample old = {.error = NVML_OK};
    struct gpu_sample none = {.recovery_known = true};
    struct gpu_sample reset = {.recovery_known = true, .recovery = NVML_RECOVERY_RESET};
    struct gpu_sample lost = {.error = NVML_GPU_IS_LOST, .error_text = "GPU is lost"};
    (void)gpu_health_poll(&h, &rules, &none, 1000);
    ck_assert(gpu_health_xid(&h, &rules, 48, 2000));
    ck_assert_str_eq(h.reason, "XID 48 (double-bit memory error)");
    ck_assert(!gpu_health_needs_reset(&h));
    ck_assert(gpu_health_poll(&h, &rules, &reset, 3000));
    ck_assert_str_eq(h.reason, "XID 48 (double-bit memory error): by the driver it needs a reset");
    ck_assert(gpu_health_needs_reset(&h));
    ck_assert(gpu_health_poll(&h, &rules, &none, 4000));
    ck_assert(!gpu_health_needs_reset(&h));
    (void)gpu_health_poll(&older, &rules, &old, 1000);
    ck_assert(gpu_health_xid(&older, &rules, 1, 2000));
    ck_assert(!gpu_health_needs_reset(&older));
    ck_assert(gpu_health_xid(&older, &rules, 48, 2000));
    ck_assert_str_eq(older.reason, "XID 48 (double-bit memory error): it needs a reset");
    ck_assert(gpu_health_needs_reset(&older));
    ck_assert(gpu_health_poll(&older, &rules, &lost, 3000));
    ck_assert(!gpu_health_needs_reset(&older));
    lost.error = NVML_RESET_REQUIRED;
    ck_assert(gpu_health_poll(&older, &rules, &lost, 4000));
    ck_assert(gpu_health_needs_reset(&older));
}

/* By the table XID 74 needs a reset, by the driver it does not. */
TEST(the_driver_says_that_a_card_needs_no_reset)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample none = {.recovery_known = true};
    ck_assert(gpu_health_xid(&h, &rules, 74, 1000));
    ck_assert(gpu_health_poll(&h, &rules, &none, 2000));
    ck_assert(!gpu_health_poll(&h, &rules, &none, 2000 + COOLDOWN - 1));
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert(gpu_health_poll(&h, &rules, &none, 2000 + COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY);
}

TEST(some_other_error_must_last)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample good = {.error = NVML_OK};
    struct gpu_sample odd = {.error = NVML_UNKNOWN, .error_text = "Unknown Error"};
    ck_assert(!gpu_health_poll(&h, &rules, &odd, 1));
    ck_assert(!gpu_health_poll(&h, &rules, &odd, 2));
    ck_assert(!gpu_health_poll(&h, &rules, &good, 3));
    ck_assert(!gpu_health_poll(&h, &rules, &odd, 4));
    ck_assert(!gpu_health_poll(&h, &rules, &odd, 5));
    ck_assert(gpu_health_poll(&h, &rules, &odd, 6));
    ck_assert_str_eq(h.reason, "NVML error 999 (Unknown Error)");
}

TEST(fewer_errors_than_before_are_a_reset)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample two = {.ecc_known = true, .rows_known = true, .uncorrected = 2};
    struct gpu_sample none = {.ecc_known = true, .rows_known = true};
    ck_assert(gpu_health_poll(&h, &rules, &two, 1));
    ck_assert(gpu_health_xid(&h, &rules, 95, 2));
    (void)gpu_health_poll(&h, &rules, &two, 3 + COOLDOWN);
    (void)gpu_health_poll(&h, &rules, &two, 3 + 3 * COOLDOWN);
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    ck_assert(gpu_health_poll(&h, &rules, &none, 4 + 3 * COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY); /* it has answered for longer than the cooldown */
}

TEST(a_warning_ends_and_a_missing_card_does_not)
{
    struct gpu_health_rules rules = rules_of(NULL, NULL);
    struct gpu_health h = {.level = GPU_HEALTHY};
    struct gpu_sample good = {.error = NVML_OK};
    ck_assert(gpu_health_xid(&h, &rules, 94, 1));
    ck_assert_int_eq(h.level, GPU_WARNED);
    ck_assert_str_eq(h.reason, "XID 94 (contained memory error)");
    ck_assert(!gpu_health_poll(&h, &rules, &good, 1000));
    ck_assert(gpu_health_poll(&h, &rules, &good, 1000 + COOLDOWN));
    ck_assert_int_eq(h.level, GPU_HEALTHY);
    ck_assert(gpu_health_missing(&h, NULL));
    ck_assert_str_eq(h.reason, "NVML does not list the card");
    ck_assert(!gpu_health_missing(&h, NULL));
    (void)gpu_health_poll(&h, &rules, &good, 2000 + COOLDOWN);
    ck_assert_int_eq(h.level, GPU_UNHEALTHY);
    (void)gpu_health_poll(&h, &rules, &good, 2000 + 2 * COOLDOWN);
    ck_assert_int_eq(h.level, GPU_HEALTHY);
    ck_assert(!gpu_health_xid(&h, &rules, 31, 3));
}
