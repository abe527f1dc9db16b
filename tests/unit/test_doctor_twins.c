/*
 * Each FAIL of doctor, with an ill input that has it and a healthy one that is as like it as can
 * be: the healthy one has no FAIL at all. tests/house/advice.py checks that each text of a FAIL in
 * src/kubectl has its row here.
 */
#include "doctor_rig.h"

/* What doctor sees. Every check runs on it. */
struct scene {
    struct node_view node; /* "n"; without a name there is none */
    struct doctor_marks marks;
    struct pod_view pods[2];
    bool claims;       /* the pods have ResourceClaims */
    bool claimed;      /* a ResourceClaim holds card 1 of the node */
    uint32_t used_mib; /* by the first pod, of card 0, if the node has cardpack-node */
    enum usage_difference_kind differs; /* with .given: the container of the first pod */
    const char *given;
    struct doctor_daemon daemon;
    const char *scheduler; /* NULL: no configuration of it */
    const char *denied;    /* why the pods can't be listed; NULL: they can */
    unsigned reads;        /* the dialects; 0: all */
    bool torn;             /* an object of the list of pods can't be read */
};

#define TABLE                                                      \
    CARDS({.index = 0, .mem = 16, .numa = -1, .uuid = S("GPU-a")}, \
          {.index = 1, .mem = 16, .numa = -1, .uuid = S("GPU-b")})
#define WITH_TABLE .mem = S("32"), .count = S("2"), TABLE
#define GPUSHARE   NODE(.mem = S("32"), .count = S("2"))
#define OURS       NODE(WITH_TABLE)
#define VOLCANO    NODE(.of = {[DIALECT_VOLCANO] = {.mem = S("32"), .count = S("2")}})
#define ELASTIC    NODE(.of = {[DIALECT_ELASTIC] = {.mem = S("32"), .count = S("200")}})
#define TENCENT    NODE(.of = {[DIALECT_TENCENT] = {.mem = S("32"), .count = S("200")}})
#define VGPU       NODE(.of = {[DIALECT_VGPU] = {.count = S("20"), TABLE}})
#define HAMI       NODE(.of = {[DIALECT_HAMI] = {.count = S("20"), TABLE}})
#define NVIDIA     NODE(.of = {[DIALECT_HAMI] = {.count = S("8")}}, .exclusive = S("8"))

#define OF(d, ...)                                                                         \
    CONTAINERS(1, {.name = S("m0"), .kind = CONTAINER_MAIN, .of = {[d] = {__VA_ARGS__}}}), \
        .node = S("n"), .phase = S("Running")
#define VOLCANOS           OF(DIALECT_VOLCANO, .mem = S("8"))
#define ELASTICS           OF(DIALECT_ELASTIC, .mem = S("8"), .cores = S("10"))
#define TENCENTS           OF(DIALECT_TENCENT, .mem = S("8"), .cores = S("10"))
#define VGPUS              OF(DIALECT_VGPU, .mem = S("8"), .count = S("1"))
#define HAMIS              OF(DIALECT_HAMI, .mem = S("8"), .count = S("1"))
#define NVIDIAS            OF(DIALECT_HAMI, .count = S("1"))
#define SAID(d, text)      .said = {[d] = {.idx = S(text)}}
#define SEAT(d, its, text) .seats = LIST_OF(struct seat_view, {d, S(its), S(text)}), .n_seats = 1
#define BOUND              .node = S("n"), .phase = S("Running")

#define LABELLED(k, v) .labels = LIST_OF(struct label_view, {S(k), S(v)}), .n_labels = 1
#define AGENT(...)                                                                   \
    POD("agent", LABELLED("app.kubernetes.io/name", "cardpack-node"), .ready = true, \
        .node = S("n"), __VA_ARGS__)
#define PLUGIN(...) \
    POD("plugin", LABELLED("component", "gpushare-device-plugin"), BOUND, __VA_ARGS__)
#define REPLICA(...) \
    POD("cardpack-1", .phase = S("Running"), LABELLED("app.kubernetes.io/name", "cardpack"))
#define TENANTS(...)                                                         \
    {                                                                        \
        .uid = S("t"), .namespace = S("tenant"), .name = S("t"), __VA_ARGS__ \
    }
