/* Reads and writes lists of devices. */
#include "core/state/vgpu.h"

/* Whether this item of the list stands for no device: HAMi's scheduler writes ",,0,0" for a
 * container without cards. An item that names no card but has an amount is a device. */
static bool vgpu_is_none(struct str uuid, struct str tail)
{
    struct str type;
    (void)str_cut(tail, ',', &type, &tail);
    for (size_t i = 0; i < tail.n; i++) {
        if (tail.p[i] != '0' && tail.p[i] != ',')
            return false;
    }
    return str_trim(uuid).n == 0;
}

/* The next device of the list, with its UUID. False: there is none. What has no comma is not a
 * device, also for the plugins. */
static bool vgpu_next(struct str *rest, struct str *ret_uuid, struct str *ret_tail)
{
    while (rest->n > 0) {
        size_t n = 0;
        while (n < rest->n && rest->p[n] != ':' && rest->p[n] != ';')
            n++;
        struct str one = {rest->p, n};
        *rest = str_skip(*rest, MIN_OF(n + 1, rest->n));
        if (str_cut(one, ',', ret_uuid, ret_tail) && !vgpu_is_none(*ret_uuid, *ret_tail))
            return true;
    }
    return false;
}

/* The most that a container with cards of its own has of a card of size `total`. */
static struct share vgpu_most(const struct request *r, int64_t total)
{
    struct share most = {.mem = 0};
    for (uint32_t i = 0; i < r->n_demands; i++) {
        const struct demand *d = &r->demands[i];
        most.mem = MAX_OF(most.mem, demand_part_of(r, d, total));
        most.cores = MAX_OF(most.cores, d->cores / d->cards);
    }
    return most;
}

/* What each card of the container has by the pod's spec; NULL: of the only container, or of one
 * that is not known. A list with less was changed since the plugin has read it. */
static struct share vgpu_least(const struct request *r, const struct demand *d)
{
    if (request_by_container(r) && d == NULL)
        return vgpu_most(r, 0);
    if (request_by_container(r))
        return (struct share){.mem = d->mem / d->cards, .cores = d->cores / d->cards};
    if (r->n_demands != 1)
        return (struct share){.mem = 0};
    d = &r->demands[0];
    return (struct share){.mem = d->mem / request_cards(r), .cores = d->cores / request_cards(r)};
}

static struct grant vgpu_read_tail(struct str tail, const struct request *r, const struct demand *d)
{
    struct str type;
    struct str mem;
    struct str cores;
    uint64_t m = 0;
    uint64_t c = 0;
    (void)str_cut(tail, ',', &type, &tail);
    (void)str_cut(tail, ',', &mem, &tail);
    (void)str_cut(tail, ',', &cores, &tail);
    bool has_mem = str_to_u64(mem, (uint64_t)REQUEST_MEM_MAX / REQUEST_GRANTS_MAX, &m);
    bool has_cores = str_to_u64(cores, REQUEST_CORES_MAX, &c);
    struct share least = vgpu_least(r, d);
    return (struct grant){.mem = has_mem ? MAX_OF((int64_t)m, least.mem) : r->mem,
                          .cores = has_cores ? (uint16_t)MAX_OF((uint32_t)c, least.cores)
                                             : REQUEST_CORES_MAX,
                          .card = INT32_MAX,
                          .container = UINT16_MAX};
}

/* The container of a part of the list, as in grant.container. */
static uint32_t vgpu_container_of(const struct pod_view *pod, enum dialect dialect, uint32_t part)
{
    if (!dialect_facts(dialect)->inits_first)
        return part;
    uint32_t inits = (uint32_t)pod->n_inits;
    return part < inits ? (uint32_t)pod->n_mains + part : part - inits;
}

static bool vgpu_has_inits(const struct request *r)
{
    for (uint32_t i = 0; i < r->n_demands; i++) {
        if (r->demands[i].kind == CONTAINER_INIT)
            return true;
    }
    return false;
}

/* Whether each part is at its container's place. HAMi's scheduler leaves out containers without
 * cards: then a part may seem to be one of an init container, which ends, and be another's. */
static bool vgpu_is_placed(const struct pod_view *pod, const struct request *r)
{
    struct str list = pod->said[r->dialect].idx;
    size_t parts = list.n > 0 && list.p[list.n - 1] != ';' ? 1 : 0;
    if (!dialect_facts(r->dialect)->inits_first || !vgpu_has_inits(r))
        return true;
    for (size_t i = 0; i < list.n; i++)
        parts += list.p[i] == ';' ? 1 : 0;
    return parts == (size_t)pod->n_inits + pod->n_mains;
}

