/* Reads and writes lists of devices. */
#include "core/vgpu.h"

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
        if (str_cut(one, ',', ret_uuid, ret_tail))
            return true;
    }
    return false;
}

/* What each card of the only container has by the pod's spec. A list with less was changed since
 * the plugin has read it. With several containers it is not known which entry is for which. */
static struct share vgpu_least(const struct request *r)
{
    const struct demand *d = &r->demands[0];
    if (r->n_demands != 1)
        return (struct share){.mem = 0};
    return (struct share){.mem = d->mem / request_cards(r), .cores = d->cores / request_cards(r)};
}

static struct grant vgpu_read_tail(struct str tail, const struct request *r)
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
    struct share least = vgpu_least(r);
    return (struct grant){.mem = has_mem ? MAX_OF((int64_t)m, least.mem) : r->mem,
                          .cores = has_cores ? (uint16_t)MAX_OF((uint32_t)c, least.cores)
                                             : REQUEST_CORES_MAX,
                          .card = INT32_MAX,
                          .container = UINT16_MAX};
}

void vgpu_read(struct str list, const struct request *r, struct placement *ret)
{
    struct str rest = list;
    struct str uuid;
    struct str tail;
    ret->n = 0;
    while (ret->n < REQUEST_GRANTS_MAX && vgpu_next(&rest, &uuid, &tail))
        ret->grants[ret->n++] = vgpu_read_tail(tail, r);
}

/* Behind the UUID the name of a MIG slice can be: GPU-a[1-0]. */
static uint32_t vgpu_find(struct str uuid, const struct node_sizes *sizes)
{
    struct str card;
    struct str slice;
    (void)str_cut(uuid, '[', &card, &slice);
    for (uint32_t i = 0; sizes != NULL && sizes->infos != NULL && i < sizes->n_cards; i++) {
        if (card.n > 0 && str_eq(sizes->infos[i].uuid, card))
            return i;
    }
    return INT32_MAX;
}

void vgpu_locate(struct str list, const struct node_sizes *sizes, struct grant *grants, uint32_t n)
{
    struct str rest = list;
    struct str uuid;
    struct str tail;
    for (uint32_t i = 0; i < n && vgpu_next(&rest, &uuid, &tail); i++)
        grants[i].card = vgpu_find(uuid, sizes);
}

void vgpu_write(const struct grant *grants, uint32_t n, const struct node_sizes *sizes,
                struct buf *out)
{
    assert(sizes != NULL && sizes->infos != NULL);
    for (uint32_t i = 0; i < n; i++) {
        const struct grant *g = &grants[i];
        assert(g->card < sizes->n_cards);
        buf_printf(out, "%.*s,NVIDIA,%lld,%u:", STR_ARG(sizes->infos[g->card].uuid),
                   (long long)g->mem, g->cores);
    }
}

static void vgpu_close_parts(struct buf *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buf_put(out, STR(";"));
}

/* Volcano's plugin counts spec.containers alone, and its last one is not closed. */
void vgpu_write_pod(struct str list, const struct request *r, const struct pod_view *view,
                    struct buf *out)
{
    assert(r->n_demands == 1);
    bool inits = dialect_facts(r->dialect)->inits_first;
    uint32_t index = r->demands[0].index;
    vgpu_close_parts(out, index + (inits ? view->n_inits : 0));
    buf_put(out, list);
    if (inits)
        vgpu_close_parts(out, view->n_mains > index ? view->n_mains - index : 1);
}

struct str vgpu_trim(struct str list)
{
    while (list.n > 0 && list.p[0] == ';')
        list = str_skip(list, 1);
    while (list.n > 0 && list.p[list.n - 1] == ';')
        list.n--;
    return list;
}
