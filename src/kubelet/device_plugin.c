/* The messages of the kubelet's device plugin API. The numbers of fields are those of v1beta1. */
#include "kubelet/device_plugin.h"

#define HEALTHY   STR("Healthy")
#define UNHEALTHY STR("Unhealthy")

/* ---- what the plugin writes ---- */

void options_write(struct buf *out, struct plugin_options o)
{
    pb_put_bool(out, 1, o.pre_start_required);
    pb_put_bool(out, 2, o.preferred_allocation);
}

void register_request_write(struct buf *out, const struct register_request *r)
{
    pb_put_str(out, 1, STR(DEVICE_PLUGIN_VERSION));
    pb_put_str(out, 2, r->endpoint);
    pb_put_str(out, 3, r->resource);
    size_t options = pb_begin(out, 4);
    options_write(out, r->options);
    pb_end(out, options);
}

static void device_plugin_put_topology(struct buf *out, int64_t numa)
{
    size_t topology = pb_begin(out, 3);
    size_t node = pb_begin(out, 1);
    pb_put_i64(out, 1, numa);
    pb_end(out, node);
    pb_end(out, topology);
}

void device_write(struct buf *out, const struct plugin_device *d)
{
    size_t device = pb_begin(out, 1);
    pb_put_str(out, 1, d->id);
    pb_put_str(out, 2, d->healthy ? HEALTHY : UNHEALTHY);
    if (d->numa >= 0)
        device_plugin_put_topology(out, d->numa);
    pb_end(out, device);
}

void devices_write(struct buf *out, const struct plugin_device *d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        device_write(out, &d[i]);
}

static void device_plugin_put_pairs(struct buf *out, uint32_t number, const struct plugin_pair *p,
                                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        pb_put_pair(out, number, p[i].name, p[i].value);
}

static void device_plugin_put_mount(struct buf *out, const struct plugin_mount *m)
{
    size_t mount = pb_begin(out, 2);
    pb_put_str(out, 1, m->container_path);
    pb_put_str(out, 2, m->host_path);
    pb_put_bool(out, 3, m->read_only);
    pb_end(out, mount);
}

static void device_plugin_put_node(struct buf *out, const struct plugin_node *n)
{
    size_t node = pb_begin(out, 3);
    pb_put_str(out, 1, n->container_path);
    pb_put_str(out, 2, n->host_path);
    pb_put_str(out, 3, n->permissions);
    pb_end(out, node);
}

static void device_plugin_put_cdi(struct buf *out, struct str name)
{
    size_t device = pb_begin(out, 5);
    pb_put_str(out, 1, name);
    pb_end(out, device);
}

static void device_plugin_put_grant(struct buf *out, const struct allocate_grant *g)
{
    size_t grant = pb_begin(out, 1);
    device_plugin_put_pairs(out, 1, g->envs, g->n_envs);
    for (size_t i = 0; i < g->n_mounts; i++)
        device_plugin_put_mount(out, &g->mounts[i]);
    for (size_t i = 0; i < g->n_nodes; i++)
        device_plugin_put_node(out, &g->nodes[i]);
    device_plugin_put_pairs(out, 4, g->annotations, g->n_annotations);
    for (size_t i = 0; i < g->n_cdi; i++)
        device_plugin_put_cdi(out, g->cdi[i]);
    pb_end(out, grant);
}

void allocate_response_write(struct buf *out, const struct allocate_grant *grants, size_t n)
{
    for (size_t i = 0; i < n; i++)
        device_plugin_put_grant(out, &grants[i]);
}

static void device_plugin_read_pair(struct pb_reader r, struct plugin_pair *ret)
{
    struct pb_field f;
    *ret = (struct plugin_pair){.name = STR(""), .value = STR("")};
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            ret->name = pb_str(&r, &f);
        else if (f.number == 2)
            ret->value = pb_str(&r, &f);
    }
}

enum errc allocate_answer_env(struct str bytes, struct str name, struct str *ret,
                              struct err *reterr)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    *ret = STR_NULL;
    while (pb_next(&r, &f)) {
        struct plugin_pair env;
        if (f.number != 1)
            continue;
        device_plugin_read_pair(pb_inner(&r, &f), &env);
        if (str_eq(env.name, name))
            *ret = env.value;
    }
    return e.code == OK ? OK : err_set(reterr, e.code, "ContainerAllocateResponse: %s", e.text);
}

