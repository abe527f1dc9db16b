/*
 * The pods of this node that request cards: which cards their annotations name, and which cards
 * their containers really have. The annotations come from the API server's watch. What a container
 * has comes from the kubelet's checkpoint, which holds the pod's UID and our answer to Allocate.
 * Pure: no clock, no I/O, no log. pod_match.h and exchange.h decide with it.
 *
 * A container's cards can't change after Allocate: the kubelet keeps our answer for all its starts.
 * So where both differ, the annotations are corrected and not the container.
 *
 * With late binding the answer names no card but a CDI spec (specs.h). Until that is written,
 * before the pod's first container starts, its containers have devices and no cards: they go
 * wherever the annotations say. From then on they have the spec's cards, whatever the annotations
 * say.
 */
#pragma once

#include "core/state/pod_allocation.h"

/* Pods of one node; kubelets run 110 by default, and no more than some hundreds. */
#define ROSTER_PODS_MAX ((size_t)2048)

/* Cards of one node; the largest index that cardpack.io/cards allows is 1023. */
#define ROSTER_CARDS_MAX ((size_t)1024)

struct card_list {
    uint32_t n;
    uint32_t cards[REQUEST_CARDS_MAX]; /* in ascending order */
};

struct roster_container {
    struct str name; /* owned by the pod */
    const struct demand *demand;
    bool given;           /* the checkpoint says that it has devices */
    bool asked;           /* the kubelet has asked to start it, and no container of the pod was
                             allowed to start since */
    bool late;            /* if given: the answer names a CDI spec */
    struct card_list has; /* if given; n 0: devices without a card that we know; of a late one: its
                             spec is not written */
};

/* Cards of a pod by container; owned. n 0: none. */
struct grant_list {
    struct grant *grants;
    uint32_t n;
};

struct roster_pod {
    struct str uid; /* owned, as namespace and name */
    struct str namespace;
    struct str name;
    uint64_t version; /* resourceVersion */
    uint64_t list;    /* the last list that named it */
    bool backlog;     /* it waited when the kubelet registered us last */
    bool spent;       /* it was a guess that the checkpoint did not confirm: it may have ended */
    bool released;    /* it had devices, and the kubelet has taken them back: it has ended */
    uint64_t seen;    /* increases with each new pod */
    uint32_t created_s;
    uint64_t assume_ns;
    bool assigned;    /* annotation ASSIGNED is true */
    bool initialized; /* its init containers are done */
    bool deleting;
    bool said_allocation;
    bool said_cores;
    bool allowed;        /* a container of it may have started */
    bool unsure;         /* if allowed: only an agent before this one can have allowed it, and
                            the phase does not say so */
    bool granted;        /* if allowed: by this agent; else only the phase or the checkpoint says
                            that it may run */
    bool alone;          /* the plan follows its containers, and no pod gets what it leaves */
    bool held;           /* its annotations have named the cards of all its containers: it keeps
                            these, whatever they name later */
    bool lost;           /* it may run, and the kubelet has lost its devices: it keeps the cards
                            of its plan, whatever devices it gets now */
    bool idle;           /* the kubelet has asked for all its containers since then: none runs,
                            whatever its phase says */
    bool refused;        /* the API server refuses to change its annotations */
    unsigned refusals;   /* in a row; see exchange_refuse */
    uint64_t failing_ms; /* since then each PATCH has failed with 5xx, or because the pod has
                            changed; 0: the last one did not */
    unsigned conflicts;  /* the latter, in a row */
    unsigned edits;      /* of a held pod: how often in a row it was written back */
    uint64_t edit_ms;    /* if `rests`: it is not written back before */
    bool rests;
    bool busy;               /* a PATCH is under way: exchange_sent */
    bool moving;             /* if busy: it writes other cards */
    bool unclear;            /* such a PATCH has no known outcome, so `said` may be old */
    uint64_t sent;           /* if busy: the version that the PATCH is for */
    uint64_t stale;          /* the API server has a newer version than this one; 0: not known */
    bool doubt;              /* a PATCH that writes other cards may still be applied, if the pod has
                                this version; roster_set with a newer one ends that */
    bool edited;             /* its annotations differ from its specs, and the log says so */
    struct request *request; /* owned */
    struct grant_list said;  /* what the annotations name */
    struct grant_list plan;  /* what they are to name: `said`, unless an exchange is under way */
    bool marked;             /* CARDPACK_ANNOTATION_VACATED is there */
    struct card_list vacated; /* what it says; n 0: it can't be read, or is not there */
    uint32_t n_containers;
    struct roster_container containers[REQUEST_DEMANDS_MAX]; /* those that the kubelet asks for, in
                                                                its order */
};

struct roster_card {
    uint32_t index;
    int64_t total; /* units */
};

/* Allocate was answered, and the checkpoint does not say yet for which container it was. The
 * kubelet has one Allocate under way at a time, so there is one guess at most. */
struct roster_guess {
    struct roster_pod *pod; /* NULL: no guess */
    int64_t n;
    struct card_list cards;
};

struct roster {
    struct roster_card cards[ROSTER_CARDS_MAX];
    size_t n_cards;
    struct roster_pod *pods[ROSTER_PODS_MAX]; /* owned, in no order */
    size_t n_pods;
    uint64_t last_seen;
    uint64_t list;        /* of the list under way, or the last one */
    uint64_t seen_before; /* last_seen when it began */
    struct roster_guess guess;
    const struct roster_pod *guessed; /* for whom the last guess was; or NULL */
    const struct roster_pod *last;    /* got the newest devices, as the checkpoint says; or NULL */
    bool checked;                     /* a checkpoint has been read */
    bool unseen;                      /* the checkpoint names a pod that the watch has not shown */
};

