/* A client of /ui/events that builds the page's state, and checks that it equals the present
 * state. */
#pragma once

#include "base/limit.h"
#include "base/map.h"
#include "daemon/page/ui_feed.h"
#include "daemon/page/ui_quota.h"
#include "daemon/page/ui_write.h"
#include "raw_conn.h"
#include "json/jread.h"

#include <stdio.h>

struct ui_fixture {
    struct service service;
    struct http_server *server;
    struct ui_feed *feed;
};

static inline void ask(struct ui_fixture *g, struct raw_conn *p, const char *path)
{
    char text[128];
    raw_conn_connect(p, g->service.loop, http_server_port(g->server));
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    raw_conn_send(p, (struct str){text, (size_t)n});
}

struct shown {
    struct str name;
    struct buf json;
};

struct ui_client {
    struct raw_conn peer;
    size_t at;       /* bytes of the input that were parsed */
    struct buf body; /* the rest of the body: an incomplete event */
    struct map nodes;
    struct buf pods;
    struct buf quotas;
    struct buf status;
    unsigned hellos;
    unsigned histories;
    bool ready;
    struct arena arena;
};

static inline void drop_all(struct ui_client *p)
{
    size_t cursor = 0;
    for (struct shown *s = map_next(&p->nodes, &cursor); s != NULL;
         s = map_next(&p->nodes, &cursor)) {
        buf_done(&s->json);
        free(s);
    }
    map_done(&p->nodes);
    map_init(&p->nodes, offsetof(struct shown, name), (struct map_seed){3, 4});
}

static inline void ui_client_open(struct ui_client *p, struct ui_fixture *g)
{
    *p = (struct ui_client){.at = 0};
    buf_init(&p->body, 64 * MIB);
    buf_init(&p->pods, MIB);
    buf_init(&p->quotas, MIB);
    buf_init(&p->status, MIB);
    arena_init(&p->arena, 64 * MIB);
    map_init(&p->nodes, offsetof(struct shown, name), (struct map_seed){3, 4});
    ask(g, &p->peer, "/ui/events");
}

static inline void ui_client_close(struct ui_client *p)
{
    raw_conn_close(&p->peer);
    drop_all(p);
    map_done(&p->nodes);
    buf_done(&p->body);
    buf_done(&p->pods);
    buf_done(&p->quotas);
    buf_done(&p->status);
    arena_done(&p->arena);
}

static inline struct str field(struct ui_client *p, struct str object, const char *wanted)
{
    struct jread r;
    struct str key;
    struct str found = STR_NULL;
    jread_init(&r, object, &p->arena);
    jread_object (&r, key) {
        if (str_eq(key, str_of(wanted)))
            found = jread_raw(&r);
        else
            jread_skip(&r);
    }
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_msg(found.p != NULL, "no %s in %.*s", wanted, STR_ARG(object));
    return found;
}

static inline void show(struct ui_client *p, struct str json)
{
    struct str name = field(p, json, "name");
    struct shown *s = map_get(&p->nodes, name);
    if (s == NULL) {
        s = calloc(1, sizeof(*s) + name.n);
        ck_assert_ptr_nonnull(s);
        char *at = (char *)(s + 1);
        s->name = str_store(&at, name);
        buf_init(&s->json, MIB);
        ck_assert_int_eq(map_put(&p->nodes, s), OK);
    }
    buf_clear(&s->json, SIZE_MAX);
    buf_put(&s->json, json);
}

static inline void hide(struct ui_client *p, struct str name)
{
    struct shown *s = map_del(&p->nodes, name);
    if (s == NULL)
        return;
    buf_done(&s->json);
    free(s);
}

static inline void take_nodes(struct ui_client *p, struct str data)
{
    struct jread r;
    unsigned n = 0;
    jread_init(&r, field(p, data, "nodes"), &p->arena);
    jread_array (&r) {
        show(p, jread_raw(&r));
        n++;
    }
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_uint_le(n, 200);
    jread_init(&r, field(p, data, "gone"), &p->arena);
    jread_array (&r)
        hide(p, jread_raw(&r));
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
}

