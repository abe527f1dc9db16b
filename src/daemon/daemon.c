/*
 * Opens the parts of the program in the order of their dependencies, connects them, and closes them
 * in the reverse order.
 */
#include "daemon/daemon.h"

#include "base/file.h"
#include "base/log.h"
#include "base/value.h"
#include "core/dialect/card_resources.h"
#include "daemon/authentication.h"
#include "daemon/backend/budget_feed.h"
#include "daemon/backend/embedded.h"
#include "daemon/backend/kube_backend.h"
#include "daemon/evict/evictor.h"
#include "daemon/limit.h"
#include "daemon/page/ui_feed.h"
#include "daemon/page/ui_reasons.h"
#include "daemon/query/query.h"
#include "kube/ingest.h"

#include <stdio.h>

#define SERVICE_ACCOUNT STR("/var/run/secrets/kubernetes.io/serviceaccount")

static enum errc daemon_open_embedded(struct daemon *d, struct err *reterr)
{
    struct buf text;
    buf_init(&text, LIMIT_CLUSTER_FILE_BYTES);
    enum errc code = file_read(d->s.config->cluster, &text, reterr);
    if (code == OK)
        code = embedded_new(d->service.loop, &d->service.cache, &d->service.measured,
                            buf_str(&text), d->s.config->cluster, &d->service.embedded, reterr);
    buf_done(&text);
    if (code != OK)
        return code;
    d->service.backend = embedded_interface(d->service.embedded);
    log_info("embedded cluster", kv_str("file", d->s.config->cluster),
             kv_uint("nodes", d->service.cache.nodes.n));
    return OK;
}

static void daemon_show_pod(void *ctx, const struct pod_view *pod, const struct err *fault)
{
    struct service *s = ctx;
    advise_pod(&s->advise, s->events, pod, fault);
}

static void daemon_events_lost(void *ctx, uint64_t lost, const struct err *why)
{
    (void)ctx;
    log_warn("events on pods can't be written", kv_uint("lost", lost), kv_cstr("error", why->text));
}

static struct election_settings daemon_election_settings(struct daemon *d)
{
    struct str own = kube_api_namespace(d->parts.api);
    struct str home = own.n > 0 ? own : STR("kube-system");
    struct str asked = d->s.config->lease_namespace;
    (void)snprintf(d->identity, sizeof(d->identity), "%.*s_%016llx", STR_ARG(d->s.host),
                   (unsigned long long)loop_random(d->service.loop));
    return (struct election_settings){.namespace = asked.n > 0 ? asked : home,
                                      .name = d->s.config->lease_name,
                                      .identity = str_of(d->identity),
                                      .times = {.lease_ms = d->s.config->lease_ms,
                                                .renew_deadline_ms = d->s.config->renew_deadline_ms,
                                                .retry_ms = d->s.config->retry_period_ms}};
}

static bool daemon_leads(void *ctx)
{
    const struct daemon *d = ctx;
    struct str missing;
    return !d->service.draining && service_ready(&d->service, &missing);
}

static void daemon_leadership_changed(void *ctx)
{
    const struct daemon *d = ctx;
    leader_label_look(d->service.label);
}

/* Outside a pod there is nothing to label. */
static enum errc daemon_open_label(struct daemon *d, struct err *reterr)
{
    const struct config *c = d->s.config;
    if (c->pod_name.n == 0 || c->pod_namespace.n == 0 || c->pod_uid.n == 0) {
        if (c->leader_elect)
            log_info(
                "no pod gets the leader's label: pod-name, pod-namespace or pod-uid is not set");
        return OK;
    }
    struct leader_label_settings settings = {.loop = d->service.loop,
                                             .api = d->parts.api,
                                             .namespace = c->pod_namespace,
                                             .pod = c->pod_name,
                                             .uid = c->pod_uid,
                                             .lease = c->lease_name,
                                             .leads = daemon_leads,
                                             .ctx = d};
    return leader_label_new(&settings, &d->service.label, reterr);
}

