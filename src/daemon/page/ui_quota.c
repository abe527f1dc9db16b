/* A namespace has limits by its own entry, or, while it has pods, by the entry "*". */
#include "daemon/page/ui_quota.h"

#include "daemon/limit.h"
#include "daemon/page/ui_least.h"

static int ui_quota_by_name(const void *a, const void *b)
{
    const struct str *x = *(const struct str *const *)a;
    const struct str *y = *(const struct str *const *)b;
    return str_cmp(*x, *y);
}

static bool ui_quota_is_for_others(const struct quota_entry *e)
{
    return str_eq(e->namespace, STR("*"));
}

static void ui_quota_collect(const struct quota *q, struct ui_least *names)
{
    size_t cursor = 0;
    for (const struct quota_entry *e = map_next(&q->entries, &cursor); e != NULL;
         e = map_next(&q->entries, &cursor)) {
        if (e->n_limits > 0 && !ui_quota_is_for_others(e))
            ui_least_add(names, &e->namespace);
    }
    cursor = 0;
    for (const struct quota_tenant *t = map_next(&q->tenants, &cursor); t != NULL;
         t = map_next(&q->tenants, &cursor)) {
        if (t->entry != NULL && t->entry->n_limits > 0 && ui_quota_is_for_others(t->entry))
            ui_least_add(names, &t->namespace);
    }
    ui_least_sort(names);
}

static void ui_quota_put_limit(struct jwrite *w, const struct quota_limit *limit,
                               const struct quota_sum *used, enum quota_kind kind)
{
    static const char *const kinds[QUOTA_KINDS] = {
        [QUOTA_MEMORY] = "memory", [QUOTA_CARDS] = "cards", [QUOTA_COMPUTE] = "compute"};
    __int128 held = used == NULL ? 0 : used->of[kind];
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("kind"), str_of(kinds[kind]));
    if (limit->scope != QUOTA_TOTAL)
        jwrite_str_at(w, limit->scope == QUOTA_POOL ? STR("pool") : STR("model"), limit->name);
    jwrite_i64_at(w, STR("used"), (int64_t)MIN_OF(held, (__int128)INT64_MAX));
    jwrite_i64_at(w, STR("limit"), limit->most[kind]);
    jwrite_object_end(w);
}

static void ui_quota_put_namespace(struct jwrite *w, const struct quota *q, struct str name)
{
    struct quota_account account = quota_account(q, name);
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("name"), name);
    jwrite_array_at(w, STR("limits"));
    for (size_t i = 0; i < account.entry->n_limits; i++) {
        for (unsigned k = 0; k < QUOTA_KINDS; k++) {
            if (account.entry->limits[i].most[k] != QUOTA_UNLIMITED)
                ui_quota_put_limit(w, &account.entry->limits[i],
                                   account.used == NULL ? NULL : &account.used[i],
                                   (enum quota_kind)k);
        }
    }
    jwrite_array_end(w);
    jwrite_object_end(w);
}

void ui_quota_write(struct jwrite *w, const struct quota *q)
{
    const void *room[LIMIT_UI_QUOTAS];
    struct ui_least names = {.items = room, .max = COUNT_OF(room), .order = ui_quota_by_name};
    size_t before = w->out->n;
    ui_quota_collect(q, &names);
    jwrite_object_begin(w);
    jwrite_array_at(w, STR("namespaces"));
    for (size_t i = 0; i < names.n && w->out->n - before < UI_QUOTA_BYTES; i++)
        ui_quota_put_namespace(w, q, *(const struct str *)names.items[i]);
    jwrite_array_end(w);
    jwrite_u64_at(w, STR("total"), names.total);
    jwrite_object_end(w);
}
