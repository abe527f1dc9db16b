/*
 * PodDisruptionBudgets in core/: which pods a budget selects, how evictions count, lists, and lack
 * of memory.
 */
#include "core/limit.h"
#include "core/preempt/budget.h"

#include "fail_alloc.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>

static const struct map_seed seed = {1, 2};

static void set(struct budgets *b, const struct budget_view *view)
{
    ck_assert_int_eq(budgets_set(b, view), OK);
    budgets_check(b);
}

/* ---- which pods a budget selects ---- */

#define WORDS_MAX 4

struct words {
    struct str w[WORDS_MAX];
    size_t n;
};

/* Splits at the separator; an empty text has no parts. */
static void split(struct words *out, struct str text, char separator)
{
    out->n = 0;
    while (text.n > 0 || (text.p != NULL && out->n > 0)) {
        ck_assert_uint_lt(out->n, WORDS_MAX);
        (void)str_cut(text, separator, &out->w[out->n++], &text);
    }
}

struct selector {
    struct requirement_view requirements[WORDS_MAX];
    struct words values[WORDS_MAX];
    size_t n;
};

/* Parses "a=1,2 b!=3 c !d": In, NotIn, Exists, DoesNotExist. */
static void selector_of(struct selector *out, const char *text)
{
    struct words words;
    split(&words, str_of(text), ' ');
    out->n = words.n;
    for (size_t i = 0; i < words.n; i++) {
        struct requirement_view *r = &out->requirements[i];
        struct str values = STR_NULL;
        bool listed = str_cut(words.w[i], '=', &r->key, &values);
        r->op = listed ? REQUIREMENT_IN : REQUIREMENT_EXISTS;
        if (listed && str_ends(r->key, STR("!"))) {
            r->op = REQUIREMENT_NOT_IN;
            r->key.n--;
        } else if (str_starts(r->key, STR("!"))) {
            r->op = REQUIREMENT_ABSENT;
            r->key = str_skip(r->key, 1);
        }
        split(&out->values[i], values, ',');
        if (listed && values.n == 0)
            out->values[i] = (struct words){.w = {STR("")}, .n = 1};
        r->values = out->values[i].w;
        r->n_values = out->values[i].n;
    }
}

/* Parses "a=1 b=2". */
static size_t labels_of(struct label_view out[WORDS_MAX], const char *text)
{
    struct words words;
    split(&words, str_of(text), ' ');
    for (size_t i = 0; i < words.n; i++)
        ck_assert(str_cut(words.w[i], '=', &out[i].key, &out[i].value));
    return words.n;
}

static const struct {
    const char *selector;
    const char *labels;
    bool selected;
} selectors[] = {
    /* An empty selector selects every pod, also without labels. */
    {"", "", true},
    {"", "a=1", true},
    {"a=1", "a=1", true},
    {"a=1", "a=2", false},
    {"a=1", "b=1", false},
    {"a=1", "a=", false},
    {"a=", "a=", true},
    {"a=", "", false},
    {"a=1", "", false},
    {"a=1,2", "b=9 a=2", true},
    {"a=1,2", "a=12", false},
    {"a!=1,2", "a=2", false},
    {"a!=1,2", "a=3", true},
    {"a!=1", "b=1", true},
    {"a!=1", "", true},
    {"a", "a=", true},
    {"a", "b=a", false},
    {"!a", "a=", false},
    {"!a", "A=", true},
    {"!a", "", true},
    /* All requirements must hold. */
    {"a=1 b=2", "a=1 b=2", true},
    {"a=1 b=2", "a=1 b=3", false},
    {"a=1 b=2", "b=2", false},
    {"a a!=1 !b", "a=2", true},
    {"a a!=1 !b", "a=1", false},
    {"a a!=1 !b", "a=2 b=", false},
    {"a=1 a=2", "a=1", false},
    /* Of duplicate labels the last one counts. */
    {"a=1", "a=2 a=1", true},
    {"a=1", "a=1 a=2", false},
};

TEST_EACH(selects_by_labels, COUNT_OF(selectors))
{
    struct budgets b;
    struct label_view labels[WORDS_MAX];
    struct selector selector;
    selector_of(&selector, selectors[_i].selector);
    struct budget_pod pod = {.namespace = STR("ns"),
                             .name = STR("p"),
                             .labels = labels,
                             .n_labels = labels_of(labels, selectors[_i].labels)};
    struct budget_view view = {.namespace = STR("ns"),
                               .name = STR("b"),
                               .selects = true,
                               .requirements = selector.requirements,
                               .n_requirements = selector.n};
    budgets_init(&b, seed);
    set(&b, &view);
    const struct budget *found = budgets_next_of(&b, &pod, NULL);
    ck_assert_int_eq(found != NULL, selectors[_i].selected);
    ck_assert(found == NULL || budgets_next_of(&b, &pod, found) == NULL);
    pod.namespace = STR("n");
    ck_assert_ptr_null(budgets_next_of(&b, &pod, NULL));
    /* A selector that selects no pod, whatever else it says. */
    pod.namespace = STR("ns");
    view.selects = false;
    set(&b, &view);
    ck_assert_ptr_null(budgets_next_of(&b, &pod, NULL));
    budgets_done(&b);
}

