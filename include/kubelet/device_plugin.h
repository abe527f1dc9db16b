/*
 * The messages of the kubelet's device plugin API, v1beta1. Readers return views into the bytes,
 * and arrays from the arena. Writers append one message to `out`, which keeps their failure.
 */
#pragma once

#include "kubelet/pb.h"

#define DEVICE_PLUGIN_VERSION "v1beta1"

/* The methods' paths: the first on the kubelet's socket, the others on the plugin's. */
#define DEVICE_PLUGIN_REGISTER  "/v1beta1.Registration/Register"
#define DEVICE_PLUGIN_OPTIONS   "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define DEVICE_PLUGIN_WATCH     "/v1beta1.DevicePlugin/ListAndWatch"
#define DEVICE_PLUGIN_PREFERRED "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define DEVICE_PLUGIN_ALLOCATE  "/v1beta1.DevicePlugin/Allocate"
#define DEVICE_PLUGIN_PRE_START "/v1beta1.DevicePlugin/PreStartContainer"

/* DevicePluginOptions */
struct plugin_options {
    bool pre_start_required;
    bool preferred_allocation; /* get_preferred_allocation_available */
};

void options_write(struct buf *out, struct plugin_options o);

/* RegisterRequest, with version DEVICE_PLUGIN_VERSION. The answer is empty. */
struct register_request {
    struct str endpoint; /* base name of the plugin's socket */
    struct str resource;
    struct plugin_options options;
};

void register_request_write(struct buf *out, const struct register_request *r);

/* Device */
struct plugin_device {
    struct str id;
    bool healthy;
    int64_t numa; /* NUMA node; negative: not known */
};

/* ListAndWatchResponse. device_write appends one device of it: one after the other is the same. */
void device_write(struct buf *out, const struct plugin_device *d);
void devices_write(struct buf *out, const struct plugin_device *d, size_t n);

/* AllocateRequest */
struct allocate_container {
    const struct str *ids;
    size_t n_ids;
};

struct allocate_request {
    const struct allocate_container *containers;
    size_t n_containers;
};

enum errc allocate_request_read(struct str bytes, struct arena *a, struct allocate_request *ret,
                                struct err *reterr) _must_use_;

/* AllocateResponse: one grant for each container of the request, in its order. */
struct plugin_pair {
    struct str name; /* no name twice in a list */
    struct str value;
};

struct plugin_mount {
    struct str container_path;
    struct str host_path;
    bool read_only;
};

struct plugin_node { /* DeviceSpec: a device node */
    struct str container_path;
    struct str host_path;
    struct str permissions; /* of r, w and m */
};

struct allocate_grant {
    const struct plugin_pair *envs;
    size_t n_envs;
    const struct plugin_mount *mounts;
    size_t n_mounts;
    const struct plugin_node *nodes;
    size_t n_nodes;
    const struct plugin_pair *annotations;
    size_t n_annotations;
    const struct str *cdi; /* "vendor.com/class=name"; since Kubernetes 1.28 */
    size_t n_cdi;
};

void allocate_response_write(struct buf *out, const struct allocate_grant *grants, size_t n);

/* The value of a variable in one grant, as the kubelet's checkpoint keeps it. Absent: no such
 * variable. */
enum errc allocate_answer_env(struct str bytes, struct str name, struct str *ret,
                              struct err *reterr) _must_use_;

/* The CDI device in one grant whose name begins so: what follows. Absent: no such device. */
enum errc allocate_answer_cdi(struct str bytes, struct str before, struct str *ret,
                              struct err *reterr) _must_use_;

/* The host's path of the device node number i in one grant; absent: there are fewer. */
struct str allocate_answer_node(struct str bytes, size_t i);

/* PreferredAllocationRequest */
struct preferred_container {
    const struct str *available;
    size_t n_available;
    const struct str *must_include;
    size_t n_must_include;
    int32_t size;
};

struct preferred_request {
    const struct preferred_container *containers;
    size_t n_containers;
};

enum errc preferred_request_read(struct str bytes, struct arena *a, struct preferred_request *ret,
                                 struct err *reterr) _must_use_;

/* PreferredAllocationResponse: the IDs for each container of the request, in its order. */
void preferred_response_write(struct buf *out, const struct allocate_container *c, size_t n);

/* PreStartContainerRequest. The answer is empty. */
enum errc pre_start_request_read(struct str bytes, struct arena *a, struct allocate_container *ret,
                                 struct err *reterr) _must_use_;
