/* Reads the JSON of GET .../cards into arrays, and sorts each card's pods. */
#include "kubectl/figures.h"

#include "json/jread.h"

#include <stdlib.h>

/* No card has more GiB than this, so a larger number is in MiB. */
#define GIB_MAX 1024

/* No card has more MiB than this, so that sums of hostile figures do not overflow. */
#define MIB_MAX ((int64_t)UINT32_MAX)

/* Adds a zero element to an array in the arena. NULL: no memory, and the reader has failed. */
#define GROW(r, array, n, cap) figures_grow((r), (void **)&(array), &(n), &(cap), sizeof(*(array)))

static void *figures_grow(struct jread *r, void **array, size_t *n, size_t *cap, size_t size)
{
    void *more = arena_grow(r->arena, *array, *n, cap, size);
    if (more == NULL) {
        jread_fail(r, ERR_LIMIT, "too many");
        return NULL;
    }
    *array = more;
    char *element = (char *)more + (*n)++ * size;
    memset(element, 0, size);
    return element;
}

static void figures_read_pod(struct jread *r, struct figures_pod *p)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("namespace")))
            p->namespace = jread_str(r);
        else if (str_eq(key, STR("name")))
            p->name = jread_str(r);
        else if (str_eq(key, STR("usedGPU")))
            p->used = jread_i64(r);
        else if (str_eq(key, STR("usedMiB")))
            p->used_mib = jread_i64(r);
        else if (str_eq(key, STR("exceeds")))
            p->exceeds = jread_bool(r);
        else
            jread_skip(r);
    }
}

static int figures_by_name(const void *a, const void *b)
{
    const struct figures_pod *x = a;
    const struct figures_pod *y = b;
    int c = str_cmp(x->namespace, y->namespace);
    return c != 0 ? c : str_cmp(x->name, y->name);
}

static void figures_read_pods(struct jread *r, struct figures_card *c)
{
    size_t cap = 0;
    jread_array (r) {
        struct figures_pod p = {.used_mib = -1};
        figures_read_pod(r, &p);
        struct figures_pod *to = GROW(r, c->pods, c->n_pods, cap);
        if (to != NULL)
            *to = p;
    }
    if (c->n_pods > 1)
        qsort(c->pods, c->n_pods, sizeof(*c->pods), figures_by_name);
}

static int64_t figures_read_most(struct jread *r, int64_t max)
{
    int64_t value = jread_i64(r);
    return MIN_OF(value, max);
}

static bool figures_read_number(struct jread *r, struct str key, struct figures_card *c)
{
    if (str_eq(key, STR("id")))
        c->id = jread_i64(r);
    else if (str_eq(key, STR("totalGPU")))
        c->total = jread_i64(r);
    else if (str_eq(key, STR("usedGPU")))
        c->used = jread_i64(r);
    else if (str_eq(key, STR("freeGPU")))
        c->free = jread_i64(r);
    else if (str_eq(key, STR("compute")))
        c->compute = jread_i64(r);
    else if (str_eq(key, STR("numa")))
        c->numa = jread_i64(r);
    else if (str_eq(key, STR("usedMiB")))
        c->used_mib = figures_read_most(r, MIB_MAX);
    else if (str_eq(key, STR("sizeMiB")))
        c->size_mib = figures_read_most(r, MIB_MAX);
    else if (str_eq(key, STR("busyPercent")))
        c->busy = figures_read_most(r, 100);
    else
        return false;
    return true;
}

static void figures_read_card(struct jread *r, struct figures_card *c)
{
    struct str key;
    c->numa = c->used_mib = c->size_mib = c->busy = -1;
    jread_object (r, key) {
        if (str_eq(key, STR("state")))
            c->state = jread_str(r);
        else if (str_eq(key, STR("model")))
            c->model = jread_str(r);
        else if (str_eq(key, STR("uuid")))
            c->uuid = jread_str(r);
        else if (str_eq(key, STR("profile")))
            c->profile = jread_str(r);
        else if (str_eq(key, STR("pods")))
            figures_read_pods(r, c);
        else if (!figures_read_number(r, key, c))
            jread_skip(r);
    }
}

static void figures_read_node(struct jread *r, struct figures_node *n)
{
    struct str key;
    size_t cap = 0;
    n->free = -1;
    jread_object (r, key) {
        if (str_eq(key, STR("name"))) {
            n->name = jread_str(r);
        } else if (str_eq(key, STR("totalGPU"))) {
            n->total = jread_i64(r);
        } else if (str_eq(key, STR("usedGPU"))) {
            n->used = jread_i64(r);
        } else if (str_eq(key, STR("freeGPU"))) {
            n->free = jread_i64(r);
        } else if (str_eq(key, STR("fault"))) {
            n->fault = jread_str(r);
        } else if (str_eq(key, STR("pool"))) {
            n->pool = jread_str(r);
        } else if (str_eq(key, STR("devs"))) {
            jread_array (r) {
                struct figures_card c = {.id = 0};
                figures_read_card(r, &c);
                struct figures_card *to = GROW(r, n->cards, n->n_cards, cap);
                if (to != NULL)
                    *to = c;
            }
        } else {
            jread_skip(r);
        }
    }
    if (n->free < 0) /* the daemon did not send freeGPU */
        n->free = MAX_OF(n->total - n->used, (int64_t)0);
}

static bool figures_are_measured(const struct figures *f)
{
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->nodes[i].n_cards; k++) {
            if (f->nodes[i].cards[k].used_mib >= 0)
                return true;
        }
    }
    return false;
}

enum errc figures_read(struct str answer, struct arena *a, struct figures *ret, struct err *reterr)
{
    struct jread r;
    struct str key;
    size_t cap = 0;
    struct figures f = {.n = 0};
    bool is_answer = false;
    jread_init(&r, answer, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        if (str_eq(key, STR("nodes"))) {
            is_answer = true;
            jread_array (&r) {
                struct figures_node n = {.total = 0};
                figures_read_node(&r, &n);
                struct figures_node *to = GROW(&r, f.nodes, f.n, cap);
                if (to != NULL)
                    *to = n;
            }
        } else if (str_eq(key, STR("error"))) {
            f.error = jread_str(&r);
        } else {
            jread_skip(&r);
        }
    }
    if (jread_finish(&r, reterr) != OK)
        return err_wrap(reterr, "the answer is none of cardpack's");
    if (!is_answer)
        return err_set(reterr, ERR_SYNTAX, "the answer is none of cardpack's: it has no nodes");
    f.measured = figures_are_measured(&f);
    *ret = f;
    return OK;
}

const char *figures_unit(const struct figures *f)
{
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->nodes[i].n_cards; k++) {
            if (f->nodes[i].cards[k].total > GIB_MAX)
                return "MiB";
        }
    }
    return "GiB";
}