/* ---- how evictions count ---- */

static struct budget_pod pod_of(const char *namespace, const char *name,
                                const struct label_view *label)
{
    return (struct budget_pod){
        .namespace = str_of(namespace), .name = str_of(name), .labels = label, .n_labels = 1};
}

TEST(counts_what_is_left)
{
    struct budgets b;
    struct label_view red;
    struct label_view blue;
    struct selector reds;
    static const struct str gone[] = {STR("r8"), STR("r9")};
    struct budget_view view = {.namespace = STR("ns"),
                               .name = STR("reds"),
                               .selects = true,
                               .requirements = reds.requirements,
                               .n_requirements = 1,
                               .allowed = 2,
                               .disrupted = gone,
                               .n_disrupted = 2};
    struct budget_pod p[] = {pod_of("ns", "r0", &red), pod_of("ns", "r1", &red),
                             pod_of("ns", "r2", &red), pod_of("ns", "r3", &red)};
    struct budget_pod other = pod_of("ns", "b0", &blue);
    struct budget_pod elsewhere = pod_of("other", "r0", &red);
    struct budget_pod counted = pod_of("ns", "r9", &red);
    selector_of(&reds, "color=red");
    red = (struct label_view){STR("color"), STR("red")};
    blue = (struct label_view){STR("color"), STR("blue")};
    budgets_init(&b, seed);
    set(&b, &view);
    const struct budget *d = budgets_get(&b, STR("ns"), STR("reds"));
    ck_assert_int_eq(budgets_left(&b, d), 2);
    for (int round = 0; round < 2; round++) {
        budgets_count_begin(&b);
        ck_assert_int_eq(budgets_left(&b, d), 2);
        ck_assert(!budgets_count(&b, &p[0]));
        ck_assert(!budgets_count(&b, &other));
        ck_assert(!budgets_count(&b, &p[1]));
        ck_assert(budgets_count(&b, &p[2]));
        /* Each further eviction is one more violation. Pods that the budget does not select do not
         * count. */
        ck_assert(budgets_count(&b, &p[3]));
        ck_assert(!budgets_count(&b, &other));
        ck_assert(!budgets_count(&b, &elsewhere));
        ck_assert(!budgets_count(&b, &counted));
        ck_assert_int_eq(budgets_left(&b, d), -2);
        budgets_check(&b);
    }
    /* A pod of two budgets is a violation if one of them allows no more evictions. */
    view = (struct budget_view){
        .namespace = STR("ns"), .name = STR("all"), .selects = true, .allowed = 1};
    set(&b, &view);
    budgets_count_begin(&b);
    ck_assert(!budgets_count(&b, &p[0]));
    ck_assert(budgets_count(&b, &p[1]));
    ck_assert(budgets_count(&b, &counted));
    /* When a budget changes, its count starts again. */
    view.allowed = 3;
    set(&b, &view);
    ck_assert(!budgets_count(&b, &other));
    budgets_done(&b);
}

START_TEST(counting_begins_with_a_round)
{
    struct budgets b;
    const struct budget_pod pod = {.namespace = STR("ns")};
    budgets_init(&b, seed);
    (void)budgets_count(&b, &pod);
}

/* ---- limits ---- */

/* A budget in namespace ns that selects by n values, none of which any pod has. */
static void set_long(struct budgets *b, const char *name, size_t n)
{
    static struct str values[1023];
    for (size_t i = 0; i < n; i++)
        values[i] = STR("a-value-that-is-as-long-as-a-label's-may-be-which-is-63-bytes-x");
    const struct requirement_view r = {
        .key = STR("k"), .op = REQUIREMENT_IN, .values = values, .n_values = n};
    const struct budget_view view = {.namespace = STR("ns"),
                                     .name = str_of(name),
                                     .selects = true,
                                     .requirements = &r,
                                     .n_requirements = 1};
    set(b, &view);
}

static bool is_charged(struct budgets *b, const char *namespace)
{
    const struct budget_pod pod = {.namespace = str_of(namespace), .name = STR("p")};
    return budgets_next_of(b, &pod, NULL) != NULL;
}

