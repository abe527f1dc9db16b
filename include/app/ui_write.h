/* What a page is told of a node and of a pod that waits. */
#pragma once

#include "cache.h"
#include "jwrite.h"
#include "ui_reasons.h"

/* It has shared memory, or pods hold some of it: those that inspect shows. */
static inline bool ui_shows(const struct node *n)
{
    return n != NULL && (n->total > 0 || n->pods != NULL);
}

void ui_write_node(struct jwrite *w, const struct node *n);

/* {"pods":[...],"total":N}: the oldest LIMIT_UI_PENDING of those that want shared cards. */
void ui_write_pending(struct jwrite *w, const struct cache *c, const struct ui_reasons *reasons);
