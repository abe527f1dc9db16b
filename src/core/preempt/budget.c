/*
 * The store of PodDisruptionBudgets. A budget is one block with its strings and arrays behind it,
 * and is replaced whole when it changes. Budgets are linked in a list for each namespace, because a
 * preemption looks up each of many pods, and most budgets are of other namespaces. Lists mark and
 * sweep by epoch, as in cache.c.
 *
 * How many disruptions are left is counted in the budgets themselves, with the round that the count
 * is for. A table outside would need one entry per budget for each set of victims that is compared.
 *
 * kube-scheduler ignores budgets with an empty selector, and pods without labels. This code follows
 * the API instead: in policy/v1 such a budget selects all pods of its namespace, and the API server
 * refuses their evictions because of it.
 */
#include "core/preempt/budget.h"

#include "base/buf.h"
#include "base/mem.h"
#include "core/limit.h"

struct budget_space {
    struct str name;
    struct list budgets;
};

void budgets_init(struct budgets *b, struct map_seed seed)
{
    *b = (struct budgets){.torn = false};
    map_init(&b->all, offsetof(struct budget, key), seed);
    map_init(&b->spaces, offsetof(struct budget_space, name), seed);
}

void budgets_done(struct budgets *b)
{
    size_t cursor = 0;
    for (struct budget *d = map_next(&b->all, &cursor); d != NULL; d = map_next(&b->all, &cursor))
        mem_free(d);
    cursor = 0;
    for (struct budget_space *s = map_next(&b->spaces, &cursor); s != NULL;
         s = map_next(&b->spaces, &cursor))
        mem_free(s);
    map_done(&b->all);
    map_done(&b->spaces);
}

/* The size of a copy in bytes: first the arrays, which have the alignment of the struct, then the
 * strings. */
static size_t budget_bytes_of(const struct budget_view *v)
{
    size_t n = sizeof(struct budget) + v->n_requirements * sizeof(struct requirement_view) +
               v->n_disrupted * sizeof(struct str) + v->namespace.n + 1 + v->name.n;
    for (size_t i = 0; i < v->n_requirements; i++) {
        const struct requirement_view *r = &v->requirements[i];
        n += r->key.n + r->n_values * sizeof(struct str);
        for (size_t j = 0; j < r->n_values; j++)
            n += r->values[j].n;
    }
    for (size_t i = 0; i < v->n_disrupted; i++)
        n += v->disrupted[i].n;
    return n;
}

static const struct str *budget_store_strings(struct str *to, char **at, const struct str *from,
                                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = str_store(at, from[i]);
    return to;
}

static struct budget *budget_new(const struct budget_view *v)
{
    size_t size = budget_bytes_of(v);
    struct budget *d = mem_alloc(size);
    if (d == NULL)
        return NULL;
    struct requirement_view *requirements = (struct requirement_view *)(d + 1);
    struct str *strings = (struct str *)(requirements + v->n_requirements);
    size_t n_strings = v->n_disrupted;
    for (size_t i = 0; i < v->n_requirements; i++)
        n_strings += v->requirements[i].n_values;
    char *at = (char *)(strings + n_strings);
    d->is = *v;
    d->terms = n_strings;
    d->is.requirements = requirements;
    for (size_t i = 0; i < v->n_requirements; i++) {
        requirements[i] = v->requirements[i];
        requirements[i].key = str_store(&at, v->requirements[i].key);
        requirements[i].values = budget_store_strings(strings, &at, v->requirements[i].values,
                                                      v->requirements[i].n_values);
        strings += v->requirements[i].n_values;
    }
    d->is.disrupted = budget_store_strings(strings, &at, v->disrupted, v->n_disrupted);
    d->key = (struct str){at, v->namespace.n + 1 + v->name.n};
    d->is.namespace = str_store(&at, v->namespace);
    (void)str_store(&at, STR("/"));
    d->is.name = str_store(&at, v->name);
    assert(at == (char *)d + size);
    d->bytes = size;
    return d;
}

