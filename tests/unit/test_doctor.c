/* What doctor finds in nodes, ConfigMaps, pods, and in what runs in a cluster. */
#include "doctor_rig.h"

#define TABLE(...) CARDS({.index = 0, .mem = 16, .numa = -1}, {.index = 2, .mem = 16, .numa = -1})

static const struct {
    struct node_view node;
    bool wanted;
    const char *found; /* "": nothing */
} nodes[] = {
    {NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("32")), true, ""},
    {NODE(.mem = S("32"), .count = S("2"), TABLE()), true, ""},
    {{.name = S("n")}, false, ""}, /* a node without cards */
    {NODE(.count = S("2")), true,
     "FAIL node/n: no aliyun.com/gpu-mem in its capacity, although it "
     "has the label gpushare=true"},
    {NODE(.mem = S("0")), false,
     "FAIL node/n: aliyun.com/gpu-mem is 0 in its capacity: the kubelet has lost the device "
     "plugin"},
    {NODE(TABLE()), false,
     "FAIL node/n: no aliyun.com/gpu-mem in its capacity, although it has the "
     "annotation cardpack.io/cards"},
    {NODE(.mem = S("32")), true,
     "FAIL node/n: aliyun.com/gpu-mem 32, and no aliyun.com/gpu-count in its capacity"},
    {NODE(.mem = S("32"), .count = S("x")), true,
     "FAIL node/n: aliyun.com/gpu-mem \"32\" or aliyun.com/gpu-count \"x\" is not usable"},
    {NODE(.mem = S("32"), .has_cards = true, .cards_fault = "cardpack.io/cards: odd"), true,
     "FAIL node/n: annotation cardpack.io/cards: odd; no pod is placed there"},
    {NODE(.mem = S("34"), .count = S("2"), TABLE()), true,
     "WARN node/n: its card table has 32 in sum, and aliyun.com/gpu-mem is 34"},
    {NODE(.mem = S("30"), .count = S("2"), TABLE()), true,
     "WARN node/n: its card table has 32 in sum, and aliyun.com/gpu-mem is 30"},
    {NODE(.mem = S("33"), .count = S("2")), true,
     "WARN node/n: aliyun.com/gpu-mem 33 is no multiple of its 2 cards: 1 belong to no card"},
    {NODE(.mem = S("32"), .count = S("3"), TABLE()), true,
     "WARN node/n: its card table has 2 cards, and aliyun.com/gpu-count is 3"},
    {NODE(.mem = S("32"), TABLE()), true,
     "WARN node/n: its card table has 2 cards, and aliyun.com/gpu-count is absent"},
    {NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("16")), true,
     "WARN node/n: 16 of its aliyun.com/gpu-mem 32 are allocatable"},
    {NODE(.mem = S("32"), .count = S("2"), .cordoned = S("0,x")), true,
     "WARN node/n: annotation cardpack.io/cordoned-cards: \"0,x\" names something that is no card"},
    {NODE(.mem = S("32"), .count = S("2"), .exclusive_cards = S("1,2")), true,
     "WARN node/n: annotation cardpack.io/exclusive-cards names card 2, which the node does not "
     "have"},
    {NODE(.mem = S("32"), .count = S("2"), .placement = S("Spread")), true,
     "WARN node/n: label ack.node.gpu.placement: \"Spread\" has no effect"},
    {NODE(.mem = S("32"), .count = S("2"), .max_pods = S("few")), true,
     "WARN node/n: label ack.node.gpu.max-pod: \"few\" has no effect"},
    {NODE(.mem = S("32"), .count = S("2"), .isolation = S("MPS")), true,
     "WARN node/n: label cardpack.io/isolation: \"MPS\" counts as none"},
};

