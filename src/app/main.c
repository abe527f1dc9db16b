/*
 * Parse, build, run; drain.c ends it. One thread of ours: libcurl starts a resolver thread for a
 * moment where the API server's address is a name, and that is all.
 */
#include "budget_feed.h"
#include "cluster.h"
#include "config.h"
#include "confine.h"
#include "drain.h"
#include "evictor.h"
#include "explain.h"
#include "file.h"
#include "guard.h"
#include "kube_backend.h"
#include "limit.h"
#include "log.h"
#include "notify.h"
#include "probe.h"
#include "reload.h"
#include "service.h"
#include "ui_feed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SERVICE_ACCOUNT STR("/var/run/secrets/kubernetes.io/serviceaccount")

/* "HOST_8f3c1d20aa41c5e7": a process, not a host, since two may share its name. */
#define IDENTITY_BYTES 128

struct program {
    struct config config;
    int argc; /* of which, and of the environment, the configuration is read anew */
    char *const *argv;
    struct config_env env;
    char identity[IDENTITY_BYTES];
    struct service service;
    struct settings parts; /* what there is to tell of a setting that changes */
    struct reload *reload;
    struct drain drain;
    struct notify notify;
};

static enum errc open_cluster(struct program *p, struct err *reterr)
{
    struct buf text;
    buf_init(&text, LIMIT_CLUSTER_FILE_BYTES);
    enum errc code = file_read(p->config.cluster, &text, reterr);
    if (code == OK)
        code = cluster_new(p->service.loop, &p->service.cache, buf_str(&text), p->config.cluster,
                           &p->service.cluster, reterr);
    buf_done(&text);
    if (code != OK)
        return code;
    p->service.backend = cluster_interface(p->service.cluster);
    log_info("embedded cluster", kv_str("file", p->config.cluster),
             kv_uint("nodes", p->service.cache.nodes.n));
    return OK;
}

static void events_lost(void *ctx, uint64_t lost, const struct err *why)
{
    (void)ctx;
    log_warn("events on pods can't be written", kv_uint("lost", lost), kv_cstr("error", why->text));
}

static struct election_settings election_settings(struct program *p)
{
    char host[64] = "";
    struct str own = kube_api_namespace(p->parts.api);
    struct str home = own.n > 0 ? own : STR("kube-system");
    struct str asked = p->config.lease_namespace;
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(p->identity, sizeof(p->identity), "%s_%016llx", host,
                   (unsigned long long)loop_random(p->service.loop));
    return (struct election_settings){.namespace = asked.n > 0 ? asked : home,
                                      .name = p->config.lease_name,
                                      .identity = str_of(p->identity),
                                      .times = {.lease_ms = p->config.lease_ms,
                                                .renew_deadline_ms = p->config.renew_deadline_ms,
                                                .retry_ms = p->config.retry_period_ms}};
}

static enum errc open_kubernetes(struct program *p, struct err *reterr)
{
    struct kube_api_settings settings = {
        .kubeconfig = p->config.kubeconfig.n > 0 ? p->config.kubeconfig : STR_NULL,
        .service_host = str_of(getenv("KUBERNETES_SERVICE_HOST")),
        .service_port = str_of(getenv("KUBERNETES_SERVICE_PORT")),
        .service_account = SERVICE_ACCOUNT,
        .home = str_of(getenv("HOME")),
        .user_agent = STR("cardpack/" CARDPACK_VERSION),
    };
    enum errc code = kube_api_new(p->service.loop, &settings, &p->parts.api, reterr);
    if (code != OK)
        return err_wrap(reterr, "no way to an API server");
    log_info("API server", kv_str("at", kube_api_origin(p->parts.api)));
    struct election_settings election = election_settings(p);
    struct kube_backend_settings backend = {.loop = p->service.loop,
                                            .cache = &p->service.cache,
                                            .api = p->parts.api,
                                            .page_size = p->config.list_page_size,
                                            .election = p->config.leader_elect ? &election : NULL,
                                            .start_settle_ms = p->config.start_settle_ms,
                                            .counts = &p->service.metrics.kube};
    code = kube_backend_new(&backend, &p->parts.kube, reterr);
    if (code != OK)
        return code;
    p->service.backend = kube_backend_interface(p->parts.kube);
    struct events_settings events = {.loop = p->service.loop,
                                     .api = p->parts.api,
                                     .retry_ms = EVENTS_RETRY_MS,
                                     .drain_ms = EVENTS_DRAIN_MS,
                                     .note = events_lost,
                                     .counts = &p->service.metrics.events};
    code = events_new(&events, &p->service.events, reterr);
    if (code != OK)
        return code;
    struct budget_feed_settings budgets = {.loop = p->service.loop,
                                           .api = p->parts.api,
                                           .budgets = &p->service.budgets,
                                           .page_size = p->config.list_page_size,
                                           .counts = &p->service.metrics.budgets};
    return budget_feed_new(&budgets, &p->parts.budgets, reterr);
}

