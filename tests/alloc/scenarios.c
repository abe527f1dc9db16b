#include "macro.h"
#include "str.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "/gpushare-scheduler"

#define FILTER(name, mem)                                                                         \
    "{\"Pod\":{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"default\",\"uid\":\"uid-" name \
    "\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":"                 \
    "{\"aliyun.com/gpu-mem\":\"" mem "\"}}}]}},\"Nodes\":null,"                                   \
    "\"NodeNames\":[\"n1\",\"n2\",\"n3\",\"cpu-only\"]}"
#define BIND(name, node)                                                                  \
    "{\"PodName\":\"" name "\",\"PodNamespace\":\"default\",\"PodUID\":\"uid-" name "\"," \
    "\"Node\":\"" node "\"}"

/* ---- whether an answer is right ---- */

/* NOLINTBEGIN(readability-non-const-parameter): they are answer_fn */

static json_t *parse(const struct answer *a)
{
    json_error_t error;
    json_t *json = json_loadb(a->body, a->n, 0, &error);
    if (json == NULL)
        world_fail("the answer is no JSON: %s: %.*s", error.text, (int)a->n, a->body);
    return json;
}

static bool is_ok(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)s;
    *ret_error = a->status == 503;
    return a->status == 200;
}

static bool is_not_found(struct world *w, const struct step *s, const struct answer *a,
                         bool *ret_error)
{
    (void)w;
    (void)s;
    (void)ret_error;
    return a->status == 404;
}

static bool is_json(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)ret_error;
    json_decref(parse(a));
    return a->status == 200 && (s->expected == NULL || (strlen(s->expected) == a->n &&
                                                        memcmp(s->expected, a->body, a->n) == 0));
}

/* By what the API server holds. */
static bool fits(const struct api *a, const char *node, int mem)
{
    for (int card = 0; card < 16; card++) {
        int left = api_free(a, node, card);
        if (left >= 0 && left >= mem)
            return true;
    }
    return false;
}

static bool named(const json_t *names, const char *node)
{
    size_t i = 0;
    const json_t *name = NULL;
    json_array_foreach(names, i, name)
    {
        if (strcmp(json_string_value(name), node) == 0)
            return true;
    }
    return false;
}

/* Each node stands in one of the two; where all is known, in the right one. */
static bool is_filtered(struct world *w, const struct step *s, const struct answer *a,
                        bool *ret_error)
{
    static const char *const nodes[] = {"n1", "n2", "n3", "cpu-only"};
    json_t *json = parse(a);
    const char *error = json_string_value(json_object_get(json, "Error"));
    const json_t *names = json_object_get(json, "NodeNames");
    const json_t *failed = json_object_get(json, "FailedNodes");
    bool right = a->status == 200 && error != NULL;
    *ret_error = right && error[0] != '\0';
    right = right && error[0] == '\0';
    for (size_t i = 0; right && i < COUNT_OF(nodes); i++) {
        bool there = named(names, nodes[i]);
        right = there != (json_object_get(failed, nodes[i]) != NULL);
        if (right && s->expected != NULL && (w->recovering || !interpose_hit()))
            right = there == (w->scenario->cluster != NULL
                                  ? strcmp(nodes[i], "n1") == 0
                                  : fits(&w->api, nodes[i], s->expected[0] - '0'));
    }
    json_decref(json);
    return right;
}

static const char *member(const char *body, const char *key, char out[64])
{
    json_t *json = json_loads(body, 0, NULL);
    (void)snprintf(out, 64, "%s", json_string_value(json_object_get(json, key)));
    json_decref(json);
    return out;
}

/* Success is never a lie. `expected`: the pod must be refused, with this in the error. */
static bool is_bound(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    char pod[64];
    char node[64];
    json_t *json = parse(a);
    const char *error = json_string_value(json_object_get(json, "Error"));
    bool right = a->status == 200 && error != NULL && error[0] == '\0' && s->expected == NULL;
    if (right && w->scenario->cluster == NULL) {
        const char *at = api_node_of(&w->api, member(s->body, "PodName", pod));
        right = at != NULL && strcmp(at, member(s->body, "Node", node)) == 0 &&
                api_card_of(&w->api, pod) >= 0;
    } else if (a->status == 200 && error != NULL && error[0] != '\0') {
        right = s->expected != NULL && strstr(error, s->expected) != NULL;
        bool lie = w->scenario->cluster != NULL && w->created == 1 &&
                   (strstr(error, "not found") != NULL || strstr(error, "not exist") != NULL);
        *ret_error = !right && !lie;
    }
    json_decref(json);
    return right;
}

