/*
 * Only the API server's own answer proves that a Binding changed nothing: a Status with "Failure"
 * and the code of the answer. A load balancer or a proxy answers with the same codes, and may have
 * forwarded the Binding before. Without a Status the outcome is unknown, and a read follows.
 *
 * The same holds for 401: the API server sends it with a Status. An unknown outcome costs one read,
 * and a 401 to that read makes cardpack read the credentials again. 429 is an exception: the API
 * server's limits answer in plain text before they read the request, and so does any other server
 * that limits requests.
 *
 * The reason in a Status is not compared with the code, because an admission webhook chooses both.
 * Only the reasons of a request that was not processed to its end leave the outcome open.
 */
#include "daemon/backend/proof.h"

static bool proof_says(struct str message, const char *part)
{
    return message.n > 0 && memmem(message.p, message.n, part, strlen(part)) != NULL;
}

static bool proof_leaves_open(struct str reason)
{
    static const char *const reasons[] = {"Timeout", "ServerTimeout", "InternalError",
                                          "ServiceUnavailable", "Unknown"};
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        if (str_eq(reason, str_of(reasons[i])))
            return true;
    }
    return false;
}

bool proof_refused(const struct http_call *http, struct arena *arena, struct kube_status *ret)
{
    return kube_status_read(buf_str(&http->reply), arena, ret, NULL) == OK &&
           kube_status_is_failure(ret, http->status) && !proof_leaves_open(ret->reason);
}

/*
 * The API server answers 409 for every failure within the transaction, time-outs of etcd included.
 * Only these three messages say that nothing was and nothing will be written.
 */
static bool proof_conflict_is_final(struct str message)
{
    return proof_says(message, "Precondition failed: UID") ||
           proof_says(message, "is being deleted") || proof_says(message, "schedulingGates");
}

bool proof_status_no_pod(const struct kube_status *s)
{
    return s->code == 404 && str_eq(s->reason, STR("NotFound")) &&
           str_eq(s->details_kind, STR("pods"));
}

/*
 * The Status is required because a card is released on this: a 404 of a load balancer says nothing
 * about the pod.
 */
bool proof_no_pod(const struct http_call *http, struct arena *arena)
{
    struct kube_status s;
    return proof_refused(http, arena, &s) && proof_status_no_pod(&s);
}

enum post_result proof_of_post(const struct http_call *http, struct arena *arena)
{
    struct kube_status s;
    if (http->outcome == HTTP_NOT_SENT)
        return POST_NOT_SENT;
    if (http->outcome != HTTP_ANSWERED)
        return POST_UNKNOWN;
    if (http->status == 201)
        return POST_CREATED;
    if (http->status == 429)
        return POST_THROTTLED;
    if (!proof_refused(http, arena, &s))
        return POST_UNKNOWN;
    switch (http->status) {
    case 400:
    case 403:
    case 422:
        return POST_REFUSED;
    case 401:
        return POST_UNAUTHORIZED;
    case 404:
        return proof_status_no_pod(&s) ? POST_REFUSED : POST_UNKNOWN;
    case 409:
        if (proof_says(s.message, "is already assigned to node"))
            return POST_ASSIGNED;
        if (proof_says(s.message, "Precondition failed: ResourceVersion"))
            return POST_OUTDATED;
        return proof_conflict_is_final(s.message) ? POST_REFUSED : POST_UNKNOWN;
    default:
        return POST_UNKNOWN;
    }
}
