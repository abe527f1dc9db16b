/* The ConfigMap with what pods use: when it is written, made, and written again. */
#include "node/usage/usage_post.h"

#include "base/log.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <jansson.h>

#define M(mib) (UINT64_C(mib) << 20)

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct usage_tally tally;
    struct usage_post *post;
    json_t *map; /* NULL: there is none */
    unsigned calls;
    unsigned refuse; /* answers with this status */
    uint64_t used;   /* of the pod, in MiB */
} t;

static void no_over(void *ctx, const struct usage_use *u)
{
    (void)ctx;
    (void)u;
}

static enum errc try_open(struct err *e)
{
    const struct usage_post_settings s = {.loop = t.loop,
                                          .api = t.api,
                                          .node = STR("gpu-7"),
                                          .tally = &t.tally,
                                          .write_ms = 60000,
                                          .round_ms = 10000};
    return usage_post_new(&s, &t.post, e);
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    usage_tally_init(&t.tally);
    ck_assert_ok(try_open(&e), &e);
    t.used = 1000;
}

static void tear_down(void)
{
    fail_alloc_disarm();
    t.post = usage_post_free(t.post);
    usage_tally_done(&t.tally);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
    json_decref(t.map);
}

static void serve(struct http_call *c)
{
    if (c->url.n == 0) { /* no memory for it */
        fake_land(c, HTTP_NOT_SENT, 0);
        return;
    }
    t.calls++;
    if (t.refuse != 0) {
        fake_answer(c, t.refuse, "{\"kind\":\"Status\"}");
        return;
    }
    json_t *body = json_loadb(c->body.p, c->body.n, 0, NULL);
    ck_assert_ptr_nonnull(body);
    if (strcmp(c->method, "POST") == 0) {
        ck_assert(str_ends(c->url, STR("/api/v1/namespaces/kube-system/configmaps")));
        ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(body, "metadata"), "name")),
            "cardpack-usage-gpu-7");
        ck_assert_ptr_null(t.map);
    } else {
        ck_assert_str_is(c->content_type, "application/merge-patch+json");
        ck_assert(str_ends(c->url, STR("/kube-system/configmaps/cardpack-usage-gpu-7")));
        if (t.map == NULL) {
            json_decref(body);
            fake_answer(c, 404, "{\"kind\":\"Status\"}");
            return;
        }
    }
    json_decref(t.map);
    t.map = body;
    fake_answer(c, 200, "{}");
}

/* Rounds as the meter makes them. */
static void rounds(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const struct usage_owner pod = {STR("u-1"), STR("ns"), STR("pod")};
        const struct usage_reading r = {M(9000), M(40960), UINT32_MAX};
        usage_tally_round_begin(&t.tally);
        if (usage_tally_begin(&t.tally, 0, STR("GPU-x")) == OK) {
            usage_tally_process(&t.tally, &pod, t.used << 20);
            usage_tally_end(&t.tally, &r, loop_now_ms(t.loop), no_over, NULL);
        }
        usage_tally_round_end(&t.tally);
        usage_post_weigh(t.post);
        for (unsigned k = 0; k < 1000; k++) {
            fake_turn(t.loop);
            while (!list_is_empty(&fake_calls))
                serve(LIST_FIRST(&fake_calls, struct http_call, link));
            t.loop->clock_ms += 10;
        }
    }
}

/* The pod's figure in the text; -1: there is none. */
static long text_has(void)
{
    struct arena a;
    struct usage_view v;
    struct err e = ERR_INIT;
    const json_t *data = json_object_get(t.map, "data");
    const char *text = json_string_value(json_object_get(data, "usage"));
    if (text == NULL)
        return -1;
    arena_init(&a, 65536);
    ck_assert_ok(usage_read(str_of(text), &a, &v, &e), &e);
    ck_assert_uint_eq(v.n_cards, 1);
    long mib = v.n_pods == 0 ? -1 : (long)v.pods[0].used_mib;
    arena_done(&a);
    return mib;
}

TEST(is_made_and_written)
{
    rounds(1);
    ck_assert_uint_eq(t.calls, 2); /* 404, then it is made */
    ck_assert_int_eq(text_has(), 1000);
    t.used = 1100; /* too little */
    rounds(10);
    ck_assert_uint_eq(t.calls, 2);
    t.used = 2000;
    rounds(1);
    ck_assert_uint_eq(t.calls, 3);
    ck_assert_int_eq(text_has(), 2000);
    ck_assert_uint_eq(usage_post_counts(t.post).written, 2);
    ck_assert_uint_eq(usage_post_counts(t.post).failures, 0);
}

TEST(at_most_every_minute)
{
    for (unsigned i = 0; i < 60; i++) { /* ten minutes, always another figure */
        t.used = i % 2 == 0 ? 1000 : 5000;
        rounds(1);
    }
    ck_assert_uint_ge(t.calls, 10);
    ck_assert_uint_le(t.calls, 12);
}

TEST(at_least_every_five_minutes)
{
    rounds(1);
    rounds(180); /* half an hour without a change */
    ck_assert_uint_ge(t.calls, 2 + 6);
    ck_assert_uint_le(t.calls, 2 + 7);
}

TEST(is_tried_again)
{
    t.refuse = 500;
    rounds(30);
    ck_assert_uint_ge(usage_post_counts(t.post).failures, 5);
    ck_assert_uint_le(t.calls, 30);
    ck_assert_uint_eq(usage_post_counts(t.post).written, 0);
    t.refuse = 0;
    t.used = 7000;
    rounds(6);
    ck_assert_int_eq(text_has(), 7000);
}

/* It was deleted by another program. */
TEST(is_made_again)
{
    rounds(1);
    json_decref(t.map);
    t.map = NULL;
    rounds(31);
    ck_assert_int_eq(text_has(), 1000);
}

static enum errc open_once(void *ctx)
{
    struct err e = ERR_INIT;
    (void)ctx;
    t.post = usage_post_free(t.post);
    return try_open(&e);
}

TEST(without_memory)
{
    ck_assert_uint_ge(fail_alloc_each(open_once, NULL), 2);
    struct err e = ERR_INIT;
    if (t.post == NULL)
        ck_assert_ok(try_open(&e), &e);
    for (size_t nth = 1; nth < 24; nth++) {
        t.used += 1000;
        fail_alloc_arm(FAIL_ONCE, nth);
        rounds(7);
        fail_alloc_disarm();
        rounds(7);
        ck_assert_int_eq(text_has(), (long)t.used);
    }
}

int main(void)
{
    TCase *c = unit_case("usage_post");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