static bool is_created(struct world *w, const struct step *s, const struct answer *a,
                       bool *ret_error)
{
    (void)s;
    json_decref(parse(a));
    bool right = a->status == 201 || (a->status == 409 && w->created != 0);
    *ret_error = a->status == 503;
    if (right)
        w->created = 1;
    return right;
}

static bool is_deleted(struct world *w, const struct step *s, const struct answer *a,
                       bool *ret_error)
{
    (void)s;
    json_decref(parse(a));
    bool right = a->status == 200 || (a->status == 404 && w->created != 1);
    *ret_error = a->status == 503;
    if (right)
        w->created = 0;
    return right;
}

/* NOLINTEND(readability-non-const-parameter) */

/* ---- whether something is so ---- */

/* All are watched, and the cache holds what the API server holds, and no more. */
static bool cache_is_true(const struct world *w)
{
    const char *name = NULL;
    json_t *object = NULL;
    char uid[64];
    size_t bound = 0;
    size_t holding = 0;
    size_t cursor = 0;
    if (w->cache == NULL || api_watches(&w->api) != API_KINDS)
        return false;
    json_object_foreach(w->api.objects[API_NODES], name, object)
    {
        const struct node *n = cache_node(w->cache, str_of(name));
        for (int card = 0; card < 16; card++) {
            int left = api_free(&w->api, name, card);
            bool there = n != NULL && card < (int)n->n_cards;
            if (there != (left != -2) ||
                (there && (n->cards[card].unhealthy
                               ? -1
                               : (int)(n->cards[card].total - n->cards[card].used)) != left))
                return false;
        }
    }
    json_object_foreach(w->api.objects[API_PODS], name, object)
    {
        const char *node = api_node_of(&w->api, name);
        (void)snprintf(uid, sizeof(uid), "uid-%s", name);
        const struct pod *p = cache_pod(w->cache, str_of(uid));
        if (node == NULL)
            continue;
        bound++;
        if (p == NULL || p->state != POD_BOUND || p->node == NULL ||
            !str_eq(p->node->name, str_of(node)) || p->card != api_card_of(&w->api, name))
            return false;
    }
    for (const struct pod *p = cache_next_pod(w->cache, &cursor); p != NULL;
         p = cache_next_pod(w->cache, &cursor))
        holding += pod_holds(p);
    return holding == bound && w->cache->nodes.n == json_object_size(w->api.objects[API_NODES]);
}

/* One is at the API server, the other waits for its turn. */
static bool two_binds_are_under_way(const struct world *w)
{
    size_t cursor = 0;
    unsigned reserved = 0;
    if (w->cache == NULL)
        return false;
    for (const struct pod *p = cache_next_pod(w->cache, &cursor); p != NULL;
         p = cache_next_pod(w->cache, &cursor))
        reserved += p->state == POD_RESERVED;
    return w->api.bindings == 1 && reserved == 2;
}

/* ---- what happens outside ---- */

static void small_cluster(struct api *a)
{
    api_put_node(a, "n1", 16, 2);
    api_put_node(a, "n2", 32, 2);
    api_put_node(a, "n3", 24, 2);
    api_put_unhealthy(a, "n3", "1");
    api_put_pod(a, "a", 8, "n1", 0);
    api_put_pod(a, "b", 4, NULL, -1);
    api_put_pod(a, "c", 8, NULL, -1);
    api_put_pod(a, "d", 9, NULL, -1);
    api_put_pod(a, "z", 2, NULL, -1);
}

static void somebody_binds_it_first(struct world *w)
{
    w->api.fault = API_FAULT_ELSEWHERE;
    w->api.elsewhere = "n3";
}

static void an_answer_gets_lost(struct world *w)
{
    w->api.fault = API_FAULT_LOST;
}

