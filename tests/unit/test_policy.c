/* The words for card-policy: binpack, spread, and everything else. */
#include "core/request/policy.h"

#include "base/buf.h"
#include "unit.h"

static const struct {
    const char *text;
    enum policy policy; /* POLICY_UNSET: the text is none of them */
} texts[] = {
    {"binpack", POLICY_BINPACK}, {"spread", POLICY_SPREAD},       {"", POLICY_UNSET},
    {"fgd", POLICY_FGD},         {"bid-price", POLICY_BID_PRICE}, {"Binpack", POLICY_UNSET},
    {"spread ", POLICY_UNSET},   {"binpacked", POLICY_UNSET},     {"bin", POLICY_UNSET},
    {NULL, POLICY_UNSET},
};

TEST_EACH(reads_what_it_writes, COUNT_OF(texts))
{
    enum policy p = POLICY_UNSET;
    ck_assert_int_eq(policy_parse(str_of(texts[_i].text), &p), texts[_i].policy != POLICY_UNSET);
    ck_assert_int_eq(p, texts[_i].policy);
    if (p != POLICY_UNSET)
        ck_assert_str_eq(policy_name(p), texts[_i].text);
    p = POLICY_SPREAD; /* unchanged by a text that is none of them */
    (void)policy_parse(str_of(texts[_i].text), &p);
    ck_assert_int_eq(p, texts[_i].policy == POLICY_UNSET ? POLICY_SPREAD : texts[_i].policy);
}

static const struct {
    enum policy own;
    enum policy next;
    enum policy fallback;
    enum policy chosen;
} choices[] = {
    {POLICY_UNSET, POLICY_UNSET, POLICY_UNSET, POLICY_BINPACK},
    {POLICY_UNSET, POLICY_UNSET, POLICY_SPREAD, POLICY_SPREAD},
    {POLICY_UNSET, POLICY_UNSET, POLICY_BINPACK, POLICY_BINPACK},
    {POLICY_UNSET, POLICY_SPREAD, POLICY_BINPACK, POLICY_SPREAD},
    {POLICY_UNSET, POLICY_BINPACK, POLICY_SPREAD, POLICY_BINPACK},
    {POLICY_SPREAD, POLICY_UNSET, POLICY_BINPACK, POLICY_SPREAD},
    {POLICY_SPREAD, POLICY_BINPACK, POLICY_BINPACK, POLICY_SPREAD},
    {POLICY_BINPACK, POLICY_SPREAD, POLICY_SPREAD, POLICY_BINPACK},
};

TEST_EACH(the_closest_that_speaks_decides, COUNT_OF(choices))
{
    ck_assert_int_eq(policy_choose(choices[_i].own, choices[_i].next, choices[_i].fallback),
                     choices[_i].chosen);
}

/* Each name, in the order of the enum, with what stands between two of them and before the last. */
static const char *all_names(struct buf *out, const char *between, const char *last)
{
    buf_clear(out, SIZE_MAX);
    for (enum policy p = POLICY_BINPACK; p <= POLICY_BID_PRICE; p++) {
        if (p > POLICY_BINPACK)
            buf_put(out, str_of(p == POLICY_BID_PRICE ? last : between));
        buf_put(out, str_of(policy_name(p)));
    }
    return buf_cstr(out);
}

TEST(texts_have_all_names)
{
    char bytes[128];
    struct buf all = BUF_ON(bytes);
    ck_assert_str_eq(POLICY_NAMES, all_names(&all, ", ", " or "));
    ck_assert_str_eq(POLICY_WORDS, all_names(&all, "|", "|"));
}
