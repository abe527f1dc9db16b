/* Renders the objects of the benchmarks' cluster; see api_world.h. */
#include "api_world.h"

#include <stdlib.h>

#define TEMPLATE_MAX ((size_t)1 << 20)
#define DIGITS       7

/*
 * Marks have the width of their values: %index%, %nodes% and %space% for digits, ~ for the card.
 * The fields are in the order of Go's encoder.
 */
#define POD_HEAD                                                                                 \
    "{\"metadata\":{\"name\":\"load-5d9f8c7b6d-%index%\",\"generateName\":\"load-5d9f8c7b6d-\"," \
    "\"namespace\":\"team-%space%\",\"uid\":\"6f1d2c3b-4a59-4687-8790-00000%index%\","           \
    "\"resourceVersion\":\"999\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\","                \
    "\"labels\":{\"app\":\"load\",\"pod-template-hash\":\"5d9f8c7b6d\"},\"annotations\":{"       \
    "\"example.com/config-hash\":\"0123456789abcdef0123456789abcdef\""
#define POD_CARD                                                                              \
    ",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":"           \
    "\"1767322800000000000\",\"ALIYUN_COM_GPU_MEM_DEV\":\"%llu\",\"ALIYUN_COM_GPU_MEM_IDX\":" \
    "\"~\",\"ALIYUN_COM_GPU_MEM_POD\":\"%llu\""
#define POD_OWNER                                                                          \
    "},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":" \
    "\"load-5d9f8c7b6d\",\"uid\":\"11111111-2222-3333-4444-555555555555\",\"controller\":" \
    "true,\"blockOwnerDeletion\":true}]"
#define POD_SPEC                                                                               \
    "},\"spec\":{\"volumes\":[{\"name\":\"kube-api-access-x7k2p\",\"projected\":{\"sources\":" \
    "[{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"              \
    "{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\","            \
    "\"path\":\"ca.crt\"}]}}],\"defaultMode\":420}}],\"containers\":[{\"name\":\"main\","      \
    "\"image\":\"images.example/team/service:1.2.3\",\"command\":[\"/usr/bin/serve\","         \
    "\"--listen=:8080\",\"--note=\\\"quoted\\\" and \\\\ more\"],\"resources\":{\"limits\":{"
#define POD_MOUNT                                                                           \
    "},\"volumeMounts\":[{\"name\":\"kube-api-access-x7k2p\",\"readOnly\":true,"            \
    "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],\"livenessProbe\":"  \
    "{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,\"scheme\":\"HTTP\"},"               \
    "\"timeoutSeconds\":1,\"periodSeconds\":10,\"failureThreshold\":3},"                    \
    "\"terminationMessagePath\":\"/dev/termination-log\",\"imagePullPolicy\":"              \
    "\"IfNotPresent\"}],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30," \
    "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\""
#define POD_PLACE ",\"nodeName\":\"node-%nodes%\""
#define POD_STATUS                                                                          \
    ",\"securityContext\":{},\"schedulerName\":\"default-scheduler\",\"tolerations\":["     \
    "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"         \
    "\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true," \
    "\"preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{\"phase\":"
