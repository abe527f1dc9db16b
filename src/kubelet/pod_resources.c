/* The answer to List of the kubelet's pod resources API. The numbers of fields are those of v1. */
#include "kubelet/pod_resources.h"

static struct pod_devices pod_resources_read_devices(struct pb_reader r, struct arena *a)
{
    struct pb_field f;
    struct pb_strs ids = {.n = 0};
    struct pod_devices d = {.resource = STR("")};
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            d.resource = pb_str(&r, &f);
        else if (f.number == 2)
            pb_add_str(&r, a, &ids, &f);
    }
    d.ids = ids.items;
    d.n_ids = ids.n;
    return d;
}

static struct pod_container pod_resources_read_container(struct pb_reader r, struct arena *a)
{
    struct pb_field f;
    struct pod_devices *list = NULL;
    size_t cap = 0;
    struct pod_container c = {.name = STR("")};
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            c.name = pb_str(&r, &f);
        if (f.number != 2)
            continue;
        struct pod_devices one = pod_resources_read_devices(pb_inner(&r, &f), a);
        struct pod_devices *grown = pb_add(&r, a, list, &c.n_devices, &cap, sizeof(one));
        if (grown == NULL)
            break;
        list = grown;
        list[c.n_devices - 1] = one;
    }
    c.devices = list;
    return c;
}

static struct pod_entry pod_resources_read_pod(struct pb_reader r, struct arena *a)
{
    struct pb_field f;
    struct pod_container *list = NULL;
    size_t cap = 0;
    struct pod_entry p = {.namespace = STR(""), .name = STR("")};
    while (pb_next(&r, &f)) {
        if (f.number == 1)
            p.name = pb_str(&r, &f);
        else if (f.number == 2)
            p.namespace = pb_str(&r, &f);
        if (f.number != 3)
            continue;
        struct pod_container one = pod_resources_read_container(pb_inner(&r, &f), a);
        struct pod_container *grown = pb_add(&r, a, list, &p.n_containers, &cap, sizeof(one));
        if (grown == NULL)
            break;
        list = grown;
        list[p.n_containers - 1] = one;
    }
    p.containers = list;
    return p;
}

enum errc pod_resources_read(struct str bytes, struct arena *a, struct pod_resources *ret,
                             struct err *reterr)
{
    struct err e = ERR_INIT;
    struct pb_reader r = pb_read(bytes, &e);
    struct pb_field f;
    struct pod_entry *list = NULL;
    size_t n = 0;
    size_t cap = 0;
    while (pb_next(&r, &f)) {
        if (f.number != 1)
            continue;
        struct pod_entry one = pod_resources_read_pod(pb_inner(&r, &f), a);
        struct pod_entry *grown = pb_add(&r, a, list, &n, &cap, sizeof(one));
        if (grown == NULL)
            break;
        list = grown;
        list[n - 1] = one;
    }
    *ret = (struct pod_resources){.pods = list, .n_pods = n};
    return e.code == OK ? OK : err_set(reterr, e.code, "ListPodResourcesResponse: %s", e.text);
}
