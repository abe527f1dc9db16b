/* Writes the Events, and remembers hashes of those that it has posted. */
#include "daemon/advise.h"

#include "objects/kube.h"

/* Longest part of an annotation's name in a message, in bytes: a name may have 253 and a prefix. */
#define SHOWN ((size_t)128)

/* Whether this was posted for the pod already; from now on it was. */
static bool advise_is_told(struct advise *a, struct str uid, struct str message)
{
    uint64_t hash = siphash13(a->seed, uid) ^ siphash13(a->seed, message);
    uint64_t *slot = &a->sent[hash % COUNT_OF(a->sent)];
    bool sent = *slot == hash;
    *slot = hash;
    return sent;
}

static void advise_post(struct advise *a, struct events *ev, const struct pod_view *pod,
                        struct str reason, struct str message)
{
    const struct event_subject subject = {pod->namespace, pod->name, pod->uid};
    if (!advise_is_told(a, pod->uid, message))
        events_post(ev, &subject, EVENT_WARNING, reason, message);
}

static void advise_of_annotation(struct advise *a, struct events *ev, const struct pod_view *pod)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    struct str shown = str_head(pod->unknown, SHOWN);
    struct str near = kube_near_annotation(pod->unknown);
    buf_printf(&text, "annotation %.*s%s has no effect: cardpack does not know it", STR_ARG(shown),
               shown.n < pod->unknown.n ? "..." : "");
    if (near.p != NULL)
        buf_printf(&text, "; did you mean %.*s?", STR_ARG(near));
    advise_post(a, ev, pod, STR("UnknownAnnotation"), buf_str(&text));
}

void advise_pod(struct advise *a, struct events *ev, const struct pod_view *pod,
                const struct err *bad)
{
    if (pod_view_bound(pod) && pod->fault.n > 0)
        advise_post(a, ev, pod, STR("UnreadablePod"), str_of(bad->text));
    if (pod_view_bound(pod) || pod->deleting || pod_view_terminal(pod))
        return;
    if (bad->code != OK)
        advise_post(a, ev, pod, STR("InvalidRequest"), str_of(bad->text));
    if (pod->unknown.n > 0)
        advise_of_annotation(a, ev, pod);
}
