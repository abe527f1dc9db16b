/*
 * Each case is a conversation: what the server is asked and says, and what the sink sees of it. The
 * log has one word a call: "begin", "+a" and "-a" for objects by name, "end", and the notes.
 */
#include "fail_alloc.h"
#include "on_loop.h"
#include "reflector.h"
#include "script_server.h"
#include "watch.h"

#define FIRST_LIST "GET /base/api/v1/pods?limit=2&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define NEXT_PAGE \
    "GET /base/api/v1/pods?limit=2&continue=a%2Fb%2B%3D&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define WHOLE_LIST "GET /base/api/v1/pods?&fieldSelector=a%21%3Db HTTP/1.1\r\n"
#define WATCH(rv)  "&resourceVersion=" rv "&fieldSelector=a%21%3Db HTTP/1.1\r\n"

#define OBJECT(name, rv) \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"x\":1}}"
#define LIST(rv, items) \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}\n"
#define PAGE(rv, items)                                                                            \
    "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"a/b+=\"},\"items\":[" items "]}" \
    "\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason) \
    "{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"because\"}"
#define STEPS(...) \
    (const struct script_step[]){__VA_ARGS__}, COUNT_OF(((const struct script_step[]){__VA_ARGS__}))

#define LISTED                                                         \
    {                                                                  \
        FIRST_LIST, SCRIPT_BODY, LIST("10", OBJECT("a", "3")), 0, NULL \
    }
#define LISTED_LOG "begin +a end"

static const struct {
    const char *name;
    const struct script_step *steps;
    size_t n_steps;
    const char *log;
} cases[] = {
    {"two pages",
     STEPS({FIRST_LIST, SCRIPT_BODY, PAGE("10", OBJECT("a", "3")), 0, NULL},
           {NEXT_PAGE, SCRIPT_BODY, LIST("11", OBJECT("b", "4")), 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +a +b end"},
    {"an empty list",
     STEPS({FIRST_LIST, SCRIPT_BODY, LIST("10", ""), 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin end"},
    {"events",
     STEPS(LISTED, {WATCH("10"), SCRIPT_STREAM,
                    EVENT("ADDED", OBJECT("b", "11")) EVENT("MODIFIED", OBJECT("a", "12"))
                        EVENT("DELETED", OBJECT("b", "13")),
                    0, NULL}),
     LISTED_LOG " +b +a -b"},
    {"a watch resumes where it ended",
     STEPS(LISTED, {WATCH("10"), SCRIPT_END, EVENT("ADDED", OBJECT("b", "11")), 0, NULL},
           {WATCH("11"), SCRIPT_STREAM, EVENT("DELETED", OBJECT("b", "12")), 0, NULL}),
     LISTED_LOG " +b [watch ended] -b"},
    {"a bookmark moves on",
     STEPS(LISTED,
           {WATCH("10"), SCRIPT_END,
            EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{"
                              "\"resourceVersion\":\"77/x\"}}"),
            0, NULL},
           {WATCH("77%2Fx"), SCRIPT_STREAM, NULL, 0, NULL}),
     LISTED_LOG " [watch ended]"},
    {"a watch that ends at once is asked for again",
     STEPS(LISTED, {WATCH("10"), SCRIPT_END, NULL, 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "11")), 0, NULL}),
     LISTED_LOG " [watch ended] +b"},
    {"cut in the middle of a line",
     STEPS(LISTED,
           {WATCH("10"), SCRIPT_CUT,
            EVENT("ADDED", OBJECT("b", "11")) "{\"type\":\"DELETED\",\"obj", 0, NULL},
           {WATCH("11"), SCRIPT_STREAM, EVENT("DELETED", OBJECT("b", "12")), 0, NULL}),
     LISTED_LOG " +b [watch ended] -b"},
    {"ended in the middle of a line",
     STEPS(LISTED, {WATCH("10"), SCRIPT_END, "{\"type\":\"DELETED\",\"obj", 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "12")), 0, NULL}),
     LISTED_LOG " [watch garbled] +b"},
    {"410 event after events",
     STEPS(LISTED,
           {WATCH("10"), SCRIPT_STREAM,
            EVENT("ADDED", OBJECT("b", "11")) EVENT("ERROR", STATUS(410, "Expired"))
                EVENT("ADDED", OBJECT("c", "12")),
            0, NULL},
           {FIRST_LIST, SCRIPT_BODY, LIST("20", OBJECT("c", "12")), 0, NULL},
           {WATCH("20"), SCRIPT_STREAM, NULL, 0, NULL}),
     LISTED_LOG " +b [watch expired, relist] begin +c end"},
    {"410 status on a watch",
     STEPS(LISTED, {WATCH("10"), SCRIPT_BODY, STATUS(410, "Gone"), 410, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     LISTED_LOG " [watch failed, relist] " LISTED_LOG},
    {"429 event keeps the version",
     STEPS(LISTED, {WATCH("10"), SCRIPT_STREAM, EVENT("ERROR", STATUS(429, "x")), 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "11")), 0, NULL}),
     LISTED_LOG " [watch failed] +b"},
    {"a version from the future",
     STEPS(LISTED,
           {WATCH("10"), SCRIPT_BODY,
            "{\"kind\":\"Status\",\"code\":504,\"details\":{\"causes\":[{\"reason\":"
            "\"ResourceVersionTooLarge\"}]}}",
            504, NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     LISTED_LOG " [watch failed, relist] " LISTED_LOG},
    {"a continue token that expired",
     STEPS({FIRST_LIST, SCRIPT_BODY, PAGE("10", OBJECT("a", "3")), 0, NULL},
           {NEXT_PAGE, SCRIPT_BODY, STATUS(410, "Expired"), 410, NULL},
           {FIRST_LIST, SCRIPT_BODY, PAGE("20", OBJECT("b", "4")), 0, NULL},
           {NEXT_PAGE, SCRIPT_BODY, STATUS(410, "Expired"), 410, NULL},
           {WHOLE_LIST, SCRIPT_BODY, LIST("30", OBJECT("c", "5")), 0, NULL},
           {WATCH("30"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +a [list outlived its continue token] begin +b [list outlived its continue token] "
     "begin +c end"},
    {"a list that is cut",
     STEPS({FIRST_LIST, SCRIPT_CUT, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}", 0,
            NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +? [list failed] " LISTED_LOG},
    {"a list that is cut within whole HTTP",
     STEPS({FIRST_LIST, SCRIPT_BODY, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}", 0,
            NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +? [list failed] " LISTED_LOG},
    {"a list without a version",
     STEPS({FIRST_LIST, SCRIPT_BODY, "{\"metadata\":{},\"items\":[]}", 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin [list failed] " LISTED_LOG},
    {"no answer at all",
     STEPS({FIRST_LIST, SCRIPT_CLOSE, NULL, 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin [list failed] " LISTED_LOG},
    {"401 once",
     STEPS({FIRST_LIST, SCRIPT_BODY, STATUS(401, "Unauthorized"), 401, NULL}, LISTED,
           {WATCH("10"), SCRIPT_BODY, "Unauthorized", 401, NULL},
           {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "11")), 0, NULL}),
     "begin [list failed] " LISTED_LOG " [watch failed] +b"},
    {"an event of a new type",
     STEPS(LISTED,
           {WATCH("10"), SCRIPT_STREAM,
            EVENT("SPARKLED", OBJECT("b", "99")) "\n" EVENT("ADDED", OBJECT("c", "12")), 0, NULL}),
     LISTED_LOG " [unknown event ignored] +c"},
    {"three garbled watches",
     STEPS(LISTED, {WATCH("10"), SCRIPT_STREAM, "<html>\n", 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, "<html>\n", 0, NULL},
           {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", "{}"), 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     LISTED_LOG " [watch garbled] [watch garbled] [watch garbled, relist] " LISTED_LOG},
    {"429 in plain text, Retry-After",
     STEPS({FIRST_LIST, SCRIPT_BODY, "Too many requests\n", 429, "Retry-After: 7\r\n"}),
     "begin [list failed, retry in 7000]"},
    {"503 on a watch, Retry-After",
     STEPS(LISTED, {WATCH("10"), SCRIPT_BODY, "<html>", 503, "Retry-After: 3\r\n"}),
     LISTED_LOG " [watch failed, retry in 3000]"},
};

struct rig {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct reflector *reflector;
    struct reflector_sink sink;
    struct reflector_settings settings;
    struct buf log;
    struct err last; /* that a note came with */
    const char *expected;
    size_t n_requests;
    bool relist_in_change;
    char path[64];
};

static struct rig rig;

static void say(const char *word)
{
    if (rig.log.n > 0)
        buf_putc(&rig.log, ' ');
    buf_put(&rig.log, str_of(word));
}

static void on_begin(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("begin");
}

static void on_end(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("end");
}

static void on_change(void *ctx, enum reflector_change change, struct str object)
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

static void on_note(void *ctx, const char *what, const struct err *err, uint64_t retry_in_ms)
{
    ck_assert_ptr_eq(ctx, &rig);
    say("[");
    buf_put(&rig.log, str_of(what));
    /* What is shorter is the tests' own short back-off and random. */
    if (retry_in_ms >= 1000)
        buf_printf(&rig.log, ", retry in %llu", (unsigned long long)retry_in_ms);
    buf_putc(&rig.log, ']');
    if (err != NULL)
        rig.last = *err;
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    rig = (struct rig){
        .sink = {on_begin, on_change, on_end, on_note, &rig},
        .settings = {.path = STR("/api/v1/pods"),
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

static void start(const struct script_step *steps, size_t n)
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

static void tear_down(void)
{
    rig.reflector = reflector_free(rig.reflector);
    rig.api = kube_api_free(rig.api);
    script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    buf_done(&rig.log);
    (void)unlink(rig.path);
}

static bool as_expected(void *ctx)
{
    (void)ctx;
    return rig.server.n_requests >= rig.n_requests &&
           str_eq(buf_str(&rig.log), str_of(rig.expected));
}

static bool gone_astray(void *ctx)
{
    struct str log = buf_str(&rig.log);
    return as_expected(ctx) || !str_starts(str_of(rig.expected), log);
}

static void run_to(const char *expected, size_t n_requests)
{
    rig.expected = expected;
    rig.n_requests = n_requests;
    run_until(rig.loop, gone_astray, NULL);
    ck_assert_str_is(buf_str(&rig.log), expected);
    ck_assert_uint_eq(rig.server.n_requests, n_requests);
}

START_TEST(test_conversation)
{
    start(cases[_i].steps, cases[_i].n_steps);
    run_to(cases[_i].log, cases[_i].n_steps);
}

END_TEST

START_TEST(test_denied_until_it_is_not)
{
    static const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_BODY, STATUS(403, "Forbidden"), 403, NULL},
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    run_to("begin [list failed]", 1);
    ck_assert(reflector_denied(rig.reflector));
    ck_assert(!reflector_synced(rig.reflector));
    ck_assert_int_eq(rig.last.code, ERR_DENIED);
    ck_assert_ptr_nonnull(strstr(rig.last.text, "/base/api/v1/pods: 403: because"));
    run_to("begin [list failed] " LISTED_LOG, 3);
    ck_assert(!reflector_denied(rig.reflector));
    ck_assert(reflector_synced(rig.reflector));
}

END_TEST

START_TEST(test_relist_drops_a_watch)
{
    static const struct script_step steps[] = {
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "11")), 0, NULL},
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    run_to(LISTED_LOG " +b", 2);
    reflector_relist(rig.reflector);
    run_to(LISTED_LOG " +b [relist asked for] " LISTED_LOG, 4);
}

END_TEST

START_TEST(test_relist_within_a_change)
{
    static const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_STREAM, "{\"items\":[" OBJECT("a", "1") ",", 0, NULL},
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    rig.relist_in_change = true;
    start(steps, COUNT_OF(steps));
    run_to("begin +a [relist asked for] " LISTED_LOG, 3);
}

END_TEST

START_TEST(test_relist_ends_a_wait)
{
    static const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_BODY, "", 503, "Retry-After: 250\r\n"},
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    run_to("begin [list failed, retry in 250000]", 1);
    reflector_relist(rig.reflector);
    run_to("begin [list failed, retry in 250000] [relist asked for] " LISTED_LOG, 3);
}

END_TEST

START_TEST(test_objects_come_in_pieces)
{
    /* Larger than any buffer on the way, so that it arrives in many chunks. */
    struct buf body;
    buf_init(&body, (size_t)1 << 24);
    buf_put(&body, STR("{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["));
    for (int i = 0; i < 20; i++) {
        buf_printf(&body, "%s{\"metadata\":{\"name\":\"%c\"},\"data\":\"", i == 0 ? "" : ",",
                   'a' + i);
        for (int n = 0; n < 100; n++)
            buf_put(&body, STR("0123456789]},\\\"{["));
        buf_put(&body, STR("\"}"));
    }
    buf_put(&body, STR("]}"));
    const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_BODY, buf_cstr(&body), 0, NULL},
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    run_to("begin +a +b +c +d +e +f +g +h +i +j +k +l +m +n +o +p +q +r +s +t end", 2);
    buf_done(&body);
}

END_TEST

START_TEST(test_quiet_watch_is_dropped)
{
    static const struct script_step steps[] = {
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("b", "11")), 0, NULL},
        {WATCH("11"), SCRIPT_STREAM, EVENT("ADDED", OBJECT("c", "12")), 0, NULL},
    };
    rig.settings.quiet_ms = 50;
    start(steps, COUNT_OF(steps));
    run_to(LISTED_LOG " +b [watch ended] +c", 3);
    ck_assert_int_eq(rig.last.code, ERR_TIMEOUT);
}

END_TEST

START_TEST(test_freed_in_every_state)
{
    static const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_STREAM, "{\"items\":[" OBJECT("a", "1") ",", 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    if (_i == 1)
        run_turns(rig.loop, 1);
    else if (_i == 2)
        run_to("begin +a", 1);
    else if (_i == 3)
        reflector_relist(rig.reflector);
}

END_TEST

static enum errc make_and_free(void *ctx)
{
    struct reflector *r = NULL;
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = reflector_new(rig.loop, rig.api, &rig.settings, &rig.sink, &r, &e);
    ck_assert_int_eq(code == OK, r != NULL);
    r = reflector_free(r);
    return code;
}

START_TEST(test_out_of_memory)
{
    static const struct script_step steps[] = {
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    ck_assert_uint_gt(fail_alloc_each(make_and_free, NULL), 3);
    run_to(LISTED_LOG, 2);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("reflector");
    TCase *t = tcase_create("reflector");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, test_conversation, 0, (int)COUNT_OF(cases));
    tcase_add_test(t, test_denied_until_it_is_not);
    tcase_add_test(t, test_relist_drops_a_watch);
    tcase_add_test(t, test_relist_within_a_change);
    tcase_add_test(t, test_relist_ends_a_wait);
    tcase_add_test(t, test_objects_come_in_pieces);
    tcase_add_test(t, test_quiet_watch_is_dropped);
    tcase_add_loop_test(t, test_freed_in_every_state, 0, 4);
    tcase_add_test(t, test_out_of_memory);
    suite_add_tcase(suite, t);
    return unit_main(suite);
}
