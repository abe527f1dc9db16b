/* bind.h with one pod and a backend whose answers the test gives, call by call. */
#include "daemon/bind/bind.h"

#include "cache_rig.h"
#include "on_loop.h"

#include <stdio.h>

enum asked {
    ASKED_NOTHING,
    ASKED_POST,
    ASKED_GET,
};

static struct bind_fixture {
    struct rig rig;
    struct loop *loop;
    struct backend backend;
    struct binder *binder;
    struct backend_call *call; /* the call under way */
    enum asked asked;
    struct binding binding; /* of the last POST; its texts belong to the bind */
    struct arena arena;
    struct buf answer;
    struct http_request request;
    bool answered;
    unsigned told; /* number of events */
    bool tells;    /* the setting placed-events */
    enum event_level level;
    char reason[64];
    bool leftovers; /* the pod that a GET returns has annotations of another Binding */
    char text[512];
} fixture;

static void on_post(struct backend *b, struct backend_call *c, const struct binding *binding)
{
    (void)b;
    fixture.call = c;
    fixture.asked = ASKED_POST;
    fixture.binding = *binding;
}

static void on_get(struct backend *b, struct backend_call *c, struct str namespace, struct str name)
{
    (void)b;
    (void)namespace;
    (void)name;
    fixture.call = c;
    fixture.asked = ASKED_GET;
}

static void on_cancel(struct backend_call *c)
{
    (void)c;
    fixture.asked = ASKED_NOTHING;
}

static bool is_ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    *ret_missing = STR("");
    return true;
}

static uint64_t the_term(struct backend *b)
{
    (void)b;
    return 1;
}

static void nothing(struct backend *b)
{
    (void)b;
}

/* Replaces http_server.h's function. */
void http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    (void)content_type;
    ck_assert(r == &fixture.request && !fixture.answered);
    ck_assert_uint_eq(status, 200);
    fixture.answered = true;
}

/* Replaces events.h's function. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message)
{
    ck_assert_ptr_null(ev);
    ck_assert_str_is(pod->namespace, "ns");
    ck_assert_str_is(pod->name, "p");
    ck_assert_str_is(pod->uid, "p");
    fixture.level = level;
    (void)snprintf(fixture.reason, sizeof(fixture.reason), "%.*s", STR_ARG(reason));
    (void)snprintf(fixture.text, sizeof(fixture.text), "%.*s", STR_ARG(message));
    fixture.told++;
}

static void bind_fixture_open(void)
{
    struct err e = ERR_INIT;
    rig_init(&fixture.rig);
    fixture.loop = loop_make();
    fixture.backend = (struct backend){.post = on_post,
                                       .get = on_get,
                                       .cancel = on_cancel,
                                       .ready = is_ready,
                                       .term = the_term,
                                       .asked = nothing,
                                       .refresh = nothing};
    struct bind_settings s = {.loop = fixture.loop,
                              .cache = &fixture.rig.cache,
                              .backend = &fixture.backend,
                              .placed_events = fixture.tells,
                              .timeout_ms = 25000};
    ck_assert_ok(bind_new(&s, &fixture.binder, &e), &e);
    node_set(&fixture.rig, "n", "16", "1", NULL);
    arena_init(&fixture.arena, 1 << 16);
    buf_init(&fixture.answer, 1 << 16);
}

static void bind_fixture_close(void)
{
    run_turns(fixture.loop, 1);
    ck_assert_uint_eq(bind_active(fixture.binder), 0);
    fixture.binder = bind_free(fixture.binder);
    arena_done(&fixture.arena);
    buf_done(&fixture.answer);
    rig_done(&fixture.rig);
    fixture.loop = loop_free(fixture.loop);
}

static void bind_pod(void)
{
    fixture.request = (struct http_request){
        .method = STR("POST"),
        .body = STR("{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"p\",\"Node\":\"n\"}"),
        .arena = &fixture.arena,
        .answer = &fixture.answer,
    };
    bind_handle(fixture.binder, &fixture.request);
}

static void post_says(enum post_result result)
{
    ck_assert_int_eq(fixture.asked, ASKED_POST);
    fixture.asked = ASKED_NOTHING;
    fixture.call->post = result;
    fixture.call->done(fixture.call);
}

/* Answers the GET: the pod is bound to "n" on card 0; node NULL: not bound. */
static void get_says(const char *uid, const char *node, const char *phase)
{
    static const struct container_view container = {.name = STR("c"), .mem = STR("8")};
    ck_assert_int_eq(fixture.asked, ASKED_GET);
    fixture.asked = ASKED_NOTHING;
    fixture.call->get = GET_FOUND;
    fixture.call->pod =
        (struct pod_view){.uid = str_of(uid),
                          .namespace = STR("ns"),
                          .name = STR("p"),
                          .node = str_of(node),
                          .phase = str_of(phase),
                          .idx = str_of(node == NULL ? NULL : "0"),
                          .former = {fixture.leftovers, fixture.leftovers, fixture.leftovers},
                          .containers = &container,
                          .n_containers = 1};
    fixture.call->done(fixture.call);
}

