/* Writes kube-scheduler's requests and a cluster for them; see scheduler_text.h. */
#include "scheduler_text.h"

#include "base/limit.h"

#include <stdlib.h>

#define NODE                                                                         \
    "{\"metadata\":{\"name\":\"node-%05zu\",\"uid\":\"6836a052-fecb-4b8c-99b4-"      \
    "%012zx\",\"resourceVersion\":\"235\",\"creationTimestamp\":\"2026-11-21T14:09:" \
    "31Z\",\"labels\":{\"gpushare\":\"true\",\"kubernetes.io/hostname\":\"node-"     \
    "%05zu\"},\"managedFields\":[{\"manager\":\"unknown\",\"operation\":\"Update\"," \
    "\"apiVersion\":\"v1\",\"time\":\"2026-11-21T14:09:31Z\",\"fieldsType\":\"Field" \
    "sV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:gpushare\":{},"  \
    "\"f:kubernetes.io/hostname\":{}}}}},{\"manager\":\"unknown\",\"operation\":\"U" \
    "pdate\",\"apiVersion\":\"v1\",\"time\":\"2026-11-21T14:09:32Z\",\"fieldsType\"" \
    ":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:allocatable\":{\".\":{},\"f:aliy" \
    "un.com/gpu-count\":{},\"f:aliyun.com/gpu-mem\":{},\"f:cpu\":{},\"f:ephemeral-s" \
    "torage\":{},\"f:memory\":{},\"f:pods\":{}},\"f:capacity\":{\".\":{},\"f:aliyun" \
    ".com/gpu-count\":{},\"f:aliyun.com/gpu-mem\":{},\"f:cpu\":{},\"f:ephemeral-sto" \
    "rage\":{},\"f:memory\":{},\"f:pods\":{}},\"f:conditions\":{\".\":{},\"k:{\\\"t" \
    "ype\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastHeartbeatTime\":{},\"f:lastTransiti" \
    "onTime\":{},\"f:message\":{},\"f:reason\":{},\"f:status\":{},\"f:type\":{}}}}}" \
    ",\"subresource\":\"status\"}]},\"spec\":{},\"status\":{\"capacity\":{\"aliyun." \
    "com/gpu-count\":\"8\",\"aliyun.com/gpu-mem\":\"128\",\"cpu\":\"96\",\"ephemera" \
    "l-storage\":\"1Ti\",\"memory\":\"768Gi\",\"pods\":\"500\"},\"allocatable\":{\"" \
    "aliyun.com/gpu-count\":\"8\",\"aliyun.com/gpu-mem\":\"128\",\"cpu\":\"96\",\"e" \
    "phemeral-storage\":\"1Ti\",\"memory\":\"768Gi\",\"pods\":\"500\"},\"conditions" \
    "\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastHeartbeatTime\":\"2026-01-01" \
    "T00:00:00Z\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"Kube" \
    "letReady\",\"message\":\"ok\"}],\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Po" \
    "rt\":0}},\"nodeInfo\":{\"machineID\":\"\",\"systemUUID\":\"\",\"bootID\":\"\"," \
    "\"kernelVersion\":\"\",\"osImage\":\"\",\"containerRuntimeVersion\":\"\",\"kub" \
    "eletVersion\":\"\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"\",\"archit" \
    "ecture\":\"\"}}}"

#define POD                                                                           \
    "{\"metadata\":{\"name\":\"low-0\",\"namespace\":\"%s\",\"uid\":\"d15d0d06-1640"  \
    "-4dda-b3f9-534449e9a932\",\"resourceVersion\":\"208\",\"generation\":1,\"creati" \
    "onTimestamp\":\"2026-11-21T14:09:32Z\",\"labels\":{\"app\":\"x\"%s}%s},\"spe"    \
    "c\":{\"containers\":[{\"name\":\"c0\",\"image\":\"busybox\",\"resources\":{\"l"  \
    "imits\":{\"%s\":\"%u\"},\"requests\":{\"%s\":"                                   \
    "\"%u\"}},\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMess"  \
    "agePolicy\":\"File\",\"imagePullPolicy\":\"Always\"}],\"restartPolicy\":\"Alwa"  \
    "ys\",\"terminationGracePeriodSeconds\":0,\"dnsPolicy\":\"ClusterFirst\",\"secu"  \
    "rityContext\":{},\"schedulerName\":\"default-scheduler\",\"tolerations\":[{\"k"  \
    "ey\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoE"  \
    "xecute\",\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable"   \
    "\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}"  \
    "],\"priorityClassName\":\"low\",\"priority\":10,\"enableServiceLinks\":true,\""  \
    "preemptionPolicy\":\"PreemptLowerPriority\"},\"status\":{\"phase\":\"Pending\""  \
    ",\"conditions\":[{\"type\":\"PodScheduled\",\"observedGeneration\":1,\"status"   \
    "\":\"False\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-11-21T14:09:"  \
    "32Z\",\"reason\":\"Unschedulable\",\"message\":\"0/3 nodes are available: 3 no"  \
    "de(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 n"  \
    "odes are available: 3 Preemption is not helpful for scheduling.\"}],\"qosClass"  \
    "\":\"BestEffort\"}}"

