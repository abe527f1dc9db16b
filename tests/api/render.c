/* Writes the API server's JSON, with fields that cardpack does not use: its decoder must skip
 * them. */
#include "api/plugins.h"

static const char *const models[MODELS] = {"", "A10", "T4"};
static const char *const selections[] = {"", "A10", "!A10", "T4, !A10", "t*,A10", "*4"};

const char *model_text(int8_t model)
{
    return models[model];
}

/* From the fourth on the node enforces something. */
const char *isolation_text(uint8_t isolation)
{
    static const char *const texts[ISOLATIONS] = {"", "none", "odd", "driver-limits", "mps", "mig"};
    return texts[isolation];
}

const char *pool_text(uint8_t pool)
{
    static const char *const pools[POOLS] = {"", "gold", "silver"};
    return pools[pool];
}

const char *quota_scope_text(unsigned scope)
{
    static const char *const patterns[PATTERNS] = {"a10", "T4", "*1*", "", "*"};
    return scope >= SCOPE_PATTERNS ? patterns[scope - SCOPE_PATTERNS]
                                   : pool_text((uint8_t)(scope - SCOPE_POOLS));
}

static void member(struct text *t, const char *key, const struct name *value)
{
    if (value->z[0] == '\0')
        return;
    if (t->p[t->n - 1] != '{')
        text_z(t, ",");
    text_quoted(t, str_of(key));
    text_z(t, ":");
    text_quoted(t, name_str(value));
}

static void version(struct text *t, uint64_t rv)
{
    text_f(t, ",\"resourceVersion\":\"%llu\"", (unsigned long long)rv);
}

static void amount(struct text *t, const char *key, int64_t value)
{
    const char *between = t->p[t->n - 1] == '{' ? "" : ",";
    text_f(t, "%s\"%s\":\"%lld\"", between, key, (long long)value);
}

/* The resources of HAMi's family: so many cards, and so much of each. */
static void devices(struct text *t, const struct pod_object *p, const struct container_object *c)
{
    const struct plugin_names *names = &plugin_names[p->plugin];
    int64_t cards = p->count > 0 ? p->count : 1;
    if (!c->named)
        return;
    amount(t, names->count, cards);
    if (c->mem > 0)
        amount(t, names->mem, c->mem / cards);
    if (c->cores > 0)
        amount(t, names->cores, c->cores / cards);
    if (p->percent > 0 && p->percent < 100)
        amount(t, names->percent, p->percent);
}

/* NVIDIA's plugin calls its cards so with renameByDefault, and slices of them. */
static void exclusive(struct text *t, const struct pod_object *p, int64_t amount_of)
{
    if (amount_of > 0 && p->renamed)
        amount(t, "nvidia.com/gpu.shared", 1);
    if (amount_of > 1 && p->renamed)
        amount(t, "nvidia.com/mig-1g.5gb", amount_of - 1);
    if (amount_of > 0 && !p->renamed)
        amount(t, "nvidia.com/gpu", amount_of);
}

static void container(struct text *t, unsigned number, const struct pod_object *p,
                      const struct container_object *c)
{
    static const char *const both[] = {"\"limits\":{", "},\"requests\":{"};
    text_f(t, "%s{\"name\":\"c%u\"", t->p[t->n - 1] == '[' ? "" : ",", number);
    if (c->kind == CONTAINER_SIDECAR)
        text_z(t, ",\"restartPolicy\":\"Always\"");
    text_z(t, ",\"image\":\"x\",\"resources\":{");
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        text_z(t, both[i]);
        if (i == 0)
            text_f(t, "\"cpu\":\"%lldm\"", c->cpu == 0 ? 100LL : (long long)c->cpu);
        else if (c->memory > 0)
            amount(t, "memory", c->memory);
        exclusive(t, p, c->exclusive);
        if (plugin_has_devices(p->plugin)) {
            devices(t, p, c);
            continue;
        }
        if (c->named && (p->plugin == PLUGIN_GPUSHARE || c->mem > 0))
            amount(t, plugin_names[p->plugin].mem, c->mem);
        if (c->cores > 0)
            amount(t, plugin_names[p->plugin].cores, c->cores);
        if (c->cores > 0 && p->beside)
            amount(t, plugin_names[p->plugin].mem, 16);
    }
    text_z(t, "}}}");
}

static void spec(struct text *t, const struct pod_object *p)
{
    unsigned inits = p->n_containers - p->n_mains;
    text_z(t, ",\"spec\":{");
    if (inits > 0)
        text_z(t, "\"initContainers\":[");
    for (unsigned i = 0; i < inits; i++)
        container(t, i, p, &p->containers[i]);
    text_z(t, inits > 0 ? "],\"containers\":[" : "\"containers\":[");
    for (unsigned i = inits; i < p->n_containers; i++)
        container(t, i, p, &p->containers[i]);
    text_z(t, "]");
    if (p->node.z[0] != '\0')
        member(t, "nodeName", &p->node);
    if (p->priority > 0)
        text_f(t, ",\"priority\":%d", p->priority);
    if (p->gated)
        text_z(t, ",\"schedulingGates\":[{\"name\":\"later\"}]");
    text_z(t, "}");
}