#define LEADER                                                                             \
    POD("cardpack-1", .phase = S("Running"),                                               \
        .labels = LIST_OF(struct label_view, {S("app.kubernetes.io/name"), S("cardpack")}, \
                          {S("cardpack.io/leader-of"), S("cardpack")}),                    \
        .n_labels = 2)

#define CONFIG                                                                                 \
    "kind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: http://h/gpushare-scheduler\n" \
    "  nodeCacheCapable: true\n  prioritizeVerb: p\n  filterVerb: f\n"
#define MANAGES(name) CONFIG "  bindVerb: b\n  managedResources: [{name: " name "}]\n"

static const struct {
    const char
        *text; /* as in the source: what it has in place of %s and its like is not compared */
    struct scene ill;
    struct scene well;
} twins[] = {
    /* ---- nodes ---- */
    {"no aliyun.com/gpu-mem in its capacity, although it has the %s",
     {.node = NODE(.count = S("2")), .marks = {.gpushare = true}},
     {.node = GPUSHARE, .marks = {.gpushare = true}}},
    {"aliyun.com/gpu-mem is 0 in its capacity: the kubelet has lost the device plugin",
     {.node = NODE(.mem = S("0"))},
     {.node =
          NODE(.of = {{.mem = S("0")}, [DIALECT_VOLCANO] = {.mem = S("32"), .count = S("2")}})}},
    {"%.*s %.*s, and no %.*s in its capacity", {.node = NODE(.mem = S("32"))}, {.node = GPUSHARE}},
    {"%.*s \"%.*s\" or %.*s \"%.*s\" is not usable",
     {.node = NODE(.mem = S("32"), .count = S("x"))},
     {.node = NODE(.mem = S("32"), .count = S("2"), .mem_allocatable = S("0"))}},
    {"annotation %s; no pod is placed there",
     {.node = NODE(.mem = S("32"), .has_cards = true, .cards_fault = "cardpack.io/cards: odd")},
     {.node = NODE(.has_cards = true, .cards_fault = "cardpack.io/cards: odd",
                   .of = {[DIALECT_VOLCANO] = {.mem = S("32"), .count = S("2")}})}},
    {"it offers %.*s beside its %.*s, and cardpack does not know what that is",
     {.node = NODE(.mem = S("32"), .count = S("2"), .unknown = S("nvidia.com/gpu-h100"))},
     {.node = NODE(.mem = S("32"), .count = S("2"), .unknown = S("nvidia.com/hostdev"))}},
    {"it offers %.*s beside its %.*s, and cardpack does not know what that is",
     {.node = NODE(.mem = S("32"), .count = S("2"), .unknown = S("nvidia.com/gpu-h100"))},
     {.node = NODE(.mem = S("32"), .count = S("2"), .unknown = S("nvidia.com/gpu-h100"),
                   .exclusive_cards = S("1"))}},
    {"card %u holds %lld of %lld",
     {.node = GPUSHARE, .pods = {PLAIN("p", "9", AT(0)), PLAIN("q", "8", AT(0))}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(0)), PLAIN("q", "8", AT(0))}}},
    {"card %u holds %lld of %lld", /* while the node changes its device plugin */
     {.node = HAMI,
      .pods = {POD("p", HAMIS, SAID(DIALECT_HAMI, "GPU-a,NVIDIA,9,0:;")),
               POD("q", HAMIS, SAID(DIALECT_HAMI, "GPU-a,NVIDIA,8,0:;"))}},
     {.node = GPUSHARE,
      .pods = {POD("p", VOLCANOS, SAID(DIALECT_VOLCANO, "0")), PLAIN("q", "8", AT(0))}}},
    {"no node has aliyun.com/gpu-mem and cards", {.node = NVIDIA}, {.node = VGPU}},
    {"label cardpack.io/dialect: \"%.*s\" is no dialect: no pod is placed there",
     {.node = NODE(.mem = S("32"), .count = S("2"), .dialect = S("volcan"))},
     {.node = NODE(.mem = S("32"), .count = S("2"), .dialect = S("gpushare"))}},
    {"label cardpack.io/dialect: \"%.*s\" is not among the dialects that are read: no pod is "
     "placed there",
     {.node = NODE(.mem = S("32"), .count = S("2"), .dialect = S("elastic")),
      .reads = DIALECT_BIT(DIALECT_GPUSHARE)},
     {.node = NODE(.mem = S("32"), .count = S("2"), .dialect = S("gpushare")),
      .reads = DIALECT_BIT(DIALECT_GPUSHARE)}},
    /* ---- DRA ---- */
    {"a ResourceClaim holds card %u, and %u pod%s",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .claimed = true},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(0))}, .claimed = true}},
    {"a ResourceClaim holds card %u, and %u pod%s", /* which card is not known without a table */
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .claimed = true},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(1))}, .claimed = true}},
    /* ---- pods ---- */
    {"its request is not valid: %s", {.pods = {PLAIN("p", "x")}}, {.pods = {PLAIN("p", "8")}}},
    {"its processes use %u MiB of card %u of node %.*s, which its annotations do not name",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .used_mib = 300},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(0))}, .used_mib = 300}},
    {"its processes use %u MiB of card %u of node %.*s, which its annotations do not name",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .used_mib = 300},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .used_mib = 300, .claims = true}},
    {"its processes use %u MiB of card %u of node %.*s, which its annotations do not name",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .used_mib = 300},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1), .vacated = S("0"))}, .used_mib = 300}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", BOUND)}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(0))}}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = VOLCANO, .pods = {POD("p", VOLCANOS)}},
     {.node = VOLCANO, .pods = {POD("p", VOLCANOS, SAID(DIALECT_VOLCANO, "0"))}}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = ELASTIC, .pods = {POD("p", ELASTICS)}},
     {.node = ELASTIC, .pods = {POD("p", ELASTICS, SEAT(DIALECT_ELASTIC, "m0", "1"))}}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = TENCENT, .pods = {POD("p", TENCENTS)}},
     {.node = TENCENT, .pods = {POD("p", TENCENTS, SEAT(DIALECT_TENCENT, "0", "1"))}}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = VGPU, .pods = {POD("p", VGPUS)}},
     {.node = VGPU, .pods = {POD("p", VGPUS, SAID(DIALECT_VGPU, "GPU-a,NVIDIA,8,0:"))}}},
    {"bound to node %.*s without a card: it was not scheduled through cardpack",
     {.node = HAMI, .pods = {POD("p", HAMIS)}},
     {.node = HAMI, .pods = {POD("p", HAMIS, SAID(DIALECT_HAMI, "GPU-b,NVIDIA,8,0:;"))}}},
    {"its annotations name no card: %.*s is \"%.*s\"",
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", BOUND, .idx = S("x"))}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(1))}}},
    {"its annotations name no card: %.*s is \"%.*s\"",
     {.node = ELASTIC, .pods = {POD("p", ELASTICS, SEAT(DIALECT_ELASTIC, "m1", "x"))}},
     {.node = ELASTIC, .pods = {POD("p", ELASTICS, SEAT(DIALECT_ELASTIC, "m0", "0"))}}},
    {"its annotation %.*s names a card by a UUID that node %.*s does not have",
     {.node = HAMI, .pods = {POD("p", HAMIS, SAID(DIALECT_HAMI, "GPU-c,NVIDIA,8,0:;"))}},
     {.node = HAMI, .pods = {POD("p", HAMIS, SAID(DIALECT_HAMI, "GPU-a[1-0],NVIDIA,8,0:;"))}}},
    {"its annotation %.*s names a card by a UUID that node %.*s does not have",
     {.node = VGPU, .pods = {POD("p", VGPUS, SAID(DIALECT_VGPU, "GPU-c,NVIDIA,8,0:"))}},
     {.node = VGPU, .pods = {POD("p", VGPUS, SAID(DIALECT_VGPU, ";GPU-b,NVIDIA,8,0:"))}}},
    {"its annotations name card %u, which node %.*s does not have",
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(2))}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(1))}}},
    {"its annotations name card %u, which node %.*s does not have",
     {.node = VOLCANO, .pods = {POD("p", VOLCANOS, SAID(DIALECT_VOLCANO, "2"))}},
     {.node = VOLCANO, .pods = {POD("p", VOLCANOS, SAID(DIALECT_VOLCANO, "1"))}}},
    {"it holds %lld of card %u of node %.*s, which has %lld",
     {.node = GPUSHARE, .pods = {PLAIN("p", "17", AT(1))}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "16", AT(1))}}},
    {"it holds %lld of card %u of node %.*s, which has %lld", /* its amount is in another unit */
     {.node = GPUSHARE, .pods = {PLAIN("p", "17", AT(1))}},
     {.node = GPUSHARE,
      .pods = {POD("p", OF(DIALECT_VOLCANO, .mem = S("8192")), SAID(DIALECT_VOLCANO, "1"))}}},
    {"bound to node %.*s, of which no cards are known",
     {.node = NODE(.mem = S("0"), .count = S("0")), .pods = {PLAIN("p", "8", AT(0))}},
     {.node = GPUSHARE, .pods = {PLAIN("p", "8", AT(0))}}},
    /* ---- what the kubelet lists ---- */
    {"container %.*s: its annotations name %s%.*s, and the devices that it has by the kubelet's "
     "podresources are of %s%.*s of node %.*s",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .differs = USAGE_DIFFERS_CARDS, .given = "0"},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}}},
    {"container %.*s: by the kubelet's podresources on node %.*s it has devices that are not its "
     "pod's by the kubelet's checkpoint",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .differs = USAGE_DIFFERS_OWNER, .given = ""},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}}},
    {"container %.*s: its annotations name %s%.*s, and the kubelet's podresources on node %.*s "
     "have "
     "no device for it",
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}, .differs = USAGE_DIFFERS_NONE, .given = ""},
     {.node = OURS, .pods = {PLAIN("p", "8", AT(1))}}},
    /* ---- device plugins ---- */
    {"it has the label cardpack.io/node=true, and no pod of cardpack-node",
     {.node = GPUSHARE, .marks = {.ours = true}, .pods = {PLUGIN()}},
     {.node = OURS,
      .marks = {.ours = true, .table = true},
      .pods = {AGENT(.phase = S("Running"), .deleting = true)}}},
    {"it has the label cardpack.io/node=true, and no pod of cardpack-node",
     {.node = OURS, .marks = {.ours = true, .table = true}},
     {.node = OURS, /* it may run in a namespace that is not known */
      .marks = {.ours = true, .table = true},
      .pods = {TENANTS(LABELLED("app.kubernetes.io/name", "cardpack-node"), BOUND)}}},
    {"it has a table of cards, no device plugin, and not the label cardpack.io/node=true by which "
     "cardpack-node runs there",
     {.node = OURS, .marks = {.table = true}, .pods = {AGENT(.phase = S("Failed"))}},
     {.node = NODE(TABLE, .of = {[DIALECT_VOLCANO] = {.mem = S("32"), .count = S("2")}}),
      .marks = {.table = true}}},
    {"cardpack-node is there, and the node has no annotation cardpack.io/cards",
     {.node = GPUSHARE, .marks = {.ours = true}, .pods = {AGENT(.phase = S("Running"))}},
     {.node = OURS,
      .marks = {.ours = true, .table = true},
      .pods = {AGENT(.phase = S("Running"))}}},
    {"%zu pods of device plugins run there, for the same resource",
     {.node = OURS, .marks = {.table = true}, .pods = {PLUGIN(), AGENT(.phase = S("Running"))}},
     {.node = OURS,
      .marks = {.table = true},
      .pods = {PLUGIN(.deleting = true), AGENT(.phase = S("Running"))}}},
    {"%zu pods of device plugins run there, for the same resource",
     {.node = OURS, .marks = {.table = true}, .pods = {PLUGIN(), AGENT(.phase = S("Running"))}},
     {.node = OURS,
      .marks = {.ours = true, .table = true},
      .pods = {TENANTS(LABELLED("component", "gpushare-device-plugin"), BOUND),
               AGENT(.phase = S("Running"))}}},
    {"cardpack-node on node %.*s %s: no new container gets a card there",
     {.node = OURS, .marks = {.ours = true, .table = true}, .pods = {AGENT(.phase = S("Pending"))}},
     {.node = OURS,
      .marks = {.ours = true, .table = true},
      .pods = {AGENT(.phase = S("Pending"), .deleting = true)}}},
    /* ---- programs ---- */
    {"gpushare's extender runs beside cardpack, as %.*s: two extenders give the same memory to two "
     "pods",
     {.pods = {POD("gpushare-schd-extender-x", .phase = S("Running"))}},
     {.pods = {POD("gpushare-schd-extender-x", .phase = S("Running"), .deleting = true)}}},
    {"gpushare's extender runs beside cardpack, as %.*s: two extenders give the same memory to two "
     "pods",
     {.pods = {POD("gpushare-schd-extender-x", .phase = S("Running"))}},
     {.pods = {TENANTS(LABELLED("component", "gpushare-schd-extender"), BOUND)}}},
    {"no pod of cardpack has the label cardpack.io/leader-of, by which the Service finds the "
     "leader",
     {.pods = {REPLICA()}, .daemon = {.asked = true, .through_service = true, .ready = S("ok")}},
     {.pods = {LEADER}, .daemon = {.asked = true, .through_service = true, .ready = S("ok")}}},
    {"not reachable or not ready: %s",
     {.daemon = {.asked = true, .fault = {ERR_UNAVAILABLE, "503"}}},
     {.daemon = {.asked = true,
                 .through_service = true,
                 .no_service = true,
                 .fault = {ERR_UNAVAILABLE, "404"}}}},
    {"the extender %.*s has no %s: pods get no card",
     {.scheduler = CONFIG},
     {.scheduler = CONFIG "  bindVerb: b\n"}},
    {"managedResources of the extender %.*s lacks aliyun.com/gpu-mem: cardpack is not asked",
     {.scheduler = MANAGES("nvidia.com/gpu")},
     {.scheduler = MANAGES("aliyun.com/gpu-mem")}},
    {"managedResources of the extender %.*s lacks aliyun.com/gpu-mem: cardpack is not asked",
     {.scheduler = MANAGES("example.com/x")},
     {.scheduler = MANAGES("volcano.sh/vgpu-memory")}},
    {"kube-scheduler's configuration cannot be read: %s",
     {.scheduler = "kind: KubeSchedulerConfiguration\n- {\n"},
     {.scheduler = "kind: KubeSchedulerConfiguration\n"}},
    /* ---- lists ---- */
    {"they are not checked: %s", {.denied = "403"}, {.denied = NULL}},
    {"an object cannot be read: cardpack does not know what it holds",
     {.torn = true},
     {.torn = false}},
};

