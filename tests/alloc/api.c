/* The simulated API server of the allocation tests; see api.h. */
#include "api.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEM   "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define IDX   "ALIYUN_COM_GPU_MEM_IDX"

/* ---- objects ---- */

static json_t *metadata_of(const json_t *object)
{
    return json_object_get(object, "metadata");
}

static void record(struct api *a, enum api_kind kind, const char *type, json_t *object)
{
    json_t *version = json_sprintf("%llu", (unsigned long long)++a->version);
    json_object_set_new(metadata_of(object), "resourceVersion", version);
    assert(a->n_history < API_HISTORY);
    a->history[a->n_history++] = (struct api_change){
        .kind = kind, .version = a->version, .type = type, .object = json_deep_copy(object)};
}

static void put(struct api *a, enum api_kind kind, json_t *object)
{
    assert(object != NULL);
    const char *name = json_string_value(json_object_get(metadata_of(object), "name"));
    bool known = json_object_get(a->objects[kind], name) != NULL;
    record(a, kind, known ? "MODIFIED" : "ADDED", object);
    json_object_set_new(a->objects[kind], name, object);
}

void api_delete(struct api *a, enum api_kind kind, const char *name)
{
    json_t *object = json_incref(json_object_get(a->objects[kind], name));
    assert(object != NULL);
    json_object_del(a->objects[kind], name);
    record(a, kind, "DELETED", object);
    json_decref(object);
}

void api_put_node(struct api *a, const char *name, int mem, int count)
{
    char total[16];
    char cards[16];
    (void)snprintf(total, sizeof(total), "%d", mem);
    (void)snprintf(cards, sizeof(cards), "%d", count);
    put(a, API_NODES,
        json_pack("{s:{s:s}, s:{s:{s:s, s:s}, s:{s:s, s:s}}}", "metadata", "name", name, "status",
                  "capacity", MEM, total, COUNT, cards, "allocatable", MEM, total, COUNT, cards));
}

void api_put_pod(struct api *a, const char *name, int mem, const char *node, int card)
{
    char limit[16];
    (void)snprintf(limit, sizeof(limit), "%d", mem);
    json_t *pod =
        json_pack("{s:{s:s, s:s, s:o, s:{}}, s:{s:[{s:s, s:{s:{s:s}}}]}, s:{s:s}}", "metadata",
                  "name", name, "namespace", "default", "uid", json_sprintf("uid-%s", name),
                  "annotations", "spec", "containers", "name", "main", "resources", "limits", MEM,
                  limit, "status", "phase", "Pending");
    if (node != NULL)
        json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(node));
    if (card >= 0)
        json_object_set_new(json_object_get(metadata_of(pod), "annotations"), IDX,
                            json_sprintf("%d", card));
    put(a, API_PODS, pod);
}

void api_label_pod(struct api *a, const char *name, const char *value)
{
    json_t *pod = json_deep_copy(json_object_get(a->objects[API_PODS], name));
    json_object_set_new(metadata_of(pod), "labels", json_pack("{s:s}", "app", value));
    put(a, API_PODS, pod);
}

void api_put_unhealthy(struct api *a, const char *node, const char *gpus)
{
    put(a, API_CONFIGMAPS,
        json_pack("{s:{s:o, s:s}, s:{s:s}}", "metadata", "name",
                  json_sprintf("unhealthy-gpu-%s", node), "namespace", "kube-system", "data",
                  "gpus", gpus));
}

void api_put_budget(struct api *a, const char *name, int allowed)
{
    put(a, API_BUDGETS,
        json_pack("{s:{s:s, s:s}, s:{s:{s:{s:s}, s:[{s:s, s:s, s:[s, s]}]}}, s:{s:i, s:{s:s}}}",
                  "metadata", "name", name, "namespace", "default", "spec", "selector",
                  "matchLabels", "app", name, "matchExpressions", "key", "tier", "operator",
                  "NotIn", "values", "a", "b", "status", "disruptionsAllowed", allowed,
                  "disruptedPods", "x", "2026-01-01T00:00:00Z"));
}

void api_compact(struct api *a)
{
    for (size_t i = 0; i < a->n_history; i++)
        json_decref(a->history[i].object);
    a->n_history = 0;
    a->oldest = a->version;
    for (size_t i = 0; i < API_CALLS; i++) {
        if (a->watch_from[i] > 0)
            http_close(&a->calls[i]);
        a->watch_from[i] = 0;
    }
}

/* ---- facts from the objects ---- */

