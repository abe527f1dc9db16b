/* The scenarios of the allocation tests: lists of steps, see world.h. */
#include "answers.h"
#include "base/macro.h"
#include "base/str.h"

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

/* ---- conditions ---- */

/* All PodDisruptionBudgets are watched, and the cache equals the API server's. */
static bool budgets_are_true(const struct world *w)
{
    if (w->budgets == NULL || w->budgets->epoch == 0)
        return false;
    for (unsigned i = 0; i < MAX_BUDGETS; i++) {
        const struct budget_object *o = &store.budgets[i];
        const struct budget *b =
            o->exists ? budgets_get(w->budgets, STR("default"), name_str(&o->name)) : NULL;
        if (o->exists && (b == NULL || b->is.allowed != (int64_t)o->allowed))
            return false;
    }
    return w->budgets->all.n == api_count(API_BUDGETS);
}

/* What the node's pods request: each has one container, and none is terminal. */
static int64_t cpu_of_pods(const struct node_object *o)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (p->exists && strcmp(p->node.z, o->name.z) == 0)
            sum += 100;
    }
    return sum;
}

/* Whether the cache has the node's cards as the API server has them. */
static bool node_is_true(const struct world *w, const struct node_object *o)
{
    const struct node *n = cache_node(w->cache, name_str(&o->name));
    for (int card = 0; card < 16; card++) {
        int left = api_free(o->name.z, card);
        bool there = n != NULL && card < (int)n->n_cards;
        if (there != (left != -2) ||
            (there &&
             (n->cards[card].unhealthy ? -1 : (int)(n->cards[card].total - n->cards[card].used)) !=
                 left))
            return false;
    }
    return n != NULL && n->host_used.cpu == cpu_of_pods(o);
}

static bool cache_is_true(const struct world *w)
{
    size_t bound = 0;
    size_t cardless = 0;
    size_t holding = 0;
    size_t cursor = 0;
    if (w->cache == NULL || api_watches(&w->api) != API_KINDS_EVERYWHERE || !budgets_are_true(w))
        return false;
    for (unsigned i = 0; i < store.n_nodes; i++) {
        if (store.nodes[i].exists && !node_is_true(w, &store.nodes[i]))
            return false;
    }
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *o = &store.pods[i];
        const struct pod *p = cache_pod(w->cache, name_str(&o->uid));
        if (!o->exists || o->node.z[0] == '\0')
            continue;
        if (!o->containers[0].named) {
            cardless++;
            continue;
        }
        bound++;
        if (p == NULL || p->state != POD_BOUND || p->node == NULL ||
            !str_eq(p->node->name, name_str(&o->node)) || p->card != api_card_of(o))
            return false;
    }
    for (const struct pod *p = cache_next_pod(w->cache, &cursor); p != NULL;
         p = cache_next_pod(w->cache, &cursor))
        holding += pod_holds(p);
    return holding == bound && w->cache->cardless.n == cardless &&
           w->cache->nodes.n == api_count(CACHE_NODES);
}

/* One bind is at the API server, the other waits for its turn. */
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

/* ---- events outside the program ---- */

static void small_cluster(void)
{
    api_put_node("n1", 16, 2);
    api_put_node("n2", 32, 2);
    api_put_node("n3", 24, 2);
    api_put_unhealthy("n3", "1");
    api_put_budget("web", 1);
    api_put_pod("a", 8, "n1", 0);
    api_put_pod("agent", 0, "n1", -1);
    api_put_pod("b", 4, NULL, -1);
    api_put_pod("c", 8, NULL, -1);
    api_put_pod("d", 9, NULL, -1);
    api_put_pod("z", 2, NULL, -1);
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
    (void)w;
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof(name), "burst-%d", i);
        api_put_pod(name, 1 + i, NULL, -1);
        api_put_pod(name, 1 + i, i % 2 == 0 ? "n2" : "n3", 0);
    }
    api_delete(CACHE_PODS, "burst-4");
    api_delete(CACHE_PODS, "a");
    api_put_node("n4", 64, 4);
}

static void nodes_change(struct world *w)
{
    (void)w;
    api_put_node("n1", 48, 4);
    api_put_node("n2", 64, 2);
    api_put_unhealthy("n1", "0,3");
    api_put_budget("web", 0);
    api_put_budget("db", 2);
    api_delete(CACHE_HEALTH, "unhealthy-gpu-n3");
    api_delete(CACHE_NODES, "n4");
}

static void watches_are_lost(struct world *w)
{
    api_put_pod("unseen", 3, "n1", 1);
    api_put_pod("server", 0, "n2", -1);
    api_delete(CACHE_PODS, "agent");
    api_delete(CACHE_PODS, "burst-0");
    api_delete(API_BUDGETS, "web");
    api_compact(&w->api);
}