/* Once more at every start, as nobody reads a configuration twice. */
static void warn_of_open_port(const struct config *c)
{
    if (config_address_is_loopback(c->listen_address))
        return;
    if (c->tls_cert_file.n == 0)
        log_warn("plain HTTP, and not on loopback: whoever reaches the port can bind pods",
                 kv_str("address", c->listen_address));
    else if (c->client_ca_file.n == 0 && c->token_file.n == 0)
        log_warn("no client-ca-file and no token-file: whoever reaches the port can bind pods",
                 kv_str("address", c->listen_address));
}

/* Pages that are open ask again, and are let in or not. */
static void admits_anew(void *ctx)
{
    struct program *p = ctx;
    http_server_end_streams(p->parts.server);
}

static enum errc open_server(struct program *p, struct err *reterr)
{
    struct http_server_settings settings = {
        .address = p->config.listen_address,
        .port = p->config.port,
        .max_body = p->config.max_body,
        .max_connections = p->config.max_connections,
        .request_timeout_ms = p->config.request_timeout_ms,
        .idle_seconds = LIMIT_IDLE_SECONDS,
        .stall_ms = LIMIT_STALL_MS,
        .judge_ms = LIMIT_STREAM_JUDGE_MS,
        .handle = routes_handle,
        .too_large = routes_too_large,
        .answered = metrics_answered,
        .ctx = &p->service,
        .counts = &p->service.metrics.ports[METRICS_MAIN],
    };
    enum errc code = guard_new(p->service.loop, &p->config, &p->parts.guard, reterr);
    if (code != OK)
        return code;
    guard_settings(p->parts.guard, &settings);
    p->service.metrics.certificate_expires_s = guard_expiry(p->parts.guard);
    code = http_server_new(p->service.loop, &settings, &p->parts.server, reterr);
    if (code != OK)
        return code;
    log_info("listening", kv_cstr("version", CARDPACK_VERSION),
             kv_str("address", p->config.listen_address),
             kv_uint("port", http_server_port(p->parts.server)),
             kv_bool("tls", settings.tls != NULL));
    guard_on_change(p->parts.guard, admits_anew, p);
    warn_of_open_port(&p->config);
    return OK;
}

static enum errc open_probes(struct program *p, struct err *reterr)
{
    struct http_server_settings settings = {
        .address = p->config.probe_address,
        .port = p->config.probe_port,
        .max_body = LIMIT_PROBE_BODY,
        .max_connections = LIMIT_PROBE_CONNECTIONS,
        .request_timeout_ms = p->config.request_timeout_ms,
        .idle_seconds = LIMIT_IDLE_SECONDS,
        .stall_ms = LIMIT_STALL_MS,
        .handle = probe_handle,
        .too_large = probe_too_large,
        .answered = metrics_answered,
        .ctx = &p->service,
        .counts = &p->service.metrics.ports[METRICS_PROBES],
    };
    if (settings.port == 0)
        return OK;
    enum errc code = http_server_new(p->service.loop, &settings, &p->parts.probes, reterr);
    if (code != OK)
        return code;
    log_info("probes", kv_str("address", p->config.probe_address),
             kv_uint("port", http_server_port(p->parts.probes)));
    return OK;
}

static enum errc open_reload(struct program *p, struct err *reterr)
{
    struct reload_settings settings = {.settings = &p->parts,
                                       .config = &p->config,
                                       .argc = p->argc,
                                       .argv = p->argv,
                                       .env = p->env};
    enum errc code = reload_new(&settings, &p->reload, reterr);
    if (code == OK)
        p->service.reloads = reload_counts(p->reload);
    return code;
}

static enum errc open_drain(struct program *p, struct err *reterr)
{
    struct drain_settings settings = {.service = &p->service,
                                      .parts = &p->parts,
                                      .config = &p->config,
                                      .reload = p->reload,
                                      .notify = &p->notify};
    return drain_open(&p->drain, &settings, reterr);
}

/* NOTIFY_SOCKET and WATCHDOG_USEC are systemd's, or of who does as systemd does. */
static enum errc open_notify(struct program *p, struct err *reterr)
{
    uint64_t pid = 0;
    uint64_t usec = 0;
    bool ours =
        !str_to_u64(str_of(getenv("WATCHDOG_PID")), UINT64_MAX, &pid) || pid == (uint64_t)getpid();
    if (notify_open(&p->notify, p->service.loop, str_of(getenv("NOTIFY_SOCKET")), reterr) != OK)
        return err_wrap(reterr, "environment NOTIFY_SOCKET");
    if (ours && str_to_u64(str_of(getenv("WATCHDOG_USEC")), UINT64_MAX, &usec))
        notify_watchdog(&p->notify, usec / 1000);
    return OK;
}

static void open_metrics(struct program *p)
{
    struct metrics *m = &p->service.metrics;
    m->start_ns = loop_wall_ns(p->service.loop);
    m->max_nodes = p->config.metrics_nodes;
    m->kubernetes = p->config.cluster.n == 0;
    m->probes = p->config.probe_port != 0;
}