TEST_EACH(checks_nodes, COUNT_OF(nodes))
{
    set_node(&rig, nodes[_i].node);
    struct doctor_marks marks = {.gpushare = nodes[_i].wanted};
    doctor_node(&found, &nodes[_i].node, cache_node(&rig.cache, STR("n")), &marks, NOW);
    is_found(nodes[_i].found);
    ck_assert_uint_eq(found.n, nodes[_i].found[0] == '\0' ? 0 : 1);
}

TEST(misses_the_devices_of_cardpack_node)
{
    const struct node_view bare = {.name = S("n")};
    const struct doctor_marks marks = {.ours = true};
    set_node(&rig, bare);
    doctor_node(&found, &bare, cache_node(&rig.cache, STR("n")), &marks, NOW);
    is_found("FAIL node/n: no aliyun.com/gpu-mem in its capacity, although it has the label "
             "cardpack.io/node=true");
}

static const struct {
    const char *node;
    const char *gpus;
    const char *found;
} healths[] = {
    {"n", "", ""},
    {"n", "1", "WARN node/n: card 1 is unhealthy, by its ConfigMap: no pod is placed on it\n"},
    {"n", "7",
     "WARN configmap/kube-system/unhealthy-gpu-n: it names card 7, which the node does not have\n"},
    {"n", "x",
     "WARN configmap/kube-system/unhealthy-gpu-n: key gpus: \"x\" names something that is "
     "no card\n"},
    {"m", "0", "WARN configmap/kube-system/unhealthy-gpu-m: there is no node m\n"},
};

TEST_EACH(checks_unhealthy_cards, COUNT_OF(healths))
{
    struct node_view n = TWO_CARDS;
    set_node(&rig, n);
    doctor_health(&found, &rig.cache, str_of(healths[_i].node), str_of(healths[_i].gpus));
    ck_assert_str_eq(findings(), healths[_i].found);
}

#define LATE  .assume_time = S("1795325000000000000") /* 16 minutes before NOW */
#define EARLY .assume_time = S("1795325800000000000")

static const struct {
    struct pod_view pod;
    const char *found;
} pods[] = {
    {PLAIN("p", "8"), ""},
    {PLAIN("p", "8", AT(1), .assigned = S("true")), ""},
    {PLAIN("p", "8", .node = S("n"), .phase = S("Succeeded")), ""},
    {PLAIN("p", "8", AT(1), .assigned = S("true"), .vacated = S("0")),
     "WARN pod/ns/p: it exchanges its cards with another pod, by annotation "
     "cardpack.io/vacated-cards: no pod is placed on node n meanwhile\n"},
    {POD("p", .node = S("n"), .phase = S("Running")), ""}, /* it asks for no card */
    {PLAIN("p", "x"), "FAIL pod/ns/p: its request is not valid: container \"m0\": "},
    {PLAIN("p", "8", .unknown = S("cardpack.io/odd")),
     "WARN pod/ns/p: annotation cardpack.io/odd has no effect: cardpack does not know it\n"},
    {PLAIN("p", "8", .idx = S("0")),
     "WARN pod/ns/p: it is not bound, and has the annotation ALIYUN_COM_GPU_MEM_IDX of a bound "
     "pod\n"},
    {PLAIN("p", "8", .former.allocation = true),
     "WARN pod/ns/p: it is not bound, and has the annotation "
     "scheduler.framework.gpushare.allocation of a bound pod\n"},
    {PLAIN("p", "8", .node = S("n"), .phase = S("Running")),
     "FAIL pod/ns/p: bound to node n without a card: it was not scheduled through cardpack\n"},
    {PLAIN("p", "8", .node = S("n"), .idx = S("x"), .phase = S("Running")),
     "FAIL pod/ns/p: its annotations name no card: ALIYUN_COM_GPU_MEM_IDX is \"x\"\n"},
    {PLAIN("p", "8", AT(7)),
     "FAIL pod/ns/p: its annotations name card 7, which node n does not have\n"},
    {PLAIN("p", "17", AT(1)), "FAIL pod/ns/p: it holds 17 of card 1 of node n, which has 16\n"},
    {PLAIN("p", "8", AT(1), .assigned = S("false")),
     "WARN pod/ns/p: it runs, and the device plugin has not acknowledged it: "
     "ALIYUN_COM_GPU_MEM_ASSIGNED is \"false\"\n"},
    {PLAIN("p", "8", .node = S("n"), .idx = S("1"), .phase = S("Pending"), .assigned = S("false"),
           LATE),
     "WARN pod/ns/p: bound 16 minutes ago, and the device plugin has not acknowledged it\n"},
    {PLAIN("p", "8", .node = S("n"), .idx = S("1"), .phase = S("Pending"), .assigned = S("false"),
           EARLY),
     ""},
    {PLAIN("p", "8", .node = S("gone"), .idx = S("0")),
     "WARN pod/ns/p: bound to node gone, which does not exist\n"},
    {PLAIN("p", "8", .node = S("cpu"), .idx = S("0")),
     "WARN pod/ns/p: node cpu has no resource of gpushare, so the kubelet gave the pod no card, "
     "and it "
     "holds none\n"},
};

