/*
 * Requests as from a scheduler or a person, separated by a line "%%":
 *
 * METHOD PATH
 * (empty)
 * BODY
 *
 * They go to an embedded cluster. Each gets one answer, in valid JSON if it says so. A filter's
 * answer names each candidate once and changes nothing. prioritize scores all candidates in their
 * order, and gives 10 only to nodes that filter offers. preempt names existing pods of lower
 * priority. A successful bind has put its pod on a card with room. explain must agree with filter
 * about a node, apart from what only the scheduler counts, and changes nothing. With a first line
 * "shortlist N" filter leaves out all but N nodes, and refuses only nodes that it also refuses
 * without it.
 */
#include "core/limit.h"
#include "daemon/query/query.h"
#include "daemon/service.h"
#include "extender/extender.h"
#include "extender/extender_preempt.h"
#include "report/explain_write.h"
#include "rules.h"
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
    list_init(&s->service.explains);
    cache_init(&s->service.cache, (struct map_seed){1, 2});
    measured_init(&s->service.measured, (struct map_seed){1, 2}, 0);
    check(embedded_new(s->service.loop, &s->service.cache, &s->service.measured, str_of(world),
                       STR("world"), &s->service.embedded, NULL) == OK,
          "the world is there");
    s->service.backend = embedded_interface(s->service.embedded);
    const struct bind_settings b = {.loop = s->service.loop,
                                    .cache = &s->service.cache,
                                    .backend = s->service.backend,
                                    .timeout_ms = 25000,
                                    .step_budget = &s->service.step_budget};
    check(bind_new(&b, &s->service.binder, NULL) == OK, "a binder");
}

static void stage_close(struct stage *s)
{
    s->service.binder = bind_free(s->service.binder);
    s->service.embedded = embedded_free(s->service.embedded);
    measured_done(&s->service.measured);
    evaluation_memo_done(&s->service.evaluation_memo);
    cache_done(&s->service.cache);
    s->service.loop = loop_free(s->service.loop);
    arena_done(&s->arena);
}

/* All state of the cache that affects decisions, as text. */
static struct str state(struct stage *s)
{
    struct spoken r;
    spoken_init(&r, STR("GET"), STR("/"), STR(""));
    query_inspect(&s->service, &r.request);
    struct str copy = arena_dup(&s->arena, buf_str(&r.answer));
    spoken_done(&r);
    return copy;
}

static bool member_of(const json_t *map, struct str name)
{
    return json_object_getn(map, name.p, name.n) != NULL;
}

/* Looks in NodeNames, or in the names in Nodes.items. */
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

static size_t offers(const json_t *answer)
{
    return json_array_size(json_object_get(answer, "NodeNames")) +
           json_array_size(json_object_get(json_object_get(answer, "Nodes"), "items"));
}

/* filter's answer without a shortlist. */
static json_t *filter_all(struct stage *s, struct str body)
{
    struct spoken r;
    unsigned shortlist = s->service.shortlist;
    s->service.shortlist = 0;
    spoken_init(&r, STR("POST"), STR("/gpushare-scheduler/filter"), body);
    filter_handle(&s->service, &r.request);
    s->service.shortlist = shortlist;
    json_t *answer = answer_reads(buf_str(&r.answer));
    spoken_done(&r);
    return answer;
}

/* The pod wants a card or holds one: some node may be its best. */
static bool is_placed(const struct stage *s, const struct filter_args *args)
{
    struct request r;
    struct err e = ERR_INIT;
    const struct pod *p = cache_pod(&s->service.cache, args->pod.uid);
    return request_read(&args->pod, &r, &e) == OK && (r.mem > 0 || (p != NULL && pod_holds(p)));
}

static void check_shortlist(struct stage *s, const struct filter_args *args, struct str body,
                            const json_t *answer)
{
    json_t *all = filter_all(s, body);
    if (all == NULL)
        return;
    check(json_equal(json_object_get(all, "FailedNodes"), json_object_get(answer, "FailedNodes")),
          "a shortlist refuses no node");
    size_t most = is_placed(s, args) ? s->service.shortlist : SIZE_MAX;
    check(offers(answer) == MIN_OF(offers(all), most), "as many as it may be");
    json_decref(all);
}

/* explain has the sentence, and filter goes on with figures. Of many nodes filter does not name
 * each. */
static bool is_same_reason(const json_t *refused, const json_t *v)
{
    struct str verdict = jansson_str(json_object_get(v, "verdict"));
    bool of_node = str_eq(verdict, STR("not_shared")) || str_eq(verdict, STR("bad_cards"));
    return of_node || str_starts(jansson_str(refused), jansson_str(json_object_get(v, "reason")));
}

