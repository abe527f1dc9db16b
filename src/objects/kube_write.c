/* Writes a Binding. */
#include "core/dialect/gpushare.h"
#include "objects/kube.h"

static void kube_write_number_text(struct jwrite *w, struct str key, uint64_t value)
{
    char digits[24];
    struct buf text = BUF_ON(digits);
    buf_put_u64(&text, value);
    jwrite_str_at(w, key, buf_str(&text));
}

/* Each agent's own scheduler writes these: Volcano's gpushare plugin, elastic-gpu-scheduler,
 * gpu-admission. */
static void kube_write_other_annotations(struct jwrite *w, const struct binding *b)
{
    const struct dialect_facts *d = dialect_facts(b->dialect);
    if (d->idx.p != NULL)
        jwrite_str_at(w, d->idx, b->idx);
    for (size_t i = 0; i < b->n_seats; i++)
        jwrite_str_at(w, b->seats[i].key, b->seats[i].cards);
    if (d->assigned.p != NULL)
        jwrite_str_at(w, d->assigned, STR("false"));
    if (d->assume_time.p != NULL)
        kube_write_number_text(w, d->assume_time, b->assume_ns);
    if (d->assumed.p != NULL)
        jwrite_str_at(w, d->assumed, STR("true"));
    if (d->node.p != NULL)
        jwrite_str_at(w, d->node, b->node);
}

/*
 * By this time Volcano's plugin orders pods, and by nothing else: it takes the oldest, also a pod
 * without a node whose template has the annotations of another one. cardpack lets one pod wait at a
 * time. So the time is before any that a scheduler writes, and a later Binding has an earlier one:
 * then the pod that waits is always the oldest.
 */
static uint64_t kube_write_time_of(enum dialect d, uint64_t seconds)
{
    return dialect_facts(d)->lingers ? INT32_MAX - MIN_OF(seconds, (uint64_t)INT32_MAX) : seconds;
}

/* As HAMi's scheduler and Volcano's write them. The plugin takes the devices from one list, and the
 * other one stays. */
static void kube_write_devices(struct jwrite *w, const struct binding *b)
{
    const struct dialect_facts *d = dialect_facts(b->dialect);
    uint64_t seconds = b->assume_ns / 1000000000;
    jwrite_str_at(w, d->idx, b->idx);
    jwrite_str_at(w, d->todo, b->idx);
    jwrite_str_at(w, d->node, b->node);
    kube_write_number_text(w, d->assume_time, kube_write_time_of(b->dialect, seconds));
    jwrite_str_at(w, d->assigned, dialect_waits(b->dialect));
    kube_write_number_text(w, d->time, seconds);
}

static void kube_write_gpushare_annotations(struct jwrite *w, const struct binding *b)
{
    jwrite_str_at(w, GPUSHARE_ANNOTATION_IDX, b->idx);
    kube_write_number_text(w, GPUSHARE_ANNOTATION_DEV, (uint64_t)b->card_total);
    kube_write_number_text(w, GPUSHARE_ANNOTATION_POD, (uint64_t)b->mem);
    jwrite_str_at(w, GPUSHARE_ANNOTATION_ASSIGNED, STR("false"));
    kube_write_number_text(w, GPUSHARE_ANNOTATION_ASSUME_TIME, b->assume_ns);
    if (b->allocation.n > 0)
        jwrite_str_at(w, GPUSHARE_ANNOTATION_ALLOCATION, b->allocation);
    if (b->cores.n > 0)
        jwrite_str_at(w, GPUSHARE_ANNOTATION_CORES, b->cores);
    if (b->vacated)
        jwrite_str_at(w, CARDPACK_ANNOTATION_VACATED, STR(""));
}

static void kube_write_annotations(struct jwrite *w, const struct binding *b)
{
    jwrite_object_at(w, STR("annotations"));
    if (b->dialect == DIALECT_OWN)
        kube_write_gpushare_annotations(w, b);
    else if (dialect_has_uuids(b->dialect))
        kube_write_devices(w, b);
    else
        kube_write_other_annotations(w, b);
    jwrite_object_end(w);
}

void kube_write_binding(struct jwrite *w, const struct binding *b)
{
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("apiVersion"), STR("v1"));
    jwrite_str_at(w, STR("kind"), STR("Binding"));
    jwrite_object_at(w, STR("metadata"));
    jwrite_str_at(w, STR("name"), b->name);
    jwrite_str_at(w, STR("namespace"), b->namespace);
    jwrite_str_at(w, STR("uid"), b->uid);
    if (b->version > 0)
        kube_write_number_text(w, STR("resourceVersion"), b->version);
    if (b->idx.n > 0)
        kube_write_annotations(w, b);
    jwrite_object_end(w);
    jwrite_object_at(w, STR("target"));
    jwrite_str_at(w, STR("kind"), STR("Node"));
    jwrite_str_at(w, STR("name"), b->node);
    jwrite_object_end(w);
    jwrite_object_end(w);
}
