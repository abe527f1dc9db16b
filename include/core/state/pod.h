/* A pod that asks for memory on a card or holds it. Only cache.c changes these structs; other
 * modules read them through const pointers. */
#pragma once

#include "base/list.h"
#include "core/request/evaluation.h"
#include "core/request/labels.h"
#include "core/state/pod_allocation.h"

struct node;
struct group;

enum pod_state {
    POD_PENDING,   /* a list or watch showed it; it holds nothing */
    POD_RESERVED,  /* holds a card while its Binding is in flight or in doubt */
    POD_CONFIRMED, /* the API server answered that it is bound; the watch has not shown it yet */
    POD_BOUND,     /* the pod's object shows it bound */
};

/* Whether a pod's containers may still wait for their devices: those of a reserved pod, and of a
 * pod for which pod_view_starts is true. */
enum pod_start {
    POD_STARTED,
    POD_STARTING,
    POD_STARTING_UNSURE, /* acknowledged, but perhaps for another pod's container: see swap.c */
};

/* What the pod's annotation ASSIGNED says, or in another dialect the annotation in its place. The
 * pod's author may set it back. */
enum pod_ack {
    POD_ACK_NONE,   /* another value, or none */
    POD_ACK_WAITS,  /* dialect_waits, or the pod is reserved */
    POD_ACK_SERVED, /* dialect_served: the device plugin has handed its cards out */
};

struct pod {
    struct str uid;       /* key of the cache's map; uid and name are stored behind the struct */
    struct str namespace; /* borrowed from the tenant */
    struct str name;
    enum pod_state state;
    bool seen; /* a list or watch showed it, not only a bind */
    /* Reserved or confirmed, but a list or watch does not have it, or contradicts it. */
    bool missing;
    /* Missing, and the caller was asked to read the pod: the next answer to a GET counts. */
    bool asked;
    enum pod_start start; /* only node_note_start and swap_note_end set it */
    enum pod_ack ack;
    bool exchanging;  /* annotation CARDPACK_ANNOTATION_VACATED; only node_note_exchange sets it */
    bool unreadable;  /* its object can't be read; only node_note_unreadable sets it */
    bool initialized; /* its init containers are done, and their part is released */
    bool deleting;    /* its object has a deletionTimestamp; it still holds its cards */
    struct former former;
    bool unwanting;  /* reserved, but its object no longer requests memory */
    bool kept;       /* by KEEP, on the cards of `allocation`, and not by a nomination */
    uint16_t list_n; /* of `list`; here it needs no memory */
    uint32_t epoch; /* of the last list that contained it, or in progress when it was first known */
    struct quota_tenant *tenant;       /* of its namespace; left when the cache forgets the pod */
    const struct request *request;     /* shared, in the cache's table `requests`; never changed */
    const struct request *edited;      /* the same; reserved: its object's new request; or NULL */
    struct pod_allocation *allocation; /* owned; NULL while pending without kept cards */
    char *list; /* owned; in a dialect with UUIDs: the list of its devices, in the order of the
                   allocation's grants; NULL: none. See core/state/vgpu.h */
    struct labels *labels;  /* shared; of the bound object, for PodDisruptionBudgets */
    struct node *node;      /* NULL while pending */
    struct group *group;    /* its affinity group while it holds cards; or NULL */
    struct node *keeper;    /* pending: the node where room is kept for it; or NULL */
    struct node *nominated; /* until it is bound: the node that a scheduler nominated; or NULL */
    int32_t card;           /* its first card; -1: charged to the node only */
    uint32_t created_s; /* Unix time of creation, or of the first object seen; 0: no object yet */
    uint64_t version;   /* resourceVersion of the last object; 0: not known */
    uint64_t assume_ns;
    struct pod *next; /* in node->pods, or in keeper->kept_for */
    struct pod *prev;
    struct list_link pending; /* in the cache's list of pending pods */
};

static inline struct str pod_list(const struct pod *p)
{
    return (struct str){p->list, p->list_n};
}

static inline bool pod_holds(const struct pod *p)
{
    return p->state != POD_PENDING;
}

static inline bool pod_starts(const struct pod *p)
{
    return p->start != POD_STARTED;
}

/* The device plugin may choose this pod for any container that asks for as much memory. */
static inline bool pod_awaits(const struct pod *p)
{
    return pod_starts(p) && p->ack == POD_ACK_WAITS;
}

/* Whether the room that a node keeps for `for_pod` is kept from the pod that is evaluated:
 * it has equal or higher priority. */
static inline bool pod_is_kept_before(const struct pod *for_pod, const struct evaluation *e)
{
    return for_pod != e->self && for_pod->request->priority >= e->request->priority;
}

/* The rest is for cache.c. */

/* A new pending pod, charged nowhere, without a request or a namespace. NULL: allocation failed. */
struct pod *pod_new(struct str uid, struct str name);

/* Call this if a list or watch does not have a reserved or confirmed pod, or contradicts it. */
void pod_note_missing(struct pod *p);

/* Call this if a list or watch shows the pod, or a GET that was sent after pod_note_missing. */
void pod_note_shown(struct pod *p);

/* Whether the pod is missing and the new evidence (read_back: the answer to a GET) may be older
 * than the call of pod_note_missing. After this call the answer to a new GET counts. */
bool pod_needs_read(struct pod *p, bool read_back);

/* Takes ownership of list; n is at most LIMIT_DEVICES_BYTES. */
void pod_set_list(struct pod *p, char *list, size_t n);

/* Takes a bound pod's annotations except its cards; cache_pod_place sets those. An ASSUME_TIME more
 * than a day ahead of now is ignored. */
void pod_take_annotations(struct pod *p, const struct pod_view *view, uint64_t now_ns);

/* For tests: asserts the invariants of a single pod. */
void pod_check(const struct pod *p);
