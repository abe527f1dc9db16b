/*
 * The device plugin: serves the kubelet on DIR/cardpack.sock, registers there with DIR/kubelet.sock
 * (register_step.h says when), and streams the list of devices. Nothing here blocks.
 */
#pragma once

#include "grpc/grpc_server.h"
#include "node/kubelet/devices.h"

#define PLUGIN_SOCKET "cardpack.sock"

struct plugin;

struct plugin_ops {
    /* Requests are valid during the call only. The owner ends each call with grpc_call_reply or
     * grpc_call_fail, at once or later. */
    void (*allocate)(void *ctx, struct grpc_call *call, const struct allocate_request *q);
    void (*pre_start)(void *ctx, struct grpc_call *call, const struct allocate_container *ids);
    void (*preferred)(void *ctx, struct grpc_call *call, const struct preferred_request *q);

    /* A call that the owner has not ended is over. After it returns, the call is not valid. */
    void (*gone)(void *ctx, struct grpc_call *call);

    /* The kubelet has the plugin's list. kubelet_restarted: it has started since the last time, or
     * that is not known, as at the first time: the calls that come are for pods of any age. */
    void (*registered)(void *ctx, bool kubelet_restarted);
};

/* The ops must outlive the plugin and may not free it. */
struct plugin_settings {
    struct loop *loop;
    const char *dir;     /* /var/lib/kubelet/device-plugins; copied */
    struct str resource; /* "aliyun.com/gpu-mem"; borrowed */
    const struct plugin_ops *ops;
    void *ctx;
};

/* Does nothing until the first offer. ERR_RANGE: dir is too long for a socket in it. */
enum errc plugin_new(const struct plugin_settings *s, struct plugin **ret, struct err *reterr)
    _must_use_;

/*
 * The cards, copied; sent to the kubelet if the list is another than before. A stream that has not
 * taken the last list yet gets the newest one when it has. Cards that devices_check refuses are
 * logged as an error, and the list stays as it was.
 */
void plugin_offer(struct plugin *p, const struct card_offer *cards, size_t n);

/* Whether the kubelet has a stream of the list, and has had it since it registered us. */
bool plugin_is_registered(const struct plugin *p);

/* Calls gone() for all calls that the owner holds, before it returns. NULL is allowed. Returns
 * NULL.
 */
struct plugin *plugin_free(struct plugin *p);
