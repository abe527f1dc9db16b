/*
 * Reads the few fields that say which card a device is, and which claim holds it. Names of drivers,
 * pools, nodes and devices that are longer than the API server allows fail: the store has limits
 * for them.
 */
#include "objects/kube_dra.h"

#include "core/quantity.h"

struct dra_devices {
    struct dra_device_view *items;
    size_t n;
    size_t cap;
};

struct dra_results {
    struct dra_result_view *items;
    size_t n;
    size_t cap;
};

struct dra_meta {
    struct str uid;
    struct str namespace;
    struct str name;
};

static struct str kube_dra_name(struct jread *r)
{
    struct str name = jread_str(r);
    if (name.n <= DRA_NAME_MAX)
        return name;
    jread_fail(r, ERR_RANGE, "has %zu bytes: %zu at most", name.n, DRA_NAME_MAX);
    return STR_NULL;
}

static void kube_dra_read_meta(struct jread *r, struct dra_meta *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            ret->name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            ret->namespace = jread_str(r);
        else if (str_eq(key, STR("uid")))
            ret->uid = jread_str(r);
        else
            jread_skip(r);
    }
}

/* The name of an attribute or a capacity, without its domain. */
static struct str kube_dra_bare(struct str name)
{
    struct str domain;
    struct str rest;
    return str_cut(name, '/', &domain, &rest) ? rest : name;
}

/* A number of bytes; `unknown` if it is no such number. */
static int64_t kube_dra_bytes(struct str text, int64_t unknown)
{
    struct quantity q;
    bool good = text.p != NULL && quantity_parse(str_trim(text), &q) == OK && q.value >= 0;
    return good && !q.saturated ? q.value : unknown;
}

/* {"string": "GPU-1"}; absent if it is of another type. */
static struct str kube_dra_read_attribute(struct jread *r)
{
    struct str text = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("string")))
            text = jread_str(r);
        else
            jread_skip(r);
    }
    return text;
}

static void kube_dra_read_attributes(struct jread *r, struct dra_device_view *ret)
{
    struct str key;
    jread_object (r, key) {
        struct str bare = kube_dra_bare(key);
        if (str_eq(bare, STR("uuid")))
            ret->uuid = kube_dra_read_attribute(r);
        else if (str_eq(bare, STR("parentUUID")))
            ret->parent = kube_dra_read_attribute(r);
        else if (str_eq(bare, STR("pciBusID")))
            ret->pci = dra_pci(kube_dra_read_attribute(r));
        else
            jread_skip(r);
    }
}

static int64_t kube_dra_read_capacity(struct jread *r)
{
    int64_t memory = 0;
    struct str name;
    struct str key;
    jread_object (r, name) {
        if (!str_eq(kube_dra_bare(name), STR("memory"))) {
            jread_skip(r);
            continue;
        }
        jread_object (r, key) {
            if (str_eq(key, STR("value")))
                memory = kube_dra_bytes(jread_text(r), 0);
            else
                jread_skip(r);
        }
    }
    return memory;
}

static struct dra_device_view kube_dra_read_device(struct jread *r)
{
    struct dra_device_view x = {.name = STR_NULL};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            x.name = kube_dra_name(r);
        else if (str_eq(key, STR("nodeName")))
            x.node = kube_dra_name(r);
        else if (str_eq(key, STR("attributes")))
            kube_dra_read_attributes(r, &x);
        else if (str_eq(key, STR("capacity")))
            x.memory = kube_dra_read_capacity(r);
        else
            jread_skip(r);
    }
    return x;
}

static void kube_dra_read_devices(struct jread *r, struct arena *a, struct dra_devices *ret)
{
    ret->n = 0;
    jread_array (r) {
        struct dra_device_view x = kube_dra_read_device(r);
        if (x.uuid.n == 0 && x.parent.n == 0 && x.pci == 0)
            continue;
        struct dra_device_view *grown = arena_grow(a, ret->items, ret->n, &ret->cap, sizeof(x));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the devices");
            continue;
        }
        ret->items = grown;
        ret->items[ret->n++] = x;
    }
}

static void kube_dra_read_pool(struct jread *r, struct dra_slice_view *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            ret->pool = kube_dra_name(r);
        else if (str_eq(key, STR("generation")))
            ret->generation = jread_i64(r);
        else
            jread_skip(r);
    }
}