void vgpu_read(const struct pod_view *pod, const struct request *r, struct placement *ret)
{
    struct str rest = pod->said[r->dialect].idx;
    bool placed = vgpu_is_placed(pod, r);
    ret->n = 0;
    for (uint32_t part = 0; rest.n > 0; part++) {
        struct str devices;
        struct str uuid;
        struct str tail;
        uint32_t container = placed ? vgpu_container_of(pod, r->dialect, part) : UINT16_MAX;
        (void)str_cut(rest, ';', &devices, &rest);
        while (ret->n < REQUEST_GRANTS_MAX && vgpu_next(&devices, &uuid, &tail)) {
            struct grant *g = &ret->grants[ret->n++];
            *g = vgpu_read_tail(tail, r, request_demand(r, container));
            if (request_by_container(r))
                g->container = (uint16_t)MIN_OF(container, (uint32_t)UINT16_MAX);
        }
    }
}

/* Behind the UUID the name of a MIG slice can be: GPU-a[1-0]. */
static uint32_t vgpu_find(struct str uuid, const struct node *on)
{
    struct str card;
    struct str slice;
    (void)str_cut(uuid, '[', &card, &slice);
    return node_find_card(on, card);
}

/* The pod's author may have changed the list: a percentage of the card is the least. */
static void vgpu_raise(const struct request *r, const struct node *on, struct grant *g)
{
    if (!request_by_container(r) || g->card >= INT32_MAX)
        return;
    const struct demand *d = request_demand(r, g->container);
    int64_t total = on->sizes->cards[g->card].total; /* those of the node may not be set yet */
    g->mem = MAX_OF(g->mem, d == NULL ? vgpu_most(r, total).mem : demand_part_of(r, d, total));
}

void vgpu_locate(struct str list, const struct request *r, const struct node *on,
                 struct grant *grants, uint32_t n)
{
    struct str rest = list;
    struct str uuid;
    struct str tail;
    for (uint32_t i = 0; i < n && vgpu_next(&rest, &uuid, &tail); i++) {
        grants[i].card = vgpu_find(uuid, on);
        vgpu_raise(r, on, &grants[i]);
    }
}

static bool vgpu_part_falls_short(struct str devices, const struct request *r,
                                  const struct demand *d, const struct node *on)
{
    struct str uuid;
    struct str tail;
    while (vgpu_next(&devices, &uuid, &tail)) {
        uint32_t card = vgpu_find(uuid, on);
        if (card < on->n_cards &&
            vgpu_read_tail(tail, r, d).mem < demand_part_of(r, d, on->cards[card].total))
            return true;
    }
    return false;
}

bool vgpu_falls_short(struct str list, const struct request *r, const struct node *on)
{
    for (uint32_t i = 0; i < r->n_demands; i++) {
        struct str devices;
        (void)str_cut(list, ';', &devices, &list);
        if (vgpu_part_falls_short(devices, r, &r->demands[i], on))
            return true;
    }
    return false;
}

void vgpu_write(const struct grant *grants, uint32_t n, const struct node *on, struct buf *out)
{
    struct uuid_room room _uninitialized_;
    for (uint32_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        assert(g->card < on->n_cards);
        struct str uuid = node_card_uuid(on, (uint32_t)g->card, &room);
        buf_printf(out, "%s%.*s,NVIDIA,%lld,%u:",
                   i > 0 && g->container != grants[i - 1].container ? ";" : "", STR_ARG(uuid),
                   (long long)g->mem, g->cores);
    }
}

static void vgpu_close_parts(struct buf *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buf_put(out, STR(";"));
}

/* The place of a container in the list: the reverse of vgpu_container_of. */
static uint32_t vgpu_part_of(const struct pod_view *view, bool inits, uint32_t container)
{
    if (!inits)
        return container;
    return container >= view->n_mains ? container - view->n_mains : container + view->n_inits;
}

/* Volcano's plugin counts spec.containers alone, and its last one is not closed. */
void vgpu_write_pod(struct str list, const struct request *r, const struct pod_view *view,
                    struct buf *out)
{
    bool inits = dialect_facts(r->dialect)->inits_first;
    uint32_t all = view->n_mains + (inits ? view->n_inits : 0);
    uint32_t at = 0;
    struct str rest = list;
    assert(r->n_demands > 0);
    for (uint32_t i = 0; i < r->n_demands; i++) {
        uint32_t part = vgpu_part_of(view, inits, r->demands[i].index);
        struct str devices;
        assert(part >= at);
        vgpu_close_parts(out, part - at);
        at = part;
        (void)str_cut(rest, ';', &devices, &rest);
        buf_put(out, devices);
    }
    if (inits)
        vgpu_close_parts(out, all > at ? all - at : 1);
}

struct str vgpu_trim(struct str list)
{
    while (list.n > 0 && list.p[0] == ';')
        list = str_skip(list, 1);
    while (list.n > 0 && list.p[list.n - 1] == ';')
        list.n--;
    return list;
}
