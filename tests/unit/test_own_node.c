/* The watch of the own node against an API server with a script: what can't be read changes
 * nothing. */
#include "node/announce/own_node.h"

#include "base/log.h"
#include "on_loop.h"
#include "script_server.h"

#include <stdio.h>
#include <sys/mman.h>

#define FIRST "GET /base/api/v1/nodes?&fieldSelector=metadata.name%3Dgpu-7 HTTP/1.1\r\n"
#define WATCH "&resourceVersion=10&fieldSelector=metadata.name%3Dgpu-7 HTTP/1.1\r\n"
/* Another annotation, and what cardpack-node does not read, can be anything. */
#define NODE(rv, late)                                                                     \
    "{\"metadata\":{\"name\":\"gpu-7\",\"resourceVersion\":\"" rv "\",\"managedFields\":[" \
    "\"\xff\"],\"annotations\":{\"other\":\"\xff\",\"cardpack.io/late-binding\":\"" late   \
    "\"}},\"status\":{\"conditions\":[{\"message\":\"\xff\"}]}}"
#define LIST(items) \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static void on_change(void *ctx, const struct own_node_view *v)
{
    buf_printf(ctx, "%llu:%.*s ", (unsigned long long)v->version, STR_ARG(v->late));
}

TEST(what_cannot_be_read_changes_nothing)
{
    static const struct script_step steps[] = {
        {FIRST, SCRIPT_BODY, LIST(NODE("9", "\xff")), 0, NULL},
        {WATCH, SCRIPT_STREAM,
         EVENT("MODIFIED", NODE("11", "a")) EVENT("MODIFIED", NODE("12", "\xff"))
             EVENT("MODIFIED", NODE("13", "b")),
         0, NULL}};
    char path[] = "/tmp/cardpack-test-own-node-XXXXXX";
    char log[4096];
    struct err e = ERR_INIT;
    struct script_server server;
    struct kube_api *api = NULL;
    struct own_node *node = NULL;
    struct buf said;
    int out = memfd_create("log", MFD_CLOEXEC);
    int fd = mkstemp(path);
    ck_assert_int_ge(out, 0);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    log_setup(out, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    struct loop *loop = loop_make();
    buf_init(&said, 65536);
    script_start(&server, loop, steps, COUNT_OF(steps));
    script_kubeconfig(&server, path);
    struct kube_api_settings s = {.kubeconfig = str_of(path), .user_agent = STR("test")};
    ck_assert_ok(kube_api_new(loop, &s, &api, &e), &e);
    ck_assert_ok(own_node_new(loop, api, STR("gpu-7"), on_change, &said, &node, &e), &e);
    run_while(loop, server.n_requests < 1);
    ck_assert(!own_node_seen(node));
    run_while(loop, said.n < 10);
    ck_assert_str_eq(buf_cstr(&said), "11:a 13:b ");
    ck_assert(own_node_seen(node));
    ssize_t n = pread(out, log, sizeof(log) - 1, 0);
    ck_assert_int_gt(n, 0);
    log[n] = '\0';
    ck_assert_msg(strstr(log, "the own Node object can't be read") != NULL &&
                      strstr(log, "metadata.annotations[cardpack.io/late-binding]: invalid UTF-8"),
                  "%s", log);
    (void)own_node_free(node);
    (void)kube_api_free(api);
    script_stop(&server);
    (void)loop_free(loop);
    buf_done(&said);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)close(out);
    (void)unlink(path);
}