#define BOUND_POD                                                                              \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"low-%zu\",\"namespace\":\"default\","          \
    "\"uid\":\"d15d0d06-1640-4dda-b3f9-%012zx\",\"labels\":{\"aliyun.com/gpu-count\":\"8\"},"  \
    "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0,1,2,3,4,5,6,7\","                         \
    "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4,\\\"1\\\":4,"       \
    "\\\"2\\\":4,\\\"3\\\":4,\\\"4\\\":4,\\\"5\\\":4,\\\"6\\\":4,\\\"7\\\":4}}\"}},\"spec\":{" \
    "\"nodeName\":\"node-%05zu\",\"containers\":[{\"name\":\"c0\",\"resources\":{\"limits\":"  \
    "{\"aliyun.com/gpu-mem\":\"32\"}}}]},\"status\":{\"phase\":\"Running\"}}"

#define NODE_STATUS "{\"aliyun.com/gpu-count\":\"8\",\"aliyun.com/gpu-mem\":\"128\"}"
#define SMALL_NODE                                                               \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%05zu\"%s%s},\"status\":{" \
    "\"capacity\":" NODE_STATUS ",\"allocatable\":" NODE_STATUS "}}"

/* A node with a model of card, and a pod in an anti-affinity group that holds %u GiB of every card.
 */
#define CARDS 8
#define MODEL ",\"labels\":{\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-80GB\"}"
#define POD_OF_GROUP                                                                          \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"low-%zu\",\"namespace\":\"default\","         \
    "\"uid\":\"d15d0d06-1640-4dda-b3f9-%012zx\",\"labels\":{\"aliyun.com/gpu-count\":\"8\"}," \
    "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0,1,2,3,4,5,6,7\","                        \
    "\"cardpack.io/card-anti-affinity-group\":\"group-0\","                                   \
    "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":%u,\\\"1\\\":%u,"    \
    "\\\"2\\\":%u,\\\"3\\\":%u,\\\"4\\\":%u,\\\"5\\\":%u,\\\"6\\\":%u,\\\"7\\\":%u}}\"}},"    \
    "\"spec\":{"                                                                              \
    "\"nodeName\":\"node-%05zu\",\"containers\":[{\"name\":\"c0\",\"resources\":{\"limits\":" \
    "{\"aliyun.com/gpu-mem\":\"%u\"}}}]},\"status\":{\"phase\":\"Running\"}}"
#define QUOTAS                                                                                \
    "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cardpack-quota\",\"namespace\":"        \
    "\"kube-system\"},\"data\":{\"quota.yaml\":\"namespaces:\\n  limited: {limits: {memory: " \
    "900000}}\\n  spent: {limits: {memory: 1}}\\n\"}}"

static void check(const struct buf *out)
{
    if (buf_failed(out))
        abort();
}

void cluster_write(struct buf *out, size_t nodes)
{
    buf_put(out, STR("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["));
    for (size_t i = 0; i < nodes; i++) {
        buf_printf(out, "%s" SMALL_NODE "," BOUND_POD, i == 0 ? "" : ",", i, "", "", i, i, i);
    }
    buf_put(out, STR("]}"));
    check(out);
}

/* ---- claims ---- */

#define DRIVER  "gpu.nvidia.com"
#define CARD_ID "GPU-5b7d1c9e-2f43-4a68-8d10-%06zx%06x" /* node, card */

static void write_table(struct buf *out, size_t node)
{
    buf_clear(out, SIZE_MAX);
    buf_put(out, STR(",\"annotations\":{\"cardpack.io/cards\":\"["));
    for (unsigned i = 0; i < CARDS; i++)
        buf_printf(out, "%s{\\\"index\\\":%u,\\\"memory\\\":16,\\\"uuid\\\":\\\"" CARD_ID "\\\"}",
                   i == 0 ? "" : ",", i, node, i);
    buf_put(out, STR("]\"}"));
}