TEST_EACH(checks_pods, COUNT_OF(pods))
{
    struct node_view n = TWO_CARDS;
    struct node_view cpu = {.name = S("cpu")};
    set_node(&rig, n);
    set_node(&rig, cpu);
    set_pod(&rig, pods[_i].pod);
    doctor_pod(&found, &rig.cache, NULL, &pods[_i].pod, false, NOW);
    is_found(pods[_i].found);
    ck_assert_uint_eq(found.n, pods[_i].found[0] == '\0' ? 0 : 1);
}

static const struct {
    uint32_t card;
    uint64_t used_mib;
    const char *found;
} uses[] = {
    {1, 0, ""},
    {0, 0, ""},
    {1, 8192, ""},
    {1, 8193,
     "WARN pod/ns/p: it uses 8193 MiB of card 1 of node n, and that is more than its share\n"},
    {0, 300,
     "FAIL pod/ns/p: its processes use 300 MiB of card 0 of node n, which its annotations do not "
     "name\n"},
};

TEST_EACH(checks_what_pods_really_use, COUNT_OF(uses))
{
    struct node_view n = TWO_CARDS;
    struct pod_view p = PLAIN("p", "8", AT(1), .assigned = S("true"));
    struct usage_card cards[] = {{0, 300, 16384, 0}, {1, 9000, 16384, 0}};
    struct usage_pod pod = {p.uid, p.namespace, p.name, uses[_i].card, uses[_i].used_mib};
    struct usage_view view = {.cards = cards, .n_cards = 2, .pods = &pod, .n_pods = 1};
    struct measured m;
    set_node(&rig, n);
    set_pod(&rig, p);
    measured_init(&m, (struct map_seed){1, 2}, 0);
    ck_assert_int_eq(measured_set(&m, n.name, &view, 1, 1), OK);
    doctor_pod(&found, &rig.cache, &m, &p, false, NOW);
    ck_assert_str_eq(findings(), uses[_i].found);
    measured_done(&m);
}

