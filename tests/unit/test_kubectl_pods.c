/* kubectl cardpack pods: lists in pages, and what a row says of each kind of pod. */
#include "base/limit.h"
#include "fail_alloc.h"
#include "kubectl/card_pods.h"
#include "objects/stamp.h"
#include "script_server.h"
#include "unit.h"
#include "json/jprint.h"

#include <time.h>

#define NOW 1795326000U /* 2026-11-22T05:40:00Z */

#define LIST(meta, items)                                                                          \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"" meta "},\"items\":[" items "]" \
    "}"
#define ASKS \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}]"
#define HELD                                                                                 \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"held\",\"creationTimestamp\":"           \
    "\"2026-11-19T05:40:00Z\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"1\"}},\"spec\":" \
    "{\"nodeName\":\"n1\"," ASKS "},\"status\":{\"phase\":\"Running\"}}"
#define WAITS                                                                          \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"waits\",\"creationTimestamp\":"    \
    "\"2026-11-22T05:37:30Z\"},\"spec\":{" ASKS "},\"status\":{\"phase\":\"Pending\"," \
    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"      \
    "\"Unschedulable\","                                                               \
    "\"message\":\"0/1 nodes are available\"}]}}"
#define PLAIN "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"web\"},\"spec\":{\"containers\":[]}}"

static struct arena arena;
static struct buf out;
static struct err err;
static struct kubectl_args args;
static struct kubectl_client client;
static struct script_server server;
static struct card_pods pods;
static bool is_measuring;

static void setup(void)
{
    arena_init(&arena, 16 * MIB);
    buf_init(&out, MIB);
    err = (struct err)ERR_INIT;
    is_measuring = false;
    args = kubectl_args_defaults();
    client = (struct kubectl_client){.args = &args};
    ck_assert_ok(loop_new(&client.loop, &err), &err);
}

static void teardown(void)
{
    kubectl_client_close(&client);
    buf_done(&out);
    arena_done(&arena);
}

static enum errc read_pods(const struct script_step *steps, size_t n, struct str namespace,
                           struct str selector)
{
    char url[64];
    script_start(&server, client.loop, steps, n);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", server.port);
    struct kubeconfig config = {.server = str_of(url)};
    struct kube_api_settings s = {.config = &config, .user_agent = STR("test")};
    ck_assert_ok(kube_api_new(client.loop, &s, &client.api, &err), &err);
    enum errc code = kubectl_pods_read(&client, namespace, selector, &arena, &pods, &err);
    if (code == OK && is_measuring)
        code = kubectl_pods_measure(&client, &pods, &err);
    ck_assert_uint_eq(server.n_requests, n);
    script_stop(&server);
    return code;
}

static const char *table(bool wide)
{
    struct kubectl_look look = {.wide = wide, .heads = true};
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_pods_show(&pods, look, NOW, &arena, &out, &err), &err);
    return buf_cstr(&out);
}

#define PATH_NS                                                                   \
    "GET /api/v1/namespaces/ns/pods?fieldSelector=status.phase%21%3DSucceeded%2C" \
    "status.phase%21%3DFailed"

/* The selector goes to the API server, in every page's request. */
TEST(pages)
{
    static const struct script_step steps[] = {
        {PATH_NS "&labelSelector=app%20in%20%28a%2Cb%29%2C%21x&limit=500 ", SCRIPT_BODY,
         LIST(",\"continue\":\"t/1\"", HELD "," PLAIN), 0, NULL},
        {PATH_NS "&labelSelector=app%20in%20%28a%2Cb%29%2C%21x&limit=500&continue=t%2F1 ",
         SCRIPT_BODY, LIST("", WAITS), 0, NULL},
    };
    ck_assert_ok(read_pods(steps, COUNT_OF(steps), STR("ns"), STR("app in (a,b),!x")), &err);
    ck_assert_str_eq(
        table(false),
        "NAMESPACE   NAME    NODE   CARDS   MEMORY     AGE   STATUS    REASON\n"
        "ns          held    n1     1            8      3d   Running   -\n"
        "ns          waits   -      -            8   2m30s   Pending   0/1 nodes are available\n");
}

/* The objects of the first pages do not count twice. */
TEST(expired)
{
    static const struct script_step steps[] = {
        {"&limit=500 ", SCRIPT_BODY, LIST(",\"continue\":\"t\"", HELD), 0, NULL},
        {"&continue=t ", SCRIPT_BODY, "{\"kind\":\"Status\",\"code\":410}", 410, NULL},
        {"GET /api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed "
         "HTTP",
         SCRIPT_BODY, LIST("", HELD "," WAITS), 0, NULL},
    };
    ck_assert_ok(read_pods(steps, COUNT_OF(steps), STR_NULL, STR_NULL), &err);
    ck_assert_uint_eq(pods.n, 2);
}