static void labels(struct text *t, const struct pod_object *p)
{
    text_z(t, ",\"labels\":{\"app\":");
    text_quoted(t, p->app.z[0] == '\0' ? STR("x") : name_str(&p->app));
    if (p->count > 0 && p->plugin == PLUGIN_GPUSHARE)
        amount(t, "aliyun.com/gpu-count", p->count);
    if (p->whole && p->plugin == PLUGIN_GPUSHARE)
        text_z(t, ",\"ack.gpushare.placement\":\"require-whole-device\"");
    text_z(t, "}");
}

void render_grants(struct text *t, const struct grants_object *g)
{
    struct text inner = {.p = NULL};
    text_z(&inner, "{");
    for (unsigned i = 0; i < g->n; i++) {
        bool begins = i == 0 || g->at[i].container != g->at[i - 1].container;
        text_z(&inner, i == 0 ? "" : begins ? "}," : ",");
        if (begins)
            text_f(&inner, "\"%u\":{", g->at[i].container);
        text_f(&inner, "\"%u\":%d", g->at[i].card, g->at[i].amount);
    }
    text_z(&inner, g->garbled ? "" : g->n > 0 ? "}}" : "}");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

/* Labels and annotations in which users ask for cards. */
static void wishes(struct text *t, const struct pod_object *p)
{
    if (p->percent > 0 && p->plugin == PLUGIN_GPUSHARE)
        amount(t, "cardpack.io/gpu-mem-percent", p->percent);
    if (p->model > 0) {
        struct name wish = name_from(str_of(selections[p->model]));
        member(t, "cardpack.io/card-model", &wish);
    }
    if (p->uuid != 0) {
        bool is = p->uuid > 0;
        struct name uuid = name_of(is ? "gpu-" : "! GPU-", (uint64_t)(is ? p->uuid : -p->uuid) - 1);
        member(t, "cardpack.io/card-uuid", &uuid);
    }
    if (p->isolated) {
        struct name yes = name_from(STR("true"));
        member(t, "cardpack.io/require-isolation", &yes);
    }
    member(t, "cardpack.io/card-affinity-group", &p->affinity);
    member(t, "cardpack.io/card-anti-affinity-group", &p->anti_affinity);
    member(t, "cardpack.io/policy", &p->policy);
    member(t, "cardpack.io/node-policy", &p->node_policy);
    member(t, "cardpack.io/card-policy", &p->card_policy);
}

static void status(struct text *t, const struct pod_object *p)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    text_f(t, ",\"status\":{\"phase\":\"%s\"", phases[p->phase]);
    member(t, "nominatedNodeName", &p->nominated);
    if (p->claimed)
        text_z(t,
               ",\"extendedResourceClaimStatus\":{\"requestMappings\":[{\"containerName\":\"c0\","
               "\"requestName\":\"r\",\"resourceName\":\"nvidia.com/gpu\"}],"
               "\"resourceClaimName\":\"x\"}");
    if (p->node.z[0] != '\0') {
        text_z(t, ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},"
                  "{\"type\":\"Initialized\",\"status\":\"");
        text_z(t, p->initialized ? "True\"}]" : "False\"}]");
    }
    text_z(t, "}");
}

/* The annotations of gpushare's schedulers and plugin. */
static void said(struct text *t, const struct pod_object *p)
{
    member(t, "ALIYUN_COM_GPU_MEM_IDX", &p->idx);
    member(t, "ALIYUN_COM_GPU_MEM_DEV", &p->dev);
    member(t, "ALIYUN_COM_GPU_MEM_POD", &p->mem);
    member(t, "ALIYUN_COM_GPU_MEM_ASSIGNED", &p->assigned);
    member(t, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", &p->assume);
    if (p->allocation.there) {
        text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
        text_z(t, "\"scheduler.framework.gpushare.allocation\":");
        render_grants(t, &p->allocation);
    }
}

static void pod(struct text *t, const struct pod_object *p)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &p->name);
    member(t, "namespace", &p->ns);
    member(t, "uid", &p->uid);
    version(t, p->rv);
    if (p->deleting)
        text_z(t, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    labels(t, p);
    text_z(t, ",\"annotations\":{");
    member(t, "note", &p->note);
    wishes(t, p);
    if (p->plugin == PLUGIN_GPUSHARE)
        said(t, p);
    else
        plugin_write_pod(t, p);
    text_z(t, "}}");
    spec(t, p);
    status(t, p);
    text_z(t, "}");
}