static inline void take_event(struct ui_client *p, struct str event)
{
    struct str name;
    struct str data;
    if (str_eq(event, STR(":")))
        return;
    ck_assert(str_cut(event, '\n', &name, &data));
    ck_assert(str_starts(name, STR("event: ")) && str_starts(data, STR("data: ")));
    name = str_skip(name, 7);
    data = str_skip(data, 6);
    ck_assert_ptr_null(memchr(data.p, '\n', data.n));
    ck_assert(p->hellos > 0 || str_eq(name, STR("hello")));
    if (str_eq(name, STR("hello"))) {
        drop_all(p);
        p->hellos++;
        p->ready = false;
    } else if (str_eq(name, STR("nodes"))) {
        take_nodes(p, data);
    } else if (str_eq(name, STR("ready"))) {
        ck_assert(!p->ready);
        p->ready = true;
    } else if (str_eq(name, STR("pods"))) {
        buf_clear(&p->pods, SIZE_MAX);
        buf_put(&p->pods, data);
    } else if (str_eq(name, STR("history"))) {
        p->histories++;
    } else if (str_eq(name, STR("quotas"))) {
        buf_clear(&p->quotas, SIZE_MAX);
        buf_put(&p->quotas, data);
    } else {
        ck_assert(str_eq(name, STR("status")));
        buf_clear(&p->status, SIZE_MAX);
        buf_put(&p->status, data);
    }
    arena_reset(&p->arena);
}

/* Parses chunks, and the events in them. */
static inline void ui_client_read(struct ui_client *p)
{
    struct str in = buf_str(&p->peer.in);
    if (p->at == 0) {
        const char *end = memmem(in.p, in.n, "\r\n\r\n", 4);
        if (end == NULL)
            return;
        ck_assert(str_starts(in, STR("HTTP/1.1 200 OK\r\n")));
        p->at = (size_t)(end - in.p) + 4;
    }
    for (;;) {
        struct str rest = str_skip(in, p->at);
        size_t n = 0;
        for (size_t i = 0; i < rest.n && rest.p[i] != '\r'; i++)
            n = n * 16 + (size_t)(rest.p[i] <= '9' ? rest.p[i] - '0' : (rest.p[i] | 32) - 'a' + 10);
        const char *eol = rest.n == 0 ? NULL : memchr(rest.p, '\n', rest.n);
        size_t head = eol == NULL ? 0 : (size_t)(eol - rest.p) + 1;
        if (eol == NULL || rest.n < head + n + 2)
            break;
        buf_put(&p->body, (struct str){rest.p + head, n});
        p->at += head + n + 2;
    }
    for (;;) {
        struct str body = buf_str(&p->body);
        const char *end = body.n == 0 ? NULL : memmem(body.p, body.n, "\n\n", 2);
        if (end == NULL)
            return;
        size_t n = (size_t)(end - body.p);
        take_event(p, (struct str){body.p, n});
        raw_conn_consume(&p->body, n + 2);
    }
}

/* Whether the page shows the present state, byte by byte. */
static inline bool is_right(struct ui_client *p, const struct ui_fixture *g)
{
    struct buf now;
    struct jwrite w;
    size_t cursor = 0;
    size_t n = 0;
    bool same = p->ready;
    buf_init(&now, MIB);
    for (const struct node *node = cache_next_node(&g->service.cache, &cursor); node != NULL;
         node = cache_next_node(&g->service.cache, &cursor)) {
        char key[64];
        if (!ui_shows(node))
            continue;
        (void)snprintf(key, sizeof(key), "\"%.*s\"", STR_ARG(node->name));
        const struct shown *s = map_get(&p->nodes, str_of(key));
        buf_clear(&now, SIZE_MAX);
        jwrite_init(&w, &now);
        ui_write_node(&w, &g->service.measured, node);
        same = same && s != NULL && str_eq(buf_str(&s->json), buf_str(&now));
        n++;
    }
    buf_clear(&now, SIZE_MAX);
    jwrite_init(&w, &now);
    ui_write_pending(&w, &g->service.cache, g->service.reasons);
    same = same && n == p->nodes.n && str_eq(buf_str(&p->pods), buf_str(&now));
    buf_clear(&now, SIZE_MAX);
    jwrite_init(&w, &now);
    ui_quota_write(&w, &g->service.cache.quota);
    same = same && str_eq(buf_str(&p->quotas), buf_str(&now));
    buf_done(&now);
    return same;
}
