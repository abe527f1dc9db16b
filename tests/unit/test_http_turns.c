/* The order of requests when the server's buffers hold more than one turn should handle. */
#include "site.h"

#define DEAR_US   6000 /* more than one turn may take */
#define DEAR_ONES 4
#define TURNS     200

struct order {
    struct site site;
    char paths[256]; /* of the handled requests in order, each followed by a space */
};

static void handle_in_order(void *ctx, struct http_request *r)
{
    struct order *o = CONTAINER_OF(ctx, struct order, site);
    size_t n = strlen(o->paths);
    (void)snprintf(o->paths + n, sizeof(o->paths) - n, "%.*s ", STR_ARG(r->path));
    if (str_starts(r->path, STR("/dear")))
        (void)usleep(DEAR_US);
    r->kind = SITE_KIND;
    o->site.handled++;
    respond(r, STR("done"));
}

static bool is_dear(void *ctx, const char *method, const char *path)
{
    (void)ctx;
    return strcmp(method, "GET") == 0 && strncmp(path, "/dear", 5) == 0;
}

static void open_order(struct order *o)
{
    struct http_server_settings set = settings(&o->site);
    o->paths[0] = '\0';
    set.handle = handle_in_order;
    set.may_wait = is_dear;
    open_with(&o->site, &set);
}

/* The bytes arrive before the server's next turn. */
static void send_now(struct peer *p, const char *text)
{
    ck_assert_int_eq(write(p->fd.fd, text, strlen(text)), (ssize_t)strlen(text));
}

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

static void dial_all(struct order *o, struct peer *peers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dial(&o->site, &peers[i]);
    run_turns(o->site.loop, TURNS);
    ck_assert_uint_eq(o->site.counts.open, n);
}

static size_t place_of(const struct order *o, const char *path)
{
    const char *at = strstr(o->paths, path);
    ck_assert_msg(at != NULL, "%s is not in %s", path, o->paths);
    return (size_t)(at - o->paths);
}

START_TEST(a_connection_has_one_request_a_turn)
{
    struct order o;
    struct peer peers[2];
    open_order(&o);
    dial_all(&o, peers, COUNT_OF(peers));
    send_now(&peers[0], GET("/a1") GET("/a2") GET("/a3"));
    send_now(&peers[1], GET("/b1"));
    peer_await(&peers[0], "done", 3);
    peer_await(&peers[1], "done", 1);
    ck_assert_uint_lt(place_of(&o, "/a1"), place_of(&o, "/a2"));
    ck_assert_uint_lt(place_of(&o, "/a2"), place_of(&o, "/a3"));
    ck_assert_msg(place_of(&o, "/b1") < place_of(&o, "/a2"), "%s", o.paths);
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    close_site(&o.site);
}

END_TEST

START_TEST(a_verb_waits_for_one_dear_request)
{
    struct order o;
    struct peer peers[DEAR_ONES + 1];
    open_order(&o);
    dial_all(&o, peers, COUNT_OF(peers));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        send_now(&peers[i], i == DEAR_ONES ? POST("/verb") : GET("/dear"));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        peer_await(&peers[i], "done", 1);
    ck_assert_msg(place_of(&o, "/verb") <= strlen("/dear "), "%s", o.paths);
    ck_assert_uint_eq(o.site.handled, COUNT_OF(peers));
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        peer_close(&peers[i]);
    close_site(&o.site);
}

END_TEST

/* The waiting requests are complete: that the client sends no more is no reason to cut them. */
START_TEST(what_waits_outlives_the_end_of_its_bytes)
{
    struct order o;
    struct peer p;
    open_order(&o);
    dial_all(&o, &p, 1);
    send_now(&p, GET("/a1") GET("/a2") POST("/a3") GET("/a4") GET("/a5"));
    ck_assert_int_eq(shutdown(p.fd.fd, SHUT_WR), 0);
    peer_await(&p, "done", 5);
    peer_await_end(&p);
    peer_close(&p);
    close_site(&o.site);
}

END_TEST

static bool one_is_handled(void *ctx)
{
    return ((const struct order *)ctx)->site.handled >= 1;
}

START_TEST(the_server_is_freed_while_some_wait)
{
    struct order o;
    struct peer p;
    open_order(&o);
    dial_all(&o, &p, 1);
    send_now(&p, GET("/a1") GET("/a2") GET("/a3") GET("/a4"));
    run_until(o.site.loop, one_is_handled, &o);
    size_t handled = o.site.handled;
    ck_assert_uint_lt(handled, 4);
    o.site.server = http_server_free(o.site.server);
    ck_assert_uint_eq(o.site.handled, handled);
    run_turns(o.site.loop, TURNS);
    ck_assert_uint_eq(peer_count(&p, "shutting down"), 1); /* and that answer is the last one */
    peer_close(&p);
    o.site.loop = loop_free(o.site.loop);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("http_turns");
    TCase *c = tcase_create("http_turns");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_connection_has_one_request_a_turn);
    tcase_add_test(c, a_verb_waits_for_one_dear_request);
    tcase_add_test(c, what_waits_outlives_the_end_of_its_bytes);
    tcase_add_test(c, the_server_is_freed_while_some_wait);
    suite_add_tcase(s, c);
    return unit_main(s);
}
