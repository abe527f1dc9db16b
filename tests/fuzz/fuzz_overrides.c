/* Compares which variable a pod's spec overrides with a simple reading of jansson's tree. */
#include "node/isolation/overrides.h"

#include "base/limit.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written down here once more: a name that is lost from the list is a way around the limits. */
static const char *const ours[] = {
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_GPU_MEMORY_REQUEST",
    "NVIDIA_GPU_MEMORY_LIMIT",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
};

static bool is_ours(const json_t *name)
{
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (json_is_string(name) && str_eq(jansson_str(name), str_of(ours[i])))
            return true;
    }
    return false;
}

/* The first one of the container; *ret_typed becomes false if something has another type than in
 * Kubernetes: then the pod may be refused as a whole. */
static const json_t *in_env(const json_t *env, bool *ret_typed)
{
    const json_t *found = NULL;
    *ret_typed = *ret_typed && (env == NULL || json_is_array(env));
    for (size_t i = 0; i < json_array_size(env); i++) {
        const json_t *one = json_array_get(env, i);
        const json_t *name = json_object_get(one, "name");
        *ret_typed = *ret_typed && json_is_object(one) && (name == NULL || json_is_string(name));
        found = found == NULL && is_ours(name) ? name : found;
    }
    return found;
}

static const json_t *in_list(const json_t *list, const json_t **ret_container, bool *ret_typed)
{
    const json_t *found = NULL;
    *ret_typed = *ret_typed && json_is_array(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *name = json_object_get(one, "name");
        const json_t *variable = in_env(json_object_get(one, "env"), ret_typed);
        *ret_typed = *ret_typed && json_is_object(one) && (name == NULL || json_is_string(name));
        if (found != NULL || variable == NULL)
            continue;
        *ret_container = name;
        found = variable;
    }
    return found;
}

static void compare(struct str variable, struct str container, json_t *pod)
{
    const char *key;
    json_t *list;
    json_t *spec = json_object_get(pod, "spec");
    const json_t *expected = NULL;
    const json_t *expected_in = NULL;
    bool typed = json_is_object(pod) && (spec == NULL || json_is_object(spec));
    json_object_foreach(spec, key, list)
    { /* in the order of the text */
        const json_t *in = NULL;
        if (strcmp(key, "containers") != 0 && strcmp(key, "initContainers") != 0 &&
            strcmp(key, "ephemeralContainers") != 0)
            continue;
        const json_t *found = in_list(list, &in, &typed);
        if (expected != NULL || found == NULL)
            continue;
        expected = found;
        expected_in = in;
    }
    if (!typed && (variable.p == NULL || str_eq(container, STR("?"))))
        return; /* it may be refused as a whole, and then counts as one that overrides */
    same_text(variable, expected);
    if (variable.p != NULL)
        same_text(container, expected_in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct override found;
    struct arena arena;
    arena_init(&arena, 4 * MIB);
    overrides_read(text, &arena, &found);
    json_t *json = jansson_reads(text);
    if (json != NULL)
        compare(found.variable, found.container, json);
    json_decref(json);
    arena_done(&arena);
    return 0;
}
