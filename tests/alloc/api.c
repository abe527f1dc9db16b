/* The API server of the allocation tests; see api.h. */
#include "api.h"

#include "api/bindings.h"
#include "api/leases.h"
#include "api/lists.h"

#include <assert.h>
#include <stdio.h>

/* ---- objects ---- */

static const struct name *name_at(unsigned kind, unsigned slot)
{
    return kind == CACHE_NODES    ? &store.nodes[slot].name
           : kind == CACHE_PODS   ? &store.pods[slot].name
           : kind == CACHE_HEALTH ? &store.healths[slot].name
                                  : &store.budgets[slot].name;
}

static const unsigned most[API_KINDS] = {[CACHE_NODES] = MAX_NODES,
                                         [CACHE_PODS] = MAX_PODS,
                                         [CACHE_HEALTH] = MAX_HEALTHS,
                                         [API_BUDGETS] = MAX_BUDGETS};

/* The slot with this name, also of a deleted object, or the first free one. */
static unsigned slot_for(unsigned kind, struct name name)
{
    unsigned slot = 0;
    while (name_at(kind, slot)->z[0] != '\0' && strcmp(name_at(kind, slot)->z, name.z) != 0) {
        slot++;
        assert(slot < most[kind]);
    }
    store.n_nodes = kind == CACHE_NODES ? MAX_OF(store.n_nodes, slot + 1) : store.n_nodes;
    store.n_pods = kind == CACHE_PODS ? MAX_OF(store.n_pods, slot + 1) : store.n_pods;
    return slot;
}

unsigned api_slot(unsigned kind, const char *name)
{
    union object o;
    unsigned slot = slot_for(kind, name_from(str_of(name)));
    bool there = history_object(kind, slot, 0, &o);
    assert(there);
    return slot;
}

size_t api_count(unsigned kind)
{
    union object o;
    size_t n = 0;
    for (unsigned i = 0; i < most[kind]; i++)
        n += history_object(kind, i, 0, &o);
    return n;
}

void api_put_node(const char *name, int mem, int count)
{
    struct node_object n = {.exists = true,
                            .name = name_from(str_of(name)),
                            .mem = mem,
                            .count = count,
                            .allocatable = mem,
                            .exclusive = -1};
    store_put_node(slot_for(CACHE_NODES, n.name), &n);
}

void api_put_pod(const char *name, int mem, const char *node, int card)
{
    struct pod_object p = {.exists = true,
                           .ns = name_from(STR("default")),
                           .name = name_from(str_of(name)),
                           .node = name_from(str_of(node)),
                           .n_mains = 1,
                           .n_containers = 1,
                           .containers = {{.kind = CONTAINER_MAIN, .named = mem > 0, .mem = mem}}};
    (void)snprintf(p.uid.z, sizeof(p.uid.z), "uid-%.19s", p.name.z);
    if (card >= 0)
        p.idx = name_of("", (uint64_t)card);
    store_put_pod(slot_for(CACHE_PODS, p.name), &p);
}

void api_label_pod(const char *name, const char *value)
{
    unsigned slot = api_slot(CACHE_PODS, name);
    struct pod_object p = store.pods[slot];
    p.app = name_from(str_of(value));
    store_put_pod(slot, &p);
}

void api_put_unhealthy(const char *node, const char *gpus)
{
    struct health_object h = {.exists = true, .gpus = name_from(str_of(gpus))};
    (void)snprintf(h.name.z, sizeof(h.name.z), "unhealthy-gpu-%.9s", node);
    store_put_health(slot_for(CACHE_HEALTH, h.name), &h);
}

void api_put_budget(const char *name, unsigned allowed)
{
    struct budget_object b = {.exists = true, .name = name_from(str_of(name)), .allowed = allowed};
    store_put_budget(slot_for(API_BUDGETS, b.name), &b);
}

void api_delete(unsigned kind, const char *name)
{
    union object o;
    unsigned slot = api_slot(kind, name);
    (void)history_object(kind, slot, 0, &o);
    o.any.exists = false;
    store_put(kind, slot, &o);
}

void api_compact(struct api *a)
{
    store.oldest_rv = store.rv;
    for (size_t i = 0; i < API_CALLS; i++) {
        if (a->watches[i].open)
            http_close(&a->calls[i]);
        a->watches[i].open = false;
    }
}

/* ---- facts from the objects ---- */

unsigned api_watches(const struct api *a)
{
    unsigned n = 0;
    for (size_t i = 0; i < API_CALLS; i++)
        n += a->calls[i].open && a->watches[i].open;
    return n;
}

static int digits(const char *s)
{
    int n = 0;
    for (; *s >= '0' && *s <= '9'; s++)
        n = n * 10 + (*s - '0');
    return n;
}

int api_card_of(const struct pod_object *p)
{
    return p->idx.z[0] == '\0' ? -1 : digits(p->idx.z);
}

static bool is_unhealthy(const char *node, int card)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "unhealthy-gpu-%s", node);
    for (unsigned i = 0; i < MAX_HEALTHS; i++) {
        const struct health_object *h = &store.healths[i];
        if (h->exists && strcmp(h->name.z, name) == 0)
            return strchr(h->gpus.z, '0' + card) != NULL;
    }
    return false;
}

