/* The decoder of PodDisruptionBudget, for policy/v1 and policy/v1beta1. */
#include "objects/kube_budget.h"

#include "base/buf.h"
#include "fail_alloc.h"
#include "objects/limit.h"
#include "unit.h"

#include <stdio.h>

struct reading {
    struct jread r;
    struct arena arena;
    struct err err;
    struct budget_view budget;
};

static enum errc begin(struct reading *x, struct str json, bool beta)
{
    x->err = ERR_INIT;
    arena_init(&x->arena, MIB);
    jread_init(&x->r, json, &x->arena);
    kube_read_budget(&x->r, &x->arena, beta, &x->budget);
    return jread_finish(&x->r, &x->err);
}

static void end(struct reading *x)
{
    arena_done(&x->arena);
}

/* Writes "namespace/name allowed: a in 1,2; b exists - disrupted,pods"; "none": it selects no
 * pod. */
static void describe(struct buf *out, const struct budget_view *v)
{
    static const char *const ops[] = {[REQUIREMENT_IN] = "in",
                                      [REQUIREMENT_NOT_IN] = "not in",
                                      [REQUIREMENT_EXISTS] = "exists",
                                      [REQUIREMENT_ABSENT] = "absent"};
    buf_printf(out, "%.*s/%.*s %lld:", STR_ARG(v->namespace), STR_ARG(v->name),
               (long long)v->allowed);
    if (!v->selects)
        buf_put(out, STR(" none"));
    for (size_t i = 0; v->selects && i < v->n_requirements; i++) {
        const struct requirement_view *q = &v->requirements[i];
        buf_printf(out, "%s %.*s %s", i == 0 ? "" : ";", STR_ARG(q->key), ops[q->op]);
        for (size_t j = 0; j < q->n_values; j++)
            buf_printf(out, "%s%.*s", j == 0 ? " " : ",", STR_ARG(q->values[j]));
    }
    for (size_t i = 0; i < v->n_disrupted; i++)
        buf_printf(out, "%s%.*s", i == 0 ? " - " : ",", STR_ARG(v->disrupted[i]));
}

#define META            "\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}"
#define SELECTOR(s)     "{" META ",\"spec\":{\"minAvailable\":1,\"selector\":" s "}}"
#define EXPRESSIONS(s)  SELECTOR("{\"matchExpressions\":[" s "]}")
#define Q(k, o, v)      "{\"key\":\"" k "\",\"operator\":\"" o "\",\"values\":" v "}"
#define STATUS(s)       "{" META ",\"status\":" s "}"
#define VERSION(v, sel) "{\"apiVersion\":\"" v "\"," META ",\"spec\":{\"selector\":" sel "}}"

