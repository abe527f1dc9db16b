/* The pods of this node with their cards: as annotated, and as their containers have them. */
#include "node/roster/roster.h"

#include "base/mem.h"

void roster_init(struct roster *r)
{
    r->n_cards = 0;
    r->n_pods = 0;
    r->last_seen = 0;
    r->list = 0;
    r->seen_before = 0;
    r->guess.pod = NULL;
    r->guessed = NULL;
    r->last = NULL;
    r->checked = false;
    r->unseen = false;
}

static void roster_pod_free(struct roster_pod *p)
{
    mem_free(p->said.grants);
    mem_free(p->plan.grants);
    mem_free(p->request);
    mem_free(p);
}

void roster_done(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++)
        roster_pod_free(r->pods[i]);
    r->n_pods = 0;
}

void roster_set_cards(struct roster *r, const struct roster_card *cards, size_t n)
{
    assert(n <= ROSTER_CARDS_MAX);
    if (n > 0)
        memcpy(r->cards, cards, n * sizeof(cards[0]));
    r->n_cards = n;
}

int64_t roster_total(const struct roster *r, uint32_t card)
{
    for (size_t i = 0; i < r->n_cards; i++) {
        if (r->cards[i].index == card)
            return r->cards[i].total;
    }
    return 0;
}

static struct roster_pod **roster_slot(struct roster *r, struct str uid)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        if (str_eq(r->pods[i]->uid, uid))
            return &r->pods[i];
    }
    return NULL;
}

struct roster_pod *roster_find(const struct roster *r, struct str uid)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        if (str_eq(r->pods[i]->uid, uid))
            return r->pods[i];
    }
    return NULL;
}

void roster_remove(struct roster *r, struct str uid)
{
    struct roster_pod **slot = roster_slot(r, uid);
    if (slot == NULL)
        return;
    if (r->last == *slot)
        r->last = NULL;
    if (r->guessed == *slot)
        r->guessed = NULL;
    if (r->guess.pod == *slot)
        r->guess.pod = NULL;
    roster_pod_free(*slot);
    *slot = r->pods[--r->n_pods];
}

static struct str roster_container_name(const struct pod_view *view, const struct demand *d)
{
    const struct container_view *c = pod_view_container(view, d->index);
    return c == NULL ? STR("") : c->name;
}

static struct roster_pod *roster_pod_new(const struct pod_view *view, const struct request *request)
{
    size_t size = view->uid.n + view->namespace.n + view->name.n;
    for (size_t i = 0; i < view->n_containers; i++)
        size += view->containers[i].name.n;
    struct roster_pod *p = mem_alloc(sizeof(*p) + size);
    if (p == NULL)
        return NULL;
    memset(p, 0, sizeof(*p));
    p->request = request_copy(request);
    if (p->request == NULL) {
        mem_free(p);
        return NULL;
    }
    char *at = (char *)(p + 1);
    p->uid = str_store(&at, view->uid);
    p->namespace = str_store(&at, view->namespace);
    p->name = str_store(&at, view->name);
    for (uint32_t i = 0; i < p->request->n_demands; i++) {
        const struct demand *d = &p->request->demands[i];
        if (d->mem == 0)
            continue; /* the kubelet does not ask for it */
        p->containers[p->n_containers++] = (struct roster_container){
            .name = str_store(&at, roster_container_name(view, d)), .demand = d};
    }
    return p;
}

/* An index without an allocation stands for all containers: one grant for each that lasts. */
static void roster_spread(const struct request *q, struct placement *there)
{
    if (there->n != 1 || there->grants[0].container != UINT16_MAX || request_lasting(q) == 0)
        return;
    uint32_t card = there->grants[0].card;
    there->n = 0;
    for (uint32_t i = 0; i < q->n_demands; i++) {
        const struct demand *d = &q->demands[i];
        if (d->kind == CONTAINER_INIT)
            continue;
        there->grants[there->n++] =
            (struct grant){.mem = d->mem, .card = card, .container = d->index, .cores = d->cores};
    }
}

/* Annotations that have changed become the plan of the pod. Not while another plan is being
 * written: then the change is our own write, which a newer plan may have overtaken. Not if the
 * pod's cards are known: then a user made the change. */
