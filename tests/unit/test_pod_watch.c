/* The watch of a node's pods against an API server with a script. */
#include "node/pods/pod_watch.h"

#include "base/log.h"
#include "on_loop.h"
#include "script_server.h"

#include <stdio.h>

#define FIRST     "GET /base/api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dgpu-7 HTTP/1.1\r\n"
#define WATCH(rv) "&resourceVersion=" rv "&fieldSelector=spec.nodeName%3Dgpu-7 HTTP/1.1\r\n"
#define POD(uid, rv, phase)                                                                   \
    "{\"metadata\":{\"name\":\"" uid "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"," \
    "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"3\"}},\"spec\":{\"nodeName\":\"gpu-7\"},"  \
    "\"status\":{\"phase\":\"" phase "\"}}"
/* Its annotations can't be read. */
#define ODD(uid, phase)                                                                    \
    "{\"metadata\":{\"name\":\"" uid "\",\"uid\":\"" uid                                   \
    "\",\"resourceVersion\":\"9\",\"annotations\":{"                                       \
    "\"ALIYUN_COM_GPU_MEM_IDX\":\"\xff\"}},\"spec\":{\"nodeName\":\"gpu-7\"},\"status\":{" \
    "\"phase\":"                                                                           \
    "\"" phase "\"}}"
#define LIST(items) \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static struct {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct pod_watch *pods;
    struct buf said;
    char path[64];
} t;

static void on_begin(void *ctx)
{
    buf_put(ctx, STR("begin "));
}

static void on_set(void *ctx, const struct pod_view *v, uint64_t version, struct str json)
{
    ck_assert_str_is(v->idx, "3");
    ck_assert(json.p[0] == '{' && json.p[json.n - 1] == '}');
    buf_printf(ctx, "%.*s@%llu:%.*s ", STR_ARG(v->uid), (unsigned long long)version,
               STR_ARG(v->phase));
}

static void on_gone(void *ctx, struct str uid)
{
    buf_printf(ctx, "-%.*s ", STR_ARG(uid));
}

static void on_end(void *ctx)
{
    buf_put(ctx, STR("end "));
}

static void run(const struct script_step *steps, size_t n, const char *said)
{
    struct err e = ERR_INIT;
    const struct pod_watch_ops ops = {on_begin, on_set, on_gone, on_end, &t.said};
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)snprintf(t.path, sizeof(t.path), "/tmp/cardpack-test-pods-XXXXXX");
    int fd = mkstemp(t.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    t.loop = loop_make();
    buf_init(&t.said, 65536);
    script_start(&t.server, t.loop, steps, n);
    script_kubeconfig(&t.server, t.path);
    struct kube_api_settings s = {.kubeconfig = str_of(t.path), .user_agent = STR("test")};
    ck_assert_ok(kube_api_new(t.loop, &s, &t.api, &e), &e);
    ck_assert_ok(pod_watch_new(t.loop, t.api, STR("gpu-7"), &ops, &t.pods, &e), &e);
    ck_assert(!pod_watch_synced(t.pods));
    run_while(t.loop, t.said.n < strlen(said) || t.server.n_requests < n);
    ck_assert_str_eq(buf_cstr(&t.said), said);
}

static void stop(void)
{
    t.pods = pod_watch_free(t.pods);
    t.api = kube_api_free(t.api);
    script_stop(&t.server);
    t.loop = loop_free(t.loop);
    buf_done(&t.said);
    (void)unlink(t.path);
}

/* A pod that ends is seen as ended before it is gone. */
TEST(a_list_and_a_watch)
{
    static const struct script_step steps[] = {
        {FIRST, SCRIPT_BODY, LIST(POD("a", "3", "Running") "," POD("b", "4", "Pending")), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM,
         EVENT("MODIFIED", POD("a", "11", "Succeeded")) EVENT(
             "DELETED", POD("a", "12", "Succeeded")) EVENT("ADDED", POD("c", "x13", "Pending")),
         0, NULL}};
    run(steps, COUNT_OF(steps), "begin a@3:Running b@4:Pending end a@11:Succeeded -a c@0:Pending ");
    ck_assert(pod_watch_synced(t.pods));
    ck_assert_uint_eq(pod_watch_unreadable(t.pods), 0);
    stop();
}

/* The cards of a pod that can't be read are not known: the list does not count. */
TEST(a_pod_that_cannot_be_read)
{
    static const struct script_step steps[] = {
        {FIRST, SCRIPT_BODY, LIST(POD("a", "3", "Running") ",{\"metadata\":{\"uid\":7}}"), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
        {FIRST, SCRIPT_BODY, LIST(POD("a", "3", "Running")), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}};
    run(steps, 2, "begin a@3:Running ");
    ck_assert(!pod_watch_synced(t.pods));
    ck_assert_uint_eq(pod_watch_unreadable(t.pods), 1);
    t.server.n_steps = COUNT_OF(steps);
    pod_watch_relist(t.pods);
    run_while(t.loop, !pod_watch_synced(t.pods));
    ck_assert_str_eq(buf_cstr(&t.said), "begin a@3:Running begin a@3:Running end ");
    stop();
}

/* Of what was known, nothing is released by a list that could not be read, at any time. */
TEST(a_pod_that_cannot_be_read_any_more)
{
    static const struct script_step steps[] = {
        {FIRST, SCRIPT_BODY, LIST(POD("a", "3", "Running")), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
        {FIRST, SCRIPT_BODY, LIST(ODD("a", "Running")), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
        {FIRST, SCRIPT_BODY, LIST(POD("a", "3", "Running")), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}};
    run(steps, 2, "begin a@3:Running end ");
    ck_assert(pod_watch_synced(t.pods));
    t.server.n_steps = 4;
    pod_watch_relist(t.pods);
    run_while(t.loop, pod_watch_synced(t.pods) || t.server.n_requests < 4);
    ck_assert_str_eq(buf_cstr(&t.said), "begin a@3:Running end begin ");
    t.server.n_steps = COUNT_OF(steps);
    pod_watch_relist(t.pods);
    run_while(t.loop, !pod_watch_synced(t.pods));
    stop();
}

/* It blocks nothing any more. */
TEST(a_pod_that_cannot_be_read_and_is_over)
{
    static const struct script_step steps[] = {
        {FIRST, SCRIPT_BODY,
         LIST(POD("a", "3", "Running") "," ODD("b", "Succeeded") "," POD("c", "4", "Running")), 0,
         NULL},
        {WATCH("10"), SCRIPT_STREAM,
         EVENT("MODIFIED", ODD("a", "Failed")) EVENT("DELETED", ODD("c", "Running")), 0, NULL}};
    run(steps, COUNT_OF(steps), "begin a@3:Running -b c@4:Running end -a -c ");
    ck_assert(pod_watch_synced(t.pods));
    ck_assert_uint_eq(pod_watch_unreadable(t.pods), 3);
    stop();
}
