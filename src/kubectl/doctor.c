/*
 * Reads the lists of the cluster for doctor: nodes, the ConfigMaps of kube-system, then pods. Each
 * object goes into the cache as in the daemon, and then to its check. What the user may not read is
 * a finding, and the other checks go on.
 */
#include "kubectl/doctor.h"

#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "kube/ingest.h"
#include "kubectl/ask.h"
#include "kubectl/paged_list.h"
#include "objects/kube_dra.h"
#include "objects/usage.h"

#define REVIEW "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

struct checkup {
    struct kubectl_client *client;
    struct findings *findings;
    struct doctor_system system;
    struct cache cache;
    struct ingest ingest;
    struct measured measured;
    struct doctor_listed_sum compared;
    struct arena scratch; /* for one object */
    struct findings at; /* the findings when the list under way began, and the same of the others */
    struct doctor_system system_at;
    struct doctor_listed_sum compared_at;
    enum cache_kind kind; /* of the list under way */
    uint32_t now_s;
    bool blind;     /* not all nodes are known */
    bool scheduler; /* a configuration of kube-scheduler was found */
    bool dra;       /* the API server serves DRA's objects */
};

/* ---- objects ---- */

/* The node affinity of manifests/node/cardpack-node.yaml. */
static void doctor_read_paused(struct str label, struct str value, struct doctor_marks *ret)
{
#define PAUSED(key, value) STR(key "=" value)
    static const struct str states[] = {
        PAUSED("nvidia.com/gpu.deploy.client", "paused-for-driver-upgrade"),
        PAUSED("nvidia.com/gpu.deploy.client", "paused-for-mig-change"),
        PAUSED("nvidia.com/gpu-driver-upgrade-state", "pod-deletion-required"),
        PAUSED("nvidia.com/gpu-driver-upgrade-state", "drain-required"),
        PAUSED("nvidia.com/gpu-driver-upgrade-state", "pod-restart-required"),
        PAUSED("nvidia.com/gpu-driver-upgrade-state", "upgrade-failed"),
        PAUSED("nvidia.com/mig.config.state", "pending"),
        PAUSED("nvidia.com/mig.config.state", "rebooting")};
#undef PAUSED
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct str key;
        struct str state;
        (void)str_cut(states[i], '=', &key, &state);
        if (str_eq(label, key) && str_eq(value, state))
            ret->paused = states[i];
    }
}

/* By these labels cluster-autoscaler expects nvidia.com/gpu there: AWS's, GKE's, Azure's. */
static void doctor_read_accelerator(struct str label, struct doctor_marks *ret)
{
    static const struct str labels[] = {STR("k8s.amazonaws.com/accelerator"),
                                        STR("cloud.google.com/gke-accelerator"),
                                        STR("kubernetes.azure.com/accelerator")};
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        if (str_eq(label, labels[i]))
            ret->accelerator = labels[i];
    }
}

/* The labels by which the device plugins are started there. */
static void doctor_read_labels(struct jread *r, struct doctor_marks *ret)
{
    struct str key;
    struct str field;
    struct str label;
    jread_object (r, key) {
        if (!str_eq(key, STR("metadata"))) {
            jread_skip(r);
            continue;
        }
        jread_object (r, field) {
            if (!str_eq(field, STR("labels"))) {
                jread_skip(r);
                continue;
            }
            jread_object (r, label) {
                struct str value = jread_str(r);
                if (str_eq(label, STR("gpushare")))
                    ret->gpushare = str_eq(value, STR("true"));
                else if (str_eq(label, STR("cardpack.io/node")))
                    ret->ours = str_eq(value, STR("true"));
                doctor_read_accelerator(label, ret);
                doctor_read_paused(label, value, ret);
            }
        }
    }
}

static void doctor_take_node(struct checkup *x, struct str json)
{
    struct jread r;
    struct node_view v;
    ingest_node(&x->ingest, json, false);
    jread_init(&r, json, &x->scratch);
    kube_read_node(&r, &x->scratch, &v);
    if (jread_finish(&r, NULL) != OK)
        return;
    struct doctor_marks marks = {.node = v.name, .table = v.has_cards};
    jread_init(&r, json, &x->scratch);
    doctor_read_labels(&r, &marks);
    if (v.exclusive.n > 0 && !str_eq(v.exclusive, STR("0")))
        marks.accelerator = STR_NULL;
    doctor_plugins_mark(&x->system, &marks, x->findings->arena);
    doctor_dialect(x->findings, &v, cache_node(&x->cache, v.name));
    doctor_node(x->findings, &v, cache_node(&x->cache, v.name), &marks, x->now_s);
}