/* What cardpack-node has compared with the kubelet's list. */
TEST(tells_what_the_kubelet_lists)
{
    struct doctor_listed_sum sum = {.nodes = 0};
    struct usage_difference d[] = {
        {S("ns"), S("p"), S("c"), USAGE_DIFFERS_CARDS, S("0"), S("1")},
        {S("ns"), S("q"), S("c"), USAGE_DIFFERS_NONE, S("0,2"), S("")},
        {S("ns"), S("r"), S("c"), USAGE_DIFFERS_OWNER, S(""), S("")},
        {S("ns"), S("s"), S("c"), USAGE_DIFFERS_CARDS, S(""), S("0,1")},
    };
    struct usage_view view = {.seen = S("2026-11-25T19:20:00Z")};
    doctor_listed(&found, STR("old"), &view, &sum);
    doctor_tell_listed(&found, &sum);
    ck_assert_str_eq(findings(), ""); /* no cardpack-node asks the kubelet */
    view.asked = true;
    view.compared = 12;
    doctor_listed(&found, STR("n1"), &view, &sum);
    doctor_tell_listed(&found, &sum);
    ck_assert_str_eq(findings(), "OK podresources: the kubelet of 1 node lists devices for 12 "
                                 "containers, of the cards that the annotations name\n");
    found.n = 0;
    memset(found.counts, 0, sizeof(found.counts));
    doctor_listed(&found, STR("n2"), &view, &sum);
    doctor_tell_listed(&found, &sum);
    ck_assert_str_eq(findings(), "OK podresources: the kubelets of 2 nodes list devices for 24 "
                                 "containers, of the cards that the annotations name\n");
    found.n = 0;
    memset(found.counts, 0, sizeof(found.counts));
    view.differences = d;
    view.n_differences = COUNT_OF(d);
    doctor_listed(&found, STR("n3"), &view, &sum);
    doctor_tell_listed(&found, &sum);
    ck_assert_str_eq(
        findings(),
        "FAIL pod/ns/p: container c: its annotations name card 0, and the devices that it has by "
        "the kubelet's podresources are of card 1 of node n3\n"
        "FAIL pod/ns/q: container c: its annotations name cards 0,2, and the kubelet's "
        "podresources on node n3 have no device for it\n"
        "FAIL pod/ns/r: container c: by the kubelet's podresources on node n3 it has devices that "
        "are not its pod's by the kubelet's checkpoint\n"
        "FAIL pod/ns/s: container c: its annotations name no card, and the devices that it has by "
        "the kubelet's podresources are of cards 0,1 of node n3\n");
}

TEST(checks_the_use_of_cards)
{
    struct node_view n = TWO_CARDS;
    doctor_usage(&found, &rig.cache);
    ck_assert_str_eq(findings(), "FAIL nodes: no node has aliyun.com/gpu-mem and cards\n");
    found.n = 0;
    memset(found.counts, 0, sizeof(found.counts));
    set_node(&rig, n);
    set_pod(&rig, (struct pod_view)PLAIN("a", "9", AT(0)));
    set_pod(&rig, (struct pod_view)PLAIN("b", "8", AT(0)));
    set_pod(&rig, (struct pod_view)PLAIN("c", "16", AT(1)));
    doctor_usage(&found, &rig.cache);
    ck_assert_str_eq(findings(),
                     "FAIL node/n: card 0 holds 17 of 16\nOK nodes: 1 node with 2 cards\n");
}

#define LABELS(k, v) \
    .labels = LIST_OF(struct label_view, {S(k), S(v)}), .n_labels = 1, .phase = S("Running")

static const struct pod_view running[] = {
    POD("plugin", LABELS("component", "gpushare-device-plugin"), .node = S("n")),
    POD("agent", LABELS("app.kubernetes.io/name", "cardpack-node"), .node = S("n"), .ready = true),
    POD("cardpack-1", LABELS("app.kubernetes.io/name", "cardpack")),
    POD("gpushare-schd-extender-x", .phase = S("Running")),
    POD("gpushare-schd-extender-y", .phase = S("Pending")),
    POD("web", LABELS("app", "web"), .node = S("n")),
};

