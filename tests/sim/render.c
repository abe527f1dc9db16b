/* Writes the API server's JSON, with fields that cardpack does not use: its decoder must skip
 * them. */
#include "quotas.h"
#include "slices.h"

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
    text_z(t, ",\"resourceVersion\":\"");
    text_u64(t, rv);
    text_z(t, "\"");
}

static void amount(struct text *t, const char *key, int64_t value)
{
    text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
    text_quoted(t, str_of(key));
    text_z(t, ":\"");
    text_u64(t, (uint64_t)value);
    text_z(t, "\"");
}

static void container(struct text *t, unsigned number, const struct container_object *c)
{
    static const char *const both[] = {"\"limits\":{\"cpu\":\"100m\"", "},\"requests\":{"};
    struct name name = name_of("c", number);
    text_z(t, t->p[t->n - 1] == '[' ? "" : ",");
    text_z(t, "{\"name\":");
    text_quoted(t, name_str(&name));
    if (c->kind == CONTAINER_SIDECAR)
        text_z(t, ",\"restartPolicy\":\"Always\"");
    text_z(t, ",\"image\":\"x\",\"resources\":{");
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        text_z(t, both[i]);
        if (c->named)
            amount(t, "aliyun.com/gpu-mem", c->mem);
        if (c->cores > 0)
            amount(t, "aliyun.com/gpu-core.percentage", c->cores);
        if (c->exclusive > 0)
            amount(t, "nvidia.com/gpu", c->exclusive);
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
        container(t, i, &p->containers[i]);
    text_z(t, inits > 0 ? "],\"containers\":[" : "\"containers\":[");
    for (unsigned i = inits; i < p->n_containers; i++)
        container(t, i, &p->containers[i]);
    text_z(t, "]");
    if (p->node.z[0] != '\0')
        member(t, "nodeName", &p->node);
    if (p->priority > 0) {
        text_z(t, ",\"priority\":");
        text_u64(t, (uint64_t)p->priority);
    }
    if (p->gated)
        text_z(t, ",\"schedulingGates\":[{\"name\":\"later\"}]");
    text_z(t, "}");
}

static void labels(struct text *t, const struct pod_object *p)
{
    text_z(t, ",\"labels\":{\"app\":\"x\"");
    if (p->count > 0)
        amount(t, "aliyun.com/gpu-count", p->count);
    if (p->whole)
        text_z(t, ",\"ack.gpushare.placement\":\"require-whole-device\"");
    text_z(t, "}");
}