static void write_slice(struct buf *out, size_t node)
{
    buf_printf(
        out,
        "{\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"node-%05zu-" DRIVER
        "-x7k2p\"},\"spec\":{\"driver\":\"" DRIVER "\",\"pool\":{\"name\":\"node-%05zu\","
        "\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"node-%05zu\",\"devices\":[",
        node, node, node);
    for (unsigned i = 0; i < CARDS; i++)
        buf_printf(out,
                   "%s{\"name\":\"gpu-%u\",\"attributes\":{\"uuid\":{\"string\":\"" CARD_ID
                   "\"}},\"capacity\":{\"memory\":{\"value\":\"16Gi\"}}}",
                   i == 0 ? "" : ",", i, node, i);
    buf_put(out, STR("]}},"));
}

/* of: "" or members of the result. */
static void write_claim(struct buf *out, size_t node, unsigned card, const char *of)
{
    buf_printf(
        out,
        "{\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"claim-%zu-%u\",\"namespace\":"
        "\"default\",\"uid\":\"6f1d2c3b-4a59-4687-879%x-%012zx\"},\"status\":{\"allocation\":"
        "{\"devices\":{\"results\":[{\"request\":\"gpu\",\"driver\":\"" DRIVER
        "\",\"pool\":\"node-%05zu\",\"device\":\"gpu-%u\"%s}]}}}},",
        node, card, card, node, node, card, of);
}

static void write_claims(struct buf *out, size_t node, enum claims claims)
{
    write_slice(out, node);
    if (claims == CLAIMS_SOME) {
        write_claim(out, node, 0, "");
        write_claim(out, node, 1, ",\"shareID\":\"1\",\"consumedCapacity\":{\"memory\":\"8Gi\"}");
    }
    for (unsigned i = 0; claims == CLAIMS_HALF && node % 2 == 1 && i < CARDS; i++)
        write_claim(out, node, i, "");
}

void cluster_write_of_kinds(struct buf *out, size_t nodes, enum claims claims)
{
    struct buf table;
    buf_init(&table, MIB);
    buf_put(out, STR("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["));
    for (size_t i = 0; i < nodes; i++) {
        unsigned k = i % 2 == 0 ? 4 : 8;
        if (claims != CLAIMS_NONE) {
            write_claims(out, i, claims);
            write_table(&table, i);
        }
        buf_printf(out, SMALL_NODE "," POD_OF_GROUP ",", i, MODEL,
                   claims == CLAIMS_NONE ? "" : buf_cstr(&table), i, i, k, k, k, k, k, k, k, k, i,
                   8 * k);
    }
    if (claims == CLAIMS_HALF)
        buf_put(out, STR("{\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"whole-gpu\"},\"spec\":"
                         "{\"extendedResourceName\":\"nvidia.com/gpu\"}},"));
    buf_put(out, STR(QUOTAS "]}"));
    buf_done(&table);
    check(out);
}

/* A Fisher-Yates shuffle, equal in each run: a scheduler's order of nodes differs from the
 * file's. */
static size_t *shuffled(size_t n)
{
    uint64_t random = 88172645463325252U;
    size_t *order = calloc(n + 1, sizeof(*order));
    if (order == NULL)
        abort();
    for (size_t i = 0; i < n; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t k = (size_t)(random % (i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

void args_write(struct buf *out, size_t nodes, unsigned mem, bool by_name)
{
    const struct pod_kind plain = {"aliyun.com/gpu-mem", "default", "", ""};
    args_write_of_kind(out, nodes, &plain, mem, by_name);
}

void args_write_of_kind(struct buf *out, size_t nodes, const struct pod_kind *kind, unsigned mem,
                        bool by_name)
{
    size_t *order = shuffled(nodes);
    buf_put(out, STR("{\"Pod\":"));
    buf_printf(out, POD, kind->namespace, kind->labels, kind->more, kind->resource, mem,
               kind->resource, mem);
    buf_put(out, by_name ? STR(",\"Nodes\":null,\"NodeNames\":[")
                         : STR(",\"Nodes\":{\"metadata\":{},\"items\":["));
    for (size_t i = 0; i < nodes; i++) {
        size_t k = order[i];
        if (i > 0)
            buf_putc(out, ',');
        if (by_name)
            buf_printf(out, "\"node-%05zu\"", k);
        else
            buf_printf(out, NODE, k, k, k);
    }
    buf_put(out, by_name ? STR("]}") : STR("]},\"NodeNames\":null}"));
    free(order);
    check(out);
}