TEST(knows_what_runs)
{
    struct doctor_system s = {.namespace = STR("ns")};
    struct node_view n = TWO_CARDS;
    struct node_view m = {.name = S("m"), .mem = S("16"), .count = S("1")};
    struct doctor_marks marks[] = {{.node = STR("n"), .table = true}, {.node = STR("m")}};
    set_node(&rig, n);
    doctor_system(&found, &s, &rig.cache);
    is_found("WARN device plugin: no pod with the label component=gpushare-device-plugin");
    for (size_t i = 0; i < COUNT_OF(running); i++)
        doctor_system_take(&s, &running[i], &arena);
    ck_assert_uint_eq(s.n_plugins, 2);
    ck_assert_uint_eq(s.n_replicas, 1);
    ck_assert_uint_eq(s.n_leaders, 0);
    set_node(&rig, m);
    for (size_t i = 0; i < COUNT_OF(marks); i++)
        doctor_plugins_mark(&s, &marks[i], &arena);
    doctor_system(&found, &s, &rig.cache);
    is_found("FAIL gpushare-schd-extender: gpushare's extender runs beside cardpack, as "
             "pod/ns/gpushare-schd-extender-x: ");
    is_found("FAIL node/n: 2 pods of device plugins run there, for the same resource\n");
    is_found("WARN node/m: it has cards, and no pod of a device plugin runs there\n");
    ck_assert_uint_eq(found.n, 4);
}

#define AGENT(state, is_ready)                                                                   \
    {                                                                                            \
        .namespace = S("ns"), .name = S("p"), .node = S("n"), .phase = S(state),                 \
        .ready = (is_ready),                                                                     \
        .labels = LIST_OF(struct label_view, {S("app.kubernetes.io/name"), S("cardpack-node")}), \
        .n_labels = 1                                                                            \
    }
#define PAUSED                                                                                   \
    "WARN node/n: the label nvidia.com/mig.config.state=pending is to keep cardpack-node away: " \
    "no new container gets a card there\n"
#define GPUSHARES POD("p", LABELS("component", "gpushare-device-plugin"), .node = S("n"))

static const struct {
    struct doctor_marks marks;
    struct pod_view pod;
    const char *found;
} plugins[] = {
    {{.ours = true, .table = true}, AGENT("Running", true), ""},
    {{.gpushare = true}, GPUSHARES, ""},
    {{.gpushare = true, .ours = true},
     GPUSHARES,
     "WARN node/n: it has both labels, gpushare=true and cardpack.io/node=true: cardpack-node does "
     "not run there\n"},
    {{.ours = true},
     GPUSHARES,
     "FAIL node/n: it has the label cardpack.io/node=true, and no pod of cardpack-node\n"},
    {{.ours = true, .table = true, .paused = S("nvidia.com/mig.config.state=pending")},
     GPUSHARES,
     PAUSED},
    {{.ours = true, .table = true, .paused = S("nvidia.com/mig.config.state=pending")},
     AGENT("Running", true), /* it has not left the node yet */
     PAUSED},
    {{.ours = true},
     AGENT("Running", true),
     "FAIL node/n: cardpack-node is there, and the node has no annotation cardpack.io/cards\n"},
    {{.ours = true, .table = true},
     AGENT("Running", false),
     "FAIL pod/ns/p: cardpack-node on node n is not ready: no new container gets a card there\n"},
    {{.ours = true, .table = true},
     AGENT("Pending", false),
     "FAIL pod/ns/p: cardpack-node on node n does not run: no new container gets a card there\n"},
    {{.table = true},
     AGENT("Failed", false),
     "FAIL node/n: it has a table of cards, no device plugin, and not the label "
     "cardpack.io/node=true by which cardpack-node runs there\n"
     "WARN device plugin: no pod with the label component=gpushare-device-plugin or "
     "app.kubernetes.io/name=cardpack-node runs\n"},
};

TEST_EACH(checks_device_plugins, COUNT_OF(plugins))
{
    struct doctor_system s = {.namespace = STR("ns")};
    struct doctor_marks marks = plugins[_i].marks;
    struct node_view n = TWO_CARDS;
    marks.node = STR("n");
    set_node(&rig, n);
    doctor_plugins_mark(&s, &marks, &arena);
    doctor_plugins_take(&s, &plugins[_i].pod, &arena);
    doctor_plugins(&found, &s, &rig.cache);
    ck_assert_str_eq(findings(), plugins[_i].found);
}

