/* The calls of a kube_backend: what their answers mean, and what happens without memory. */
#include "kube_rig.h"

#include "base/log.h"

#include <fcntl.h>

static const struct {
    unsigned status;
    const char *body; /* NULL: a Status with this reason for this kind */
    const char *reason;
    const char *kind;
    enum get_result get;
} reads[] = {
    {200, PENDING_P, NULL, NULL, GET_FOUND},
    {200, "{\"kind\":\"Pod\"}", NULL, NULL, GET_FAILED},
    {200, "<html>", NULL, NULL, GET_FAILED},
    {404, NULL, "NotFound", "pods", GET_GONE},
    {404, NULL, "NotFound", "namespaces", GET_FAILED},
    {404, "default backend - 404", NULL, NULL, GET_FAILED},
    {403, NULL, "Forbidden", "pods", GET_FAILED},
    {500, NULL, "NotFound", "pods", GET_FAILED},
};

TEST_EACH(what_a_read_says, COUNT_OF(reads))
{
    lead();
    get_p();
    (void)read_of_p();
    if (reads[_i].body != NULL)
        fake_answer(read_of_p(), reads[_i].status, reads[_i].body);
    else
        say_status(read_of_p(), reads[_i].status, reads[_i].reason, reads[_i].kind);
    ck_assert_uint_eq(k.done, 1);
    ck_assert_int_eq(k.call.get, reads[_i].get);
    ck_assert((k.call.err.code == OK) == (k.call.get == GET_FOUND));
    if (k.call.get == GET_FOUND)
        ck_assert_str_is(k.call.pod.uid, "p");
    rig_close();
}

/* As many containers as etcd's limit lets through: a pod that a list shows can also be read. */
TEST(a_pod_as_large_as_it_can_be)
{
    struct buf json;
    lead();
    buf_init(&json, LIMIT_OBJECT_BYTES);
    buf_put(&json,
            STR("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"p\"},\"spec\":{"
                "\"containers\":["));
    for (unsigned i = 0; i < 30000; i++)
        buf_printf(&json,
                   "{\"name\":\"c%u\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"0\"}}},",
                   i);
    buf_put(&json, STR("{\"name\":\"c\"}]}}"));
    ck_assert(!buf_failed(&json));
    get_p();
    fake_answer(read_of_p(), 200, buf_cstr(&json));
    ck_assert_msg(k.call.get == GET_FOUND, "%s", k.call.err.text);
    ck_assert_uint_eq(k.call.pod.n_containers, 30000);
    buf_done(&json);
    rig_close();
}

/* A result does not contain data of an earlier answer. */
TEST(a_read_that_fails_after_one_that_found)
{
    lead();
    get_p();
    fake_answer(read_of_p(), 200, PENDING_P);
    get_p();
    fake_land(read_of_p(), HTTP_UNKNOWN, 0);
    ck_assert_uint_eq(k.done, 2);
    ck_assert_int_eq(k.call.get, GET_FAILED);
    get_p();
    struct http_call *c = read_of_p();
    c->retry_after_ms = 7000;
    fake_answer(c, 429, "");
    ck_assert_uint_eq(k.call.retry_after_ms, 7000);
    rig_close();
}

static void token_is(const char *token)
{
    FILE *f = fopen(k.token, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(token, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* The token was rotated and a GET gets 401: the next GET has the new token. */
TEST(a_token_that_is_refused_is_read_again)
{
    lead();
    token_is("second");
    get_p();
    ck_assert_str_is(read_of_p()->bearer, "first");
    say_status(read_of_p(), 401, "Unauthorized", "pods");
    ck_assert_int_eq(k.call.get, GET_FAILED);
    ck_assert(k.call.unauthorized);
    get_p();
    ck_assert_str_is(read_of_p()->bearer, "second");
    fake_answer(read_of_p(), 503, "");
    ck_assert(!k.call.unauthorized);
    rig_close();
}

/* The same with a Binding, if the caller asks for it. */
TEST(a_binding_that_is_refused_for_the_token)
{
    lead();
    reserve_p();
    post_p();
    say_status(binding_of_p(), 401, "Unauthorized", "pods");
    posted(POST_UNAUTHORIZED);
    token_is("second");
    k.face->refresh(k.face);
    post_p();
    ck_assert_str_is(binding_of_p()->bearer, "second");
    rig_close();
}

TEST(a_binding_that_is_turned_away_for_a_while)
{
    lead();
    reserve_p();
    post_p();
    struct http_call *c = binding_of_p();
    c->retry_after_ms = 3000;
    fake_answer(c, 429, "");
    posted(POST_THROTTLED);
    ck_assert_uint_eq(k.call.retry_after_ms, 3000);
    k.call.term++;
    post_p();
    posted(POST_REFUSED);
    ck_assert_uint_eq(k.call.retry_after_ms, 0);
    rig_close();
}

/* A GET decides nothing: a Binding in doubt is read back even after the term has ended. */
TEST(a_read_leaves_in_any_term)
{
    lead();
    reserve_p();
    post_p();
    ck_assert(fake_send(binding_of_p()));
    fake_land(binding_of_p(), HTTP_UNKNOWN, 0);
    k.lease_silent = true;
    pass(2 * LEASE_MS);
    ck_assert(!is_ready());
    k.done = 0;
    get_p();
    ck_assert(fake_send(read_of_p()));
    ck_assert_uint_eq(read_of_p()->body.n, 0);
    fake_answer(read_of_p(), 200, BOUND_P);
    ck_assert_int_eq(k.call.get, GET_FOUND);
    cancel_p();
    rig_close();
}

/* An ordinary failure, reported later and not from within the call. */
TEST_EACH(memory_fails_before_a_call, 2)
{
    lead();
    reserve_p();
    for (size_t nth = 1;; nth++) {
        fails(nth);
        _i == 0 ? post_p() : get_p();
        if (!failed())
            break;
        if (k.done == 0) {
            /* A later allocation fails: of the URL, or of the answer. */
            k.face->cancel(&k.call);
            continue;
        }
        ck_assert_uint_eq(k.done, 1);
        ck_assert_int_eq(k.call.err.code, ERR_NOMEM);
        ck_assert(_i == 0 ? k.call.post == POST_NOT_SENT : k.call.get == GET_FAILED);
        k.done = 0;
    }
    k.face->cancel(&k.call);
    cancel_p();
    wanted_and_given();
    rig_close();
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