static const struct {
    const char *json;
    const char *v1;
    const char *beta; /* NULL: the same */
} good[] = {
    /* As the API server writes it. */
    {"{\"apiVersion\":\"policy/"
     "v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"web\","
     "\"namespace\":\"shop\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":1},\"spec\":{"
     "\"minAvailable\":\"50%\",\"selector\":{\"matchLabels\":{\"app\":\"web\",\"tier\":\"\"},"
     "\"matchExpressions\":[{\"key\":\"canary\",\"operator\":\"DoesNotExist\"},{\"key\":\"zone\","
     "\"operator\":\"In\",\"values\":[\"a\",\"b\"]}]}},\"status\":{\"observedGeneration\":1,"
     "\"disruptedPods\":{\"web-1\":\"2026-11-21T14:10:17Z\",\"web-2\":null},"
     "\"disruptionsAllowed\":2,\"currentHealthy\":4,\"desiredHealthy\":2,\"expectedPods\":4,"
     "\"conditions\":[{\"type\":\"DisruptionAllowed\"}]}}",
     "shop/web 2: app in web; tier in ; canary absent; zone in a,b - web-1,web-2", NULL},
    /* The empty selector means something else in each version; the object's own version counts. */
    {SELECTOR("{}"), "ns/b 0:", "ns/b 0: none"},
    {SELECTOR("{\"matchLabels\":{},\"matchExpressions\":[]}"), "ns/b 0:", "ns/b 0: none"},
    {SELECTOR("{\"matchLabels\":null,\"matchExpressions\":null}"), "ns/b 0:", "ns/b 0: none"},
    {VERSION("policy/v1", "{}"), "ns/b 0:", NULL},
    {VERSION("policy/v1beta1", "{}"), "ns/b 0: none", NULL},
    {"{" META ",\"spec\":{\"selector\":{}},\"apiVersion\":\"policy/v1beta1\"}", "ns/b 0: none",
     NULL},
    {VERSION("", "{}"), "ns/b 0:", "ns/b 0: none"},
    /* null: no selector. */
    {SELECTOR("null"), "ns/b 0: none", NULL},
    {"{" META ",\"spec\":{}}", "ns/b 0: none", NULL},
    {"{" META ",\"spec\":null,\"status\":null}", "ns/b 0: none", NULL},
    {"{" META "}", "ns/b 0: none", NULL},
    {"null", "/ 0: none", NULL},
    /* How a v1 server writes v1beta1's empty selector, and the reverse. */
    {EXPRESSIONS("{\"key\":\"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match\","
                 "\"operator\":\"Exists\"}"),
     "ns/b 0: pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match exists", NULL},
    /* Every operator. */
    {EXPRESSIONS(Q("k", "In", "[\"a\"]")), "ns/b 0: k in a", NULL},
    {EXPRESSIONS(Q("k", "NotIn", "[\"a\",\"\"]")), "ns/b 0: k not in a,", NULL},
    {EXPRESSIONS(Q("k", "Exists", "[]")), "ns/b 0: k exists", NULL},
    {EXPRESSIONS(Q("k", "DoesNotExist", "null")), "ns/b 0: k absent", NULL},
    {SELECTOR("{\"matchLabels\":{\"k\":null}}"), "ns/b 0: k in ", NULL},
    {SELECTOR("{\"matchLabels\":{\"k\\u0041\":\"\\u0042\"}}"), "ns/b 0: kA in B", NULL},
    /* Invalid in Kubernetes. */
    {EXPRESSIONS(Q("k", "In", "[]")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("k", "NotIn", "null")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("k", "Exists", "[\"a\"]")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("k", "DoesNotExist", "[\"a\"]")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("k", "in", "[\"a\"]")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("k", "Gt", "[\"1\"]")), "ns/b 0: none", NULL},
    {EXPRESSIONS(Q("", "Exists", "[]")), "ns/b 0: none", NULL},
    {EXPRESSIONS("null"), "ns/b 0: none", NULL},
    {EXPRESSIONS("{},{\"key\":\"a\",\"operator\":\"Exists\"}"), "ns/b 0: none", NULL},
    {SELECTOR("{\"matchExpressions\":[{}],\"matchLabels\":{\"a\":\"1\"}}"), "ns/b 0: none", NULL},
    /* Of duplicate keys the last one counts. */
    {SELECTOR("{\"matchExpressions\":[{}],\"matchExpressions\":null,\"matchLabels\":{\"a\":\"1\"},"
              "\"matchLabels\":{\"b\":\"2\"}}"),
     "ns/b 0: b in 2", NULL},
    {"{" META
     ",\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"1\"}},\"selector\":{\"matchLabels\""
     ":{\"b\":\"2\"}}}}",
     "ns/b 0: b in 2", NULL},
    {"{" META ",\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"1\"}},\"selector\":null}}",
     "ns/b 0: none", NULL},
    {EXPRESSIONS("{\"values\":[\"x\",\"y\"],\"key\":\"k\",\"operator\":\"In\",\"values\":[\"a\"]}"),
     "ns/b 0: k in a", NULL},
    /* Numbers. */
    {STATUS("{\"disruptionsAllowed\":5}"), "ns/b 5: none", NULL},
    {STATUS("{\"disruptionsAllowed\":-5}"), "ns/b 0: none", NULL},
    {STATUS("{\"disruptionsAllowed\":9223372036854775807}"), "ns/b 2147483647: none", NULL},
    {STATUS("{\"disruptedPods\":{\"x\":\"\"},\"disruptedPods\":{\"y\":\"\"}}"), "ns/b 0: none - y",
     NULL},
    {STATUS("{\"disruptedPods\":null}"), "ns/b 0: none", NULL},
};

