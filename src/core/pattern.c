/*
 * A pattern is cut at its stars. The first piece must be at the text's start, the last one at its
 * end, and each middle piece at its first match after the previous piece. The first match is always
 * good enough, because a star matches whatever is left. So there is no backtracking, and no pattern
 * takes exponential time.
 */
#include "core/pattern.h"

static bool pattern_starts_nocase(struct str s, struct str prefix, uint64_t *compared)
{
    size_t n = str_common_nocase(s, prefix);
    *compared += n + 1;
    return n == prefix.n;
}

static bool pattern_equals_nocase(struct str s, struct str other, uint64_t *compared)
{
    return s.n == other.n && pattern_starts_nocase(s, other, compared);
}

bool pattern_match(struct str pattern, struct str text, uint64_t *compared)
{
    struct str piece;
    struct str rest;
    if (!str_cut(pattern, '*', &piece, &rest))
        return pattern_equals_nocase(text, pattern, compared);
    if (!pattern_starts_nocase(text, piece, compared))
        return false;
    text = str_skip(text, piece.n);
    while (str_cut(rest, '*', &piece, &rest)) {
        while (!pattern_starts_nocase(text, piece, compared)) {
            if (text.n <= piece.n)
                return false;
            text = str_skip(text, 1);
        }
        text = str_skip(text, piece.n);
    }
    return text.n >= piece.n &&
           pattern_equals_nocase(str_skip(text, text.n - piece.n), piece, compared);
}

struct str pattern_list_next(struct str *list, bool *ret_excludes)
{
    struct str item;
    (void)str_cut(*list, ',', &item, list);
    item = str_trim(item);
    *ret_excludes = str_starts(item, STR("!"));
    return *ret_excludes ? str_trim(str_skip(item, 1)) : item;
}

size_t pattern_list_items(struct str list)
{
    size_t n = 0;
    bool excludes = false;
    while (list.n > 0)
        n += pattern_list_next(&list, &excludes).n > 0 ? 1 : 0;
    return n;
}

bool pattern_list_allows(struct str list, struct str text, bool glob, uint64_t *compared)
{
    bool wanted = false; /* there is an item without '!' */
    bool found = false;
    while (list.n > 0) {
        bool excludes = false;
        struct str item = pattern_list_next(&list, &excludes);
        if (item.n == 0)
            continue;
        bool matches = glob ? pattern_match(item, text, compared)
                            : pattern_equals_nocase(text, item, compared);
        if (excludes && matches)
            return false;
        wanted = wanted || !excludes;
        found = found || matches;
    }
    return found || !wanted;
}
