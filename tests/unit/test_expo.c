/* The exposition of metrics: escapes, numbers and histograms. */
#include "report/expo.h"

#include "base/limit.h"
#include "unit.h"

#include <stdio.h>

static struct buf out;
static struct expo x;

static void setup(void)
{
    buf_init(&out, MIB);
    expo_init(&x, &out);
}

static void teardown(void)
{
    buf_done(&out);
}

static void write_families(void)
{
    const struct expo_label label = {"node", STR("n1")};
    const struct expo_label labels[] = {{"node", STR("n1")}, {"card", STR("0")}};
    expo_family(&x, EXPO_GAUGE, "up_seconds", "Since \"then\".");
    expo_u64(&x, NULL, 0, 7);
    expo_family(&x, EXPO_COUNTER, "asked_total", "Back\\slash\nline.");
    expo_u64(&x, &label, 1, UINT64_MAX);
    expo_u64(&x, labels, 2, 0);
    expo_family(&x, EXPO_GAUGE, "build_info", "What.");
    expo_u64(&x, &label, 1, 1);
}

TEST(writes_text)
{
    write_families();
    ck_assert_str_is(buf_str(&out), "# HELP up_seconds Since \"then\".\n"
                                    "# TYPE up_seconds gauge\n"
                                    "up_seconds 7\n"
                                    "# HELP asked_total Back\\\\slash\\nline.\n"
                                    "# TYPE asked_total counter\n"
                                    "asked_total{node=\"n1\"} 18446744073709551615\n"
                                    "asked_total{node=\"n1\",card=\"0\"} 0\n"
                                    "# HELP build_info What.\n"
                                    "# TYPE build_info gauge\n"
                                    "build_info{node=\"n1\"} 1\n");
}

static const struct {
    struct str value;
    const char *written;
} values[] = {
    {STR(""), ""},
    {STR_NULL, ""},
    {STR("plain"), "plain"},
    {STR("a\"b\\c\nd"), "a\\\"b\\\\c\\nd"},
    {STR("\"\"\"\\\\\n\n"), "\\\"\\\"\\\"\\\\\\\\\\n\\n"},
    {STR("tab\there\r"), "tab\there\r"},
    {STR("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"},
    {STR("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd"},
    {STR("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {STR("nul\0in"), "nul\xef\xbf\xbdin"},
    {STR("quite long, and then comes a \" somewhere"),
     "quite long, and then comes a \\\" somewhere"},
};

TEST_EACH(escapes_labels, COUNT_OF(values))
{
    char line[128];
    const struct expo_label label = {"k", values[_i].value};
    expo_family(&x, EXPO_GAUGE, "m", "h");
    buf_clear(&out, SIZE_MAX);
    expo_u64(&x, &label, 1, 1);
    (void)snprintf(line, sizeof(line), "m{k=\"%s\"} 1\n", values[_i].written);
    ck_assert_str_is(buf_str(&out), line);
}

static const struct {
    int64_t v;
    unsigned decimals;
    const char *written;
} numbers[] = {
    {0, 0, "0"},
    {0, 9, "0"},
    {1, 9, "0.000000001"},
    {1500000000, 9, "1.5"},
    {2000000000, 9, "2"},
    {-1, 0, "-1"},
    {-1, 2, "-0.01"},
    {-250, 2, "-2.5"},
    {100, 2, "1"},
    {105, 2, "1.05"},
    {INT64_MAX, 0, "9223372036854775807"},
    {INT64_MIN, 0, "-9223372036854775808"},
    {INT64_MIN, 18, "-9.223372036854775808"},
    {INT64_MAX, 9, "9223372036.854775807"},
};

TEST_EACH(writes_numbers, COUNT_OF(numbers))
{
    char line[64];
    expo_family(&x, EXPO_GAUGE, "m", "h");
    buf_clear(&out, SIZE_MAX);
    expo_fixed(&x, NULL, 0, numbers[_i].v, numbers[_i].decimals);
    (void)snprintf(line, sizeof(line), "m %s\n", numbers[_i].written);
    ck_assert_str_is(buf_str(&out), line);
}

TEST(buckets_have_their_bound)
{
    for (size_t i = 0; i < EXPO_BOUNDS; i++) {
        struct expo_histogram h = {.sum_ns = 0};
        expo_observe(&h, expo_bounds_ns[i]);
        expo_observe(&h, expo_bounds_ns[i] + 1);
        ck_assert_uint_eq(h.counts[i], 1);
        ck_assert_uint_eq(h.counts[i + 1], 1);
        ck_assert_uint_eq(h.sum_ns, 2 * expo_bounds_ns[i] + 1);
        ck_assert(i == 0 || expo_bounds_ns[i] > expo_bounds_ns[i - 1]);
    }
}

/* Each bucket includes those below it, and the last one equals the count. */
TEST(histograms_are_cumulative)
{
    const struct expo_label label = {"verb", STR("bind")};
    struct expo_histogram h = {.sum_ns = 0};
    expo_observe(&h, 0);
    expo_observe(&h, 1000000);
    expo_observe(&h, 1000000);
    expo_observe(&h, UINT64_C(60000000000));
    expo_family(&x, EXPO_HISTOGRAM, "d_seconds", "h");
    expo_histogram(&x, &label, 1, &h);
    ck_assert_str_is(buf_str(&out), "# HELP d_seconds h\n"
                                    "# TYPE d_seconds histogram\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.0001\"} 1\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.00025\"} 1\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.0005\"} 1\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.001\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.0025\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.005\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.01\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.025\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.05\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.1\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.25\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"0.5\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"1.0\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"2.5\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"5.0\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"10.0\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"30.0\"} 3\n"
                                    "d_seconds_bucket{verb=\"bind\",le=\"+Inf\"} 4\n"
                                    "d_seconds_sum{verb=\"bind\"} 60.002\n"
                                    "d_seconds_count{verb=\"bind\"} 4\n");
    buf_clear(&out, SIZE_MAX);
    expo_histogram(&x, NULL, 0, &h);
    ck_assert(str_starts(buf_str(&out), STR("d_seconds_bucket{le=\"0.0001\"} 1\n")));
}

TEST(keeps_the_failure)
{
    struct buf small;
    buf_init(&small, 8);
    expo_init(&x, &small);
    write_families();
    ck_assert(buf_failed(&small));
    ck_assert_int_eq(buf_fault(&small), ERR_LIMIT);
    buf_done(&small);
}

int main(void)
{
    TCase *t = unit_case("expo");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
