/*
 * Each reader is its object's schema with everything left out that we don't use; strings are views,
 * and only the containers that ask for memory take room in the arena.
 */
#include "kube.h"

#include "gpushare.h"

static void read_annotations(struct jread *r, struct pod_view *pod)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_ANNOTATION_IDX))
            pod->idx = jread_str(r);
        else if (str_eq(key, GPUSHARE_ANNOTATION_ASSIGNED))
            pod->assigned = jread_str(r);
        else if (str_eq(key, GPUSHARE_ANNOTATION_ASSUME_TIME))
            pod->assume_time = jread_str(r);
        else
            jread_skip(r);
    }
}

static void read_pod_metadata(struct jread *r, struct pod_view *pod)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            pod->name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            pod->namespace = jread_str(r);
        else if (str_eq(key, STR("uid")))
            pod->uid = jread_str(r);
        else if (str_eq(key, STR("deletionTimestamp")))
            pod->deleting = jread_str(r).n > 0;
        else if (str_eq(key, STR("annotations")))
            read_annotations(r, pod);
        else
            jread_skip(r);
    }
}

/* One resource of a ResourceList. */
static void read_resource(struct jread *r, struct str name, struct str *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, name))
            *ret = jread_text(r);
        else
            jread_skip(r);
    }
}

static struct str read_resources(struct jread *r)
{
    struct str limits = STR_NULL;
    struct str requests = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("limits")))
            read_resource(r, GPUSHARE_RESOURCE_MEM, &limits);
        else if (str_eq(key, STR("requests")))
            read_resource(r, GPUSHARE_RESOURCE_MEM, &requests);
        else
            jread_skip(r);
    }
    return limits.p != NULL ? limits : requests;
}

static void read_container(struct jread *r, struct container_view *c)
{
    bool always = false;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            c->name = jread_str(r);
        else if (str_eq(key, STR("resources")))
            c->mem = read_resources(r);
        else if (str_eq(key, STR("restartPolicy")))
            always = str_eq(jread_str(r), STR("Always"));
        else
            jread_skip(r);
    }
    if (always && c->kind == CONTAINER_INIT)
        c->kind = CONTAINER_SIDECAR;
}

struct container_list {
    struct container_view *items;
    size_t n;
    size_t cap;
};

static void container_add(struct jread *r, struct arena *a, struct container_list *list,
                          struct container_view c)
{
    struct container_view *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(c));
    if (grown == NULL) {
        jread_fail(r, arena_fault(a), "no room for its containers");
        return;
    }
    list->items = grown;
    list->items[list->n++] = c;
}

static void read_containers(struct jread *r, struct arena *a, enum container_kind kind,
                            struct container_list *list)
{
    list->n = 0;
    jread_array (r) {
        struct container_view c = {.kind = kind};
        read_container(r, &c);
        if (c.mem.p != NULL)
            container_add(r, a, list, c);
    }
}

static void read_pod_spec(struct jread *r, struct arena *a, struct pod_view *pod)
{
    struct container_list inits = {.n = 0};
    struct container_list mains = {.n = 0};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("nodeName")))
            pod->node = jread_str(r);
        else if (str_eq(key, STR("containers")))
            read_containers(r, a, CONTAINER_MAIN, &mains);
        else if (str_eq(key, STR("initContainers")))
            read_containers(r, a, CONTAINER_INIT, &inits);
        else if (str_eq(key, STR("overhead")))
            read_resource(r, GPUSHARE_RESOURCE_MEM, &pod->mem_overhead);
        else
            jread_skip(r);
    }
    if (inits.n == 0)
        inits = mains;
    else {
        for (size_t i = 0; i < mains.n; i++)
            container_add(r, a, &inits, mains.items[i]);
    }
    pod->containers = inits.items;
    pod->n_containers = inits.n;
}