/* explain must agree with the answer about each existing node. */
static void check_explained(struct stage *s, const struct filter_args *args, const json_t *answer)
{
    struct buf out;
    size_t i = 0;
    const json_t *v = NULL;
    buf_init(&out, 16 * MIB);
    check(explain_write(&s->service.cache, &s->service.step_budget, &args->pod, &s->arena, &out,
                        NULL) == OK,
          "it is explained");
    json_t *explained = answer_reads(buf_str(&out));
    json_array_foreach(json_object_get(explained, "verdicts"), i, v)
    {
        struct str node = jansson_str(json_object_get(v, "node"));
        const json_t *refused =
            json_object_getn(json_object_get(answer, "FailedNodes"), node.p, node.n);
        struct str verdict = jansson_str(json_object_get(v, "verdict"));
        if (str_eq(verdict, STR("no_exclusive")) || str_eq(verdict, STR("no_devices")))
            continue;
        if (refused != NULL)
            check(is_same_reason(refused, v), "for the same reason");
        if (refused != NULL || offered(answer, node))
            check((refused == NULL) == json_is_true(json_object_get(v, "fits")), "the same fits");
    }
    json_decref(explained);
    buf_done(&out);
}

static void check_filter(struct stage *s, struct str body, const json_t *answer)
{
    struct filter_args args;
    const json_t *error = json_object_get(answer, "Error");
    bool read = extender_read_filter(body, &s->arena, &args, NULL) == OK;
    check(read == (json_string_length(error) == 0), "what can't be read is an error");
    for (size_t i = 0; read && s->service.shortlist == 0 && i < args.n; i++) {
        struct str name = args.names[i];
        check(offered(answer, name) != member_of(json_object_get(answer, "FailedNodes"), name),
              "each candidate is offered or refused");
    }
    if (read)
        check_explained(s, &args, answer);
    if (read && s->service.shortlist > 0)
        check_shortlist(s, &args, body, answer);
}

static void check_priorities(struct stage *s, struct str body, const json_t *answer)
{
    struct filter_args args;
    check(json_is_array(answer), "a bare list, whatever was asked");
    bool read = extender_read_filter(body, &s->arena, &args, NULL) == OK;
    check(json_array_size(answer) == (read ? args.n : 0), "as many as were asked about");
    json_t *all = read ? filter_all(s, body) : NULL;
    json_int_t best = 0;
    for (size_t i = 0; read && i < args.n; i++) {
        const json_t *one = json_array_get(answer, i);
        const json_t *score = json_object_get(one, "Score");
        json_int_t points = json_integer_value(score);
        check(str_eq(jansson_str(json_object_get(one, "Host")), args.names[i]),
              "in the order of the request");
        check(json_is_integer(score) && points >= 0 && points <= 10, "0 to 10");
        check(points == 0 || all == NULL || offered(all, args.names[i]),
              "points are for nodes that fit");
        best = MAX_OF(best, points);
    }
    bool chosen = read && is_placed(s, &args) && all != NULL && offers(all) > 0;
    check(best == (chosen ? 10 : 0) || all == NULL, "the best has 10");
    json_decref(all);
}

static const struct node_victims *asked_of(const struct preempt_args *args, const char *node)
{
    for (size_t i = 0; i < args->n; i++) {
        if (str_eq(args->nodes[i].node, str_of(node)))
            return &args->nodes[i];
    }
    return NULL;
}

/* The scheduler's own victims come first. All others have a lower priority and appear once. */
static void check_victims(struct stage *s, const struct preempt_args *args,
                          const struct node_victims *asked, const json_t *pods)
{
    size_t n = json_array_size(pods);
    check(n > 0 && n >= asked->n, "some victims, and never fewer than the request named");
    for (size_t i = 0; i < n; i++) {
        struct str uid = jansson_str(json_object_get(json_array_get(pods, i), "UID"));
        if (i < asked->n) {
            check(str_eq(uid, asked->uids[i]), "the scheduler's own victims stay");
            continue;
        }
        const struct pod *p = cache_pod(&s->service.cache, uid);
        check(p != NULL && p->node != NULL && str_eq(p->node->name, asked->node), "it is there");
        check(p->request->priority < args->pod.priority && !p->deleting, "it weighs less");
        check(!str_eq(uid, args->pod.uid), "no pod is its own victim");
        for (size_t j = 0; j < i; j++)
            check(!str_eq(uid, jansson_str(json_object_get(json_array_get(pods, j), "UID"))),
                  "once");
    }
}

