/* The values of the label cardpack.io/isolation. */
#include "core/isolation.h"

#include "unit.h"

static const struct {
    const char *text;
    enum isolation isolation; /* ISOLATION_UNKNOWN: the text is none of them */
    bool enforces;
} texts[] = {
    {"none", ISOLATION_NONE, false},    {"driver-limits", ISOLATION_DRIVER_LIMITS, true},
    {"mps", ISOLATION_MPS, true},       {"mig", ISOLATION_MIG, true},
    {"", ISOLATION_UNKNOWN, false},     {"MPS", ISOLATION_UNKNOWN, false},
    {"mps ", ISOLATION_UNKNOWN, false}, {"driver", ISOLATION_UNKNOWN, false},
    {"true", ISOLATION_UNKNOWN, false}, {NULL, ISOLATION_UNKNOWN, false},
};

START_TEST(reads_what_it_writes)
{
    enum isolation i = ISOLATION_UNKNOWN;
    bool known = texts[_i].isolation != ISOLATION_UNKNOWN;
    ck_assert_int_eq(isolation_parse(str_of(texts[_i].text), &i), known);
    ck_assert_int_eq(i, texts[_i].isolation);
    ck_assert_str_eq(isolation_name(i), known ? texts[_i].text : "");
    ck_assert(isolation_enforces(i, 1) == texts[_i].enforces);
    ck_assert(isolation_enforces(i, 2) == (texts[_i].enforces && i != ISOLATION_MPS));
    i = ISOLATION_MIG; /* unchanged by a text that is none of them */
    (void)isolation_parse(str_of(texts[_i].text), &i);
    ck_assert_int_eq(i, known ? texts[_i].isolation : ISOLATION_MIG);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("isolation");
    TCase *tc = tcase_create("isolation");
    suite_add_tcase(s, tc);
    tcase_add_loop_test(tc, reads_what_it_writes, 0, (int)COUNT_OF(texts));
    return unit_main(s);
}