static enum errc daemon_open_kubernetes(struct daemon *d, struct err *reterr)
{
    struct kube_api_settings settings = {
        .kubeconfig = d->s.config->kubeconfig.n > 0 ? d->s.config->kubeconfig : STR_NULL,
        .service_host = d->s.service_host,
        .service_port = d->s.service_port,
        .service_account = SERVICE_ACCOUNT,
        .home = d->s.home,
        .user_agent = STR("cardpack/" CARDPACK_VERSION),
    };
    enum errc code = kube_api_new(d->service.loop, &settings, &d->parts.api, reterr);
    if (code != OK)
        return err_wrap(reterr, "no way to an API server");
    log_info("API server", kv_str("at", kube_api_origin(d->parts.api)));
    struct election_settings election = daemon_election_settings(d);
    struct kube_backend_settings backend = {.loop = d->service.loop,
                                            .cache = &d->service.cache,
                                            .measured = &d->service.measured,
                                            .api = d->parts.api,
                                            .page_size = d->s.config->list_page_size,
                                            .dra = d->s.config->dra,
                                            .election =
                                                d->s.config->leader_elect ? &election : NULL,
                                            .start_settle_ms = d->s.config->start_settle_ms,
                                            .counts = &d->service.metrics.kube,
                                            .show = daemon_show_pod,
                                            .show_ctx = &d->service,
                                            .changed = daemon_leadership_changed,
                                            .changed_ctx = d};
    code = kube_backend_new(&backend, &d->parts.kube, reterr);
    if (code != OK)
        return code;
    d->service.backend = kube_backend_interface(d->parts.kube);
    code = daemon_open_label(d, reterr);
    if (code != OK)
        return code;
    struct events_settings events = {.loop = d->service.loop,
                                     .api = d->parts.api,
                                     .retry_ms = EVENTS_RETRY_MS,
                                     .drain_ms = EVENTS_DRAIN_MS,
                                     .note = daemon_events_lost,
                                     .counts = &d->service.metrics.events};
    code = events_new(&events, &d->service.events, reterr);
    if (code != OK)
        return code;
    struct budget_feed_settings budgets = {.loop = d->service.loop,
                                           .api = d->parts.api,
                                           .budgets = &d->service.budgets,
                                           .page_size = d->s.config->list_page_size,
                                           .counts = &d->service.metrics.budgets};
    return budget_feed_new(&budgets, &d->parts.budgets, reterr);
}

/* Warns at every start: an administrator may have forgotten the setting that allows it. */
static void daemon_warn_of_open_port(const struct config *c)
{
    if (value_is_loopback(c->listen_address))
        return;
    if (c->tls_cert_file.n == 0)
        log_warn(
            "plain HTTP, and not on loopback: every client that reaches the port can bind pods",
            kv_str("address", c->listen_address));
    else if (c->client_ca_file.n == 0 && c->token_file.n == 0)
        log_warn(
            "no client-ca-file and no token-file: every client that reaches the port can bind pods",
            kv_str("address", c->listen_address));
}

/*
 * Closes the streams of open pages: the pages connect again and are checked against the new
 * certificates and tokens.
 */
static void daemon_on_credentials(void *ctx)
{
    struct daemon *d = ctx;
    http_server_end_streams(d->parts.server);
}

