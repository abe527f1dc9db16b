/* kube_api.h: what each answer of the API server means. */
#include "kube/kube_api.h"

#include "fail_alloc.h"
#include "on_loop.h"
#include "script_server.h"

static struct {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct kube_call call;
    bool done;
    char path[64];
} rig;

static void on_done(struct http_call *c)
{
    ck_assert_ptr_eq(c, &rig.call.http);
    rig.done = true;
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    (void)snprintf(rig.path, sizeof(rig.path), "/tmp/cardpack-test-kube-api-XXXXXX");
    int fd = mkstemp(rig.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_ok(loop_new(&rig.loop, &e), &e);
    rig.call.http.on_done = on_done;
}

static void start(const struct script_step *steps, size_t n)
{
    struct err e = ERR_INIT;
    struct kube_api_settings s = {.kubeconfig = str_of(rig.path),
                                  .user_agent = STR("cardpack/1.2.3")};
    script_start(&rig.server, rig.loop, steps, n);
    script_kubeconfig(&rig.server, rig.path);
    ck_assert_ok(kube_api_new(rig.loop, &s, &rig.api, &e), &e);
}

static void tear_down(void)
{
    kube_call_cancel(&rig.call);
    kube_call_done(&rig.call);
    rig.api = kube_api_free(rig.api);
    script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    (void)unlink(rig.path);
}

static void get(const char *path)
{
    rig.done = false;
    kube_call_start(rig.api, &rig.call, "GET", str_of(path));
    run_until(rig.loop, until_flag, &rig.done);
}

START_TEST(test_call)
{
    static const struct script_step steps[] = {
        {"GET /base/api/v1/nodes?limit=1 HTTP/1.1\r\n", SCRIPT_BODY, "{\"a\":1}", 0, NULL},
        {"GET /base/version HTTP/1.1\r\n", SCRIPT_BODY, "2", 201, NULL},
    };
    struct err e = ERR_INIT;
    start(steps, COUNT_OF(steps));
    ck_assert_str_is(kube_api_namespace(rig.api), "ns");
    ck_assert(str_starts(kube_api_origin(rig.api), STR("http://127.0.0.1:")));

    get("/api/v1/nodes?limit=1");
    ck_assert_ok(kube_call_result(&rig.call, &e), &e);
    ck_assert_str_is(buf_str(&rig.call.http.reply), "{\"a\":1}");
    kube_call_done(&rig.call);

    get("/version");
    ck_assert_ok(kube_call_result(&rig.call, &e), &e);
    ck_assert_uint_eq(rig.call.http.status, 201);

    struct str heads = buf_str(&rig.server.heads);
    ck_assert_ptr_nonnull(memmem(heads.p, heads.n, "User-Agent: cardpack/1.2.3\r\n", 28));
    ck_assert_ptr_null(memmem(heads.p, heads.n, "Authorization", 13));
    ck_assert_ptr_null(memmem(heads.p, heads.n, "s3cret", 6));
}

START_TEST(test_result)
{
    static const struct {
        struct script_step step;
        enum errc code;
        const char *text; /* the end of the text */
    } cases[] = {
        {{"", SCRIPT_BODY, "{\"kind\":\"Status\",\"message\":\"pods is\\nforbidden\"}", 403, NULL},
         ERR_DENIED,
         "/base/x: 403: pods is forbidden"},
        {{"", SCRIPT_BODY, "Unauthorized", 401, NULL}, ERR_DENIED, "/base/x: 401: Unauthorized"},
        {{"", SCRIPT_BODY, "404 page not found\n", 404, NULL},
         ERR_NOTFOUND,
         "/base/x: 404: 404 page not found"},
        {{"", SCRIPT_BODY, "", 409, NULL}, ERR_CONFLICT, "/base/x: 409: "},
        {{"", SCRIPT_BODY, "", 410, NULL}, ERR_NOTFOUND, "/base/x: 410: "},
        {{"", SCRIPT_BODY, "", 422, NULL}, ERR_INTERNAL, "/base/x: 422: "},
        {{"", SCRIPT_BODY, "", 429, NULL}, ERR_UNAVAILABLE, "/base/x: 429: "},
        {{"", SCRIPT_BODY, "", 503, NULL}, ERR_UNAVAILABLE, "/base/x: 503: "},
        {{"", SCRIPT_BODY, "", 504, NULL}, ERR_TIMEOUT, "/base/x: 504: "},
        {{"", SCRIPT_BODY, "", 302, "Location: http://127.0.0.1:1/\r\n"},
         ERR_INTERNAL,
         "/base/x: 302: "},
    };
    struct err e = ERR_INIT;
    start(&cases[_i].step, 1);
    get("/x?continue=secretive");
    ck_assert_int_eq(kube_call_result(&rig.call, &e), cases[_i].code);
    ck_assert_msg(str_starts(str_of(e.text), STR("GET http://127.0.0.1:")), "%s", e.text);
    ck_assert_msg(str_ends(str_of(e.text), str_of(cases[_i].text)), "%s", e.text);
}

START_TEST(test_no_answer)
{
    static const struct script_step step = {"", SCRIPT_CLOSE, NULL, 0, NULL};
    struct err e = ERR_INIT;
    start(&step, 1);
    get("/x");
    ck_assert_int_eq(rig.call.http.outcome, HTTP_UNKNOWN);
    ck_assert_int_ne(kube_call_result(&rig.call, &e), OK);
    ck_assert_ptr_nonnull(strstr(e.text, "/base/x"));
}

START_TEST(test_path_beyond_its_ceiling)
{
    static const struct script_step step = {"", SCRIPT_BODY, "", 0, NULL};
    struct buf path;
    struct err e = ERR_INIT;
    start(&step, 1);
    buf_init(&path, (size_t)1 << 20);
    for (int i = 0; i < 50000; i++)
        buf_put(&path, STR("/segment"));
    get(buf_cstr(&path));
    ck_assert_int_eq(rig.call.http.outcome, HTTP_NOT_SENT);
    ck_assert_int_ne(kube_call_result(&rig.call, &e), OK);
    ck_assert_uint_eq(rig.server.n_requests, 0);
    buf_done(&path);
}

static enum errc make_and_free(void *ctx)
{
    struct kube_api *api = NULL;
    struct err e = ERR_INIT;
    enum errc code = kube_api_new(rig.loop, ctx, &api, &e);
    ck_assert_int_eq(code == OK, api != NULL);
    api = kube_api_free(api);
    /* jread can't tell why its arena refused */
    return code == ERR_LIMIT ? ERR_NOMEM : code;
}

START_TEST(test_out_of_memory)
{
    static const struct script_step step = {"", SCRIPT_BODY, "", 0, NULL};
    struct kube_api_settings s = {.kubeconfig = str_of(rig.path), .user_agent = STR("cardpack")};
    start(&step, 1);
    ck_assert_uint_gt(fail_alloc_each(make_and_free, &s), 3);
}

START_TEST(test_status_message)
{
    static const struct {
        const char *body;
        const char *message;
    } cases[] = {
        {"{\"kind\":\"Status\",\"message\":\"a \\u00e9 b\"}", "a \xc3\xa9 b"},
        {"{\"kind\":\"Status\",\"message\":\"a\\r\\n\\tb\\u001b[1m\"}", "a   b [1m"},
        {"{\"kind\":\"Status\"}", "{\"kind\":\"Status\"}"},
        {"{\"kind\":\"Other\",\"message\":\"x\"}", "{\"kind\":\"Other\",\"message\":\"x\"}"},
        {"\n<html>\n<body>\n", "<html> <body>"},
        {"", ""},
    };
    struct arena arena;
    arena_init(&arena, 65536);
    struct str got = kube_status_message(str_of(cases[_i].body), &arena);
    ck_assert_str_is(got, cases[_i].message);
    arena_done(&arena);
}

START_TEST(test_status_message_is_cut_between_characters)
{
    char body[301];
    struct arena arena;
    arena_init(&arena, 65536);
    for (size_t i = 0; i < 300; i += 3)
        (void)memcpy(body + i, "\xe2\x82\xac", 3);
    body[300] = '\0';
    ck_assert_uint_eq(kube_status_message(str_of(body), &arena).n, 198);
    arena_done(&arena);
}

int main(void)
{
    TCase *t = unit_case("kube_api");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, test_call);
    tcase_add_loop_test(t, test_result, 0, 10);
    tcase_add_test(t, test_no_answer);
    tcase_add_test(t, test_path_beyond_its_ceiling);
    tcase_add_test(t, test_out_of_memory);
    TCase *pure = unit_case("kube_status_message");
    tcase_add_loop_test(pure, test_status_message, 0, 6);
    tcase_add_test(pure, test_status_message_is_cut_between_characters);
    return unit_run();
}