/* A quantity as Kubernetes writes it: multiples of 1000 with the suffix k. */
static void quantity(struct text *t, const char *key, int64_t value)
{
    if (value < 0)
        return;
    bool k = value > 0 && value % 1000 == 0;
    text_f(t, "\"%s\":\"%lld%s\",", key, (long long)(k ? value / 1000 : value), k ? "k" : "");
}

static void table(struct text *t, const struct node_object *n)
{
    struct text inner = {.p = NULL};
    text_z(&inner, "[");
    for (unsigned i = 0; i < n->n_table; i++) {
        const struct card_object *c = &n->table[i];
        text_f(&inner, "%s{\"index\":%u,\"memory\":%lld", i == 0 ? "" : ",", c->index,
               (long long)c->mem);
        if (c->model != 0)
            text_f(&inner, ",\"model\":\"%s\"", models[c->model]);
        if (c->uuid)
            text_f(&inner, ",\"uuid\":\"GPU-%u\"", c->index);
        if (c->numa >= 0)
            text_f(&inner, ",\"numa\":%d", c->numa);
        if (c->pci > 0)
            text_f(&inner, ",\"pci\":\"00000000:%02X:00.0\"", c->pci);
        text_z(&inner, c->ill ? ",\"health\":\"Unhealthy\"}" : "}");
    }
    text_z(&inner, n->bad_table ? ",{}]" : "]");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

/* The kubelet sets what a plugin that is gone has reported to 0, and never removes it
 * (pkg/kubelet/nodestatus/setters.go, MachineInfo). */
static void left_by_plugins(struct text *t, const struct node_object *n)
{
    for (unsigned i = 0; i < PLUGINS; i++) {
        if ((n->left & 1U << i) != 0 && i != n->plugin)
            quantity(
                t, plugin_has_devices((enum plugin)i) ? plugin_names[i].count : plugin_names[i].mem,
                0);
    }
}

static void capacity(struct text *t, const struct node_object *n)
{
    left_by_plugins(t, n);
    if (plugin_has_devices(n->plugin)) {
        quantity(t, plugin_names[n->plugin].count, plugin_parts(n));
        return;
    }
    quantity(t, plugin_names[n->plugin].mem, n->mem);
    quantity(t, plugin_names[n->plugin].count,
             (n->plugin == PLUGIN_ELASTIC || n->plugin == PLUGIN_TENCENT) && n->count > 0
                 ? 100 * n->count
                 : n->count);
    quantity(t, "nvidia.com/gpu", n->exclusive);
    quantity(t, "nvidia.com/gpu.shared", n->exclusive < 0 ? -1 : 0);
}

static void node(struct text *t, const struct node_object *n)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &n->name);
    version(t, n->rv);
    text_z(t, ",\"labels\":{");
    member(t, "ack.node.gpu.max-pod", &n->max_pods);
    member(t, "ack.node.gpu.placement", &n->placement);
    if (n->given_all)
        text_f(t, "%s\"cardpack.io/dra\":\"true\"", t->p[t->n - 1] == '{' ? "" : ",");
    if (n->pool != 0) {
        struct name pool = name_from(str_of(pool_text(n->pool)));
        member(t, "cardpack.io/pool", &pool);
    }
    if (n->isolation != 0) {
        struct name isolation = name_from(str_of(isolation_text(n->isolation)));
        member(t, "cardpack.io/isolation", &isolation);
    }
    if (n->model != 0) {
        struct name model = name_from(str_of(models[n->model]));
        member(t, "nvidia.com/gpu.product", &model);
    }
    text_z(t, "},\"annotations\":{");
    member(t, "cardpack.io/cordoned-cards", &n->cordoned);
    member(t, "cardpack.io/exclusive-cards", &n->aside);
    member(t, "cardpack.io/dra-cards", &n->given);
    if (n->has_table && n->plugin == PLUGIN_GPUSHARE) {
        text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
        text_z(t, "\"cardpack.io/cards\":");
        table(t, n);
    }
    plugin_write_node(t, n);
    text_z(t, "}},\"spec\":{},\"status\":{\"capacity\":{");
    capacity(t, n);
    text_z(t, "\"cpu\":\"8\"},\"allocatable\":{");
    if (plugin_has_devices(n->plugin))
        quantity(t, plugin_names[n->plugin].count,
                 n->allocatable > 0 ? plugin_parts(n) : n->allocatable);
    else
        quantity(t, plugin_names[n->plugin].mem, n->allocatable);
    quantity(t, "memory", n->memory == 0 ? -1 : n->memory);
    text_z(t, "\"cpu\":\"7500m\"}}}");
}

