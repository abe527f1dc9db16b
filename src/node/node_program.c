/*
 * Opens the parts in the order of their dependencies and closes them in the reverse order. The
 * device plugin gets its cards from node_program_offer, and the pods from node_program_pods_set.
 */
#include "node/node_program.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/value.h"
#include "core/dialect/gpushare.h"
#include "kube/kube_credentials.h"
#include "kubelet/checkpoint.h"
#include "node/allot/late_binding.h"

#define SERVICE_ACCOUNT  STR("/var/run/secrets/kubernetes.io/serviceaccount")
#define REFRESH_MS       UINT64_C(10000)
#define CONNECTIONS      16
#define REQUEST_MS       UINT64_C(10000)
#define IDLE_SECONDS     60
#define STALL_MS         UINT64_C(5000)
#define REQUEST_MAX_BODY 4096

/* ---- cards ---- */

static bool node_program_has_written(void *ctx, uint32_t index)
{
    const struct node_program *n = ctx;
    return announce_has_written(n->announce, index);
}

/* What the kubelet is offered. */
static void node_program_offer(struct node_program *n, const struct announce_card *cards,
                               size_t n_cards)
{
    if (!offer_update(&n->offer, cards, n_cards, node_program_has_written, n))
        return;
    n->offers++;
    for (size_t i = 0; i < n->offer.n; i++)
        log_debug("offered", kv_uint("card", n->offer.items[i].index),
                  kv_int("units", n->offer.items[i].units),
                  kv_bool("healthy", n->offer.items[i].healthy));
    allot_set_offer(n->allot, &n->offer);
    plugin_offer(n->plugin, n->offer.items, n->offer.n);
}

/* Before the first answer of NVML nothing is announced: the cards would look missing. Nor before
 * the own node is known, if its label decides whether MPS is used. */
static bool node_program_collect(struct node_program *n, struct announce_card *cards, size_t *ret_n)
{
    size_t found = 0;
    bool may_be_mps = n->s.settings->isolation == SETTINGS_ISOLATION_AUTO && !n->own_known;
    if (n->gpu == NULL || may_be_mps || gpu_watch_state(n->gpu).phase == GPU_WATCH_STARTING)
        return false;
    const struct gpu_card *all = gpu_watch_cards(n->gpu, &found);
    *ret_n = offer_select(all, MIN_OF(found, (size_t)LIMIT_GPU_CARDS), n->s.settings, cards);
    node_enforce_mark(n, cards, *ret_n);
    return true;
}

static void node_program_on_cards(void *ctx)
{
    struct node_program *n = ctx;
    struct announce_card cards[LIMIT_GPU_CARDS];
    size_t n_cards = 0;
    size_t n_all = 0;
    if (!node_program_collect(n, cards, &n_cards))
        return;
    const struct gpu_watch_state state = gpu_watch_state(n->gpu);
    node_report(n, &state, cards, n_cards);
    const struct gpu_card *all = gpu_watch_cards(n->gpu, &n_all);
    node_enforce_decide(n, all, n_all);
    (void)node_program_collect(n, cards, &n_cards); /* with what has changed by that */
    memset(n->levels, 0, sizeof(n->levels));
    for (size_t i = 0; i < n_cards; i++)
        n->levels[cards[i].health]++;
    /* A card that has recovered is first offered, then announced; one that is unhealthy now is
     * first announced: see announce_has_written. */
    node_program_offer(n, cards, n_cards);
    announce_cards(n->announce, cards, n_cards, n->enforce.label, n->late);
    node_program_offer(n, cards, n_cards);
}

static void node_program_on_written(void *ctx)
{
    struct node_program *n = ctx;
    struct announce_card cards[LIMIT_GPU_CARDS];
    size_t n_cards = 0;
    if (node_program_collect(n, cards, &n_cards))
        node_program_offer(n, cards, n_cards);
}

static void node_program_on_refresh(struct timer *t)
{
    struct node_program *n = CONTAINER_OF(t, struct node_program, refresh);
    timer_arm(n->s.loop, t, REFRESH_MS);
    limits_update_all(n->limits); /* with shares that were not known before */
    node_program_on_cards(n);
}

/* ---- pods and the own node ---- */

static void node_program_pods_begin(void *ctx)
{
    struct node_program *n = ctx;
    n->listing = true;
    in_use_begin(&n->in_use);
    containers_begin(&n->containers);
    overrides_begin(&n->overrides);
    allot_list_begin(n->allot);
}