static bool roster_fill(struct roster_pod *p, const struct pod_view *view, bool is_new)
{
    struct placement there _uninitialized_;
    struct request whole;
    request_load(&whole, p->request);
    placement_read(view, &whole, &there);
    roster_spread(&whole, &there);
    struct grant_list said = {there.grants, there.n};
    p->created_s = view->created_s;
    p->assume_ns = 0;
    (void)str_to_u64(view->assume_time, UINT64_MAX, &p->assume_ns);
    p->assigned = str_eq(view->assigned, STR("true"));
    p->initialized = view->initialized;
    if (!p->idle && !str_eq(view->phase, STR("Pending"))) {
        p->allowed = true;
        p->unsure = false;
    }
    p->deleting = view->deleting;
    p->said_allocation = view->former.allocation;
    p->said_cores = view->former.cores;
    bool moving = p->held || p->lost || p->moving || p->unclear ||
                  (!is_new && !grant_list_equal(&p->said, &p->plan));
    struct grant_list plan = {.n = 0};
    if (!is_new && grant_list_equal(&p->said, &said))
        return true;
    if ((!moving && !grant_list_set(&plan, there.grants, there.n)) ||
        !grant_list_set(&p->said, there.grants, there.n)) {
        mem_free(plan.grants); /* both or none: a plan must not stay behind */
        return false;
    }
    if (!moving) {
        mem_free(p->plan.grants);
        p->plan = plan;
    }
    return true;
}

/* A PATCH that was sent for an older version can't be applied any more. */
static void roster_set_version(const struct roster *r, struct roster_pod *p, uint64_t version,
                               bool is_new)
{
    if (is_new)
        p->doubt = !r->checked && version != 0;
    else if (version > p->version)
        p->doubt = p->unclear = false;
    p->version = version;
}

enum errc roster_set(struct roster *r, const struct pod_view *view, uint64_t version)
{
    struct request request;
    struct roster_pod **slot = roster_slot(r, view->uid);
    bool is_new = slot == NULL;
    if (!is_new)
        (*slot)->list = r->list;
    if (!is_new && version < (*slot)->version)
        return OK;
    /* Of a request that can't be read, the readable containers count. */
    enum errc readable = request_read(view, &request, NULL);
    assert(readable != ERR_NOMEM);
    if (pod_view_terminal(view) || !request_shares(&request) || !pod_view_bound(view)) {
        roster_remove(r, view->uid);
        return OK;
    }
    if (is_new) {
        if (r->n_pods == ROSTER_PODS_MAX)
            return ERR_LIMIT;
        struct roster_pod *p = roster_pod_new(view, &request);
        if (p == NULL)
            return ERR_NOMEM;
        p->seen = ++r->last_seen;
        p->list = r->list;
        slot = &r->pods[r->n_pods++];
        *slot = p;
    }
    (*slot)->marked = view->vacated.n > 0;
    card_list_read(view->vacated, &(*slot)->vacated);
    if (!roster_fill(*slot, view, is_new)) {
        if (is_new)
            roster_pod_free(r->pods[--r->n_pods]);
        return ERR_NOMEM; /* its version stays old: the next object tries again */
    }
    roster_set_version(r, *slot, version, is_new);
    return OK;
}

void roster_settle(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++)
        r->pods[i]->doubt = false;
}

/* seen: of the pods above this value. */
static void roster_sort_listed(struct roster *r, uint64_t seen)
{
    uint64_t next = seen;
    for (;;) {
        struct roster_pod *first = NULL;
        for (size_t i = 0; i < r->n_pods; i++) {
            struct roster_pod *p = r->pods[i];
            if (p->seen > next && (first == NULL || p->assume_ns < first->assume_ns ||
                                   (p->assume_ns == first->assume_ns && p->seen < first->seen)))
                first = p;
        }
        if (first == NULL)
            return;
        next++;
        for (size_t i = 0; i < r->n_pods; i++) {
            if (r->pods[i]->seen == next)
                r->pods[i]->seen = first->seen;
        }
        first->seen = next;
    }
}

void roster_list_begin(struct roster *r)
{
    r->list++;
    r->seen_before = r->last_seen;
}

