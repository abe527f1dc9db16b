/*
 * A node on the first line and a pod behind it, in any dialect: the cache keeps its invariants
 * while the pod comes and goes, and what the Binding says is read back as the same cards.
 */
#include "core/cache/cache.h"
#include "core/state/vgpu.h"
#include "objects/kube.h"
#include "objects/seats.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_both(const uint8_t *data, size_t size, struct arena *a, struct node_view *node,
                      struct pod_view *pod)
{
    struct jread r;
    struct err err = ERR_INIT;
    struct str first;
    struct str rest;
    (void)str_cut((struct str){(const char *)data, size}, '\n', &first, &rest);
    jread_init(&r, first, a);
    kube_read_node(&r, a, node);
    if (jread_finish(&r, &err) != OK || node->name.n == 0)
        return false;
    jread_init(&r, rest, a);
    kube_read_pod(&r, a, pod);
    return jread_finish(&r, &err) == OK && pod->uid.n > 0 && pod->name.n > 0;
}

static enum errc apply(struct cache *c, const struct cache_event *e, struct effect *fx)
{
    enum errc code = cache_apply(c, e, 1, fx);
    cache_check(c);
    return code;
}

/* Whether the agent finds the cards that the cache charged. */
static void check_cards(const struct pod *p, const struct pod_view *view)
{
    struct pod_view pod = *view;
    struct binding_seat seats[REQUEST_DEMANDS_MAX];
    struct seat_view said[REQUEST_DEMANDS_MAX];
    struct placement there;
    struct buf texts;
    enum dialect d = p->request->dialect;
    buf_init(&texts, SIZE_MAX);
    if (dialect_has_uuids(d)) {
        vgpu_write_pod(pod_list(p), p->request, view, &texts);
        pod.said[d].idx = buf_str(&texts);
    } else if (dialect_facts(d)->seat.p == NULL) {
        for (uint32_t i = 0; i < p->allocation->n_shares; i++)
            buf_printf(&texts, "%s%u", i == 0 ? "" : ",", p->allocation->shares[i].card);
        pod.said[d].idx = buf_str(&texts);
    } else {
        pod.n_seats = seats_write(p->allocation, p->request, view, &texts, seats);
        for (size_t i = 0; i < pod.n_seats; i++)
            said[i] =
                (struct seat_view){.dialect = d,
                                   .container = str_skip(seats[i].key, dialect_facts(d)->seat.n),
                                   .cards = seats[i].cards};
        pod.seats = said;
    }
    placement_read(&pod, p->request, &there);
    if (dialect_has_uuids(d))
        vgpu_locate(pod.said[d].idx, p->request, p->node, there.grants, there.n);
    if (!pod_allocation_has(p->allocation, &there))
        abort();
    buf_done(&texts);
}

/* Whether each container has a name of its own, as the API server demands. */
static bool has_names(const struct pod_view *pod)
{
    for (size_t i = 0; i < pod->n_containers; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_eq(pod->containers[i].name, pod->containers[j].name))
                return false;
        }
    }
    return true;
}

static void bind_pod(struct cache *c, const struct node_view *node, const struct pod_view *pod)
{
    struct request request;
    struct effect fx;
    struct err err = ERR_INIT;
    if (request_read(pod, &request, &err) != OK || !request_shares(&request))
        return;
    struct cache_event reserve = {.type = CACHE_RESERVE,
                                  .reserve = {.uid = pod->uid,
                                              .namespace = pod->namespace,
                                              .name = pod->name,
                                              .node = node->name,
                                              .request = &request}};
    if (apply(c, &reserve, &fx) != OK)
        return;
    for (uint32_t i = 0; i < fx.pod->node->n_cards; i++) {
        const struct card *card = &fx.pod->node->cards[i];
        if (card->used > card->total || card->cores > REQUEST_CORES_MAX)
            abort();
    }
    if (request.dialect != DIALECT_GPUSHARE && has_names(pod))
        check_cards(fx.pod, pod);
}

/* The node goes and comes back: the pod holds what it held before. */
static void check_return(struct cache *c, const struct cache_event *set)
{
    struct effect fx;
    const struct node *n = cache_node(c, set->node.name);
    int64_t used = n->used;
    int64_t unplaced = n->unplaced;
    struct cache_event gone = {.type = CACHE_NODE_GONE, .node = {.name = set->node.name}};
    (void)apply(c, &gone, &fx);
    if (apply(c, set, &fx) != OK)
        abort();
    n = cache_node(c, set->node.name);
    if (n->used != used || n->unplaced != unplaced)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct cache cache;
    struct effect fx;
    struct node_view node;
    struct pod_view pod;
    dialects_use(DIALECT_BIT(DIALECT_COUNT) - 1);
    arena_init(&arena, MIB);
    cache_init(&cache, (struct map_seed){1, 2});
    if (read_both(data, size, &arena, &node, &pod)) {
        struct cache_event set = {.type = CACHE_NODE_SET, .node = node};
        if (apply(&cache, &set, &fx) != OK)
            abort();
        if (pod_view_bound(&pod)) {
            struct cache_event shown = {.type = CACHE_POD_SET, .pod = pod};
            (void)apply(&cache, &shown, &fx);
            check_return(&cache, &set);
            struct cache_event gone = {.type = CACHE_POD_GONE, .pod = {.uid = pod.uid}};
            (void)apply(&cache, &gone, &fx);
            const struct node *n = cache_node(&cache, node.name);
            if (n == NULL || n->used != 0)
                abort();
        } else {
            bind_pod(&cache, &node, &pod);
        }
    }
    cache_done(&cache);
    arena_done(&arena);
    return 0;
}
