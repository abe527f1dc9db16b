/* The values of the label cardpack.io/isolation. */
#include "core/state/isolation.h"

#include "unit.h"

static const struct {
    const char *text;
    enum isolation isolation; /* ISOLATION_UNKNOWN: the text is none of them */
} texts[] = {
    {"none", ISOLATION_NONE},    {"driver-limits", ISOLATION_DRIVER_LIMITS},
    {"mps", ISOLATION_MPS},      {"mig", ISOLATION_MIG},
    {"", ISOLATION_UNKNOWN},     {"MPS", ISOLATION_UNKNOWN},
    {"mps ", ISOLATION_UNKNOWN}, {"driver", ISOLATION_UNKNOWN},
    {"true", ISOLATION_UNKNOWN}, {NULL, ISOLATION_UNKNOWN},
};

TEST_EACH(reads_what_it_writes, COUNT_OF(texts))
{
    enum isolation i = ISOLATION_UNKNOWN;
    bool known = texts[_i].isolation != ISOLATION_UNKNOWN;
    ck_assert_int_eq(isolation_parse(str_of(texts[_i].text), &i), known);
    ck_assert_int_eq(i, texts[_i].isolation);
    ck_assert_str_eq(isolation_name(i), known ? texts[_i].text : "");
    ck_assert(isolation_serves(i, 1));
    ck_assert(isolation_serves(i, 2) == (i != ISOLATION_MPS));
    i = ISOLATION_MIG; /* unchanged by a text that is none of them */
    (void)isolation_parse(str_of(texts[_i].text), &i);
    ck_assert_int_eq(i, known ? texts[_i].isolation : ISOLATION_MIG);
}
