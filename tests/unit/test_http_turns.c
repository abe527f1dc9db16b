/* The order of requests when the server's buffers hold more than one turn should handle. */
#include "http_fixture.h"

#define DEAR_MS   6 /* more than one turn may take */
#define DEAR_ONES 4
#define TURNS     200

struct order {
    struct http_fixture http;
    char paths[256]; /* of the handled requests in order, each followed by a space */
};

static void handle_in_order(void *ctx, struct http_request *r)
{
    struct order *o = CONTAINER_OF(ctx, struct order, http);
    size_t n = strlen(o->paths);
    (void)snprintf(o->paths + n, sizeof(o->paths) - n, "%.*s ", STR_ARG(r->path));
    if (str_starts(r->path, STR("/dear")))
        idle_clock_pass(DEAR_MS);
    r->kind = FIXTURE_KIND;
    o->http.handled++;
    respond(r, STR("done"));
}

static bool is_dear(void *ctx, const char *method, const char *path)
{
    (void)ctx;
    return strcmp(method, "GET") == 0 && strncmp(path, "/dear", 5) == 0;
}

static void open_order(struct order *o)
{
    struct http_server_settings set = settings(&o->http);
    o->paths[0] = '\0';
    set.handle = handle_in_order;
    set.may_wait = is_dear;
    open_with(&o->http, &set);
}

/* The bytes arrive before the server's next turn. */
static void send_now(struct raw_conn *p, const char *text)
{
    ck_assert_int_eq(write(p->fd.fd, text, strlen(text)), (ssize_t)strlen(text));
}

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

static void dial_all(struct order *o, struct raw_conn *peers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dial(&o->http, &peers[i]);
    run_turns(o->http.loop, TURNS);
    ck_assert_uint_eq(o->http.counts.open, n);
}

static size_t place_of(const struct order *o, const char *path)
{
    const char *at = strstr(o->paths, path);
    ck_assert_msg(at != NULL, "%s is not in %s", path, o->paths);
    return (size_t)(at - o->paths);
}

TEST(a_connection_has_one_request_a_turn)
{
    struct order o;
    struct raw_conn peers[2];
    open_order(&o);
    dial_all(&o, peers, COUNT_OF(peers));
    send_now(&peers[0], GET("/a1") GET("/a2") GET("/a3"));
    send_now(&peers[1], GET("/b1"));
    raw_conn_await(&peers[0], "done", 3);
    raw_conn_await(&peers[1], "done", 1);
    ck_assert_uint_lt(place_of(&o, "/a1"), place_of(&o, "/a2"));
    ck_assert_uint_lt(place_of(&o, "/a2"), place_of(&o, "/a3"));
    ck_assert_msg(place_of(&o, "/b1") < place_of(&o, "/a2"), "%s", o.paths);
    raw_conn_close(&peers[0]);
    raw_conn_close(&peers[1]);
    http_fixture_close(&o.http);
}

TEST(a_verb_waits_for_one_dear_request)
{
    struct order o;
    struct raw_conn peers[DEAR_ONES + 1];
    open_order(&o);
    dial_all(&o, peers, COUNT_OF(peers));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        send_now(&peers[i], i == DEAR_ONES ? POST("/verb") : GET("/dear"));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        raw_conn_await(&peers[i], "done", 1);
    ck_assert_msg(place_of(&o, "/verb") <= strlen("/dear "), "%s", o.paths);
    ck_assert_uint_eq(o.http.handled, COUNT_OF(peers));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        raw_conn_close(&peers[i]);
    http_fixture_close(&o.http);
}

/* The waiting requests are complete: that the client sends no more is no reason to cut them. */
TEST(what_waits_outlives_the_end_of_its_bytes)
{
    struct order o;
    struct raw_conn p;
    open_order(&o);
    dial_all(&o, &p, 1);
    send_now(&p, GET("/a1") GET("/a2") POST("/a3") GET("/a4") GET("/a5"));
    ck_assert_int_eq(shutdown(p.fd.fd, SHUT_WR), 0);
    raw_conn_await(&p, "done", 5);
    raw_conn_await_end(&p);
    raw_conn_close(&p);
    http_fixture_close(&o.http);
}

static bool one_is_handled(void *ctx)
{
    return ((const struct order *)ctx)->http.handled >= 1;
}

TEST(the_server_is_freed_while_some_wait)
{
    struct order o;
    struct raw_conn p;
    open_order(&o);
    dial_all(&o, &p, 1);
    send_now(&p, GET("/a1") GET("/a2") GET("/a3") GET("/a4"));
    run_until(o.http.loop, one_is_handled, &o);
    size_t handled = o.http.handled;
    ck_assert_uint_lt(handled, 4);
    o.http.server = http_server_free(o.http.server);
    ck_assert_uint_eq(o.http.handled, handled);
    run_turns(o.http.loop, TURNS);
    ck_assert_uint_eq(raw_conn_count(&p, "shutting down"), 1); /* and that answer is the last one */
    raw_conn_close(&p);
    o.http.loop = loop_free(o.http.loop);
}