static enum errc daemon_open_server(struct daemon *d, struct err *reterr)
{
    struct http_server_settings settings = {
        .address = d->s.config->listen_address,
        .port = d->s.config->port,
        .max_body = d->s.config->max_body,
        .max_connections = d->s.connections,
        .request_timeout_ms = d->s.config->request_timeout_ms,
        .idle_seconds = LIMIT_IDLE_SECONDS,
        .stall_ms = LIMIT_STALL_MS,
        .recheck_ms = LIMIT_STREAM_RECHECK_MS,
        .handle = routes_handle,
        .memory = &d->service.memory,
        .no_memory = routes_no_memory,
        .may_wait = routes_may_wait,
        .too_large = routes_too_large,
        .answered = metrics_answered,
        .ctx = &d->service,
        .counts = &d->service.metrics.ports[METRICS_MAIN],
    };
    enum errc code =
        authentication_new(d->service.loop, d->s.config, &d->parts.authentication, reterr);
    if (code != OK)
        return code;
    authentication_settings(d->parts.authentication, &settings);
    d->service.metrics.certificate_expires_s = authentication_expiry(d->parts.authentication);
    code = http_server_new(d->service.loop, &settings, &d->parts.server, reterr);
    if (code != OK)
        return code;
    log_info("listening", kv_cstr("version", CARDPACK_VERSION),
             kv_str("address", d->s.config->listen_address),
             kv_uint("port", http_server_port(d->parts.server)),
             kv_bool("tls", settings.tls != NULL));
    authentication_on_change(d->parts.authentication, daemon_on_credentials, d);
    daemon_warn_of_open_port(d->s.config);
    return OK;
}

static enum errc daemon_open_probes(struct daemon *d, struct err *reterr)
{
    struct http_server_settings settings = {
        .address = d->s.config->probe_address,
        .port = d->s.config->probe_port,
        .max_body = LIMIT_PROBE_BODY,
        .max_connections = LIMIT_PROBE_CONNECTIONS,
        .request_timeout_ms = d->s.config->request_timeout_ms,
        .idle_seconds = LIMIT_IDLE_SECONDS,
        .stall_ms = LIMIT_STALL_MS,
        .handle = probe_handle,
        .memory = &d->service.memory,
        .no_memory = routes_no_memory,
        .may_wait = routes_may_wait,
        .too_large = probe_too_large,
        .answered = metrics_answered,
        .ctx = &d->service,
        .counts = &d->service.metrics.ports[METRICS_PROBES],
    };
    if (settings.port == 0)
        return OK;
    enum errc code = http_server_new(d->service.loop, &settings, &d->parts.probes, reterr);
    if (code != OK)
        return code;
    log_info("probes", kv_str("address", d->s.config->probe_address),
             kv_uint("port", http_server_port(d->parts.probes)));
    return OK;
}

static enum errc daemon_open_evictor(struct daemon *d, struct err *reterr)
{
    if (!d->s.config->evict_for_cards)
        return OK;
    if (d->parts.api == NULL) {
        log_warn("evict-for-cards does nothing with an embedded cluster");
        return OK;
    }
    struct evictor_settings settings = {.loop = d->service.loop,
                                        .cache = &d->service.cache,
                                        .budgets = &d->service.budgets,
                                        .backend = d->service.backend,
                                        .api = d->parts.api,
                                        .events = d->service.events,
                                        .after_ms = d->s.config->evict_after_ms,
                                        .keep_ms = d->s.config->evict_keep_ms,
                                        .counts = &d->service.metrics.evictions};
    return evictor_new(&settings, &d->service.evictor, reterr);
}

static enum errc daemon_open_reload(struct daemon *d, struct err *reterr)
{
    struct reload_settings settings = {.parts = &d->parts,
                                       .config = d->s.config,
                                       .argc = d->s.argc,
                                       .argv = d->s.argv,
                                       .env = d->s.env};
    enum errc code = reload_new(&settings, &d->reload, reterr);
    if (code == OK)
        d->service.reloads = reload_counts(d->reload);
    return code;
}

static enum errc daemon_open_drain(struct daemon *d, struct err *reterr)
{
    struct drain_settings settings = {.service = &d->service,
                                      .parts = &d->parts,
                                      .config = d->s.config,
                                      .reload = d->reload,
                                      .notify = d->s.notify};
    return drain_open(&d->drain, &settings, reterr);
}

struct str daemon_filtered(struct service *s, const struct filter_args *args,
                           const struct candidates *j)
{
    metrics_count_verdicts(&s->metrics, j->counts);
    ui_reasons_filtered(s->reasons, args->pod.uid, j);
    return evictor_filtered(s->evictor, args, j);
}

