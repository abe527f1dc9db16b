/*
 * A pattern is cut at its stars: the first piece must stand at the text's start, the last one at
 * its end, each other one at the first place behind the one before. The first place is always good
 * enough, since a star takes whatever is left: no backtracking, so no pattern takes exponential
 * time.
 */
#include "pattern.h"

static bool starts_nocase(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq_nocase((struct str){s.p, prefix.n}, prefix);
}

bool pattern_match(struct str pattern, struct str text)
{
    struct str piece;
    struct str rest;
    if (!str_cut(pattern, '*', &piece, &rest))
        return str_eq_nocase(pattern, text);
    if (!starts_nocase(text, piece))
        return false;
    text = str_skip(text, piece.n);
    while (str_cut(rest, '*', &piece, &rest)) {
        while (text.n > piece.n && !starts_nocase(text, piece))
            text = str_skip(text, 1);
        if (!starts_nocase(text, piece))
            return false;
        text = str_skip(text, piece.n);
    }
    return text.n >= piece.n && str_eq_nocase(str_skip(text, text.n - piece.n), piece);
}

bool pattern_list_allows(struct str list, struct str text, bool glob)
{
    bool wanted = false; /* some item is without '!' */
    bool found = false;
    while (list.n > 0) {
        struct str item;
        (void)str_cut(list, ',', &item, &list);
        item = str_trim(item);
        bool excludes = str_starts(item, STR("!"));
        if (excludes)
            item = str_trim(str_skip(item, 1));
        if (item.n == 0)
            continue;
        bool matches = glob ? pattern_match(item, text) : str_eq_nocase(item, text);
        if (excludes && matches)
            return false;
        wanted = wanted || !excludes;
        found = found || matches;
    }
    return found || !wanted;
}