/* The next %...x of a printf format; its length. */
static size_t conversion(const char *at)
{
    size_t n = 1 + strspn(at + 1, ".*0123456789lzh");
    return n + 1;
}

/* Whether what was printed with the format is the text. */
static bool is_like(struct str text, const char *format)
{
    while (*format != '\0') {
        size_t n = strcspn(format, "%");
        struct str piece = {format, n};
        while (text.n >= n && !str_starts(text, piece))
            text = str_skip(text, 1);
        if (text.n < n)
            return false;
        text = str_skip(text, n);
        format += n;
        format += *format == '%' ? conversion(format) : 0;
    }
    return true;
}

static void play_node(const struct scene *s, struct doctor_system *system, struct measured *m)
{
    struct usage_card card = {0, s->used_mib, 16384, 0};
    struct usage_pod pod = {s->pods[0].uid, s->pods[0].namespace, s->pods[0].name, 0, s->used_mib};
    struct usage_view view = {.cards = &card, .n_cards = 1, .pods = &pod, .n_pods = 1};
    struct doctor_marks marks = s->marks;
    if (s->node.name.n == 0)
        return;
    set_node(&rig, s->node);
    marks.node = s->node.name;
    doctor_plugins_mark(system, &marks, &arena);
    if (s->used_mib > 0)
        ck_assert_int_eq(measured_set(m, s->node.name, &view, 1, 1), OK);
    const struct node *known = cache_node(&rig.cache, s->node.name);
    doctor_dialect(&found, &s->node, known);
    doctor_node(&found, &s->node, known, &s->marks, NOW);
}

