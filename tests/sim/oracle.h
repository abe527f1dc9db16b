/*
 * The invariants. The oracle checks them from the API server's objects and from what each process
 * was surely told. Its arithmetic shares no code with cardpack's.
 */
#pragma once

#include "api/bindings.h"
#include "claims.h"
#include "proc.h"
#include "slices.h"

/* What a process may believe of the nodes' pools and models, a bit for each value. After the nodes:
 * a node that the API server does not have. After the cards: a card that the node does not have,
 * then the model of the node's label. */
struct belief {
    uint8_t pools[MAX_NODES + 1];
    uint8_t models[MAX_NODES + 1][MAX_CARDS + 2];
};

/* A reservation, or the sending of its Binding, with the facts that it was based on. */
struct decision {
    unsigned slot;
    unsigned proc;
    unsigned node;
    uint64_t cards;              /* a bit for each of its cards */
    int64_t total[MAX_CARDS];    /* sizes of these cards, as the process believed */
    int64_t limit;               /* the node's, the largest that the process may have believed */
    int64_t max_pods[MAX_CARDS]; /* the same, of each card */
    int64_t least_cards;         /* of the node, the fewest that it may have believed */
    uint64_t quota_told;         /* it may have believed the quotas of this version */
    uint64_t quota_rv;           /* and of all versions up to this one */
    struct belief belief;
    const struct decision *first; /* the decision that took the cards; later ones keep them */
    bool shrink;                  /* value of the setting shrink-after-init */
    bool divided;                 /* the process may have believed so */
    unsigned offers;              /* what it surely knew that the node has: see oracle_offers */
    bool served;                  /* the same: that DRA gives out the node's exclusive cards */
    uint64_t aside;               /* a bit for each card that was surely another plugin's */
    int64_t lent[MAX_CARDS];      /* what it surely knew that claims hold of each card */
    uint64_t rv;
    bool known[MAX_PODS];  /* pods placed by others, of which it was told */
    bool informed;         /* of gpu-manager's node: it knew all that the agent may know */
    bool beside[MAX_PODS]; /* the same: pods there of which it knows by its own Bindings */
    bool lasts[MAX_PODS];  /* pods whose init containers it may have believed done */
};

/* A bit for each plugin whose resource the node has, and behind them one for NVIDIA's. */
unsigned oracle_offers(const struct node_object *n);
/* Whether a pod there has, by what the decision knew of the node, shared or exclusive cards. */
bool oracle_shares(const struct decision *d, const struct pod_object *p);
bool oracle_excludes(const struct decision *d, const struct pod_object *p);

static inline bool decision_has(const struct decision *d, int64_t card)
{
    return (d->cards >> card & 1) != 0;
}

/* How a commit breaks the rules of server.h. */
enum rogue {
    ROGUE_NOT,
    ROGUE_COMMIT, /* the API server committed after its deadline */
    ROGUE_COPY,   /* a proxy held a copy for too long */
    ROGUE_TWIN,   /* a proxy sent it twice, and the API server refused the other copy */
};

/* A Binding as it was sent. */
struct order {
    struct posted is;
    unsigned sender;
    uint64_t incarnation; /* the sender's */
    uint64_t deadline_ms; /* its handler's */
    enum rogue rogue;
    uint64_t late_ms;                /* if rogue: time after the deadline or the refusal */
    const struct decision *decision; /* that led to it; NULL: the pod asks for no card */
};

/* Checks the Binding against the decision. */
void order_check(const struct order *o, const struct decision *d);

void order_check_request(const struct order *o, const struct pod_object *p);

void oracle_reset(void);

/* Notes a change of an object, which has just been made. */
void oracle_changed(const struct change *c);

void oracle_started(const struct proc *p);

/*
 * Notes each new decision of the process with what the process knew. Called after every event that
 * a process handles and before it sends a Binding: by the end of its turn it may know more.
 */
void oracle_decided(const struct proc *p);

/* Checks that at most one process is ready to decide. Called after every step. */
void oracle_stepped(void);

/* Called after each turn: checks that the process' cache is consistent. */
void oracle_turned(const struct proc *p);

/* A Binding leaves the process: its lease must still be valid by its own clock. */
void oracle_sent(const struct proc *p, uint64_t sent_ms);

/* A Binding arrives: checks it and finds its decision. */
void oracle_posted(struct order *o);

/* The Binding has just bound the pod of this slot: no decision of cardpack may over-commit a
 * card. */
void oracle_committed(const struct order *o, unsigned slot);

/* An answer leaves a process: it may report success only for a pod that is bound. */
void oracle_answered(const struct ask *a);

/* At rest: each cache agrees with the API server's objects, and nothing is left over. */
void oracle_rest(void);

/* The decision that put the pod where it is; NULL: another client did. */
const struct decision *oracle_by(unsigned slot);

/* Whether d had to count the pod. */
bool oracle_counts(const struct decision *d, unsigned slot);

/* ---- whether a pod fits, at rest ---- */

enum fits {
    FITS_NOT,
    FITS,
    FITS_PERHAPS, /* it depends on which of several cards this pod or others get */
};

enum fits oracle_fits(unsigned node, const struct pod_object *p);

/* The same for an answer: a lock of the node may refuse the pod. */
enum fits oracle_answers(unsigned node, const struct pod_object *p);

/* The card that the policy of cards chooses on a node where the pod fits. -1: it needs several
 * cards, or the documents do not say which card it gets. */
int64_t oracle_card(unsigned node, const struct pod_object *p);

/* Whether a pod on several cards must get them on one NUMA node. */
bool oracle_one_numa(unsigned node, const struct pod_object *p);

/* Whether gpu-manager's agent chooses these cards for the pod, by what the API server's objects say
 * now; for whole cards, whether the pod may have each that the agent may choose. */
bool oracle_foresees(unsigned node, const struct pod_object *p, uint64_t cards);

/* Whether the card's own state and the pod's wishes allow the card. */
bool oracle_may_have(unsigned node, const struct pod_object *p, int64_t card);

/* FITS_NOT: the device plugin could swap the pod with one that waits there. */
enum fits oracle_swaps(unsigned node, const struct pod_object *p);

/* What the pods on a node hold by the API server's objects: on one card, or with card -1 in all. */
struct usage {
    int64_t mem;
    int64_t counted; /* by the specs, as the kubelet counts */
    int64_t cores;
    int64_t unplaced; /* on a card that the node does not have */
    int64_t exclusive;
    unsigned pods;
    unsigned takers; /* places for pods that they take */
    unsigned sharing;
    unsigned wholes;
    uint64_t foreign; /* a bit for each card that a pod of another plugin holds */
    bool claimed;     /* a claim holds the card whole */
};

struct usage oracle_usage(unsigned node, int64_t card);

/* Whether the init containers are done, and their part is given back under the present settings. */
bool oracle_lasts(const struct pod_object *p);
