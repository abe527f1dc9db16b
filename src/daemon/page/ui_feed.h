/*
 * GET /ui/events: the content of the page, as server-sent events. First comes "hello", upon which a
 * page forgets everything; then every node, and "ready"; after that, what has changed. A page gets
 * the present state and no history: a page that reads slowly gets fewer events, and needs no more
 * memory.
 */
#pragma once

#include "daemon/service.h"

struct ui_feed;

#define UI_FEED_TICK_MS 500

/* Each page gets events at most every tick_ms. Sets s->reasons. */
enum errc ui_feed_new(struct service *s, uint64_t tick_ms, struct ui_feed **ret, struct err *reterr)
    _must_use_;

/* All its streams must have ended, with their servers. Accepts NULL; returns NULL. */
struct ui_feed *ui_feed_free(struct ui_feed *f);

/* Refuses streams above LIMIT_UI_STREAMS: connections are for kube-scheduler first. */
void ui_feed_handle(struct ui_feed *f, struct http_request *r);
