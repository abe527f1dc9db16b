/* Feeds a watch's bytes into a cache; see feed.h. */
#include "feed.h"

#include "base/limit.h"
#include "objects/watch.h"

#include <stdlib.h>

static enum errc on_line(void *ctx, enum jcut_piece kind, struct str line, struct err *reterr)
{
    struct feed *f = ctx;
    struct watch_event ev;
    (void)kind;
    arena_reset(&f->arena);
    enum errc code = watch_event_read(line, &f->arena, &ev, reterr);
    if (code != OK)
        return code;
    if (f->of_nodes)
        ingest_node(&f->ingest, ev.object, ev.kind == WATCH_DELETED);
    else
        ingest_pod(&f->ingest, ev.object, ev.kind == WATCH_DELETED);
    return OK;
}

void feed_open(struct feed *f, struct loop *l, struct cache *c, bool of_nodes)
{
    *f = (struct feed){.of_nodes = of_nodes};
    ingest_init(&f->ingest, l, c);
    jcut_init(&f->cut, JCUT_LINES, LIMIT_OBJECT_BYTES, on_line, f);
    arena_init(&f->arena, LIMIT_OBJECT_BYTES);
}

void feed_close(struct feed *f)
{
    arena_done(&f->arena);
    jcut_done(&f->cut);
    ingest_done(&f->ingest);
}

void feed_push(struct feed *f, struct str lines)
{
    struct err e = ERR_INIT;
    if (jcut_push(&f->cut, lines, &e) != OK || f->ingest.lost || f->ingest.torn[CACHE_PODS] ||
        f->ingest.torn[CACHE_NODES])
        abort();
}