static void play_pods(const struct scene *s, struct doctor_system *system, const struct measured *m)
{
    struct doctor_listed_sum sum = {.nodes = 0};
    struct usage_difference d = {s->pods[0].namespace, s->pods[0].name, S("m0"),
                                 s->differs,           S("1"),          str_of(s->given)};
    struct usage_view view = {
        .asked = true, .differences = &d, .n_differences = s->given == NULL ? 0 : 1};
    for (size_t i = 0; i < COUNT_OF(s->pods) && s->pods[i].uid.n > 0; i++) {
        set_pod(&rig, s->pods[i]);
        doctor_system_take(system, &s->pods[i], &arena);
        doctor_pod(&found, &rig.cache, m, &s->pods[i], s->claims, NOW);
    }
    doctor_listed(&found, STR("n"), &view, &sum);
}

/* Without a table of cards a claim takes all of them. */
static void claim_card_1(const struct scene *s)
{
    struct node_claimed to = {.delegated = false};
    card_set_add(&to.whole, 1);
    if (!s->node.has_cards)
        card_set_add(&to.whole, 0);
    (void)node_set_claimed(map_get(&rig.cache.nodes, s->node.name), &to);
}

/* As kubectl_doctor does it, from the nodes to the programs. */
static void play(const struct scene *s)
{
    struct doctor_system system = {.namespace = STR("ns")};
    struct measured m;
    dialects_use(s->reads == 0 ? DIALECTS_ALL : s->reads);
    measured_init(&m, (struct map_seed){1, 2}, 0);
    play_node(s, &system, &m);
    play_pods(s, &system, &m);
    if (s->claimed)
        claim_card_1(s);
    doctor_daemon(&found, &system, &s->daemon);
    doctor_system(&found, &system, &rig.cache);
    if (s->scheduler != NULL)
        (void)doctor_scheduler(&found, STR("s"), str_of(s->scheduler));
    if (s->denied != NULL || s->torn)
        doctor_list(&found, STR("pods"), CACHE_PODS, s->denied);
    if (s->node.name.n > 0)
        doctor_usage(&found, &rig.cache);
    measured_done(&m);
}