#define POD_RUNS                                                                           \
    "\"Running\",\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\","           \
    "\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"},{\"type\":"   \
    "\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":"         \
    "\"2026-01-02T03:04:05Z\"},{\"type\":\"PodScheduled\",\"status\":\"True\","            \
    "\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}],\"hostIP\":" \
    "\"10.0.0.1\",\"podIP\":\"10.1.0.1\",\"startTime\":\"2026-01-02T03:04:05Z\","          \
    "\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{\"startedAt\":"     \
    "\"2026-01-02T03:04:06Z\"}},\"lastState\":{},\"ready\":true,\"restartCount\":0,"       \
    "\"image\":\"images.example/team/service:1.2.3\",\"started\":true}],\"qosClass\":"     \
    "\"Burstable\"}}"
#define POD_WAITS "\"Pending\",\"qosClass\":\"Burstable\"}}"

/* managedFields are half of a real pod, and the slowest half to read: many short names. */
static void put_managed_fields(struct buf *out, size_t bytes)
{
    static const char *const names[] = {"kube-controller-manager", "kubelet"};
    if (bytes == 0)
        return;
    buf_put(out, STR(",\"managedFields\":["));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t begin = out->n;
        buf_printf(out,
                   "%s{\"manager\":\"%s\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
                   "\"time\":\"2026-01-02T03:04:05Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":"
                   "{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}},\"f:spec\":{\".\":{}",
                   i == 0 ? "" : ",", names[i]);
        for (unsigned field = 0; out->n - begin < bytes / COUNT_OF(names); field++)
            buf_printf(out, ",\"f:setting%02u\":{\".\":{},\"f:name\":{},\"f:value\":{}}", field);
        buf_put(out, STR("}}}"));
    }
    buf_put(out, STR("]"));
}

static void put_env(struct buf *out, size_t bytes)
{
    size_t begin = out->n;
    if (bytes == 0)
        return;
    buf_put(out, STR(",\"env\":[{\"name\":\"HOME\",\"value\":\"/\"}"));
    for (unsigned i = 0; out->n - begin < bytes; i++)
        buf_printf(out,
                   ",{\"name\":\"SERVICE_SETTING_%02u\",\"value\":\"value of setting %02u of this "
                   "service\"}",
                   i, i);
    buf_put(out, STR("]"));
}

static void put_pod(const struct api_world *w, bool gpu, bool waits, size_t fields, size_t env,
                    struct buf *out)
{
    buf_put(out, STR(POD_HEAD));
    if (gpu && !waits)
        buf_printf(out, POD_CARD, (unsigned long long)w->card_mem, (unsigned long long)w->pod_mem);
    buf_put(out, STR(POD_OWNER));
    put_managed_fields(out, fields);
    buf_put(out, STR(POD_SPEC));
    if (gpu)
        buf_printf(out, "\"aliyun.com/gpu-mem\":\"%llu\",", (unsigned long long)w->pod_mem);
    buf_put(out, STR("\"cpu\":\"2\",\"memory\":\"4Gi\"},\"requests\":{\"cpu\":\"500m\","
                     "\"memory\":\"1Gi\"}"));
    buf_put(out, STR(POD_MOUNT));
    /* In a real pod it is within the container; after it the bytes are the same. */
    put_env(out, env);
    if (!waits)
        buf_put(out, STR(POD_PLACE));
    buf_put(out, STR(POD_STATUS));
    if (waits)
        buf_put(out, STR(POD_WAITS));
    else
        buf_put(out, STR(POD_RUNS));
}

static void find_spots(struct api_template *t)
{
    static const struct {
        struct str mark;
        char kind;
    } marks[] = {{STR("%index%"), 'i'}, {STR("%nodes%"), 'n'}, {STR("%space%"), 's'}};
    struct str s = buf_str(&t->text);
    for (size_t at = 0; at < s.n; at++) {
        char kind = s.p[at] == '~' ? 'c' : '\0';
        for (size_t i = 0; i < COUNT_OF(marks); i++) {
            if (str_starts(str_skip(s, at), marks[i].mark))
                kind = marks[i].kind;
        }
        if (kind == '\0')
            continue;
        if (t->n_spots == API_SPOTS)
            abort();
        t->spots[t->n_spots].at = at;
        t->spots[t->n_spots++].kind = kind;
    }
}

static void make_pod(const struct api_world *w, bool gpu, bool waits, struct api_template *t)
{
    buf_init(&t->text, TEMPLATE_MAX);
    put_pod(w, gpu, waits, 0, 0, &t->text);
    size_t lacks = t->text.n < w->pod_bytes ? w->pod_bytes - t->text.n : 0;
    if (lacks > 0) {
        buf_clear(&t->text, TEMPLATE_MAX);
        put_pod(w, gpu, waits, lacks * 2 / 3, lacks / 3, &t->text);
    }
    find_spots(t);
}