void roster_init(struct roster *r);
void roster_done(struct roster *r);

/* In ascending order of their indices; n is at most ROSTER_CARDS_MAX. */
void roster_set_cards(struct roster *r, const struct roster_card *cards, size_t n);
int64_t roster_total(const struct roster *r, uint32_t card); /* 0: no such card */

/*
 * A pod's object, from the watch or from the answer to a PATCH; an older version is ignored.
 * A pod that is first shown before the first checkpoint is in doubt: an agent before this one may
 * have sent a PATCH of it.
 * A pod that requests no cards, is not bound or has ended leaves the roster. ERR_NOMEM, ERR_LIMIT
 * (too many pods): a pod that is new is not kept, and another one keeps its old version.
 */
enum errc roster_set(struct roster *r, const struct pod_view *view, uint64_t version) _must_use_;
void roster_remove(struct roster *r, struct str uid);
struct roster_pod *roster_find(const struct roster *r, struct str uid);

/* The time is over in which a PATCH could still be on its way: no pod is in doubt any more. */
void roster_settle(struct roster *r);

/* A list of all pods: begin, roster_set for each, end. Pods that it did not name leave the roster.
 * Those that it showed first are put into the order of their Bindings: a list is in the order of
 * the names. */
void roster_list_begin(struct roster *r);
void roster_list_end(struct roster *r);

/* The kubelet has (re)started: what waits now comes in the order of creation. If it has lost its
 * checkpoint, that must have been applied before: pods that may run and have no devices become
 * `lost`.
 */
void roster_mark_backlog(struct roster *r);

/*
 * What the checkpoint says, as a whole: begin, one call for each container of our resource, end.
 * roster_truth is false for a pod that the roster does not know: before a match the caller waits
 * for the watch to show it, because that pod's cards are not counted. after_allocate: the file is
 * not older than the last answer to Allocate, so a guess that it does not confirm is void, unless
 * the roster does not know all of its pods. late, and `has` of a late one: see roster_container.
 */
void roster_truth_begin(struct roster *r);
bool roster_truth(struct roster *r, struct str uid, struct str container,
                  const struct card_list *has, bool late);
void roster_truth_end(struct roster *r, bool after_allocate);

struct roster_container *roster_container(struct roster_pod *p, struct str name); /* NULL: none */

/* The container's cards in these grants. An init container runs on those of the first container
 * that lasts, because the kubelet passes its devices on. n 0: none. */
void roster_cards_of(const struct roster_pod *p, const struct demand *d, const struct grant_list *l,
                     struct card_list *ret);

/* The first container that has no devices; NULL: all have. */
const struct roster_container *roster_next(const struct roster_pod *p);

/* The kubelet asks whether this container may start. If it has asked for all containers of a pod
 * that is lost or not granted, none runs. */
void roster_ask(struct roster_pod *p, struct str container);

/* The answer is yes. */
void roster_allow(struct roster_pod *p);

/* A container has devices, or it is the guess. */
bool roster_has_started(const struct roster *r, const struct roster_pod *p);

/* All its containers have the cards that its annotations name. */
bool roster_agrees(const struct roster_pod *p);

/* Whether the cards of container c are known and are others than l gives it. */
bool roster_is_off(const struct roster_pod *p, const struct roster_container *c,
                   const struct grant_list *l);

/* A spec of late binding is written: a container may run on its cards. */
bool roster_is_bound(const struct roster_pod *p);

/* All containers with devices are late, and none has its cards yet. */
bool roster_is_open(const struct roster_pod *p);

/* Whether a container of it has the card; of a pod that may run and has no known devices: whether
 * its plan has it. Its annotations alone say nothing. */
bool roster_is_on(const struct roster_pod *p, uint32_t card);

/* What the pod holds of a card if these are its grants, in units. */
int64_t roster_charge(const struct roster *r, const struct roster_pod *p,
                      const struct grant_list *there, uint32_t card);

/* What the pod holds of a card: by its plan, and, if it runs on other cards, at least what it has
 * there. sure false: a pod that may run counts like one that runs. */
int64_t roster_holds(const struct roster *r, const struct roster_pod *p, uint32_t card, bool sure);

/* The sum of what all pods with devices hold of a card, and those that have lost them, but
 * `except`. */
int64_t roster_started_on(const struct roster *r, uint32_t card, const struct roster_pod *except);

/* How many containers have this card alone, by the checkpoint; the guess counts too. */
uint32_t roster_given_on(const struct roster *r, uint32_t card);

bool grant_list_equal(const struct grant_list *a, const struct grant_list *b);
bool grant_list_has(const struct grant_list *l, uint32_t card);
bool grant_list_set(struct grant_list *l, const struct grant *grants, uint32_t n) _must_use_;

bool card_list_equal(const struct card_list *a, const struct card_list *b);
bool card_list_has(const struct card_list *l, uint32_t card);
bool card_list_find(const struct card_list *l, uint32_t card, uint32_t *ret_at);
void card_list_add(struct card_list *l, uint32_t card); /* keeps the order; a card twice: once */

/* "0,2"; an invalid text is an empty list. */
void card_list_read(struct str text, struct card_list *ret);
