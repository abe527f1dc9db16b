/* The quota ConfigMap of the simulation, and the oracle's own count of what each namespace uses. */
#include "quotas.h"

#include "kinds.h"

#define NAMESPACES   2
#define ALL_OTHERS   NAMESPACES /* index of the entry "*" */
#define UNLIMITED    INT64_MAX
#define QUOTA_OBJECT (MAX_NODES + 1) /* index in store.healths */

static const char *const names[LIMITED_KINDS] = {"memory", "cards", "compute"};

/* ---- the ConfigMap ---- */

static struct limits_object some_limits(void)
{
    static const unsigned most[LIMITED_KINDS] = {40, 6, 300};
    struct limits_object l = {.there = draw(3) > 0};
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        l.most[k] = draw(k == 0 ? 4 : 2) > 0 ? (int64_t)draw(most[k]) : -1;
    return l;
}

void quotas_change(void)
{
    struct health_object h = {.exists = draw(6) > 0, .name = name_from(STR("cardpack-quota"))};
    h.garbled = draw(12) == 0;
    for (unsigned i = 0; i < COUNT_OF(h.limits); i++)
        h.limits[i] = some_limits();
    store_put_health(QUOTA_OBJECT, &h);
    trace("quota", STR(""), h.limits[0].there ? h.limits[0].most[0] : -2,
          h.limits[1].there ? h.limits[1].most[0] : -2);
}

static void put_limits(struct text *t, const struct limits_object *l)
{
    const char *between = "";
    text_z(t, ":{\"limits\":{");
    for (unsigned k = 0; k < LIMITED_KINDS; k++) {
        if (l->most[k] < 0)
            continue;
        text_z(t, between);
        text_quoted(t, str_of(names[k]));
        text_z(t, ":");
        text_u64(t, (uint64_t)l->most[k]);
        between = ",";
    }
    text_z(t, "}}");
}

void quotas_render(struct text *t, const struct health_object *h)
{
    static const char *const keys[] = {"ns-0", "ns-1", "*"};
    struct text inner = {.p = NULL};
    const char *between = "";
    text_z(&inner, h->garbled ? "{\"namespace\":{" : "{\"namespaces\":{");
    for (unsigned i = 0; i < COUNT_OF(keys); i++) {
        if (!h->limits[i].there)
            continue;
        text_z(&inner, between);
        text_quoted(&inner, str_of(keys[i]));
        put_limits(&inner, &h->limits[i]);
        between = ",";
    }
    text_z(&inner, "}}");
    text_z(t, "\"quota.yaml\":");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

/* The limits of a namespace by this ConfigMap; without limits if it is absent or cannot be read. */
static void limits_of(const struct health_object *h, const struct name *ns,
                      int64_t ret[LIMITED_KINDS])
{
    const struct limits_object *l = &h->limits[strcmp(ns->z, "ns-0") == 0 ? 0 : 1];
    if (!l->there)
        l = &h->limits[ALL_OTHERS];
    bool limited = h->exists && !h->garbled && l->there;
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        ret[k] = limited && l->most[k] >= 0 ? l->most[k] : UNLIMITED;
}

/* ---- what is used ---- */

static bool is_sized(const struct pod_object *p)
{
    return pod_object_named(p) && (p->whole || p->percent > 0);
}

/* What a placed pod uses, by its annotations. If its card is unknown: all that it asks for. */
static void placed(const struct pod_object *p, bool lasting, int64_t ret[LIMITED_KINDS])
{
    struct slices all;
    const struct node_object *n = &store.nodes[store_find_node(name_str(&p->node))];
    bool node = store_find_node(name_str(&p->node)) != MAX_NODES;
    pod_object_slices(p, lasting, &all);
    ret[0] = ret[2] = 0;
    ret[1] = pod_object_exclusive(p) + all.n;
    for (unsigned i = 0; i < all.n; i++) {
        bool there = node && node_object_has_card(n, all.at[i].card);
        int64_t size = there ? node_object_card_size(n, all.at[i].card) : 0;
        ret[0] += there ? slice_charge(p, &all.at[i], size) : all.at[i].mem;
        ret[2] += all.at[i].cores;
    }
    if (all.n > 0 || !pod_object_shares(p))
        return;
    ret[0] = pod_object_mem(p);
    ret[1] += pod_object_cards(p);
    ret[2] = pod_object_cores(p);
}

/* The least that a process must have counted for a placed pod: in its cache the card's size may
 * differ, and the init containers may be done or not. */
static void uses_least(const struct pod_object *p, bool may_last, int64_t ret[LIMITED_KINDS])
{
    int64_t lasting[LIMITED_KINDS];
    placed(p, false, ret);
    placed(p, may_last, lasting);
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        ret[k] = MIN_OF(ret[k], lasting[k]);
    if (is_sized(p))
        ret[0] = 0;
}

/* What a pod without a place asks for. */
static void asked(const struct pod_object *p, struct uses *ret)
{
    int64_t cards = pod_object_shares(p) ? pod_object_cards(p) : 0;
    int64_t exclusive = pod_object_exclusive(p);
    *ret = (struct uses){.least = {pod_object_mem(p), cards + exclusive, pod_object_cores(p)},
                         .most = {pod_object_mem(p), cards + exclusive, pod_object_cores(p)}};
    if (is_sized(p))
        ret->most[0] = UNLIMITED / 2;
    if (!pod_object_may_part(p))
        return;
    *ret = (struct uses){
        .least = {pod_object_lasting_mem(p), cards + exclusive, pod_object_lasting_cores(p)},
        .most = {0, exclusive + p->n_containers, 0}};
    for (unsigned i = 0; i < p->n_containers; i++) {
        ret->most[0] += p->containers[i].mem;
        ret->most[2] += p->containers[i].cores;
    }
}

/* ---- checks ---- */

void quotas_believed(const struct proc *p, const struct pod_object *of, int64_t ret[LIMITED_KINDS])
{
    uint64_t told = p->told_before[CACHE_HEALTH][QUOTA_OBJECT];
    int64_t most[LIMITED_KINDS];
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        ret[k] = told == 0 ? UNLIMITED : 0;
    for (size_t i = history_size(); told > 0 && i > 0; i--) {
        const struct change *c = history_at(i - 1);
        if (c->kind != CACHE_HEALTH || c->slot != QUOTA_OBJECT)
            continue;
        limits_of(&c->new.health, &of->ns, most);
        for (unsigned k = 0; k < LIMITED_KINDS; k++)
            ret[k] = MAX_OF(ret[k], most[k]);
        if (c->rv <= told)
            break;
    }
}

static bool in_namespace(unsigned slot, const struct name *ns)
{
    const struct pod_object *p = &store.pods[slot];
    return pod_object_holds(p) && !pod_object_bad(p) && strcmp(p->ns.z, ns->z) == 0;
}

/* The last decision that uses quota of this kind: it had to count all decisions before it. */
static const struct decision *last_decision(const struct name *ns, unsigned k)
{
    const struct decision *last = NULL;
    int64_t uses[LIMITED_KINDS];
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct decision *by = in_namespace(i, ns) ? oracle_by(i) : NULL;
        if (by == NULL)
            continue;
        uses_least(&store.pods[i], true, uses);
        if (uses[k] > 0 && (last == NULL || by->first > last))
            last = by->first;
    }
    return last;
}