static struct budget_view budget_bounded(const struct budgets *b, const struct budget_view *v)
{
    struct budget_view is = *v;
    if (b->bytes + budget_bytes_of(v) > LIMIT_BUDGETS_BYTES) {
        is.selects = true;
        is.n_requirements = is.n_disrupted = 0;
    }
    return is;
}

static struct budget_space *budget_space_get_or_add(struct budgets *b, struct str name)
{
    struct budget_space *s = map_get(&b->spaces, name);
    if (s != NULL)
        return s;
    s = mem_alloc(sizeof(*s) + name.n);
    if (s == NULL)
        return NULL;
    char *at = (char *)(s + 1);
    s->name = str_store(&at, name);
    list_init(&s->budgets);
    if (map_put(&b->spaces, s) != OK) {
        mem_free(s);
        return NULL;
    }
    return s;
}

static void budget_space_release(struct budgets *b, struct budget_space *s)
{
    if (s == NULL || !list_is_empty(&s->budgets))
        return;
    const struct budget_space *known = map_del(&b->spaces, s->name);
    assert(known == s);
    mem_free(s);
}

/* Removes a budget. The caller releases its namespace. */
static void budget_remove(struct budgets *b, struct budget *d)
{
    const struct budget *known = map_del(&b->all, d->key);
    assert(known == d && d->space != NULL);
    list_remove(&d->link);
    b->bytes -= d->bytes;
    mem_free(d);
}

enum errc budgets_set(struct budgets *b, const struct budget_view *view)
{
    const struct budget_view is = budget_bounded(b, view);
    struct budget *d = budget_new(&is);
    struct budget_space *s = d == NULL ? NULL : budget_space_get_or_add(b, view->namespace);
    struct budget *old = d == NULL ? NULL : map_get(&b->all, d->key);
    /* The map has room after the old budget is removed, because it never shrinks. */
    if (old != NULL) {
        budget_remove(b, old);
        old = NULL;
    }
    if (s == NULL || map_put(&b->all, d) != OK) {
        budget_space_release(b, s);
        mem_free(d);
        b->torn = true;
        return ERR_NOMEM;
    }
    d->space = s;
    list_push_front(&s->budgets, &d->link);
    d->epoch = b->epoch;
    b->bytes += d->bytes;
    return OK;
}

/* By the key, because a walk through a namespace of thousands of budgets takes long for each. An
 * API server stores no namespace longer than 63 bytes, and no name longer than 253. */
static struct budget *budget_find(const struct budgets *b, struct str namespace, struct str name)
{
    char bytes[512];
    struct buf key = BUF_ON(bytes);
    buf_put(&key, namespace);
    buf_put(&key, STR("/"));
    buf_put(&key, name);
    if (!buf_failed(&key))
        return map_get(&b->all, buf_str(&key));
    const struct budget_space *s = map_get(&b->spaces, namespace);
    if (s == NULL)
        return NULL;
    LIST_FOR_EACH (struct budget, d, &s->budgets, link) {
        if (str_eq(d->is.name, name))
            return d;
    }
    return NULL;
}

bool budgets_gone(struct budgets *b, struct str namespace, struct str name)
{
    struct budget *d = budget_find(b, namespace, name);
    if (d == NULL)
        return false;
    struct budget_space *s = d->space;
    budget_remove(b, d);
    budget_space_release(b, s);
    return true;
}

void budgets_list_begin(struct budgets *b)
{
    b->epoch++;
    b->torn = false;
}

void budgets_list_tear(struct budgets *b)
{
    b->torn = true;
}

unsigned budgets_list_end(struct budgets *b)
{
    unsigned swept = 0;
    size_t cursor = 0;
    if (b->torn)
        return 0;
    for (struct budget *d = map_next(&b->all, &cursor); d != NULL; d = map_next(&b->all, &cursor)) {
        if (d->epoch == b->epoch)
            continue;
        assert(cursor > 0);
        struct budget_space *s = d->space;
        budget_remove(b, d);
        budget_space_release(b, s);
        swept++;
        cursor--;
    }
    return swept;
}

