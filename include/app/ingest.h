/*
 * One Kubernetes object's JSON into the cache, with a log line for what an operator should know:
 * a node that came, went or changed its size, a pod that is bound without a valid card, an object
 * that can't be read. An object that can't be read never stops a stream: it is reported and left
 * out.
 */
#pragma once

#include "arena.h"
#include "cache.h"
#include "loop.h"

struct ingest {
    const struct loop *loop; /* borrowed: what time it is */
    struct cache *cache;     /* borrowed */
    struct arena arena;      /* of one object */
    bool lost;               /* memory ran out on an object: what is cached is not whole */
    bool torn[CACHE_KINDS];  /* an object since the list was begun can't be read */
};

void ingest_init(struct ingest *in, const struct loop *l, struct cache *cache);
void ingest_done(struct ingest *in);

/* gone: the object was deleted, or left the selection that is watched. */
void ingest_node(struct ingest *in, struct str json, bool gone);
void ingest_pod(struct ingest *in, struct str json, bool gone);
void ingest_configmap(struct ingest *in, struct str json, bool gone);

void ingest_list_begin(struct ingest *in, enum cache_kind kind);

/*
 * What a whole list did not name is gone; unless an object of it could not be read, since that may
 * be the one that is missed. Returns how many confirmed pods it lacked that are newer than it, or
 * gone: if they are still missing after a while, list again.
 */
unsigned ingest_list_end(struct ingest *in, enum cache_kind kind);
