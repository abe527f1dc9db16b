/*
 * The settings of cardpack-node: flags, and for some of them an environment variable, which a flag
 * overrides. A wrong value of a variable is an error even if a flag overrides it.
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"

enum settings_action {
    SETTINGS_RUN,
    SETTINGS_HELP,
    SETTINGS_VERSION,
};

enum settings_log_format {
    SETTINGS_LOG_AUTO, /* logfmt on a terminal, else JSON */
    SETTINGS_LOG_LOGFMT,
    SETTINGS_LOG_JSON,
};

enum settings_isolation {
    SETTINGS_ISOLATION_AUTO, /* the strongest that the node has */
    SETTINGS_ISOLATION_NONE,
    SETTINGS_ISOLATION_DRIVER_LIMITS,
    SETTINGS_ISOLATION_MPS,
};

enum settings_late {
    SETTINGS_LATE_AUTO, /* if the kubelet and the runtime are known to have CDI */
    SETTINGS_LATE_ON,
    SETTINGS_LATE_OFF,
};

/* Absent: not set. The strings end in NUL and must outlive the settings. */
struct settings_env {
    struct str node_name;  /* NODE_NAME */
    struct str kubeconfig; /* KUBECONFIG */
    struct str log_level;  /* LOG_LEVEL */
    struct str disable;    /* DP_DISABLE_HEALTHCHECKS */
    struct str enable;     /* DP_ENABLE_HEALTHCHECKS */
};

/* Strings are views of the arguments, of the environment or of literals, and end in NUL. */
struct settings {
    enum settings_action action;
    struct str node_name;
    struct str kubeconfig; /* empty: in the cluster, or ~/.kube/config */
    struct str kubelet_dir;
    struct str state;       /* empty: indices are not kept */
    struct str nvml;        /* empty: libnvidia-ml.so.1 */
    uint64_t unit_bytes;    /* of one device; at least 1 MiB */
    uint64_t reserve_bytes; /* of each card, that no pod gets */
    uint64_t card_bytes;    /* of a card whose memory NVML does not report; 0: it is not offered */
    struct str cards;       /* "all", or indices and UUIDs with commas */
    struct str listen;      /* an address, without the port; empty: no port */
    uint16_t port;
    uint64_t cooldown_ms;
    bool device_nodes;
    uint64_t usage_interval_ms; /* 0: what pods use is not measured */
    uint64_t usage_write_ms;
    enum settings_isolation isolation;
    struct str cgroup_root; /* where this process sees the host's cgroups of version 2 */
    struct str mps_dir;     /* has a pipe directory for each card */
    enum settings_late late;
    struct str cdi_dir;
    enum log_level log_level;
    enum settings_log_format log_format;
    struct str disable; /* as in the environment; absent: not set */
    struct str enable;
};

/* The error names the flag or the variable, its value, and what is allowed. With --help and
 * --version only the action is set. */
enum errc settings_parse(int argc, char *const argv[], const struct settings_env *env,
                         struct settings *ret, struct err *reterr) _must_use_;

void settings_usage(struct buf *out);

/* Whether the setting `cards` has this card. */
bool settings_has_card(const struct settings *s, uint32_t index, struct str uuid);