TEST_EACH(reads_budgets, COUNT_OF(good))
{
    struct reading x;
    struct buf text;
    buf_init(&text, MIB);
    for (int beta = 0; beta < 2; beta++) {
        const char *expected = beta == 0 || good[_i].beta == NULL ? good[_i].v1 : good[_i].beta;
        ck_assert_ok(begin(&x, str_of(good[_i].json), beta == 1), &x.err);
        buf_clear(&text, 0);
        describe(&text, &x.budget);
        ck_assert_str_is(buf_str(&text), expected);
        end(&x);
    }
    buf_done(&text);
}

static const struct {
    const char *json;
    const char *error;
} bad[] = {
    {"[]", "expected an object, got a list at offset 0"},
    {"{\"spec\":{\"selector\":[]}}", "spec.selector: expected an object, got a list at offset 20"},
    {"{\"spec\":{\"selector\":{\"matchLabels\":{\"a\":1}}}}",
     "spec.selector.matchLabels.a: expected a string, got a number at offset 40"},
    {"{\"spec\":{\"selector\":{\"matchExpressions\":[{\"values\":[true]}]}}}",
     "spec.selector.matchExpressions[0].values[0]: expected a string, got a boolean at offset 52"},
    {"{\"status\":{\"disruptionsAllowed\":\"1\"}}",
     "status.disruptionsAllowed: expected an integer, got a string at offset 32"},
    {"{\"status\":{\"disruptedPods\":[]}}",
     "status.disruptedPods: expected an object, got a list at offset 27"},
};

TEST_EACH(names_what_is_wrong, COUNT_OF(bad))
{
    struct reading x;
    ck_assert_int_eq(begin(&x, str_of(bad[_i].json), false), ERR_SYNTAX);
    ck_assert_str_eq(x.err.text, bad[_i].error);
    end(&x);
}

#define ALL_OF(s) "{" META ",\"spec\":{\"selector\":" s