static int64_t used(void)
{
    return cache_node(&fixture.rig.cache, STR("n"))->used;
}

static void succeeds(void)
{
    ck_assert(fixture.answered);
    ck_assert_str_is(buf_str(&fixture.answer), "{\"Error\":\"\"}");
    ck_assert_uint_eq(fixture.told, 0);
}

/* The scheduler's error and the event have the same text; there is exactly one event. */
static void fails(const char *text)
{
    ck_assert(fixture.answered);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&fixture.answer), text));
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_int_eq(fixture.level, EVENT_WARNING);
    ck_assert_str_eq(fixture.reason, "FailedBinding");
    ck_assert_ptr_nonnull(strstr(fixture.text, text));
}

static void fails_untold(const char *text)
{
    ck_assert(fixture.answered);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&fixture.answer), text));
    ck_assert_uint_eq(fixture.told, 0);
}

/* The pod was made from a manifest of a bound pod, whose annotations name another card. */
TEST_EACH(annotations_of_another_binding_are_replaced, 2)
{
    bool known = _i == 1; /* the watch has shown the pod; else a GET finds it */
    bind_fixture_open();
    fixture.leftovers = true;
    if (known)
        pod_set(&fixture.rig, .uid = "p", .leftovers = true);
    bind_pod();
    if (!known)
        get_says("p", NULL, "Pending");
    ck_assert_int_eq(fixture.asked, ASKED_POST);
    ck_assert_str_is(fixture.binding.idx, "0");
    ck_assert_str_is(fixture.binding.allocation, "{\"0\":{\"0\":8}}");
    ck_assert_str_is(fixture.binding.cores, "{}");
    ck_assert(fixture.binding.vacated);
    post_says(POST_CREATED);
    if (!known)
        get_says("p", "n", "Pending");
    succeeds();
    bind_fixture_close();
}

/* For a pod without an allocation cardpack writes none: its one card is in the index. */
TEST(one_card_needs_no_allocation)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "p");
    bind_pod();
    ck_assert_uint_eq(fixture.binding.allocation.n + fixture.binding.cores.n, 0);
    ck_assert(!fixture.binding.vacated);
    post_says(POST_CREATED);
    bind_fixture_close();
}

TEST(a_pod_that_the_watch_shows_takes_one_write)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "p");
    bind_pod();
    post_says(POST_CREATED);
    succeeds();
    ck_assert_int_eq(fixture.asked, ASKED_NOTHING);
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

/* The watch has shown the pod's end, and will not show the pod again. */
TEST(a_pod_that_has_ended_holds_no_card)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "p");
    bind_pod();
    pod_gone(&fixture.rig, "p");
    post_says(POST_CREATED);
    get_says("p", "n", "Succeeded");
    succeeds();
    ck_assert_int_eq(used(), 0);
    ck_assert_ptr_null(cache_pod(&fixture.rig.cache, STR("p")));
    bind_fixture_close();
}

/* The pod was looked up, deleted before the reservation, and created again: an API server before
 * 1.27 bound the new pod of that name. */
TEST(a_pod_that_the_watch_never_shows_is_read_back)
{
    bind_fixture_open();
    bind_pod();
    get_says("p", NULL, "Pending");
    post_says(POST_CREATED);
    get_says("q", "n", "Pending");
    ck_assert(fixture.answered);
    ck_assert_int_eq(used(), 0);
    bind_fixture_close();
}

