/*
 * Runs one reflector at a time, for one of the two paths. A change of the path replaces the
 * reflector, so that no list mixes both. The first 404 changes the path at once. If the other path
 * answers 404 too, the feed tries each in turn every again_ms: a load balancer, or an API server
 * that is starting, answers 404 for paths that it will serve.
 */
#include "daemon/backend/budget_feed.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/reflector.h"
#include "objects/kube.h"
#include "objects/kube_budget.h"

#define WATCH_QUIET_MS 180000
#define AGAIN_MS       10000

struct budget_feed {
    struct budget_feed_settings s;
    struct reflector *reflector;
    struct arena arena; /* for one object at a time */
    bool beta;          /* the reflector uses policy/v1beta1 */
    bool turned_away;   /* the other path answered 404 since the last complete list */
    bool logged;        /* the log says that no budgets can be read */
    struct deferred exchange;
    struct timer other;  /* does the exchange later */
    struct timer relist; /* armed when memory was short for a budget */
};

static void budget_feed_lose(struct budget_feed *f)
{
    log_error("out of memory: a PodDisruptionBudget was left out, the list will be read again");
    if (!timer_armed(&f->relist))
        timer_arm(f->s.loop, &f->relist, f->s.again_ms);
}

static void budget_feed_relist(struct timer *t)
{
    struct budget_feed *f = CONTAINER_OF(t, struct budget_feed, relist);
    reflector_relist(f->reflector);
}

static void budget_feed_on_begin(void *ctx)
{
    struct budget_feed *f = ctx;
    budgets_list_begin(f->s.budgets);
}

/* Of a budget that can't be read only its existence counts: it selects all pods of its namespace.
 */
static void budget_feed_read_place(struct budget_feed *f, struct str json, struct budget_view *ret)
{
    struct jread r;
    arena_reset(&f->arena);
    jread_init(&r, json, &f->arena);
    *ret = (struct budget_view){.name = kube_read_of(&r, STR("metadata"), STR("name")),
                                .selects = true};
    jread_init(&r, json, &f->arena);
    ret->namespace = kube_read_of(&r, STR("metadata"), STR("namespace"));
}

/* Decodes one object. False: memory is short, or it has no name; that is logged. */
static bool budget_feed_read_object(struct budget_feed *f, struct str json, struct budget_view *ret)
{
    struct jread r;
    struct err e = ERR_INIT;
    arena_reset(&f->arena);
    jread_init(&r, json, &f->arena);
    kube_read_budget(&r, &f->arena, f->beta, ret);
    if (jread_finish(&r, &e) == OK && ret->name.n > 0 && ret->namespace.n > 0)
        return true;
    if (e.code == OK)
        (void)err_set(&e, ERR_SYNTAX, "it has no metadata.name or no metadata.namespace");
    budget_feed_read_place(f, json, ret);
    if (e.code != ERR_NOMEM && ret->name.n > 0 && ret->namespace.n > 0) {
        log_error("a PodDisruptionBudget can't be read: it selects all pods of its namespace",
                  kv_str("namespace", ret->namespace), kv_str("name", ret->name),
                  kv_cstr("error", e.text));
        return true;
    }
    budgets_list_tear(f->s.budgets);
    log_error("an object can't be read and is left out", kv_cstr("kind", "PodDisruptionBudget"),
              kv_str("name", ret->name), kv_cstr("error", e.text));
    if (e.code == ERR_NOMEM)
        budget_feed_lose(f);
    return false;
}

static void budget_feed_on_change(void *ctx, enum reflector_change change, struct str object)
{
    struct budget_feed *f = ctx;
    struct budget_view view;
    if (!budget_feed_read_object(f, object, &view))
        return;
    if (change == REFLECTOR_GONE) {
        (void)budgets_gone(f->s.budgets, view.namespace, view.name);
        log_debug("a disruption budget is gone", kv_str("namespace", view.namespace),
                  kv_str("name", view.name));
        return;
    }
    if (budgets_set(f->s.budgets, &view) != OK)
        budget_feed_lose(f);
    log_debug("a disruption budget", kv_str("namespace", view.namespace), kv_str("name", view.name),
              kv_int("allowed", view.allowed), kv_bool("selects", view.selects),
              kv_uint("requirements", view.n_requirements));
}

