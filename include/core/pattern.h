/*
 * What people write to name card models and the like: "NVIDIA-A100*", and lists of such with
 * exceptions: "A100*,!A100-SXM*". ASCII letters compare alike in either case; an absent text is an
 * empty one.
 */
#pragma once

#include "str.h"

/* '*' stands for any bytes, none included, and nothing else is special. O(pattern * text). */
bool pattern_match(struct str pattern, struct str text);

/*
 * Items stand between commas, white space around them and around their '!' does not count, empty
 * ones are ignored. No item with '!' may match, and where there are items without, one of them has
 * to: so an empty list allows everything. Without glob an item matches only what is equal to it,
 * but for case.
 */
bool pattern_list_allows(struct str list, struct str text, bool glob);