static void burst(struct world *w)
{
    char name[16];
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof(name), "burst-%d", i);
        api_put_pod(&w->api, name, 1 + i, NULL, -1);
        api_put_pod(&w->api, name, 1 + i, i % 2 == 0 ? "n2" : "n3", 0);
    }
    api_delete(&w->api, API_PODS, "burst-4");
    api_delete(&w->api, API_PODS, "a");
    api_put_node(&w->api, "n4", 64, 4);
}

static void nodes_change(struct world *w)
{
    api_put_node(&w->api, "n1", 48, 4);
    api_put_node(&w->api, "n2", 64, 2);
    api_put_unhealthy(&w->api, "n1", "0,3");
    api_delete(&w->api, API_CONFIGMAPS, "unhealthy-gpu-n3");
    api_delete(&w->api, API_NODES, "n4");
}

static void watches_are_lost(struct world *w)
{
    api_put_pod(&w->api, "unseen", 3, "n1", 1);
    api_delete(&w->api, API_PODS, "burst-0");
    api_compact(&w->api);
}

/* ---- scenarios ---- */

#define ASK_FILTER(name, mem)                                                                    \
    {                                                                                            \
        .type = STEP_ASK, .method = "POST", .path = PREFIX "/filter", .body = FILTER(name, mem), \
        .right = is_filtered, .expected = (mem), .what = "filter " name                          \
    }
#define ASK_BIND(name, node, error)                                                           \
    {                                                                                         \
        .type = STEP_ASK, .method = "POST", .path = PREFIX "/bind", .body = BIND(name, node), \
        .right = is_bound, .expected = (error), .what = "bind " name                          \
    }
#define SEND_BIND(name, node)                                                                  \
    {                                                                                          \
        .type = STEP_SEND, .method = "POST", .path = PREFIX "/bind", .body = BIND(name, node), \
        .right = is_bound, .what = "bind " name                                                \
    }
#define GET(where, how, text)                                                                   \
    {                                                                                           \
        .type = STEP_ASK, .method = "GET", .path = (where), .right = (how), .expected = (text), \
        .what = (where)                                                                         \
    }
#define AWAIT_READY                                                             \
    {                                                                           \
        .type = STEP_AWAIT, .method = "GET", .path = "/readyz", .right = is_ok, \
        .what = "it is ready"                                                   \
    }
#define UNTIL_TRUE                                                               \
    {                                                                            \
        .type = STEP_UNTIL, .until = cache_is_true, .what = "the cache is whole" \
    }
#define CHANGE(does)                                         \
    {                                                        \
        .type = STEP_CHANGE, .change = (does), .what = #does \
    }
#define ARM              \
    {                    \
        .type = STEP_ARM \
    }
#define END              \
    {                    \
        .type = STEP_END \
    }

static const struct step all_is_well[] = {
    AWAIT_READY,           UNTIL_TRUE, ASK_FILTER("z", "2"), ASK_BIND("z", "n2", NULL), UNTIL_TRUE,
    ASK_FILTER("z2", "5"), END};

static const struct scenario start = {
    .name = "start",
    .setup = small_cluster,
    .steps = (const struct step[]){ARM, AWAIT_READY, UNTIL_TRUE, END},
    .after = all_is_well,
};

static const struct scenario verbs = {
    .name = "verbs",
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            AWAIT_READY,
            UNTIL_TRUE,
            ARM,
            ASK_FILTER("b", "4"),
            ASK_BIND("b", "n1", NULL),
            CHANGE(somebody_binds_it_first),
            ASK_BIND("c", "n2", "n3"),
            CHANGE(an_answer_gets_lost),
            ASK_BIND("d", "n2", NULL),
            GET(PREFIX "/inspect", is_json, NULL),
            GET(PREFIX "/inspect/n1", is_json, NULL),
            GET("/readyz", is_ok, NULL),
            GET("/nowhere", is_not_found, NULL),
            END,
        },
    .after = all_is_well,
};

static const struct scenario watch = {
    .name = "watch",
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            AWAIT_READY,
            UNTIL_TRUE,
            ARM,
            CHANGE(burst),
            UNTIL_TRUE,
            CHANGE(nodes_change),
            UNTIL_TRUE,
            CHANGE(watches_are_lost),
            UNTIL_TRUE,
            ASK_FILTER("b", "4"),
            END,
        },
    .after = all_is_well,
};

