/* Compares the ConfigMap decoder with jansson's tree; the cache must store what it reports as
 * unhealthy. */
#include "core/cache/cache.h"
#include "objects/kube.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply(struct cache *c, const struct cache_event *e)
{
    struct effect effect;
    check(cache_apply(c, e, 0, &effect) == OK, "any health event is taken in");
    cache_check(c);
}

/* The same cards must be unhealthy whether their node comes before or after the ConfigMap. */
static void take_in(struct str gpus)
{
    const struct cache_event node = {
        .type = CACHE_NODE_SET, .node = {.name = STR("n"), .mem = STR("64"), .count = STR("8")}};
    const struct cache_event health = {.type = CACHE_HEALTH_SET,
                                       .health = {.node = STR("n"), .gpus = gpus}};
    struct cache before;
    struct cache after;
    cache_init(&before, (struct map_seed){1, 2});
    cache_init(&after, (struct map_seed){1, 2});
    apply(&before, &node);
    apply(&before, &health);
    apply(&after, &health);
    apply(&after, &node);
    const struct node *a = cache_node(&before, STR("n"));
    const struct node *b = cache_node(&after, STR("n"));
    check(a->n_cards == 8 && b->n_cards == 8, "the node has its cards");
    for (uint32_t i = 0; i < 8; i++)
        check(a->cards[i].unhealthy == b->cards[i].unhealthy, "in either order");
    cache_done(&before);
    cache_done(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct jread r;
    struct configmap_view map;
    struct arena arena;
    arena_init(&arena, MIB);
    jread_init(&r, text, &arena);
    kube_read_configmap(&r, &map);
    if (jread_finish(&r, NULL) == OK) {
        json_t *json = jansson_reads(text);
        const json_t *metadata = json_object_get(json, "metadata");
        if (json != NULL) {
            same_text(map.name, json_object_get(metadata, "name"));
            same_text(map.namespace, json_object_get(metadata, "namespace"));
            const json_t *values = json_object_get(json, "data");
            same_text_or_number(map.gpus, json_object_get(values, "gpus"));
            same_text_or_number(map.quota, json_object_get(values, "quota.yaml"));
            same_text_or_number(map.usage, json_object_get(values, "usage"));
        }
        json_decref(json);
        take_in(map.gpus);
    }
    arena_done(&arena);
    return 0;
}