/* A pod that overrides variables has come or gone, or has changed, as when it gets its cards: they
 * are marked, or not any more. */
static void node_program_overrides(struct node_program *n, struct str uid, size_t before)
{
    if (n->overrides.pods.n != before || map_get(&n->overrides.pods, uid) != NULL)
        node_program_on_cards(n);
}

static void node_program_pods_set(void *ctx, const struct pod_view *view, uint64_t version,
                                  struct str json)
{
    struct node_program *n = ctx;
    size_t before = n->overrides.pods.n;
    in_use_set(&n->in_use, view);
    containers_set(&n->containers, view, json);
    if (n->enforce.means == ISOLATION_DRIVER_LIMITS || n->enforce.means == ISOLATION_MPS)
        overrides_set(&n->overrides, view, json, containers_over(&n->containers, view->uid));
    allot_set_pod(n->allot, view, version);
    if (!n->listing)
        limits_update(n->limits, view->uid);
    node_program_overrides(n, view->uid, before);
}

static void node_program_pods_gone(void *ctx, struct str uid)
{
    struct node_program *n = ctx;
    size_t before = n->overrides.pods.n;
    in_use_gone(&n->in_use, uid);
    containers_gone(&n->containers, uid);
    overrides_gone(&n->overrides, uid);
    if (n->usage != NULL)
        usage_meter_gone(n->usage, uid);
    allot_remove_pod(n->allot, uid);
    if (!n->listing)
        limits_update(n->limits, uid);
    node_program_overrides(n, uid, before);
}

static void node_program_pods_end(void *ctx)
{
    struct node_program *n = ctx;
    n->listing = false;
    if (n->owes_list)
        pod_watch_relist(n->pods);
    n->owes_list = false;
    in_use_end(&n->in_use);
    containers_end(&n->containers);
    overrides_end(&n->overrides);
    allot_list_end(n->allot);
    limits_update_all(n->limits);
}

static bool node_program_uses(void *ctx, uint32_t index)
{
    const struct node_program *n = ctx;
    return n->pods == NULL || !pod_watch_synced(n->pods) || in_use_has(&n->in_use, index) ||
           allot_uses(n->allot, index);
}

struct node_program_promise {
    const struct node_program *node;
    usage_promise_fn *each;
    void *ctx;
};

static void node_program_promise(void *ctx, const struct roster_pod *p, int64_t units)
{
    const struct node_program_promise *to = ctx;
    const struct usage_owner pod = {p->uid, p->namespace, p->name};
    uint64_t bytes = 0;
    if (__builtin_mul_overflow((uint64_t)units, to->node->s.settings->unit_bytes, &bytes))
        bytes = UINT64_MAX;
    to->each(to->ctx, &pod, bytes);
}

static void node_program_promises(void *ctx, uint32_t card, usage_promise_fn *each, void *each_ctx)
{
    const struct node_program *n = ctx;
    struct node_program_promise to = {n, each, each_ctx};
    allot_promises(n->allot, card, node_program_promise, &to);
}

/* Until the own node is known, as without late binding. */
static void node_program_set_late(struct node_program *n, const struct own_node_view *view)
{
    bool late = n->s.settings->late == SETTINGS_LATE_ON;
    if (n->s.settings->late == SETTINGS_LATE_AUTO && view != NULL)
        late = late_binding_is_supported(view->kubelet, view->runtime);
    if (late == n->late && view != NULL)
        return;
    if (late || n->late)
        log_info("late binding", kv_bool("on", late),
                 kv_str("kubelet", view == NULL ? STR("") : view->kubelet),
                 kv_str("runtime", view == NULL ? STR("") : view->runtime));
    n->late = late;
    allot_set_late(n->allot, late);
}

static void node_program_on_own(void *ctx, const struct own_node_view *view)
{
    struct node_program *n = ctx;
    n->disable_cgpu = view->disable_cgpu;
    n->mps_label = view->mps;
    if (!n->own_known)
        n->proven = view->isolation.n == 0 ||
                    str_eq(view->isolation, str_of(isolation_name(ISOLATION_DRIVER_LIMITS)));
    n->own_known = true;
    allot_set_cgpu(n->allot, view->disable_cgpu);
    node_program_set_late(n, view);
    announce_see(n->announce, view);
    node_program_on_cards(n);
}

static void node_program_events_lost(void *ctx, uint64_t lost, const struct err *why)
{
    (void)ctx;
    log_warn("events can't be written", kv_uint("lost", lost), kv_cstr("error", why->text));
}