/* Who may create pods in a namespace may give them each name and label. */
#define OF_TENANT(...)                                                       \
    {                                                                        \
        .uid = S("t"), .namespace = S("tenant"), .name = S("t"), __VA_ARGS__ \
    }
#define IS_AGENT  LABELS("app.kubernetes.io/name", "cardpack-node"), .ready = true
#define IS_PLUGIN LABELS("component", "gpushare-device-plugin")
#define LIKE_AGENT                                                                                \
    "WARN pod/tenant/t: it has the labels of cardpack-node, and is not in kube-system or ns: it " \
    "does not count\n"
#define LIKE_PLUGIN                                                                    \
    "WARN pod/tenant/t: it has the labels of gpushare's device plugin, and is not in " \
    "kube-system or ns: it does not count\n"

static const struct {
    struct doctor_marks marks;
    struct pod_view pods[2];
    const char *found;
} strangers[] = {
    {{.ours = true, .table = true}, /* a cardpack-node of a third namespace, or nothing */
     {OF_TENANT(IS_AGENT, .node = S("n"))},
     "WARN node/n: it has the label cardpack.io/node=true, and no pod of "
     "cardpack-node\n" LIKE_AGENT},
    {{.ours = true, .table = true}, /* cardpack-node runs on another node */
     {OF_TENANT(IS_AGENT, .node = S("n")), POD("a", IS_AGENT, .node = S("m"))},
     "FAIL node/n: it has the label cardpack.io/node=true, and no pod of "
     "cardpack-node\n" LIKE_AGENT},
    {{.ours = true, .table = true},
     {OF_TENANT(IS_PLUGIN, .node = S("n")), POD("a", IS_AGENT, .node = S("n"))},
     LIKE_PLUGIN},
    {{.ours = true, .table = true},
     {OF_TENANT(IS_AGENT, .node = S("n")), POD("a", IS_AGENT, .node = S("n"))},
     LIKE_AGENT},
    {{.gpushare = true},
     {OF_TENANT(IS_AGENT, .node = S("n")), POD("p", IS_PLUGIN, .node = S("n"))},
     LIKE_AGENT},
    {{.ours = true, .table = true}, /* one that has no node yet */
     {OF_TENANT(IS_AGENT), POD("a", IS_AGENT, .node = S("n"))},
     ""},
    {{.table = true},
     {OF_TENANT(IS_PLUGIN, .node = S("n"))},
     "WARN node/n: it has a table of cards, no device plugin, and not the label "
     "cardpack.io/node=true by which cardpack-node runs there\n" LIKE_PLUGIN},
    {{.table = true},
     {OF_TENANT(IS_PLUGIN, .node = S("n")), POD("p", IS_PLUGIN, .node = S("m"))},
     "FAIL node/n: it has a table of cards, no device plugin, and not the label "
     "cardpack.io/node=true by which cardpack-node runs there\n" LIKE_PLUGIN},
    {{.gpushare = true},
     {OF_TENANT(LABELS("component", "gpushare-schd-extender")),
      {.namespace = S("kube-system"), .name = S("p"), IS_PLUGIN, .node = S("n")}},
     "WARN pod/tenant/t: it has the name or the label of gpushare's extender, and is not in "
     "kube-system or ns: it does not count\n"},
    {{.gpushare = true},
     {{.namespace = S("kube-system"), .name = S("gpushare-schd-extender-x"), .phase = S("Running")},
      {.namespace = S("kube-system"), .name = S("p"), IS_PLUGIN, .node = S("n")}},
     "FAIL gpushare-schd-extender: gpushare's extender runs beside cardpack, as "
     "pod/kube-system/gpushare-schd-extender-x: two extenders give the same memory to two pods\n"},
};

