/* Writes the cards of each container as an annotation of its own. */
#include "objects/seats.h"

/* Absent: the pod has no such container. */
static struct str seats_name(const struct pod_view *pod, uint32_t index)
{
    const struct container_view *c = pod_view_container(pod, index);
    return c == NULL ? STR_NULL : c->name;
}

/* The cards of the container's own grants, or of those of the whole pod. */
static void seats_put_cards(struct buf *out, const struct pod_allocation *h, uint32_t container)
{
    const char *between = "";
    for (uint32_t i = 0; i < h->n_grants; i++) {
        const struct grant *g = &h->grants[i];
        if (g->container != container && g->container != UINT16_MAX)
            continue;
        buf_printf(out, "%s%u", between, g->card);
        between = ",";
    }
}

uint32_t seats_write(const struct pod_allocation *h, const struct request *r,
                     const struct pod_view *pod, struct buf *out,
                     struct binding_seat ret[static REQUEST_DEMANDS_MAX])
{
    size_t ends[REQUEST_DEMANDS_MAX][2];
    size_t from = out->n;
    assert(r->n_demands > 0 && r->n_demands <= REQUEST_DEMANDS_MAX);
    for (uint32_t i = 0; i < r->n_demands; i++) {
        uint32_t index = r->demands[i].index;
        buf_put(out, dialect_facts(r->dialect)->seat);
        if (dialect_facts(r->dialect)->seat_index)
            buf_put_u64(out, index);
        else
            buf_put(out, seats_name(pod, index));
        ends[i][0] = out->n;
        seats_put_cards(out, h, index);
        ends[i][1] = out->n;
    }
    if (buf_failed(out))
        return 0;
    for (uint32_t i = 0; i < r->n_demands; i++) {
        ret[i] = (struct binding_seat){.key = {out->p + from, ends[i][0] - from},
                                       .cards = {out->p + ends[i][0], ends[i][1] - ends[i][0]}};
        from = ends[i][1];
    }
    return r->n_demands;
}

static bool seats_is_there(const struct pod_view *pod, enum dialect dialect,
                           const struct binding_seat *s)
{
    struct str container = str_skip(s->key, dialect_facts(dialect)->seat.n);
    for (size_t i = 0; i < pod->n_seats; i++) {
        const struct seat_view *its = &pod->seats[i];
        if (its->dialect == dialect && str_eq(its->container, container))
            return str_eq(its->cards, s->cards);
    }
    return false;
}

bool seats_are_there(const struct pod_view *pod, enum dialect dialect,
                     const struct binding_seat *seats, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!seats_is_there(pod, dialect, &seats[i]))
            return false;
    }
    return true;
}