static struct str device_plugin_read_name(struct pb_reader r)
{
    struct pb_field f;
    struct str name = STR("");
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            name = pb_str(&r, &f);
    }
    return name;
}

enum errc allocate_answer_cdi(struct str bytes, struct str before, struct str *ret,
                              struct err *reterr)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    *ret = STR_NULL;
    while (pb_next(&r, &f)) {
        if (f.number != 5)
            continue;
        struct str name = device_plugin_read_name(pb_inner(&r, &f));
        if (str_starts(name, before))
            *ret = str_skip(name, before.n);
    }
    return e.code == OK ? OK : err_set(reterr, e.code, "ContainerAllocateResponse: %s", e.text);
}

struct str allocate_answer_node(struct str bytes, size_t i)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    while (pb_next(&r, &f)) {
        if (f.number != 3 || i-- > 0)
            continue;
        struct pb_reader node = pb_inner(&r, &f);
        while (pb_next(&node, &f)) {
            if (f.number == 2)
                return pb_str(&node, &f);
        }
        return STR("");
    }
    return STR_NULL;
}

void preferred_response_write(struct buf *out, const struct allocate_container *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t container = pb_begin(out, 1);
        for (size_t k = 0; k < c[i].n_ids; k++)
            pb_put_item(out, 1, c[i].ids[k]);
        pb_end(out, container);
    }
}

/* ---- what the kubelet writes ---- */

static struct allocate_container device_plugin_read_ids(struct pb_reader r, struct arena *a)
{
    struct pb_field f;
    struct pb_strs ids = {.n = 0};
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            pb_add_str(&r, a, &ids, &f);
    }
    return (struct allocate_container){.ids = ids.items, .n_ids = ids.n};
}

enum errc allocate_request_read(struct str bytes, struct arena *a, struct allocate_request *ret,
                                struct err *reterr)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    struct allocate_container *list = NULL;
    size_t n = 0;
    size_t cap = 0;
    while (pb_next(&r, &f)) {
        if (f.number != 1)
            continue;
        struct allocate_container one = device_plugin_read_ids(pb_inner(&r, &f), a);
        struct allocate_container *grown = pb_add(&r, a, list, &n, &cap, sizeof(one));
        if (grown == NULL)
            break;
        list = grown;
        list[n - 1] = one;
    }
    *ret = (struct allocate_request){.containers = list, .n_containers = n};
    return e.code == OK ? OK : err_set(reterr, e.code, "AllocateRequest: %s", e.text);
}

static struct preferred_container device_plugin_read_preferred(struct pb_reader r, struct arena *a)
{
    struct pb_field f;
    struct pb_strs available = {.n = 0};
    struct pb_strs must = {.n = 0};
    int32_t size = 0;
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            pb_add_str(&r, a, &available, &f);
        else if (f.number == 2)
            pb_add_str(&r, a, &must, &f);
        else if (f.number == 3)
            size = pb_i32(&r, &f);
    }
    return (struct preferred_container){.available = available.items,
                                        .n_available = available.n,
                                        .must_include = must.items,
                                        .n_must_include = must.n,
                                        .size = size};
}

enum errc preferred_request_read(struct str bytes, struct arena *a, struct preferred_request *ret,
                                 struct err *reterr)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    struct preferred_container *list = NULL;
    size_t n = 0;
    size_t cap = 0;
    while (pb_next(&r, &f)) {
        if (f.number != 1)
            continue;
        struct preferred_container one = device_plugin_read_preferred(pb_inner(&r, &f), a);
        struct preferred_container *grown = pb_add(&r, a, list, &n, &cap, sizeof(one));
        if (grown == NULL)
            break;
        list = grown;
        list[n - 1] = one;
    }
    *ret = (struct preferred_request){.containers = list, .n_containers = n};
    return e.code == OK ? OK : err_set(reterr, e.code, "PreferredAllocationRequest: %s", e.text);
}

enum errc pre_start_request_read(struct str bytes, struct arena *a, struct allocate_container *ret,
                                 struct err *reterr)
{
    struct err e = ERR_INIT;
    *ret = device_plugin_read_ids(pb_read(bytes, &e), a);
    return e.code == OK ? OK : err_set(reterr, e.code, "PreStartContainerRequest: %s", e.text);
}
