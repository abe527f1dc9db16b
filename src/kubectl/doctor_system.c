/* What doctor says of the programs: cardpack, gpushare's extender, kube-scheduler's configuration,
 * and the rights of the user. */
#include "core/dialect/gpushare.h"
#include "kubectl/doctor.h"
#include "json/yaml.h"

#define CONFIGURATION STR("KubeSchedulerConfiguration")

#define DRA       "resource.k8s.io"
#define DRA_LACKS "cards that ResourceClaims hold are not known to kubectl cardpack"

struct str doctor_system_label(const struct pod_view *v, struct str key)
{
    for (size_t i = 0; i < v->n_labels; i++) {
        if (str_eq(v->labels[i].key, key))
            return v->labels[i].value;
    }
    return STR("");
}

bool doctor_system_counts(struct doctor_system *s, const struct pod_view *v, enum doctor_program p,
                          struct arena *a)
{
    bool counts =
        str_eq(v->namespace, GPUSHARE_UNHEALTHY_NAMESPACE) || str_eq(v->namespace, s->namespace);
    if (!counts && s->strangers[p].n == 0)
        s->strangers[p] = finding_pod(&(struct findings){.arena = a}, v->namespace, v->name);
    return counts;
}

void doctor_system_take(struct doctor_system *s, const struct pod_view *v, struct arena *a)
{
    struct str component = doctor_system_label(v, STR("component"));
    struct str name = doctor_system_label(v, STR("app.kubernetes.io/name"));
    doctor_plugins_take(s, v, a);
    if (!str_eq(v->phase, STR("Running")) || v->deleting)
        return;
    s->autoscaler |= str_eq(v->namespace, GPUSHARE_UNHEALTHY_NAMESPACE) &&
                     (str_ends(name, STR("cluster-autoscaler")) ||
                      str_eq(doctor_system_label(v, STR("app")), STR("cluster-autoscaler")));
    if ((str_eq(component, STR("gpushare-schd-extender")) ||
         str_starts(v->name, STR("gpushare-schd-extender-"))) &&
        doctor_system_counts(s, v, DOCTOR_EXTENDER, a))
        s->extender = finding_pod(&(struct findings){.arena = a}, v->namespace, v->name);
    if (str_eq(v->namespace, s->namespace) &&
        (str_eq(name, STR("cardpack")) || str_eq(name, STR("cardpack-scheduler")))) {
        s->n_replicas++;
        if (doctor_system_label(v, STR("cardpack.io/leader-of")).n > 0) {
            s->n_leaders++;
            s->leader = arena_dup(a, v->name);
        }
    }
}

/* ---- cardpack ---- */

static void doctor_system_check_leader(struct findings *f, const struct doctor_system *s)
{
    struct str object = STR("service/cardpack");
    if (s->n_leaders == 1)
        finding_add(f, FINDING_OK, object, "", "the leader is pod %.*s", STR_ARG(s->leader));
    else if (s->n_leaders > 1)
        finding_add(f, FINDING_WARN, object,
                    "kubectl -n kube-system get lease cardpack names the leader: remove the label "
                    "cardpack.io/leader-of from the other pods",
                    "%zu pods have the leader's label, so that some calls reach a follower",
                    s->n_leaders);
    else if (s->n_replicas > 0)
        finding_add(f, FINDING_FAIL, object,
                    "apply manifests/base/objects/rbac-leader-label.yaml, and look at the log of "
                    "the leader",
                    "no pod of cardpack has the label cardpack.io/leader-of, by which the Service "
                    "finds the leader");
}

static void doctor_system_check_version(struct findings *f, struct str version)
{
    if (str_eq(version, STR(CARDPACK_VERSION)))
        finding_add(f, FINDING_OK, STR("cardpack"), "", "version %.*s, as this program",
                    STR_ARG(version));
    else
        finding_add(f, FINDING_WARN, STR("cardpack"),
                    "install the same version of both: docs/packages.md",
                    "cardpack has version %.*s, and this program %s",
                    STR_ARG(str_head(version, 64)), CARDPACK_VERSION);
}

void doctor_daemon(struct findings *f, const struct doctor_system *s, const struct doctor_daemon *d)
{
    struct str object = STR("cardpack");
    if (!d->asked)
        return;
    if (d->fault.code == OK)
        finding_add(f, FINDING_OK, object, "", "ready: %.*s", STR_ARG(str_head(d->ready, 200)));
    else if (d->no_service)
        finding_add(f, FINDING_WARN, object,
                    "name its Service with --service, or forward a port to it and use --daemon-url",
                    "not asked whether it is ready: the Service does not exist");
    else if (d->denied)
        finding_add(f, FINDING_WARN, object,
                    "bind the roles of manifests/kubectl-cardpack-rbac.yaml to the user",
                    "not asked whether it is ready: %s", d->fault.text);
    else
        finding_add(f, FINDING_FAIL, object,
                    "look at its pods and their log; docs/operating.md explains each text of "
                    "/readyz",
                    "not reachable or not ready: %s", d->fault.text);
    if (d->version.p != NULL)
        doctor_system_check_version(f, str_trim(d->version));
    if (d->through_service && !d->no_service)
        doctor_system_check_leader(f, s);
}

