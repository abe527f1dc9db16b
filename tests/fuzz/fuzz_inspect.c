/*
 * Nodes, pods and ConfigMaps, one JSON object a line, with 'n', 'p' or 'c' in front (a capital:
 * deleted), go into a cache. What inspect prints for all nodes and for each must be valid JSON with
 * consistent sums.
 */
#include "daemon/query/query.h"
#include "daemon/service.h"
#include "kube/ingest.h"
#include "report/inspect_write.h"
#include "rules.h"
#include "spoken.h"
#include "still.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_in(struct ingest *in, struct str line)
{
    if (line.n == 0)
        return;
    bool gone = line.p[0] < 'a';
    struct str json = str_skip(line, 1);
    if ((line.p[0] | 0x20) == 'n')
        ingest_node(in, json, gone);
    else if ((line.p[0] | 0x20) == 'p')
        ingest_pod(in, json, gone);
    else
        ingest_configmap(in, json, gone);
    cache_check(in->cache);
}

static json_int_t sum(const json_t *list, const char *key)
{
    json_int_t total = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_integer_value(json_object_get(json_array_get(list, i), key));
    return total;
}

static void check_node(const json_t *node)
{
    const json_t *devices = json_object_get(node, "devs");
    check(sum(devices, "usedGPU") == json_integer_value(json_object_get(node, "usedGPU")),
          "a node's cards hold what it holds");
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        check(sum(json_object_get(device, "pods"), "usedGPU") ==
                  json_integer_value(json_object_get(device, "usedGPU")),
              "a card's pods hold what it holds");
    }
}

/* The form for people has what is measured; the fields of gpushare's form are in both. */
static void check_cards(const struct service *s, struct str name, const json_t *node)
{
    struct arena arena;
    struct buf out;
    arena_init(&arena, MIB);
    buf_init(&out, MIB);
    check(inspect_write(&s->cache, &s->measured, name, INSPECT_CARDS, &arena, &out) == OK,
          "there is room");
    json_t *cards = answer_reads(buf_str(&out));
    const json_t *same = json_array_get(json_object_get(cards, "nodes"), 0);
    check(cards == NULL ||
              json_equal(json_object_get(same, "usedGPU"), json_object_get(node, "usedGPU")) == 1,
          "both forms have the same figures");
    json_decref(cards);
    buf_done(&out);
    arena_done(&arena);
}

static json_t *inspect(struct service *s, struct str node)
{
    struct spoken r;
    spoken_init(&r, STR("GET"), STR("/"), STR(""));
    r.request.rest = node;
    query_inspect(s, &r.request);
    check(r.times == 1 && r.status == 200, "it is answered once");
    json_t *json = answer_reads(buf_str(&r.answer));
    spoken_done(&r);
    return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str line;
    struct str rest = {(const char *)data, size};
    struct service service = {.loop = still_loop()};
    struct ingest in;
    size_t i = 0;
    const json_t *node = NULL;
    quiet();
    cache_init(&service.cache, (struct map_seed){1, 2});
    measured_init(&service.measured, (struct map_seed){3, 4}, 0);
    ingest_init(&in, service.loop, &service.cache);
    in.measured = &service.measured;
    while (rest.n > 0) {
        (void)str_cut(rest, '\n', &line, &rest);
        take_in(&in, line);
    }
    json_t *all = inspect(&service, STR_NULL);
    json_array_foreach(json_object_get(all, "nodes"), i, node)
    {
        check_node(node);
        json_t *one = inspect(&service, jansson_str(json_object_get(node, "name")));
        check(json_equal(json_array_get(json_object_get(one, "nodes"), 0), node) == 1,
              "one node is shown as among all");
        json_decref(one);
        check_cards(&service, jansson_str(json_object_get(node, "name")), node);
    }
    json_decref(all);
    ingest_done(&in);
    check(service.measured.bytes <= LIMIT_MEASURED_BYTES, "memory for figures is bounded");
    measured_done(&service.measured);
    cache_done(&service.cache);
    service.loop = loop_free(service.loop);
    return 0;
}