TEST(what_was_looked_up_and_is_there_is_confirmed)
{
    bind_fixture_open();
    bind_pod();
    get_says("p", NULL, "Pending");
    post_says(POST_CREATED);
    get_says("p", "n", "Pending");
    succeeds();
    ck_assert_int_eq(used(), 8);
    bind_fixture_close();
}

TEST(a_pod_that_is_bound_there_already_succeeds)
{
    bind_fixture_open();
    bind_pod();
    get_says("p", "n", "Pending");
    succeeds();
    bind_fixture_close();
}

TEST(a_pod_without_room_is_told)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "other", .mem = "12", .node = "n", .idx = "0");
    pod_set(&fixture.rig, .uid = "p");
    bind_pod();
    fails("card 0: 4 of 16 free");
    bind_fixture_close();
}

TEST(a_pod_that_is_bound_elsewhere_is_told)
{
    bind_fixture_open();
    node_set(&fixture.rig, "m", "16", "1", NULL);
    pod_set(&fixture.rig, .uid = "p", .node = "m", .idx = "0");
    bind_pod();
    fails("is bound to node");
    bind_fixture_close();
}

TEST(a_pod_that_was_looked_up_is_told)
{
    bind_fixture_open();
    bind_pod();
    get_says("p", "n", "Succeeded");
    fails("the pod has ended");
    bind_fixture_close();
}

TEST(a_binding_that_is_refused_is_told)
{
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "p");
    bind_pod();
    (void)err_set(&fixture.call->err, ERR_DENIED, "a webhook says no");
    post_says(POST_REFUSED);
    get_says("p", NULL, "Pending");
    fails("a webhook says no");
    bind_fixture_close();
}

/* The pod is gone, or the name is now another pod's: no event. */
TEST(a_pod_that_is_not_there_is_not_told)
{
    bind_fixture_open();
    bind_pod();
    get_says("q", NULL, "Pending");
    fails_untold("it's not equal with expected p");
    bind_fixture_close();
}

static void is_told_where(const char *text)
{
    bind_pod();
    post_says(POST_CREATED);
    ck_assert(fixture.answered);
    ck_assert_str_is(buf_str(&fixture.answer), "{\"Error\":\"\"}");
    ck_assert_uint_eq(fixture.told, 1);
    ck_assert_int_eq(fixture.level, EVENT_NORMAL);
    ck_assert_str_eq(fixture.reason, "Placed");
    ck_assert_str_eq(fixture.text, text);
}

TEST(a_bound_pod_is_told_its_card)
{
    fixture.tells = true;
    bind_fixture_open();
    pod_set(&fixture.rig, .uid = "other", .mem = "3", .node = "n", .idx = "0");
    pod_set(&fixture.rig, .uid = "p");
    is_told_where("Placed on node n: 8 of 16 on card 0");
    bind_fixture_close();
}

TEST(a_bound_pod_is_told_all_its_cards)
{
    static const struct container_view container = {.name = STR("c"), .mem = STR("8")};
    struct cache_event e = {.type = CACHE_POD_SET,
                            .pod = {.uid = STR("p"),
                                    .namespace = STR("ns"),
                                    .name = STR("p"),
                                    .count_label = STR("2"),
                                    .containers = &container,
                                    .n_containers = 1}};
    fixture.tells = true;
    bind_fixture_open();
    node_set(&fixture.rig, "n", "48", "3", NULL);
    ck_assert_int_eq(rig_apply(&fixture.rig, &e), OK);
    is_told_where("Placed on node n: 4 of 16 on card 0, 4 of 16 on card 1");
    bind_fixture_close();
}

TEST(a_pod_that_may_not_be_there_is_not_told)
{
    bind_fixture_open();
    bind_pod();
    ck_assert_int_eq(fixture.asked, ASKED_GET);
    (void)err_set(&fixture.call->err, ERR_UNAVAILABLE, "no answer");
    fixture.call->get = GET_FAILED;
    fixture.call->done(fixture.call);
    fails_untold("no answer");
    bind_fixture_close();
}