TEST_EACH(a_pod_of_a_third_namespace_is_no_program, COUNT_OF(strangers))
{
    struct doctor_system s = {.namespace = STR("ns")};
    struct doctor_marks marks = strangers[_i].marks;
    struct node_view n = TWO_CARDS;
    marks.node = STR("n");
    set_node(&rig, n);
    doctor_plugins_mark(&s, &marks, &arena);
    for (size_t i = 0; i < COUNT_OF(strangers[_i].pods); i++)
        doctor_system_take(&s, &strangers[_i].pods[i], &arena);
    doctor_system(&found, &s, &rig.cache);
    ck_assert_str_eq(findings(), strangers[_i].found);
}

/* The Service selects pods of its own namespace alone. */
TEST(a_leader_is_where_the_service_is)
{
    static const struct label_view labels[] = {{S("app.kubernetes.io/name"), S("cardpack")},
                                               {S("cardpack.io/leader-of"), S("cardpack")}};
    struct pod_view v = {
        .name = S("c"), .phase = S("Running"), .labels = labels, .n_labels = COUNT_OF(labels)};
    struct doctor_system s = {.namespace = STR("ns")};
    v.namespace = STR("tenant");
    doctor_system_take(&s, &v, &arena);
    v.namespace = STR("kube-system");
    doctor_system_take(&s, &v, &arena);
    ck_assert_uint_eq(s.n_replicas + s.n_leaders, 0);
    v.namespace = STR("ns");
    doctor_system_take(&s, &v, &arena);
    ck_assert_uint_eq(s.n_replicas, 1);
    ck_assert_uint_eq(s.n_leaders, 1);
}

#define READY .asked = true, .through_service = true, .ready = S("ok")

static const struct {
    struct doctor_daemon daemon;
    size_t leaders;
    const char *found;
} daemons[] = {
    {{.asked = false}, 0, ""},
    {{READY, .version = S(CARDPACK_VERSION "\n")},
     1,
     "OK cardpack: ready: ok\nOK cardpack: version " CARDPACK_VERSION ", as this program\n"
     "OK service/cardpack: the leader is pod c\n"},
    {{READY, .version = S("0.0.1")},
     1,
     "WARN cardpack: cardpack has version 0.0.1, and this program " CARDPACK_VERSION "\n"},
    {{READY},
     0,
     "FAIL service/cardpack: no pod of cardpack has the label cardpack.io/leader-of, by which the "
     "Service finds the leader\n"},
    {{READY}, 2, "WARN service/cardpack: 2 pods have the leader's label"},
    {{.asked = true, .through_service = true, .no_service = true, .fault = {ERR_UNAVAILABLE, "x"}},
     0,
     "WARN cardpack: not asked whether it is ready: the Service does not exist\n"},
    {{.asked = true, .through_service = true, .denied = true, .fault = {ERR_UNAVAILABLE, "why"}},
     1,
     "WARN cardpack: not asked whether it is ready: why\n"},
    {{.asked = true, .fault = {ERR_UNAVAILABLE, "503: no"}},
     0,
     "FAIL cardpack: not reachable or not ready: 503: no\n"},
};

TEST_EACH(checks_cardpack, COUNT_OF(daemons))
{
    struct doctor_system s = {
        .leader = STR("c"), .n_leaders = daemons[_i].leaders, .n_replicas = 2};
    doctor_daemon(&found, &s, &daemons[_i].daemon);
    is_found(daemons[_i].found);
}

#define HEAD "kind: KubeSchedulerConfiguration\n"
#define URL  "extenders:\n- urlPrefix: http://h/gpushare-scheduler\n"
#define GOOD HEAD URL "  filterVerb: filter\n  bindVerb: bind\n  nodeCacheCapable: true\n"
#define AT_S "configmap/kube-system/s: "