/* The end of a UUID: %nodes% is seven of twelve digits. */
#define UUID_OF "GPU-5b7d1c9e-2f43-4a68-8d10-0000%u%%nodes%%"

/* As NVIDIA's driver publishes a node's GPUs. */
static void make_slice(const struct api_world *w, struct api_template *t)
{
    buf_init(&t->text, TEMPLATE_MAX);
    buf_put(&t->text, STR("{\"metadata\":{\"name\":\"node-%nodes%-gpu.nvidia.com-x7k2p\","
                          "\"generateName\":\"node-%nodes%-gpu.nvidia.com-\",\"uid\":"
                          "\"6f1d2c3b-4a59-4687-8790-00001%nodes%\",\"resourceVersion\":"
                          "\"999\",\"generation\":1},\"spec\":{\"driver\":"
                          "\"gpu.nvidia.com\",\"pool\":{\"name\":\"node-%nodes%\","
                          "\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":"
                          "\"node-%nodes%\",\"devices\":["));
    for (unsigned i = 0; i < w->cards; i++)
        buf_printf(&t->text,
                   "%s{\"name\":\"gpu-%u\",\"attributes\":{\"architecture\":{\"string\":"
                   "\"Ampere\"},\"brand\":{\"string\":\"Nvidia\"},\"cudaComputeCapability\":"
                   "{\"version\":\"8.0.0\"},\"driverVersion\":{\"version\":\"580.65.6\"},"
                   "\"productName\":{\"string\":\"NVIDIA A100-SXM4-80GB\"},"
                   "\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:%02x:00.0\"},"
                   "\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:%02x\"},"
                   "\"type\":{\"string\":\"gpu\"},\"uuid\":{\"string\":\"" UUID_OF
                   "\"}},\"capacity\":{\"memory\":{\"value\":\"80Gi\"}}}",
                   i == 0 ? "" : ",", i, 16 * i + 7, 16 * i, i);
    buf_put(&t->text, STR("]}}"));
    find_spots(t);
}

/* The card of %nodes% is the mark ~. */
static void make_claim(struct api_template *t)
{
    buf_init(&t->text, TEMPLATE_MAX);
    buf_put(&t->text,
            STR("{\"metadata\":{\"name\":\"load-5d9f8c7b6d-%index%-gpu-x7k2p\",\"namespace\":"
                "\"team-%space%\",\"uid\":\"6f1d2c3b-4a59-4687-8790-00002%index%\","
                "\"resourceVersion\":\"999\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":"
                "\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.nvidia.com\",\"count\":1,"
                "\"allocationMode\":\"ExactCount\"}}]}},\"status\":{\"allocation\":{\"devices\":"
                "{\"results\":[{\"request\":\"gpu\",\"driver\":\"gpu.nvidia.com\",\"pool\":"
                "\"node-%nodes%\",\"device\":\"gpu-~\"}]}},\"reservedFor\":[{\"resource\":"
                "\"pods\",\"name\":\"load-5d9f8c7b6d-%index%\",\"uid\":"
                "\"6f1d2c3b-4a59-4687-8790-00000%index%\"}]}}"));
    find_spots(t);
}

/* The table that cardpack-node writes, as text in JSON. */
static void put_table(const struct api_world *w, struct buf *out)
{
    buf_put(out, STR(",\"annotations\":{\"cardpack.io/cards\":\"["));
    for (unsigned i = 0; i < w->cards; i++)
        buf_printf(out,
                   "%s{\\\"index\\\":%u,\\\"memory\\\":%llu,\\\"model\\\":\\\"NVIDIA-A100-SXM4-80GB"
                   "\\\",\\\"uuid\\\":\\\"" UUID_OF "\\\",\\\"pci\\\":\\\"00000000:%02X:00.0\\\"}",
                   i == 0 ? "" : ",", i, (unsigned long long)w->card_mem, i, 16 * i + 7);
    buf_put(out, STR("]\"}"));
}

