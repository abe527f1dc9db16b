/* Kubernetes quantities: values, rounding and refusals. */
#include "core/quantity.h"

#include "unit.h"

struct row {
    const char *text;
    int64_t value;
    bool whole;
    bool saturated;
};

/* The results of Kubernetes' own code. Where that wraps, gives 0 or hangs, cardpack saturates. */
static const struct row known[] = {
    {"0", 0, true, false},
    {"+", 0, true, false},
    {"-", 0, true, false},
    {".", 0, true, false},
    {"-.", 0, true, false},
    {"Ki", 0, true, false},
    {"e5", 0, true, false},
    {"E", 0, true, false},
    {"1.", 1, true, false},
    {".5", 1, false, false},
    {"500m", 1, false, false},
    {"1.5", 2, false, false},
    {"-0.5", -1, false, false},
    {"-1.5", -2, false, false},
    {"1.5Gi", 1610612736, true, false},
    {"1.1Gi", 1181116007, false, false},
    {"0.1n", 1, false, false},
    {"1n", 1, false, false},
    {"1u", 1, false, false},
    {"1e-10", 1, false, false},
    {"1e-30", 1, false, false},
    {"2000m", 2, true, false},
    {"10000", 10000, true, false},
    {"16k", 16000, true, false},
    {"1M", 1000000, true, false},
    {"1024Ki", 1048576, true, false},
    {"16384", 16384, true, false},
    {"007", 7, true, false},
    {"+5", 5, true, false},
    {"12E2", 1200, true, false},
    {"12e+2", 1200, true, false},
    {"12e002", 1200, true, false},
    {"1E", 1000000000000000000, true, false},
    {"1E3", 1000, true, false},
    {"1Ei", INT64_C(1) << 60, true, false},
    {"1e-3", 1, false, false},
    {"2G", 2000000000, true, false},
    {"2T", 2000000000000, true, false},
    {"2P", 2000000000000000, true, false},
    {"3Ti", INT64_C(3) << 40, true, false},
    {"3Pi", INT64_C(3) << 50, true, false},
    {"0.5Mi", 524288, true, false},
    {"0e30", 0, true, false},
    {"9223372036854775807", INT64_MAX, true, false},
    {"-9223372036854775808", INT64_MIN, true, false},
    {"9223372036854775808", INT64_MAX, true, true},
    {"-9223372036854775809", INT64_MIN, true, true},
    {"9223372036854775806.1", INT64_MAX, false, false},
    {"9223372036854775807.1", INT64_MAX, false, true},
    {"18446744073709551615.5", INT64_MAX, false, true},
    {"18446744073709551616", INT64_MAX, true, true},
    {"8Ei", INT64_MAX, true, true},
    {"-8Ei", INT64_MIN, true, false},
    {"9Ei", INT64_MAX, true, true},
    {"16Ei", INT64_MAX, true, true},
    {"100E", INT64_MAX, true, true},
    {"1e30", INT64_MAX, true, true},
    {"-1e30", INT64_MIN, true, true},
};

static const struct row computed[] = {
#include "quantity_table.inc"
};

/* A thousandth is rounded up, then the whole: that is the whole rounded up. */
static void check_thousandths(struct str text, const struct quantity *whole)
{
    struct quantity q;
    ck_assert_int_eq(quantity_parse_milli(text, &q), OK);
    int64_t up = q.value / 1000 + (q.value % 1000 > 0 ? 1 : q.value % 1000 < 0 ? -1 : 0);
    ck_assert_msg(q.saturated || up == whole->value, "%.*s: %lld", STR_ARG(text),
                  (long long)q.value);
}

static void check_row(const struct row *row)
{
    struct quantity q;
    ck_assert_int_eq(quantity_parse(str_of(row->text), &q), OK);
    ck_assert_msg(q.value == row->value && q.whole == row->whole && q.saturated == row->saturated,
                  "%s: %lld whole %d saturated %d", row->text, (long long)q.value, q.whole,
                  q.saturated);
    check_thousandths(str_of(row->text), &q);
}