unsigned api_watches(const struct api *a)
{
    unsigned n = 0;
    for (size_t i = 0; i < API_CALLS; i++)
        n += a->calls[i].open && a->watch_from[i] > 0;
    return n;
}

static const json_t *pod_of(const struct api *a, const char *name)
{
    return json_object_get(a->objects[API_PODS], name);
}

const char *api_node_of(const struct api *a, const char *pod)
{
    return json_string_value(json_object_get(json_object_get(pod_of(a, pod), "spec"), "nodeName"));
}

static int digits(const char *s)
{
    int n = 0;
    for (; *s >= '0' && *s <= '9'; s++)
        n = n * 10 + (*s - '0');
    return n;
}

static int number(const json_t *text)
{
    return json_is_string(text) ? digits(json_string_value(text)) : -1;
}

int api_card_of(const struct api *a, const char *pod)
{
    return number(
        json_object_get(json_object_get(metadata_of(pod_of(a, pod)), "annotations"), IDX));
}

int api_mem_of(const struct api *a, const char *pod)
{
    const json_t *containers =
        json_object_get(json_object_get(pod_of(a, pod), "spec"), "containers");
    const json_t *limits =
        json_object_get(json_object_get(json_array_get(containers, 0), "resources"), "limits");
    return number(json_object_get(limits, MEM));
}

static bool is_unhealthy(const struct api *a, const char *node, int card)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "unhealthy-gpu-%s", node);
    const json_t *map = json_object_get(a->objects[API_CONFIGMAPS], name);
    const char *gpus = json_string_value(json_object_get(json_object_get(map, "data"), "gpus"));
    for (; gpus != NULL && *gpus != '\0'; gpus++) {
        if (*gpus - '0' == card)
            return true;
    }
    return false;
}

/* Free memory of the card; negative if the card is over-committed. */
static int room(const struct api *a, const char *node, int card)
{
    const json_t *object = json_object_get(a->objects[API_NODES], node);
    const json_t *capacity = json_object_get(json_object_get(object, "status"), "capacity");
    int left = number(json_object_get(capacity, MEM)) / number(json_object_get(capacity, COUNT));
    const char *pod = NULL;
    json_t *ignored = NULL;
    json_object_foreach(a->objects[API_PODS], pod, ignored)
    {
        const char *at = api_node_of(a, pod);
        if (at != NULL && strcmp(at, node) == 0 && api_card_of(a, pod) == card)
            left -= api_mem_of(a, pod);
    }
    return left;
}

static int cards_of(const struct api *a, const char *node)
{
    const json_t *object = json_object_get(a->objects[API_NODES], node);
    return number(
        json_object_get(json_object_get(json_object_get(object, "status"), "capacity"), COUNT));
}

int api_free(const struct api *a, const char *node, int card)
{
    if (card >= cards_of(a, node))
        return -2;
    return is_unhealthy(a, node, card) ? -1 : room(a, node, card);
}

bool api_is_sound(const struct api *a)
{
    const char *node = NULL;
    json_t *object = NULL;
    json_object_foreach(a->objects[API_NODES], node, object)
    {
        for (int card = 0; card < cards_of(a, node); card++) {
            if (room(a, node, card) < 0)
                return false;
        }
    }
    return true;
}

/* ---- answers ---- */

static void answer(struct http_peer *p, int status, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    assert(text != NULL);
    http_say(p, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             status, strlen(text), text);
    free(text);
    json_decref(body);
}

static void refuse(struct http_peer *p, int code, const char *reason, const char *message)
{
    answer(p, code,
           json_pack("{s:s, s:s, s:s, s:s, s:i, s:{s:s}}", "kind", "Status", "status", "Failure",
                     "reason", reason, "message", message, "code", code, "details", "kind",
                     "pods"));
}

static bool query(const char *path, const char *name, char out[32])
{
    const char *at = strstr(path, name);
    size_t n = 0;
    if (at == NULL)
        return false;
    for (at += strlen(name); *at != '\0' && *at != '&' && n < 31; at++)
        out[n++] = *at;
    out[n] = '\0';
    return true;
}

