/*
 * Reads PodDisruptionBudgets. Both API versions have the same fields with a different meaning: an
 * empty selector selects all pods of the namespace in policy/v1, and none in policy/v1beta1. An
 * absent selector selects none in both. A selector that Kubernetes would refuse selects none
 * either: an API server stores no such selector, and all clients read it like that.
 *
 * matchLabels become requirements with one value, so that the core knows only one kind.
 *
 * An API server stores a million values in one budget. Beyond LIMIT_BUDGET_TERMS no more are read.
 */
#include "objects/kube_budget.h"

#include "objects/kube.h"
#include "objects/limit.h"

struct requirement_list {
    struct requirement_view *items;
    size_t n;
    size_t cap;
};

struct string_list {
    struct str *items;
    size_t n;
    size_t cap;
};

struct selector {
    struct requirement_list labels;
    struct requirement_list expressions;
    bool given; /* present and not null */
    bool valid;
};

struct budget_reader {
    struct jread *r;
    struct arena *arena;
    struct selector selector;
    struct string_list disrupted;
    size_t terms; /* requirements, values and disrupted pods, taken or not */
};

/* False: there are more than are compared, and this one is skipped. */
static bool kube_budget_takes(struct budget_reader *b)
{
    bool takes = b->terms++ < LIMIT_BUDGET_TERMS;
    if (!takes)
        jread_skip(b->r);
    return takes;
}

static void kube_budget_no_room(struct budget_reader *b)
{
    jread_fail(b->r, arena_fault(b->arena), "no room for a PodDisruptionBudget");
}

static void kube_budget_string_add(struct budget_reader *b, struct string_list *list, struct str s)
{
    struct str *grown = arena_grow(b->arena, list->items, list->n, &list->cap, sizeof(s));
    if (grown == NULL) {
        kube_budget_no_room(b);
        return;
    }
    list->items = grown;
    list->items[list->n++] = s;
}

static void kube_budget_requirement_add(struct budget_reader *b, struct requirement_list *list,
                                        struct requirement_view q)
{
    struct requirement_view *grown =
        arena_grow(b->arena, list->items, list->n, &list->cap, sizeof(q));
    if (grown == NULL) {
        kube_budget_no_room(b);
        return;
    }
    list->items = grown;
    list->items[list->n++] = q;
}

static void kube_budget_read_match_labels(struct budget_reader *b)
{
    struct str key;
    b->selector.labels.n = 0;
    jread_object (b->r, key) {
        if (!kube_budget_takes(b))
            continue;
        struct str *value = arena_alloc(b->arena, sizeof(*value));
        struct str text = jread_str(b->r);
        if (value == NULL) {
            kube_budget_no_room(b);
            continue;
        }
        *value = text;
        kube_budget_requirement_add(
            b, &b->selector.labels,
            (struct requirement_view){
                .key = key, .op = REQUIREMENT_IN, .values = value, .n_values = 1});
    }
}

static bool kube_budget_operator_of(struct str text, enum requirement_op *ret)
{
    static const struct {
        const char *name;
        enum requirement_op op;
    } table[] = {
        {"In", REQUIREMENT_IN},
        {"NotIn", REQUIREMENT_NOT_IN},
        {"Exists", REQUIREMENT_EXISTS},
        {"DoesNotExist", REQUIREMENT_ABSENT},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (str_eq(text, str_of(table[i].name))) {
            *ret = table[i].op;
            return true;
        }
    }
    return false;
}

static void kube_budget_read_expression(struct budget_reader *b)
{
    struct requirement_view q = {.key = STR_NULL};
    struct string_list values = {.n = 0};
    struct str op = STR_NULL;
    struct str key;
    jread_object (b->r, key) {
        if (str_eq(key, STR("key"))) {
            q.key = jread_str(b->r);
        } else if (str_eq(key, STR("operator"))) {
            op = jread_str(b->r);
        } else if (str_eq(key, STR("values"))) {
            values.n = 0;
            jread_array (b->r) {
                if (kube_budget_takes(b))
                    kube_budget_string_add(b, &values, jread_str(b->r));
            }
        } else {
            jread_skip(b->r);
        }
    }
    q.values = values.items;
    q.n_values = values.n;
    bool known = kube_budget_operator_of(op, &q.op);
    bool listed = q.op == REQUIREMENT_IN || q.op == REQUIREMENT_NOT_IN;
    if (!known || q.key.n == 0 || listed != (q.n_values > 0))
        b->selector.valid = false;
    kube_budget_requirement_add(b, &b->selector.expressions, q);
}

static void kube_budget_read_selector(struct budget_reader *b)
{
    struct str key;
    b->selector = (struct selector){.given = jread_type(b->r) != JTYPE_NULL, .valid = true};
    jread_object (b->r, key) {
        if (str_eq(key, STR("matchLabels"))) {
            kube_budget_read_match_labels(b);
        } else if (str_eq(key, STR("matchExpressions"))) {
            b->selector.expressions.n = 0;
            b->selector.valid = true;
            jread_array (b->r) {
                if (kube_budget_takes(b))
                    kube_budget_read_expression(b);
            }
        } else {
            jread_skip(b->r);
        }
    }
}

static void kube_budget_read_spec(struct budget_reader *b)
{
    struct str key;
    jread_object (b->r, key) {
        if (str_eq(key, STR("selector")))
            kube_budget_read_selector(b);
        else
            jread_skip(b->r);
    }
}

static void kube_budget_read_status(struct budget_reader *b, struct budget_view *ret)
{
    struct str key;
    struct str name;
    jread_object (b->r, key) {
        if (str_eq(key, STR("disruptionsAllowed"))) {
            int64_t allowed = jread_i64(b->r);
            ret->allowed = MIN_OF(MAX_OF(allowed, 0), INT32_MAX);
        } else if (str_eq(key, STR("disruptedPods"))) {
            b->disrupted.n = 0;
            jread_object (b->r, name) {
                if (!kube_budget_takes(b))
                    continue;
                kube_budget_string_add(b, &b->disrupted, name);
                jread_skip(b->r);
            }
        } else {
            jread_skip(b->r);
        }
    }
}

static void kube_budget_finish(struct budget_reader *b, bool beta, struct budget_view *ret)
{
    struct requirement_list all = b->selector.labels;
    if (b->terms > LIMIT_BUDGET_TERMS) {
        ret->selects = true;
        return;
    }
    for (size_t i = 0; i < b->selector.expressions.n; i++)
        kube_budget_requirement_add(b, &all, b->selector.expressions.items[i]);
    ret->requirements = all.items;
    ret->n_requirements = all.n;
    ret->selects = b->selector.given && b->selector.valid && (all.n > 0 || !beta);
    ret->disrupted = b->disrupted.items;
    ret->n_disrupted = b->disrupted.n;
}

void kube_read_budget(struct jread *r, struct arena *a, bool beta, struct budget_view *ret)
{
    struct budget_reader b = {.r = r, .arena = a};
    struct str version = STR_NULL;
    struct str key;
    *ret = (struct budget_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("apiVersion")))
            version = jread_str(r);
        else if (str_eq(key, STR("metadata")))
            kube_read_place(r, &ret->namespace, &ret->name);
        else if (str_eq(key, STR("spec")))
            kube_budget_read_spec(&b);
        else if (str_eq(key, STR("status")))
            kube_budget_read_status(&b, ret);
        else
            jread_skip(r);
    }
    if (version.n > 0)
        beta = str_eq(version, STR("policy/v1beta1"));
    kube_budget_finish(&b, beta, ret);
}
