/* Checks that a Binding says what was decided and gives the pod what its spec asks for. */
#include "oracle.h"

#include "api/plugins.h"
#include "server.h"

/* The index, such as "0,2", names all decided cards. */
static void check_index(const struct order *o, const struct decision *d)
{
    struct text wanted = {.p = NULL};
    int64_t first = -1;
    for (int64_t card = 0; card < MAX_CARDS; card++) {
        if (!decision_has(d, card))
            continue;
        text_z(&wanted, wanted.n == 0 ? "" : ",");
        text_f(&wanted, "%lld", (long long)card);
        first = first < 0 ? card : first;
    }
    sim_check(str_eq(text_str(&wanted), name_str(&o->is.idx)));
    sim_check(o->is.plugin != PLUGIN_GPUSHARE || name_is(&o->is.dev, d->total[first]));
    text_done(&wanted);
}

static int64_t sum_of(const struct grants_object *g, int64_t container, int64_t card)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < g->n; i++) {
        if ((container < 0 || g->at[i].container == container) &&
            (card < 0 || g->at[i].card == card))
            sum += g->at[i].amount;
    }
    return sum;
}

static bool some_lasts(const struct pod_object *p)
{
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (container_object_asks(p, i) && p->containers[i].kind != CONTAINER_INIT)
            return true;
    }
    return false;
}

/* Each lasting container gets what it asks for, in equal parts if it is on several cards. */
static void check_amounts(const struct pod_object *p, const struct order *o)
{
    unsigned cards = pod_object_cards(p);
    bool more = p->whole || p->percent > 0;
    int64_t cores = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct container_object *c = &p->containers[i];
        int64_t key = container_object_key(p, i);
        if (c->kind == CONTAINER_INIT && some_lasts(p))
            continue;
        int64_t mem = sum_of(&o->is.allocation, key, -1);
        sim_check(pod_object_plain(p) || (more ? mem >= c->mem : mem == c->mem));
        sim_check(sum_of(&o->is.cores, key, -1) == c->cores);
        cores += c->cores;
        for (int64_t card = 0; cards > 1 && card < MAX_CARDS; card++) {
            int64_t part = sum_of(&o->is.allocation, key, card);
            sim_check(part == 0 || (more ? part >= c->mem / cards : part == c->mem / cards));
        }
    }
    sim_check(o->is.cores.there == (cores > 0));
}

/*
 * The Binding of a plain pod has no allocation. Exception: a pod that had one gets one with the
 * decided card, or an empty one.
 */
static void check_allocation(const struct pod_object *p, const struct order *o,
                             const struct decision *d)
{
    const struct grants_object *g = &o->is.allocation;
    sim_check(pod_object_plain(p) ? !g->there || p->was_allocated : g->there);
    if (!pod_object_plain(p) || !g->there || g->n == 0)
        return;
    sim_check(g->n == 1 && decision_has(d, g->at[0].card));
    sim_check(g->at[0].amount == pod_object_mem(p));
}

/* The annotations of elastic-gpu and gpu-manager name each container that asks once, with as many
 * cards as it asks for. */
static void check_seats(const struct pod_object *p, const struct order *o)
{
    unsigned named = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        unsigned cards = 0;
        for (unsigned k = 0; k < o->is.allocation.n; k++)
            cards += o->is.allocation.at[k].container == i ? 1 : 0;
        sim_check(cards == (container_object_asks(p, i) ? pod_object_cards(p) : 0));
        named += cards;
    }
    sim_check(named == o->is.allocation.n);
}

