/*
 * A watch's bytes into a cache, the way that the reflector takes them: cut into lines, read as
 * events, their objects read and applied.
 */
#pragma once

#include "ingest.h"
#include "jcut.h"

struct feed {
    struct ingest ingest;
    struct jcut cut;
    struct arena arena;
    bool of_nodes;
};

void feed_open(struct feed *f, const struct loop *l, struct cache *c, bool of_nodes);
void feed_close(struct feed *f);

/* Whole lines; aborts where they can't be read. */
void feed_push(struct feed *f, struct str lines);