/* ---- the kubelet ---- */

static void node_program_on_allocate(void *ctx, struct grpc_call *call,
                                     const struct allocate_request *q)
{
    struct node_program *n = ctx;
    allot_allocate(n->allot, call, q);
}

static void node_program_on_pre_start(void *ctx, struct grpc_call *call,
                                      const struct allocate_container *ids)
{
    struct node_program *n = ctx;
    allot_pre_start(n->allot, call, ids);
    lister_nudge(n->lister);
}

static void node_program_on_preferred(void *ctx, struct grpc_call *call,
                                      const struct preferred_request *q)
{
    struct node_program *n = ctx;
    allot_preferred(n->allot, call, q);
}

static void node_program_on_gone(void *ctx, struct grpc_call *call)
{
    struct node_program *n = ctx;
    allot_gone(n->allot, call);
}

static void node_program_on_registered(void *ctx, bool kubelet_restarted)
{
    struct node_program *n = ctx;
    allot_registered(n->allot, kubelet_restarted);
}

static const struct gpu_card *node_program_card(void *ctx, uint32_t index)
{
    const struct node_program *n = ctx;
    return n->gpu == NULL ? NULL : gpu_watch_find(n->gpu, index);
}

static void node_program_relist(void *ctx)
{
    struct node_program *n = ctx;
    pod_watch_relist(n->pods);
}

/* ---- the kubelet's list of devices ---- */

static bool node_program_compare(void *ctx, const struct pod_resources *list,
                                 struct comparison *ret)
{
    const struct node_program *n = ctx;
    return allot_compare(n->allot, list, ret);
}

static void node_program_on_compared(void *ctx)
{
    const struct node_program *n = ctx;
    if (n->usage != NULL)
        usage_meter_urge(n->usage);
}

static void node_program_compared(void *ctx, struct usage_view *v)
{
    const struct node_program *n = ctx;
    lister_view(n->lister, v);
}

/* ---- opening ---- */

static enum errc node_program_open_api(struct node_program *n, struct err *reterr)
{
    struct kube_api_settings api = {
        .kubeconfig = n->s.settings->kubeconfig.n > 0 ? n->s.settings->kubeconfig : STR_NULL,
        .service_host = n->s.service_host,
        .service_port = n->s.service_port,
        .service_account = SERVICE_ACCOUNT,
        .home = n->s.home,
        .user_agent = STR("cardpack-node/" CARDPACK_VERSION),
    };
    if (kube_api_new(n->s.loop, &api, &n->api, reterr) != OK)
        return err_wrap(reterr, "no way to an API server");
    log_info("API server", kv_str("at", kube_api_origin(n->api)));
    struct events_settings events = {.loop = n->s.loop,
                                     .api = n->api,
                                     .component = STR("cardpack-node"),
                                     .retry_ms = EVENTS_RETRY_MS,
                                     .drain_ms = NODE_DRAIN_MS,
                                     .note = node_program_events_lost,
                                     .counts = &n->event_counts};
    return events_new(&events, &n->events, reterr);
}

static enum errc node_program_open_cluster(struct node_program *n, struct err *reterr)
{
    struct announce_settings announce = {.loop = n->s.loop,
                                         .api = n->api,
                                         .node = n->s.settings->node_name,
                                         .events = n->events,
                                         .written = node_program_on_written,
                                         .ctx = n};
    const struct pod_watch_ops ops = {.begin = node_program_pods_begin,
                                      .set = node_program_pods_set,
                                      .gone = node_program_pods_gone,
                                      .end = node_program_pods_end,
                                      .ctx = n};
    enum errc code = announce_new(&announce, &n->announce, reterr);
    if (code == OK)
        code = pod_watch_new(n->s.loop, n->api, n->s.settings->node_name, &ops, &n->pods, reterr);
    if (code == OK)
        code = own_node_new(n->s.loop, n->api, n->s.settings->node_name, node_program_on_own, n,
                            &n->own, reterr);
    return code;
}