static const struct scenario shutdown = {
    .name = "shutdown",
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            AWAIT_READY,
            UNTIL_TRUE,
            ARM,
            CHANGE(an_answer_gets_lost),
            SEND_BIND("b", "n1"),
            SEND_BIND("z", "n1"),
            {.type = STEP_UNTIL,
             .until = two_binds_are_under_way,
             .what = "two binds are under way"},
            END,
        },
    .after = (const struct step[]){END},
};

#define CREATE                                                                            \
    {                                                                                     \
        .type = STEP_ASK, .method = "POST", .path = "/api/v1/namespaces/default/pods",    \
        .body = "metadata: {name: b, uid: uid-b}\nspec:\n  containers:\n  - name: main\n" \
                "    resources: {limits: {aliyun.com/gpu-mem: 4}}\n",                     \
        .right = is_created, .what = "create b"                                           \
    }
#define DELETE                                                                             \
    {                                                                                      \
        .type = STEP_ASK, .method = "DELETE", .path = "/api/v1/namespaces/default/pods/b", \
        .right = is_deleted, .what = "delete b"                                            \
    }

#define INSPECTED(used, on_card, b)                                                   \
    "{\"nodes\":[{\"name\":\"n1\",\"totalGPU\":32,\"usedGPU\":" used ",\"devs\":["    \
    "{\"id\":0,\"totalGPU\":16,\"usedGPU\":0,\"pods\":[]},{\"id\":1,\"totalGPU\":16," \
    "\"usedGPU\":" used ",\"pods\":[" b "{\"name\":\"a\",\"namespace\":\"default\","  \
    "\"usedGPU\":5}]}]}]}"
#define WITH_B    INSPECTED("9", "9", "{\"name\":\"b\",\"namespace\":\"default\",\"usedGPU\":4},")
#define WITHOUT_B INSPECTED("5", "5", "")

static const struct scenario embedded = {
    .name = "embedded",
    .cluster = "apiVersion: v1\nkind: List\nitems:\n"
               "- kind: Node\n  metadata: {name: n1}\n  status:\n"
               "    capacity: &c {aliyun.com/gpu-mem: 32, aliyun.com/gpu-count: 2}\n"
               "    allocatable: *c\n"
               "- kind: Pod\n  metadata: {name: a, uid: uid-a, annotations: "
               "{ALIYUN_COM_GPU_MEM_IDX: \"1\"}}\n"
               "  spec:\n    nodeName: n1\n    containers:\n    - name: main\n"
               "      resources: {limits: {aliyun.com/gpu-mem: 5}}\n"
               "---\nkind: ConfigMap\nmetadata: {name: unhealthy-gpu-n1, namespace: kube-system}\n"
               "data: {gpus: \"0\"}\n",
    .steps = (const struct step[]){ARM, AWAIT_READY, CREATE, ASK_FILTER("b", "4"),
                                   ASK_BIND("b", "n1", NULL), DELETE, CREATE, END},
    .after = (const struct step[]){AWAIT_READY, DELETE, CREATE, ASK_BIND("b", "n1", NULL),
                                   GET(PREFIX "/inspect", is_json, WITH_B), DELETE,
                                   GET(PREFIX "/inspect", is_json, WITHOUT_B), END},
};

/* Long enough for the Lease to be renewed. */
static bool a_while_is_over(const struct world *w)
{
    return interpose_now_ms() >= w->since_ms + 20000;
}

static const struct scenario leader = {
    .name = "leader",
    .elects = true,
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            ARM,
            AWAIT_READY,
            UNTIL_TRUE,
            ASK_BIND("b", "n1", NULL),
            {.type = STEP_UNTIL, .until = a_while_is_over, .what = "the lease is renewed"},
            ASK_FILTER("c", "8"),
            END,
        },
    .after = all_is_well,
};

const struct scenario *const scenarios[] = {&start, &verbs, &watch, &embedded, &shutdown, &leader};
const size_t n_scenarios =
    COUNT_OF(scenarios); /* NOLINT(bugprone-sizeof-expression): of pointers */