/* Free memory of the card; negative if the card is over-committed. */
static int64_t room(const struct node_object *n, int card)
{
    int64_t left = n->mem / n->count;
    for (unsigned i = 0; i < store.n_pods; i++) {
        const struct pod_object *p = &store.pods[i];
        if (p->exists && strcmp(p->node.z, n->name.z) == 0 && api_card_of(p) == card)
            left -= p->containers[0].mem;
    }
    return left;
}

int api_free(const char *node, int card)
{
    unsigned slot = store_find_node(str_of(node));
    const struct node_object *n = &store.nodes[slot];
    if (slot == MAX_NODES || !n->exists || card >= n->count)
        return -2;
    return is_unhealthy(node, card) ? -1 : (int)room(n, card);
}

bool api_is_sound(void)
{
    for (unsigned i = 0; i < store.n_nodes; i++) {
        const struct node_object *n = &store.nodes[i];
        for (int card = 0; n->exists && card < n->count; card++) {
            if (room(n, card) < 0)
                return false;
        }
    }
    return true;
}

/* ---- requests ---- */

static void say_event(struct http_peer *p, const struct text *t)
{
    http_say(p, "%zx\r\n%.*s\r\n", t->n, (int)t->n, t->p);
}

static void begin_watch(struct api *a, size_t i, const struct api_request *r)
{
    struct text t = {.p = NULL};
    struct http_peer *p = &a->calls[i];
    struct watch_query watch = watch_query_read(r->query);
    http_say(p, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n");
    if (watch.version < store.oldest_rv) {
        watch_error_write(&t, 410, "Expired", "too old resource version", "");
        say_event(p, &t);
        text_done(&t);
        http_say(p, "0\r\n\r\n");
        return;
    }
    a->watches[i].open = true;
    a->watches[i].kind = r->kind;
    a->watches[i].next = history_after(watch.version);
}

static bool go_on_watching(struct api *a, size_t i)
{
    bool said = false;
    struct text t = {.p = NULL};
    for (; a->watches[i].next < history_size(); a->watches[i].next++) {
        const struct change *c = history_at(a->watches[i].next);
        if (c->kind != a->watches[i].kind || !change_shows(c))
            continue;
        t.n = 0;
        change_write(&t, c);
        say_event(&a->calls[i], &t);
        said = true;
    }
    text_done(&t);
    return said;
}

/* Returns the answer's status; 0: no answer. */
static unsigned bind_pod(struct api *a, struct text *t, const struct api_request *r,
                         struct str body)
{
    unsigned slot = 0;
    struct posted b = binding_read(body, r->ns, r->name);
    enum api_fault fault = a->fault;
    a->fault = API_FAULT_NONE;
    a->bindings++;
    if (fault == API_FAULT_ELSEWHERE) {
        struct posted other = b;
        other.node = name_from(str_of(a->elsewhere));
        (void)binding_commit(&other, &slot);
    }
    struct outcome out = binding_commit(&b, &slot);
    outcome_write(t, &out);
    return out.status == 201 && fault == API_FAULT_LOST ? 0 : out.status;
}

static unsigned list(struct text *t, const struct api_request *r)
{
    struct page page = list_page(r->kind, r->query, 0);
    if (page.list != NULL)
        list_write(t, &page, NULL, NULL);
    else
        list_write_expired(t);
    return page.list != NULL ? 200 : 410;
}

/* Returns the answer's status; 0: no answer. */
static unsigned serve(struct api *a, struct text *t, const struct api_request *r, struct str body)
{
    uint64_t rv = 0;
    if (r->verb == API_LIST)
        return list(t, r);
    if (r->verb == API_GET)
        return pod_write(t, r, 0, &rv) == MAX_PODS ? 404 : 200;
    if (r->verb == API_BIND)
        return bind_pod(a, t, r, body);
    if (r->verb == API_LEASE)
        return lease_serve(t, r, body);
    if (r->verb == API_EVENT) {
        text_z(t, "{}");
        return str_eq(r->method, STR("POST")) ? 201 : 200;
    }
    status_write(t, 404, "NotFound", "no such path", "");
    return 404;
}

static void answer(struct api *a, size_t i)
{
    struct http_peer *p = &a->calls[i];
    struct text t = {.p = NULL};
    struct str method;
    struct str target;
    struct str rest;
    size_t n = 0;
    const char *body = http_body(p, &n);
    (void)str_cut((struct str){p->in, p->n_in}, ' ', &method, &rest);
    (void)str_cut(rest, ' ', &target, &rest);
    struct api_request r = api_request_read(method, target);
    if (r.verb == API_WATCH) {
        begin_watch(a, i, &r);
        return;
    }
    unsigned status = serve(a, &t, &r, (struct str){body, n});
    if (status != 0)
        http_say(p,
                 "HTTP/1.1 %u X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                 "%.*s",
                 status, t.n, (int)t.n, t.p);
    text_done(&t);
}

static bool call_turn(struct api *a, size_t i)
{
    struct http_peer *p = &a->calls[i];
    size_t n = 0;
    bool moved = a->watches[i].open && go_on_watching(a, i);
    moved = http_move(p) || moved;
    if (http_body(p, &n) != NULL && !p->ended) {
        answer(a, i);
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
            a->watches[i].open = false;
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
    store_reset();
    lists_reset();
    leases_reset();
    http_listen(&a->listener);
}

void api_close(struct api *a)
{
    for (size_t i = 0; i < API_CALLS; i++)
        http_close(&a->calls[i]);
    leases_reset();
    http_unlisten(&a->listener);
}
