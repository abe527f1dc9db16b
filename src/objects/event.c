/*
 * Writes Events. Times are whole seconds, as metav1.Time prints them. eventTime is not set: with it
 * the API server would apply the rules of events.k8s.io, which has no count.
 */
#include "objects/event.h"

#include "objects/lease.h"

#define COMBINED STR("(combined from similar events): ")

/* "." and 16 hexadecimal digits. */
#define SUFFIX_BYTES ((size_t)17)

static bool event_is_within(struct str s, size_t max)
{
    return s.n > 0 && s.n <= max;
}

struct str event_namespace(const struct event_subject *subject)
{
    return subject->namespace.p == NULL ? STR("default") : subject->namespace;
}

bool event_fits(const struct event_subject *pod, struct str reason)
{
    return event_is_within(event_namespace(pod), EVENT_NAMESPACE_BYTES) &&
           event_is_within(pod->name, EVENT_NAME_BYTES) &&
           event_is_within(pod->uid, EVENT_UID_BYTES) &&
           event_is_within(reason, EVENT_REASON_BYTES);
}

static bool event_is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void event_put_name(struct buf *out, struct str pod, uint64_t first_ns)
{
    if (pod.n > EVENT_NAME_BYTES - SUFFIX_BYTES) {
        pod.n = EVENT_NAME_BYTES - SUFFIX_BYTES;
        /* A label of a DNS name must end in a letter or digit. */
        while (pod.n > 0 && !event_is_alphanumeric(pod.p[pod.n - 1]))
            pod.n--;
    }
    buf_put(out, pod);
    buf_printf(out, ".%llx", (unsigned long long)first_ns);
}

void event_put_message(struct buf *out, struct str message, bool combined)
{
    char bytes[EVENT_MESSAGE_BYTES + 1];
    struct buf text = BUF_ON(bytes);
    buf_put(&text, combined ? COMBINED : STR(""));
    buf_put_printable(&text, message);
    buf_put(out, buf_str(&text));
}

/* RFC 3339 in whole seconds. */
static void event_put_time(struct jwrite *w, struct str key, uint64_t unix_ns)
{
    char text[MICRO_TIME_BYTES];
    size_t n = sizeof("2006-01-02T15:04:05") - 1;
    (void)micro_time_print(unix_ns, text);
    text[n] = 'Z';
    jwrite_str_at(w, key, (struct str){text, n + 1});
}

static void event_put_metadata(struct jwrite *w, const struct kube_event *e)
{
    char bytes[EVENT_NAME_BYTES + SUFFIX_BYTES];
    struct buf name = BUF_ON(bytes);
    event_put_name(&name, e->pod.name, e->first_ns);
    jwrite_object_at(w, STR("metadata"));
    jwrite_str_at(w, STR("name"), buf_str(&name));
    jwrite_str_at(w, STR("namespace"), event_namespace(&e->pod));
    jwrite_object_end(w);
}

static void event_put_subject(struct jwrite *w, const struct event_subject *pod)
{
    bool node = pod->namespace.p == NULL;
    jwrite_object_at(w, STR("involvedObject"));
    jwrite_str_at(w, STR("apiVersion"), STR("v1"));
    jwrite_str_at(w, STR("kind"), node ? STR("Node") : STR("Pod"));
    if (!node)
        jwrite_str_at(w, STR("namespace"), pod->namespace);
    jwrite_str_at(w, STR("name"), pod->name);
    jwrite_str_at(w, STR("uid"), pod->uid);
    jwrite_object_end(w);
}

void event_write(struct jwrite *w, const struct kube_event *e)
{
    struct str component = e->component.p == NULL ? EVENT_COMPONENT : e->component;
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("apiVersion"), STR("v1"));
    jwrite_str_at(w, STR("kind"), STR("Event"));
    event_put_metadata(w, e);
    event_put_subject(w, &e->pod);
    jwrite_str_at(w, STR("type"), e->level == EVENT_WARNING ? STR("Warning") : STR("Normal"));
    jwrite_str_at(w, STR("reason"), e->reason);
    jwrite_str_at(w, STR("message"), e->message);
    jwrite_object_at(w, STR("source"));
    jwrite_str_at(w, STR("component"), component);
    jwrite_object_end(w);
    jwrite_str_at(w, STR("reportingComponent"), component);
    event_put_time(w, STR("firstTimestamp"), e->first_ns);
    event_put_time(w, STR("lastTimestamp"), e->last_ns);
    jwrite_u64_at(w, STR("count"), MIN_OF(e->count, (uint64_t)INT32_MAX));
    jwrite_object_end(w);
}

void event_write_repeat(struct jwrite *w, const struct kube_event *e)
{
    jwrite_object_begin(w);
    jwrite_u64_at(w, STR("count"), MIN_OF(e->count, (uint64_t)INT32_MAX));
    event_put_time(w, STR("lastTimestamp"), e->last_ns);
    jwrite_str_at(w, STR("message"), e->message);
    jwrite_object_end(w);
}
