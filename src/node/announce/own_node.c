/* Reads the own node from a reflector whose selector names it alone. */
#include "node/announce/own_node.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "kube/reflector.h"
#include "json/jread.h"

#define QUIET_MS 180000

/* Set by an administrator where a node has gpushare's cGPU module and must not use it. */
#define LABEL_DISABLE_CGPU STR("cgpu.disable.isolation")

struct own_node {
    struct reflector *reflector;
    struct arena arena; /* for one object */
    void (*changed)(void *ctx, const struct own_node_view *node);
    void *ctx;
    bool seen;
};

static void own_node_read_annotations(struct jread *r, struct own_node_view *v)
{
    struct str name;
    jread_object (r, name) {
        if (str_eq(name, CARDPACK_ANNOTATION_CARDS))
            v->cards = jread_str(r);
        else if (str_eq(name, CARDPACK_ANNOTATION_LATE))
            v->late = jread_str(r);
        else
            jread_skip(r);
    }
}

static void own_node_read_metadata(struct jread *r, struct own_node_view *v)
{
    struct str key;
    struct str name;
    jread_object (r, key) {
        if (str_eq(key, STR("resourceVersion"))) {
            (void)str_to_u64(jread_str(r), UINT64_MAX, &v->version);
            continue;
        }
        if (str_eq(key, STR("annotations"))) {
            own_node_read_annotations(r, v);
            continue;
        }
        if (!str_eq(key, STR("labels"))) {
            jread_skip(r);
            continue;
        }
        jread_object (r, name) {
            if (str_eq(name, CARDPACK_LABEL_ISOLATION))
                v->isolation = jread_str(r);
            else if (str_eq(name, CARDPACK_LABEL_MPS))
                v->mps = str_eq(jread_str(r), STR("true"));
            else if (str_eq(name, LABEL_DISABLE_CGPU))
                v->disable_cgpu = str_eq(jread_str(r), STR("true"));
            else
                jread_skip(r);
        }
    }
}

static void own_node_read_resources(struct jread *r, struct str *ret_count, struct str *ret_mem)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_RESOURCE_COUNT))
            *ret_count = jread_text(r);
        else if (str_eq(key, GPUSHARE_RESOURCE_MEM))
            *ret_mem = jread_text(r);
        else
            jread_skip(r);
    }
}

static void own_node_read_info(struct jread *r, struct own_node_view *v)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("kubeletVersion")))
            v->kubelet = jread_str(r);
        else if (str_eq(key, STR("containerRuntimeVersion")))
            v->runtime = jread_str(r);
        else
            jread_skip(r);
    }
}

static void own_node_read_status(struct jread *r, struct own_node_view *v)
{
    struct str key;
    struct str unused;
    jread_object (r, key) {
        if (str_eq(key, STR("capacity")))
            own_node_read_resources(r, &v->count, &v->mem);
        else if (str_eq(key, STR("allocatable")))
            own_node_read_resources(r, &v->count_allocatable, &unused);
        else if (str_eq(key, STR("nodeInfo")))
            own_node_read_info(r, v);
        else
            jread_skip(r);
    }
}

enum errc own_node_read(struct str json, struct arena *a, struct own_node_view *ret,
                        struct err *reterr)
{
    struct jread r;
    struct str key;
    *ret = (struct own_node_view){.cards = STR_NULL};
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (str_eq(key, STR("metadata")))
            own_node_read_metadata(&r, ret);
        else if (str_eq(key, STR("status")))
            own_node_read_status(&r, ret);
        else
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && arena_failed(a))
        code = err_set(reterr, arena_fault(a), "no room for the node");
    return code;
}

static void own_node_on_change(void *ctx, enum reflector_change change, struct str object)
{
    struct own_node *o = ctx;
    struct own_node_view v;
    struct err e = ERR_INIT;
    if (change == REFLECTOR_GONE) {
        log_warn("the own Node object was deleted");
        o->seen = false;
        return;
    }
    arena_reset(&o->arena);
    if (own_node_read(object, &o->arena, &v, &e) != OK) {
        log_warn("the own Node object can't be read", kv_cstr("error", e.text));
        return;
    }
    o->seen = true;
    o->changed(o->ctx, &v);
}

static void own_node_on_list(void *ctx)
{
    (void)ctx;
}

enum errc own_node_new(struct loop *l, struct kube_api *api, struct str node,
                       void (*changed)(void *ctx, const struct own_node_view *node), void *ctx,
                       struct own_node **ret, struct err *reterr)
{
    struct own_node *o = mem_alloc(sizeof(*o));
    if (o == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the own node");
    *o = (struct own_node){.changed = changed, .ctx = ctx};
    arena_init(&o->arena, LIMIT_OBJECT_ARENA);
    struct reflector_settings s = {.path = STR("/api/v1/nodes"),
                                   .kind = STR("NodeList"),
                                   .field = STR("metadata.name"),
                                   .equals = node,
                                   .quiet_ms = QUIET_MS};
    struct reflector_sink sink = {.begin = own_node_on_list,
                                  .change = own_node_on_change,
                                  .end = own_node_on_list,
                                  .of = "node",
                                  .ctx = o};
    enum errc code = reflector_new(l, api, &s, &sink, &o->reflector, reterr);
    if (code != OK)
        (void)own_node_free(o);
    else
        *ret = o;
    return code;
}

struct own_node *own_node_free(struct own_node *o)
{
    if (o == NULL)
        return NULL;
    o->reflector = reflector_free(o->reflector);
    arena_done(&o->arena);
    mem_free(o);
    return NULL;
}

bool own_node_seen(const struct own_node *o)
{
    return o->seen;
}
