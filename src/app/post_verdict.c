#include "post_verdict.h"

#include "watch.h"

static bool says(struct str message, const char *part)
{
    return message.n > 0 && memmem(message.p, message.n, part, strlen(part)) != NULL;
}

/*
 * Contract kubernetes 2.3. A 409 is the API server's word for every failure within the transaction,
 * etcd's time-outs included; only these three say that nothing was and nothing will be written.
 */
static bool conflict_is_final(struct str message)
{
    return says(message, "Precondition failed: UID") || says(message, "is being deleted") ||
           says(message, "schedulingGates");
}

/* A load balancer has its own 404, which says nothing of the pod; and a card is freed on this. */
bool pod_not_found(const struct http_call *http, struct arena *arena)
{
    struct kube_status status;
    return kube_status_read(buf_str(&http->reply), arena, &status, NULL) == OK &&
           str_eq(status.reason, STR("NotFound")) && str_eq(status.details_kind, STR("pods"));
}

enum post_result post_verdict(const struct http_call *http, struct arena *arena)
{
    if (http->outcome == HTTP_NOT_SENT)
        return POST_NOT_SENT;
    if (http->outcome != HTTP_ANSWERED)
        return POST_UNKNOWN;
    switch (http->status) {
    case 201:
        return POST_CREATED;
    case 400:
    case 403:
    case 422:
        return POST_REFUSED;
    case 404:
        return pod_not_found(http, arena) ? POST_REFUSED : POST_UNKNOWN;
    case 401:
        return POST_UNAUTHORIZED;
    case 429:
        return POST_THROTTLED;
    case 409: {
        struct str message = kube_status_message(buf_str(&http->reply), arena);
        if (says(message, "is already assigned to node"))
            return POST_ASSIGNED;
        return conflict_is_final(message) ? POST_REFUSED : POST_UNKNOWN;
    }
    default:
        return POST_UNKNOWN;
    }
}
