/* Adds nodes until the pending pods run. A pod that fits on an empty node of that shape needs one
 * at most, so there is never a reason to add more nodes than pods wait. */
#include "sim/sim_fit.h"

#include "core/limit.h"
#include "core/quantity.h"

/* ---- the node to add ---- */

static enum errc grow_number(struct str key, struct str value, uint64_t most, uint64_t *ret,
                             struct err *e)
{
    struct quantity q;
    if (quantity_parse(value, &q) == OK && q.whole && !q.saturated && q.value >= 0 &&
        (uint64_t)q.value <= most) {
        *ret = (uint64_t)q.value;
        return OK;
    }
    return err_set(e, ERR_RANGE, "--add: %.*s: \"%.*s\" is not a whole number up to %llu",
                   STR_ARG(key), STR_ARG(value), (unsigned long long)most);
}

struct wanted_node {
    uint64_t cpu;
    uint64_t memory;
    uint64_t cards;
    uint64_t card_memory;
    bool has_cpu;
    bool has_memory;
};

static enum errc grow_read_field(struct str key, struct str value, struct wanted_node *w,
                                 struct sim_node *ret, struct err *e)
{
    if (str_eq(key, STR("cpu"))) {
        w->has_cpu = true;
        return grow_number(key, value, 1000000, &w->cpu, e);
    }
    if (str_eq(key, STR("memory"))) {
        w->has_memory = true;
        return grow_number(key, value, (uint64_t)HOST_MEMORY_MAX, &w->memory, e);
    }
    if (str_eq(key, STR("cards")))
        return grow_number(key, value, LIMIT_CARDS, &w->cards, e);
    if (str_eq(key, STR("card-memory")))
        return grow_number(key, value, (uint64_t)REQUEST_MEM_MAX, &w->card_memory, e);
    if (str_eq(key, STR("model"))) {
        ret->view.model = value;
        return OK;
    }
    return err_set(e, ERR_SYNTAX,
                   "--add: \"%.*s\" must be cpu, memory, cards, card-memory or model",
                   STR_ARG(key));
}

static struct str grow_print(struct arena *a, uint64_t n)
{
    char text[24];
    struct buf b = BUF_ON(text);
    buf_put_u64(&b, n);
    return arena_dup(a, buf_str(&b));
}

enum errc grow_read_node(struct str text, struct arena *arena, struct sim_node *ret,
                         struct err *reterr)
{
    struct wanted_node w = {.cpu = 0};
    struct str rest = text;
    enum errc code = OK;
    *ret = (struct sim_node){.view = {.name = STR_NULL}};
    while (code == OK && rest.p != NULL) {
        struct str part;
        struct str key;
        struct str value;
        (void)str_cut(rest, ',', &part, &rest);
        if (!str_cut(part, '=', &key, &value))
            return err_set(reterr, ERR_SYNTAX, "--add: \"%.*s\" must be KEY=VALUE", STR_ARG(part));
        code = grow_read_field(key, value, &w, ret, reterr);
    }
    if (code == OK && (w.cards == 0 || w.card_memory == 0))
        return err_set(reterr, ERR_SYNTAX, "--add: name cards and card-memory");
    ret->view.mem = grow_print(arena, w.cards * w.card_memory);
    ret->view.mem_allocatable = ret->view.mem;
    ret->view.count = grow_print(arena, w.cards);
    ret->view.cpu = w.has_cpu ? grow_print(arena, w.cpu) : STR_NULL;
    ret->view.memory = w.has_memory ? grow_print(arena, w.memory) : STR_NULL;
    return code;
}

/* ---- how many ---- */

struct growing {
    const struct sim_args *args;
    struct sim_workload workload; /* with room for all nodes that may be added */
    uint32_t n_nodes;             /* that are there */
};

static enum errc grow_try(struct growing *g, uint32_t nodes, uint32_t *ret, struct err *e)
{
    struct world world;
    struct world_settings s = {.workload = &g->workload,
                               .policy = &g->args->policies[0],
                               .ties = g->args->ties,
                               .held = SIM_HELD_ALL,
                               .seed = g->args->first_seed,
                               .checked = g->args->checked};
    *ret = 0;
    g->workload.n_nodes = g->n_nodes + nodes;
    enum errc code = world_init(&world, &s, e);
    for (uint32_t i = 0; i < g->workload.n_pending && code == OK; i++) {
        struct world_pod pod;
        bool placed = false;
        code = world_arrive(&world, g->workload.pending[i], &placed, &pod, e);
        *ret += placed ? 1 : 0;
    }
    world_done(&world);
    return code;
}

static enum errc grow_make_room(struct growing *g, const struct sim_node *add, struct arena *arena,
                                struct err *e)
{
    struct sim_workload *w = &g->workload;
    struct sim_node *nodes = arena_array(arena, (size_t)w->n_nodes + w->n_pending, sizeof(*nodes));
    if (nodes == NULL)
        return err_set(e, arena_fault(arena), "out of memory");
    memcpy(nodes, w->nodes, w->n_nodes * sizeof(*nodes));
    for (uint32_t i = 0; i < w->n_pending; i++) {
        char name[64];
        struct buf b = BUF_ON(name);
        buf_printf(&b, "added by cardpack-sim %u", i + 1); /* no node has a name with spaces */
        nodes[w->n_nodes + i] = *add;
        nodes[w->n_nodes + i].view.name = arena_dup(arena, buf_str(&b));
    }
    w->nodes = nodes;
    return arena_failed(arena) ? err_set(e, arena_fault(arena), "out of memory") : OK;
}

/* The least number of nodes up to `most` with which as many pods run as with `most`. With one node
 * more a pod may be placed worse, so that fewer run; then the number is not the least one, but the
 * pods run with it. */
static enum errc grow_search(struct growing *g, uint32_t most, struct grow_answer *ret,
                             struct err *e)
{
    uint32_t low = 0;
    uint32_t high = most;
    enum errc code = OK;
    while (code == OK && high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t run = 0;
        code = grow_try(g, middle, &run, e);
        if (run >= ret->run)
            high = middle;
        else
            low = middle;
    }
    ret->nodes = high;
    return code;
}

enum errc grow_run(const struct sim_workload *w, const struct sim_node *add,
                   const struct sim_args *a, struct arena *arena, struct grow_answer *ret,
                   struct err *reterr)
{
    struct growing g = {.args = a, .workload = *w, .n_nodes = w->n_nodes};
    *ret = (struct grow_answer){.pending = w->n_pending};
    enum errc code = grow_make_room(&g, add, arena, reterr);
    if (code == OK)
        code = grow_try(&g, 0, &ret->run_now, reterr);
    if (code != OK)
        return code;
    ret->run = ret->run_now;
    if (ret->run_now < w->n_pending)
        code = grow_try(&g, w->n_pending, &ret->run, reterr);
    return code == OK && ret->run > ret->run_now ? grow_search(&g, w->n_pending, ret, reterr)
                                                 : code;
}
