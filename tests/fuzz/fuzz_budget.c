/*
 * Compares the PodDisruptionBudget reader with a simple reading of jansson's tree, and the store's
 * answer for a pod with the rules for labels. The first byte chooses the API version.
 */
#include "objects/kube_budget.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A pod with some of the labels in the corpus. */
static const struct label_view labels[] = {{{"app", 3}, {"web", 3}}, {{"k", 1}, {"", 0}}};

/* NULL: the pod lacks it. */
static const struct str *label_of(struct str key)
{
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        if (str_eq(labels[i].key, key))
            return &labels[i].value;
    }
    return NULL;
}

static struct str text_of(const json_t *value)
{
    struct str s = jansson_str(value);
    return s.p == NULL ? STR("") : s;
}

enum answer {
    NOT_VALID,
    DOES_NOT_HOLD,
    HOLDS
};

static enum answer expression_holds(const json_t *q)
{
    const json_t *values = json_object_get(q, "values");
    struct str key = text_of(json_object_get(q, "key"));
    struct str op = text_of(json_object_get(q, "operator"));
    const struct str *label = label_of(key);
    bool exists = str_eq(op, STR("Exists")) || str_eq(op, STR("DoesNotExist"));
    bool in = false;
    if (key.n == 0 || (!exists && !str_eq(op, STR("In")) && !str_eq(op, STR("NotIn"))) ||
        exists != (json_array_size(values) == 0))
        return NOT_VALID;
    for (size_t i = 0; label != NULL && i < json_array_size(values); i++)
        in = in || str_eq(*label, text_of(json_array_get(values, i)));
    bool holds = str_eq(op, STR("Exists"))         ? label != NULL
                 : str_eq(op, STR("DoesNotExist")) ? label == NULL
                 : str_eq(op, STR("In"))           ? in
                                                   : !in;
    return holds ? HOLDS : DOES_NOT_HOLD;
}

static bool selected(const json_t *selector, bool beta)
{
    json_t *plain = json_object_get(selector, "matchLabels");
    const json_t *expressions = json_object_get(selector, "matchExpressions");
    const char *key = NULL;
    size_t n = 0;
    json_t *value = NULL;
    bool all = json_is_object(selector);
    json_object_keylen_foreach(plain, key, n, value)
    {
        const struct str *label = label_of((struct str){key, n});
        all = all && label != NULL && str_eq(*label, text_of(value));
    }
    for (size_t i = 0; i < json_array_size(expressions); i++)
        all = all && expression_holds(json_array_get(expressions, i)) == HOLDS;
    return all && !(beta && json_object_size(plain) + json_array_size(expressions) == 0);
}

static void compare(const struct budget_view *view, const json_t *json, bool beta, bool charged)
{
    const json_t *metadata = json_object_get(json, "metadata");
    const json_t *status = json_object_get(json, "status");
    json_int_t allowed = json_integer_value(json_object_get(status, "disruptionsAllowed"));
    const json_t *disrupted = json_object_get(status, "disruptedPods");
    struct str version = jansson_str(json_object_get(json, "apiVersion"));
    if (version.n > 0)
        beta = str_eq(version, STR("policy/v1beta1"));
    same_text(view->name, json_object_get(metadata, "name"));
    same_text(view->namespace, json_object_get(metadata, "namespace"));
    check(view->allowed == MIN_OF(MAX_OF(allowed, 0), INT32_MAX), "the same figure");
    check(view->n_disrupted == json_object_size(disrupted), "as many disrupted pods");
    bool ours = selected(json_object_get(json_object_get(json, "spec"), "selector"), beta) &&
                json_object_get(disrupted, "p") == NULL;
    check(ours == charged, "the pod is charged to it");
}

/* Whether pod "p" of the budget's namespace is charged to it, in a store with this budget alone. */
static bool take_in(const struct budget_view *view)
{
    struct budgets b;
    const struct budget_pod pod = {.namespace = view->namespace,
                                   .name = STR("p"),
                                   .labels = labels,
                                   .n_labels = COUNT_OF(labels)};
    budgets_init(&b, (struct map_seed){1, 2});
    for (int twice = 0; twice < 2; twice++) {
        check(budgets_set(&b, view) == OK, "any budget is taken in");
        budgets_check(&b);
    }
    bool charged = budgets_next_of(&b, &pod, NULL) != NULL;
    budgets_count_begin(&b);
    bool violates = budgets_count(&b, &pod);
    check(violates == (charged && view->allowed == 0), "the first victim violates only 0");
    check(budgets_gone(&b, view->namespace, view->name), "it is there");
    budgets_check(&b);
    check(b.all.n == 0 && b.spaces.n == 0, "and is gone");
    budgets_done(&b);
    return charged;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool beta = size > 0 && data[0] == 'b';
    struct str text = {(const char *)data + MIN_OF(size, 1), size - MIN_OF(size, 1)};
    struct jread r;
    struct budget_view view;
    struct arena arena;
    arena_init(&arena, MIB);
    jread_init(&r, text, &arena);
    kube_read_budget(&r, &arena, beta, &view);
    if (jread_finish(&r, NULL) == OK) {
        bool charged = take_in(&view);
        json_t *json = jansson_reads(text);
        if (json != NULL)
            compare(&view, json, beta, charged);
        json_decref(json);
    }
    arena_done(&arena);
    return 0;
}