static const struct {
    struct script_step step;
    enum errc code;
    const char *says;
} refusals[] = {
    {{"labelSelector=a%20b", SCRIPT_BODY,
      "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":400,\"message\":\"unable to parse\"}",
      400, NULL},
     ERR_INTERNAL,
     "/pods: 400: unable to parse"},
    {{"", SCRIPT_BODY,
      "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", 0, NULL},
     ERR_SYNTAX,
     "NodeList"},
    {{"", SCRIPT_BODY, "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", 0, NULL},
     ERR_SYNTAX,
     "without a kind"},
    {{"", SCRIPT_BODY, LIST("", "{\"spec\":3}"), 0, NULL}, ERR_SYNTAX, "a pod of the list: spec"},
    {{"", SCRIPT_CUT, "{\"kind\":\"PodList\",\"items\":[", 0, NULL}, ERR_UNAVAILABLE, ""},
};

TEST_EACH(refusal, COUNT_OF(refusals))
{
    enum errc code = read_pods(&refusals[_i].step, 1, STR("ns"), STR("a b"));
    ck_assert_msg(code == refusals[_i].code && strstr(err.text, refusals[_i].says) != NULL,
                  "%s: %s", errc_name(code), err.text);
}

#define POD(meta, spec, status)                                                            \
    LIST("", "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"p\"" meta "},\"spec\":{" spec \
             "},\"status\":{" status "}}")
#define ON(idx) ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" idx "\"}"
#define TWO                                                                           \
    ",\"labels\":{\"aliyun.com/gpu-count\":\"2\"},\"annotations\":{"                  \
    "\"ALIYUN_COM_GPU_MEM_IDX\":\"0,2\",\"scheduler.framework.gpushare.allocation\":" \
    "\"{\\\"0\\\":{\\\"0\\\":4,\\\"2\\\":4}}\"}"

/* One pod, and its row behind namespace and name; empty: no row. */
static const struct {
    const char *list;
    const char *row;
} rows[] = {
    {POD(TWO, "\"nodeName\":\"n\"," ASKS, "\"phase\":\"Running\""),
     "n      0,2          8     -   Running   0:4 2:4   4 on each of 2 cards   -\n"},
    {POD("", "\"nodeName\":\"n\"," ASKS, "\"phase\":\"Pending\""),
     "n      -            8     -   Pending   -       8         it is bound without a valid "
     "card\n"},
    {POD(ON("0") ",\"deletionTimestamp\":\"2026-11-22T05:40:00Z\"", "\"nodeName\":\"n\"," ASKS,
         "\"phase\":\"Running\""),
     "n      0            8     -   Terminating   0:8     8         -\n"},
    {POD("", ASKS, ""), "-      -            8     -   -        -       8         no scheduler has "
                        "tried to place it\n"},
    {POD("", ASKS,
         "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
         "\"reason\":\"SchedulingGated\"}]"),
     "-      -            8     -   -        -       8         SchedulingGated\n"},
    {POD(",\"annotations\":{\"cardpack.io/gpu-mem-percent\":\"30\"}", ASKS, ""),
     "-      -          30%     -   -        -       30% of a card   no scheduler has tried"},
    {POD(",\"labels\":{\"ack.gpushare.placement\":\"require-whole-device\"}", ASKS, ""),
     "-      -         100%     -   -        -       1 whole card of 8   no scheduler has tried"},
    {POD("",
         "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
         "\"1.5\"}}}]",
         "\"phase\":\"Pending\""),
     "container \"c\": aliyun.com/gpu-mem: \"1.5\" is not a whole number\n"},
    {POD(ON("0"), "\"nodeName\":\"n\"," ASKS, "\"phase\":\"Failed\""), ""},
    {POD("", "\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\"}]", "\"phase\":\"Running\""), ""},
};

TEST_EACH(row, COUNT_OF(rows))
{
    struct script_step step = {"GET", SCRIPT_BODY, rows[_i].list, 0, NULL};
    ck_assert_ok(read_pods(&step, 1, STR("ns"), STR_NULL), &err);
    ck_assert_uint_eq(pods.n, rows[_i].row[0] == '\0' ? 0 : 1);
    const char *text = table(true);
    ck_assert_msg(strstr(text, rows[_i].row) != NULL, "%s is not in\n%s", rows[_i].row, text);
}

/* A pod with UUIDs, and the lists that are read: nodes, and the pods again without HAMi. */
#define LIMITS(text) \
    "\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" text "}}}]"
