/*
 * The device plugin and a kubelet on one loop. The kubelet asks for the options within Register,
 * answers it, and then calls ListAndWatch, as the real one does. Its ListAndWatch is a call that
 * lasts: the end of `watch` has the list, if the plugin has sent one alone.
 */
#pragma once

#include "grpc/grpc_client.h"
#include "grpc/limit.h"
#include "node/kubelet/kubelet_dir.h"
#include "node/kubelet/plugin.h"
#include "on_loop.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 128

struct call {
    struct grpc_request request;
    bool done;
};

struct rig {
    struct loop *loop;
    char folder[32];
    char dir[PATH_BYTES]; /* folder/device-plugins */
    char ours[PATH_BYTES];
    char theirs[PATH_BYTES];

    struct grpc_server *kubelet; /* NULL: it does not run */
    struct grpc_call *registering;
    struct grpc_client *manager; /* the kubelet's client of the plugin */
    struct call options;
    struct call watch;
    bool never_watches;
    unsigned registers;
    char request[64]; /* the last RegisterRequest */
    size_t request_n;

    struct plugin *plugin;
    unsigned registered;
    bool restarted;
    struct grpc_call *kept; /* the last Allocate, if keeps */
    bool keeps;
    unsigned gone;
    char said[256]; /* what the owner was asked */
};

static inline void rig_call_done(struct grpc_request *r)
{
    CONTAINER_OF(r, struct call, request)->done = true;
}

static inline void rig_call(struct rig *r, struct call *c, const char *path, struct str message,
                            void (*on_done)(struct grpc_request *r))
{
    *c = (struct call){
        .request = {.path = path, .message = message, .timeout_ms = 600000, .on_done = on_done}};
    grpc_request_start(r->manager, &c->request);
}

static inline void rig_unwatch(struct rig *r)
{
    grpc_request_cancel(&r->watch.request);
    grpc_request_done(&r->watch.request);
    r->watch.done = false;
}

/* ---- the kubelet ---- */

static inline void rig_on_options(struct grpc_request *q)
{
    struct rig *r = CONTAINER_OF(CONTAINER_OF(q, struct call, request), struct rig, options);
    ck_assert_ok(q->result, &q->err);
    ck_assert(str_eq(buf_str(&q->reply), (struct str){"\x08\x01\x10\x01", 4}));
    grpc_request_done(q);
    grpc_call_reply(r->registering, STR(""));
    r->registering = NULL;
    if (r->never_watches)
        return;
    rig_unwatch(r);
    rig_call(r, &r->watch, DEVICE_PLUGIN_WATCH, STR(""), rig_call_done);
}

static inline void rig_on_register(void *ctx, struct grpc_call *call, struct str message)
{
    struct rig *r = ctx;
    ck_assert_uint_le(message.n, sizeof(r->request));
    memcpy(r->request, message.p, message.n);
    r->request_n = message.n;
    r->registers++;
    r->registering = call;
    rig_call(r, &r->options, DEVICE_PLUGIN_OPTIONS, STR(""), rig_on_options);
}

static inline void rig_start_kubelet(struct rig *r)
{
    static const struct grpc_method methods[] = {{DEVICE_PLUGIN_REGISTER, rig_on_register}};
    struct err e = ERR_INIT;
    struct grpc_server_settings s = {
        .socket = r->theirs, .methods = methods, .n_methods = COUNT_OF(methods), .ctx = r};
    ck_assert_ok(grpc_server_new(r->loop, &s, &r->kubelet, &e), &e);
}

/* Its connections end too. */
static inline void rig_stop_kubelet(struct rig *r)
{
    rig_unwatch(r);
    grpc_request_cancel(&r->options.request);
    grpc_request_done(&r->options.request);
    r->kubelet = grpc_server_free(r->kubelet);
    r->registering = NULL;
}

/* ---- the plugin's owner ---- */

