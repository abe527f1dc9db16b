/* Writes the JSON of a node and of the pending pods, for the page. */
#pragma once

#include "core/cache/cache.h"
#include "core/state/measured.h"
#include "daemon/page/ui_reasons.h"
#include "json/jwrite.h"

/* Whether the page shows n, as inspect does. */
static inline bool ui_shows(const struct node *n)
{
    return n != NULL && node_is_shared(n);
}

/* Whether the page lists the pending pod p as waiting: it wants shared cards, or its request cannot
 * be read. */
static inline bool ui_waits(const struct pod *p)
{
    return request_shares(p->request) || !request_wants(p->request);
}

/* m: NULL if what is really used is not known. */
void ui_write_node(struct jwrite *w, const struct measured *m, const struct node *n);

/* {"pods":[...],"total":N}: the oldest LIMIT_UI_PENDING of the pods that want shared cards. */
void ui_write_pending(struct jwrite *w, const struct cache *c, const struct ui_reasons *reasons);