static void budget_feed_on_end(void *ctx)
{
    struct budget_feed *f = ctx;
    unsigned swept = budgets_list_end(f->s.budgets);
    f->turned_away = f->logged = false;
    timer_cancel(&f->other);
    if (f->s.budgets->torn)
        log_error("an object of the list was left out: objects missing in this list are kept",
                  kv_cstr("kind", "PodDisruptionBudget"));
    else
        log_info("list is in", kv_cstr("kind", "PodDisruptionBudget"),
                 kv_cstr("version", f->beta ? "policy/v1beta1" : "policy/v1"),
                 kv_uint("budgets", f->s.budgets->all.n), kv_uint("gone", swept));
}

static void budget_feed_tell_none(struct budget_feed *f, const struct err *err)
{
    if (f->logged)
        return;
    f->logged = true;
    log_warn("can't read PodDisruptionBudgets: victims are chosen without them",
             kv_cstr("error", err->text));
}

static void budget_feed_on_note(void *ctx, const char *what, const struct err *err,
                                uint64_t retry_in_ms)
{
    struct budget_feed *f = ctx;
    bool absent = reflector_absent(f->reflector) && err != NULL && err->code == ERR_NOTFOUND;
    bool denied = absent || reflector_denied(f->reflector);
    if (absent && !f->turned_away) {
        f->turned_away = true;
        loop_defer(f->s.loop, &f->exchange);
    } else if (absent && !timer_armed(&f->other)) {
        timer_arm(f->s.loop, &f->other, f->s.again_ms);
        budget_feed_tell_none(f, err);
    } else if (denied && !absent && err != NULL) {
        budget_feed_tell_none(f, err);
    }
    if (err == NULL || err->code == OK || denied)
        log_debug(what, kv_cstr("of", "poddisruptionbudgets"),
                  kv_cstr("error", err == NULL ? "" : err->text));
    else
        log_warn(what, kv_cstr("of", "poddisruptionbudgets"), kv_cstr("error", err->text),
                 kv_uint("retry_in_ms", retry_in_ms));
}

static enum errc budget_feed_reflect(struct budget_feed *f, bool beta, struct reflector **ret,
                                     struct err *reterr)
{
    const struct reflector_settings settings = {
        .path = beta ? STR("/apis/policy/v1beta1/poddisruptionbudgets")
                     : STR("/apis/policy/v1/poddisruptionbudgets"),
        .kind = STR("PodDisruptionBudgetList"),
        .page_size = f->s.page_size,
        .quiet_ms = WATCH_QUIET_MS,
        .backoff = f->s.backoff,
        .counts = f->s.counts,
    };
    const struct reflector_sink sink = {.begin = budget_feed_on_begin,
                                        .change = budget_feed_on_change,
                                        .end = budget_feed_on_end,
                                        .note = budget_feed_on_note,
                                        .ctx = f};
    return reflector_new(f->s.loop, f->s.api, &settings, &sink, ret, reterr);
}

static void budget_feed_exchange(struct budget_feed *f)
{
    struct reflector *r = NULL;
    if (budget_feed_reflect(f, !f->beta, &r, NULL) != OK) {
        timer_arm(f->s.loop, &f->other, f->s.again_ms);
        return;
    }
    (void)reflector_free(f->reflector);
    f->reflector = r;
    f->beta = !f->beta;
}

static void budget_feed_exchange_now(struct deferred *d)
{
    budget_feed_exchange(CONTAINER_OF(d, struct budget_feed, exchange));
}

static void budget_feed_exchange_later(struct timer *t)
{
    budget_feed_exchange(CONTAINER_OF(t, struct budget_feed, other));
}

enum errc budget_feed_new(const struct budget_feed_settings *s, struct budget_feed **ret,
                          struct err *reterr)
{
    struct budget_feed *f = mem_alloc(sizeof(*f));
    if (f == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the feed of disruption budgets");
    *f = (struct budget_feed){.s = *s,
                              .exchange = {.run = budget_feed_exchange_now},
                              .other = {.fire = budget_feed_exchange_later},
                              .relist = {.fire = budget_feed_relist}};
    if (f->s.again_ms == 0)
        f->s.again_ms = AGAIN_MS;
    arena_init(&f->arena, LIMIT_OBJECT_ARENA);
    enum errc code = budget_feed_reflect(f, false, &f->reflector, reterr);
    if (code != OK)
        (void)budget_feed_free(f);
    else
        *ret = f;
    return code;
}

struct budget_feed *budget_feed_free(struct budget_feed *f)
{
    if (f == NULL)
        return NULL;
    f->reflector = reflector_free(f->reflector);
    deferred_cancel(&f->exchange);
    timer_cancel(&f->other);
    timer_cancel(&f->relist);
    arena_done(&f->arena);
    mem_free(f);
    return NULL;
}
