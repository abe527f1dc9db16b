/* The decoders of a watch's events, of a list's metadata, and of a Status. */
#include "objects/watch.h"
#include "unit.h"

#define ARENA_BYTES ((size_t)65536)

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena, ARENA_BYTES);
}

static void tear_down(void)
{
    arena_done(&arena);
}

#define OBJECT \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"17\"},\"spec\":{}}"

static const struct {
    const char *line;
    enum errc code;
    enum watch_type kind;
    const char *version;
    unsigned status;
} events[] = {
    {"{\"type\":\"ADDED\",\"object\":" OBJECT "}", OK, WATCH_ADDED, "17", 0},
    {"{\"type\":\"MODIFIED\",\"object\":" OBJECT "}\r", OK, WATCH_MODIFIED, "17", 0},
    {"{\"object\":" OBJECT ",\"type\":\"DELETED\"}", OK, WATCH_DELETED, "17", 0},
    {" { \"type\" : \"BOOKMARK\" , \"object\" : {\"metadata\":{\"resourceVersion\":\"x/1\"}} , "
     "\"new\":[1,{}] } ",
     OK, WATCH_BOOKMARK, "x/1", 0},
    {"{\"type\":\"ADD\\u0045D\",\"object\":" OBJECT "}", OK, WATCH_ADDED, "17", 0},
    {"{\"type\":\"PAUSED\",\"object\":null}", OK, WATCH_UNKNOWN, NULL, 0},
    {"{\"type\":\"PAUSED\"}", OK, WATCH_UNKNOWN, NULL, 0},
    {"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}",
     OK, WATCH_ERROR, NULL, 410},
    {"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":-1}}", OK, WATCH_ERROR, NULL, 0},
    {"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Pod\",\"code\":410}}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"\"}}}", ERR_SYNTAX, 0,
     NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":7}}}", ERR_SYNTAX, 0, NULL,
     0},
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":[]}}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":[]}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\"}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"object\":" OBJECT "}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":" OBJECT, ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":" OBJECT "}{}", ERR_SYNTAX, 0, NULL, 0},
    {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{bad}}",
     ERR_SYNTAX, 0, NULL, 0},
    {"<html>", ERR_SYNTAX, 0, NULL, 0},
    {"", ERR_SYNTAX, 0, NULL, 0},
};

TEST_EACH(test_event, COUNT_OF(events))
{
    struct watch_event ev;
    struct err e = ERR_INIT;
    enum errc code = watch_event_read(str_of(events[_i].line), &arena, &ev, &e);
    ck_assert_msg(code == events[_i].code, "%s: %s", events[_i].line, e.text);
    if (code != OK)
        return;
    ck_assert_int_eq(ev.kind, events[_i].kind);
    ck_assert_uint_eq(ev.status.code, events[_i].status);
    if (events[_i].version == NULL)
        ck_assert_ptr_null(ev.resource_version.p);
    else
        ck_assert_str_is(ev.resource_version, events[_i].version);
    if (ev.kind == WATCH_ADDED)
        ck_assert_str_is(ev.object, OBJECT);
}

TEST_EACH(test_status, 6)
{
    static const struct {
        const char *json;
        enum errc code;
        unsigned status;
        bool too_large;
        const char *reason;
        const char *says;
    } cases[] = {
        {"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"m\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
         "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
         "\"retryAfterSeconds\":1},\"code\":504}",
         OK, 504, true, "Timeout", "Failure"},
        {"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"details\":{\"causes\":[{"
         "\"reason\":\"Other\"}]}}",
         OK, 504, false, "Timeout", NULL},
        {"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"Too large "
         "resource "
         "version: 9, current: 1\"}",
         OK, 504, true, "Timeout", NULL},
        {"{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\",\"details\":{\"kind\":"
         "\"pods/binding\",\"causes\":null}}",
         OK, 409, false, "Conflict", NULL},
        {"{\"code\":409}", ERR_SYNTAX, 0, false, NULL, NULL},
        {"Too many requests, please try again later.\n", ERR_SYNTAX, 0, false, NULL, NULL},
    };
    struct kube_status s;
    enum errc code = kube_status_read(str_of(cases[_i].json), &arena, &s, NULL);
    ck_assert_int_eq(code, cases[_i].code);
    if (code != OK)
        return;
    ck_assert_uint_eq(s.code, cases[_i].status);
    ck_assert_int_eq(s.too_large, cases[_i].too_large);
    ck_assert_str_is(s.reason, cases[_i].reason);
    ck_assert(str_eq(s.status, str_of(cases[_i].says)));
}

/* An answer of 403 with this body. */
TEST(test_failure_of_the_api_server)
{
    static const struct {
        const char *body;
        bool own;
    } cases[] = {
        {"{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":403}", true},
        {"{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":404}", false},
        {"{\"kind\":\"Status\",\"status\":\"Failure\"}", false},
        {"{\"kind\":\"Status\",\"status\":\"Success\",\"code\":403}", false},
        {"{\"kind\":\"Status\",\"code\":403}", false},
    };
    struct kube_status s;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum errc code = kube_status_read(str_of(cases[i].body), &arena, &s, NULL);
        ck_assert_int_eq(code, OK);
        ck_assert_msg(kube_status_is_failure(&s, 403) == cases[i].own, "%s", cases[i].body);
    }
}

TEST_EACH(test_list_meta, 7)
{
    static const struct {
        const char *json;
        enum errc code;
        const char *next;
    } cases[] = {
        {"{\"resourceVersion\":\"5\"}", OK, NULL},
        {"{\"selfLink\":\"/x\",\"resourceVersion\":\"5\",\"continue\":\"\"}", OK, ""},
        {"{\"continue\":\"a\\u003d\",\"remainingItemCount\":7,\"resourceVersion\":\"5\"}", OK,
         "a="},
        {"{\"continue\":\"a\"}", ERR_SYNTAX, NULL},
        {"{\"resourceVersion\":\"\"}", ERR_SYNTAX, NULL},
        {"null", ERR_SYNTAX, NULL},
        {"[]", ERR_SYNTAX, NULL},
    };
    struct list_meta m;
    enum errc code = list_meta_read(str_of(cases[_i].json), &arena, &m, NULL);
    ck_assert_int_eq(code, cases[_i].code);
    if (code != OK)
        return;
    ck_assert_str_is(m.resource_version, "5");
    if (cases[_i].next != NULL)
        ck_assert_str_is(m.next, cases[_i].next);
    else
        ck_assert_uint_eq(m.next.n, 0);
}

int main(void)
{
    TCase *t = unit_case("watch");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
