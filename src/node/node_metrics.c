/* Writes /metrics of cardpack-node. */
#include "io/process.h"
#include "node/node_program.h"
#include "node/usage/usage_metrics.h"
#include "report/expo.h"

#define US_DECIMALS 6
#define NS_DECIMALS 9

static void node_metrics_one(struct expo *x, enum expo_type type, const char *name,
                             const char *help, uint64_t v)
{
    expo_family(x, type, name, help);
    expo_u64(x, NULL, 0, v);
}

struct node_row {
    const char *label;
    uint64_t v;
};

static void node_metrics_rows(struct expo *x, const char *key, const struct node_row *rows,
                              size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct expo_label l = {key, str_of(rows[i].label)};
        expo_u64(x, &l, 1, rows[i].v);
    }
}

static void node_metrics_cards(struct expo *x, const struct node_program *n)
{
    uint64_t units = 0;
    expo_family(x, EXPO_GAUGE, "cardpack_node_cards",
                "Cards of the node by health, as they are announced.");
    node_metrics_rows(x, "health",
                      (const struct node_row[]){{"healthy", n->levels[GPU_HEALTHY]},
                                                {"needs-reset", n->levels[GPU_WARNED]},
                                                {"unhealthy", n->levels[GPU_UNHEALTHY]}},
                      3);
    size_t healthy = 0;
    for (size_t i = 0; i < n->offer.n; i++) {
        units += (uint64_t)n->offer.items[i].units;
        healthy += n->offer.items[i].healthy ? 1 : 0;
    }
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_left_out_cards",
                     "Cards and slices of NVIDIA's library that are not offered.", n->left_out);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_unheard_cards",
                     "Cards of which the driver reports no XIDs.", n->unheard);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_offered_cards",
                     "Cards that the kubelet is offered as healthy.", healthy);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_offered_units",
                     "Units of aliyun.com/gpu-mem of all offered cards.", units);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_offers_total",
                     "How often the offer to the kubelet has changed.", n->offers);
}

static void node_metrics_pods(struct expo *x, const struct node_program *n)
{
    const struct allot_counts a = allot_counts(n->allot);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_registered",
                     "1 while the kubelet reads the devices.", plugin_is_registered(n->plugin));
    expo_family(x, EXPO_COUNTER, "cardpack_node_allocations_total",
                "Answers to Allocate by outcome.");
    node_metrics_rows(x, "outcome",
                      (const struct node_row[]){{"allocated", a.allocated}, {"refused", a.refused}},
                      2);
    expo_family(x, EXPO_COUNTER, "cardpack_node_starts_total",
                "Answers to PreStartContainer by outcome.");
    node_metrics_rows(x, "outcome",
                      (const struct node_row[]){{"allowed", a.started}, {"held", a.held}}, 2);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_late_binding",
                     "1 if containers get their cards when they start, by CDI specs.", n->late);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_exchanged_total",
                     "Pods whose annotations were set to the cards that their containers have.",
                     a.exchanged);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_pod_patches_total",
                     "PATCHes of pods that were sent.", a.patches);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_pod_patch_failures_total",
                     "PATCHes of pods that failed.", a.patch_failures);
}

static void node_metrics_lister(struct expo *x, const struct node_program *n)
{
    const struct lister_counts c = lister_counts(n->lister);
    expo_family(x, EXPO_COUNTER, "cardpack_node_kubelet_lists_total",
                "Requests for the kubelet's list of devices by outcome.");
    node_metrics_rows(x, "outcome",
                      (const struct node_row[]){{"answered", c.answers}, {"failed", c.failures}},
                      2);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_compared_containers",
                     "Containers whose devices the kubelet has listed; 0 if it does not list them.",
                     c.compared);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_differing_containers",
                     "Containers whose devices, by the kubelet's list, are not those of their "
                     "annotations.",
                     c.differences);
}

static void node_metrics_gpu(struct expo *x, const struct node_program *n)
{
    const struct gpu_watch_state s = gpu_watch_state(n->gpu);
    expo_family(x, EXPO_GAUGE, "cardpack_node_driver",
                "1 for the state that NVIDIA's library and driver are in.");
    node_metrics_rows(x, "state",
                      (const struct node_row[]){{"starting", s.phase == GPU_WATCH_STARTING},
                                                {"running", s.phase == GPU_WATCH_RUNNING},
                                                {"no-library", s.phase == GPU_WATCH_NO_LIBRARY},
                                                {"no-driver", s.phase == GPU_WATCH_NO_DRIVER},
                                                {"hangs", s.phase == GPU_WATCH_HANGS}},
                      5);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_xids_total",
                     "XIDs that the driver has reported, ignored ones included.", s.xids);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_polls_total", "Polls of all cards.", s.polls);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_state_file_faulty",
                     "1 while the file with the cards' indices can't be written.",
                     s.state_fault.n > 0);
}