#define NVIDIAS POD(",\"uid\":\"u\"", LIMITS("\"nvidia.com/gpu\":\"2\""), "\"phase\":\"Running\"")
#define HAMIS                                                                                     \
    POD(",\"uid\":\"u\",\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"GPU-b,NVIDIA,1000," \
        "30:;\"}",                                                                                \
        LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\""),                        \
        "\"phase\":\"Running\"")
#define VGPUS                                                                                     \
    POD(",\"uid\":\"u\",\"annotations\":{\"volcano.sh/vgpu-ids-new\":\"GPU-b,NVIDIA,1000,30:\"}", \
        LIMITS("\"volcano.sh/vgpu-number\":\"1\",\"volcano.sh/vgpu-memory\":\"1000\""),           \
        "\"phase\":\"Running\"")
#define NODES(meta, capacity)                                                                   \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":" \
    "{\"name\":\"n\"" meta "},\"status\":{\"capacity\":{" capacity "}}}]}"
#define HAMI_NODE(card)                                                                            \
    NODES(",\"annotations\":{\"hami.io/"                                                           \
          "node-nvidia-register\":\"[{\\\"id\\\":\\\"GPU-a\\\",\\\"index"                          \
          "\\\":0,\\\"count\\\":10,\\\"devmem\\\":8000,\\\"health\\\":true},{\\\"id\\\":\\\"" card \
          "\\\",\\\"index\\\":3,\\\"count\\\":10,\\\"devmem\\\":8000,\\\"health\\\":true}]\"}",    \
          "\"nvidia.com/gpu\":\"20\"")
#define VGPU_NODE                                                        \
    NODES(",\"annotations\":{\"volcano.sh/"                              \
          "node-vgpu-register\":\"GPU-a,10,8000,A10,true:GPU-b,10,8000," \
          "A10,true:\"}",                                                \
          "\"volcano.sh/vgpu-number\":\"20\"")
#define DENIED "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":403,\"message\":\"no\"}"

static const struct {
    const char *list;
    const char *nodes;
    bool denied;
    bool again;
    const char *row;
} named[] = {
    {HAMIS, HAMI_NODE("GPU-b"), false, false,
     "n      3         1000     -   Running   3:1000(30%)   1000      -\n"},
    {VGPUS, VGPU_NODE, false, true,
     "n      1         1000     -   Running   1:1000(30%)   1000      -\n"},
    {HAMIS, HAMI_NODE("GPU-c"), false, false,
     "n      ?         1000     -   Running   ?:1000(30%)   1000      -\n"},
    {NVIDIAS, NODES("", "\"nvidia.com/gpu\":\"8\""), false, true,
     "n      -            -     -   Running   -       2 nvidia.com/gpu   -\n"},
    {NVIDIAS, DENIED, true, true,
     "n      -            -     -   Running   -       2 nvidia.com/gpu   -\n"},
    {VGPUS, DENIED, true, true,
     "n      ?         1000     -   Running   ?:1000(30%)   1000      -\n"},
};

TEST_EACH(named_by_uuid, COUNT_OF(named))
{
    const struct script_step steps[] = {
        {"GET /api/v1/namespaces/ns/pods", SCRIPT_BODY, named[_i].list, 0, NULL},
        {"GET /api/v1/nodes?limit=500 ", SCRIPT_BODY, named[_i].nodes, named[_i].denied ? 403 : 0,
         NULL},
        {"GET /api/v1/namespaces/ns/pods", SCRIPT_BODY, named[_i].list, 0, NULL},
    };
    ck_assert_ok(read_pods(steps, named[_i].again ? 3 : 2, STR("ns"), STR_NULL), &err);
    ck_assert_uint_eq(pods.n, 1);
    const char *text = table(true);
    ck_assert_msg(strstr(text, named[_i].row) != NULL, "%s is not in\n%s", named[_i].row, text);
    ck_assert_ptr_null(strstr(text, "2147483647"));
    kubectl_pods_write(&pods, &out);
    ck_assert_ptr_null(strstr(buf_cstr(&out), "2147483647"));
}

#define PLACED(name, uid, idx)                                                          \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"" uid "\"" idx \
    "},\"spec\":{"                                                                      \
    "\"nodeName\":\"n1\"," ASKS "},\"status\":{\"phase\":\"Running\"}}"
#define CONFIGMAPS "GET /api/v1/namespaces/kube-system/configmaps?limit=500 "

