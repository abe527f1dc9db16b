/*
 * GET /ui/events: what the page shows, as server-sent events. First "hello", upon which a page
 * forgets all; then each node, and "ready"; from then on what has changed. A page is told the state
 * of now and no history: one that reads slowly is told less often, and costs no more memory.
 */
#pragma once

#include "service.h"

struct ui_feed;

#define UI_FEED_TICK_MS 500

/* Each page is told at most so often. */
enum errc ui_feed_new(struct service *s, uint64_t tick_ms, struct ui_feed **ret, struct err *reterr)
    _must_use_;

/* Its streams are gone, with their servers. Accepts NULL; returns NULL. */
struct ui_feed *ui_feed_free(struct ui_feed *f);

/* Above LIMIT_UI_STREAMS it is refused: connections are for schedulers. */
void ui_feed_handle(struct ui_feed *f, struct http_request *r);