/* ---- gpushare ---- */

static void doctor_system_tell_strangers(struct findings *f, const struct doctor_system *s)
{
    static const struct {
        const char *text;
        const char *advice;
    } programs[DOCTOR_PROGRAMS] = {
        [DOCTOR_AGENT] = {"the labels of cardpack-node",
                          "if cardpack-node runs in that namespace, name it: --service "
                          "NAMESPACE/NAME; if not, ignore this; kubectl get pods -A -l "
                          "app.kubernetes.io/name=cardpack-node lists all such pods"},
        [DOCTOR_PLUGIN] = {"the labels of gpushare's device plugin",
                           "if the device plugin runs in that namespace, name it: --service "
                           "NAMESPACE/NAME; if not, ignore this; kubectl get pods -A -l "
                           "component=gpushare-device-plugin lists all such pods"},
        [DOCTOR_EXTENDER] = {"the name or the label of gpushare's extender",
                             "if it is gpushare's extender, scale its Deployment to 0: two "
                             "extenders give the same memory to two pods; if not, ignore this"},
    };

    bool apart = !str_eq(s->namespace, GPUSHARE_UNHEALTHY_NAMESPACE);
    for (size_t i = 0; i < DOCTOR_PROGRAMS; i++) {
        if (s->strangers[i].n == 0)
            continue;
        finding_add(f, FINDING_WARN, s->strangers[i], programs[i].advice,
                    "it has %s, and is not in kube-system%s%.*s: it does not count",
                    programs[i].text, apart ? " or " : "", apart ? (int)s->namespace.n : 0,
                    s->namespace.p);
    }
}

void doctor_system(struct findings *f, const struct doctor_system *s, const struct cache *c)
{
    if (s->extender.n > 0)
        finding_add(
            f, FINDING_FAIL, STR("gpushare-schd-extender"),
            "scale it to 0: kubectl -n NAMESPACE scale deployment gpushare-schd-extender "
            "--replicas=0",
            "gpushare's extender runs beside cardpack, as %.*s: two extenders give the same "
            "memory to two pods",
            STR_ARG(s->extender));
    doctor_plugins(f, s, c);
    doctor_system_tell_strangers(f, s);
    for (size_t i = 0; s->autoscaler && i < s->n_marks; i++) {
        struct str label = s->marks[i].accelerator;
        if (label.p != NULL)
            finding_add(f, FINDING_WARN, finding_node(f, s->marks[i].node),
                        "docs/autoscaler-and-kueue.md; if the label is yours, and no pod selects "
                        "nodes by it, remove it; otherwise put the node into a node group",
                        "it has the label %.*s, and no nvidia.com/gpu: if it is in no node group "
                        "of cluster-autoscaler, no node is added to the cluster any more",
                        STR_ARG(label));
    }
}

/* ---- kube-scheduler ---- */

struct extender {
    struct str url;
    struct str filter;
    struct str prioritize;
    struct str bind;
    bool ignorable;
    bool names_only;
    bool manages; /* managedResources has gpu-mem, or another dialect's memory, or is empty: then it
                     is asked about all pods */
};

/* Whether cardpack is asked about pods that name the resource because of shared cards. */
static bool doctor_system_is_shared(struct str resource)
{
    for (enum dialect d = 0; d < DIALECT_COUNT; d++) {
        if (str_eq(resource, dialect_facts(d)->mem))
            return true;
    }
    return false;
}

static bool doctor_system_read_resources(struct jread *r)
{
    bool any = false;
    bool found = false;
    struct str key;
    jread_array (r) {
        any = true;
        jread_object (r, key) {
            if (str_eq(key, STR("name")))
                found = doctor_system_is_shared(jread_str(r)) || found;
            else
                jread_skip(r);
        }
    }
    return found || !any;
}

static struct extender doctor_system_read_extender(struct jread *r)
{
    struct extender x = {.manages = true};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("urlPrefix")))
            x.url = jread_str(r);
        else if (str_eq(key, STR("filterVerb")))
            x.filter = jread_str(r);
        else if (str_eq(key, STR("prioritizeVerb")))
            x.prioritize = jread_str(r);
        else if (str_eq(key, STR("bindVerb")))
            x.bind = jread_str(r);
        else if (str_eq(key, STR("ignorable")))
            x.ignorable = jread_bool(r);
        else if (str_eq(key, STR("nodeCacheCapable")))
            x.names_only = jread_bool(r);
        else if (str_eq(key, STR("managedResources")))
            x.manages = doctor_system_read_resources(r);
        else
            jread_skip(r);
    }
    return x;
}

static bool doctor_system_is_ours(const struct extender *x)
{
    return x->url.n > 0 && memmem(x->url.p, x->url.n, "gpushare-scheduler", 18) != NULL;
}