static void daemon_open_metrics(struct daemon *d)
{
    struct metrics *m = &d->service.metrics;
    m->start_ns = loop_wall_ns(d->service.loop);
    m->max_nodes = d->s.config->metrics_nodes;
    m->kubernetes = d->s.config->cluster.n == 0;
    m->probes = d->s.config->probe_port != 0;
}

enum errc daemon_open(struct daemon *d, const struct daemon_settings *s, struct err *reterr)
{
    *d = (struct daemon){.s = *s, .service = {.loop = s->loop}, .parts = {.service = &d->service}};
    list_init(&d->service.explains);
    daemon_open_metrics(d);
    d->service.filtered = daemon_filtered;
    d->service.shortlist = s->config->shortlist;
    d->service.memory.max = s->config->memory_budget;
    struct map_seed seed = {loop_random(s->loop), loop_random(s->loop)};
    dialects_use(s->config->dialects);
    card_resources_use(s->config->card_resources);
    cache_init(&d->service.cache, seed);
    /* The embedded cluster has no cardpack-node that would write the figures again. */
    measured_init(&d->service.measured, seed, s->config->cluster.n > 0 ? 0 : INGEST_USAGE_MS);
    d->service.advise.seed = seed;
    d->service.cache.settings = (struct cache_settings){.card_policy = s->config->card_policy,
                                                        .node_policy = s->config->node_policy,
                                                        .shrink = s->config->shrink_after_init,
                                                        .swap_guard = s->config->swap_guard};
    budgets_init(&d->service.budgets, seed);
    enum errc code = s->config->cluster.n > 0 ? daemon_open_embedded(d, reterr)
                                              : daemon_open_kubernetes(d, reterr);
    if (code != OK)
        return code;
    struct bind_settings binder = {.loop = s->loop,
                                   .cache = &d->service.cache,
                                   .backend = d->service.backend,
                                   .events = d->service.events,
                                   .api = d->parts.api,
                                   .placed_events = s->config->placed_events,
                                   .timeout_ms = s->config->bind_timeout_ms,
                                   .counts = &d->service.metrics.binds,
                                   .step_budget = &d->service.step_budget};
    code = bind_new(&binder, &d->service.binder, reterr);
    if (code == OK)
        code = daemon_open_evictor(d, reterr);
    if (code == OK)
        code = ui_feed_new(&d->service, UI_FEED_TICK_MS, &d->service.ui, reterr);
    if (code == OK)
        code = daemon_open_reload(d, reterr);
    if (code == OK)
        learn_start(&d->service.learn, s->loop, &d->service.cache, d->service.backend);
    if (code == OK)
        code = daemon_open_drain(d, reterr);
    if (code == OK)
        code = daemon_open_server(d, reterr);
    return code == OK ? daemon_open_probes(d, reterr) : code;
}

void daemon_close(struct daemon *d)
{
    if (d->service.loop == NULL)
        return;
    reload_stop(d->reload);
    drain_close(&d->drain);
    learn_stop(&d->service.learn);
    query_end(&d->service);
    d->service.evictor = evictor_free(d->service.evictor);
    d->service.binder = bind_free(d->service.binder);
    d->parts.server = http_server_free(d->parts.server);
    d->parts.probes = http_server_free(d->parts.probes);
    d->service.ui = ui_feed_free(d->service.ui);
    d->parts.authentication = authentication_free(d->parts.authentication);
    d->service.events = events_free(d->service.events);
    d->parts.budgets = budget_feed_free(d->parts.budgets);
    d->service.label = leader_label_free(d->service.label);
    d->parts.kube = kube_backend_free(d->parts.kube);
    d->service.embedded = embedded_free(d->service.embedded);
    d->parts.api = kube_api_free(d->parts.api);
    budgets_done(&d->service.budgets);
    measured_done(&d->service.measured);
    evaluation_memo_done(&d->service.evaluation_memo);
    cache_done(&d->service.cache);
    d->service.loop = NULL;
    d->reload = reload_free(d->reload);
}
