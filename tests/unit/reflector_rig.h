/* A reflector and a server with a script, and a log of the sink's calls. */
#pragma once

#include "kube/reflector.h"
#include "objects/watch.h"
#include "on_loop.h"
#include "script_server.h"

#define FIRST_LIST "GET /base/api/v1/pods?limit=2&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define NEXT_PAGE \
    "GET /base/api/v1/pods?limit=2&continue=a%2Fb%2B%3D&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define WHOLE_LIST "GET /base/api/v1/pods?&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define WATCH(rv)  "&resourceVersion=" rv "&fieldSelector=a%21%3Db HTTP/1.1\r\n"

#define OBJECT(name, rv) \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"x\":1}}"
#define KIND "{\"kind\":\"PodList\","
#define LIST(rv, items) \
    KIND "\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}\n"
#define PAGE(rv, items)                                                                           \
    KIND "\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"a/b+=\"},\"items\":[" items \
         "]}"                                                                                     \
         "\n"
#define OTHER(kind)     \
    "{\"kind\":\"" kind \
    "\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" OBJECT("x", "3") "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason)                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" #code ",\"reason\":\"" reason \
    "\",\"message\":\"because\"}"
#define STEPS(...) \
    (const struct script_step[]){__VA_ARGS__}, COUNT_OF(((const struct script_step[]){__VA_ARGS__}))

#define LISTED                                                         \
    {                                                                  \
        FIRST_LIST, SCRIPT_BODY, LIST("10", OBJECT("a", "3")), 0, NULL \
    }
#define LISTED_LOG "begin +a end"

struct rig {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct reflector *reflector;
    struct reflector_sink sink;
    struct reflector_settings settings;
    struct buf log;
    struct err last;   /* the error of the last note */
    uint64_t retry_ms; /* the delay of the last note */
    const char *expected;
    size_t n_requests;
    bool relist_in_change;
    char path[64];
};

static struct rig rig;

static inline void say(const char *word)
{
    if (rig.log.n > 0)
        buf_putc(&rig.log, ' ');
    buf_put(&rig.log, str_of(word));
}

static inline void on_begin(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("begin");
}

static inline void on_end(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("end");
}

static inline void on_change(void *ctx, enum reflector_change change, struct str object)
{
    static const char mark[] = "\"name\":\"";
    ck_assert_ptr_eq(ctx, &rig);
    const char *at = memmem(object.p, object.n, mark, sizeof(mark) - 1);
    say(change == REFLECTOR_SET ? "+" : "-");
    buf_put(&rig.log, at == NULL ? STR("?") : (struct str){at + sizeof(mark) - 1, 1});
    if (rig.relist_in_change) {
        rig.relist_in_change = false;
        reflector_relist(rig.reflector);
    }
}

static inline void on_note(void *ctx, const char *what, const struct err *err, uint64_t retry_in_ms)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("[");
    rig.retry_ms = retry_in_ms;
    buf_put(&rig.log, str_of(what));
    /* Shorter delays come from the tests' own short back-off and its random part. */
    if (retry_in_ms >= 1000)
        buf_printf(&rig.log, ", retry in %llu", (unsigned long long)retry_in_ms);
    buf_putc(&rig.log, ']');
    if (err != NULL)
        rig.last = *err;
}

static inline void set_up(void)
{
    struct err e = ERR_INIT;
    rig = (struct rig){
        .sink = {on_begin, on_change, on_end, on_note, &rig, NULL},
        .settings = {.path = STR("/api/v1/pods"),
                     .kind = STR("PodList"),
                     .selector = STR("fieldSelector=a%21%3Db"),
                     .page_size = 2,
                     .quiet_ms = 60000,
                     .backoff = {.min_ms = 1, .max_ms = 2}},
        .path = "/tmp/cardpack-test-reflector-XXXXXX",
    };
    int fd = mkstemp(rig.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    buf_init(&rig.log, 65536);
    ck_assert_ok(loop_new(&rig.loop, &e), &e);
}

static inline void start(const struct script_step *steps, size_t n)
{
    struct err e = ERR_INIT;
    script_start(&rig.server, rig.loop, steps, n);
    script_kubeconfig(&rig.server, rig.path);
    struct kube_api_settings s = {.kubeconfig = str_of(rig.path), .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(rig.loop, &s, &rig.api, &e), &e);
    ck_assert_ok(reflector_new(rig.loop, rig.api, &rig.settings, &rig.sink, &rig.reflector, &e),
                 &e);
    ck_assert_uint_eq(rig.log.n, 0);
}

static inline void tear_down(void)
{
    rig.reflector = reflector_free(rig.reflector);
    rig.api = kube_api_free(rig.api);
    script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    buf_done(&rig.log);
    (void)unlink(rig.path);
}

static inline bool as_expected(void *ctx)
{
    (void)ctx;
    return rig.server.n_requests >= rig.n_requests &&
           str_eq(buf_str(&rig.log), str_of(rig.expected));
}

static inline bool gone_astray(void *ctx)
{
    struct str log = buf_str(&rig.log);
    return as_expected(ctx) || !str_starts(str_of(rig.expected), log);
}

static inline void run_to(const char *expected, size_t n_requests)
{
    rig.expected = expected;
    rig.n_requests = n_requests;
    run_until(rig.loop, gone_astray, NULL);
    ck_assert_str_is(buf_str(&rig.log), expected);
    ck_assert_uint_eq(rig.server.n_requests, n_requests);
}
