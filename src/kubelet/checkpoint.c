/* Reads the kubelet's checkpoint of its devices. */
#include "kubelet/checkpoint.h"

struct checkpoint_ids {
    struct str *items;
    size_t n;
    size_t cap;
};

struct checkpoint_list {
    struct checkpoint_entry *items;
    size_t n;
    size_t cap;
};

static void checkpoint_read_list(struct jread *r, struct arena *a, struct checkpoint_ids *ids)
{
    jread_array (r) {
        struct str id = jread_str(r);
        struct str *grown = arena_grow(a, ids->items, ids->n, &ids->cap, sizeof(id));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for a list of devices");
            continue;
        }
        ids->items = grown;
        ids->items[ids->n++] = id;
    }
}

/* {"0": ["id", ...], ...} by NUMA node, or the list alone. */
static void checkpoint_read_ids(struct jread *r, struct arena *a, struct checkpoint_entry *entry)
{
    struct checkpoint_ids ids = {.n = 0};
    struct str node;
    if (jread_type(r) == JTYPE_ARRAY) {
        checkpoint_read_list(r, a, &ids);
    } else {
        jread_object (r, node)
            checkpoint_read_list(r, a, &ids);
    }
    entry->ids = ids.items;
    entry->n_ids = ids.n;
}

static struct checkpoint_entry checkpoint_read_entry(struct jread *r, struct arena *a)
{
    struct checkpoint_entry e = {.n_ids = 0};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("PodUID")))
            e.pod_uid = jread_str(r);
        else if (str_eq(key, STR("ContainerName")))
            e.container = jread_str(r);
        else if (str_eq(key, STR("ResourceName")))
            e.resource = jread_str(r);
        else if (str_eq(key, STR("DeviceIDs")))
            checkpoint_read_ids(r, a, &e);
        else if (str_eq(key, STR("AllocResp")))
            e.answer = jread_str(r);
        else
            jread_skip(r);
    }
    return e;
}

static void checkpoint_read_entries(struct jread *r, struct arena *a, struct checkpoint_list *list)
{
    list->n = 0; /* of repeated keys the last wins */
    jread_array (r) {
        struct checkpoint_entry one = checkpoint_read_entry(r, a);
        struct checkpoint_entry *grown =
            arena_grow(a, list->items, list->n, &list->cap, sizeof(one));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the entries");
            continue;
        }
        list->items = grown;
        list->items[list->n++] = one;
    }
}

static void checkpoint_read_data(struct jread *r, struct arena *a, struct checkpoint_list *list)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("PodDeviceEntries")))
            checkpoint_read_entries(r, a, list);
        else
            jread_skip(r);
    }
}

enum errc checkpoint_read(struct str json, struct arena *a, struct checkpoint *ret,
                          struct err *reterr)
{
    struct jread r;
    struct str key;
    struct checkpoint_list list = {.n = 0};
    bool there = false;
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (str_eq(key, STR("Data"))) {
            there = true;
            checkpoint_read_data(&r, a, &list);
        } else {
            jread_skip(&r);
        }
    }
    if (!there)
        jread_fail(&r, ERR_SYNTAX, "a checkpoint without Data");
    *ret = (struct checkpoint){.entries = list.items, .n_entries = list.n};
    return jread_finish(&r, reterr);
}