static void list(const struct api *a, struct http_peer *p, enum api_kind kind, const char *path)
{
    static const char *const kinds[] = {[API_NODES] = "NodeList",
                                        [API_PODS] = "PodList",
                                        [API_CONFIGMAPS] = "ConfigMapList",
                                        [API_BUDGETS] = "PodDisruptionBudgetList"};
    char text[32];
    size_t limit = query(path, "limit=", text) ? (size_t)digits(text) : SIZE_MAX;
    size_t from = query(path, "continue=", text) ? (size_t)digits(text) : 0;
    size_t at = 0;
    const char *name = NULL;
    json_t *object = NULL;
    json_t *items = json_array();
    json_object_foreach(a->objects[kind], name, object)
    {
        if (at >= from && json_array_size(items) < limit)
            json_array_append(items, object);
        at++;
    }
    size_t next = from + json_array_size(items);
    json_t *metadata =
        json_pack("{s:o}", "resourceVersion", json_sprintf("%llu", (unsigned long long)a->version));
    if (next < at)
        json_object_set_new(metadata, "continue", json_sprintf("%zu", next));
    answer(p, 200,
           json_pack("{s:s, s:s, s:o, s:o}", "kind", kinds[kind], "apiVersion", "v1", "metadata",
                     metadata, "items", items));
}

static void say_event(struct http_peer *p, const char *type, json_t *object)
{
    json_t *event = json_pack("{s:s, s:O}", "type", type, "object", object);
    char *text = json_dumps(event, JSON_COMPACT);
    assert(text != NULL);
    http_say(p, "%zx\r\n%s\n\r\n", strlen(text) + 1, text);
    free(text);
    json_decref(event);
}

static void begin_watch(struct api *a, size_t i, enum api_kind kind, const char *path)
{
    char text[32] = "";
    struct http_peer *p = &a->calls[i];
    (void)query(path, "resourceVersion=", text);
    uint64_t from = (uint64_t)digits(text);
    http_say(p, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n");
    if (from < a->oldest) {
        json_t *gone = json_pack("{s:s, s:s, s:s, s:i}", "kind", "Status", "reason", "Expired",
                                 "message", "too old resource version", "code", 410);
        say_event(p, "ERROR", gone);
        json_decref(gone);
        http_say(p, "0\r\n\r\n");
        return;
    }
    a->watch_from[i] = from + 1; /* the first version that the watch has not sent */
    a->watch_kind[i] = kind;
}

static bool go_on_watching(struct api *a, size_t i)
{
    bool said = false;
    for (size_t h = 0; h < a->n_history; h++) {
        const struct api_change *c = &a->history[h];
        if (c->kind != a->watch_kind[i] || c->version < a->watch_from[i])
            continue;
        say_event(&a->calls[i], c->type, c->object);
        a->watch_from[i] = c->version + 1;
        said = true;
    }
    return said;
}

/* ---- Bindings ---- */

static void commit(struct api *a, const char *name, const char *node, json_t *annotations)
{
    json_t *pod = json_deep_copy(pod_of(a, name));
    json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(node));
    json_object_update(json_object_get(metadata_of(pod), "annotations"), annotations);
    put(a, API_PODS, pod);
}

static void bind_pod(struct api *a, struct http_peer *p, const char *name, const char *body)
{
    json_error_t error;
    json_t *binding = json_loads(body, 0, &error);
    assert(binding != NULL);
    enum api_fault fault = a->fault;
    a->fault = API_FAULT_NONE;
    a->bindings++;
    const char *uid = json_string_value(json_object_get(metadata_of(binding), "uid"));
    const char *node =
        json_string_value(json_object_get(json_object_get(binding, "target"), "name"));
    const json_t *pod = pod_of(a, name);
    assert(node != NULL && uid != NULL);
    if (pod != NULL && fault == API_FAULT_ELSEWHERE && api_node_of(a, name) == NULL)
        commit(a, name, a->elsewhere, json_object_get(metadata_of(binding), "annotations"));
    if (pod == NULL || strncmp(uid, "uid-", 4) != 0 || strcmp(uid + 4, name) != 0) {
        refuse(p, 404, "NotFound", "pods not found");
    } else if (api_node_of(a, name) != NULL) {
        refuse(p, 409, "Conflict", "pod is already assigned to node \"...\"");
    } else {
        commit(a, name, node, json_object_get(metadata_of(binding), "annotations"));
        if (fault != API_FAULT_LOST)
            answer(p, 201, json_pack("{s:s, s:s}", "kind", "Status", "status", "Success"));
    }
    json_decref(binding);
}

/* ---- the lease ---- */

static const json_t *version_of(const json_t *object)
{
    return json_object_get(metadata_of(object), "resourceVersion");
}

