/* For the steps of scenarios.c: whether an answer is right, by the API server's objects. */
#pragma once

#include "world.h"

answer_fn is_ok;
answer_fn is_not_found;
answer_fn is_json;
answer_fn is_filtered;
answer_fn is_prioritized;
answer_fn is_explained;
answer_fn is_fitted;
answer_fn is_of_nobody;
answer_fn is_bound;
answer_fn is_created;
answer_fn is_deleted;
answer_fn is_asset;
answer_fn is_page;

/* Whether the page's events so far show every card as the API server has it. */
bool shows_all(const char *stream, size_t n);