/* What an author, or a controller for him, can have as many of as an API server stores. */
static const struct {
    const char *before;
    const char *one;
    const char *after;
    size_t most; /* of which no more are compared */
} many[] = {
    {ALL_OF("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":["),
     "\"\\u0041\"", "]}]}}}", LIMIT_BUDGET_TERMS - 1},
    {ALL_OF("{\"matchExpressions\":["), Q("a", "In", "[\"\"]"), "]}}}", LIMIT_BUDGET_TERMS / 2},
    {ALL_OF("{\"matchLabels\":{"), "\"a\":\"\\u0041\"", "}}}}", LIMIT_BUDGET_TERMS},
    {ALL_OF("{\"matchLabels\":{\"a\":\"\"}}},\"status\":{\"disruptedPods\":{"), "\"p\":null", "}}}",
     LIMIT_BUDGET_TERMS - 1},
};

/* Whether an eviction of a pod without labels is charged to it. */
static bool selects_all(size_t of, size_t n)
{
    const struct budget_pod pod = {.namespace = STR("ns"), .name = STR("q")};
    const struct budget_pod other = {.namespace = STR("other"), .name = STR("q")};
    struct reading x;
    struct budgets b;
    struct buf json;
    buf_init(&json, 64 * MIB);
    buf_printf(&json, "%s", many[of].before);
    for (size_t i = 0; i < n; i++)
        buf_printf(&json, "%s%s", i == 0 ? "" : ",", many[of].one);
    buf_printf(&json, "%s", many[of].after);
    ck_assert_ok(begin(&x, buf_str(&json), false), &x.err);
    budgets_init(&b, (struct map_seed){1, 2});
    ck_assert_int_eq(budgets_set(&b, &x.budget), OK);
    bool all = budgets_next_of(&b, &pod, NULL) != NULL;
    ck_assert_ptr_null(budgets_next_of(&b, &other, NULL));
    budgets_done(&b);
    end(&x);
    buf_done(&json);
    return all;
}

TEST_EACH(one_that_is_too_long_selects_all_of_its_namespace, COUNT_OF(many))
{
    ck_assert(!selects_all((size_t)_i, many[_i].most));
    ck_assert(selects_all((size_t)_i, many[_i].most + 1));
    ck_assert(selects_all((size_t)_i, 1000000));
}

static void put_large(struct buf *out)
{
    buf_put(out, STR("{" META ",\"spec\":{\"selector\":{\"matchLabels\":{"));
    for (unsigned i = 0; i < 38; i++)
        buf_printf(out, "%s\"l%u\":\"v\\u002d%u\"", i == 0 ? "" : ",", i, i);
    buf_put(out, STR("},\"matchExpressions\":["));
    for (unsigned i = 0; i < 38; i++) {
        buf_printf(out, "%s{\"key\":\"e%u\",\"operator\":\"In\",\"values\":[", i == 0 ? "" : ",",
                   i);
        for (unsigned j = 0; j <= i; j++)
            buf_printf(out, "%s\"w\\u002d%u\"", j == 0 ? "" : ",", j);
        buf_put(out, STR("]}"));
    }
    buf_put(out, STR("]}},\"status\":{\"disruptedPods\":{"));
    for (unsigned i = 0; i < 190; i++)
        buf_printf(out, "%s\"p\\u002d%u\":\"\"", i == 0 ? "" : ",", i);
    buf_put(out, STR("}}}"));
}

static void check_large(const struct budget_view *v)
{
    char text[16];
    ck_assert(v->selects);
    ck_assert_uint_eq(v->n_requirements, 76);
    ck_assert_uint_eq(v->n_disrupted, 190);
    for (unsigned i = 0; i < 76; i++) {
        const struct requirement_view *q = &v->requirements[i];
        (void)snprintf(text, sizeof(text), "%c%u", i < 38 ? 'l' : 'e', i % 38);
        ck_assert_str_is(q->key, text);
        ck_assert_uint_eq(q->n_values, i < 38 ? 1 : i - 37);
        (void)snprintf(text, sizeof(text), "%c-%u", i < 38 ? 'v' : 'w', i % 38);
        ck_assert_str_is(q->values[q->n_values - 1], text);
    }
    for (unsigned i = 0; i < 190; i++) {
        (void)snprintf(text, sizeof(text), "p-%u", i);
        ck_assert_str_is(v->disrupted[i], text);
    }
}

static enum errc read_large(void *ctx)
{
    struct reading x;
    enum errc code = begin(&x, buf_str(ctx), false);
    if (code == OK)
        check_large(&x.budget);
    end(&x);
    return code;
}

TEST(survives_a_lack_of_memory)
{
    struct buf json;
    buf_init(&json, MIB);
    put_large(&json);
    ck_assert_uint_gt(fail_alloc_each(read_large, &json), 2);
    buf_done(&json);
}

/* At every place where the arena may be full. */
TEST(no_room_is_an_error_of_its_own)
{
    struct buf json;
    bool fits = false;
    buf_init(&json, MIB);
    put_large(&json);
    for (size_t room = 0; !fits; room += 64) {
        struct reading x = {.err = ERR_INIT};
        arena_init(&x.arena, room);
        jread_init(&x.r, buf_str(&json), &x.arena);
        kube_read_budget(&x.r, &x.arena, false, &x.budget);
        enum errc code = jread_finish(&x.r, &x.err);
        fits = code == OK;
        if (fits)
            check_large(&x.budget);
        else
            ck_assert_int_eq(code, ERR_LIMIT);
        ck_assert_uint_lt(room, MIB);
        end(&x);
    }
    buf_done(&json);
}
