/*
 * Writes the traffic with the API server. With an embedded cluster only the binds are written: all
 * other numbers would always be 0.
 */
#include "daemon/metrics/metrics.h"
#include "daemon/service.h"

#define MS_DECIMALS 3

static void metrics_kubernetes_write_each(struct metrics_writer *w, const char *name,
                                          const char *help, const char *key,
                                          const char *const *words, const uint64_t *counts,
                                          size_t n)
{
    expo_family(&w->expo, EXPO_COUNTER, name, help);
    for (size_t i = 0; i < n; i++) {
        const struct expo_label label = {key, str_of(words[i])};
        expo_u64(&w->expo, &label, 1, counts[i]);
    }
}

static void metrics_kubernetes_write_number(struct metrics_writer *w, enum expo_type type,
                                            const char *name, const char *help, uint64_t v)
{
    expo_family(&w->expo, type, name, help);
    expo_u64(&w->expo, NULL, 0, v);
}

/* ---- binds ---- */

static void metrics_kubernetes_write_load(struct metrics_writer *w)
{
    struct bind_load load = {.oldest_ms = w->now_ms};
    if (w->service->binder != NULL)
        bind_look(w->service->binder, &load);
    metrics_kubernetes_write_number(w, EXPO_GAUGE, "cardpack_binds_active",
                                    "Binds that have not come to a certain end.", load.ops);
    metrics_kubernetes_write_number(
        w, EXPO_GAUGE, "cardpack_binds_waiting",
        "Of the active ones, those that wait for another bind to their node.", load.waiting);
    metrics_kubernetes_write_number(
        w, EXPO_GAUGE, "cardpack_binds_in_doubt",
        "Of the active ones, those whose Binding may or may not have taken effect.", load.in_doubt);
    metrics_kubernetes_write_number(
        w, EXPO_GAUGE, "cardpack_reservations",
        "Cards that are held for a Binding under way or in doubt, counted by pod.", load.reserved);
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_reservation_oldest_age_seconds",
                "How long the oldest reservation has been there; 0 without one.");
    expo_fixed(&w->expo, NULL, 0, (int64_t)(w->now_ms - load.oldest_ms), MS_DECIMALS);
}

static void metrics_kubernetes_write_binds(struct metrics_writer *w)
{
    static const char *const posts[POST_RESULTS] = {
        [POST_CREATED] = "created",           [POST_REFUSED] = "refused",
        [POST_UNAUTHORIZED] = "unauthorized", [POST_THROTTLED] = "throttled",
        [POST_NOT_SENT] = "not_sent",         [POST_ASSIGNED] = "assigned",
        [POST_OUTDATED] = "outdated",         [POST_UNKNOWN] = "unknown"};
    static const char *const seens[BIND_SEENS] = {
        [SEEN_AS_ASKED] = "as_asked", [SEEN_HERE] = "here", [SEEN_ELSEWHERE] = "elsewhere",
        [SEEN_UNBOUND] = "unbound",   [SEEN_GONE] = "gone", [SEEN_NOTHING] = "failed"};
    const struct bind_counts *c = &w->metrics->binds;
    metrics_kubernetes_write_load(w);
    metrics_kubernetes_write_each(w, "cardpack_bindings_total",
                                  "Bindings that were posted, by what came of each.", "result",
                                  posts, c->posts, POST_RESULTS);
    metrics_kubernetes_write_each(
        w, "cardpack_read_backs_total",
        "Pods that were read because a Binding's outcome was not known, by what was seen.", "seen",
        seens, c->reads, BIND_SEENS);
    metrics_kubernetes_write_number(
        w, EXPO_COUNTER, "cardpack_bind_lookups_total",
        "Pods that were read because the watch had not shown them when they were to be "
        "bound.",
        c->lookups);
    metrics_kubernetes_write_number(
        w, EXPO_COUNTER, "cardpack_bind_doubts_total",
        "Binds that had to be answered while their outcome was not known.", c->doubts);
    expo_family(&w->expo, EXPO_HISTOGRAM, "cardpack_binding_duration_seconds",
                "From a Binding's posting to the API server's answer, or to none.");
    expo_histogram(&w->expo, NULL, 0, &c->post);
}

/* ---- watches ---- */

struct feed_of {
    const char *kind;
    const struct reflector_counts *counts;
};

#define FEEDS (CACHE_KINDS + 1 + DRA_FEED_KINDS)

/* Those of DRA only once they have brought a list: most clusters have none of its objects. */
struct feeds {
    struct feed_of all[FEEDS];
    size_t n;
};

