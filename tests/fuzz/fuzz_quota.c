/*
 * Compares the limits of namespaces, in YAML or JSON, with jansson's tree of the same document.
 * Valid limits are put in force; a namespace that takes whatever fits must never exceed them.
 */
#include "objects/quota_config.h"

#include "core/limit.h"
#include "objects/limit.h"
#include "rules.h"
#include "json/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const kinds[QUOTA_KINDS] = {"memory", "cards", "compute"};

static const json_t *member(const json_t *object, struct str key)
{
    return json_object_getn(object, key.p, key.n);
}

/* The number of limits in the tree for these names; all must be in the entry. */
static size_t same_limits(const struct quota_entry *e, enum quota_scope scope, const json_t *tree)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n_limits; i++) {
        const struct quota_limit *l = &e->limits[i];
        if (l->scope != scope)
            continue;
        const json_t *limit = scope == QUOTA_TOTAL ? tree : member(tree, l->name);
        check(json_is_object(limit), "each limit is in the document");
        for (unsigned k = 0; k < QUOTA_KINDS; k++) {
            const json_t *most = json_object_get(limit, kinds[k]);
            check(most == NULL ? l->most[k] == QUOTA_UNLIMITED
                               : l->most[k] >= 0 && l->most[k] == json_integer_value(most),
                  "with the same numbers");
        }
        n++;
    }
    return n;
}

static void same_names(const struct str *names, size_t n, const json_t *tree)
{
    check(json_array_size(tree) == n, "the same names");
    for (size_t i = 0; i < n; i++)
        check(str_eq(names[i], jansson_str(json_array_get(tree, i))), "in the same order");
}

static void compare(const struct quota_view *view, const json_t *document)
{
    const json_t *tree = json_object_get(document, "namespaces");
    check(json_object_size(tree) == view->n, "every namespace is there");
    for (size_t i = 0; i < view->n; i++) {
        const struct quota_entry *e = &view->entries[i];
        const json_t *entry = member(tree, e->namespace);
        const json_t *total = json_object_get(entry, "limits");
        const json_t *by_pool = json_object_get(entry, "perPool");
        const json_t *by_model = json_object_get(entry, "perModel");
        check(json_is_object(entry), "each namespace is in the document");
        check(same_limits(e, QUOTA_TOTAL, total) == (total == NULL ? 0 : 1), "the total");
        check(same_limits(e, QUOTA_POOL, by_pool) == json_object_size(by_pool), "every pool");
        check(same_limits(e, QUOTA_MODEL, by_model) == json_object_size(by_model), "every model");
        same_names(e->pools, e->n_pools, json_object_get(entry, "pools"));
        same_names(e->models, e->n_models, json_object_get(entry, "models"));
    }
}

/* Takes what fits, of one pool and one model, and releases it. */
static void take(const struct quota *q, struct quota_tenant *t, struct str pool, struct str model)
{
    struct quota_use use = {pool, model, {3, 1, 40}};
    struct quota_refusal refusal;
    struct quota_account a = quota_account(q, t->namespace);
    char text[512];
    struct buf reason = BUF_ON(text);
    int taken = 0;
    uint64_t compared = 0;
    while (taken < 10 && quota_fit(&a, &use, 1, &refusal, &compared)) {
        quota_charge(t, &use, 1);
        taken++;
    }
    if (taken < 10) {
        quota_refusal_write(&refusal, &reason);
        check(!buf_failed(&reason) && reason.n > 0, "a reason has room");
        check(refusal.fault != QUOTA_EXCEEDED || refusal.used + refusal.asked > refusal.limit,
              "and is one");
    }
    for (size_t i = 0; a.entry != NULL && i < a.entry->n_limits; i++) {
        for (unsigned k = 0; k < QUOTA_KINDS; k++)
            check(a.entry->limits[i].most[k] < 0 || a.used[i].of[k] <= a.entry->limits[i].most[k],
                  "no limit is exceeded");
    }
    quota_check(q);
    while (taken-- > 0)
        quota_charge(t, &use, -1);
}

static void put_in_force(const struct quota_view *view)
{
    struct quota q;
    quota_init(&q, (struct map_seed){1, 2});
    struct quota_tenant *early = quota_join(&q, STR("stranger"));
    check(quota_set(&q, view) == OK && early != NULL, "there is memory");
    take(&q, early, STR("gold"), STR("NVIDIA-A100"));
    for (size_t i = 0; i < view->n; i++) {
        const struct quota_entry *e = &view->entries[i];
        struct quota_tenant *t = quota_join(&q, e->namespace);
        check(t != NULL, "there is memory");
        take(&q, t, e->n_pools == 0 ? STR_NULL : e->pools[0],
             e->n_models == 0 ? STR("a") : e->models[0]);
        quota_leave(&q, t);
    }
    check(quota_set(&q, &(struct quota_view){NULL, 0}) == OK, "no limits take no memory");
    quota_leave(&q, early);
    check(q.tenants.n == 0, "no namespace is left");
    quota_done(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct quota_view view = {NULL, 0};
    struct err err = ERR_INIT;
    struct arena arena;
    struct buf json;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    buf_init(&json, LIMIT_QUOTA_JSON);
    enum errc code = quota_config_read(text, &arena, &view, &err);
    check((code == OK) == (err.text[0] == '\0') && err.code == code, "an error says why");
    if (code == OK) {
        check(yaml_to_json(text, &json, &err) == OK, "it is a document");
        json_t *document = jansson_reads(buf_str(&json));
        check(document != NULL, "that jansson reads, too");
        compare(&view, document);
        json_decref(document);
        put_in_force(&view);
    }
    buf_done(&json);
    arena_done(&arena);
    return 0;
}
