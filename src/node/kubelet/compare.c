/* Whether the kubelet's list of devices agrees with the annotations. */
#include "node/kubelet/compare.h"

static const struct roster_container *compare_container(const struct roster_pod *p, struct str name)
{
    for (uint32_t i = 0; i < p->n_containers; i++) {
        if (str_eq(p->containers[i].name, name))
            return &p->containers[i];
    }
    return NULL;
}

/* Whether all devices are this pod's by the checkpoint. Its containers can share some: an init
 * container passes them on. */
static bool compare_owner(const struct pod_container *c, const struct checkpoint_file *t,
                          const struct roster_pod *p, uint32_t *ret_n)
{
    bool own = true;
    *ret_n = 0;
    for (size_t i = 0; i < c->n_devices; i++) {
        const struct pod_devices *d = &c->devices[i];
        if (!str_eq(d->resource, t->resource))
            continue;
        *ret_n += (uint32_t)d->n_ids;
        for (size_t k = 0; k < d->n_ids && t->loaded && own; k++) {
            const struct checkpoint_entry *e = checkpoint_file_owner(t, d->ids[k]);
            own = e != NULL && str_eq(e->pod_uid, p->uid);
        }
    }
    return own;
}

static void compare_add(struct comparison *ret, enum usage_difference_kind kind,
                        const struct roster_pod *p, const struct roster_container *c)
{
    if (ret->n == COMPARE_MAX) {
        ret->left_out++;
        return;
    }
    struct difference *d = &ret->items[ret->n++];
    *d = (struct difference){.kind = kind,
                             .uid = p->uid,
                             .namespace = p->namespace,
                             .name = p->name,
                             .container = c->name};
    roster_cards_of(p, c->demand, &p->said, &d->annotated);
    if (kind == USAGE_DIFFERS_CARDS)
        d->given = c->has;
}

static void compare_one(const struct pod_container *listed, const struct checkpoint_file *t,
                        const struct roster_pod *p, const struct roster_container *c,
                        struct comparison *ret)
{
    uint32_t n = 0;
    bool own = compare_owner(listed, t, p, &n);
    if (n == 0) {
        if (c->given || p->lost)
            compare_add(ret, USAGE_DIFFERS_NONE, p, c);
        return;
    }
    ret->compared++;
    if (!own)
        compare_add(ret, USAGE_DIFFERS_OWNER, p, c);
    else if (c->has.n > 0 && roster_is_off(p, c, &p->said))
        compare_add(ret, USAGE_DIFFERS_CARDS, p, c);
}

static void compare_pod(const struct pod_entry *e, const struct checkpoint_file *t,
                        const struct roster_pod *p, struct comparison *ret)
{
    for (size_t i = 0; i < e->n_containers; i++) {
        const struct roster_container *c = compare_container(p, e->containers[i].name);
        if (c != NULL)
            compare_one(&e->containers[i], t, p, c, ret);
    }
}

/* In the roster's order: the kubelet lists its pods in another one each time, and if more
 * containers differ than are kept, these must be the same ones in each answer. */
void compare(const struct pod_resources *list, const struct checkpoint_file *t,
             const struct roster *r, struct comparison *ret)
{
    ret->compared = 0;
    ret->n = ret->left_out = 0;
    for (size_t i = 0; i < r->n_pods; i++) {
        const struct roster_pod *p = r->pods[i];
        if (p->deleting) /* it goes */
            continue;
        for (size_t k = 0; k < list->n_pods; k++) {
            const struct pod_entry *e = &list->pods[k];
            if (str_eq(p->name, e->name) && str_eq(p->namespace, e->namespace))
                compare_pod(e, t, p, ret);
        }
    }
}