static void metrics_kubernetes_write_feeds(struct metrics_writer *w, const char *name,
                                           const char *help, const struct feeds *feeds,
                                           uint64_t (*of)(const struct reflector_counts *c))
{
    expo_family(&w->expo, EXPO_COUNTER, name, help);
    for (size_t i = 0; i < feeds->n; i++) {
        const struct expo_label label = {"kind", str_of(feeds->all[i].kind)};
        expo_u64(&w->expo, &label, 1, of(feeds->all[i].counts));
    }
}

static uint64_t metrics_kubernetes_lists_of(const struct reflector_counts *c)
{
    return c->lists;
}

static uint64_t metrics_kubernetes_listed_of(const struct reflector_counts *c)
{
    return c->listed;
}

static uint64_t metrics_kubernetes_list_failures_of(const struct reflector_counts *c)
{
    return c->list_failures;
}

static uint64_t metrics_kubernetes_watches_of(const struct reflector_counts *c)
{
    return c->watches;
}

static uint64_t metrics_kubernetes_watch_failures_of(const struct reflector_counts *c)
{
    return c->watch_failures;
}

static uint64_t metrics_kubernetes_objects_of(const struct reflector_counts *c)
{
    return c->objects;
}

static void metrics_kubernetes_write_events_of(struct metrics_writer *w, const struct feeds *feeds)
{
    static const char *const types[] = {"set", "gone", "bookmark"};
    expo_family(&w->expo, EXPO_COUNTER, "cardpack_watch_events_total",
                "Events that watches brought, by kind of object and what it was.");
    for (size_t i = 0; i < feeds->n; i++) {
        const struct reflector_counts *c = feeds->all[i].counts;
        const uint64_t counts[] = {c->set, c->gone, c->bookmarks};
        for (size_t k = 0; k < COUNT_OF(types); k++) {
            const struct expo_label labels[] = {{"kind", str_of(feeds->all[i].kind)},
                                                {"type", str_of(types[k])}};
            expo_u64(&w->expo, labels, COUNT_OF(labels), counts[k]);
        }
    }
}

static void metrics_kubernetes_write_ages(struct metrics_writer *w, const struct feeds *feeds)
{
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_cache_synced",
                "1: a whole list of the kind has been in since the start.");
    for (size_t i = 0; i < feeds->n; i++) {
        const struct expo_label label = {"kind", str_of(feeds->all[i].kind)};
        expo_u64(&w->expo, &label, 1, feeds->all[i].counts->synced ? 1 : 0);
    }
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_cache_age_seconds",
                "Since the last list, event or bookmark of the kind; bookmarks come about every "
                "minute. Without a series: none came yet.");
    for (size_t i = 0; i < feeds->n; i++) {
        const struct expo_label label = {"kind", str_of(feeds->all[i].kind)};
        uint64_t heard_ms = feeds->all[i].counts->heard_ms;
        if (heard_ms > 0)
            expo_fixed(&w->expo, &label, 1, (int64_t)(w->now_ms - heard_ms), MS_DECIMALS);
    }
}

static void metrics_kubernetes_write_watches(struct metrics_writer *w)
{
    const struct metrics *m = w->metrics;
    struct feeds all = {
        .all = {{"nodes", &m->kube.feeds[CACHE_NODES]},
                {"pods", &m->kube.feeds[CACHE_PODS]},
                {"configmaps", &m->kube.feeds[CACHE_HEALTH]},
                {"poddisruptionbudgets", &m->budgets}},
        .n = 4,
    };
    const struct feeds *feeds = &all;
    for (size_t i = 0; i < DRA_FEED_KINDS; i++) {
        const struct reflector_counts *c = &m->kube.dra.feeds[i];
        if (c->synced)
            all.all[all.n++] = (struct feed_of){dra_feed_resource((enum dra_feed_kind)i).p, c};
    }
    metrics_kubernetes_write_feeds(
        w, "cardpack_lists_begun_total",
        "Lists that were asked for; all but the first of a kind are relists.", feeds,
        metrics_kubernetes_lists_of);
    metrics_kubernetes_write_feeds(w, "cardpack_lists_completed_total",
                                   "Lists that were read whole.", feeds,
                                   metrics_kubernetes_listed_of);
    metrics_kubernetes_write_feeds(w, "cardpack_list_failures_total", "Lists that failed.", feeds,
                                   metrics_kubernetes_list_failures_of);
    metrics_kubernetes_write_feeds(w, "cardpack_listed_objects_total",
                                   "Objects that lists brought.", feeds,
                                   metrics_kubernetes_objects_of);
    metrics_kubernetes_write_feeds(
        w, "cardpack_watches_total",
        "Watches that were begun; the server ends each in good order after 5 to 10 minutes.", feeds,
        metrics_kubernetes_watches_of);
    metrics_kubernetes_write_feeds(w, "cardpack_watch_failures_total",
                                   "Watches that did not end in good order.", feeds,
                                   metrics_kubernetes_watch_failures_of);
    metrics_kubernetes_write_events_of(w, feeds);
    metrics_kubernetes_write_ages(w, feeds);
}

