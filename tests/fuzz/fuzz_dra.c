/*
 * Compares the readers of ResourceSlices, ResourceClaims and DeviceClasses with jansson's tree, and
 * puts what they read into a cache with a node. The first byte chooses the kind of object.
 */
#include "core/cache/cache.h"
#include "objects/kube_dra.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A cache with node "n", whose two cards have UUIDs and PCI addresses, and where a claim holds a
 * device of pool "p". */
static void cache_open(struct cache *c)
{
    static const struct card_view cards[] = {
        {.index = 0, .mem = 16, .numa = -1, .uuid = {"GPU-1", 5}, .pci = 1},
        {.index = 1, .mem = 16, .numa = -1, .uuid = {"GPU-2", 5}, .pci = 2}};
    static const struct dra_result_view held = {
        .driver = {"g", 1}, .pool = {"p", 1}, .device = {"d", 1}, .memory = -1};
    const struct cache_event events[] = {
        {.type = CACHE_NODE_SET,
         .node = {.name = STR("n"),
                  .mem = STR("32"),
                  .has_cards = true,
                  .cards = cards,
                  .n_cards = COUNT_OF(cards)}},
        {.type = CACHE_CLAIM_SET, .claim = {.uid = STR("u"), .results = &held, .n_results = 1}}};
    struct effect fx;
    cache_init(c, (struct map_seed){1, 2});
    for (size_t i = 0; i < COUNT_OF(events); i++)
        check(cache_apply(c, &events[i], 1, &fx) == OK, "the first objects are taken");
}

static void cache_take(const struct cache_event *e, enum cache_event_type gone)
{
    struct cache c;
    struct effect fx;
    cache_open(&c);
    for (int twice = 0; twice < 2; twice++) {
        check(cache_apply(&c, e, 1, &fx) == OK, "any object is taken");
        cache_check(&c);
    }
    struct cache_event end = *e;
    end.type = gone;
    check(cache_apply(&c, &end, 1, &fx) == OK, "and goes");
    cache_check(&c);
    cache_done(&c);
}

static const json_t *at(const json_t *json, const char *a, const char *b)
{
    return json_object_get(json_object_get(json, a), b);
}

static void compare_slice(const struct dra_slice_view *v, const json_t *json)
{
    same_text(v->name, at(json, "metadata", "name"));
    same_text(v->driver, at(json, "spec", "driver"));
    same_text(v->node, at(json, "spec", "nodeName"));
    same_text(v->pool, json_object_get(at(json, "spec", "pool"), "name"));
    check(v->n_devices <= json_array_size(at(json, "spec", "devices")), "no device is made up");
}

static void compare_claim(const struct dra_claim_view *v, const json_t *json)
{
    const json_t *results =
        json_object_get(json_object_get(at(json, "status", "allocation"), "devices"), "results");
    size_t n = 0;
    same_text(v->uid, at(json, "metadata", "uid"));
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *x = json_array_get(results, i);
        if (json_is_true(json_object_get(x, "adminAccess")))
            continue;
        check(n < v->n_results, "each device is read");
        same_text(v->results[n].driver, json_object_get(x, "driver"));
        same_text(v->results[n].pool, json_object_get(x, "pool"));
        same_text(v->results[n].device, json_object_get(x, "device"));
        check(v->results[n].shared == (jansson_str(json_object_get(x, "shareID")).n > 0),
              "shared by its shareID");
        n++;
    }
    check(n == v->n_results, "no device is made up");
}

static void read_slice(struct jread *r, struct arena *a, struct str text)
{
    struct dra_slice_view v;
    kube_read_slice(r, a, &v);
    if (jread_finish(r, NULL) != OK)
        return;
    cache_take(&(struct cache_event){.type = CACHE_SLICE_SET, .slice = v}, CACHE_SLICE_GONE);
    json_t *json = jansson_reads(text);
    if (json != NULL)
        compare_slice(&v, json);
    json_decref(json);
}

static void read_claim(struct jread *r, struct arena *a, struct str text)
{
    struct dra_claim_view v;
    kube_read_claim(r, a, &v);
    if (jread_finish(r, NULL) != OK)
        return;
    cache_take(&(struct cache_event){.type = CACHE_CLAIM_SET, .claim = v}, CACHE_CLAIM_GONE);
    json_t *json = jansson_reads(text);
    if (json != NULL)
        compare_claim(&v, json);
    json_decref(json);
}

static void read_class(struct jread *r, struct str text)
{
    struct dra_class_view v;
    kube_read_class(r, &v);
    if (jread_finish(r, NULL) != OK)
        return;
    cache_take(&(struct cache_event){.type = CACHE_CLASS_SET, .class = v}, CACHE_CLASS_GONE);
    json_t *json = jansson_reads(text);
    if (json != NULL) {
        same_text(v.name, at(json, "metadata", "name"));
        same_text(v.resource, at(json, "spec", "extendedResourceName"));
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t kind = size > 0 ? data[0] : (uint8_t)'s';
    struct str text = {(const char *)data + MIN_OF(size, 1), size - MIN_OF(size, 1)};
    struct jread r;
    struct arena arena;
    arena_init(&arena, MIB);
    jread_init(&r, text, &arena);
    if (kind == 'c')
        read_claim(&r, &arena, text);
    else if (kind == 'k')
        read_class(&r, text);
    else
        read_slice(&r, &arena, text);
    arena_done(&arena);
    return 0;
}