/* Else a tenant's budgets take all of the process' memory, again after each start. */
TEST(all_together_are_bounded)
{
    struct budgets b;
    char name[16];
    budgets_init(&b, seed);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "b%d", i);
        set_long(&b, name, 1023);
    }
    ck_assert_uint_le(b.bytes, LIMIT_BUDGETS_BYTES + 2000 * sizeof(struct budget));
    ck_assert_uint_gt(b.bytes, LIMIT_BUDGETS_BYTES / 2);
    ck_assert(is_charged(&b, "ns"));
    ck_assert(budgets_gone(&b, STR("ns"), STR("b0")));
    budgets_check(&b);
    budgets_done(&b);
}

/* ---- lists ---- */

static void set_name(struct budgets *b, const char *namespace, const char *name)
{
    const struct budget_view view = {.namespace = str_of(namespace), .name = str_of(name)};
    set(b, &view);
}

static bool knows(const struct budgets *b, const char *namespace, const char *name)
{
    return budgets_get(b, str_of(namespace), str_of(name)) != NULL;
}

TEST(a_list_sweeps_what_it_lacks)
{
    struct budgets b;
    budgets_init(&b, seed);
    budgets_list_begin(&b);
    set_name(&b, "x", "1");
    set_name(&b, "x", "2");
    set_name(&b, "y", "1");
    ck_assert_uint_eq(budgets_list_end(&b), 0);
    budgets_list_begin(&b);
    set_name(&b, "x", "2");
    set_name(&b, "z", "1");
    ck_assert_uint_eq(budgets_list_end(&b), 2);
    budgets_check(&b);
    ck_assert(!knows(&b, "x", "1") && knows(&b, "x", "2"));
    ck_assert(!knows(&b, "y", "1") && knows(&b, "z", "1"));
    /* Changes from the watch after the list stay until the next list. */
    set_name(&b, "x", "3");
    ck_assert(budgets_gone(&b, STR("z"), STR("1")));
    ck_assert(!budgets_gone(&b, STR("z"), STR("1")));
    ck_assert(!budgets_gone(&b, STR("x"), STR("4")));
    budgets_check(&b);
    ck_assert_uint_eq(b.all.n, 2);
    budgets_list_begin(&b);
    ck_assert_uint_eq(budgets_list_end(&b), 2);
    ck_assert_uint_eq(b.all.n + b.spaces.n, 0);
    budgets_done(&b);
}

TEST(a_torn_list_sweeps_nothing)
{
    struct budgets b;
    budgets_init(&b, seed);
    budgets_list_begin(&b);
    budgets_list_tear(&b);
    ck_assert_uint_eq(budgets_list_end(&b), 0);
    set_name(&b, "x", "1");
    budgets_list_begin(&b);
    budgets_list_tear(&b);
    ck_assert_uint_eq(budgets_list_end(&b), 0);
    ck_assert(knows(&b, "x", "1"));
    budgets_list_begin(&b);
    ck_assert_uint_eq(budgets_list_end(&b), 1);
    ck_assert(!knows(&b, "x", "1"));
    budgets_done(&b);
}

/* ---- memory ---- */

/* Sets many budgets, some again. A failed set must change nothing, except that the list is torn. */
static enum errc set_many(void *ctx)
{
    struct budgets b;
    enum errc code = OK;
    static const struct str values[] = {STR("1"), STR("22")};
    static const struct requirement_view requirements[] = {{STR("k"), REQUIREMENT_IN, values, 2}};
    (void)ctx;
    budgets_init(&b, seed);
    budgets_list_begin(&b);
    for (unsigned i = 0; i < 60; i++) {
        char name[8];
        char namespace[8];
        (void)snprintf(name, sizeof(name), "b%u", i % 40);
        (void)snprintf(namespace, sizeof(namespace), "n%u", i % 20);
        const struct budget_view view = {.namespace = str_of(namespace),
                                         .name = str_of(name),
                                         .selects = true,
                                         .requirements = requirements,
                                         .n_requirements = 1,
                                         .allowed = i,
                                         .disrupted = values,
                                         .n_disrupted = 2};
        const struct budget *old = budgets_get(&b, view.namespace, view.name);
        int64_t before = old == NULL ? -1 : old->is.allowed;
        size_t n = b.all.n;
        size_t spaces = b.spaces.n;
        if (budgets_set(&b, &view) != OK) {
            old = budgets_get(&b, view.namespace, view.name);
            ck_assert_int_eq(old == NULL ? -1 : old->is.allowed, before);
            ck_assert(b.all.n == n && b.spaces.n == spaces && b.torn);
            code = ERR_NOMEM;
        }
        budgets_check(&b);
    }
    ck_assert_uint_eq(budgets_list_end(&b), 0);
    budgets_done(&b);
    return code;
}

TEST(survives_a_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(set_many, NULL), 60);
}

int main(void)
{
    TCase *tc = unit_case("budget");
    tcase_add_test_raise_signal(tc, counting_begins_with_a_round, SIGABRT);
    return unit_run();
}