static inline void rig_allocate(void *ctx, struct grpc_call *call, const struct allocate_request *q)
{
    struct rig *r = ctx;
    struct buf b = BUF_ON(r->said);
    for (size_t i = 0; i < q->n_containers; i++) {
        for (size_t k = 0; k < q->containers[i].n_ids; k++)
            buf_printf(&b, "%.*s ", STR_ARG(q->containers[i].ids[k]));
    }
    ck_assert_ptr_nonnull(buf_cstr(&b));
    r->kept = r->keeps ? call : NULL;
    if (!r->keeps)
        grpc_call_reply(call, STR("answer"));
}

static inline void rig_pre_start(void *ctx, struct grpc_call *call,
                                 const struct allocate_container *ids)
{
    struct rig *r = ctx;
    (void)snprintf(r->said, sizeof(r->said), "start %zu", ids->n_ids);
    grpc_call_fail(call, GRPC_FAILED_PRECONDITION, STR("not yet"));
}

static inline void rig_preferred(void *ctx, struct grpc_call *call,
                                 const struct preferred_request *q)
{
    struct rig *r = ctx;
    (void)snprintf(r->said, sizeof(r->said), "prefer %d", (int)q->containers[0].size);
    grpc_call_reply(call, STR("preferred"));
}

static inline void rig_gone(void *ctx, struct grpc_call *call)
{
    struct rig *r = ctx;
    ck_assert_ptr_eq(call, r->kept);
    r->kept = NULL;
    r->gone++;
}

static inline void rig_registered(void *ctx, bool restarted)
{
    struct rig *r = ctx;
    r->registered++;
    r->restarted = restarted;
}

static const struct plugin_ops rig_ops = {.allocate = rig_allocate,
                                          .pre_start = rig_pre_start,
                                          .preferred = rig_preferred,
                                          .gone = rig_gone,
                                          .registered = rig_registered};

static inline void rig_make_dir(struct rig *r)
{
    ck_assert_int_eq(mkdir(r->dir, S_IRWXU), 0);
}

static inline void rig_make(struct rig *r)
{
    struct err e = ERR_INIT;
    *r = (struct rig){.loop = loop_make()};
    (void)snprintf(r->folder, sizeof(r->folder), "plugin-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->folder));
    (void)snprintf(r->dir, sizeof(r->dir), "%s/device-plugins", r->folder);
    (void)snprintf(r->ours, sizeof(r->ours), "%s/device-plugins/" PLUGIN_SOCKET, r->folder);
    (void)snprintf(r->theirs, sizeof(r->theirs), "%s/device-plugins/" KUBELET_DIR_SOCKET,
                   r->folder);
    rig_make_dir(r);
    ck_assert_ok(grpc_client_new(r->loop, r->ours, &r->manager, &e), &e);
    struct plugin_settings s = {.loop = r->loop,
                                .dir = r->dir,
                                .resource = STR("aliyun.com/gpu-mem"),
                                .ops = &rig_ops,
                                .ctx = r};
    ck_assert_ok(plugin_new(&s, &r->plugin, &e), &e);
}

static inline void rig_done(struct rig *r)
{
    r->plugin = plugin_free(r->plugin);
    rig_stop_kubelet(r);
    r->manager = grpc_client_free(r->manager);
    r->loop = loop_free(r->loop);
    ck_assert_int_eq(rmdir(r->dir), 0); /* no socket is left */
    ck_assert_int_eq(rmdir(r->folder), 0);
}

/* Cards 0 and 1 with so many devices each. */
static inline void rig_offer(struct rig *r, int64_t units, bool healthy)
{
    struct card_offer cards[] = {
        {.index = 0, .units = units, .healthy = healthy, .numa = -1},
        {.index = 1, .units = units, .healthy = true, .numa = -1},
    };
    plugin_offer(r->plugin, cards, COUNT_OF(cards));
}

static inline void rig_await_registered(struct rig *r, unsigned n)
{
    run_while(r->loop, r->registered < n);
    ck_assert_uint_eq(r->registered, n);
    ck_assert(plugin_is_registered(r->plugin));
}
