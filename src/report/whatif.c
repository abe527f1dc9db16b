/* Reads a fit question, lets plan.h place the replicas, and writes the answer. */
#include "report/whatif.h"

#include "core/limit.h"
#include "report/explain_write.h"
#include "report/plan.h"
#include "report/pod_read.h"
#include "report/reason.h"
#include "report/shortfall_write.h"
#include "json/jwrite.h"

#include <stdlib.h>

struct whatif {
    struct plan plan;
    struct err fault;           /* why the pod's request is invalid; then nothing is planned */
    struct plan_site **by_name; /* nodes with a replica */
    size_t n;
};

static int whatif_by_name(const void *a, const void *b)
{
    const struct plan_site *const *x = a;
    const struct plan_site *const *y = b;
    return str_cmp((*x)->real->name, (*y)->real->name);
}

static enum errc whatif_sort_sites(struct whatif *w)
{
    struct plan *p = &w->plan;
    w->by_name = arena_array(p->arena, p->n_sites, sizeof(struct plan_site *));
    if (w->by_name == NULL)
        return arena_fault(p->arena);
    for (size_t i = 0; i < p->n_sites; i++) {
        if (p->sites[i].replicas > 0)
            w->by_name[w->n++] = &p->sites[i];
    }
    if (w->n > 1)
        qsort((void *)w->by_name, w->n, sizeof(struct plan_site *), whatif_by_name);
    return OK;
}

static void whatif_write_nodes(struct jwrite *j, const struct whatif *w)
{
    jwrite_array_at(j, STR("nodes"));
    for (size_t i = 0; i < w->n; i++) {
        jwrite_object_begin(j);
        jwrite_str_at(j, STR("node"), w->by_name[i]->real->name);
        jwrite_u64_at(j, STR("replicas"), w->by_name[i]->replicas);
        jwrite_object_end(j);
    }
    jwrite_array_end(j);
}

static void whatif_write_spots(struct jwrite *j, const struct plan *p)
{
    jwrite_array_at(j, STR("placements"));
    for (uint32_t i = 0; i < p->fit; i++) {
        const struct pod_allocation *h = p->spots[i].allocation;
        jwrite_object_begin(j);
        jwrite_str_at(j, STR("node"), p->spots[i].site->real->name);
        explain_write_placement(j, h->grants, h->n_grants);
        jwrite_object_end(j);
    }
    jwrite_array_end(j);
}

static struct str whatif_reason_of(const struct whatif *w, enum verdict v, struct buf *scratch)
{
    const struct request *r = w->plan.evaluation.request;
    if (v == VERDICT_BAD_REQUEST)
        return str_of(w->fault.text);
    /* Whether one is free is not known here: so it is true in any case. */
    return shortfall_is_of_few(v, r, 1) ? STR(SHORTFALL_FEW)
                                        : verdict_reason_in(v, r->dialect, STR("..."), scratch);
}

/* "3 nodes: 2 Insufficient ..., 1 ...": each reason once, as kube-scheduler writes its summary. */
static void whatif_put_reasons(struct buf *text, const struct whatif *w,
                               const unsigned counts[static VERDICT_COUNT])
{
    char bytes[2][256];
    struct buf a = BUF_ON(bytes[0]);
    struct buf b = BUF_ON(bytes[1]);
    const char *between = ": ";
    buf_printf(text, "%zu nodes", w->plan.n_sites);
    for (unsigned v = VERDICT_FITS + 1; v < VERDICT_COUNT; v++) {
        struct str reason = whatif_reason_of(w, (enum verdict)v, &a);
        unsigned n = counts[v];
        bool said = false;
        for (unsigned u = VERDICT_FITS + 1; u < VERDICT_COUNT; u++) {
            if (u == v || counts[u] == 0 ||
                !str_eq(reason, whatif_reason_of(w, (enum verdict)u, &b)))
                continue;
            n += counts[u];
            said = said || u < v;
        }
        if (counts[v] == 0 || said)
            continue;
        buf_printf(text, "%s%u %.*s", between, n, STR_ARG(reason));
        between = ", ";
    }
}

/* Counts by verdict the nodes that refuse the next replica. False: too many steps for all nodes. */
static bool whatif_count_refusals(const struct whatif *w, unsigned counts[static VERDICT_COUNT])
{
    bool valid = w->fault.code == OK;
    for (size_t i = 0; i < w->plan.n_sites && !step_budget_is_spent(w->plan.evaluation.step_budget);
         i++)
        counts[valid ? plan_next(&w->plan, &w->plan.sites[i]) : VERDICT_BAD_REQUEST]++;
    return !step_budget_is_spent(w->plan.evaluation.step_budget);
}