void roster_list_end(struct roster *r)
{
    for (size_t i = r->n_pods; i > 0; i--) {
        if (r->pods[i - 1]->list != r->list)
            roster_remove(r, r->pods[i - 1]->uid);
    }
    roster_sort_listed(r, r->seen_before);
}

static bool roster_is_asked(const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (!p->containers[i].asked)
            return false;
    }
    return p->n_containers > 0;
}

static void roster_forget_asked(struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++)
        p->containers[i].asked = false;
}

/* The kubelet has given all containers of a pod their devices before the first one runs. */
static void roster_check_lost(struct roster_pod *p)
{
    if (!p->allowed || roster_next(p) == NULL)
        return;
    p->lost = true;
    roster_forget_asked(p);
}

void roster_mark_backlog(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        r->pods[i]->backlog = true;
        r->pods[i]->spent = r->pods[i]->released = false; /* it may have lost its checkpoint */
        if (r->checked)
            roster_check_lost(r->pods[i]);
    }
    r->last = NULL;
}

const struct roster_container *roster_next(const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (!p->containers[i].given)
            return &p->containers[i];
    }
    return NULL;
}

void roster_ask(struct roster_pod *p, struct str container)
{
    struct roster_container *c = roster_container(p, container);
    if (c != NULL)
        c->asked = true;
    if (!roster_is_asked(p) || (p->granted && !p->lost))
        return;
    p->idle = true;
    p->allowed = p->unsure = p->granted = p->lost = false;
}

void roster_allow(struct roster_pod *p)
{
    p->allowed = p->granted = true;
    p->unsure = p->idle = false;
    roster_forget_asked(p);
}

bool roster_has_started(const struct roster *r, const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (p->containers[i].given)
            return true;
    }
    return r->guess.pod == p;
}

/* `given` becomes a mark in has.n, so that roster_truth sees which devices are new. */
#define ROSTER_WAS_GIVEN UINT32_MAX

void roster_truth_begin(struct roster *r)
{
    r->unseen = false;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        for (uint32_t k = 0; k < p->n_containers; k++) {
            struct roster_container *c = &p->containers[k];
            c->has.n = c->given ? ROSTER_WAS_GIVEN : 0;
            c->given = false;
        }
    }
}

bool roster_truth(struct roster *r, struct str uid, struct str container,
                  const struct card_list *has, bool late)
{
    struct roster_pod *p = roster_find(r, uid);
    if (p == NULL) {
        r->unseen = true;
        return false;
    }
    for (uint32_t i = 0; i < p->n_containers; i++) {
        struct roster_container *c = &p->containers[i];
        if (!str_eq(c->name, container))
            continue;
        if (c->has.n != ROSTER_WAS_GIVEN) {
            r->last = p;
            p->spent = p->released = false;
            r->guess.pod = NULL; /* this is what the guess was for */
        }
        c->given = true;
        c->late = late;
        c->has = *has;
    }
    return true;
}

struct roster_container *roster_container(struct roster_pod *p, struct str name)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (str_eq(p->containers[i].name, name))
            return &p->containers[i];
    }
    return NULL;
}

bool roster_agrees(const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        struct card_list said;
        roster_cards_of(p, p->containers[i].demand, &p->said, &said);
        if (!p->containers[i].given || !card_list_equal(&said, &p->containers[i].has))
            return false;
    }
    return p->n_containers > 0;
}

/* All its containers have cards. */
static bool roster_is_complete(const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (!p->containers[i].given || p->containers[i].has.n == 0)
            return false;
    }
    return p->n_containers > 0;
}

/* The first checkpoint does not say which devices are new, and which pods have started: those with
 * cards may have, also if their annotations were edited since. */
static void roster_take_over(struct roster *r)
{
    r->last = NULL;
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        if (!p->allowed && roster_is_complete(p))
            p->allowed = p->unsure = true;
        roster_check_lost(p);
    }
}