static void doctor_take_data(struct checkup *x, struct str json, struct str name)
{
    struct jread r;
    struct str key;
    struct str field;
    jread_init(&r, json, &x->scratch);
    jread_object (&r, key) {
        if (!str_eq(key, STR("data"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, field)
            x->scheduler = doctor_scheduler(x->findings, name, jread_str(&r)) || x->scheduler;
    }
}

/* Only what the daemon would take, too: not what a program has written that ended long ago. */
static void doctor_take_usage(struct checkup *x, struct str node, struct str text)
{
    struct usage_view u;
    if (text.p != NULL && measured_of(&x->measured, node) != NULL &&
        usage_read(text, &x->scratch, &u, NULL) == OK)
        doctor_listed(x->findings, node, &u, &x->compared);
}

static void doctor_take_configmap(struct checkup *x, struct str json)
{
    struct jread r;
    struct configmap_view v;
    ingest_configmap(&x->ingest, json, false);
    jread_init(&r, json, &x->scratch);
    kube_read_configmap(&r, &v);
    if (jread_finish(&r, NULL) != OK)
        return;
    x->system.autoscaler |= str_eq(v.name, STR("cluster-autoscaler-status"));
    if (str_starts(v.name, GPUSHARE_UNHEALTHY_PREFIX) && v.gpus.p != NULL)
        doctor_health(x->findings, &x->cache, str_skip(v.name, GPUSHARE_UNHEALTHY_PREFIX.n),
                      v.gpus);
    if (str_starts(v.name, STR(USAGE_CONFIGMAP_PREFIX)))
        doctor_take_usage(x, str_skip(v.name, STR(USAGE_CONFIGMAP_PREFIX).n), v.usage);
    doctor_take_data(x, json, v.name);
}

/* Whether spec.resourceClaims has any. */
static bool doctor_has_claims(struct str json, struct arena *a)
{
    struct jread r;
    struct str key;
    struct str field;
    bool any = false;
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("spec"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, field) {
            if (!str_eq(field, STR("resourceClaims"))) {
                jread_skip(&r);
                continue;
            }
            jread_array (&r) {
                any = true;
                jread_skip(&r);
            }
        }
    }
    return jread_finish(&r, NULL) == OK && any;
}

static void doctor_take_pod(struct checkup *x, struct str json)
{
    struct jread r;
    struct pod_view v;
    ingest_pod(&x->ingest, json, false);
    jread_init(&r, json, &x->scratch);
    kube_read_pod(&r, &x->scratch, &v);
    if (jread_finish(&r, NULL) != OK)
        return;
    doctor_system_take(&x->system, &v, x->findings->arena);
    if (x->blind && pod_view_bound(&v))
        return;
    bool claims = v.n_classes > 0 || doctor_has_claims(json, &x->scratch);
    doctor_pod(x->findings, &x->cache, &x->measured, &v, claims, x->now_s);
}

static void doctor_take_slice(struct checkup *x, struct str json)
{
    struct jread r;
    struct dra_slice_view v;
    ingest_slice(&x->ingest, json, false);
    jread_init(&r, json, &x->scratch);
    kube_read_slice(&r, &x->scratch, &v);
    if (jread_finish(&r, NULL) == OK)
        doctor_slice(x->findings, &x->cache, &v);
}

static void doctor_take_claim(struct checkup *x, struct str json)
{
    ingest_claim(&x->ingest, json, false);
}

static void doctor_take_class(struct checkup *x, struct str json)
{
    ingest_class(&x->ingest, json, false);
}

/* ---- lists ---- */

static void doctor_on_begin(void *ctx)
{
    struct checkup *x = ctx;
    struct doctor_system grown = x->system;
    /* The arrays may have grown in place: what is behind the old ends does not count. */
    x->findings->n = x->at.n;
    memcpy(x->findings->counts, x->at.counts, sizeof(x->at.counts));
    x->compared = x->compared_at;
    x->system = x->system_at;
    x->system.plugins = grown.plugins;
    x->system.cap = grown.cap;
    x->system.marks = grown.marks;
    x->system.marks_cap = grown.marks_cap;
    x->ingest.n_unreadable = 0;
    ingest_list_begin(&x->ingest, x->kind);
}

static enum errc doctor_on_object(void *ctx, struct str json, struct err *e)
{
    static void (*const takes[CACHE_ALL_KINDS])(struct checkup *, struct str) = {
        [CACHE_NODES] = doctor_take_node,       [CACHE_PODS] = doctor_take_pod,
        [CACHE_HEALTH] = doctor_take_configmap, [CACHE_SLICES] = doctor_take_slice,
        [CACHE_CLAIMS] = doctor_take_claim,     [CACHE_CLASSES] = doctor_take_class};
    struct checkup *x = ctx;
    arena_reset(&x->scratch);
    takes[x->kind](x, json);
    bool lost = x->ingest.lost || arena_failed(x->findings->arena);
    return lost ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

static enum errc doctor_read_list(struct checkup *x, enum cache_kind kind, struct err *e)
{
    const struct kubectl_source *of = kubectl_source_of(kind);
    struct kubectl_list l = {.path = of->path,
                             .query = of->query,
                             .kind = of->kind,
                             .begin = doctor_on_begin,
                             .take = doctor_on_object,
                             .ctx = x};
    x->kind = kind;
    x->at = *x->findings;
    x->system_at = x->system;
    x->compared_at = x->compared;
    if (kind == CACHE_NODES)
        kubectl_use_dialects(x->client, NULL);
    enum errc code = kubectl_list_read(x->client, &l, e);
    if (kind == CACHE_NODES)
        kubectl_use_dialects(x->client, &x->cache);
    x->blind = x->blind || (kind == CACHE_NODES && (code != OK || x->ingest.n_unreadable > 0));
    if (code == ERR_DENIED) {
        doctor_list(x->findings, of->name, kind, e->text);
        *e = (struct err)ERR_INIT;
        return OK;
    }
    if (code != OK)
        return code;
    if (x->ingest.n_unreadable > 0)
        doctor_list(x->findings, of->name, kind, NULL);
    (void)ingest_list_end(&x->ingest, kind);
    return OK;
}

/* ---- rights ---- */

static void doctor_put_review(struct buf *out, const struct doctor_right *r,
                              const struct kubectl_args *a)
{
    const struct {
        const char *key;
        struct str value;
    } fields[] = {
        {"verb", str_of(r->verb)},
        {"group", str_of(r->group)},
        {"resource", str_of(r->resource)},
        {"subresource", str_of(r->subresource)},
        {"namespace", r->of_service  ? a->service_namespace
                      : r->of_system ? GPUSHARE_UNHEALTHY_NAMESPACE
                                     : STR("")},
    };

    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("apiVersion"), STR("authorization.k8s.io/v1"));
    jwrite_str_at(&w, STR("kind"), STR("SelfSubjectAccessReview"));
    jwrite_object_at(&w, STR("spec"));
    jwrite_object_at(&w, STR("resourceAttributes"));
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        jwrite_str_at(&w, str_of(fields[i].key), fields[i].value);
    if (r->of_service) {
        struct buf name;
        struct str service;
        struct str port;
        bool named = str_cut(a->service_name, ':', &service, &port);
        buf_init(&name, KIB);
        buf_printf(&name, "%.*s:%.*s", STR_ARG(service), STR_ARG(named ? port : STR("http")));
        jwrite_str_at(&w, STR("name"), buf_str(&name));
        buf_done(&name);
    }
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}

static bool doctor_is_allowed(struct str reply, struct arena *a)
{
    struct jread r;
    struct str key;
    struct str field;
    bool allowed = false;
    jread_init(&r, reply, a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("status"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, field) {
            if (str_eq(field, STR("allowed")))
                allowed = jread_bool(&r);
            else
                jread_skip(&r);
        }
    }
    return jread_finish(&r, NULL) == OK && allowed;
}

static enum errc doctor_check_right(struct checkup *x, const struct doctor_right *r, struct err *e)
{
    struct buf body;
    assert(x->client != NULL);
    buf_init(&body, KIB);
    doctor_put_review(&body, r, x->client->args);
    arena_reset(&x->scratch);
    enum errc code = buf_failed(&body)
                         ? err_set(e, buf_fault(&body), "the name of the Service is too long")
                         : kubectl_client_call(x->client, "POST", STR(REVIEW), buf_str(&body), e);
    buf_done(&body);
    if (code != OK)
        return code;
    if (kubectl_client_status(x->client) != 201) {
        (void)kubectl_client_result(x->client, e);
        finding_add(x->findings, FINDING_WARN, STR("rights"), "check them with kubectl auth can-i",
                    "the API server does not say what the user may do: %s", e->text);
        *e = (struct err)ERR_INIT;
        return OK;
    }
    if (!doctor_is_allowed(kubectl_client_reply(x->client), &x->scratch))
        doctor_right(x->findings, r);
    return OK;
}

static enum errc doctor_check_rights(struct checkup *x, bool with_daemon, struct err *e)
{
    size_t n = 0;
    const struct doctor_right *rights = doctor_rights(&n);
    enum errc code = OK;
    for (size_t i = 0; i < n && code == OK; i++) {
        if ((with_daemon || !rights[i].of_service) && (x->dra || rights[i].group[0] == '\0'))
            code = doctor_check_right(x, &rights[i], e);
    }
    return code;
}

/* ---- cardpack ---- */

static enum errc doctor_ask_daemon(struct checkup *x, struct kubectl_client *daemon,
                                   struct doctor_daemon *ret, struct err *e)
{
    struct kubectl_question ready = {.command = KUBECTL_DOCTOR};
    struct kubectl_question version = {.command = KUBECTL_VERSION};
    struct arena *a = x->findings->arena;
    struct err unsaid = ERR_INIT;
    *ret = (struct doctor_daemon){.asked = true, .through_service = daemon == x->client};
    enum errc code = kubectl_ask_daemon(daemon, &ready, a, &ret->ready, &ret->fault);
    ret->fault.code = code;
    ret->ready = str_trim(ret->ready);
    if (code == OK && kubectl_ask_daemon(daemon, &version, a, &ret->version, &unsaid) != OK)
        ret->version = STR_NULL;
    if (code == OK || !ret->through_service)
        return OK;
    if (!daemon->is_answered) {
        *e = ret->fault;
        return code;
    }
    ret->no_service = kubectl_client_status(daemon) == 404;
    ret->denied = kubectl_client_status(daemon) == 403 || kubectl_client_status(daemon) == 401;
    return OK;
}

/* Whether cardpack has all nodes. If its answer can't be read, nothing is compared. */
static void doctor_compare(struct checkup *x, struct kubectl_client *daemon)
{
    struct kubectl_question cards = {.command = KUBECTL_CARDS};
    struct arena *a = x->findings->arena;
    struct err unsaid = ERR_INIT;
    struct figures shown;
    struct str answer;
    if (kubectl_ask_daemon(daemon, &cards, a, &answer, &unsaid) == OK &&
        figures_read(answer, a, &shown, &unsaid) == OK)
        doctor_unread(x->findings, &x->cache, &shown);
}

static void doctor_tell_scheduler(struct findings *f)
{
    finding_add(f, FINDING_WARN, STR("kube-scheduler"),
                "look at --config in /etc/kubernetes/manifests/kube-scheduler.yaml of each control-"
                "plane node: that file must have the extender of config/kube-scheduler.yaml",
                "its configuration is in no ConfigMap of kube-system that can be read here, but in "
                "a file of its host");
}

static enum errc doctor_run(struct checkup *x, struct kubectl_client *daemon, struct err *e)
{
    static const enum cache_kind kinds[] = {CACHE_NODES,  CACHE_HEALTH,  CACHE_SLICES,
                                            CACHE_CLAIMS, CACHE_CLASSES, CACHE_PODS};
    struct doctor_daemon d = {.asked = false};
    enum errc code = OK;
    if (daemon != NULL)
        code = doctor_ask_daemon(x, daemon, &d, e);
    if (code == OK)
        code = kubectl_client_has_dra(x->client, &x->dra, e);
    if (code == OK)
        code = doctor_check_rights(x, daemon == x->client, e);
    for (size_t i = 0; i < COUNT_OF(kinds) && code == OK; i++) {
        if (x->dra || kinds[i] < CACHE_SLICES)
            code = doctor_read_list(x, kinds[i], e);
    }
    if (code != OK)
        return code;
    doctor_daemon(x->findings, &x->system, &d);
    if (daemon != NULL && d.fault.code == OK)
        doctor_compare(x, daemon);
    doctor_system(x->findings, &x->system, &x->cache);
    if (!x->scheduler)
        doctor_tell_scheduler(x->findings);
    if (!x->blind)
        doctor_usage(x->findings, &x->cache);
    doctor_tell_listed(x->findings, &x->compared);
    return arena_failed(x->findings->arena) ? err_set(e, ERR_NOMEM, "out of memory") : OK;
}

enum errc kubectl_doctor(struct kubectl_client *cluster, struct kubectl_client *daemon,
                         struct findings *f, struct err *reterr)
{
    struct checkup *x = mem_alloc(sizeof(*x));
    if (x == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    x->client = cluster;
    x->findings = f;
    x->system.namespace = cluster->args->service_namespace;
    x->now_s = (uint32_t)(loop_wall_ns(cluster->loop) / UINT64_C(1000000000));
    struct map_seed seed = {loop_random(cluster->loop), loop_random(cluster->loop)};
    cache_init(&x->cache, seed);
    measured_init(&x->measured, seed, INGEST_USAGE_MS);
    ingest_init(&x->ingest, cluster->loop, &x->cache);
    x->ingest.measured = &x->measured;
    arena_init(&x->scratch, LIMIT_OBJECT_ARENA);
    enum errc code = doctor_run(x, daemon, reterr);
    arena_done(&x->scratch);
    ingest_done(&x->ingest);
    measured_done(&x->measured);
    cache_done(&x->cache);
    mem_free(x);
    return code;
}
