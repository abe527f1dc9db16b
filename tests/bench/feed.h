/*
 * Feeds a watch's bytes into a cache as the reflector does: cuts them into lines, reads the events
 * and their objects, and applies them.
 */
#pragma once

#include "kube/ingest.h"
#include "json/jcut.h"

struct feed {
    struct ingest ingest;
    struct jcut cut;
    struct arena arena;
    bool of_nodes;
};

void feed_open(struct feed *f, struct loop *l, struct cache *c, bool of_nodes);
void feed_close(struct feed *f);

/* Takes whole lines; aborts if they can't be read. */
void feed_push(struct feed *f, struct str lines);
