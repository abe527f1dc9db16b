/* Patterns for names of card models and the like: "NVIDIA-A100*", and lists with exclusions:
 * "A100*,!A100-SXM*". ASCII letters match in either case. An absent text counts as an empty one. */
#pragma once

#include "base/str.h"

/* '*' matches any bytes, also none. No other character is special. O(pattern * text): adds to
 * *compared how often a byte of the text was compared. */
bool pattern_match(struct str pattern, struct str text, uint64_t *compared);

/*
 * Items are separated by commas. White space around an item and around its '!' is ignored, and so
 * are empty items. No item with '!' may match. If there are items without '!', one of them must
 * match; so an empty list allows everything. glob false: an item matches only equal text, in either
 * case of letters. Adds to *compared as pattern_match.
 */
bool pattern_list_allows(struct str list, struct str text, bool glob, uint64_t *compared);

/* Takes the list's next item, without white space around it and without its '!'. It may be
 * empty. */
struct str pattern_list_next(struct str *list, bool *ret_excludes);

/* The number of items that are not empty. */
size_t pattern_list_items(struct str list);