static void check_preempt(struct stage *s, struct str body, json_t *answer)
{
    struct preempt_args args;
    const char *node = NULL;
    json_t *victims = NULL;
    json_t *nodes = json_object_get(answer, "NodeNameToMetaVictims");
    check(json_is_object(nodes), "a map, whatever was asked");
    if (extender_preempt_read(body, &s->arena, &args, NULL) != OK) {
        check(json_object_size(nodes) == 0, "an invalid request has no victims");
        return;
    }
    json_object_foreach(nodes, node, victims)
    {
        const struct node_victims *asked = asked_of(&args, node);
        check(asked != NULL, "no node that was not asked about");
        check_victims(s, &args, asked, json_object_get(victims, "Pods"));
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
    if (p == NULL || p->request->mem == 0)
        return; /* the pod wants no card */
    check(p->node != NULL && str_eq(p->node->name, args.node), "it is bound there");
}

/* Checks only pods that cardpack bound: a user may create a pod that is bound already. */
static void check_room(struct stage *s, struct str uid)
{
    const struct pod *p = cache_pod(&s->service.cache, uid);
    if (p == NULL || p->node == NULL || p->card < 0 || (uint32_t)p->card >= p->node->n_cards)
        return;
    const struct card *c = &p->node->cards[p->card];
    check(c->used <= c->total, "its card has room for it");
}

/*
 * The most steps for a request here if no two things multiply: nodes have a few cards and pods. The
 * request's own bytes are counted separately. An input that makes two things multiply exceeds this,
 * however short its time.
 */
#define WORLD_STEPS UINT64_C(300000)

static void check_steps(const struct stage *s, struct str path, struct str body)
{
    const struct step_budget *w = &s->service.step_budget;
    uint64_t looked = w->looks > LIMIT_APART_LOOKS ? 0 : LIMIT_APART_LOOKS - w->looks;
    uint64_t most = WORLD_STEPS + 4 * (uint64_t)body.n + looked;
    if (str_eq(path, STR("/gpushare-scheduler/preempt")))
        most += (uint64_t)LIMIT_VICTIM_STEPS * LIMIT_VICTIM_LOOKS;
    if (str_eq(path, STR("/gpushare-scheduler/fit")))
        most += LIMIT_PLAN_LOOKS;
    check(w->steps <= MIN_OF(most, LIMIT_REQUEST_STEPS),
          "a request takes no more than so many steps");
}

static void ask(struct stage *s, struct str method, struct str path, struct str body)
{
    struct spoken r;
    struct bind_args args;
    struct str before = state(s);
    bool filter = str_eq(path, STR("/gpushare-scheduler/filter")) && str_eq(method, STR("POST"));
    bool prioritize =
        str_eq(path, STR("/gpushare-scheduler/prioritize")) && str_eq(method, STR("POST"));
    bool preempt = str_eq(path, STR("/gpushare-scheduler/preempt")) && str_eq(method, STR("POST"));
    bool bind = str_eq(path, STR("/gpushare-scheduler/bind")) && str_eq(method, STR("POST"));
    bool known = bind && extender_read_bind(body, &s->arena, &args, NULL) == OK &&
                 cache_pod(&s->service.cache, args.uid) != NULL &&
                 pod_holds(cache_pod(&s->service.cache, args.uid));
    spoken_init(&r, method, path, body);
    step_budget_begin(&s->service.step_budget, 0);
    routes_handle(&s->service, &r.request);
    still_run(s->service.loop);
    check(r.times == 1, "it is answered once");
    check_steps(s, path, body);
    cache_check(&s->service.cache);
    if (str_eq(str_of(r.type), STR("application/json"))) {
        /* Nodes stand in filter's answer as they came. */
        json_t *answer = is_json(body) || body.n == 0 ? answer_reads(buf_str(&r.answer)) : NULL;
        if (filter && answer != NULL)
            check_filter(s, body, answer);
        if (prioritize && answer != NULL)
            check_priorities(s, body, answer);
        if (preempt && answer != NULL)
            check_preempt(s, body, answer);
        if (bind && answer != NULL) {
            check_bind(s, body, answer);
            if (!known && json_string_length(json_object_get(answer, "Error")) == 0)
                check_room(s, args.uid);
        }
        json_decref(answer);
    }
    bool question = str_eq(path, STR("/gpushare-scheduler/explain")) ||
                    str_eq(path, STR("/gpushare-scheduler/fit"));
    if (filter || prioritize || preempt || question || str_eq(method, STR("GET")))
        check(str_eq(before, state(s)), "looking changes nothing");
    spoken_done(&r);
}

/* The first line, if it is a setting. */
static struct str take_shortlist(struct stage *s, struct str text)
{
    struct str line;
    struct str rest;
    uint64_t n = 0;
    (void)str_cut(text, '\n', &line, &rest);
    if (!str_starts(line, STR("shortlist ")) || !str_to_u64(str_skip(line, 10), 10000, &n))
        return text;
    s->service.shortlist = (unsigned)n;
    return rest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage s;
    struct str rest = {(const char *)data, size};
    quiet();
    stage_open(&s);
    rest = take_shortlist(&s, rest);
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
