/*
 * Writes the process, its configuration, and whether it decides. The names without our prefix are
 * the standard ones of Prometheus client libraries, which common dashboards use.
 */
#include "base/log.h"
#include "daemon/metrics/metrics.h"
#include "daemon/reload.h"
#include "daemon/service.h"
#include "io/process.h"

#define US_DECIMALS 6
#define NS_DECIMALS 9
#define NS_A_SECOND UINT64_C(1000000000)

static void metrics_process_write_one(struct metrics_writer *w, enum expo_type type,
                                      const char *name, const char *help, int64_t v,
                                      unsigned decimals)
{
    expo_family(&w->expo, type, name, help);
    expo_fixed(&w->expo, NULL, 0, v, decimals);
}

/* Leaves out a number that the operating system does not give. */
static void metrics_process_write_known(struct metrics_writer *w, const char *name,
                                        const char *help, int64_t v)
{
    if (v >= 0)
        metrics_process_write_one(w, EXPO_GAUGE, name, help, v, 0);
}

static void metrics_process_write_usage(struct metrics_writer *w)
{
    struct process_usage u;
    process_usage_read(&u);
    if (u.cpu_us >= 0)
        metrics_process_write_one(w, EXPO_COUNTER, "process_cpu_seconds_total",
                                  "Total user and system CPU time spent in seconds.", u.cpu_us,
                                  US_DECIMALS);
    metrics_process_write_known(w, "process_resident_memory_bytes",
                                "Resident memory size in bytes.", u.resident_bytes);
    metrics_process_write_known(w, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
                                u.virtual_bytes);
    metrics_process_write_known(w, "process_open_fds", "Number of open file descriptors.",
                                u.open_fds);
    metrics_process_write_known(w, "process_max_fds", "Maximum number of open file descriptors.",
                                u.max_fds);
    metrics_process_write_one(w, EXPO_GAUGE, "process_start_time_seconds",
                              "Start time of the process since unix epoch in seconds.",
                              (int64_t)w->metrics->start_ns, NS_DECIMALS);
    metrics_process_write_one(w, EXPO_COUNTER, "cardpack_log_lines_dropped_total",
                              "Lines of the log that its reader did not take in time.",
                              (int64_t)log_dropped(), 0);
}

static void metrics_process_write_reloads(struct metrics_writer *w, const struct reload_counts *c)
{
    const struct {
        const char *result;
        uint64_t n;
    } rows[] = {{"taken", c->taken}, {"unchanged", c->unchanged}, {"refused", c->refused}};

    expo_family(&w->expo, EXPO_COUNTER, "cardpack_config_reloads_total",
                "How often the configuration was read again, by result.");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct expo_label result = {"result", str_of(rows[i].result)};
        expo_u64(&w->expo, &result, 1, rows[i].n);
    }
    metrics_process_write_one(
        w, EXPO_GAUGE, "cardpack_config_settings_waiting",
        "Settings of the configuration that want a restart before they are in force.", c->waiting,
        0);
}

/* The configuration at the start counts as the first valid one. */
static void metrics_process_write_config(struct metrics_writer *w)
{
    const struct metrics *m = w->metrics;
    const struct reload_counts none = {.taken = 0};
    const struct reload_counts *c = w->service->reloads == NULL ? &none : w->service->reloads;
    metrics_process_write_one(
        w, EXPO_GAUGE, "cardpack_config_last_reload_successful",
        "1: the configuration that was read last is in force; 0: it can't be, and the one "
        "before stays.",
        c->bad ? 0 : 1, 0);
    metrics_process_write_one(w, EXPO_GAUGE,
                              "cardpack_config_last_reload_success_timestamp_seconds",
                              "When a configuration was taken last, in Unix time.",
                              (int64_t)(MAX_OF(c->taken_ns, m->start_ns) / NS_A_SECOND), 0);
    metrics_process_write_reloads(w, c);
    if (m->certificate_expires_s != NULL)
        metrics_process_write_one(w, EXPO_GAUGE,
                                  "cardpack_tls_certificate_expiry_timestamp_seconds",
                                  "When the certificate of the main port expires, in Unix time.",
                                  *m->certificate_expires_s, 0);
}

void metrics_write_process(struct metrics_writer *w)
{
    struct service *s = w->service;
    struct str missing;
    const struct expo_label version = {"version", STR(CARDPACK_VERSION)};
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_build_info", "Which cardpack this is.");
    expo_u64(&w->expo, &version, 1, 1);
    metrics_process_write_usage(w);
    metrics_process_write_config(w);
    metrics_process_write_one(
        w, EXPO_GAUGE, "cardpack_ready",
        "1: ready to answer kube-scheduler, as /readyz/leader; 0: not yet, not any more, or "
        "another replica leads.",
        !s->draining && service_ready(s, &missing) ? 1 : 0, 0);
    metrics_process_write_one(w, EXPO_GAUGE, "cardpack_leader",
                              "1: this replica decides; 0: another one does, or none.",
                              s->backend->term(s->backend) > 0 ? 1 : 0, 0);
}