void roster_truth_end(struct roster *r, bool after_allocate)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        for (uint32_t k = 0; k < p->n_containers; k++) {
            struct roster_container *c = &p->containers[k];
            if (c->given)
                continue;
            p->released = p->released || c->has.n == ROSTER_WAS_GIVEN;
            p->held = false;
            c->has.n = 0;
        }
    }
    if (after_allocate && !r->unseen && r->guess.pod != NULL) {
        r->guess.pod->spent = true;
        r->guess.pod = NULL;
    }
    if (!r->checked)
        roster_take_over(r);
    r->checked = true;
}

static const struct demand *roster_anchor(const struct request *q)
{
    for (uint32_t i = 0; i < q->n_demands; i++) {
        if (q->demands[i].kind != CONTAINER_INIT)
            return &q->demands[i];
    }
    return &q->demands[0];
}

void roster_cards_of(const struct roster_pod *p, const struct demand *d, const struct grant_list *l,
                     struct card_list *ret)
{
    ret->n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->grants[i].container == d->index || l->grants[i].container == UINT16_MAX)
            card_list_add(ret, l->grants[i].card);
    }
    if (ret->n > 0 || d->kind != CONTAINER_INIT)
        return;
    const struct demand *anchor = roster_anchor(p->request);
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->grants[i].container == anchor->index)
            card_list_add(ret, l->grants[i].card);
    }
}

bool roster_is_off(const struct roster_pod *p, const struct roster_container *c,
                   const struct grant_list *l)
{
    struct card_list cards;
    if (!c->given || (c->late && c->has.n == 0))
        return false;
    roster_cards_of(p, c->demand, l, &cards);
    return !card_list_equal(&cards, &c->has);
}

bool roster_is_bound(const struct roster_pod *p)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        if (c->given && c->late && c->has.n > 0)
            return true;
    }
    return false;
}

bool roster_is_open(const struct roster_pod *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        if (c->given && (!c->late || c->has.n > 0))
            return false;
        n += c->given ? 1 : 0;
    }
    return n > 0;
}

bool roster_is_on(const struct roster_pod *p, uint32_t card)
{
    bool known = false;
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (card_list_has(&p->containers[i].has, card))
            return true;
        known = known || p->containers[i].has.n > 0;
    }
    return !known && p->allowed && grant_list_has(&p->plan, card);
}

int64_t roster_charge(const struct roster *r, const struct roster_pod *p,
                      const struct grant_list *there, uint32_t card)
{
    struct share shares[REQUEST_GRANTS_MAX] _uninitialized_;
    if (there->n == 0)
        return 0;
    uint32_t n = shares_of(p->request, there->grants, there->n, p->initialized, shares);
    for (uint32_t i = 0; i < n; i++) {
        if (shares[i].card == card)
            return share_charge(p->request, &shares[i], roster_total(r, card));
    }
    return 0;
}

int64_t roster_holds(const struct roster *r, const struct roster_pod *p, uint32_t card, bool sure)
{
    bool runs = p->allowed && !p->lost && (!sure || !p->unsure);
    int64_t real = 0;
    for (uint32_t i = 0; i < p->n_containers; i++) {
        const struct roster_container *c = &p->containers[i];
        if ((!c->late && !runs) || !card_list_has(&c->has, card) || !roster_is_off(p, c, &p->plan))
            continue;
        real += p->request->whole ? roster_total(r, card)
                                  : (c->demand->mem + c->has.n - 1) / (int64_t)c->has.n;
    }
    return MAX_OF(real, roster_charge(r, p, &p->plan, card));
}

int64_t roster_started_on(const struct roster *r, uint32_t card, const struct roster_pod *except)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n_pods; i++) {
        const struct roster_pod *p = r->pods[i];
        if (p != except && (p->lost || roster_has_started(r, p)))
            sum += roster_holds(r, p, card, true);
    }
    return sum;
}

uint32_t roster_given_on(const struct roster *r, uint32_t card)
{
    uint32_t n = r->guess.pod != NULL && card_list_has(&r->guess.cards, card) ? 1 : 0;
    for (size_t i = 0; i < r->n_pods; i++) {
        const struct roster_pod *p = r->pods[i];
        for (uint32_t k = 0; k < p->n_containers; k++)
            n += p->containers[k].given && p->containers[k].has.n == 1 &&
                 p->containers[k].has.cards[0] == card;
    }
    return n;
}
