/*
 * Requests as a scheduler and a person send them, one behind the other, separated by a line "%%":
 *
 *     METHOD PATH
 *     (empty)
 *     BODY
 *
 * against an embedded cluster: each is answered once, in valid JSON where it says so. A filter's
 * answer names each candidate once and changes nothing; a bind that succeeds has put its pod onto a
 * card with room.
 */
#include "extender.h"
#include "rules.h"
#include "service.h"
#include "spoken.h"
#include "still.h"

#define REQUESTS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPU(total, cards) \
    "{\"aliyun.com/gpu-mem\":\"" total "\",\"aliyun.com/gpu-count\":\"" cards "\"}"
#define NODE(name, total, cards)                        \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name \
    "\"},\"status\":{\"capacity\":" GPU(total, cards) ",\"allocatable\":" GPU(total, cards) "}}\n"
#define POD(name, mem, more)                                                                     \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" name \
    "\"},\"spec\":{" more "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"           \
    "{\"aliyun.com/gpu-mem\":\"" mem "\"}}}]}}\n"

static const char world[] = NODE("n1", "32", "2") NODE("n2", "16", "4") NODE("cpu", "0", "0")
    POD("a", "9", "") POD("b", "4", "") POD("held", "3", "\"nodeName\":\"n1\",");

struct stage {
    struct service service;
    struct arena arena;
};

static void stage_open(struct stage *s)
{
    *s = (struct stage){.service.loop = still_loop()};
    arena_init(&s->arena, 16 * MIB);
    cache_init(&s->service.cache, (struct map_seed){1, 2});
    check(cluster_new(s->service.loop, &s->service.cache, str_of(world), STR("world"),
                      &s->service.cluster, NULL) == OK,
          "the world is there");
    s->service.backend = cluster_interface(s->service.cluster);
    const struct binder_settings b = {.loop = s->service.loop,
                                      .cache = &s->service.cache,
                                      .backend = s->service.backend,
                                      .timeout_ms = 25000};
    check(binder_new(&b, &s->service.binder, NULL) == OK, "a binder");
}

static void stage_close(struct stage *s)
{
    s->service.binder = binder_free(s->service.binder);
    s->service.cluster = cluster_free(s->service.cluster);
    cache_done(&s->service.cache);
    s->service.loop = loop_free(s->service.loop);
    arena_done(&s->arena);
}

/* All that the cache decides from, as text. */
static struct str state(struct stage *s)
{
    struct spoken r;
    spoken_init(&r, STR("GET"), STR("/"), STR(""));
    inspect_handle(&s->service, &r.request, STR_NULL);
    struct str copy = arena_dup(&s->arena, buf_str(&r.answer));
    spoken_done(&r);
    return copy;
}

static bool member_of(const json_t *map, struct str name)
{
    return json_object_getn(map, name.p, name.n) != NULL;
}

/* NodeNames, or the names in Nodes.items. */
static bool offered(const json_t *answer, struct str name)
{
    size_t i = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(answer, "NodeNames"), i, one)
    {
        if (str_eq(jansson_str(one), name))
            return true;
    }
    json_array_foreach(json_object_get(json_object_get(answer, "Nodes"), "items"), i, one)
    {
        if (str_eq(jansson_str(json_object_get(json_object_get(one, "metadata"), "name")), name))
            return true;
    }
    return false;
}

static void check_filter(struct stage *s, struct str body, const json_t *answer)
{
    struct filter_args args;
    const json_t *error = json_object_get(answer, "Error");
    bool read = extender_read_filter(body, &s->arena, &args, NULL) == OK;
    check(read == (json_string_length(error) == 0), "what can't be read is an error");
    for (size_t i = 0; read && i < args.n; i++) {
        struct str name = args.candidates[i].name;
        check(offered(answer, name) != member_of(json_object_get(answer, "FailedNodes"), name),
              "each candidate is offered or refused");
    }
}

static void check_bind(struct stage *s, struct str body, const json_t *answer)
{
    struct bind_args args;
    const json_t *error = json_object_get(answer, "Error");
    bool read = extender_read_bind(body, &s->arena, &args, NULL) == OK;
    check(json_is_string(error), "a bind says how it ended");
    if (json_string_length(error) > 0)
        return;
    check(read, "what can't be read is not bound");
    const struct pod *p = cache_pod(&s->service.cache, args.uid);
    if (p == NULL || p->mem == 0)
        return; /* it wants no card */
    check(p->node != NULL && str_eq(p->node->name, args.node), "it is bound there");
}

/* Only those that we put there: whoever creates a pod that is bound already may do as they like. */
static void check_room(struct stage *s, struct str uid)
{
    const struct pod *p = cache_pod(&s->service.cache, uid);
    if (p == NULL || p->node == NULL || p->card < 0 || (uint32_t)p->card >= p->node->n_cards)
        return;
    const struct card *c = &p->node->cards[p->card];
    check(c->used <= c->total, "its card has room for it");
}

static void ask(struct stage *s, struct str method, struct str path, struct str body)
{
    struct spoken r;
    struct bind_args args;
    struct str before = state(s);
    bool filter = str_eq(path, STR("/gpushare-scheduler/filter")) && str_eq(method, STR("POST"));
    bool bind = str_eq(path, STR("/gpushare-scheduler/bind")) && str_eq(method, STR("POST"));
    bool known = bind && extender_read_bind(body, &s->arena, &args, NULL) == OK &&
                 cache_pod(&s->service.cache, args.uid) != NULL &&
                 pod_holds(cache_pod(&s->service.cache, args.uid));
    spoken_init(&r, method, path, body);
    routes_handle(&s->service, &r.request);
    still_run(s->service.loop);
    check(r.times == 1, "it is answered once");
    cache_check(&s->service.cache);
    if (str_eq(str_of(r.type), STR("application/json"))) {
        json_t *answer = answer_reads(buf_str(&r.answer));
        if (filter && answer != NULL)
            check_filter(s, body, answer);
        if (bind) {
            check_bind(s, body, answer);
            if (!known && json_string_length(json_object_get(answer, "Error")) == 0)
                check_room(s, args.uid);
        }
        json_decref(answer);
    }
    if (filter || str_eq(method, STR("GET")))
        check(str_eq(before, state(s)), "looking changes nothing");
    spoken_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage s;
    struct str rest = {(const char *)data, size};
    quiet();
    stage_open(&s);
    for (int i = 0; i < REQUESTS_MAX && rest.n > 0; i++) {
        static const char line[] = "\n%%\n";
        const char *end = memmem(rest.p, rest.n, line, sizeof(line) - 1);
        struct str one = {rest.p, end == NULL ? rest.n : (size_t)(end - rest.p)};
        struct str method;
        struct str path;
        struct str body;
        rest = end == NULL ? STR_NULL : str_skip(rest, one.n + sizeof(line) - 1);
        (void)str_cut(one, '\n', &method, &body);
        (void)str_cut(method, ' ', &method, &path);
        (void)str_cut(body, '\n', &(struct str){0}, &body);
        arena_reset(&s.arena);
        ask(&s, method, path, body);
    }
    stage_close(&s);
    return 0;
}
