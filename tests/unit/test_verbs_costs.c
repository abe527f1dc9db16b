/* prioritize and filter for pods without cards, which cost cores that pods with cards need. */
#include "verbs_stage.h"

#define WHOLE_ONES(n) "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" n "\"}}"
#define WHOLE_POD                                                                            \
    "\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\"},\"spec\":{" \
    "\"priority\":100,\"containers\":[{\"name\":\"c\"," WHOLE_ONES("1") "}]}}"

#define CORES_POD                                                                            \
    "\"Pod\":{\"metadata\":{\"name\":\"hi\",\"namespace\":\"ns\",\"uid\":\"hi\"},\"spec\":{" \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"6\"}}}]}}"

static void show_node(const char *name, const char *mem)
{
    struct effect fx;
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = str_of(name), .cpu = STR("8")}};
    if (mem != NULL) {
        e.node.mem = str_of(mem);
        e.node.count = STR("1");
    }
    ck_assert_int_eq(cache_apply(&s.service.cache, &e, 1, &fx), OK);
}

/* The expected pods ask for half a card of 16, and 4 cores. */
static void learn(void)
{
    struct learned_costs *p = &s.service.cache.learned;
    const struct shape x = {.cpu = 4000, .cards = 1, .mem = 8};
    for (unsigned i = 0; i < 1000; i++)
        shapes_add(&p->market.shapes, &x);
    ck_assert(learned_costs_begin(p, &s.service.cache.nodes));
    while (learned_costs_step(p)) {
    }
}

/* A pod without cards that takes the cores of a node leaves its card without use. Without costs,
 * and for cards of NVIDIA's plugin, all nodes are equal. No node is left out by the shortlist. */
TEST_EACH(a_pod_without_cards_leaves_the_cores_beside_cards, 4)
{
    static const char ranks[] =
        "[{\"Host\":\"cards\",\"Score\":9},{\"Host\":\"bare\",\"Score\":10}]";
    static const char zeros[] =
        "[{\"Host\":\"cards\",\"Score\":0},{\"Host\":\"bare\",\"Score\":0}]";

    static const enum policy policies[] = {POLICY_BID_PRICE, POLICY_FGD, POLICY_BINPACK,
                                           POLICY_SPREAD};

    stage_open();
    show_node("cards", "16");
    show_node("bare", NULL);
    s.service.cache.settings.node_policy = policies[_i];
    answers("prioritize", NAMES(CORES_POD, "\"cards\",\"bare\""), zeros, OUTCOME_OK);
    learn();
    answers("prioritize", NAMES(CORES_POD, "\"cards\",\"bare\""),
            policy_has_costs(policies[_i]) ? ranks : zeros, OUTCOME_OK);
    answers("prioritize", NAMES(WHOLE_POD, "\"cards\",\"bare\""), zeros, OUTCOME_OK);
    s.service.shortlist = 1;
    answers("filter", NAMES(CORES_POD, "\"cards\",\"bare\""),
            "{\"Nodes\":null,\"NodeNames\":[\"cards\",\"bare\"],\"FailedNodes\":{},"
            "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}",
            OUTCOME_OK);
    stage_close();
}
