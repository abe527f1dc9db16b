/* What late binding needs beside the roster and the specs. */
#include "node/allot/late_binding.h"

#include "base/log.h"

/* "1.36.3", "v1.29.0-gke.1" */
static bool late_binding_is_at_least(struct str version, uint64_t major, uint64_t minor)
{
    struct str first;
    struct str rest;
    uint64_t a = 0;
    uint64_t b = 0;
    size_t n = 0;
    if (str_starts(version, STR("v")))
        version = str_skip(version, 1);
    if (!str_cut(version, '.', &first, &rest))
        return false;
    while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9')
        n++;
    if (!str_to_u64(first, UINT32_MAX, &a) || !str_to_u64(str_head(rest, n), UINT32_MAX, &b))
        return false;
    return a > major || (a == major && b >= minor);
}

bool late_binding_is_supported(struct str kubelet, struct str runtime)
{
    static const struct {
        struct str name;
        uint64_t major;
        uint64_t minor;
    } known[] = {{STR("containerd://"), 2, 0}, {STR("cri-o://"), 1, 28}};

    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (str_starts(runtime, known[i].name))
            return late_binding_is_at_least(kubelet, 1, 29) &&
                   late_binding_is_at_least(str_skip(runtime, known[i].name.n), known[i].major,
                                            known[i].minor);
    }
    return false;
}

bool late_binding_sweep(struct specs *s, const struct checkpoint_file *t)
{
    if (!t->loaded || !t->there || !s->loaded)
        return true;
    specs_mark_begin(s);
    for (size_t i = 0; i < t->now.n_entries; i++) {
        if (str_eq(t->now.entries[i].resource, t->resource) && t->ids[i].p != NULL)
            specs_mark(s, t->ids[i]);
    }
    return specs_mark_end(s);
}

void late_binding_log_edits(struct roster *r)
{
    for (size_t i = 0; i < r->n_pods; i++) {
        struct roster_pod *p = r->pods[i];
        const struct roster_container *off = NULL;
        for (uint32_t k = 0; k < p->n_containers && off == NULL; k++) {
            const struct roster_container *c = &p->containers[k];
            if ((c->late || p->held) && roster_is_off(p, c, &p->said))
                off = c;
        }
        if (off != NULL && !p->edited)
            log_warn("a pod's annotations do not name the cards that its containers have",
                     kv_str("namespace", p->namespace), kv_str("pod", p->name),
                     kv_str("container", off->name), kv_uint("card", off->has.cards[0]),
                     kv_uint("cards", off->has.n));
        p->edited = off != NULL;
    }
}