static void grants(struct text *t, const struct grants_object *g)
{
    struct text inner = {.p = NULL};
    text_z(&inner, "{");
    for (unsigned i = 0; i < g->n; i++) {
        bool begins = i == 0 || g->at[i].container != g->at[i - 1].container;
        text_z(&inner, i == 0 ? "" : begins ? "}," : ",");
        if (begins) {
            text_z(&inner, "\"");
            text_u64(&inner, g->at[i].container);
            text_z(&inner, "\":{");
        }
        text_z(&inner, "\"");
        text_u64(&inner, g->at[i].card);
        text_z(&inner, "\":");
        text_u64(&inner, (uint64_t)g->at[i].amount);
    }
    text_z(&inner, g->garbled ? "" : g->n > 0 ? "}}" : "}");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

/* Labels and annotations in which users ask for cards. */
static void wishes(struct text *t, const struct pod_object *p)
{
    if (p->percent > 0)
        amount(t, "cardpack.io/gpu-mem-percent", p->percent);
    if (p->model > 0) {
        struct name wish = name_from(str_of(model_wish_text(p->model)));
        member(t, "cardpack.io/card-model", &wish);
    }
    if (p->uuid != 0) {
        bool is = p->uuid > 0;
        struct name uuid = name_of(is ? "gpu-" : "! GPU-", (uint64_t)(is ? p->uuid : -p->uuid) - 1);
        member(t, "cardpack.io/card-uuid", &uuid);
    }
    member(t, "cardpack.io/card-affinity-group", &p->affinity);
    member(t, "cardpack.io/card-anti-affinity-group", &p->anti_affinity);
    member(t, "cardpack.io/policy", &p->policy);
}

static void status(struct text *t, const struct pod_object *p)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    text_z(t, ",\"status\":{\"phase\":\"");
    text_z(t, phases[p->phase]);
    text_z(t, "\"");
    member(t, "nominatedNodeName", &p->nominated);
    if (p->node.z[0] != '\0') {
        text_z(t, ",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},"
                  "{\"type\":\"Initialized\",\"status\":\"");
        text_z(t, p->initialized ? "True\"}]" : "False\"}]");
    }
    text_z(t, "}");
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
    member(t, "ALIYUN_COM_GPU_MEM_IDX", &p->idx);
    member(t, "ALIYUN_COM_GPU_MEM_DEV", &p->dev);
    member(t, "ALIYUN_COM_GPU_MEM_POD", &p->mem);
    member(t, "ALIYUN_COM_GPU_MEM_ASSIGNED", &p->assigned);
    member(t, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", &p->assume);
    if (p->allocation.there) {
        text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
        text_z(t, "\"scheduler.framework.gpushare.allocation\":");
        grants(t, &p->allocation);
    }
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
    text_quoted(t, str_of(key));
    text_z(t, ":\"");
    bool k = value > 0 && value % 1000 == 0;
    text_u64(t, (uint64_t)(k ? value / 1000 : value));
    text_z(t, k ? "k\"," : "\",");
}

static void table(struct text *t, const struct node_object *n)
{
    struct text inner = {.p = NULL};
    text_z(&inner, "[");
    for (unsigned i = 0; i < n->n_table; i++) {
        const struct card_object *c = &n->table[i];
        text_z(&inner, i == 0 ? "{\"index\":" : ",{\"index\":");
        text_u64(&inner, c->index);
        text_z(&inner, ",\"memory\":");
        text_u64(&inner, (uint64_t)c->mem);
        if (c->model != 0) {
            text_z(&inner, ",\"model\":");
            text_quoted(&inner, str_of(model_text(c->model)));
        }
        if (c->uuid) {
            struct name uuid = name_of("GPU-", c->index);
            text_z(&inner, ",\"uuid\":");
            text_quoted(&inner, name_str(&uuid));
        }
        if (c->numa >= 0) {
            text_z(&inner, ",\"numa\":");
            text_u64(&inner, (uint64_t)c->numa);
        }
        text_z(&inner, c->ill ? ",\"health\":\"Unhealthy\"}" : "}");
    }
    text_z(&inner, n->bad_table ? ",{}]" : "]");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

static void node(struct text *t, const struct node_object *n)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &n->name);
    version(t, n->rv);
    text_z(t, ",\"labels\":{");
    member(t, "ack.node.gpu.max-pod", &n->max_pods);
    member(t, "ack.node.gpu.placement", &n->placement);
    if (n->model != 0) {
        struct name model = name_from(str_of(model_text(n->model)));
        member(t, "nvidia.com/gpu.product", &model);
    }
    text_z(t, "},\"annotations\":{");
    member(t, "cardpack.io/cordoned-cards", &n->cordoned);
    member(t, "cardpack.io/exclusive-cards", &n->aside);
    if (n->has_table) {
        text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
        text_z(t, "\"cardpack.io/cards\":");
        table(t, n);
    }
    text_z(t, "}},\"spec\":{},\"status\":{\"capacity\":{");
    quantity(t, "aliyun.com/gpu-mem", n->mem);
    quantity(t, "aliyun.com/gpu-count", n->count);
    quantity(t, "nvidia.com/gpu", n->exclusive);
    text_z(t, "\"cpu\":\"8\"},\"allocatable\":{");
    quantity(t, "aliyun.com/gpu-mem", n->allocatable);
    text_z(t, "\"cpu\":\"7500m\"}}}");
}

static void health(struct text *t, const struct health_object *h)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &h->name);
    text_z(t, ",\"namespace\":\"kube-system\"");
    version(t, h->rv);
    text_z(t, "},\"data\":{");
    if (strcmp(h->name.z, "cardpack-quota") == 0)
        quotas_render(t, h);
    else
        member(t, "gpus", &h->gpus);
    text_z(t, "}}");
}

void render_object(struct text *t, enum cache_kind kind, const union object *o, bool bare)
{
    static const char *const kinds[CACHE_KINDS] = {
        [CACHE_NODES] = "\"kind\":\"Node\",\"apiVersion\":\"v1\",",
        [CACHE_PODS] = "\"kind\":\"Pod\",\"apiVersion\":\"v1\",",
        [CACHE_HEALTH] = "\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",",
    };
    text_z(t, "{");
    if (!bare)
        text_z(t, kinds[kind]);
    switch (kind) {
    case CACHE_NODES:
        node(t, &o->node);
        break;
    case CACHE_PODS:
        pod(t, &o->pod);
        break;
    case CACHE_HEALTH:
    case CACHE_KINDS:
        health(t, &o->health);
        break;
    }
}