/* With what cardpack-node has measured. */
TEST(really)
{
    char maps[2048];
    char seen[STAMP_BYTES];
    (void)stamp_print((uint32_t)time(NULL), seen);
    (void)snprintf(
        maps, sizeof(maps),
        "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"
        "\"metadata\":{\"name\":\"cardpack-usage-n1\",\"namespace\":\"kube-system\"},\"data\":{"
        "\"usage\":\"{\\\"seen\\\":\\\"%s\\\",\\\"cards\\\":[],\\\"pods\\\":["
        "{\\\"uid\\\":\\\"u1\\\",\\\"namespace\\\":\\\"ns\\\",\\\"name\\\":\\\"a\\\",\\\"card\\\":"
        "0,"
        "\\\"usedMiB\\\":4100},"
        "{\\\"uid\\\":\\\"u2\\\",\\\"namespace\\\":\\\"ns\\\",\\\"name\\\":\\\"two\\\","
        "\\\"card\\\":0,"
        "\\\"usedMiB\\\":100},"
        "{\\\"uid\\\":\\\"u2\\\",\\\"namespace\\\":\\\"ns\\\",\\\"name\\\":\\\"two\\\","
        "\\\"card\\\":2,"
        "\\\"usedMiB\\\":20},"
        "{\\\"uid\\\":\\\"u3\\\",\\\"namespace\\\":\\\"ns\\\",\\\"name\\\":\\\"half\\\","
        "\\\"card\\\":2,"
        "\\\"usedMiB\\\":7}"
        "]}\"}}]}",
        seen);
    const struct script_step steps[] = {
        {"GET", SCRIPT_BODY,
         LIST("", PLACED("a", "u1", ON("0")) "," PLACED("two", "u2", TWO) "," PLACED(
                      "half", "u3", TWO) "," PLACED("b", "u4", ON("0")) "," WAITS),
         0, NULL},
        {CONFIGMAPS, SCRIPT_BODY, maps, 0, NULL},
    };
    is_measuring = true;
    ck_assert_ok(read_pods(steps, COUNT_OF(steps), STR("ns"), STR_NULL), &err);
    ck_assert_str_eq(table(true),
                     "NAMESPACE   NAME    NODE   CARDS   MEMORY     AGE   STATUS    PLACE     "
                     "REQUEST                REALLY(MiB)   REASON\n"
                     "ns          a       n1     0            8       -   Running   0:8       "
                     "8                             4100   -\n"
                     "ns          two     n1     0,2          8       -   Running   0:4 2:4   "
                     "4 on each of 2 cards           120   -\n"
                     "ns          half    n1     0,2          8       -   Running   0:4 2:4   "
                     "4 on each of 2 cards             -   -\n"
                     "ns          b       n1     0            8       -   Running   0:8       "
                     "8                                -   -\n"
                     "ns          waits   -      -            8   2m30s   Pending   -         "
                     "8                                -   0/1 nodes are available\n");
    ck_assert_ptr_null(strstr(table(false), "REALLY"));
}

/* Who may not read the ConfigMaps sees the table as without cardpack-node. */
TEST(really_is_denied)
{
    static const struct script_step steps[] = {
        {"GET", SCRIPT_BODY, LIST("", HELD), 0, NULL},
        {CONFIGMAPS, SCRIPT_BODY,
         "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":403,\"message\":\"no\"}", 403, NULL},
    };
    is_measuring = true;
    ck_assert_ok(read_pods(steps, COUNT_OF(steps), STR("ns"), STR_NULL), &err);
    ck_assert_ptr_null(strstr(table(true), "REALLY"));
    ck_assert_ptr_nonnull(strstr(table(true), "1:8"));
}

static enum errc print_all(void *ctx)
{
    struct arena own;
    struct buf text;
    struct buf json;
    struct err e = ERR_INIT;
    (void)ctx;
    arena_init(&own, MIB);
    buf_init(&text, MIB);
    buf_init(&json, MIB);
    enum errc code =
        kubectl_pods_show(&pods, (struct kubectl_look){.wide = true}, NOW, &own, &text, &e);
    kubectl_pods_write(&pods, &json);
    code = code != OK ? code : buf_failed(&text) ? buf_fault(&text) : buf_fault(&json);
    buf_done(&json);
    buf_done(&text);
    arena_done(&own);
    return code;
}

