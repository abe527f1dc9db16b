/* RFC 3339 times: reading and writing. */
#include "objects/stamp.h"
#include "unit.h"

static const struct {
    const char *text;
    uint32_t s;
} good[] = {
    {"1970-01-01T00:00:00Z", 0},          {"1970-01-01T00:00:01Z", 1},
    {"2000-02-29T12:00:00Z", 951825600},  {"2026-11-22T05:40:00Z", 1795326000},
    {"2100-03-01T00:00:00Z", 4107542400}, {"2106-02-07T06:28:15Z", UINT32_MAX},
};

TEST_EACH(it_reads_what_it_prints, COUNT_OF(good))
{
    char text[STAMP_BYTES];
    uint32_t s = 7;
    ck_assert(stamp_read(str_of(good[_i].text), &s));
    ck_assert_uint_eq(s, good[_i].s);
    ck_assert(str_eq(stamp_print(s, text), str_of(good[_i].text)));
}

/* Every day of the range, and no time twice. */
TEST(days_follow_each_other)
{
    char text[STAMP_BYTES];
    for (uint64_t s = 43210; s <= UINT32_MAX; s += 86400) {
        uint32_t back = 0;
        ck_assert(stamp_read(stamp_print((uint32_t)s, text), &back));
        ck_assert_uint_eq(back, s);
    }
}

static const char *const bad[] = {
    "",
    "2026-11-22",
    "2026-11-22T05:40:00",
    "2026-11-22T05:40:00+01:00",
    "2026-11-22 05:40:00Z",
    "2026-13-22T05:40:00Z",
    "2026-00-22T05:40:00Z",
    "2026-11-32T05:40:00Z",
    "2026-11-22T24:40:00Z",
    "2026-11-22T05:60:00Z",
    "2026-11-22T05:40:0aZ",
    "1969-12-31T23:59:59Z",
    "2106-02-07T06:28:16Z",
    "-026-11-22T05:40:00Z",
};

TEST_EACH(what_is_none_is_refused, COUNT_OF(bad))
{
    uint32_t s = 7;
    ck_assert(!stamp_read(str_of(bad[_i]), &s));
    ck_assert_uint_eq(s, 7);
}

TEST(a_fraction_is_cut_off)
{
    uint32_t s = 7;
    ck_assert(stamp_read(STR("1970-01-01T00:00:01.999999Z"), &s));
    ck_assert_uint_eq(s, 1);
}
