/*
 * Compares the pod decoder and request_read with a simple reading of jansson's tree. Documents with
 * a duplicate key are left out: jansson keeps the last object whole, Go and cardpack merge them.
 */
#include "core/dialect/gpushare.h"
#include "core/quantity.h"
#include "core/request/request.h"
#include "objects/kube.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By its length: a text may begin with, or contain, a NUL. */
static struct str text_of(const json_t *value)
{
    if (!json_is_string(value))
        return STR_NULL;
    return (struct str){json_string_value(value), json_string_length(value)};
}

static void same_text(struct str s, const json_t *value)
{
    struct str other = text_of(value);
    if ((s.p == NULL) != (other.p == NULL) || (s.p != NULL && !str_eq(s, other)))
        abort();
}

/* The memory for which a container asks; NULL: none. */
static const json_t *asked(const json_t *container)
{
    const json_t *resources = json_object_get(container, "resources");
    const json_t *mem = json_object_get(json_object_get(resources, "limits"), "aliyun.com/gpu-mem");
    if (mem == NULL || json_is_null(mem))
        mem = json_object_get(json_object_get(resources, "requests"), "aliyun.com/gpu-mem");
    return mem == NULL || json_is_null(mem) ? NULL : mem;
}

/* Whether it holds something of NVIDIA's plugin by another name than nvidia.com/gpu. */
static bool is_renamed(const char *name, const json_t *amount)
{
    struct quantity q;
    if (strncmp(name, "nvidia.com/gpu.", 15) != 0 && strncmp(name, "nvidia.com/mig-", 15) != 0)
        return false;
    if (json_is_number(amount))
        return json_number_value(amount) > 0;
    return quantity_parse(str_trim(text_of(amount)), &q) != OK || q.value > 0;
}

/* Whether a container counts without gpu-mem. */
static bool asks_for_others(const json_t *container)
{
    static const char *const lists[] = {"limits", "requests"};
    bool asks = false;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        json_t *list = json_object_get(json_object_get(container, "resources"), lists[i]);
        for (void *at = json_object_iter(list); at != NULL; at = json_object_iter_next(list, at)) {
            const char *name = json_object_iter_key(at);
            const json_t *amount = json_object_iter_value(at);
            bool known = strcmp(name, "nvidia.com/gpu") == 0 ||
                         strcmp(name, "aliyun.com/gpu-core.percentage") == 0;
            asks = asks || (known && !json_is_null(amount)) || is_renamed(name, amount);
        }
    }
    return asks;
}

/* The value of a string; numbers are compared only as views. */
static int64_t worth(const struct container_view *c)
{
    struct quantity q;
    if (quantity_parse(str_trim(c->mem), &q) != OK)
        return 0;
    return MIN_OF(MAX_OF(q.value, 0), REQUEST_MEM_MAX);
}

static size_t same_containers(const struct pod_view *pod, size_t at, const json_t *list, bool init)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *container = json_array_get(list, i);
        const json_t *mem = asked(container);
        if (mem == NULL && !asks_for_others(container))
            continue;
        if (at == pod->n_containers)
            abort();
        const struct container_view *c = &pod->containers[at++];
        bool always = str_eq(text_of(json_object_get(container, "restartPolicy")), STR("Always"));
        enum container_kind kind = !init    ? CONTAINER_MAIN
                                   : always ? CONTAINER_SIDECAR
                                            : CONTAINER_INIT;
        if (c->kind != kind)
            abort();
        same_text(c->name, json_object_get(container, "name"));
        if (json_is_string(mem))
            same_text(c->mem, mem);
    }
    return at;
}

/* The formula of the newest scheduler, copied exactly. */
static int64_t formula(const struct pod_view *pod)
{
    __int128 sum = 0;
    __int128 side = 0;
    __int128 most = 0;
    for (size_t i = 0; i < pod->n_containers; i++) {
        const struct container_view *c = &pod->containers[i];
        __int128 now = worth(c);
        if (c->kind == CONTAINER_MAIN) {
            sum += now;
            continue;
        }
        if (c->kind == CONTAINER_SIDECAR) {
            sum += now;
            side += now;
            now = side;
        } else {
            now += side;
        }
        most = MAX_OF(most, now);
    }
    sum = MAX_OF(sum, most);
    if (pod->mem_overhead.n > 0)
        sum += worth(&(struct container_view){.mem = pod->mem_overhead});
    return (int64_t)MIN_OF(sum, (__int128)REQUEST_MEM_MAX);
}

/* ---- CPU and memory ---- */

/* One resource of the host. */
struct kind {
    const char *name;
    enum errc (*parse)(struct str text, struct quantity *ret);
    int64_t most;
};