/* The next member of an object or array. */
static void next(struct text *t)
{
    char last = t->p[t->n - 1];
    text_z(t, last == '{' || last == '[' ? "" : ",");
}

static void put_amounts(struct text *t, const struct limits_object *l, unsigned scope)
{
    static const char *const names[LIMITED_KINDS] = {"memory", "cards", "compute"};
    text_z(t, ":{");
    for (unsigned k = 0; k < LIMITED_KINDS; k++) {
        if (l->of[scope].most[k] < 0)
            continue;
        next(t);
        text_f(t, "\"%s\":%lld", names[k], (long long)l->of[scope].most[k]);
    }
    text_z(t, "}");
}

/* `"perPool":{...}` or `"perModel":{...}`. */
static void put_scopes(struct text *t, const char *key, const struct limits_object *l,
                       unsigned first, unsigned n)
{
    next(t);
    text_quoted(t, str_of(key));
    text_z(t, ":{");
    for (unsigned i = first; i < first + n; i++) {
        if (!l->of[i].there)
            continue;
        next(t);
        text_quoted(t, str_of(quota_scope_text(i)));
        put_amounts(t, l, i);
    }
    text_z(t, "}");
}

/* `"pools":[...]` or `"models":[...]`; nothing without a bit. */
static void put_list(struct text *t, const char *key, unsigned bits, unsigned first)
{
    if (bits == 0)
        return;
    next(t);
    text_quoted(t, str_of(key));
    text_z(t, ":[");
    for (unsigned i = 0; bits >> i != 0; i++) {
        if ((bits >> i & 1) == 0)
            continue;
        next(t);
        text_quoted(t, str_of(quota_scope_text(first + i)));
    }
    text_z(t, "]");
}

static void put_entry(struct text *t, const char *key, const struct limits_object *l)
{
    next(t);
    text_quoted(t, str_of(key));
    text_z(t, ":{");
    if (l->of[SCOPE_TOTAL].there) {
        text_z(t, "\"limits\"");
        put_amounts(t, l, SCOPE_TOTAL);
    }
    put_list(t, "pools", l->pools, SCOPE_POOLS);
    put_list(t, "models", l->patterns, SCOPE_PATTERNS);
    put_scopes(t, "perModel", l, SCOPE_PATTERNS, PATTERNS);
    put_scopes(t, "perPool", l, SCOPE_POOLS, POOLS);
    text_z(t, "}");
}

static void quotas(struct text *t, const struct health_object *h)
{
    static const char *const keys[] = {"ns-0", "ns-1", "*"};
    struct text inner = {.p = NULL};
    text_z(&inner, h->garbled ? "{\"namespace\":{" : "{\"namespaces\":{");
    for (unsigned i = 0; i < COUNT_OF(keys); i++) {
        if (h->limits[i].there)
            put_entry(&inner, keys[i], &h->limits[i]);
    }
    text_z(&inner, "}}");
    text_z(t, "\"quota.yaml\":");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

static void health(struct text *t, const struct health_object *h)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &h->name);
    text_z(t, ",\"namespace\":\"kube-system\"");
    version(t, h->rv);
    text_z(t, "},\"data\":{");
    if (strcmp(h->name.z, "cardpack-quota") == 0)
        quotas(t, h);
    else
        member(t, "gpus", &h->gpus);
    text_z(t, "}}");
}

static void budget(struct text *t, const struct budget_object *b)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &b->name);
    text_z(t, ",\"namespace\":\"default\"");
    version(t, b->rv);
    text_z(t, "},\"spec\":{\"selector\":{\"matchLabels\":{");
    member(t, "app", &b->name);
    text_z(t, "},\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"NotIn\",\"values\":["
              "\"a\",\"b\"]}]}},\"status\":{\"disruptionsAllowed\":");
    text_f(t, "%u,\"disruptedPods\":{\"x\":\"2026-01-01T00:00:00Z\"}}}", b->allowed);
}

void render_object(struct text *t, unsigned kind, const union object *o, bool bare)
{
    text_z(t, "{");
    if (!bare)
        text_f(t, "\"kind\":\"%s\",\"apiVersion\":\"%s\",", api_kind_names[kind],
               kind == API_BUDGETS    ? "policy/v1"
               : kind >= CACHE_SLICES ? "resource.k8s.io/v1"
                                      : "v1");
    if (kind == CACHE_NODES)
        node(t, &o->node);
    else if (kind == CACHE_PODS)
        pod(t, &o->pod);
    else if (kind == CACHE_HEALTH)
        health(t, &o->health);
    else if (kind == CACHE_SLICES)
        render_slice(t, &o->slice);
    else if (kind == CACHE_CLAIMS)
        render_claim(t, &o->claim);
    else if (kind == CACHE_CLASSES)
        render_class(t, &o->class);
    else
        budget(t, &o->budget);
}