static enum errc open_all(struct program *p, struct err *reterr)
{
    enum errc code = loop_new(&p->service.loop, reterr);
    if (code == OK)
        code = open_notify(p, reterr);
    if (code != OK)
        return code;
    open_metrics(p);
    p->service.shortlist = p->config.shortlist;
    struct map_seed seed = {loop_random(p->service.loop), loop_random(p->service.loop)};
    cache_init(&p->service.cache, seed);
    p->service.cache.settings = (struct cache_settings){.card_policy = p->config.card_policy,
                                                        .node_policy = p->config.node_policy,
                                                        .shrink = p->config.shrink_after_init};
    budgets_init(&p->service.budgets, seed);
    code = p->config.cluster.n > 0 ? open_cluster(p, reterr) : open_kubernetes(p, reterr);
    if (code != OK)
        return code;
    struct binder_settings binder = {.loop = p->service.loop,
                                     .cache = &p->service.cache,
                                     .backend = p->service.backend,
                                     .events = p->service.events,
                                     .timeout_ms = p->config.bind_timeout_ms,
                                     .counts = &p->service.metrics.binds};
    code = binder_new(&binder, &p->service.binder, reterr);
    if (code == OK)
        code = settings_evictor(&p->parts, &p->config, &p->service.evictor, reterr);
    if (code == OK)
        code = ui_feed_new(&p->service, UI_FEED_TICK_MS, &p->service.ui, reterr);
    if (code == OK)
        code = open_reload(p, reterr);
    if (code == OK)
        code = open_drain(p, reterr);
    if (code == OK)
        code = open_server(p, reterr);
    return code == OK ? open_probes(p, reterr) : code;
}

static void close_all(struct program *p)
{
    if (p->service.loop == NULL)
        return;
    reload_stop(p->reload);
    drain_close(&p->drain);
    notify_close(&p->notify);
    explain_end(&p->service);
    p->service.evictor = evictor_free(p->service.evictor);
    p->service.binder = binder_free(p->service.binder);
    p->parts.server = http_server_free(p->parts.server);
    p->parts.probes = http_server_free(p->parts.probes);
    p->service.ui = ui_feed_free(p->service.ui);
    p->parts.guard = guard_free(p->parts.guard);
    p->service.events = events_free(p->service.events);
    p->parts.budgets = budget_feed_free(p->parts.budgets);
    p->parts.kube = kube_backend_free(p->parts.kube);
    p->service.cluster = cluster_free(p->service.cluster);
    p->parts.api = kube_api_free(p->parts.api);
    budgets_done(&p->service.budgets);
    cache_done(&p->service.cache);
    p->service.loop = loop_free(p->service.loop);
    p->reload = reload_free(p->reload);
}

/* A sandbox that lacks something is worth a line, and no reason to stay away. */
static void confine(void)
{
    unsigned missing = confine_process();
    if (geteuid() == 0)
        log_warn("running as root, which cardpack has no use for: any user can run it who may read "
                 "its files");
    if (missing != 0)
        log_warn("not all that the process could do without was taken from it; the debug log says "
                 "what",
                 kv_uint("steps", (unsigned)__builtin_popcount(missing)));
}

static int run(struct program *p)
{
    struct err e = ERR_INIT;
    (void)signal(SIGPIPE, SIG_IGN);
    confine();
    enum errc code = open_all(p, &e);
    if (code == OK) {
        (void)confine_capabilities();
        notify_send(&p->notify, STR("READY=1"));
        code = loop_run(p->service.loop, &e);
    }
    if (code != OK)
        log_error("cardpack can't go on", kv_cstr("error", e.text));
    close_all(p);
    log_info("stopped");
    return code == OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print(struct buf *text)
{
    bool whole = !buf_failed(text) && fwrite(text->p, 1, text->n, stdout) == text->n;
    buf_done(text);
    return whole && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
    struct program p = {.notify = NOTIFY_INIT};
    struct err e = ERR_INIT;
    struct buf text;
    reload_block();
    p.parts.service = &p.service;
    struct config_env env = {.port = str_of(getenv("PORT")),
                             .log_level = str_of(getenv("LOG_LEVEL")),
                             .kubeconfig = str_of(getenv("KUBECONFIG"))};
    if (config_parse(argc, argv, &env, config_read_file, NULL, &p.config, &e) != OK) {
        (void)fprintf(stderr, "cardpack: %s\n", e.text);
        return 2;
    }
    buf_init(&text, LIMIT_FILE_BYTES);
    int status = EXIT_SUCCESS;
    switch (p.config.action) {
    case CONFIG_HELP:
        config_usage(&text);
        status = print(&text);
        break;
    case CONFIG_VERSION:
        buf_put(&text, STR("cardpack " CARDPACK_VERSION "\n"));
        status = print(&text);
        break;
    case CONFIG_CHECK:
        config_print(&p.config, &text);
        status = print(&text);
        break;
    case CONFIG_RUN:
        settings_log(&p.config);
        p.argc = argc;
        p.argv = argv;
        p.env = env;
        status = run(&p);
        break;
    }
    config_done(&p.config);
    return status;
}
