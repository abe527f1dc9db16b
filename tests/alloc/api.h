/*
 * The API server of the allocation tests: the double of tests/api, over HTTP on sockets of this
 * process, with a few faults. The program keeps its real HTTP client, because the client's
 * allocations fail, too. The tests compare the program's cache with the objects of the store.
 */
#pragma once

#include "api/store.h"
#include "http_peer.h"

/* What happens to the next Binding. */
enum api_fault {
    API_FAULT_NONE,
    API_FAULT_LOST,      /* it commits, and gets no answer */
    API_FAULT_ELSEWHERE, /* another client binds the pod to another node first: 409 */
};

#define API_CALLS 32

struct api {
    struct http_listener listener;
    struct http_peer calls[API_CALLS];

    struct {
        bool open;
        unsigned kind;
        size_t next; /* of the changes */
    } watches[API_CALLS];

    enum api_fault fault;
    const char *elsewhere; /* API_FAULT_ELSEWHERE: the node */
    unsigned bindings;
};

/* There is one API server at a time, because the store is global. */
void api_open(struct api *a);
void api_close(struct api *a);
bool api_turn(struct api *a); /* false: there was nothing to do */

void api_put_node(const char *name, int mem, int count);
/* node NULL: not bound; card < 0: no annotation. The UID is "uid-NAME". */
void api_put_pod(const char *name, int mem, const char *node, int card);
void api_label_pod(const char *name, const char *value);
void api_put_unhealthy(const char *node, const char *gpus);
void api_put_budget(const char *name, unsigned allowed);
void api_delete(unsigned kind, const char *name);

/* Forgets all changes and ends all watches: a watch from an older version gets 410. */
void api_compact(struct api *a);

unsigned api_watches(const struct api *a); /* open ones */
size_t api_count(unsigned kind);           /* of objects */

/* The slot of this object, which exists. */
unsigned api_slot(unsigned kind, const char *name);

int api_card_of(const struct pod_object *p); /* -1: none */

/* Free memory of a card; -1: not healthy, -2: no such card. */
int api_free(const char *node, int card);

/* Whether no card of any node is over-committed. */
bool api_is_sound(void);