static const struct {
    const char *text;
    bool is;
    const char *found;
} schedulers[] = {
    {"", false, ""},
    {"kind: Policy\n", false, ""},
    {HEAD, true, "WARN " AT_S "this configuration of kube-scheduler has no extender"},
    {HEAD "extenders:\n- urlPrefix: http://h/other\n", true, "WARN " AT_S "this configuration"},
    {HEAD "- {\n", true, "FAIL " AT_S "kube-scheduler's configuration cannot be read: "},
    {GOOD "  prioritizeVerb: p\n  managedResources: [{name: aliyun.com/gpu-mem}]\n", true,
     "OK " AT_S "kube-scheduler's configuration calls http://h/gpushare-scheduler\n"},
    {GOOD "  prioritizeVerb: p\n", true, "OK "},
    {GOOD "  managedResources: [{name: nvidia.com/gpu}]\n", true,
     "lacks aliyun.com/gpu-mem: cardpack is not asked\n"},
    {GOOD, true, "WARN " AT_S "the extender has no prioritizeVerb"},
    {GOOD "  ignorable: true\n", true, "WARN " AT_S "ignorable is true: "},
    {HEAD URL "  filterVerb: filter\n", true, "has no bindVerb: pods get no card\n"},
    {HEAD URL "  bindVerb: bind\n", true, "has no filterVerb: pods get no card\n"},
    {HEAD URL, true, "WARN " AT_S "nodeCacheCapable is not true: "},
};

TEST_EACH(checks_the_configuration_of_kube_scheduler, COUNT_OF(schedulers))
{
    ck_assert(doctor_scheduler(&found, STR("s"), str_of(schedulers[_i].text)) == schedulers[_i].is);
    is_found(schedulers[_i].found);
}

/* However many mistakes the authors of pods make, what is said of a program is shown. */
TEST(pods_do_not_hide_a_program)
{
    struct doctor_system s = {.namespace = STR("ns"), .extender = STR("pod/ns/x")};
    struct str pod = finding_pod(&found, STR("tenant"), STR("t"));
    for (size_t i = 0; i < 20000; i++)
        finding_add(&found, FINDING_FAIL, pod, "correct it", "it is wrong");
    size_t of_pods = found.n;
    doctor_system(&found, &s, &rig.cache);
    ck_assert_uint_ge(of_pods, 9000);
    ck_assert_uint_gt(found.n, of_pods);
    ck_assert_uint_eq(found.counts[FINDING_FAIL], 20001);
    ck_assert(str_eq(found.items[of_pods].object, STR("gpushare-schd-extender")));
}

TEST(shows_the_gravest_first)
{
    char bytes[1024];
    struct buf out = BUF_ON(bytes);
    struct err e = ERR_INIT;
    finding_add(&found, FINDING_OK, STR("a"), "", "well");
    finding_add(&found, FINDING_FAIL, STR("b"), "mend it", "%d broken", 2);
    finding_add(&found, FINDING_WARN, STR("c"), "look", "odd");
    ck_assert_ok(kubectl_doctor_show(&found, (struct kubectl_look){.heads = true}, &out, &e), &e);
    ck_assert_str_eq(buf_cstr(&out), "RESULT   OBJECT   FINDING    WHAT TO DO\n"
                                     "FAIL     b        2 broken   mend it\n"
                                     "WARN     c        odd        look\n"
                                     "OK       a        well       -\n"
                                     "1 FAIL, 1 WARN, 1 OK\n");
    buf_clear(&out, SIZE_MAX);
    kubectl_doctor_write(&found, &out);
    ck_assert_str_eq(
        buf_cstr(&out),
        "{\"fail\":1,\"warn\":1,\"ok\":1,\"findings\":["
        "{\"result\":\"fail\",\"object\":\"b\",\"finding\":\"2 broken\",\"advice\":\"mend it\"},"
        "{\"result\":\"warn\",\"object\":\"c\",\"finding\":\"odd\",\"advice\":\"look\"},"
        "{\"result\":\"ok\",\"object\":\"a\",\"finding\":\"well\",\"advice\":\"\"}]}");
}

int main(void)
{
    TCase *tc = unit_case("doctor");
    tcase_add_checked_fixture(tc, setup, teardown);
    return unit_run();
}
