/* Writes the Events on the pod and on its victims, and the log lines of a rescue. */
#include "base/log.h"
#include "daemon/evict/evict_rescue.h"
#include "report/reason.h"

#define TEXT_BYTES ((size_t)1024)

/* A text buffer on the stack; text beyond its size is cut off. */
#define TEXT(name)                 \
    char name##_bytes[TEXT_BYTES]; \
    struct buf name = BUF_ON(name##_bytes)

static void evict_tell_post(struct evictor *e, enum event_level level, const char *reason,
                            struct buf *text)
{
    events_post(e->set.events, &e->rescue.pod, level, str_of(reason), buf_str(text));
}

static void evict_tell_put_place(struct buf *out, const struct evict_plan *p)
{
    for (uint32_t i = 0; i < p->there.n; i++) {
        uint32_t card = p->there.grants[i].card;
        bool again = false;
        for (uint32_t j = 0; j < i; j++)
            again = again || p->there.grants[j].card == card;
        if (!again)
            buf_printf(out, "%s%u", i == 0 ? "card " : ", ", card);
    }
    buf_printf(out, " of node %.*s", STR_ARG(p->node));
}

static void evict_tell_put_victims(struct buf *out, const struct evict_plan *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        buf_printf(out, "%s%.*s/%.*s (priority %d)", i == 0 ? "" : ", ",
                   STR_ARG(p->victims[i].namespace), STR_ARG(p->victims[i].name),
                   p->victims[i].priority);
}

void evict_tell_begin(struct evictor *e)
{
    const struct rescue *s = &e->rescue;
    TEXT(victims);
    TEXT(text);
    evict_tell_put_victims(&victims, &s->plan);
    buf_put(&text, STR("makes room for "));
    reason_request(&text, s->request, 0);
    buf_put(&text, STR(" on "));
    evict_tell_put_place(&text, &s->plan);
    buf_printf(&text, ", where the node has it and no card: evicts %u of lower priority than %d: ",
               s->plan.n, s->request->priority);
    buf_put(&text, str_head(buf_str(&victims), TEXT_BYTES - 1 - MIN_OF(text.n, TEXT_BYTES - 1)));
    evict_tell_post(e, EVENT_NORMAL, "EvictingForCards", &text);
    log_info("evicting for cards", kv_str("namespace", s->pod.namespace),
             kv_str("pod", s->pod.name), kv_int("priority", s->request->priority),
             kv_str("node", s->plan.node), kv_uint("card", s->plan.there.grants[0].card),
             kv_uint("victims", s->plan.n), kv_str("names", buf_str(&victims)));
}

void evict_tell_victim(struct evictor *e, const struct evict_victim *v)
{
    const struct rescue *s = &e->rescue;
    struct event_subject victim = {.namespace = v->namespace, .name = v->name, .uid = v->uid};
    TEXT(text);
    buf_printf(&text, "evicted for pod %.*s/%.*s of priority %d, which needs ",
               STR_ARG(s->pod.namespace), STR_ARG(s->pod.name), s->request->priority);
    evict_tell_put_place(&text, &s->plan);
    events_post(e->set.events, &victim, EVENT_NORMAL, STR("EvictedForCards"), buf_str(&text));
    log_info("evicted for cards", kv_str("namespace", v->namespace), kv_str("pod", v->name),
             kv_int("priority", v->priority), kv_str("for_namespace", s->pod.namespace),
             kv_str("for_pod", s->pod.name));
}

void evict_tell_spared(const struct evictor *e, const struct evict_victim *v)
{
    log_info("an eviction was refused, and the pod is spared for a while",
             kv_str("namespace", v->namespace), kv_str("pod", v->name),
             kv_cstr("error", e->rescue.why.text));
}

void evict_tell_room(struct evictor *e)
{
    const struct rescue *s = &e->rescue;
    TEXT(text);
    evict_tell_put_place(&text, &s->plan);
    buf_printf(&text, " has room, and keeps it for this pod for %llu s at most",
               (unsigned long long)(e->set.keep_ms / 1000));
    evict_tell_post(e, EVENT_NORMAL, "CardsKept", &text);
    log_info("cards are kept", kv_str("namespace", s->pod.namespace), kv_str("pod", s->pod.name),
             kv_str("node", s->plan.node));
}

static const char *evict_tell_why(enum evict_end end)
{
    switch (end) {
    case EVICT_END_BOUND:
        return "it is bound";
    case EVICT_END_NEEDLESS:
        return "there is room without evictions";
    case EVICT_END_POD_GONE:
        return "the pod is gone, or is not what it was";
    case EVICT_END_NO_SET:
        return "no pod that may be evicted is in its way";
    case EVICT_END_PROTECTED:
        return "the pods in its way may not be evicted";
    case EVICT_END_DENIED:
        return "cardpack has no right to evict pods";
    case EVICT_END_UNSERVED:
        return "the API server does not know evictions";
    case EVICT_END_FAILED:
        return "no answer of the API server itself to five calls in a row";
    case EVICT_END_NO_ROOM:
        return "no room can be kept";
    case EVICT_END_LINGERS:
        return "an evicted pod does not end";
    case EVICT_END_TIME:
        return "it was not bound in time";
    case EVICT_END_NOT_LEADING:
        return "this replica does not lead any more";
    case EVICT_END_STOPPED:
        return "evictions for cards have been ended, or cardpack has";
    }
    return "";
}

/* Ends that need attention: pods were evicted without success, or an administrator can fix the
 * cause. */
static bool evict_tell_is_failure(const struct evictor *e, enum evict_end end)
{
    return end == EVICT_END_PROTECTED || end == EVICT_END_DENIED || end == EVICT_END_UNSERVED ||
           end == EVICT_END_FAILED || end == EVICT_END_NO_ROOM || end == EVICT_END_LINGERS ||
           end == EVICT_END_TIME ||
           ((end == EVICT_END_NOT_LEADING || end == EVICT_END_STOPPED || end == EVICT_END_NO_SET) &&
            e->rescue.machine.evicted > 0);
}

/* Whether the rescue's last error caused the end. Otherwise it belongs to an earlier call, and a
 * later call succeeded. */
static bool evict_tell_is_by_error(const struct rescue *s, enum evict_end end)
{
    return s->why.code != OK && end != EVICT_END_LINGERS && end != EVICT_END_TIME &&
           end != EVICT_END_NOT_LEADING && end != EVICT_END_STOPPED;
}

void evict_tell_end(struct evictor *e, enum evict_end end)
{
    const struct rescue *s = &e->rescue;
    bool released = s->machine.evicted > 0;
    bool known = end == EVICT_END_DENIED && e->denied;
    TEXT(text);
    if (!evict_tell_is_failure(e, end)) {
        log_debug("eviction for cards is over", kv_str("namespace", s->pod.namespace),
                  kv_str("pod", s->pod.name), kv_cstr("because", evict_tell_why(end)),
                  kv_uint("evicted", s->machine.evicted));
        return;
    }
    buf_put(&text, str_of(evict_tell_why(end)));
    if (evict_tell_is_by_error(s, end))
        buf_printf(&text, ": %s", s->why.text);
    evict_tell_post(e, EVENT_WARNING, released ? "CardsReleased" : "EvictionForCardsFailed", &text);
    e->denied = e->denied || end == EVICT_END_DENIED;
    if (!known)
        log_warn("no card for a pod by evictions", kv_str("namespace", s->pod.namespace),
                 kv_str("pod", s->pod.name), kv_str("because", buf_str(&text)),
                 kv_uint("evicted", s->machine.evicted));
}