/* No byte of an object reaches the terminal as a command, in any format. */
TEST(hostile)
{
    static const struct script_step step = {
        "GET", SCRIPT_BODY,
        LIST("", "{\"metadata\":{\"namespace\":\"\\u001b[2J\",\"name\":\"a\\nb\\u202e\"},\"spec\":{"
                 "\"nodeName\":\"\\u009b1m\"," ASKS "},\"status\":{\"phase\":\"\\r\"}},"
                 "{\"metadata\":{\"name\":\"w\"},\"spec\":{" ASKS "},\"status\":{\"conditions\":["
                 "{\"type\":\"PodScheduled\",\"message\":\"\\u001b]0;x\\u0007\\nnext\"}]}}"),
        0, NULL};
    ck_assert_ok(read_pods(&step, 1, STR_NULL, STR_NULL), &err);
    struct buf json;
    buf_init(&json, MIB);
    kubectl_pods_write(&pods, &json);
    (void)table(true);
    ck_assert_ok(jprint_json(buf_str(&json), &arena, &out, &err), &err);
    ck_assert_ok(jprint_yaml(buf_str(&json), &arena, &out, &err), &err);
    for (struct str s = buf_str(&out); s.n > 0;) {
        uint32_t rune = 0;
        size_t n = str_utf8(s, &rune);
        ck_assert_msg(n > 0 && (rune == '\n' || !str_is_unprintable(rune)), "%s", buf_cstr(&out));
        s = str_skip(s, n);
    }
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "a\\x0ab\\u202e"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "\\x1b]0;x\\x07\\x0anext\n"));
    buf_done(&json);
    ck_assert_uint_gt(fail_alloc_each(print_all, NULL), 0);
}

TEST(json)
{
    static const struct script_step step = {"GET", SCRIPT_BODY, LIST("", HELD "," WAITS), 0, NULL};
    ck_assert_ok(read_pods(&step, 1, STR("ns"), STR_NULL), &err);
    kubectl_pods_write(&pods, &out);
    ck_assert_str_is(
        buf_str(&out),
        "{\"pods\":[{\"namespace\":\"ns\",\"name\":\"held\",\"node\":\"n1\",\"status\":\"Running\","
        "\"request\":\"8\",\"memory\":8,\"placement\":[{\"card\":1,\"memory\":8}],"
        "\"created\":\"2026-11-19T05:40:00Z\",\"reason\":\"\"},"
        "{\"namespace\":\"ns\",\"name\":\"waits\",\"node\":\"\",\"status\":\"Pending\","
        "\"request\":\"8\",\"memory\":8,\"placement\":[],\"created\":\"2026-11-22T05:37:30Z\","
        "\"reason\":\"0/1 nodes are available\"}]}");
}

static const struct {
    enum kubectl_sort by;
    const char *names;
} sorts[] = {
    {KUBECTL_SORT_NONE, "pod/held\npod/waits\npod/aged\n"},
    {KUBECTL_SORT_NAME, "pod/aged\npod/held\npod/waits\n"},
    {KUBECTL_SORT_NODE, "pod/waits\npod/aged\npod/held\n"},
    {KUBECTL_SORT_MEMORY, "pod/aged\npod/held\npod/waits\n"},
    {KUBECTL_SORT_AGE, "pod/held\npod/waits\npod/aged\n"},
};

#define AGED                                                                               \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"aged\"},\"spec\":{\"nodeName\":\"a\"," \
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"             \
    "gpu-mem\":\"9\"}}}]}}"

/* Numbers from the largest, the oldest first; a pod without a time of creation last. */
TEST_EACH(sorted, COUNT_OF(sorts))
{
    struct script_step step = {"GET", SCRIPT_BODY, LIST("", HELD "," WAITS "," AGED), 0, NULL};
    struct kubectl_look look = {.names = true};
    ck_assert_ok(read_pods(&step, 1, STR("ns"), STR_NULL), &err);
    ck_assert_ok(kubectl_pods_sort(&pods, sorts[_i].by, &arena, &err), &err);
    ck_assert_ok(kubectl_pods_show(&pods, look, NOW, &arena, &out, &err), &err);
    ck_assert_str_eq(buf_cstr(&out), sorts[_i].names);
}

static const struct {
    uint32_t seconds;
    const char *text;
} ages[] = {
    {0, "0s"},
    {119, "119s"},
    {120, "2m"},
    {121, "2m1s"},
    {600, "10m"},
    {10799, "179m"},
    {10800, "3h"},
    {11 * 3600 - 1, "10h"},
    {3 * 3600 + 60, "3h1m"},
    {47 * 3600, "47h"},
    {48 * 3600, "2d"},
    {75 * 3600, "3d3h"},
    {8 * 86400, "8d"},
    {4000U * 86400, "4000d"},
};

TEST_EACH(age, COUNT_OF(ages))
{
    ck_assert_str_is(kubectl_age(ages[_i].seconds, &out), ages[_i].text);
}

int main(void)
{
    TCase *t = unit_case("kubectl_pods");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
