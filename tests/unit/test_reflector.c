/*
 * Each case is an exchange: the requests to the server and its answers, and the calls of the sink.
 * The log has one word a call: "begin", "+a" and "-a" for objects by name, "end", and the notes.
 */
#include "fail_alloc.h"
#include "kube/limit.h"
#include "reflector_rig.h"

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
     STEPS({FIRST_LIST, SCRIPT_CUT, KIND "\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}",
            0, NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +? [list failed] " LISTED_LOG},
    {"a list that is cut within whole HTTP",
     STEPS({FIRST_LIST, SCRIPT_BODY, KIND "\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}",
            0, NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +? [list failed] " LISTED_LOG},
    {"a list without a version",
     STEPS({FIRST_LIST, SCRIPT_BODY, KIND "\"metadata\":{},\"items\":[]}", 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin [list failed] " LISTED_LOG},
    {"a list of another kind",
     STEPS({FIRST_LIST, SCRIPT_BODY, OTHER("NodeList"), 0, NULL},
           {FIRST_LIST, SCRIPT_BODY, OTHER("Status"), 0, NULL},
           {FIRST_LIST, SCRIPT_BODY, OTHER("PodLis\\u0074"), 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin [list failed] begin [list failed] begin [list failed] " LISTED_LOG},
    {"a list whose kind comes last",
     STEPS({FIRST_LIST, SCRIPT_BODY,
            "{\"items\":[" OBJECT("a", "3") "],\"metadata\":{\"resourceVersion\":\"10\"},"
                                            "\"kind\":\"NodeList\"}",
            0, NULL},
           {FIRST_LIST, SCRIPT_BODY,
            "{\"items\":[" OBJECT("a", "3") "],\"metadata\":{\"resourceVersion\":\"10\"},"
                                            "\"kind\":\"PodList\"}",
            0, NULL},
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +a [list failed] begin +a end"},
    {"a list without a kind",
     STEPS({FIRST_LIST, SCRIPT_BODY, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}", 0,
            NULL},
           LISTED, {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin [list failed] " LISTED_LOG},
    {"a second page of another kind",
     STEPS({FIRST_LIST, SCRIPT_BODY, PAGE("10", OBJECT("a", "3")), 0, NULL},
           {NEXT_PAGE, SCRIPT_BODY, OTHER("NodeList"), 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +a [list failed] " LISTED_LOG},
    {"a page that continues with itself",
     STEPS({FIRST_LIST, SCRIPT_BODY, PAGE("10", OBJECT("a", "3")), 0, NULL},
           {NEXT_PAGE, SCRIPT_BODY, PAGE("10", OBJECT("b", "4")), 0, NULL}, LISTED,
           {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL}),
     "begin +a [list failed] " LISTED_LOG},
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

TEST_EACH(test_conversation, COUNT_OF(cases))
{
    start(cases[_i].steps, cases[_i].n_steps);
    run_to(cases[_i].log, cases[_i].n_steps);
}

TEST(test_denied_until_it_is_not)
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

/* Two tokens in turn: no page's token is its own, but the list never ends. */
static void endless(struct script_step *steps, size_t n, const char *item)
{
    static char bodies[2][256];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(bodies[i % 2], sizeof(bodies[0]),
                       KIND "\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"%zu\"},"
                            "\"items\":[%s]}",
                       i % 2, item);
        steps[i] = (struct script_step){"limit=2", SCRIPT_BODY, bodies[i % 2], 0, NULL};
    }
}

TEST(test_a_list_of_too_many_objects)
{
    struct script_step steps[4 + 2];
    endless(steps, 4, OBJECT("a", "3"));
    steps[4] = (struct script_step)LISTED;
    steps[5] = (struct script_step){WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL};
    rig.settings.max_objects = 3;
    start(steps, COUNT_OF(steps));
    run_to("begin +a +a +a [list failed]", 4);
    ck_assert_int_eq(rig.last.code, ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(rig.last.text, "more than 3 objects"));
    ck_assert(!reflector_synced(rig.reflector));
    /* The next list counts from 0. */
    run_to("begin +a +a +a [list failed] " LISTED_LOG, 6);
}

TEST(test_a_list_of_empty_pages)
{
    struct script_step steps[LIMIT_LIST_EMPTY_PAGES + 1 + 2];
    endless(steps, LIMIT_LIST_EMPTY_PAGES + 1, "");
    steps[LIMIT_LIST_EMPTY_PAGES + 1] = (struct script_step)LISTED;
    steps[LIMIT_LIST_EMPTY_PAGES + 2] =
        (struct script_step){WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL};
    start(steps, COUNT_OF(steps));
    run_to("begin [list failed]", LIMIT_LIST_EMPTY_PAGES + 1);
    ck_assert_int_eq(rig.last.code, ERR_LIMIT);
    run_to("begin [list failed] " LISTED_LOG, LIMIT_LIST_EMPTY_PAGES + 3);
}

/* The delay has grown while the server was down. A list that the reflector refuses shows that the
 * server is back. */
TEST(test_a_refused_list_is_an_answer)
{
    static const struct script_step steps[] = {
        {FIRST_LIST, SCRIPT_CLOSE, NULL, 0, NULL},
        {FIRST_LIST, SCRIPT_CLOSE, NULL, 0, NULL},
        {FIRST_LIST, SCRIPT_CLOSE, NULL, 0, NULL},
        {FIRST_LIST, SCRIPT_CLOSE, NULL, 0, NULL},
        {FIRST_LIST, SCRIPT_BODY, OTHER("NodeList"), 0, NULL},
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
#define FAILED "begin [list failed]"
    rig.settings.backoff = (struct reflector_backoff){.min_ms = 10, .max_ms = 100000};
    start(steps, COUNT_OF(steps));
    run_to(FAILED " " FAILED " " FAILED " " FAILED, 4);
    ck_assert_uint_ge(rig.retry_ms, 80);
    run_to(FAILED " " FAILED " " FAILED " " FAILED " " FAILED, 5);
    ck_assert_uint_le(rig.retry_ms, 20);
    run_to(FAILED " " FAILED " " FAILED " " FAILED " " FAILED " " LISTED_LOG, 7);
#undef FAILED
}

TEST(test_relist_drops_a_watch)
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

TEST(test_relist_within_a_change)
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

TEST(test_relist_ends_a_wait)
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

TEST(test_objects_come_in_pieces)
{
    /* Larger than any buffer on the way, so it arrives in many chunks. */
    struct buf body;
    buf_init(&body, (size_t)1 << 24);
    buf_put(&body, STR(KIND "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["));
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

TEST(test_quiet_watch_is_dropped)
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

TEST_EACH(test_freed_in_every_state, 4)
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

TEST(test_out_of_memory)
{
    static const struct script_step steps[] = {
        LISTED,
        {WATCH("10"), SCRIPT_STREAM, NULL, 0, NULL},
    };
    start(steps, COUNT_OF(steps));
    ck_assert_uint_gt(fail_alloc_each(make_and_free, NULL), 3);
    run_to(LISTED_LOG, 2);
}

int main(void)
{
    TCase *t = unit_case("reflector");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