/* The folders are complete paths with a NUL. */
static enum errc node_program_put_paths(struct node_program *n, struct err *reterr)
{
    buf_init(&n->folder, 4 * KIB);
    buf_init(&n->checkpoint, 4 * KIB);
    buf_init(&n->lists, 4 * KIB);
    buf_printf(&n->folder, "%.*s/device-plugins", STR_ARG(n->s.settings->kubelet_dir));
    buf_printf(&n->checkpoint, "%.*s/device-plugins/" CHECKPOINT_FILE,
               STR_ARG(n->s.settings->kubelet_dir));
    buf_printf(&n->lists, "%.*s/" LISTER_SOCKET, STR_ARG(n->s.settings->kubelet_dir));
    if (buf_cstr(&n->folder) == NULL || buf_cstr(&n->lists) == NULL || buf_failed(&n->checkpoint))
        return err_set(reterr, buf_fault(&n->folder), "the setting kubelet-dir is too long");
    return OK;
}

static enum errc node_program_open_allot(struct node_program *n, struct err *reterr)
{
    const struct allot_settings allot = {.loop = n->s.loop,
                                         .api = n->api,
                                         .events = n->events,
                                         .checkpoint = buf_str(&n->checkpoint),
                                         .resource = GPUSHARE_RESOURCE_MEM,
                                         .cdi_dir = n->s.settings->cdi_dir,
                                         .device_nodes = n->s.settings->device_nodes,
                                         .mps_dir = n->s.settings->mps_dir,
                                         .unit_bytes = (int64_t)n->s.settings->unit_bytes,
                                         .card = node_program_card,
                                         .relist = node_program_relist,
                                         .ctx = n};
    enum errc code = allot_new(&allot, &n->allot, reterr);
    if (code == OK)
        node_program_set_late(n, NULL);
    return code;
}

static enum errc node_program_open_plugin(struct node_program *n, struct err *reterr)
{
    static const struct plugin_ops ops = {.allocate = node_program_on_allocate,
                                          .pre_start = node_program_on_pre_start,
                                          .preferred = node_program_on_preferred,
                                          .gone = node_program_on_gone,
                                          .registered = node_program_on_registered};
    const struct plugin_settings plugin = {.loop = n->s.loop,
                                           .dir = buf_cstr(&n->folder),
                                           .resource = GPUSHARE_RESOURCE_MEM,
                                           .ops = &ops,
                                           .ctx = n};
    const struct lister_settings lister = {.loop = n->s.loop,
                                           .events = n->events,
                                           .socket = buf_cstr(&n->lists),
                                           .compare = node_program_compare,
                                           .changed = node_program_on_compared,
                                           .ctx = n};
    enum errc code = lister_new(&lister, &n->lister, reterr);
    return code == OK ? plugin_new(&plugin, &n->plugin, reterr) : code;
}

static enum errc node_program_open_gpu(struct node_program *n, struct err *reterr)
{
    const struct settings *s = n->s.settings;
    struct gpu_watch_settings gpu = {.library = s->nvml.n > 0 ? s->nvml.p : NULL,
                                     .state = s->state.n > 0 ? s->state.p : NULL,
                                     .disable = s->disable,
                                     .enable = s->enable,
                                     .cgroup = node_enforce_cgroup(n),
                                     .card_bytes = s->card_bytes,
                                     .cooldown_ms = s->cooldown_ms,
                                     .in_use = node_program_uses,
                                     .on_change = node_program_on_cards,
                                     .ctx = n};
    enum errc code = gpu_watch_new(n->s.loop, &gpu, &n->gpu, reterr);
    if (code == OK)
        code = node_enforce_open(n, node_program_on_cards, reterr);
    if (code == OK)
        timer_arm(n->s.loop, &n->refresh, REFRESH_MS);
    return code;
}

static enum errc node_program_open_usage(struct node_program *n, struct err *reterr)
{
    const struct settings *s = n->s.settings;
    const struct usage_meter_settings usage = {.loop = n->s.loop,
                                               .api = n->api,
                                               .events = n->events,
                                               .node = s->node_name,
                                               .gpu = n->gpu,
                                               .containers = &n->containers,
                                               .interval_ms = s->usage_interval_ms,
                                               .write_ms = s->usage_write_ms,
                                               .promises = node_program_promises,
                                               .compared = node_program_compared,
                                               .ctx = n};
    return s->usage_interval_ms == 0 ? OK : usage_meter_new(&usage, &n->usage, reterr);
}