const struct budget *budgets_get(const struct budgets *b, struct str namespace, struct str name)
{
    return budget_find(b, namespace, name);
}

/* ---- which pods they select ---- */

static bool budget_is_one_of(struct str s, const struct str *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(s, list[i]))
            return true;
    }
    return false;
}

static bool budget_requirement_holds(const struct requirement_view *r, const struct budget_pod *pod)
{
    const struct label_view *label = NULL;
    for (size_t i = pod->n_labels; label == NULL && i > 0; i--) {
        if (str_eq(pod->labels[i - 1].key, r->key))
            label = &pod->labels[i - 1];
    }
    switch (r->op) {
    case REQUIREMENT_IN:
        return label != NULL && budget_is_one_of(label->value, r->values, r->n_values);
    case REQUIREMENT_NOT_IN:
        return label == NULL || !budget_is_one_of(label->value, r->values, r->n_values);
    case REQUIREMENT_EXISTS:
        return label != NULL;
    case REQUIREMENT_ABSENT:
        return label == NULL;
    }
    assert(false && "no operator of enum requirement_op");
    return false;
}

static bool budget_is_charged(const struct budget *d, const struct budget_pod *pod)
{
    if (!d->is.selects)
        return false;
    for (size_t i = 0; i < d->is.n_requirements; i++) {
        if (!budget_requirement_holds(&d->is.requirements[i], pod))
            return false;
    }
    return !budget_is_one_of(pod->name, d->is.disrupted, d->is.n_disrupted);
}

static struct budget *budget_next_of(struct budgets *b, const struct budget_pod *pod,
                                     const struct budget *after)
{
    const struct budget_space *s =
        after == NULL ? map_get(&b->spaces, pod->namespace) : after->space;
    if (s == NULL)
        return NULL;
    struct budget *d = after == NULL ? LIST_FIRST(&s->budgets, struct budget, link)
                                     : LIST_NEXT(&s->budgets, after, struct budget, link);
    for (; d != NULL; d = LIST_NEXT(&s->budgets, d, struct budget, link)) {
        b->looks += 1 + d->terms + d->is.n_requirements * pod->n_labels;
        if (budget_is_charged(d, pod))
            break;
    }
    return d;
}

const struct budget *budgets_next_of(struct budgets *b, const struct budget_pod *pod,
                                     const struct budget *after)
{
    return budget_next_of(b, pod, after);
}

void budgets_count_begin(struct budgets *b)
{
    b->round++;
}

int64_t budgets_left(const struct budgets *b, const struct budget *d)
{
    assert(d->round <= b->round);
    return b->round > 0 && d->round == b->round ? d->left : d->is.allowed;
}

bool budgets_count(struct budgets *b, const struct budget_pod *pod)
{
    bool violates = false;
    assert(b->round > 0);
    for (struct budget *d = budget_next_of(b, pod, NULL); d != NULL;
         d = budget_next_of(b, pod, d)) {
        d->left = budgets_left(b, d) - 1;
        d->round = b->round;
        violates = violates || d->left < 0;
    }
    return violates;
}

void budgets_check(const struct budgets *b)
{
    size_t cursor = 0;
    size_t n = 0;
    size_t bytes = 0;
    for (const struct budget_space *s = map_next(&b->spaces, &cursor); s != NULL;
         s = map_next(&b->spaces, &cursor)) {
        assert(!list_is_empty(&s->budgets));
        LIST_FOR_EACH (const struct budget, d, &s->budgets, link) {
            assert(d->space == s);
            assert(map_get(&b->all, d->key) == d);
            assert(str_eq(d->is.namespace, s->name));
            assert(d->key.n == d->is.namespace.n + 1 + d->is.name.n);
            assert(d->epoch <= b->epoch && d->round <= b->round);
            n++;
            bytes += d->bytes;
        }
    }
    assert(n == b->all.n && bytes == b->bytes);
}