TEST_EACH(agrees_with_kubernetes, COUNT_OF(known))
{
    check_row(&known[_i]);
}

TEST(agrees_with_exact_fractions)
{
    for (size_t i = 0; i < COUNT_OF(computed); i++)
        check_row(&computed[i]);
}

static const struct {
    const char *text;
    int64_t value;
    bool whole;
} thousandths[] = {
    {"500m", 500, true},
    {"2", 2000, true},
    {"0.1", 100, true},
    {"1.5", 1500, true},
    {"1n", 1, false},
    {"0.0005", 1, false},
    {"1m", 1, true},
    {"007", 7000, true},
    {"+3", 3000, true},
    {"-1.5", -1500, true},
    {"1k", 1000000, true},
    {"1Ki", 1024000, true},
    {"0.1Ki", 102400, true},
    {"1e3", 1000000, true},
    {"999999999", 999999999000, true},
    {"0", 0, true},
    {"1234567890m", 1234567890, true},
};

TEST_EACH(counts_in_thousandths, COUNT_OF(thousandths))
{
    struct quantity q;
    ck_assert_int_eq(quantity_parse_milli(str_of(thousandths[_i].text), &q), OK);
    ck_assert_msg(q.value == thousandths[_i].value && q.whole == thousandths[_i].whole &&
                      !q.saturated,
                  "%s: %lld", thousandths[_i].text, (long long)q.value);
}

static const char *const malformed[] = {
    "",     "abc",   "1e",       "1E-", "1E+",  "1K",   "1ki",   "1i",    "--1",
    "+-1",  "1Gb",   "1GiB",     "1_0", "0x10", " 5",   "5 ",    "1 Gi",  "1e3.5",
    "1..2", "1.2.3", "1e5e",     "1mm", "1Mm",  "1e 5", "1e--5", "NaN",   "inf",
    "1KI",  "1,5",   "\xd9\xa1", "5\n", "1eKi", "1.5.", "Kii",   "1e5Ki",
};

TEST_EACH(refuses_what_is_no_quantity, COUNT_OF(malformed))
{
    struct quantity q;
    ck_assert_msg(quantity_parse(str_of(malformed[_i]), &q) == ERR_SYNTAX, "%s", malformed[_i]);
    ck_assert(quantity_parse_milli(str_of(malformed[_i]), &q) == ERR_SYNTAX);
}

TEST(refuses_a_nul_inside)
{
    struct quantity q;
    ck_assert_int_eq(quantity_parse(STR("5\0"), &q), ERR_SYNTAX);
    ck_assert_int_eq(quantity_parse(STR("1\0Ki"), &q), ERR_SYNTAX);
    ck_assert_int_eq(quantity_parse(STR_NULL, &q), ERR_SYNTAX);
}

TEST(bounds_the_exponent)
{
    static const char *const texts[] = {
        "1e31", "1e-31", "1E+31", "1e2147483648", "1e-99999999999999999999999", "0e31",
    };
    struct quantity q;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        ck_assert_msg(quantity_parse(str_of(texts[i]), &q) == ERR_RANGE, "%s", texts[i]);
}

/* 128 bytes of digits, doubled sixty times, fill the largest allowed number. */
TEST(bounds_the_length)
{
    char text[129];
    struct quantity q;
    memset(text, '9', sizeof(text));
    memcpy(text + 126, "Ei", 2);
    ck_assert_int_eq(quantity_parse((struct str){text, 128}, &q), OK);
    ck_assert(q.saturated && q.whole && q.value == INT64_MAX);
    text[1] = '.';
    text[0] = '0';
    ck_assert_int_eq(quantity_parse((struct str){text, 128}, &q), OK);
    ck_assert(!q.saturated && !q.whole && q.value == INT64_C(1) << 60);
    memset(text, '0', sizeof(text));
    text[127] = '7';
    ck_assert_int_eq(quantity_parse((struct str){text, 128}, &q), OK);
    ck_assert(q.whole && q.value == 7);
    ck_assert_int_eq(quantity_parse((struct str){text, 129}, &q), ERR_RANGE);
}