static void make_node(const struct api_world *w, struct api_template *t)
{
    unsigned long long mem = w->cards * w->card_mem;
    buf_init(&t->text, TEMPLATE_MAX);
    buf_printf(&t->text, "{\"metadata\":{\"name\":\"node-%%nodes%%\",\"uid\":\"node-%%nodes%%\","
                         "\"resourceVersion\":\"999\",\"labels\":{\"kubernetes.io/hostname\":"
                         "\"node-%%nodes%%\",\"kubernetes.io/os\":\"linux\"}");
    if (w->tables != 0)
        put_table(w, &t->text);
    buf_printf(&t->text,
               "},\"spec\":{},\"status\":"
               "{\"capacity\":{\"aliyun.com/gpu-count\":\"%llu\",\"aliyun.com/gpu-mem\":\"%llu\","
               "\"cpu\":\"96\",\"memory\":\"1056270484Ki\",\"pods\":\"110\"},\"allocatable\":"
               "{\"aliyun.com/gpu-count\":\"%llu\",\"aliyun.com/gpu-mem\":\"%llu\",\"cpu\":\"96\","
               "\"memory\":\"1056168084Ki\",\"pods\":\"110\"},\"images\":[",
               (unsigned long long)w->cards, mem, (unsigned long long)w->cards, mem);
    for (unsigned i = 0; i == 0 || t->text.n < w->node_bytes; i++)
        buf_printf(&t->text, "%s{\"names\":[\"images.example/team/image-%04u\"],\"sizeBytes\":%u}",
                   i == 0 ? "" : ",", i, 100000000 + i);
    buf_put(&t->text, STR("]}}"));
    find_spots(t);
}

void api_world_init(struct api_world *w)
{
    make_node(w, &w->node);
    make_pod(w, false, false, &w->plain_pod);
    make_pod(w, true, false, &w->gpu_pod);
    make_pod(w, true, true, &w->pending_pod);
    make_slice(w, &w->slice);
    make_claim(&w->claim);
    w->version = 1000;
    w->bound = calloc(w->pending + 1, sizeof(*w->bound));
    if (w->bound == NULL || w->cards > 10 || w->pods + w->pending > 9999999 || w->nodes == 0 ||
        buf_failed(&w->node.text) || buf_failed(&w->pending_pod.text))
        abort();
}

uint64_t api_world_count(const struct api_world *w, unsigned kind)
{
    if (kind == CACHE_SLICES)
        return w->slices == 1 ? w->nodes : 0;
    if (kind == CACHE_CLAIMS)
        return w->claims;
    return kind == CACHE_NODES ? w->nodes : kind == CACHE_PODS ? w->pods + w->pending : 0;
}

static void put_digits(char *at, uint64_t v)
{
    for (int i = DIGITS - 1; i >= 0; i--) {
        at[i] = (char)('0' + v % 10);
        v /= 10;
    }
}

struct place {
    uint64_t index, node, card;
};

static void fill_in(const struct api_template *t, const struct place *p, struct buf *out)
{
    size_t begin = out->n;
    buf_put(out, buf_str(&t->text));
    if (buf_failed(out))
        abort();
    for (size_t i = 0; i < t->n_spots; i++) {
        char *at = out->p + begin + t->spots[i].at;
        if (t->spots[i].kind == 'c')
            *at = (char)('0' + p->card);
        else
            put_digits(at, t->spots[i].kind == 'i'   ? p->index
                           : t->spots[i].kind == 'n' ? p->node
                                                     : p->index / API_NAMESPACES);
    }
}

