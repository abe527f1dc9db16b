/* Applies settings to the parts, at the start and after a reload. */
#include "daemon/settings.h"

#include "base/log.h"
#include "daemon/limit.h"

#include <unistd.h>

enum errc settings_evictor(const struct settings *s, const struct config *c, struct evictor **ret,
                           struct err *reterr)
{
    *ret = NULL;
    if (!c->evict_for_cards)
        return OK;
    if (s->api == NULL) {
        log_warn("evict-for-cards does nothing with an embedded cluster");
        return OK;
    }
    struct evictor_settings settings = {.loop = s->service->loop,
                                        .cache = &s->service->cache,
                                        .budgets = &s->service->budgets,
                                        .backend = s->service->backend,
                                        .api = s->api,
                                        .events = s->service->events,
                                        .after_ms = c->evict_after_ms,
                                        .keep_ms = c->evict_keep_ms,
                                        .counts = &s->service->metrics.evictions};
    return evictor_new(&settings, ret, reterr);
}

void settings_log(const struct config *c)
{
    bool logfmt = c->log_format == CONFIG_LOG_FORMAT_LOGFMT ||
                  (c->log_format == CONFIG_LOG_FORMAT_AUTO && isatty(STDERR_FILENO) != 0);
    log_never_wait();
    log_setup(STDERR_FILENO, c->log_level, logfmt ? LOG_FORMAT_LOGFMT : LOG_FORMAT_JSON);
}

enum errc settings_prepare(const struct settings *s, const struct config *fresh,
                           struct settings_draft *ret, struct err *reterr)
{
    *ret = (struct settings_draft){.guard = NULL};
    enum errc code = guard_draft(s->guard, fresh, &ret->guard, reterr);
    if (code == OK && s->service->evictor == NULL)
        code = settings_evictor(s, fresh, &ret->evictor, reterr);
    if (code != OK)
        settings_drop(ret);
    return code;
}

void settings_drop(struct settings_draft *d)
{
    d->guard = guard_free(d->guard);
    d->evictor = evictor_free(d->evictor);
}

static void tell_evictor(struct service *s, const struct config *c, struct evictor *fresh)
{
    if (!c->evict_for_cards)
        s->evictor = evictor_free(s->evictor);
    else if (s->evictor == NULL)
        s->evictor = fresh;
    else
        evictor_set_times(s->evictor, c->evict_after_ms, c->evict_keep_ms);
}

void settings_commit(const struct settings *s, const struct config *c, struct settings_draft *d)
{
    struct cache_settings *cache = &s->service->cache.settings;
    guard_become(s->guard, d->guard);
    tell_evictor(s->service, c, d->evictor);
    *d = (struct settings_draft){.guard = NULL};
    s->service->shortlist = c->shortlist;
    s->service->metrics.max_nodes = c->metrics_nodes;
    cache->card_policy = c->card_policy;
    cache->node_policy = c->node_policy;
    if (cache->shrink != c->shrink_after_init)
        cache_set_shrink(&s->service->cache, c->shrink_after_init);
    if (cache->swap_guard != c->swap_guard)
        cache_set_swap_guard(&s->service->cache, c->swap_guard);
    binder_set_timeout(s->service->binder, c->bind_timeout_ms);
    s->service->memory.max = c->memory_budget;
    http_server_limit(s->server, c->max_body, c->request_timeout_ms);
    if (s->probes != NULL)
        http_server_limit(s->probes, LIMIT_PROBE_BODY, c->request_timeout_ms);
    if (s->kube != NULL)
        kube_backend_tune(s->kube, c->list_page_size, c->start_settle_ms);
    if (s->budgets != NULL)
        budget_feed_set_page_size(s->budgets, c->list_page_size);
}