/* ---- scenarios ---- */

#define ASK_FILTER(name, mem)                                                                    \
    {                                                                                            \
        .type = STEP_ASK, .method = "POST", .path = PREFIX "/filter", .body = FILTER(name, mem), \
        .right = is_filtered, .expected = (mem), .what = "filter " name                          \
    }
#define ASK_PRIORITIZE(name, mem)                                              \
    {                                                                          \
        .type = STEP_ASK, .method = "POST", .path = PREFIX "/prioritize",      \
        .body = FILTER(name, mem), .right = is_prioritized, .expected = (mem), \
        .what = "prioritize " name                                             \
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
#define AWAIT_READY                                                                    \
    {                                                                                  \
        .type = STEP_AWAIT, .method = "GET", .path = "/readyz/leader", .right = is_ok, \
        .what = "it is ready"                                                          \
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

#define POD(mem)                                                                           \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\"},\"spec\":{\"containers\":[{" \
    "\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem "\"}}}]}}"

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
            ASK_PRIORITIZE("b", "4"),
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

/* All questions come before a bind: nothing changes, so the right answers are known. */
static const struct scenario questions = {
    .name = "questions",
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            AWAIT_READY,
            UNTIL_TRUE,
            ARM,
            GET(PREFIX "/explain/default/d", is_explained, "9"),
            GET(PREFIX "/explain/default/nobody", is_of_nobody, NULL),
            {.type = STEP_ASK,
             .method = "POST",
             .path = PREFIX "/explain",
             .body = POD("13"),
             .right = is_explained,
             .expected = "13",
             .what = "explain"},
            {.type = STEP_ASK,
             .method = "POST",
             .path = PREFIX "/fit",
             .body = "replicas: 6\npod: " POD("4"),
             .right = is_fitted,
             .expected = "6",
             .what = "fit"},
            END,
        },
    .after = all_is_well,
};

/* Checks the answer of the call that was sent first. */
static bool page_is_true(const struct world *w)
{
    size_t n = 0;
    const struct http_peer *p = &w->calls[0];
    const char *body = w->n_calls == 0 ? NULL : http_body(p, &n);
    return body != NULL && cache_is_true(w) && shows_all(body, p->n_in - (size_t)(body - p->in));
}

#define EVENTS "/ui/events"

/* The page stays open during all events, and is checked once more at its end. */
static const struct scenario page = {
    .name = "page",
    .setup = small_cluster,
    .steps =
        (const struct step[]){
            AWAIT_READY,
            UNTIL_TRUE,
            ARM,
            {.type = STEP_SEND,
             .method = "GET",
             .path = EVENTS,
             .right = is_page,
             .what = "the page's events"},
            {.type = STEP_UNTIL, .until = page_is_true, .what = "the page shows all"},
            GET("/", is_asset, NULL),
            GET("/ui/", is_asset, NULL),
            GET("/ui/app.css", is_asset, NULL),
            ASK_FILTER("d", "9"),
            CHANGE(burst),
            {.type = STEP_UNTIL, .until = page_is_true, .what = "the page shows the burst"},
            CHANGE(nodes_change),
            {.type = STEP_UNTIL, .until = page_is_true, .what = "the page shows other nodes"},
            END,
        },
    .after = (const struct step[]){AWAIT_READY,
                                   UNTIL_TRUE,
                                   {.type = STEP_AWAIT,
                                    .method = "GET",
                                    .path = EVENTS,
                                    .right = is_page,
                                    .expected = "all",
                                    .what = "a page that is opened then shows all"},
                                   ASK_FILTER("z", "2"),
                                   END},
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
               "data: {gpus: \"0\"}\n"
               /* Exactly what a and b hold: if one counted twice there would be no room. */
               "---\nkind: ConfigMap\nmetadata: {name: cardpack-quota, namespace: kube-system}\n"
               "data: {quota.yaml: \"namespaces: {default: {limits: {memory: 9}}}\"}\n",
    .steps = (const struct step[]){ARM, AWAIT_READY, CREATE, ASK_FILTER("b", "4"),
                                   ASK_BIND("b", "n1", NULL), DELETE, CREATE, END},
    .after = (const struct step[]){AWAIT_READY, DELETE, CREATE, ASK_BIND("b", "n1", NULL),
                                   GET(PREFIX "/inspect", is_json, WITH_B), DELETE,
                                   GET(PREFIX "/inspect", is_json, WITHOUT_B), END},
};

/* Long enough for a renewal of the Lease. */
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

const struct scenario *const scenarios[] = {&start, &verbs,    &questions, &watch,
                                            &page,  &embedded, &shutdown,  &leader};
const size_t n_scenarios =
    COUNT_OF(scenarios); /* NOLINT(bugprone-sizeof-expression): of pointers */