/* The list of HAMi's family gives each container different cards, and of each what it asks for. */
static void check_devices(const struct pod_object *p, const struct order *o,
                          const struct decision *d)
{
    unsigned named = 0;
    int64_t cards = pod_object_cards(p);
    sim_check(strcmp(o->is.assigned.z, "allocating") == 0);
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct container_object *c = &p->containers[i];
        uint64_t its = 0;
        for (unsigned k = 0; k < o->is.allocation.n; k++) {
            int64_t card = o->is.allocation.at[k].card;
            if (o->is.allocation.at[k].container != i)
                continue;
            sim_check(card < MAX_CARDS && (its >> card & 1) == 0);
            its |= (uint64_t)1 << card;
            /* It is written when the card is reserved; the card may have shrunk since. */
            int64_t amount = o->is.allocation.at[k].amount;
            int64_t part = p->percent > 0 ? hami_part(p->percent, d->first->total[card]) : 0;
            sim_check(amount == MAX_OF(c->mem / cards, part));
            sim_check(p->percent == 0 || amount >= hami_part(p->percent, d->total[card]));
            sim_check(o->is.allocation.at[k].cores == c->cores / cards);
            named++;
        }
        sim_check(__builtin_popcountll(its) == (container_object_asks(p, i) ? cards : 0));
    }
    sim_check(named == o->is.allocation.n);
}

static void check_annotations(const struct pod_object *p, const struct order *o,
                              const struct decision *d)
{
    sim_check(o->is.plugin == p->plugin);
    if (p->plugin == PLUGIN_ELASTIC || p->plugin == PLUGIN_TENCENT) {
        check_seats(p, o);
        sim_check(p->plugin == PLUGIN_ELASTIC || strcmp(o->is.assigned.z, "false") == 0);
        return;
    }
    if (plugin_has_devices(p->plugin)) {
        check_devices(p, o, d);
        return;
    }
    check_index(o, d);
    sim_check(strcmp(o->is.assigned.z, "false") == 0);
    if (p->plugin != PLUGIN_GPUSHARE)
        return;
    check_allocation(p, o, d);
    check_amounts(p, o);
    sim_check(name_is(&o->is.mem, pod_object_mem(p)));
}

/* The allocation names exactly the decided cards, and gives on each at most its size. */
void order_check(const struct order *o, const struct decision *d)
{
    struct pod_object p = store.pods[d->slot];
    struct slices all;
    uint64_t cards = 0;
    check_annotations(&p, o, d);
    p.allocation = (struct grants_object){.there = false};
    binding_annotate(&o->is, &p);
    pod_object_slices(&p, false, &all);
    for (unsigned i = 0; i < all.n; i++) {
        cards |= (uint64_t)1 << all.at[i].card;
        int64_t total = d->total[all.at[i].card];
        sim_check(slice_charge(&p, &all.at[i], total) <= total && all.at[i].cores <= 100);
        if (p.plugin == PLUGIN_GPUSHARE && o->is.allocation.there && p.whole && some_lasts(&p))
            sim_check(sum_of(&o->is.allocation, -1, all.at[i].card) == total);
    }
    sim_check(cards == d->cards);
    sim_check(all.n == pod_object_cards(&p) || pod_object_cards(&p) == 1);
}

/* A pod is bound with the request that was reserved, whatever its author writes meanwhile. An API
 * server before 1.27 binds it all the same. */
void order_check_request(const struct order *o, const struct pod_object *p)
{
    const struct proc *sender = &procs[o->sender];
    if (!world.set.preconditions || !proc_runs(sender) || sender->incarnation != o->incarnation ||
        !pod_object_named(p))
        return;
    const struct pod *its = cache_pod(&sender->daemon.service.cache, name_str(&p->uid));
    if (its != NULL && its->state == POD_RESERVED)
        sim_check(its->request->percent == p->percent);
}

void oracle_sent(const struct proc *p, uint64_t sent_ms)
{
    uint64_t lasts_ms = sim_loop_really_ms(p, world.set.own[p->id].renew_ms);
    trace("sent", STR(""), p->id, (int64_t)sent_ms);
    sim_check(!world.set.elects || sent_ms <= leases_renewed_ms(p->id) + lasts_ms + 1);
}
