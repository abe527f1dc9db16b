/* Lists in pages, and the events of watches; see lists.h. */
#include "api/lists.h"

#include <stdio.h>

#define LISTINGS 16
#define SELECTOR STR("status.phase!=Succeeded,status.phase!=Failed")

static struct listing listings[LISTINGS];
static uint64_t last_id;

void lists_expire(void)
{
    for (size_t i = 0; i < LISTINGS; i++)
        listings[i].id = 0;
}

void lists_reset(void)
{
    lists_expire();
    last_id = 0;
}

static void add(struct listing *l, unsigned slot, uint64_t lag_ms)
{
    union object *o = &l->objects[l->n];
    if (!history_object(l->kind, slot, lag_ms, o))
        return;
    if (l->kind == CACHE_PODS && pod_object_terminal(&o->pod))
        return;
    l->slots[l->n++] = slot;
}

static const struct listing *begin(unsigned kind, uint64_t lag_ms)
{
    struct listing *l = &listings[++last_id % LISTINGS];
    const unsigned slots[API_KINDS] = {
        [CACHE_PODS] = store.n_pods, [CACHE_NODES] = store.n_nodes, [CACHE_HEALTH] = MAX_HEALTHS,
        [CACHE_SLICES] = MAX_SLICES, [CACHE_CLAIMS] = MAX_CLAIMS,   [CACHE_CLASSES] = MAX_CLASSES,
        [API_BUDGETS] = MAX_BUDGETS};
    l->id = last_id;
    l->rv = history_version(lag_ms);
    l->kind = kind;
    l->n = 0;
    for (unsigned i = 0; i < slots[kind]; i++)
        add(l, i, lag_ms);
    return l;
}

/* The token is "/+ID:OFFSET=": opaque as the real ones, with characters that a client must
 * escape. */
static const struct listing *find(struct str token, unsigned *ret_offset)
{
    struct str id_text;
    struct str offset_text;
    uint64_t id = 0;
    uint64_t offset = 0;
    bool whole = str_starts(token, STR("/+")) && str_ends(token, STR("="));
    api_check(whole);
    token = (struct str){token.p + 2, token.n - 3};
    whole = str_cut(token, ':', &id_text, &offset_text) && str_to_u64(id_text, UINT64_MAX, &id) &&
            str_to_u64(offset_text, MAX_OBJECTS, &offset);
    api_check(whole);
    const struct listing *l = &listings[id % LISTINGS];
    *ret_offset = (unsigned)offset;
    return l->id == id ? l : NULL;
}

bool selector_is_right(unsigned kind, struct str query)
{
    struct text value = {.p = NULL};
    bool selects = query_get(query, "fieldSelector", &value);
    bool right =
        selects == (kind == CACHE_PODS) && (!selects || str_eq(text_str(&value), SELECTOR));
    text_done(&value);
    return right;
}

struct page list_page(unsigned kind, struct str query, uint64_t lag_ms)
{
    struct text value = {.p = NULL};
    struct page p = {.from = 0};
    uint64_t limit = query_number(query, "limit", 0);
    api_check(limit <= 10000);
    bool cached = query_get(query, "resourceVersion", &value);
    api_check(!cached || str_eq(text_str(&value), STR("0")));
    p.continued = query_get(query, "continue", &value);
    p.list = p.continued ? find(text_str(&value), &p.from) : begin(kind, cached ? lag_ms : 0);
    text_done(&value);
    if (p.list != NULL)
        p.to = limit > 0 && p.from + limit < p.list->n ? p.from + (unsigned)limit : p.list->n;
    return p;
}

void list_write(struct text *t, const struct page *p,
                void (*wrote)(void *ctx, unsigned kind, unsigned slot, uint64_t rv), void *ctx)
{
    const struct listing *l = p->list;
    char token[64];
    t->n = 0;
    (void)snprintf(token, sizeof(token), "/+%llu:%u=", (unsigned long long)l->id, p->to);
    list_head_write(t, l->kind, l->rv, token, l->n - p->to);
    for (unsigned i = p->from; i < p->to; i++) {
        text_z(t, i > p->from ? "," : "");
        render_object(t, l->kind, &l->objects[i], true);
        if (wrote != NULL)
            wrote(ctx, l->kind, l->slots[i], l->objects[i].any.rv);
    }
    text_z(t, "]}\n");
}

void list_write_expired(struct text *t)
{
    status_write(t, 410, "Expired", "The provided continue parameter is too old", "");
}

unsigned pod_write(struct text *t, const struct api_request *r, uint64_t lag_ms, uint64_t *ret_rv)
{
    union object o;
    struct text version = {.p = NULL};
    bool cached = query_get(r->query, "resourceVersion", &version);
    unsigned slot = store_find_pod(r->ns, r->name);
    text_done(&version);
    if (slot == MAX_PODS || !history_object(CACHE_PODS, slot, cached ? lag_ms : 0, &o)) {
        status_write(t, 404, "NotFound", "pods not found", ",\"details\":{\"kind\":\"pods\"}");
        return MAX_PODS;
    }
    t->n = 0;
    render_object(t, CACHE_PODS, &o, false);
    *ret_rv = o.pod.rv;
    return slot;
}

/* ---- watches ---- */

struct watch_query watch_query_read(struct str query)
{
    struct watch_query w = {.version = query_number(query, "resourceVersion", 0),
                            .seconds = query_number(query, "timeoutSeconds", UINT64_MAX)};
    api_check(w.version > 0 && w.version <= store.rv);
    api_check(w.seconds <= 3600);
    return w;
}

static bool selected(const struct change *c, const union object *o)
{
    return o->any.exists && (c->kind != CACHE_PODS || !pod_object_terminal(&o->pod));
}

bool change_shows(const struct change *c)
{
    return selected(c, &c->old) || selected(c, &c->new);
}

/* An object that no longer matches the selector is shown as deleted, with its old content. */
void change_write(struct text *t, const struct change *c)
{
    bool is = selected(c, &c->new);
    union object o = is ? c->new : c->old;
    o.any.rv = c->rv;
    text_f(t, "{\"type\":\"%s\",\"object\":",
           !is                    ? "DELETED"
           : selected(c, &c->old) ? "MODIFIED"
                                  : "ADDED");
    render_object(t, c->kind, &o, false);
    text_z(t, "}\n");
}

void bookmark_write(struct text *t, unsigned kind, uint64_t version)
{
    text_f(t, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"v1\",",
           api_kind_names[kind]);
    text_f(t, "\"metadata\":{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null}}}\n",
           (unsigned long long)version);
}

void watch_error_write(struct text *t, unsigned code, const char *reason, const char *message,
                       const char *more)
{
    struct text status = {.p = NULL};
    status_write(&status, code, reason, message, more);
    text_z(t, "{\"type\":\"ERROR\",\"object\":");
    text_put(t, (struct str){status.p, status.n - 1});
    text_z(t, "}\n");
    text_done(&status);
}
