/* Keeps each pod with its containers in one block of memory, in two maps: by UID and by ID. */
#include "node/containers/containers.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/containers/cgroup.h"
#include "json/jread.h"

/* What the status says of a container; views. */
struct container_status {
    struct str name;
    struct str id;
    bool running;
};

struct status_list {
    struct container_status *items; /* in the arena */
    size_t n;
    size_t cap;
    bool running; /* one of them, also without an ID that is known */
};

void containers_init(struct containers *c, struct map_seed seed)
{
    *c = (struct containers){.list = 0};
    map_init(&c->pods, offsetof(struct container_pod, uid), seed);
    map_init(&c->by_id, offsetof(struct container, id), seed);
    arena_init(&c->arena, LIMIT_OBJECT_ARENA);
}

void containers_done(struct containers *c)
{
    size_t cursor = 0;
    for (struct container_pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor))
        mem_free(p);
    map_done(&c->pods);
    map_done(&c->by_id);
    arena_done(&c->arena);
}

/* ---- reading ---- */

/* "containerd://ID", "cri-o://ID", "docker://ID"; absent: the container has none yet. */
static struct str containers_id(struct str text)
{
    static const char *const runtimes[] = {"containerd://", "cri-o://", "docker://"};
    for (size_t i = 0; i < COUNT_OF(runtimes); i++) {
        struct str id = str_skip(text, strlen(runtimes[i]));
        if (str_starts(text, str_of(runtimes[i])) && cgroup_is_id(id))
            return id;
    }
    return STR_NULL;
}

static void containers_read_statuses(struct jread *r, struct arena *a, struct status_list *ret)
{
    struct str key;
    jread_array (r) {
        struct container_status s = {STR_NULL, STR_NULL, false};
        struct str state;
        jread_object (r, key) {
            if (str_eq(key, STR("name")))
                s.name = jread_str(r);
            else if (str_eq(key, STR("containerID")))
                s.id = containers_id(jread_str(r));
            else if (str_eq(key, STR("state")))
                jread_object (r, state) {
                    s.running = s.running || str_eq(state, STR("running"));
                    jread_skip(r);
                }
            else
                jread_skip(r);
        }
        ret->running = ret->running || s.running;
        if (s.id.p == NULL)
            continue;
        struct container_status *items =
            arena_grow(a, ret->items, ret->n, &ret->cap, sizeof(*items));
        if (items == NULL)
            continue;
        ret->items = items;
        ret->items[ret->n++] = s;
    }
}

static bool containers_read(struct str json, struct arena *a, struct status_list *ret)
{
    struct jread r;
    struct str key;
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("status"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, key) {
            if (str_eq(key, STR("containerStatuses")) ||
                str_eq(key, STR("initContainerStatuses")) ||
                str_eq(key, STR("ephemeralContainerStatuses")))
                containers_read_statuses(&r, a, ret);
            else
                jread_skip(&r);
        }
    }
    return jread_finish(&r, NULL) == OK && !arena_failed(a);
}

/* ---- keeping ---- */

static struct container_pod *containers_new(const struct pod_view *view,
                                            const struct status_list *l)
{
    size_t bytes = sizeof(struct container_pod) + l->n * sizeof(struct container) + view->uid.n +
                   view->namespace.n + view->name.n;
    for (size_t i = 0; i < l->n; i++)
        bytes += l->items[i].name.n + l->items[i].id.n;
    struct container_pod *p = mem_alloc(bytes);
    if (p == NULL)
        return NULL;
    p->items = (struct container *)(void *)(p + 1);
    char *at = (char *)(p->items + l->n);
    p->uid = str_store(&at, view->uid);
    p->namespace = str_store(&at, view->namespace);
    p->name = str_store(&at, view->name);
    for (size_t i = 0; i < l->n; i++)
        p->items[i] = (struct container){.id = str_store(&at, l->items[i].id),
                                         .name = str_store(&at, l->items[i].name),
                                         .pod = p,
                                         .running = l->items[i].running};
    return p;
}

/* The log has the first one only: the status of such a pod may come every second. */
static void containers_leave_out(struct containers *c, const struct pod_view *view)
{
    if (c->left_out++ == 0)
        log_error("containers of a pod are not known: their limits are not watched, and what they "
                  "use is not measured",
                  kv_str("namespace", view->namespace), kv_str("pod", view->name));
}

/* Each container that runs belongs to one pod: an ID that is known already stays with its pod. */
static void containers_list(struct containers *c, const struct pod_view *view,
                            struct container_pod *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct container *item = &p->items[p->n];
        *item = p->items[i];
        if (!item->running) {
            p->n++;
            continue;
        }
        if (c->by_id.n < CONTAINERS_MAX && map_get(&c->by_id, item->id) == NULL &&
            map_put(&c->by_id, item) == OK)
            p->n++;
        else
            containers_leave_out(c, view);
    }
}

static void containers_drop(struct containers *c, struct container_pod *p)
{
    for (size_t i = 0; p != NULL && i < p->n; i++) {
        if (p->items[i].running)
            (void)map_del(&c->by_id, p->items[i].id);
    }
    mem_free(p);
}

void containers_begin(struct containers *c)
{
    c->list++;
}

void containers_set(struct containers *c, const struct pod_view *view, struct str json)
{
    struct status_list l = {.items = NULL};
    containers_gone(c, view->uid);
    arena_reset(&c->arena);
    if (pod_view_terminal(view))
        return;
    bool read = containers_read(json, &c->arena, &l);
    struct container_pod *p =
        !read || c->pods.n >= CONTAINERS_PODS_MAX ? NULL : containers_new(view, &l);
    if (p == NULL || map_put(&c->pods, p) != OK) {
        containers_leave_out(c, view);
        mem_free(p);
        return;
    }
    p->list = c->list;
    p->deleting = view->deleting;
    p->isolated = str_eq(str_trim(view->require_isolation), STR("true"));
    p->over = view->deleting && !l.running;
    containers_list(c, view, p, l.n);
}

void containers_gone(struct containers *c, struct str uid)
{
    containers_drop(c, map_del(&c->pods, uid));
}

void containers_end(struct containers *c)
{
    size_t cursor = 0;
    for (struct container_pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor)) {
        if (p->list == c->list)
            continue;
        (void)map_del(&c->pods, p->uid);
        containers_drop(c, p);
        cursor--;
    }
}

/* ---- questions ---- */

const struct container *containers_find(const struct containers *c, struct str id)
{
    return map_get(&c->by_id, id);
}

const struct container_pod *containers_pod(const struct containers *c, struct str uid)
{
    return map_get(&c->pods, uid);
}

bool containers_over(const struct containers *c, struct str uid)
{
    const struct container_pod *p = containers_pod(c, uid);
    return p != NULL && p->over;
}