static void whatif_write_stop(struct jwrite *j, const struct whatif *w)
{
    char bytes[8192];
    struct buf text = BUF_ON(bytes);
    jwrite_key(j, STR("stopped"));
    if (w->plan.fit == w->plan.replicas) {
        jwrite_null(j);
        return;
    }
    unsigned counts[VERDICT_COUNT] = {0};
    jwrite_object_begin(j);
    if (w->plan.exhausted || !whatif_count_refusals(w, counts)) {
        memset(counts, 0, sizeof(counts));
        buf_put(&text, STR("more may fit: the search reached the limit of steps for one question"));
    } else {
        whatif_put_reasons(&text, w, counts);
    }
    explain_write_refused(j, counts);
    jwrite_str_at(j, STR("message"), buf_str(&text));
    jwrite_object_end(j);
}

static void whatif_write_answer(const struct whatif *w, struct buf *out)
{
    char bytes[256];
    struct buf text = BUF_ON(bytes);
    struct jwrite j;
    reason_request(&text, w->plan.evaluation.request, w->plan.evaluation.devices);
    jwrite_init(&j, out);
    jwrite_object_begin(&j);
    jwrite_str_at(&j, STR("request"), buf_str(&text));
    jwrite_str_at(&j, STR("error"), str_of(w->fault.text));
    jwrite_u64_at(&j, STR("replicas"), w->plan.replicas);
    jwrite_u64_at(&j, STR("fit"), w->plan.fit);
    whatif_write_nodes(&j, w);
    whatif_write_spots(&j, &w->plan);
    whatif_write_stop(&j, w);
    jwrite_object_end(&j);
}

static uint32_t whatif_read_replicas(struct jread *r)
{
    int64_t n = jread_i64(r);
    if (!jread_failed(r) && (n < 1 || n > LIMIT_WHATIF_REPLICAS))
        jread_fail(r, ERR_RANGE, "%lld must be 1 to %d", (long long)n, LIMIT_WHATIF_REPLICAS);
    return jread_failed(r) ? 0 : (uint32_t)n;
}

enum errc whatif_read(struct str body, struct arena *a, struct whatif_question *ret,
                      struct err *reterr)
{
    struct jread r;
    struct str key;
    bool has_pod = false;
    *ret = (struct whatif_question){.replicas = 1};
    struct str json = pod_read_json(body, a, reterr);
    if (json.p == NULL)
        return reterr->code;
    jread_init(&r, json, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object with pod and replicas");
    jread_object (&r, key) {
        if (str_eq(key, STR("pod"))) {
            has_pod = jread_type(&r) == JTYPE_OBJECT;
            pod_read_object(&r, a, &ret->pod);
        } else if (str_eq(key, STR("replicas"))) {
            ret->replicas = whatif_read_replicas(&r);
        } else {
            jread_skip(&r);
        }
    }
    enum errc code = jread_finish(&r, reterr);
    return code == OK && !has_pod ? err_set(reterr, ERR_SYNTAX, "pod is missing") : code;
}

/* For an invalid request nothing is planned: every node refuses it. */
static enum errc whatif_answer(const struct cache *c, struct step_budget *step_budget,
                               const struct pod_view *pod, uint32_t replicas, struct arena *a,
                               struct buf *out)
{
    struct request request;
    struct evaluation evaluation;
    struct whatif w = {.fault = ERR_INIT};
    enum errc readable = request_read(pod, &request, &w.fault);
    w.fault.code = readable;
    cache_evaluation(c, pod->uid, &request, &evaluation);
    step_budget_begin(step_budget, c->nodes.n);
    evaluation.step_budget = step_budget;
    enum errc code = plan_make(&w.plan, c, &evaluation, readable == OK ? replicas : 0, a);
    w.plan.replicas = replicas;
    if (code == OK)
        code = whatif_sort_sites(&w);
    if (code == OK)
        whatif_write_answer(&w, out);
    return code;
}

enum errc whatif_write(const struct cache *c, struct step_budget *step_budget,
                       struct whatif_question *q, struct arena *a, struct buf *out)
{
    q->pod.uid = STR_NULL; /* a replica is not an existing pod */
    return whatif_answer(c, step_budget, &q->pod, q->replicas, a, out);
}
