/*
 * Serves the device plugin's methods with fixed answers, for the Go peer of this folder, and asks
 * that peer as a plugin asks the kubelet: Register and List.
 *
 *   grpc_peer SOCKET KUBELET DEVICES      the plugin's socket, the peer's socket, how many devices
 *
 * It sends the whole list twice: all healthy, and then with the first device unhealthy. It prints a
 * line for each answer of the peer, and for each call that is gone.
 */
#include "base/str.h"
#include "grpc/grpc_client.h"
#include "grpc/grpc_server.h"
#include "grpc/limit.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_BYTES  (8 * MIB)
#define ARENA_BYTES (64 * MIB)

struct peer {
    struct loop *loop;
    struct grpc_server *server;
    struct grpc_client *client;
    uint64_t devices;
    struct grpc_request registered;
    struct grpc_request listed;
};

static void write_list(const struct peer *p, bool first_healthy, struct buf *out)
{
    for (uint64_t i = 0; i < p->devices; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "0.%" PRIu64, i);
        device_write(out, &(struct plugin_device){
                              .id = str_of(id), .healthy = i > 0 || first_healthy, .numa = 0});
    }
}

static void on_options(void *ctx, struct grpc_call *c, struct str message)
{
    struct buf out;
    (void)ctx;
    (void)message;
    buf_init(&out, LIST_BYTES);
    options_write(&out, (struct plugin_options){.pre_start_required = true});
    grpc_call_reply(c, buf_str(&out));
    buf_done(&out);
}

static void on_watch(void *ctx, struct grpc_call *c, struct str message)
{
    const struct peer *p = ctx;
    (void)message;
    for (int healthy = 1; healthy >= 0; healthy--) {
        struct buf out;
        buf_init(&out, LIST_BYTES);
        write_list(p, healthy == 1, &out);
        grpc_call_send(c, buf_str(&out));
        buf_done(&out);
    }
}

static void on_allocate(void *ctx, struct grpc_call *c, struct str message)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct allocate_request r;
    struct buf out;
    (void)ctx;
    arena_init(&a, ARENA_BYTES);
    buf_init(&out, LIST_BYTES);
    enum errc code = allocate_request_read(message, &a, &r, &e);
    for (size_t i = 0; code == OK && i < r.n_containers; i++) {
        struct str id = r.containers[i].n_ids == 0 ? STR("") : r.containers[i].ids[0];
        struct plugin_pair env = {STR("FIRST"), id};
        struct plugin_mount mount = {STR("/c"), STR("/h"), true};
        struct plugin_node node = {STR("/dev/a"), STR("/dev/b"), STR("rw")};
        struct str cdi = STR("cardpack.io/alloc=1");
        struct allocate_grant grant = {.envs = &env,
                                       .n_envs = 1,
                                       .mounts = &mount,
                                       .n_mounts = 1,
                                       .nodes = &node,
                                       .n_nodes = 1,
                                       .annotations = &env,
                                       .n_annotations = 1,
                                       .cdi = &cdi,
                                       .n_cdi = 1};
        allocate_response_write(&out, &grant, 1);
    }
    if (code == OK)
        grpc_call_reply(c, buf_str(&out));
    else
        grpc_call_fail(c, grpc_status_of(code), str_of(e.text));
    buf_done(&out);
    arena_done(&a);
}

/* A container without devices is refused; of any other the call stays open: its deadline ends it.
 */
static void on_pre_start(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    if (message.n == 0)
        grpc_call_fail(c, GRPC_FAILED_PRECONDITION, STR("100 % \xc3\xa4"));
}

static void on_gone(void *ctx, struct grpc_call *c)
{
    (void)ctx;
    (void)printf("gone %s\n", grpc_call_path(c));
}

static void on_listed(struct grpc_request *r)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct pod_resources l = {.n_pods = 0};
    arena_init(&a, ARENA_BYTES);
    enum errc code = r->result == OK ? pod_resources_read(buf_str(&r->reply), &a, &l, &e)
                                     : err_set(&e, r->result, "%s", r->err.text);
    if (code == OK && l.n_pods > 0 && l.pods[0].n_containers > 0 &&
        l.pods[0].containers[0].n_devices > 0)
        (void)printf("listed %zu pods, %.*s has %zu devices\n", l.n_pods, STR_ARG(l.pods[0].name),
                     l.pods[0].containers[0].devices[0].n_ids);
    else
        (void)printf("not listed: %s\n", e.text);
    arena_done(&a);
    grpc_request_done(r);
}

static void on_registered(struct grpc_request *r)
{
    struct peer *p = CONTAINER_OF(r, struct peer, registered);
    (void)printf("registered: %s\n", r->result == OK ? "ok" : r->err.text);
    grpc_request_done(r);
    p->listed = (struct grpc_request){.path = POD_RESOURCES_LIST, .on_done = on_listed};
    grpc_request_start(p->client, &p->listed);
}

static void register_plugin(struct peer *p)
{
    struct buf out;
    buf_init(&out, LIST_BYTES);
    struct register_request r = {.endpoint = STR("plugin.sock"),
                                 .resource = STR("aliyun.com/gpu-mem"),
                                 .options = {.pre_start_required = true}};
    register_request_write(&out, &r);
    p->registered = (struct grpc_request){
        .path = DEVICE_PLUGIN_REGISTER, .message = buf_str(&out), .on_done = on_registered};
    grpc_request_start(p->client, &p->registered);
    buf_done(&out);
}

static void on_signal(void *ctx, int signo)
{
    struct peer *p = ctx;
    (void)signo;
    loop_stop(p->loop);
}

static enum errc serve(struct peer *p, const char *socket, const char *kubelet, struct err *e)
{
    static const struct grpc_method methods[] = {
        {DEVICE_PLUGIN_OPTIONS, on_options},
        {DEVICE_PLUGIN_WATCH, on_watch},
        {DEVICE_PLUGIN_ALLOCATE, on_allocate},
        {DEVICE_PLUGIN_PRE_START, on_pre_start},
    };
    struct grpc_server_settings s = {.socket = socket,
                                     .methods = methods,
                                     .n_methods = COUNT_OF(methods),
                                     .ctx = p,
                                     .gone = on_gone};
    enum errc code = grpc_server_new(p->loop, &s, &p->server, e);
    if (code == OK)
        code = grpc_client_new(p->loop, kubelet, &p->client, e);
    if (code == OK)
        code = loop_signal(p->loop, SIGTERM, on_signal, p, e);
    if (code != OK)
        return code;
    register_plugin(p);
    return loop_run(p->loop, e);
}

int main(int argc, char **argv)
{
    struct peer p = {.devices = 0};
    struct err e = ERR_INIT;
    if (argc != 4 || !str_to_u64(str_of(argv[3]), 1000000, &p.devices))
        return EXIT_FAILURE;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    enum errc code = loop_new(&p.loop, &e);
    if (code == OK)
        code = serve(&p, argv[1], argv[2], &e);
    if (code != OK)
        (void)fprintf(stderr, "%s\n", e.text);
    p.client = grpc_client_free(p.client);
    p.server = grpc_server_free(p.server);
    if (p.loop != NULL)
        p.loop = loop_free(p.loop);
    return code == OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