static void kube_dra_read_slice_spec(struct jread *r, struct arena *a, struct dra_slice_view *ret)
{
    struct dra_devices devices = {.n = 0};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("driver")))
            ret->driver = kube_dra_name(r);
        else if (str_eq(key, STR("pool")))
            kube_dra_read_pool(r, ret);
        else if (str_eq(key, STR("nodeName")))
            ret->node = kube_dra_name(r);
        else if (str_eq(key, STR("devices")))
            kube_dra_read_devices(r, a, &devices);
        else
            jread_skip(r);
    }
    ret->devices = devices.items;
    ret->n_devices = 0;
    for (size_t i = 0; i < devices.n; i++) {
        if (ret->node.n > 0 || devices.items[i].node.n > 0)
            devices.items[ret->n_devices++] = devices.items[i];
    }
}

void kube_read_slice(struct jread *r, struct arena *a, struct dra_slice_view *ret)
{
    struct dra_meta meta = {.name = STR_NULL};
    struct str key;
    *ret = (struct dra_slice_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            kube_dra_read_meta(r, &meta);
        else if (str_eq(key, STR("spec")))
            kube_dra_read_slice_spec(r, a, ret);
        else
            jread_skip(r);
    }
    ret->name = meta.name;
}

/* {"memory": "4Gi"}; -1: it says nothing of the memory. */
static int64_t kube_dra_read_consumed(struct jread *r)
{
    int64_t memory = -1;
    struct str key;
    jread_object (r, key) {
        if (str_eq(kube_dra_bare(key), STR("memory")))
            memory = kube_dra_bytes(jread_text(r), -1);
        else
            jread_skip(r);
    }
    return memory;
}

static struct dra_result_view kube_dra_read_result(struct jread *r, bool *ret_admin)
{
    struct dra_result_view x = {.memory = -1};
    struct str key;
    *ret_admin = false;
    jread_object (r, key) {
        if (str_eq(key, STR("driver")))
            x.driver = kube_dra_name(r);
        else if (str_eq(key, STR("pool")))
            x.pool = kube_dra_name(r);
        else if (str_eq(key, STR("device")))
            x.device = kube_dra_name(r);
        else if (str_eq(key, STR("shareID")))
            x.shared = jread_str(r).n > 0;
        else if (str_eq(key, STR("consumedCapacity")))
            x.memory = kube_dra_read_consumed(r);
        else if (str_eq(key, STR("adminAccess")))
            *ret_admin = jread_bool(r);
        else
            jread_skip(r);
    }
    return x;
}

static void kube_dra_read_results(struct jread *r, struct arena *a, struct dra_results *ret)
{
    ret->n = 0;
    jread_array (r) {
        bool admin = false;
        struct dra_result_view x = kube_dra_read_result(r, &admin);
        if (admin)
            continue;
        struct dra_result_view *grown = arena_grow(a, ret->items, ret->n, &ret->cap, sizeof(x));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the allocated devices");
            continue;
        }
        ret->items = grown;
        ret->items[ret->n++] = x;
    }
}

/* Of an AllocationResult: devices.results. */
static void kube_dra_read_allocation(struct jread *r, struct arena *a, struct dra_results *ret)
{
    struct str key;
    struct str inner;
    ret->n = 0;
    jread_object (r, key) {
        if (!str_eq(key, STR("devices"))) {
            jread_skip(r);
            continue;
        }
        jread_object (r, inner) {
            if (str_eq(inner, STR("results")))
                kube_dra_read_results(r, a, ret);
            else
                jread_skip(r);
        }
    }
}

void kube_read_claim(struct jread *r, struct arena *a, struct dra_claim_view *ret)
{
    struct dra_meta meta = {.name = STR_NULL};
    struct dra_results results = {.n = 0};
    struct str key;
    struct str inner;
    jread_object (r, key) {
        if (str_eq(key, STR("metadata"))) {
            kube_dra_read_meta(r, &meta);
        } else if (str_eq(key, STR("status"))) {
            jread_object (r, inner) {
                if (str_eq(inner, STR("allocation")))
                    kube_dra_read_allocation(r, a, &results);
                else
                    jread_skip(r);
            }
        } else {
            jread_skip(r);
        }
    }
    *ret = (struct dra_claim_view){.uid = meta.uid,
                                   .namespace = meta.namespace,
                                   .name = meta.name,
                                   .results = results.items,
                                   .n_results = results.n};
}

void kube_read_class(struct jread *r, struct dra_class_view *ret)
{
    struct dra_meta meta = {.name = STR_NULL};
    struct str resource = STR_NULL;
    struct str key;
    struct str inner;
    jread_object (r, key) {
        if (str_eq(key, STR("metadata"))) {
            kube_dra_read_meta(r, &meta);
        } else if (str_eq(key, STR("spec"))) {
            jread_object (r, inner) {
                if (str_eq(inner, STR("extendedResourceName")))
                    resource = jread_str(r);
                else
                    jread_skip(r);
            }
        } else {
            jread_skip(r);
        }
    }
    *ret = (struct dra_class_view){.name = meta.name, .resource = resource};
}
