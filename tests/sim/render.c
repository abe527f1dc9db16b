/* The API server's JSON. It holds what a decoder must skip, too: fields that we have no use for. */
#include "store.h"

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

static void container(struct text *t, const char *name, int64_t mem, bool bare, const char *more)
{
    text_z(t, "{\"name\":");
    text_quoted(t, str_of(name));
    text_z(t, more);
    text_z(t, ",\"image\":\"x\",\"resources\":{");
    if (!bare) {
        static const char *const both[] = {"\"limits\":{\"cpu\":\"100m\",\"aliyun.com/gpu-mem\":\"",
                                           ",\"requests\":{\"aliyun.com/gpu-mem\":\""};
        for (size_t i = 0; i < COUNT_OF(both); i++) {
            text_z(t, both[i]);
            text_u64(t, (uint64_t)mem);
            text_z(t, "\"}");
        }
    }
    text_z(t, "}}");
}

static void spec(struct text *t, const struct pod_object *p)
{
    text_z(t, ",\"spec\":{");
    if (p->sidecar > 0 || p->init > 0) {
        text_z(t, "\"initContainers\":[");
        if (p->sidecar > 0 && p->sidecar_first)
            container(t, "side", p->sidecar, p->bare, ",\"restartPolicy\":\"Always\"");
        if (p->sidecar > 0 && p->sidecar_first && p->init > 0)
            text_z(t, ",");
        if (p->init > 0)
            container(t, "init", p->init, p->bare, "");
        if (p->sidecar > 0 && !p->sidecar_first && p->init > 0)
            text_z(t, ",");
        if (p->sidecar > 0 && !p->sidecar_first)
            container(t, "side", p->sidecar, p->bare, ",\"restartPolicy\":\"Always\"");
        text_z(t, "],");
    }
    text_z(t, "\"containers\":[");
    for (unsigned i = 0; i < p->n_mains; i++) {
        text_z(t, i > 0 ? "," : "");
        container(t, i == 0 ? "main" : "more", p->mains[i], p->bare, "");
    }
    text_z(t, "]");
    if (p->node.z[0] != '\0')
        member(t, "nodeName", &p->node);
    if (p->gated)
        text_z(t, ",\"schedulingGates\":[{\"name\":\"later\"}]");
    text_z(t, "}");
}

static void pod(struct text *t, const struct pod_object *p)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed"};
    text_z(t, "\"metadata\":{");
    member(t, "name", &p->name);
    member(t, "namespace", &p->ns);
    member(t, "uid", &p->uid);
    version(t, p->rv);
    if (p->deleting)
        text_z(t, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    text_z(t, ",\"annotations\":{");
    member(t, "note", &p->note);
    member(t, "ALIYUN_COM_GPU_MEM_IDX", &p->idx);
    member(t, "ALIYUN_COM_GPU_MEM_DEV", &p->dev);
    member(t, "ALIYUN_COM_GPU_MEM_POD", &p->mem);
    member(t, "ALIYUN_COM_GPU_MEM_ASSIGNED", &p->assigned);
    member(t, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", &p->assume);
    text_z(t, "}}");
    spec(t, p);
    text_z(t, ",\"status\":{\"phase\":\"");
    text_z(t, phases[p->phase]);
    text_z(t, "\"}}");
}

/* As Kubernetes writes quantities: thousands as k. */
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

static void node(struct text *t, const struct node_object *n)
{
    text_z(t, "\"metadata\":{");
    member(t, "name", &n->name);
    version(t, n->rv);
    text_z(t, "},\"spec\":{},\"status\":{\"capacity\":{");
    quantity(t, "aliyun.com/gpu-mem", n->mem);
    quantity(t, "aliyun.com/gpu-count", n->count);
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
