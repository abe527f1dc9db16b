/* Patterns for models and UUIDs: globs, case, exclusion, and the cost of many stars. */
#include "core/pattern.h"

#include "unit.h"

#include <fnmatch.h>

static const struct {
    struct str pattern, text;
    bool matches;
} matches[] = {
    {{NULL, 0}, {NULL, 0}, true},
    {{"*", 1}, {NULL, 0}, true},
    {{"a", 1}, {NULL, 0}, false},
    {{"NVIDIA-A100*", 12}, {"nvidia-a100-sxm4-40gb", 21}, true},
    {{"NVIDIA-A100*", 12}, {"NVIDIA-A10", 10}, false},
    {{"NVIDIA-A10", 10}, {"NVIDIA-A100", 11}, false},
    {{"*A10", 4}, {"NVIDIA-A10", 10}, true},
    {{"*A10", 4}, {"NVIDIA-A100", 11}, false},
    {{"*40*gb", 6}, {"A100-40-40gb", 12}, true},
    {{"*40*40*gb", 9}, {"A100-40gb", 9}, false},
    {{"a*a", 3}, {"a", 1}, false}, /* prefix and suffix may not overlap */
    {{"ab*ba", 5}, {"aba", 3}, false},
    {{"***", 3}, {"", 0}, true},
    {{"?", 1}, {"x", 1}, false}, /* only '*' is special */
    {{"[x]", 3}, {"x", 1}, false},
    {{"\\*", 2}, {"*", 1}, false},
    {{"\\*", 2}, {"\\x", 2}, true},
    {{"a*c", 3}, {"a\0c", 3}, true},
    {{"K", 1}, {"\xe2\x84\xaa", 3}, false}, /* only ASCII letters match in any case */
};

TEST_EACH(matches_or_not, COUNT_OF(matches))
{
    uint64_t compared = 0;
    ck_assert(pattern_match(matches[_i].pattern, matches[_i].text, &compared) ==
              matches[_i].matches);
}

static const struct {
    const char *list;
    size_t n;
} counts[] = {{"", 0}, {" , ,! ,", 0}, {"a", 1}, {"a,,!b, ! c ", 3}};

TEST_EACH(counts_items, COUNT_OF(counts))
{
    ck_assert_uint_eq(pattern_list_items(str_of(counts[_i].list)), counts[_i].n);
}

/* The nth string over the alphabet, shorter ones first; false: it does not fit into `room`. */
static bool string_of(unsigned n, const char *alphabet, char *out, size_t room)
{
    unsigned base = (unsigned)strlen(alphabet);
    size_t at = 0;
    for (; n > 0; n = (n - 1) / base) {
        if (at + 1 >= room)
            return false;
        out[at++] = alphabet[(n - 1) % base];
    }
    out[at] = '\0';
    return true;
}

/* Compares every pattern of up to 5 characters and every text of up to 5 with libc's fnmatch. */
TEST(agrees_with_fnmatch)
{
    char pattern[6];
    char text[6];
    unsigned agreed = 0;
    for (unsigned i = 0; string_of(i, "aB*", pattern, sizeof(pattern)); i++) {
        for (unsigned k = 0; string_of(k, "Aab", text, sizeof(text)); k++) {
            bool expected = fnmatch(pattern, text, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
            uint64_t compared = 0;
            ck_assert_msg(pattern_match(str_of(pattern), str_of(text), &compared) == expected,
                          "pattern \"%s\", text \"%s\"", pattern, text);
            ck_assert_uint_le(compared, (strlen(pattern) + 1) * (strlen(text) + 1));
            agreed += expected;
        }
    }
    ck_assert_uint_gt(agreed, 1000);
}

/* A matcher that tries every place for every star would need years. */
TEST(many_stars_are_no_burden)
{
    char pattern[256];
    char text[4096];
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = i % 2 == 0 ? 'a' : '*';
    pattern[sizeof(pattern) - 1] = 'b';
    memset(text, 'a', sizeof(text));
    uint64_t compared = 0;
    ck_assert(!pattern_match((struct str){pattern, sizeof(pattern)},
                             (struct str){text, sizeof(text)}, &compared));
    ck_assert_uint_le(compared, 2 * sizeof(text));
}

/* At each of 98 places two bytes are equal, and the third is not. */
TEST(what_is_compared_is_counted)
{
    char text[100];
    uint64_t compared = 0;
    memset(text, 'a', sizeof(text));
    ck_assert(!pattern_match(STR("*aab*"), (struct str){text, sizeof(text)}, &compared));
    ck_assert_uint_ge(compared, UINT64_C(98) * 3);
    ck_assert_uint_le(compared, UINT64_C(98) * 3 + 1);
}

static const struct {
    const char *list, *text;
    bool glob, plain; /* expected result with globs, and without */
} lists[] = {
    {NULL, "a", true, true},
    {"", "a", true, true},
    {" , ,", "a", true, true},
    {"!", "a", true, true},
    {"a", "A", true, true},
    {"a", "b", false, false},
    {"a,b", "b", true, true},
    {" a ,\tb\n", "b", true, true},
    {"a,,", "b", false, false},
    {"!a", "a", false, false},
    {"!a", "b", true, true},
    {"! a", "a", false, false},
    {" ! a , b", "b", true, true},
    {"!a,!b", "b", false, false},
    {"a,!a", "a", false, false},
    {"!a,a", "a", false, false},
    {"A100*", "a100-sxm", true, false},
    {"A100*,!*sxm", "a100-sxm", false, false},
    {"A100*,!*sxm", "a100-pcie", true, false},
    {"!*", "a", false, true},
    {"*,!a", "", true, false},
    {"!!a", "a", true, true},    /* excludes the model "!a" */
    {"!!a", "!a", false, false}, /* which this shows */
    {"a", NULL, false, false},
    {"!a", NULL, true, true},
};

TEST_EACH(lists_allow_or_not, COUNT_OF(lists))
{
    struct str list = str_of(lists[_i].list);
    struct str text = str_of(lists[_i].text);
    uint64_t compared = 0;
    ck_assert(pattern_list_allows(list, text, true, &compared) == lists[_i].glob);
    ck_assert(pattern_list_allows(list, text, false, &compared) == lists[_i].plain);
}