static void node_metrics_limits(struct expo *x, const struct node_program *n)
{
    const struct limits_counts c = limits_counts(n->limits);
    enum isolation i = n->enforce.label;
    expo_family(x, EXPO_GAUGE, "cardpack_node_isolation", "1 for what the node enforces.");
    node_metrics_rows(x, "kind",
                      (const struct node_row[]){{"none", i == ISOLATION_NONE},
                                                {"driver-limits", i == ISOLATION_DRIVER_LIMITS},
                                                {"mps", i == ISOLATION_MPS},
                                                {"mig", i == ISOLATION_MIG}},
                      4);
    expo_family(x, EXPO_GAUGE, "cardpack_node_limits",
                "Memory limits of running containers, one for each of their cards, by what the "
                "driver reads back.");
    node_metrics_rows(
        x, "state", (const struct node_row[]){{"enforced", c.enforced}, {"missing", c.missing}}, 2);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_limits_missing_total",
                     "How often a memory limit did not read back.", c.lost);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_limits_set_late_total",
                     "Memory limits that were absent, and that cardpack-node has set.", c.ours);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_limits_unwatched_total",
                     "Memory limits that could not be watched: no memory, or too many.",
                     c.left_out);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_processes_outside_mps",
                     "Processes of containers that use a card past MPS.",
                     mps_counts(n->mps).outside);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_overriding_pods",
                     "Pods whose spec sets a variable of the limits by itself.",
                     n->overrides.pods.n);
}

static void node_metrics_cluster(struct expo *x, const struct node_program *n)
{
    const struct announce_counts *c = announce_counts(n->announce);
    expo_family(x, EXPO_COUNTER, "cardpack_node_announced_total",
                "Objects written to the API server.");
    node_metrics_rows(x, "object",
                      (const struct node_row[]){{"configmap", c->maps}, {"node", c->nodes}}, 2);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_announce_failures_total",
                     "Requests to announce cards that failed.", c->failures);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_drifts_total",
                     "How often the node was not as it had been announced.", c->drifts);
    node_metrics_one(x, EXPO_GAUGE, "cardpack_node_pods_synced",
                     "1 if the last list of the node's pods was complete.",
                     pod_watch_synced(n->pods));
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_pods_unreadable_total",
                     "Pods that could not be read.", pod_watch_unreadable(n->pods));
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_containers_left_out_total",
                     "Pods and running containers that are not known: no memory, or too many.",
                     n->containers.left_out);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_events_lost_total",
                     "Events that the API server did not take.",
                     n->event_counts.lost + n->event_counts.dropped);
}

static void node_metrics_process(struct expo *x, const struct node_program *n)
{
    struct process_usage u;
    const struct expo_label version = {"version", STR(CARDPACK_VERSION)};
    process_usage_read(&u);
    expo_family(x, EXPO_GAUGE, "cardpack_node_build_info", "1, with the version.");
    expo_u64(x, &version, 1, 1);
    if (u.cpu_us >= 0) {
        expo_family(x, EXPO_COUNTER, "process_cpu_seconds_total",
                    "Total user and system CPU time spent in seconds.");
        expo_fixed(x, NULL, 0, u.cpu_us, US_DECIMALS);
    }
    if (u.resident_bytes >= 0)
        node_metrics_one(x, EXPO_GAUGE, "process_resident_memory_bytes",
                         "Resident memory size in bytes.", (uint64_t)u.resident_bytes);
    expo_family(x, EXPO_GAUGE, "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.");
    expo_fixed(x, NULL, 0, (int64_t)n->start_ns, NS_DECIMALS);
    node_metrics_one(x, EXPO_COUNTER, "cardpack_node_log_lines_dropped_total",
                     "Lines of the log that its reader did not take in time.", log_dropped());
}

void node_metrics_write(const struct node_program *n, struct buf *out)
{
    struct expo x;
    expo_init(&x, out);
    node_metrics_cards(&x, n);
    node_metrics_pods(&x, n);
    node_metrics_lister(&x, n);
    node_metrics_gpu(&x, n);
    node_metrics_limits(&x, n);
    node_metrics_cluster(&x, n);
    if (n->usage != NULL)
        usage_metrics_write(&x, n->usage);
    node_metrics_process(&x, n);
}