static void doctor_system_check_extender(struct findings *f, const struct extender *x,
                                         struct str object)
{
    const char *advice = "compare it with config/kube-scheduler.yaml, and restart kube-scheduler";
    size_t before = f->counts[FINDING_WARN] + f->counts[FINDING_FAIL];
    if (x->filter.n == 0 || x->bind.n == 0)
        finding_add(f, FINDING_FAIL, object, advice,
                    "the extender %.*s has no %s: pods get no card", STR_ARG(str_head(x->url, 100)),
                    x->filter.n == 0 ? "filterVerb" : "bindVerb");
    if (!x->manages)
        finding_add(f, FINDING_FAIL, object, advice,
                    "managedResources of the extender %.*s lacks aliyun.com/gpu-mem: cardpack is "
                    "not asked",
                    STR_ARG(str_head(x->url, 100)));
    if (x->ignorable)
        finding_add(f, FINDING_WARN, object, advice,
                    "ignorable is true: while cardpack is away, pods are bound without a card");
    if (x->prioritize.n == 0)
        finding_add(f, FINDING_WARN, object, advice,
                    "the extender has no prioritizeVerb: the policy of nodes has no effect");
    if (!x->names_only)
        finding_add(f, FINDING_WARN, object, advice,
                    "nodeCacheCapable is not true: kube-scheduler sends whole nodes");
    if (f->counts[FINDING_WARN] + f->counts[FINDING_FAIL] == before)
        finding_add(f, FINDING_OK, object, "", "kube-scheduler's configuration calls %.*s",
                    STR_ARG(str_head(x->url, 100)));
}

static void doctor_system_read_configuration(struct findings *f, struct jread *r, struct str object)
{
    struct str key;
    bool found = false;
    jread_object (r, key) {
        if (!str_eq(key, STR("extenders"))) {
            jread_skip(r);
            continue;
        }
        jread_array (r) {
            struct extender x = doctor_system_read_extender(r);
            if (jread_failed(r) || !doctor_system_is_ours(&x))
                continue;
            found = true;
            doctor_system_check_extender(f, &x, object);
        }
    }
    if (!found && !jread_failed(r))
        finding_add(f, FINDING_WARN, object,
                    "add the extender of config/kube-scheduler.yaml, unless this scheduler places "
                    "no pods with cards",
                    "this configuration of kube-scheduler has no extender at gpushare-scheduler");
}

bool doctor_scheduler(struct findings *f, struct str configmap, struct str text)
{
    struct buf json;
    struct buf b;
    struct jread r;
    struct err e = ERR_INIT;
    if (text.n == 0 || memmem(text.p, text.n, CONFIGURATION.p, CONFIGURATION.n) == NULL)
        return false;
    buf_init(&b, KIB);
    buf_printf(&b, "configmap/kube-system/%.*s", STR_ARG(configmap));
    struct str object = arena_keep(f->arena, &b);
    buf_init(&json, 2 * MIB);
    enum errc code = yaml_to_json(text, &json, &e);
    if (code == OK) {
        jread_init(&r, buf_str(&json), f->arena);
        doctor_system_read_configuration(f, &r, object);
        code = jread_finish(&r, &e);
    }
    if (code != OK)
        finding_add(f, FINDING_FAIL, object, "correct it: kube-scheduler does not start with it",
                    "kube-scheduler's configuration cannot be read: %s", e.text);
    buf_done(&json);
    return true;
}

/* ---- rights ---- */

void doctor_list(struct findings *f, struct str name, enum cache_kind kind, const char *denied)
{
    enum finding_level level = kind >= CACHE_HEALTH ? FINDING_WARN : FINDING_FAIL;
    if (denied != NULL)
        finding_add(f, level, name,
                    "bind the roles of manifests/kubectl-cardpack-rbac.yaml to the user",
                    "they are not checked: %s", denied);
    else
        finding_add(f, FINDING_FAIL, name, "correct the object that standard error names",
                    "an object cannot be read: cardpack does not know what it holds");
}

const struct doctor_right *doctor_rights(size_t *ret_n)
{
    static const struct doctor_right rights[] = {
        {"list", "", "nodes", "", false, false, FINDING_FAIL, "doctor does not see the cards"},
        {"list", "", "pods", "", false, false, FINDING_FAIL, "pods and doctor do not see the pods"},
        {"list", "", "configmaps", "", false, true, FINDING_WARN,
         "unhealthy cards, quotas and kube-scheduler's configuration are not known"},
        {"list", DRA, "resourceslices", "", false, false, FINDING_WARN, DRA_LACKS},
        {"list", DRA, "resourceclaims", "", false, false, FINDING_WARN, DRA_LACKS},
        {"list", DRA, "deviceclasses", "", false, false, FINDING_WARN, DRA_LACKS},
        {"get", "", "services", "proxy", true, false, FINDING_WARN,
         "top, cards and explain read the API server alone, without Bindings under way"},
    };

    *ret_n = COUNT_OF(rights);
    return rights;
}

void doctor_right(struct findings *f, const struct doctor_right *r)
{
    finding_add(f, r->level, STR("rights"),
                "bind the roles of manifests/kubectl-cardpack-rbac.yaml to the user",
                "the user may not %s %s%s%s%s: %s", r->verb, r->resource,
                r->subresource[0] == '\0' ? "" : "/", r->subresource,
                r->of_system ? " in kube-system" : "", r->lack);
}