TEST_EACH(an_ill_one_fails, COUNT_OF(twins))
{
    bool fails = false;
    play(&twins[_i].ill);
    for (size_t i = 0; i < found.n; i++)
        fails = fails || (found.items[i].level == FINDING_FAIL &&
                          is_like(found.items[i].text, twins[_i].text));
    ck_assert_msg(fails, "%s\nnot\n%s", findings(), twins[_i].text);
}

TEST_EACH(a_healthy_one_does_not, COUNT_OF(twins))
{
    play(&twins[_i].well);
    ck_assert_msg(found.counts[FINDING_FAIL] == 0, "%s", findings());
}

/* Healthy scenes that have no ill twin. */
static const struct scene healthy[] = {
    {.node = NVIDIA, .pods = {POD("p", NVIDIAS)}, .claims = true},
    {.node = HAMI, .pods = {POD("p", NVIDIAS, SAID(DIALECT_HAMI, "GPU-a,NVIDIA,16,0:;"))}},
    {.node = TENCENT,
     .pods = {POD("p",
                  CONTAINERS(1, {.name = S("m0"),
                                 .kind = CONTAINER_MAIN,
                                 .of = {[DIALECT_TENCENT] = {.mem = S("8"), .cores = S("10")}}}),
                  .node = S("n"), .phase = S("Pending"))}},
    {.pods = {PLAIN("p", "8", AT(0))}}, /* on a node that does not exist at present */
};