void kube_read_pod(struct jread *r, struct arena *a, struct pod_view *ret)
{
    struct str key;
    *ret = (struct pod_view){.uid = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata"))) {
            read_pod_metadata(r, ret);
        } else if (str_eq(key, STR("spec"))) {
            read_pod_spec(r, a, ret);
        } else if (str_eq(key, STR("status"))) {
            struct str field;
            jread_object (r, field) {
                if (str_eq(field, STR("phase")))
                    ret->phase = jread_str(r);
                else
                    jread_skip(r);
            }
        } else {
            jread_skip(r);
        }
    }
}

static void read_capacity(struct jread *r, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_RESOURCE_MEM))
            node->mem = jread_text(r);
        else if (str_eq(key, GPUSHARE_RESOURCE_COUNT))
            node->count = jread_text(r);
        else
            jread_skip(r);
    }
}

static void read_node_status(struct jread *r, struct node_view *node)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("capacity")))
            read_capacity(r, node);
        else if (str_eq(key, STR("allocatable")))
            read_resource(r, GPUSHARE_RESOURCE_MEM, &node->mem_allocatable);
        else
            jread_skip(r);
    }
}

void kube_read_node(struct jread *r, struct node_view *ret)
{
    struct str key;
    *ret = (struct node_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata"))) {
            struct str field;
            jread_object (r, field) {
                if (str_eq(field, STR("name")))
                    ret->name = jread_str(r);
                else
                    jread_skip(r);
            }
        } else if (str_eq(key, STR("status"))) {
            read_node_status(r, ret);
        } else {
            jread_skip(r);
        }
    }
}

static void read_configmap_metadata(struct jread *r, struct configmap_view *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            ret->name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            ret->namespace = jread_str(r);
        else
            jread_skip(r);
    }
}

void kube_read_configmap(struct jread *r, struct configmap_view *ret)
{
    struct str key;
    *ret = (struct configmap_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            read_configmap_metadata(r, ret);
        else if (str_eq(key, STR("data")))
            read_resource(r, GPUSHARE_UNHEALTHY_KEY, &ret->gpus);
        else
            jread_skip(r);
    }
}

static void write_number_annotation(struct jwrite *w, struct str key, uint64_t value)
{
    char digits[24];
    struct buf text = {.p = digits, .cap = sizeof(digits), .max = sizeof(digits) - 1};
    buf_put_u64(&text, value);
    jwrite_key(w, key);
    jwrite_str(w, buf_str(&text));
}

static void write_annotations(struct jwrite *w, const struct binding *b)
{
    jwrite_key(w, STR("annotations"));
    jwrite_object_begin(w);
    write_number_annotation(w, GPUSHARE_ANNOTATION_IDX, b->card);
    write_number_annotation(w, GPUSHARE_ANNOTATION_DEV, (uint64_t)b->card_total);
    write_number_annotation(w, GPUSHARE_ANNOTATION_POD, (uint64_t)b->mem);
    jwrite_key(w, GPUSHARE_ANNOTATION_ASSIGNED);
    jwrite_str(w, STR("false"));
    write_number_annotation(w, GPUSHARE_ANNOTATION_ASSUME_TIME, b->assume_ns);
    jwrite_object_end(w);
}

void kube_write_binding(struct jwrite *w, const struct binding *b)
{
    jwrite_object_begin(w);
    jwrite_key(w, STR("apiVersion"));
    jwrite_str(w, STR("v1"));
    jwrite_key(w, STR("kind"));
    jwrite_str(w, STR("Binding"));
    jwrite_key(w, STR("metadata"));
    jwrite_object_begin(w);
    jwrite_key(w, STR("name"));
    jwrite_str(w, b->name);
    jwrite_key(w, STR("namespace"));
    jwrite_str(w, b->namespace);
    jwrite_key(w, STR("uid"));
    jwrite_str(w, b->uid);
    if (b->mem > 0)
        write_annotations(w, b);
    jwrite_object_end(w);
    jwrite_key(w, STR("target"));
    jwrite_object_begin(w);
    jwrite_key(w, STR("kind"));
    jwrite_str(w, STR("Node"));
    jwrite_key(w, STR("name"));
    jwrite_str(w, b->node);
    jwrite_object_end(w);
    jwrite_object_end(w);
}
