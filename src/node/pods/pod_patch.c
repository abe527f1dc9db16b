/* Writes the annotations of a pod that gets other cards. */
#include "node/pods/pod_patch.h"

#include "base/limit.h"
#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "objects/allocation.h"
#include "json/jwrite.h"

#define PATCH_TEXT_MAX (64 * KIB)

static void pod_patch_put(struct jwrite *w, struct buf *text, struct str name)
{
    jwrite_str_at(w, name, buf_str(text));
}

static void pod_patch_put_cards(struct jwrite *w, struct buf *text, const struct roster *r,
                                const struct roster_pod *p, const struct pod_allocation *h)
{
    buf_clear(text, SIZE_MAX);
    allocation_write_index(text, h);
    pod_patch_put(w, text, GPUSHARE_ANNOTATION_IDX);
    buf_clear(text, SIZE_MAX);
    buf_put_i64(text, roster_total(r, h->shares[0].card));
    pod_patch_put(w, text, GPUSHARE_ANNOTATION_DEV);
    if (p->said_allocation) {
        buf_clear(text, SIZE_MAX);
        allocation_write(text, h, ALLOCATION_OF_MEM);
        pod_patch_put(w, text, GPUSHARE_ANNOTATION_ALLOCATION);
    }
    if (p->said_cores) {
        buf_clear(text, SIZE_MAX);
        allocation_write(text, h, ALLOCATION_OF_CORES);
        pod_patch_put(w, text, GPUSHARE_ANNOTATION_CORES);
    }
}

static void pod_patch_put_vacated(struct jwrite *w, struct buf *text, const struct card_list *l)
{
    jwrite_key(w, CARDPACK_ANNOTATION_VACATED);
    if (l->n == 0) {
        jwrite_null(w);
        return;
    }
    buf_clear(text, SIZE_MAX);
    for (uint32_t i = 0; i < l->n; i++) {
        if (i > 0)
            buf_putc(text, ',');
        buf_put_u64(text, l->cards[i]);
    }
    jwrite_str(w, buf_str(text));
}

static void pod_patch_put_annotations(struct jwrite *w, struct buf *text, const struct roster *r,
                                      const struct exchange_step *step,
                                      const struct pod_allocation *h)
{
    jwrite_object_begin(w);
    if (step->action == EXCHANGE_MOVE)
        pod_patch_put_cards(w, text, r, step->pod, h);
    if (step->action == EXCHANGE_MARK || step->action == EXCHANGE_FINISH)
        pod_patch_put_vacated(w, text, &step->vacated);
    if (step->assigned)
        jwrite_str_at(w, GPUSHARE_ANNOTATION_ASSIGNED, STR("true"));
    jwrite_object_end(w);
}

static void pod_patch_put_version(struct jwrite *w, uint64_t version)
{
    char bytes[24];
    struct buf text = BUF_ON(bytes);
    buf_put_u64(&text, version);
    jwrite_str_at(w, STR("resourceVersion"), buf_str(&text));
}

static struct pod_allocation *pod_patch_allocation(const struct roster_pod *p)
{
    struct placement there _uninitialized_;
    there.n = p->plan.n;
    if (there.n > 0)
        memcpy(there.grants, p->plan.grants, there.n * sizeof(there.grants[0]));
    return pod_allocation_new(p->request, &there, p->initialized);
}

enum errc pod_patch_write(struct buf *out, const struct roster *r, const struct exchange_step *step)
{
    struct jwrite w;
    struct buf text;
    struct pod_allocation *h = NULL;
    if (step->action == EXCHANGE_MOVE) {
        assert(step->pod->plan.n > 0);
        h = pod_patch_allocation(step->pod);
        if (h == NULL)
            return ERR_NOMEM;
    }
    buf_init(&text, PATCH_TEXT_MAX);
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_object_at(&w, STR("metadata"));
    jwrite_str_at(&w, STR("uid"), step->pod->uid);
    if (step->action != EXCHANGE_ASSIGN && !step->pod->held && step->pod->version != 0)
        pod_patch_put_version(&w, step->pod->version);
    jwrite_key(&w, STR("annotations"));
    pod_patch_put_annotations(&w, &text, r, step, h);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    enum errc code = buf_failed(&text) ? buf_fault(&text) : buf_fault(out);
    buf_done(&text);
    mem_free(h);
    return code;
}