/* False: absent. A number or another type counts as 0; see has_odd_amounts. */
static bool amount_of(const json_t *resources, const char *list, const struct kind *kind,
                      __int128 *ret)
{
    struct quantity q;
    struct str text = text_of(json_object_get(json_object_get(resources, list), kind->name));
    *ret = 0;
    if (text.p == NULL)
        return false;
    if (kind->parse(str_trim(text), &q) == OK)
        *ret = MIN_OF(MAX_OF(q.value, (int64_t)0), kind->most);
    return true;
}

static bool container_amount(const json_t *container, const struct kind *kind, __int128 *ret)
{
    const json_t *resources = json_object_get(container, "resources");
    return amount_of(resources, "requests", kind, ret) || amount_of(resources, "limits", kind, ret);
}

/* PodRequests of k8s.io/component-helpers. */
static int64_t pod_amount(const json_t *spec, const struct kind *kind)
{
    const json_t *mains = json_object_get(spec, "containers");
    const json_t *inits = json_object_get(spec, "initContainers");
    const json_t *own = json_object_get(spec, "resources");
    __int128 sum = 0;
    __int128 side = 0;
    __int128 most = 0;
    __int128 now = 0;
    bool named = false;
    for (size_t i = 0; i < json_array_size(mains); i++) {
        named = container_amount(json_array_get(mains, i), kind, &now) || named;
        sum += now;
    }
    for (size_t i = 0; i < json_array_size(inits); i++) {
        const json_t *c = json_array_get(inits, i);
        named = container_amount(c, kind, &now) || named;
        if (str_eq(text_of(json_object_get(c, "restartPolicy")), STR("Always"))) {
            sum += now;
            side += now;
            now = 0;
        }
        most = MAX_OF(most, side + now);
    }
    sum = MAX_OF(sum, most);
    if (amount_of(own, "requests", kind, &now) || (!named && amount_of(own, "limits", kind, &now)))
        sum = now;
    if (amount_of(spec, "overhead", kind, &now))
        sum += now;
    return (int64_t)MIN_OF(sum, (__int128)kind->most);
}

/* A number, of which jansson does not keep the text. */
static bool has_odd_amounts(json_t *json)
{
    bool odd = json_is_number(json_object_get(json, "cpu")) ||
               json_is_number(json_object_get(json, "memory"));
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at))
        odd = odd || has_odd_amounts(json_object_iter_value(at));
    for (size_t i = 0; i < json_array_size(json); i++)
        odd = odd || has_odd_amounts(json_array_get(json, i));
    return odd;
}

static void same_host(const struct pod_view *pod, json_t *spec)
{
    static const struct kind cpu = {"cpu", quantity_parse_milli, HOST_CPU_MAX};
    static const struct kind memory = {"memory", quantity_parse, HOST_MEMORY_MAX};
    if (has_odd_amounts(spec))
        return;
    if (pod->host.cpu != pod_amount(spec, &cpu) || pod->host.memory != pod_amount(spec, &memory))
        abort();
}

static void compare(const struct pod_view *pod, const json_t *json)
{
    const json_t *metadata = json_object_get(json, "metadata");
    json_t *spec = json_object_get(json, "spec");
    const json_t *annotations = json_object_get(metadata, "annotations");
    same_text(pod->uid, json_object_get(metadata, "uid"));
    same_text(pod->name, json_object_get(metadata, "name"));
    same_text(pod->namespace, json_object_get(metadata, "namespace"));
    same_text(pod->node, json_object_get(spec, "nodeName"));
    same_text(pod->phase, json_object_get(json_object_get(json, "status"), "phase"));
    same_text(pod->idx, json_object_get(annotations, "ALIYUN_COM_GPU_MEM_IDX"));
    same_text(pod->assigned, json_object_get(annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED"));
    same_text(pod->assume_time, json_object_get(annotations, "ALIYUN_COM_GPU_MEM_ASSUME_TIME"));
    if (pod->deleting != (text_of(json_object_get(metadata, "deletionTimestamp")).n > 0))
        abort();
    same_host(pod, spec);
    size_t at = same_containers(pod, 0, json_object_get(spec, "initContainers"), true);
    if (same_containers(pod, at, json_object_get(spec, "containers"), false) != pod->n_containers)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jread r;
    struct pod_view pod;
    struct arena arena;
    struct request request;
    struct err err = ERR_INIT;
    arena_init(&arena, MIB);
    jread_init(&r, (struct str){(const char *)data, size}, &arena);
    kube_read_pod(&r, &arena, &pod);
    if (jread_finish(&r, &err) == OK) {
        if (request_read(&pod, &request, &err) != OK && err.text[0] == '\0')
            abort();
        if (request.mem != formula(&pod))
            abort();
        json_t *json =
            json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (json != NULL)
            compare(&pod, json);
        json_decref(json);
    }
    arena_done(&arena);
    return 0;
}
