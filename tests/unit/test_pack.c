/* The words for card-policy: binpack, spread, and everything else. */
#include "core/pack.h"

#include "unit.h"

static const struct {
    const char *text;
    enum pack pack; /* PACK_UNSET: the text is none of them */
} texts[] = {
    {"binpack", PACK_BINPACK}, {"spread", PACK_SPREAD}, {"", PACK_UNSET},
    {"Binpack", PACK_UNSET},   {"spread ", PACK_UNSET}, {"binpacked", PACK_UNSET},
    {"bin", PACK_UNSET},       {NULL, PACK_UNSET},
};

START_TEST(reads_what_it_writes)
{
    enum pack p = PACK_UNSET;
    ck_assert_int_eq(pack_parse(str_of(texts[_i].text), &p), texts[_i].pack != PACK_UNSET);
    ck_assert_int_eq(p, texts[_i].pack);
    if (p != PACK_UNSET)
        ck_assert_str_eq(pack_name(p), texts[_i].text);
    p = PACK_SPREAD; /* unchanged by a text that is none of them */
    (void)pack_parse(str_of(texts[_i].text), &p);
    ck_assert_int_eq(p, texts[_i].pack == PACK_UNSET ? PACK_SPREAD : texts[_i].pack);
}

END_TEST

static const struct {
    enum pack own;
    enum pack next;
    enum pack fallback;
    enum pack chosen;
} choices[] = {
    {PACK_UNSET, PACK_UNSET, PACK_UNSET, PACK_BINPACK},
    {PACK_UNSET, PACK_UNSET, PACK_SPREAD, PACK_SPREAD},
    {PACK_UNSET, PACK_UNSET, PACK_BINPACK, PACK_BINPACK},
    {PACK_UNSET, PACK_SPREAD, PACK_BINPACK, PACK_SPREAD},
    {PACK_UNSET, PACK_BINPACK, PACK_SPREAD, PACK_BINPACK},
    {PACK_SPREAD, PACK_UNSET, PACK_BINPACK, PACK_SPREAD},
    {PACK_SPREAD, PACK_BINPACK, PACK_BINPACK, PACK_SPREAD},
    {PACK_BINPACK, PACK_SPREAD, PACK_SPREAD, PACK_BINPACK},
};

START_TEST(the_closest_that_speaks_decides)
{
    ck_assert_int_eq(pack_choose(choices[_i].own, choices[_i].next, choices[_i].fallback),
                     choices[_i].chosen);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("pack");
    TCase *tc = tcase_create("pack");
    suite_add_tcase(s, tc);
    tcase_add_loop_test(tc, reads_what_it_writes, 0, (int)COUNT_OF(texts));
    tcase_add_loop_test(tc, the_closest_that_speaks_decides, 0, (int)COUNT_OF(choices));
    return unit_main(s);
}
