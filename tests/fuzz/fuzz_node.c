/* Compares the node decoder with jansson's tree; the resulting node must have consistent sums. */
#include "core/cache/cache.h"
#include "objects/kube.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct node_view *node, const json_t *json)
{
    const json_t *status = json_object_get(json, "status");
    const json_t *capacity = json_object_get(status, "capacity");
    const json_t *allocatable = json_object_get(status, "allocatable");
    same_text(node->name, json_object_get(json_object_get(json, "metadata"), "name"));
    same_text_or_number(node->mem, json_object_get(capacity, "aliyun.com/gpu-mem"));
    same_text_or_number(node->count, json_object_get(capacity, "aliyun.com/gpu-count"));
    same_text_or_number(node->mem_allocatable, json_object_get(allocatable, "aliyun.com/gpu-mem"));
}

static void take_in(const struct node_view *view)
{
    struct cache cache;
    struct effect effect;
    struct cache_event e = {.type = CACHE_NODE_SET, .node = *view};
    cache_init(&cache, (struct map_seed){1, 2});
    check(cache_apply(&cache, &e, 0, &effect) == OK, "any node is taken in");
    cache_check(&cache);
    e.type = CACHE_NODE_GONE;
    check(cache_apply(&cache, &e, 0, &effect) == OK, "and let go");
    cache_check(&cache);
    cache_done(&cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct jread r;
    struct node_view node;
    struct arena arena;
    arena_init(&arena, MIB);
    jread_init(&r, text, &arena);
    kube_read_node(&r, &arena, &node);
    if (jread_finish(&r, NULL) == OK) {
        json_t *json = jansson_reads(text);
        if (json != NULL)
            compare(&node, json);
        json_decref(json);
        if (node.name.n > 0)
            take_in(&node);
    }
    arena_done(&arena);
    return 0;
}
