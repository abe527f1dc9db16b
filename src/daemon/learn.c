/* One timer: slow while there is nothing to learn, fast while a lesson is in progress. */
#include "daemon/learn.h"

#include "base/log.h"

/* How often it looks whether there is something to learn. */
#define IDLE_MS 500

/* While a lesson is in progress: about half a millisecond of work, then a pause for requests. */
#define PAUSE_MS 1
#define WORK_NS  500000

/* A cluster where no pod comes changes, too: pods end, nodes come. */
#define STALE_MS 30000

#define NODES_A_STEP 64

static bool learn_is_due(const struct learn *l)
{
    struct str text;
    if (!l->backend->stands_by(l->backend, &text))
        return false;
    if (learned_costs_are_due(&l->cache->learned))
        return true;
    return l->cache->learned.market.solved > 0 && l->version != l->cache->changes.version &&
           loop_now_ms(l->loop) >= l->learned_ms + STALE_MS;
}

static void learn_begin_sums(struct learn *l)
{
    l->summing = true;
    l->cursor = 0;
    l->moves = l->cache->nodes.moves;
    l->waste_so_far = 0;
    l->value_so_far = 0;
}

/* Sums up some nodes. A node that comes or goes meanwhile may move others in the map, so the sums
 * begin again. True: there is more to do. */
static bool learn_sum(struct learn *l)
{
    const struct learned_costs *p = &l->cache->learned;
    if (l->moves != l->cache->nodes.moves)
        learn_begin_sums(l);
    for (unsigned i = 0; i < NODES_A_STEP; i++) {
        const struct node *n = cache_next_node(l->cache, &l->cursor);
        if (n == NULL) {
            l->summing = false;
            l->known = true;
            l->waste = l->waste_so_far;
            l->value = l->value_so_far / 1e6;
            return false;
        }
        l->waste_so_far += fgd_waste(&p->fgd, n);
        l->value_so_far += (double)market_value(&p->market, n);
    }
    return true;
}

/* True: there is more to do. */
static bool learn_step(struct learn *l)
{
    struct learned_costs *p = &l->cache->learned;
    const struct market *m = &p->market;
    uint64_t solved = m->solved;
    if (m->solve == NULL)
        return l->summing && learn_sum(l);
    if (learned_costs_step(p))
        return true;
    if (m->solved == solved) /* given up, or no memory */
        return l->summing;
    log_debug("policies learned", kv_uint("lesson", m->solved), kv_uint("pods", m->solved_arrivals),
              kv_uint("next", market_due(m)),
              kv_uint("pods_meanwhile", m->shapes.arrivals - m->solved_arrivals));
    learn_begin_sums(l);
    return true;
}

static void learn_work(struct learn *l)
{
    uint64_t began = loop_clock_ns(l->loop);
    bool more = true;
    while (more && loop_clock_ns(l->loop) < began + WORK_NS)
        more = learn_step(l);
    timer_arm(l->loop, &l->tick, more ? PAUSE_MS : IDLE_MS);
}

static void learn_ticked(struct timer *t)
{
    struct learn *l = CONTAINER_OF(t, struct learn, tick);
    bool busy = l->cache->learned.market.solve != NULL || l->summing;
    if (!busy && learn_is_due(l)) {
        l->learned_ms = loop_now_ms(l->loop);
        l->version = l->cache->changes.version;
        (void)learned_costs_begin(&l->cache->learned, &l->cache->nodes);
    }
    learn_work(l);
}

void learn_start(struct learn *l, struct loop *loop, struct cache *cache, struct backend *backend)
{
    *l = (struct learn){
        .loop = loop, .cache = cache, .backend = backend, .tick = {.fire = learn_ticked}};
    timer_arm(loop, &l->tick, IDLE_MS);
}

void learn_stop(struct learn *l)
{
    if (l->loop != NULL)
        timer_cancel(&l->tick);
    l->loop = NULL;
}