void quotas_check(const struct name *ns)
{
    for (unsigned k = 0; k < LIMITED_KINDS; k++) {
        const struct decision *d = last_decision(ns, k);
        int64_t sum = 0;
        int64_t uses[LIMITED_KINDS];
        for (unsigned i = 0; d != NULL && i < store.n_pods; i++) {
            if (!in_namespace(i, ns) || !oracle_counts(d, i))
                continue;
            uses_least(&store.pods[i], true, uses);
            sum += uses[k];
        }
        if (d == NULL || d->quota[k] == UNLIMITED)
            continue;
        trace(names[k], name_str(ns), sum, d->quota[k]);
        sim_check(sum <= d->quota[k]);
    }
}

enum fits quotas_fits(const struct pod_object *p)
{
    const struct health_object *h = &store.healths[QUOTA_OBJECT];
    int64_t limits[LIMITED_KINDS];
    int64_t sums[LIMITED_KINDS] = {0};
    int64_t uses[LIMITED_KINDS];
    struct uses more;
    enum fits ret = FITS;
    bool limited = false;
    if (h->exists && h->garbled)
        return FITS_PERHAPS;
    limits_of(h, &p->ns, limits);
    asked(p, &more);
    for (unsigned k = 0; k < LIMITED_KINDS; k++)
        limited = limited || limits[k] != UNLIMITED;
    if (!limited)
        return FITS;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *its = &store.pods[i];
        /* The usage of a pod with contradictory requests is not defined. */
        if (pod_object_holds(its) && pod_object_bad(its) && strcmp(its->ns.z, p->ns.z) == 0)
            ret = FITS_PERHAPS;
        if (!in_namespace(i, &p->ns) || strcmp(its->uid.z, p->uid.z) == 0)
            continue;
        placed(&store.pods[i], oracle_lasts(&store.pods[i]), uses);
        for (unsigned k = 0; k < LIMITED_KINDS; k++)
            sums[k] += uses[k];
    }
    for (unsigned k = 0; k < LIMITED_KINDS; k++) {
        if (more.least[k] > 0 && more.least[k] > limits[k] - sums[k])
            return FITS_NOT;
        if (more.most[k] > 0 && more.most[k] > limits[k] - sums[k])
            ret = FITS_PERHAPS;
    }
    return ret;
}