static void write_lease(struct api *a, struct http_peer *p, bool create, const char *body)
{
    json_error_t error;
    json_t *lease = json_loads(body, 0, &error);
    assert(lease != NULL);
    if (create ? a->lease != NULL
               : a->lease == NULL || !json_equal(version_of(lease), version_of(a->lease))) {
        json_decref(lease);
        refuse(p, 409, create ? "AlreadyExists" : "Conflict", "it is another one");
        return;
    }
    json_t *version = json_sprintf("%llu", (unsigned long long)++a->version);
    json_object_set_new(metadata_of(lease), "resourceVersion", version);
    json_decref(a->lease);
    a->lease = lease;
    answer(p, create ? 201 : 200, json_incref(lease));
}

static void serve_lease(struct api *a, struct http_peer *p, const char *head, const char *body)
{
    if (strncmp(head, "GET", 3) != 0)
        write_lease(a, p, strncmp(head, "POST", 4) == 0, body);
    else if (a->lease == NULL)
        refuse(p, 404, "NotFound", "leases not found");
    else
        answer(p, 200, json_incref(a->lease));
}

/* ---- requests ---- */

static void one_pod(struct api *a, struct http_peer *p, char *name, const char *body)
{
    char *tail = strpbrk(name, "/? ");
    bool binding = tail != NULL && strncmp(tail, "/binding", 8) == 0;
    if (tail != NULL)
        *tail = '\0';
    json_t *pod = json_object_get(a->objects[API_PODS], name);
    if (binding)
        bind_pod(a, p, name, body);
    else if (pod == NULL)
        refuse(p, 404, "NotFound", "pods not found");
    else
        answer(p, 200, json_incref(pod));
}

static void serve(struct api *a, size_t i)
{
    static const char *const paths[] = {[API_NODES] = "/api/v1/nodes?",
                                        [API_PODS] = "/api/v1/pods?",
                                        [API_CONFIGMAPS] =
                                            "/api/v1/namespaces/kube-system/configmaps?",
                                        [API_BUDGETS] = "/apis/policy/v1/poddisruptionbudgets?"};
    struct http_peer *p = &a->calls[i];
    char head[4096];
    size_t n = 0;
    const char *body = http_body(p, &n);
    (void)snprintf(head, sizeof(head), "%.4000s", p->in);
    char *path = strchr(head, '/');
    assert(path != NULL && body != NULL);
    char *end = strchr(path, ' ');
    assert(end != NULL);
    *end = '\0';
    for (enum api_kind kind = API_NODES; kind < API_KINDS; kind++) {
        if (strncmp(path, paths[kind], strlen(paths[kind])) != 0)
            continue;
        if (strstr(path, "watch=true") != NULL)
            begin_watch(a, i, kind, path);
        else
            list(a, p, kind, path);
        return;
    }
    char *pod = strstr(path, "/namespaces/default/pods/");
    if (strstr(path, "/namespaces/ns/leases") != NULL)
        serve_lease(a, p, head, body);
    else if (pod != NULL)
        one_pod(a, p, pod + strlen("/namespaces/default/pods/"), body);
    else if (strstr(path, "/namespaces/default/events") != NULL)
        answer(p, strncmp(head, "POST", 4) == 0 ? 201 : 200, json_object());
    else
        refuse(p, 404, "NotFound", "no such path");
}

static bool call_turn(struct api *a, size_t i)
{
    struct http_peer *p = &a->calls[i];
    size_t n = 0;
    bool moved = a->watch_from[i] > 0 && go_on_watching(a, i);
    moved = http_move(p) || moved;
    if (http_body(p, &n) != NULL && !p->ended) {
        serve(a, i);
        http_next(p);
        moved = true;
    }
    if (p->ended)
        http_close(p);
    return moved;
}

bool api_turn(struct api *a)
{
    bool moved = false;
    bool waiting = true;
    for (size_t i = 0; i < API_CALLS; i++) {
        struct http_peer *p = &a->calls[i];
        if (!p->open) {
            a->watch_from[i] = 0;
            waiting = waiting && http_accept(&a->listener, p);
        }
        if (p->open)
            moved = call_turn(a, i) || moved;
    }
    return moved;
}

void api_open(struct api *a)
{
    memset(a, 0, sizeof(*a));
    a->version = 100;
    for (size_t kind = 0; kind < API_KINDS; kind++)
        a->objects[kind] = json_object();
    http_listen(&a->listener);
}

void api_close(struct api *a)
{
    api_compact(a);
    for (size_t i = 0; i < API_CALLS; i++)
        http_close(&a->calls[i]);
    for (size_t kind = 0; kind < API_KINDS; kind++)
        json_decref(a->objects[kind]);
    json_decref(a->lease);
    http_unlisten(&a->listener);
}