static enum errc node_program_open_server(struct node_program *n, struct err *reterr)
{
    const struct settings *s = n->s.settings;
    struct http_server_settings http = {.address = s->listen,
                                        .port = s->port,
                                        .max_body = REQUEST_MAX_BODY,
                                        .max_connections = CONNECTIONS,
                                        .request_timeout_ms = REQUEST_MS,
                                        .idle_seconds = IDLE_SECONDS,
                                        .stall_ms = STALL_MS,
                                        .handle = node_http_handle,
                                        .too_large = node_http_too_large,
                                        .ctx = n};
    if (s->listen.n == 0)
        return OK;
    if (http_server_new(n->s.loop, &http, &n->server, reterr) != OK)
        return err_wrap(reterr, "listen");
    log_info("listening", kv_cstr("version", CARDPACK_VERSION), kv_str("address", s->listen),
             kv_uint("port", http_server_port(n->server)), kv_bool("tls", false));
    if (!value_is_loopback(s->listen))
        log_warn("the metrics are not on loopback: every client that reaches the port can read "
                 "them",
                 kv_str("address", s->listen));
    return OK;
}

enum errc node_program_open(struct node_program *n, const struct node_program_settings *s,
                            struct err *reterr)
{
    *n = (struct node_program){.s = *s, .start_ns = loop_wall_ns(s->loop)};
    n->refresh.fire = node_program_on_refresh;
    const struct map_seed seed = {loop_random(s->loop), loop_random(s->loop)};
    in_use_init(&n->in_use, seed);
    containers_init(&n->containers, seed);
    overrides_init(&n->overrides, seed);
    buf_init(&n->cgroup, 8 * KIB);
    enum errc code = node_program_open_api(n, reterr);
    if (code == OK)
        code = node_program_put_paths(n, reterr);
    if (code == OK)
        code = node_program_open_allot(n, reterr);
    if (code == OK)
        code = node_program_open_plugin(n, reterr);
    if (code == OK)
        code = node_program_open_cluster(n, reterr);
    if (code == OK)
        code = node_program_open_gpu(n, reterr);
    if (code == OK)
        code = node_program_open_usage(n, reterr);
    return code == OK ? node_program_open_server(n, reterr) : code;
}

/* ---- closing ---- */

void node_program_drain(struct node_program *n, void (*done)(void *ctx), void *ctx)
{
    events_drain(n->events, done, ctx);
}

void node_program_close(struct node_program *n)
{
    if (n->s.loop == NULL)
        return;
    timer_cancel(&n->refresh);
    n->server = http_server_free(n->server);
    n->limits = limits_free(n->limits);
    n->mps = mps_free(n->mps);
    n->usage = usage_meter_free(n->usage);
    n->gpu = n->gpu == NULL ? NULL : gpu_watch_free(n->gpu, NODE_LEAVE_MS);
    n->own = own_node_free(n->own);
    n->pods = pod_watch_free(n->pods);
    n->announce = announce_free(n->announce);
    n->lister = lister_free(n->lister);
    n->plugin = plugin_free(n->plugin); /* ends the calls that allot keeps */
    n->allot = allot_free(n->allot);
    buf_done(&n->folder);
    buf_done(&n->checkpoint);
    buf_done(&n->lists);
    n->events = events_free(n->events);
    n->api = kube_api_free(n->api);
    in_use_done(&n->in_use);
    containers_done(&n->containers);
    overrides_done(&n->overrides);
    buf_done(&n->cgroup);
    n->s.loop = NULL;
}

/* ---- questions ---- */

bool node_program_is_alive(const struct node_program *n, struct str *ret_why)
{
    const struct gpu_watch_state state = gpu_watch_state(n->gpu);
    *ret_why = state.why.n > 0 ? state.why : STR("NVIDIA's driver answers for no card");
    return state.shut_ms < NODE_SHUT_MS;
}

bool node_program_is_ready(const struct node_program *n, struct str *ret_missing)
{
    const struct gpu_watch_state state = gpu_watch_state(n->gpu);
    *ret_missing = STR("");
    if (state.phase == GPU_WATCH_STARTING)
        *ret_missing = STR("NVIDIA's library has not listed the cards yet");
    else if (state.phase != GPU_WATCH_RUNNING)
        *ret_missing = state.why.n > 0 ? state.why : STR("NVIDIA's driver does not answer");
    else if (!pod_watch_synced(n->pods))
        *ret_missing = STR("the node's pods are not listed, or one of them can't be read");
    else if (!own_node_seen(n->own))
        *ret_missing = STR("the API server has not shown the own node yet");
    else if (announce_trouble(n->announce).n > 0)
        *ret_missing = announce_trouble(n->announce);
    else if (n->enforce.lack != NULL)
        *ret_missing = str_of(n->enforce.lack);
    else if (!plugin_is_registered(n->plugin))
        *ret_missing = STR("the kubelet has not registered the device plugin");
    return ret_missing->n == 0;
}