/* A pod bound since the start: its template with the annotations and the node. */
static void render_bound(const struct api_world *w, uint64_t i, struct buf *out)
{
    const struct api_bound *b = &w->bound[i - w->pods];
    struct buf one;
    struct place p = {.index = i};
    buf_init(&one, TEMPLATE_MAX);
    fill_in(&w->pending_pod, &p, &one);
    const char *text = buf_cstr(&one);
    const char *annotations = strstr(text, "\"annotations\":{");
    const char *name = strstr(text, ",\"securityContext\"");
    const char *version = strstr(text, "\"resourceVersion\":\"999\"");
    if (annotations == NULL || name == NULL || version == NULL)
        abort();
    annotations += sizeof("\"annotations\":{") - 1;
    buf_put(out, (struct str){text, (size_t)(version - text)});
    buf_printf(out, "\"resourceVersion\":\"%llu\"", (unsigned long long)w->version);
    version += sizeof("\"resourceVersion\":\"999\"") - 1;
    buf_put(out, (struct str){version, (size_t)(annotations - version)});
    if (b->annotations[0] != '\0')
        buf_printf(out, "%s,", b->annotations);
    buf_put(out, (struct str){annotations, (size_t)(name - annotations)});
    buf_printf(out, ",\"nodeName\":\"node-%07u\"", b->node - 1);
    buf_put(out, str_of(name));
    buf_done(&one);
}

void api_render(const struct api_world *w, unsigned kind, uint64_t i, struct buf *out)
{
    struct place p = {.index = i, .node = i % w->nodes};
    if (kind == CACHE_NODES || kind == CACHE_SLICES) {
        p.node = i;
        fill_in(kind == CACHE_NODES ? &w->node : &w->slice, &p, out);
        return;
    }
    if (kind == CACHE_CLAIMS) {
        p.card = w->cards - 1 - i / w->nodes % w->cards;
        fill_in(&w->claim, &p, out);
        return;
    }
    if (i >= w->pods) {
        if (w->bound[i - w->pods].node > 0)
            render_bound(w, i, out);
        else
            fill_in(&w->pending_pod, &p, out);
        return;
    }
    uint64_t ordinal = i * w->gpu_pods / w->pods;
    bool gpu = (i + 1) * w->gpu_pods / w->pods > ordinal;
    if (gpu) {
        p.node = ordinal % w->nodes;
        p.card = ordinal / w->nodes % w->cards;
    }
    fill_in(gpu ? &w->gpu_pod : &w->plain_pod, &p, out);
}

bool api_world_pod(const struct api_world *w, struct str name, uint64_t *ret)
{
    return name.n > DIGITS &&
           str_to_u64(str_skip(name, name.n - DIGITS), w->pods + w->pending - 1, ret);
}

bool api_world_bind(struct api_world *w, uint64_t pod, struct str body)
{
    static const char members[] = "\"annotations\":{";
    static const char target[] = "\"name\":\"node-";
    if (pod < w->pods)
        return false;
    struct api_bound *b = &w->bound[pod - w->pods];
    const char *at = memmem(body.p, body.n, members, sizeof(members) - 1);
    const char *node = memmem(body.p, body.n, target, sizeof(target) - 1);
    const char *end = at == NULL ? NULL : memchr(at, '}', body.n - (size_t)(at - body.p));
    if (at != NULL)
        at += sizeof(members) - 1;
    uint64_t index = 0;
    if (b->node > 0)
        w->n_twice++;
    if (b->node > 0 || node == NULL || (at != NULL && end == NULL) ||
        (size_t)(body.p + body.n - node) < sizeof(target) + DIGITS ||
        !str_to_u64((struct str){node + sizeof(target) - 1, DIGITS}, w->nodes - 1, &index))
        return false;
    b->annotations = at == NULL ? strdup("") : strndup(at, (size_t)(end - at));
    b->node = (uint32_t)index + 1;
    w->version++;
    w->n_bound++;
    return b->annotations != NULL;
}