static void metrics_kubernetes_write_dra(struct metrics_writer *w)
{
    static const char *const states[DRA_FEED_STATES] = {[DRA_FEED_WAITS] = "waits",
                                                        [DRA_FEED_SYNCED] = "synced",
                                                        [DRA_FEED_ABSENT] = "absent",
                                                        [DRA_FEED_DENIED] = "denied"};
    const struct dra_feed_counts *c = &w->metrics->kube.dra;
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_dra_feed",
                "1, with what came of reading a resource of DRA; denied: cardpack has no right to "
                "list and watch it. Without a series it is not read.");
    for (size_t i = 0; i < DRA_FEED_KINDS; i++) {
        const struct expo_label labels[] = {{"resource", dra_feed_resource((enum dra_feed_kind)i)},
                                            {"state", str_of(states[c->states[i]])}};
        if (c->feeds[i].lists > 0)
            expo_u64(&w->expo, labels, COUNT_OF(labels), 1);
    }
}

/* ---- evictions ---- */

static void metrics_kubernetes_write_evictions(struct metrics_writer *w)
{
    static const char *const answers[EVICT_ANSWERS] = {
        [EVICT_GRANTED] = "granted", [EVICT_GONE] = "gone",         [EVICT_REFUSED] = "refused",
        [EVICT_DENIED] = "denied",   [EVICT_UNSERVED] = "unserved", [EVICT_FAILED] = "failed"};
    static const char *const ends[EVICT_ENDS] = {
        [EVICT_END_BOUND] = "bound",         [EVICT_END_NEEDLESS] = "needless",
        [EVICT_END_POD_GONE] = "pod_gone",   [EVICT_END_NO_SET] = "no_set",
        [EVICT_END_PROTECTED] = "protected", [EVICT_END_DENIED] = "denied",
        [EVICT_END_UNSERVED] = "unserved",   [EVICT_END_FAILED] = "failed",
        [EVICT_END_NO_ROOM] = "no_room",     [EVICT_END_LINGERS] = "lingers",
        [EVICT_END_TIME] = "time",           [EVICT_END_NOT_LEADING] = "not_leading",
        [EVICT_END_STOPPED] = "stopped"};
    const struct evictor_counts *c = &w->metrics->evictions;
    metrics_kubernetes_write_each(w, "cardpack_evictions_total",
                                  "Evictions that were asked for, by the answer.", "result",
                                  answers, c->evictions, EVICT_ANSWERS);
    metrics_kubernetes_write_number(w, EXPO_COUNTER, "cardpack_rescues_begun_total",
                                    "Pods that were to be helped to a card by evictions.",
                                    c->begun);
    metrics_kubernetes_write_each(w, "cardpack_rescues_total",
                                  "How helping a pod to a card by evictions ended.", "end", ends,
                                  c->ends, EVICT_ENDS);
}

static void metrics_kubernetes_write_pod_events(struct metrics_writer *w)
{
    static const char *const words[] = {"written", "dropped", "lost"};
    const struct events_counts *c = &w->metrics->events;
    const uint64_t counts[] = {c->written, c->dropped, c->lost};
    metrics_kubernetes_write_each(
        w, "cardpack_pod_events_total",
        "Events on pods: written, dropped by us as too many or the same again, or lost to "
        "the API server.",
        "outcome", words, counts, COUNT_OF(words));
    metrics_kubernetes_write_number(w, EXPO_GAUGE, "cardpack_pod_events_waiting",
                                    "Events on pods that have not been written yet.", c->waiting);
}

void metrics_write_kubernetes(struct metrics_writer *w)
{
    const struct metrics *m = w->metrics;
    metrics_kubernetes_write_binds(w);
    if (!m->kubernetes)
        return;
    metrics_kubernetes_write_number(w, EXPO_COUNTER, "cardpack_leader_terms_total",
                                    "How often this replica has begun to decide.",
                                    m->kube.leadership.terms);
    metrics_kubernetes_write_number(w, EXPO_COUNTER, "cardpack_leader_losses_total",
                                    "How often it has ceased to lead, for whatever reason.",
                                    m->kube.leadership.losses);
    metrics_kubernetes_write_watches(w);
    metrics_kubernetes_write_dra(w);
    metrics_kubernetes_write_pod_events(w);
    metrics_kubernetes_write_evictions(w);
}
