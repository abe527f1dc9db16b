/* Keeps for each pod the list of its cards, sorted by nothing: a pod has one card, or a few. */
#include "node/roster/in_use.h"

#include "base/mem.h"
#include "core/state/pod_allocation.h"
#include "gpu/limit.h"

struct used {
    struct str uid; /* behind the struct, in the same block */
    uint64_t list;
    size_t n;
    uint32_t *cards; /* behind the struct, too */
};

void in_use_init(struct in_use *u, struct map_seed seed)
{
    *u = (struct in_use){.list = 0};
    map_init(&u->pods, offsetof(struct used, uid), seed);
}

void in_use_done(struct in_use *u)
{
    size_t cursor = 0;
    for (struct used *p = map_next(&u->pods, &cursor); p != NULL; p = map_next(&u->pods, &cursor))
        mem_free(p);
    map_done(&u->pods);
}

void in_use_begin(struct in_use *u)
{
    u->list++;
}

void in_use_gone(struct in_use *u, struct str uid)
{
    mem_free(map_del(&u->pods, uid));
}

/* The cards of a list such as "0,2"; with ret NULL only their number. */
static size_t in_use_read(struct str list, uint32_t *ret)
{
    size_t n = 0;
    uint32_t card = 0;
    for (struct str word, rest = list; rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (!placement_read_index(word, &card) || card >= LIMIT_GPU_CARDS)
            continue;
        if (ret != NULL)
            ret[n] = card;
        n++;
    }
    return n;
}

void in_use_set(struct in_use *u, const struct pod_view *view)
{
    struct request request;
    size_t listed = in_use_read(view->idx, NULL);
    size_t n = listed + view->n_grants;
    in_use_gone(u, view->uid);
    /* Any author can write the annotations; a container gets a card only if its spec asks for one.
     * Of a request that can't be read, the readable containers count. */
    enum errc readable = request_read(view, &request, NULL);
    assert(readable != ERR_NOMEM);
    if (pod_view_terminal(view) || n == 0 || !request_shares(&request))
        return;
    struct used *p = mem_alloc(sizeof(*p) + n * sizeof(*p->cards) + view->uid.n);
    if (p == NULL) {
        u->unknown = true;
        return;
    }
    p->cards = (uint32_t *)(void *)(p + 1);
    (void)in_use_read(view->idx, p->cards);
    for (size_t i = 0; i < view->n_grants; i++)
        p->cards[listed + i] = view->grants[i].card;
    char *at = (char *)(p->cards + n);
    p->uid = str_store(&at, view->uid);
    p->n = n;
    p->list = u->list;
    if (map_put(&u->pods, p) == OK)
        return;
    mem_free(p);
    u->unknown = true;
}

void in_use_end(struct in_use *u)
{
    size_t cursor = 0;
    for (struct used *p = map_next(&u->pods, &cursor); p != NULL; p = map_next(&u->pods, &cursor)) {
        if (p->list == u->list)
            continue;
        (void)map_del(&u->pods, p->uid);
        mem_free(p);
        cursor--;
    }
}

bool in_use_has(const struct in_use *u, uint32_t index)
{
    size_t cursor = 0;
    if (u->unknown)
        return true;
    for (const struct used *p = map_next(&u->pods, &cursor); p != NULL;
         p = map_next(&u->pods, &cursor)) {
        for (size_t i = 0; i < p->n; i++) {
            if (p->cards[i] == index)
                return true;
        }
    }
    return false;
}