/* A node of NVIDIA's alone has no shared cards: the other findings are about that. */
TEST_EACH(a_healthy_pod_is_not_to_be_deleted, COUNT_OF(healthy))
{
    play(&healthy[_i]);
    for (size_t i = 0; i < found.n; i++)
        ck_assert_msg(found.items[i].level != FINDING_FAIL ||
                          str_eq(found.items[i].object, STR("nodes")),
                      "%s", findings());
}

/* Before a pod or a claim is deleted there is something to look at. */
TEST_EACH(each_deletion_has_its_condition, COUNT_OF(twins))
{
    static const char *const conditions[] = {"if ",    "else ",    "look ",
                                             "check ", "compare ", "find out "};
    play(&twins[_i].ill);
    for (size_t i = 0; i < found.n; i++) {
        const char *advice = found.items[i].advice;
        const char *deletion = strstr(advice, "delete ");
        bool is_sure = deletion == NULL;
        for (size_t k = 0; k < COUNT_OF(conditions) && !is_sure; k++) {
            const char *condition = strstr(advice, conditions[k]);
            is_sure = condition != NULL && condition < deletion;
        }
        ck_assert_msg(is_sure, "%s", advice);
    }
}

int main(void)
{
    TCase *tc = unit_case("doctor_twins");
    tcase_add_checked_fixture(tc, setup, teardown);
    return unit_run();
}
