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

static struct site {
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
    unsigned told;  /* number of events */
    bool leftovers; /* the pod that a GET returns has annotations of another Binding */
    char text[512];
} site;

static void on_post(struct backend *b, struct backend_call *c, const struct binding *binding)
{
    (void)b;
    site.call = c;
    site.asked = ASKED_POST;
    site.binding = *binding;
}

static void on_get(struct backend *b, struct backend_call *c, struct str namespace, struct str name)
{
    (void)b;
    (void)namespace;
    (void)name;
    site.call = c;
    site.asked = ASKED_GET;
}

static void on_cancel(struct backend_call *c)
{
    (void)c;
    site.asked = ASKED_NOTHING;
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
    ck_assert(r == &site.request && !site.answered);
    ck_assert_uint_eq(status, 200);
    site.answered = true;
}

/* Replaces events.h's function. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message)
{
    ck_assert_ptr_null(ev);
    ck_assert_str_is(pod->namespace, "ns");
    ck_assert_str_is(pod->name, "p");
    ck_assert_str_is(pod->uid, "p");
    ck_assert_int_eq(level, EVENT_WARNING);
    ck_assert_str_is(reason, "FailedBinding");
    (void)snprintf(site.text, sizeof(site.text), "%.*s", STR_ARG(message));
    site.told++;
}

static void site_open(void)
{
    struct err e = ERR_INIT;
    rig_init(&site.rig);
    site.loop = loop_make();
    site.backend = (struct backend){.post = on_post,
                                    .get = on_get,
                                    .cancel = on_cancel,
                                    .ready = is_ready,
                                    .term = the_term,
                                    .asked = nothing,
                                    .refresh = nothing};
    struct binder_settings s = {
        .loop = site.loop, .cache = &site.rig.cache, .backend = &site.backend, .timeout_ms = 25000};
    ck_assert_ok(binder_new(&s, &site.binder, &e), &e);
    node_set(&site.rig, "n", "16", "1", NULL);
    arena_init(&site.arena, 1 << 16);
    buf_init(&site.answer, 1 << 16);
}

static void site_close(void)
{
    run_turns(site.loop, 1);
    ck_assert_uint_eq(binder_active(site.binder), 0);
    site.binder = binder_free(site.binder);
    arena_done(&site.arena);
    buf_done(&site.answer);
    rig_done(&site.rig);
    site.loop = loop_free(site.loop);
}

static void bind_pod(void)
{
    site.request = (struct http_request){
        .method = STR("POST"),
        .body = STR("{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"p\",\"Node\":\"n\"}"),
        .arena = &site.arena,
        .answer = &site.answer,
    };
    binder_handle(site.binder, &site.request);
}

static void post_says(enum post_result result)
{
    ck_assert_int_eq(site.asked, ASKED_POST);
    site.asked = ASKED_NOTHING;
    site.call->post = result;
    site.call->done(site.call);
}

/* Answers the GET: the pod is bound to "n" on card 0; node NULL: not bound. */
static void get_says(const char *uid, const char *node, const char *phase)
{
    static const struct container_view container = {.name = STR("c"), .mem = STR("8")};
    ck_assert_int_eq(site.asked, ASKED_GET);
    site.asked = ASKED_NOTHING;
    site.call->get = GET_FOUND;
    site.call->pod = (struct pod_view){.uid = str_of(uid),
                                       .namespace = STR("ns"),
                                       .name = STR("p"),
                                       .node = str_of(node),
                                       .phase = str_of(phase),
                                       .idx = str_of(node == NULL ? NULL : "0"),
                                       .said_allocation = site.leftovers,
                                       .said_cores = site.leftovers,
                                       .containers = &container,
                                       .n_containers = 1};
    site.call->done(site.call);
}

static int64_t used(void)
{
    return cache_node(&site.rig.cache, STR("n"))->used;
}

static void succeeds(void)
{
    ck_assert(site.answered);
    ck_assert_str_is(buf_str(&site.answer), "{\"Error\":\"\"}");
    ck_assert_uint_eq(site.told, 0);
}

/* The scheduler's error and the event have the same text; there is exactly one event. */
static void fails(const char *text)
{
    ck_assert(site.answered);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&site.answer), text));
    ck_assert_uint_eq(site.told, 1);
    ck_assert_ptr_nonnull(strstr(site.text, text));
}

static void fails_untold(const char *text)
{
    ck_assert(site.answered);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&site.answer), text));
    ck_assert_uint_eq(site.told, 0);
}

/* The pod was made from a manifest of a bound pod, whose annotations name another card. */
START_TEST(annotations_of_another_binding_are_replaced)
{
    bool known = _i == 1; /* the watch has shown the pod; else a GET finds it */
    site_open();
    site.leftovers = true;
    if (known)
        pod_set(&site.rig, .uid = "p", .leftovers = true);
    bind_pod();
    if (!known)
        get_says("p", NULL, "Pending");
    ck_assert_int_eq(site.asked, ASKED_POST);
    ck_assert_str_is(site.binding.idx, "0");
    ck_assert_str_is(site.binding.allocation, "{\"0\":{\"0\":8}}");
    ck_assert_str_is(site.binding.cores, "{}");
    post_says(POST_CREATED);
    if (!known)
        get_says("p", "n", "Pending");
    succeeds();
    site_close();
}

