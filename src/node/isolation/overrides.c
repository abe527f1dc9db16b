/* Keeps the few pods that override a variable. */
#include "node/isolation/overrides.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/jread.h"

static const char *const ours[] = {
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_GPU_MEMORY_REQUEST",
    "NVIDIA_GPU_MEMORY_LIMIT",
    "CUDA_VISIBLE_DEVICES", /* a limit of MPS names cards by their numbers in it */
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
};

void overrides_init(struct overrides *o, struct map_seed seed)
{
    *o = (struct overrides){.list = 0};
    map_init(&o->pods, offsetof(struct override, uid), seed);
    arena_init(&o->arena, LIMIT_OBJECT_ARENA);
}

void overrides_done(struct overrides *o)
{
    size_t cursor = 0;
    for (struct override *p = map_next(&o->pods, &cursor); p != NULL;
         p = map_next(&o->pods, &cursor))
        mem_free(p);
    map_done(&o->pods);
    arena_done(&o->arena);
}

/* ---- reading ---- */

static bool overrides_is_ours(struct str name)
{
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (str_eq(name, str_of(ours[i])))
            return true;
    }
    return false;
}

/* Of the list `env`: the first variable of ours. */
static struct str overrides_read_env(struct jread *r, struct override *found)
{
    struct str first = STR_NULL;
    jread_array (r) {
        struct str name = jread_member(r, STR("name"));
        if (!overrides_is_ours(name))
            continue;
        first = first.p == NULL ? name : first;
        found->memory = found->memory || str_starts(name, STR("NVIDIA_GPU_MEMORY_"));
    }
    return first;
}

static void overrides_read_containers(struct jread *r, struct override *found)
{
    struct str key;
    jread_array (r) {
        struct str name = STR_NULL;
        struct str variable = STR_NULL;
        jread_object (r, key) {
            if (str_eq(key, STR("name")))
                name = jread_str(r);
            else if (str_eq(key, STR("env")))
                variable = overrides_read_env(r, found);
            else
                jread_skip(r);
        }
        if (variable.p == NULL || found->variable.p != NULL)
            continue;
        found->container = name;
        found->variable = variable;
    }
}

void overrides_read(struct str json, struct arena *a, struct override *ret)
{
    struct jread r;
    struct str key;
    struct err e = ERR_INIT;
    *ret = (struct override){.container = STR_NULL};
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("spec"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, key) {
            if (str_eq(key, STR("containers")) || str_eq(key, STR("initContainers")) ||
                str_eq(key, STR("ephemeralContainers")))
                overrides_read_containers(&r, ret);
            else
                jread_skip(&r);
        }
    }
    if (jread_finish(&r, &e) == OK)
        return;
    *ret = (struct override){.container = STR("?"), .memory = true};
    ret->variable = arena_dup(a, str_of(e.text));
    if (ret->variable.p == NULL)
        ret->variable = STR("more than can be read");
}

/* ---- keeping ---- */

static struct override *overrides_new(const struct pod_view *v, const struct override *found)
{
    struct override *p = mem_alloc(sizeof(*p) + v->uid.n + found->container.n + found->variable.n);
    if (p == NULL)
        return NULL;
    char *at = (char *)(p + 1);
    p->uid = str_store(&at, v->uid);
    p->container = str_store(&at, found->container);
    p->variable = str_store(&at, found->variable);
    p->memory = found->memory;
    return p;
}

static void overrides_report(const struct overrides *o, const struct pod_view *v,
                             const struct override *p)
{
    char bytes[768];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {v->namespace, v->name, v->uid};
    log_warn("a pod overrides a variable of its limits", kv_str("namespace", v->namespace),
             kv_str("pod", v->name), kv_str("container", p->container),
             kv_str("variable", p->variable));
    buf_printf(&text,
               "container %.*s sets %.*s by itself, so what the node sets there does not limit it",
               STR_ARG(p->container), STR_ARG(p->variable));
    if (o->events != NULL)
        events_post(o->events, &pod, EVENT_WARNING, STR("GPUIsolationOverridden"), buf_str(&text));
}

void overrides_begin(struct overrides *o)
{
    o->list++;
}

void overrides_set(struct overrides *o, const struct pod_view *view, struct str json, bool over)
{
    struct override found;
    bool known = map_get(&o->pods, view->uid) != NULL;
    overrides_gone(o, view->uid);
    if (over || pod_view_terminal(view) || view->n_containers == 0)
        return;
    arena_reset(&o->arena);
    overrides_read(json, &o->arena, &found);
    if (found.variable.p == NULL)
        return;
    struct override *p = o->pods.n >= OVERRIDES_MAX ? NULL : overrides_new(view, &found);
    if (p != NULL)
        p->list = o->list;
    if (p == NULL || map_put(&o->pods, p) != OK) {
        log_error("a pod that overrides a variable of its limits can't be kept",
                  kv_str("namespace", view->namespace), kv_str("pod", view->name));
        mem_free(p);
        return;
    }
    if (!known)
        overrides_report(o, view, p);
}

void overrides_gone(struct overrides *o, struct str uid)
{
    mem_free(map_del(&o->pods, uid));
}

void overrides_end(struct overrides *o)
{
    size_t cursor = 0;
    for (struct override *p = map_next(&o->pods, &cursor); p != NULL;
         p = map_next(&o->pods, &cursor)) {
        if (p->list == o->list)
            continue;
        (void)map_del(&o->pods, p->uid);
        mem_free(p);
        cursor--;
    }
}

const struct override *overrides_on(const struct overrides *o, uint32_t card,
                                    bool (*is_on)(void *ctx, struct str uid, uint32_t card),
                                    void *ctx)
{
    size_t cursor = 0;
    for (const struct override *p = map_next(&o->pods, &cursor); p != NULL;
         p = map_next(&o->pods, &cursor)) {
        if (is_on(ctx, p->uid, card))
            return p;
    }
    return NULL;
}
