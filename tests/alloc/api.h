/*
 * An API server in this process, with what cardpack needs: nodes, pods and ConfigMaps with
 * versions, paged lists, watches with a history that can be compacted, GETs, Bindings, and faults.
 * The test compares the program's cache with its objects.
 */
#pragma once

#include "http_peer.h"

#include <jansson.h>

enum api_kind {
    API_NODES,
    API_PODS,
    API_CONFIGMAPS,
    API_BUDGETS,
    API_KINDS
};

/* What happens to the next Binding. */
enum api_fault {
    API_FAULT_NONE,
    API_FAULT_LOST,      /* it commits, and gets no answer */
    API_FAULT_ELSEWHERE, /* another client binds the pod to another node first: 409 */
};

#define API_HISTORY 256
#define API_CALLS   32

struct api_change {
    enum api_kind kind;
    uint64_t version;
    const char *type;
    json_t *object;
};

struct api {
    struct http_listener listener;
    struct http_peer calls[API_CALLS];
    uint64_t watch_from[API_CALLS]; /* 0: no watch */
    enum api_kind watch_kind[API_CALLS];
    json_t *objects[API_KINDS]; /* by name: names are unique in this test */
    json_t *lease;              /* NULL: none yet */
    uint64_t version;
    uint64_t oldest; /* earlier changes are forgotten */
    struct api_change history[API_HISTORY];
    size_t n_history;
    enum api_fault fault;
    const char *elsewhere; /* API_FAULT_ELSEWHERE: the node */
    unsigned bindings;
};

void api_open(struct api *a);
void api_close(struct api *a);
bool api_turn(struct api *a); /* false: there was nothing to do */

void api_put_node(struct api *a, const char *name, int mem, int count);
/* node NULL: not bound; card < 0: no annotation. The UID is "uid-NAME". */
void api_put_pod(struct api *a, const char *name, int mem, const char *node, int card);
void api_label_pod(struct api *a, const char *name, const char *value);
void api_put_unhealthy(struct api *a, const char *node, const char *gpus);
void api_put_budget(struct api *a, const char *name, int allowed);
void api_delete(struct api *a, enum api_kind kind, const char *name);

/* Forgets all changes and ends all watches: a watch from an older version gets 410. */
void api_compact(struct api *a);

unsigned api_watches(const struct api *a); /* open ones */

/* NULL: not bound. */
const char *api_node_of(const struct api *a, const char *pod);
int api_card_of(const struct api *a, const char *pod); /* -1: none */
int api_mem_of(const struct api *a, const char *pod);

/* Free memory of a card; -1: not healthy, -2: no such card. */
int api_free(const struct api *a, const char *node, int card);

/* Whether no card of any node is over-committed. */
bool api_is_sound(const struct api *a);