END_TEST

/* For a pod without an allocation cardpack writes none: its one card is in the index. */
START_TEST(one_card_needs_no_allocation)
{
    site_open();
    pod_set(&site.rig, .uid = "p");
    bind_pod();
    ck_assert_uint_eq(site.binding.allocation.n + site.binding.cores.n, 0);
    post_says(POST_CREATED);
    site_close();
}

END_TEST

START_TEST(a_pod_that_the_watch_shows_takes_one_write)
{
    site_open();
    pod_set(&site.rig, .uid = "p");
    bind_pod();
    post_says(POST_CREATED);
    succeeds();
    ck_assert_int_eq(site.asked, ASKED_NOTHING);
    ck_assert_int_eq(used(), 8);
    site_close();
}

END_TEST

/* The watch has shown the pod's end, and will not show the pod again. */
START_TEST(a_pod_that_has_ended_holds_no_card)
{
    site_open();
    pod_set(&site.rig, .uid = "p");
    bind_pod();
    pod_gone(&site.rig, "p");
    post_says(POST_CREATED);
    get_says("p", "n", "Succeeded");
    succeeds();
    ck_assert_int_eq(used(), 0);
    ck_assert_ptr_null(cache_pod(&site.rig.cache, STR("p")));
    site_close();
}

END_TEST

/* The pod was looked up, deleted before the reservation, and created again: an API server before
 * 1.27 bound the new pod of that name. */
START_TEST(a_pod_that_the_watch_never_shows_is_read_back)
{
    site_open();
    bind_pod();
    get_says("p", NULL, "Pending");
    post_says(POST_CREATED);
    get_says("q", "n", "Pending");
    ck_assert(site.answered);
    ck_assert_int_eq(used(), 0);
    site_close();
}

END_TEST

START_TEST(what_was_looked_up_and_is_there_is_confirmed)
{
    site_open();
    bind_pod();
    get_says("p", NULL, "Pending");
    post_says(POST_CREATED);
    get_says("p", "n", "Pending");
    succeeds();
    ck_assert_int_eq(used(), 8);
    site_close();
}

END_TEST

START_TEST(a_pod_that_is_bound_there_already_succeeds)
{
    site_open();
    bind_pod();
    get_says("p", "n", "Pending");
    succeeds();
    site_close();
}

END_TEST

START_TEST(a_pod_without_room_is_told)
{
    site_open();
    pod_set(&site.rig, .uid = "other", .mem = "12", .node = "n", .idx = "0");
    pod_set(&site.rig, .uid = "p");
    bind_pod();
    fails("card 0: 4 of 16 free");
    site_close();
}

END_TEST

START_TEST(a_pod_that_is_bound_elsewhere_is_told)
{
    site_open();
    node_set(&site.rig, "m", "16", "1", NULL);
    pod_set(&site.rig, .uid = "p", .node = "m", .idx = "0");
    bind_pod();
    fails("is bound to node");
    site_close();
}

END_TEST

START_TEST(a_pod_that_was_looked_up_is_told)
{
    site_open();
    bind_pod();
    get_says("p", "n", "Succeeded");
    fails("the pod has ended");
    site_close();
}

END_TEST

START_TEST(a_binding_that_is_refused_is_told)
{
    site_open();
    pod_set(&site.rig, .uid = "p");
    bind_pod();
    (void)err_set(&site.call->err, ERR_DENIED, "a webhook says no");
    post_says(POST_REFUSED);
    get_says("p", NULL, "Pending");
    fails("a webhook says no");
    site_close();
}

END_TEST

/* The pod is gone, or the name is now another pod's: no event. */
START_TEST(a_pod_that_is_not_there_is_not_told)
{
    site_open();
    bind_pod();
    get_says("q", NULL, "Pending");
    fails_untold("it's not equal with expected p");
    site_close();
}

END_TEST

START_TEST(a_pod_that_may_not_be_there_is_not_told)
{
    site_open();
    bind_pod();
    ck_assert_int_eq(site.asked, ASKED_GET);
    (void)err_set(&site.call->err, ERR_UNAVAILABLE, "no answer");
    site.call->get = GET_FAILED;
    site.call->done(site.call);
    fails_untold("no answer");
    site_close();
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("bind");
    TCase *tc = tcase_create("bind");
    tcase_add_test(tc, a_pod_that_the_watch_shows_takes_one_write);
    tcase_add_loop_test(tc, annotations_of_another_binding_are_replaced, 0, 2);
    tcase_add_test(tc, one_card_needs_no_allocation);
    tcase_add_test(tc, a_pod_that_has_ended_holds_no_card);
    tcase_add_test(tc, a_pod_that_the_watch_never_shows_is_read_back);
    tcase_add_test(tc, what_was_looked_up_and_is_there_is_confirmed);
    tcase_add_test(tc, a_pod_that_is_bound_there_already_succeeds);
    tcase_add_test(tc, a_pod_without_room_is_told);
    tcase_add_test(tc, a_pod_that_is_bound_elsewhere_is_told);
    tcase_add_test(tc, a_pod_that_was_looked_up_is_told);
    tcase_add_test(tc, a_binding_that_is_refused_is_told);
    tcase_add_test(tc, a_pod_that_is_not_there_is_not_told);
    tcase_add_test(tc, a_pod_that_may_not_be_there_is_not_told);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
