/*
 * What each answer to a Binding proves. The messages are the API server's own; answers without a
 * Status come from load balancers and proxies before it.
 */
#include "daemon/backend/proof.h"

#include "io/limit.h"
#include "unit.h"

#include <stdio.h>

#define STATUS(code, reason, message, more)                                              \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\"," \
    "\"message\":\"" message "\",\"reason\":\"" reason "\"," more "\"code\":" #code "}\n"
#define CONFLICT(message)                                                                        \
    STATUS(409, "Conflict", "Operation cannot be fulfilled on pods/binding \\\"p\\\": " message, \
           "\"details\":{\"name\":\"p\",\"kind\":\"pods/binding\"},")
#define PODS   "\"details\":{\"name\":\"p\",\"kind\":\"pods\"},"
#define DENIED "admission webhook \\\"w\\\" denied the request: "
#define HTML   "<html><body>a load balancer</body></html>"

static const struct {
    enum http_outcome outcome;
    unsigned status;
    const char *body;
    enum post_result result;
} answers[] = {
    /* No answer. */
    {HTTP_NOT_SENT, 0, "", POST_NOT_SENT},
    {HTTP_UNKNOWN, 0, "", POST_UNKNOWN},
    {HTTP_UNKNOWN, 0, STATUS(403, "Forbidden", "cut in its end", ""), POST_UNKNOWN},
    {HTTP_REFUSED, 0, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 201, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":201}", POST_CREATED},
    {HTTP_ANSWERED, 200, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":200}", POST_UNKNOWN},
    {HTTP_ANSWERED, 202, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 302, HTML, POST_UNKNOWN},

    /* The API server refuses. */
    {HTTP_ANSWERED, 400, STATUS(400, "BadRequest", "the name does not match", ""), POST_REFUSED},
    {HTTP_ANSWERED, 403, STATUS(403, "Forbidden", "cannot create pods/binding", PODS),
     POST_REFUSED},
    {HTTP_ANSWERED, 422, STATUS(422, "Invalid", "dryRun: bad", PODS), POST_REFUSED},
    {HTTP_ANSWERED, 404, STATUS(404, "NotFound", "pods \\\"p\\\" not found", PODS), POST_REFUSED},
    {HTTP_ANSWERED, 401, STATUS(401, "Unauthorized", "Unauthorized", ""), POST_UNAUTHORIZED},
    /* A webhook gives its own reason, or none. */
    {HTTP_ANSWERED, 400, STATUS(400, "", DENIED "no", ""), POST_REFUSED},
    {HTTP_ANSWERED, 400, STATUS(400, "Forbidden", DENIED "no", ""), POST_REFUSED},
    {HTTP_ANSWERED, 403, STATUS(403, "our policy 7", DENIED "no", ""), POST_REFUSED},

    /* The sender of this answer is unknown. */
    {HTTP_ANSWERED, 400, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 400, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 401, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 401, "Unauthorized", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 404, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 404, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 404, "404 page not found\n", POST_UNKNOWN},
    {HTTP_ANSWERED, 422, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 422, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 405, STATUS(405, "MethodNotAllowed", "no", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 407, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 408, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 413, HTML, POST_UNKNOWN},
    /* Similar to a Status, but not one. */
    {HTTP_ANSWERED, 403, "{\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}",
     POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "{\"kind\":\"Pod\",\"status\":\"Failure\",\"code\":403}", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "{\"kind\":\"Status\",\"status\":\"Success\",\"code\":403}", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "{\"kind\":\"Status\",\"code\":403}", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "{\"kind\":\"Status\",\"status\":\"Failure\"}", POST_UNKNOWN},
    {HTTP_ANSWERED, 403, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":403", POST_UNKNOWN},
    /* A Status that does not match the answer's code, or one for a request that may go on. */
    {HTTP_ANSWERED, 403, STATUS(504, "Timeout", "not complete", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 422, STATUS(403, "Forbidden", "no", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 401, STATUS(503, "ServiceUnavailable", "no", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 404, STATUS(500, "NotFound", "no", PODS), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, STATUS(500, "Conflict", "p is being deleted", PODS), POST_UNKNOWN},
    {HTTP_ANSWERED, 400, STATUS(400, "Timeout", "not complete", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 403, STATUS(403, "ServerTimeout", "try again", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 403, STATUS(403, "InternalError", "a webhook failed", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 422, STATUS(422, "ServiceUnavailable", "no", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 400, STATUS(400, "Unknown", "something", ""), POST_UNKNOWN},
    /* Not found: the path, or the namespace. */
    {HTTP_ANSWERED, 404, STATUS(404, "NotFound", "the server could not find it", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 404, STATUS(404, "NotFound", "no", "\"details\":{\"kind\":\"namespaces\"},"),
     POST_UNKNOWN},
    {HTTP_ANSWERED, 404, STATUS(404, "Gone", "no", PODS), POST_UNKNOWN},

    /* The API server's own limits: plain text, sent before the request is read. */
    {HTTP_ANSWERED, 429, "Too many requests, please try again later.\n", POST_THROTTLED},
    {HTTP_ANSWERED, 429, STATUS(429, "TooManyRequests", "wait", ""), POST_THROTTLED},

    /* A Conflict may come from any failure within the transaction. */
    {HTTP_ANSWERED, 409, CONFLICT("pod p is already assigned to node \\\"n\\\""), POST_ASSIGNED},
    {HTTP_ANSWERED, 409, CONFLICT("pod p is being deleted, cannot be assigned to a host"),
     POST_REFUSED},
    {HTTP_ANSWERED, 409, CONFLICT("pod p has non-empty .spec.schedulingGates"), POST_REFUSED},
    {HTTP_ANSWERED, 409,
     STATUS(409, "Conflict", "on pods: Precondition failed: UID in precondition: a, in meta: b",
            PODS),
     POST_REFUSED},
    {HTTP_ANSWERED, 409,
     STATUS(409, "Conflict",
            "on pods: Precondition failed: ResourceVersion in precondition: 1, in meta: 2", PODS),
     POST_OUTDATED},
    {HTTP_ANSWERED, 409, CONFLICT("etcdserver: request timed out"), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, CONFLICT("etcdserver: leader changed"), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, CONFLICT("context deadline exceeded"), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, CONFLICT("the object has been modified"), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, CONFLICT(""), POST_UNKNOWN},
    {HTTP_ANSWERED, 409, "", POST_UNKNOWN},
    {HTTP_ANSWERED, 409, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 409, "pod p is already assigned to node n", POST_UNKNOWN},
    {HTTP_ANSWERED, 409, "<html>the backend is being deleted</html>", POST_UNKNOWN},
    {HTTP_ANSWERED, 409, "Precondition failed: UID", POST_UNKNOWN},

    {HTTP_ANSWERED, 500, STATUS(500, "InternalError", "etcdserver: request timed out", ""),
     POST_UNKNOWN},
    {HTTP_ANSWERED, 502, HTML, POST_UNKNOWN},
    {HTTP_ANSWERED, 503, STATUS(503, "ServiceUnavailable", "no", ""), POST_UNKNOWN},
    {HTTP_ANSWERED, 504, STATUS(504, "Timeout", "not complete within requested timeout 34s", ""),
     POST_UNKNOWN},
};

static void answer(struct http_call *http, const char *body)
{
    buf_init(&http->reply, LIMIT_REPLY_BYTES);
    buf_put(&http->reply, str_of(body));
}

TEST_EACH(what_an_answer_proves, COUNT_OF(answers))
{
    struct arena arena;
    struct http_call http = {.outcome = answers[_i].outcome, .status = answers[_i].status};
    arena_init(&arena, LIMIT_REPLY_BYTES);
    answer(&http, answers[_i].body);
    enum post_result result = proof_of_post(&http, &arena);
    ck_assert_msg(result == answers[_i].result, "%u %s: %d, expected %d", answers[_i].status,
                  answers[_i].body, (int)result, (int)answers[_i].result);
    buf_done(&http.reply);
    arena_done(&arena);
}

/* Which answers to a GET release a card. */
static const struct {
    unsigned status;
    const char *body;
    bool gone;
} reads[] = {
    {404, STATUS(404, "NotFound", "pods \\\"p\\\" not found", PODS), true},
    {404, STATUS(500, "NotFound", "pods \\\"p\\\" not found", PODS), false},
    {200, STATUS(404, "NotFound", "pods \\\"p\\\" not found", PODS), false},
    {404, STATUS(404, "NotFound", "no", "\"details\":{\"kind\":\"namespaces\"},"), false},
    {404, STATUS(404, "NotFound", "no", ""), false},
    {404, STATUS(404, "", "no", PODS), false},
    {404, HTML, false},
    {404, "", false},
};

TEST_EACH(which_pod_is_gone, COUNT_OF(reads))
{
    struct arena arena;
    struct http_call http = {.outcome = HTTP_ANSWERED, .status = reads[_i].status};
    arena_init(&arena, LIMIT_REPLY_BYTES);
    answer(&http, reads[_i].body);
    ck_assert_msg(proof_no_pod(&http, &arena) == reads[_i].gone, "%s", reads[_i].body);
    buf_done(&http.reply);
    arena_done(&arena);
}

/* A body of any length without memory to read it: nothing is proved. */
TEST(without_memory_nothing_is_proved)
{
    struct arena arena;
    struct http_call http = {.outcome = HTTP_ANSWERED, .status = 403};
    arena_init(&arena, 0);
    answer(&http, STATUS(403, "Forb\\u0069dden", "escaped", ""));
    ck_assert_int_eq(proof_of_post(&http, &arena), POST_UNKNOWN);
    buf_done(&http.reply);
    arena_done(&arena);
}
