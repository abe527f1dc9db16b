/*
 * The program's settings. One table has everything about each setting: its type, field, name (flag
 * and key of the file), default, range, environment variable, and help text. When a change of a
 * setting takes effect is in config_table.c (`changes`).
 *
 * A flag has precedence over the environment, the environment over the file, and the file over the
 * default. The last one of a repeated flag counts; a repeated key in the file is an error, and so
 * is an unknown flag or key. Every error names the source and quotes the value:
 *
 *     flag --port: "99999": must be 0 to 65535
 *     environment LOG_LEVEL: "loud": must be debug, info, warn or error
 *     config file "/etc/cardpack.yaml": prot: unknown key, did you mean "port"?
 */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "core/request/policy.h"
#include "core/state/swap.h"
#include "daemon/config/config_value.h"
#include "daemon/limit.h"
#include "io/limit.h"

#define CONFIG_SECOND ((uint64_t)1000)

/* X(type, field, name, default, min, max, environment variable or NULL, help) */
#define CONFIG_ROWS(X)                                                                             \
    X(ADDRESS, listen_address, "listen-address", "127.0.0.1", 0, 0, NULL,                          \
      "address to listen on; 0.0.0.0 or :: for all")                                               \
    X(PORT, port, "port", "39999", 0, 65535, "PORT", "port to listen on; 0 for any free one")      \
    X(BOOL, allow_plain_http, "allow-plain-http", "false", 0, 0, NULL,                             \
      "allow plain HTTP on an address that is not loopback: every client that reaches the port "   \
      "can bind pods")                                                                             \
    X(PATH, tls_cert_file, "tls-cert-file", "", 0, 0, NULL,                                        \
      "PEM file of the server's certificate, followed by intermediate certificates: with it the "  \
      "port serves TLS only")                                                                      \
    X(PATH, tls_key_file, "tls-key-file", "", 0, 0, NULL,                                          \
      "PEM file of the private key of tls-cert-file")                                              \
    X(PATH, client_ca_file, "client-ca-file", "", 0, 0, NULL,                                      \
      "PEM file of CAs: a client needs a certificate that one of them signed, or a token of "      \
      "token-file")                                                                                \
    X(NAMES, client_names, "client-names", "", 0, 0, NULL,                                         \
      "accept only client certificates whose common name or DNS name is one of these")             \
    X(PATH, token_file, "token-file", "", 0, 0, NULL,                                              \
      "file of bearer tokens, one per line: a request must carry one, unless its client has a "    \
      "certificate of client-ca-file")                                                             \
    X(ADDRESS, probe_address, "probe-address", "127.0.0.1", 0, 0, NULL,                            \
      "address of the port for probes")                                                            \
    X(PORT, probe_port, "probe-port", "0", 0, 65535, NULL,                                         \
      "separate port for /healthz, /livez, /readyz, /version and /metrics in plain HTTP; 0: the "  \
      "main port serves them")                                                                     \
    X(PATH, kubeconfig, "kubeconfig", "", 0, 0, "KUBECONFIG",                                      \
      "kubeconfig file; empty: the service account of the pod, and outside of a pod "              \
      "~/.kube/config")                                                                            \
    X(PATH, cluster, "cluster", "", 0, 0, NULL,                                                    \
      "file of nodes and pods to serve from memory instead of a Kubernetes cluster")               \
    X(LOG_LEVEL, log_level, "log-level", "info", 0, 0, "LOG_LEVEL",                                \
      "log messages of this level and above")                                                      \
    X(LOG_FORMAT, log_format, "log-format", "auto", 0, 0, NULL,                                    \
      "format of a log line; auto: logfmt on a terminal, else json")                               \
    X(SIZE, max_body, "max-body", "128MiB", 64 * KIB, 1024 * MIB, NULL,                            \
      "largest body of a request; it must hold every node's name, and without nodeCacheCapable "   \
      "every node")                                                                                \
    X(SIZE, memory_budget, "memory-budget", "256MiB", 1 * MIB, 65536 * MIB, NULL,                  \
      "memory for the bodies, answers and evaluation of all requests together, at least "          \
      "max-body; a request beyond it is answered 503")                                             \
    X(COUNT, max_connections, "max-connections", "1000", 1, LIMIT_CONNECTIONS, NULL,               \
      "connections open at the same time; further clients wait")                                   \
    X(DURATION, request_timeout_ms, "request-timeout", "30s", 1 * CONFIG_SECOND,                   \
      300 * CONFIG_SECOND, NULL, "a request must arrive completely within this time")              \
    X(DURATION, bind_timeout_ms, "bind-timeout", "25s", 1 * CONFIG_SECOND, 300 * CONFIG_SECOND,    \
      NULL, "a bind is answered within this time; keep it below kube-scheduler's httpTimeout")     \
    X(COUNT, list_page_size, "list-page-size", "500", 1, 10000, NULL,                              \
      "objects per page of a list from the API server")                                            \
    X(DURATION, start_settle_ms, "start-settle", "8s", 0, 300 * CONFIG_SECOND, NULL,               \
      "a new leader waits this long before it decides, because Bindings of a killed process may "  \
      "still take effect")                                                                         \
    X(BOOL, leader_elect, "leader-elect", "true", 0, 0, NULL,                                      \
      "the replicas elect by a Lease which of them decides; false: this is the only replica")      \
    X(DURATION, lease_ms, "leader-elect-lease-duration", "10s", 3 * CONFIG_SECOND,                 \
      300 * CONFIG_SECOND, NULL,                                                                   \
      "a leader that has not renewed its lease for this long is replaced")                         \
    X(DURATION, renew_deadline_ms, "leader-elect-renew-deadline", "6s", 1 * CONFIG_SECOND,         \
      200 * CONFIG_SECOND, NULL,                                                                   \
      "a leader that could not renew its lease for this long stops deciding; at most two thirds "  \
      "of the lease duration")                                                                     \
    X(DURATION, retry_period_ms, "leader-elect-retry-period", "2s", 200, 100 * CONFIG_SECOND,      \
      NULL, "how often the lease is renewed; at most half of the renew deadline")                  \
    X(NAME, lease_name, "leader-elect-resource-name", "cardpack", 1, 253, NULL,                    \
      "the Lease's name")                                                                          \
    X(NAME, lease_namespace, "leader-elect-resource-namespace", "", 0, 63, NULL,                   \
      "the Lease's namespace; empty: that of cardpack's own pod, else kube-system")                \
    X(NAME, pod_name, "pod-name", "", 0, 253, "POD_NAME",                                          \
      "cardpack's own pod, which gets the label cardpack.io/leader-of while this replica leads; "  \
      "empty: no pod gets it")                                                                     \
    X(NAME, pod_namespace, "pod-namespace", "", 0, 63, "POD_NAMESPACE", "the pod's namespace")     \
    X(NAME, pod_uid, "pod-uid", "", 0, 63, "POD_UID",                                              \
      "the pod's UID, so that no other pod of that name gets the label")                           \
    X(BOOL, shrink_after_init, "shrink-after-init", "false", 0, 0, NULL,                           \
      "when the init containers have ended, give the memory that only they need to other pods; "   \
      "after a reboot of the node they run again and need it")                                     \
    X(POLICY, node_policy, "node-policy", "bid-price", 0, 0, NULL,                                 \
      "for prioritize and shortlist: the best node for a pod without a policy of its own is the "  \
      "fullest (binpack) or the emptiest (spread) that fits, or the one where the pods that are "  \
      "expected lose least (fgd, bid-price); these two choose the cards, too")                     \
    X(POLICY, card_policy, "card-policy", "binpack", 0, 0, NULL,                                   \
      "a pod without a policy of its own gets the fullest (binpack) or the emptiest (spread) "     \
      "card that fits, or the one where the pods that are expected lose least (fgd, bid-price); "  \
      "a node-policy of fgd or bid-price takes the place of binpack")                              \
    X(DIALECTS, dialects, "dialects", "gpushare", 0, 0, NULL,                                      \
      "the device plugins whose pods and nodes cardpack serves: gpushare (and cardpack-node), "    \
      "volcano, elastic, tencent, volcano-vgpu, hami; a node has one of them, and a pod goes to "  \
      "nodes of its own")                                                                          \
    X(RESOURCES, card_resources, "card-resources", "", 0, 0, NULL,                                 \
      "further resources by which another device plugin gives out the cards of a node or parts "   \
      "of them, beside nvidia.com/gpu, nvidia.com/gpu.* and nvidia.com/mig-*: no pod shares a "    \
      "card with a pod that has one; a name may end with *")                                       \
    X(SWAP_GUARD, swap_guard, "swap-guard", "prefer", 0, 0, NULL,                                  \
      "gpushare's device plugin may swap the cards of two pods of one size that start at the "     \
      "same time: ignore that (off), or prefer or require nodes where it can't happen")            \
    X(DRA, dra, "dra", "auto", 0, 0, NULL,                                                         \
      "place no pod on a card that a ResourceClaim holds: if the API server serves "               \
      "resource.k8s.io/v1 and cardpack may read it (auto), in any case (on), or never (off)")      \
    X(COUNT, shortlist, "shortlist", "0", 0, LIMIT_SHORTLIST, NULL,                                \
      "filter answers with at most this many nodes, the best by node-policy; 0: with all that "    \
      "fit")                                                                                       \
    X(BOOL, evict_for_cards, "evict-for-cards", "false", 0, 0, NULL,                               \
      "evict pods of lower priority for a pod that may preempt, if a node has enough free memory " \
      "but no single card has; needs the right to evict")                                          \
    X(DURATION, evict_after_ms, "evict-for-cards-after", "30s", 1 * CONFIG_SECOND,                 \
      3600 * CONFIG_SECOND, NULL,                                                                  \
      "evict only after no single card had room for the pod for this long")                        \
    X(DURATION, evict_keep_ms, "evict-for-cards-keep", "2m", 1 * CONFIG_SECOND,                    \
      3600 * CONFIG_SECOND, NULL, "keep the cards that become free for the pod for this long")     \
    X(BOOL, placed_events, "placed-events", "false", 0, 0, NULL,                                   \
      "write a Normal event, Placed, with the node and the cards on each pod that is bound: one "  \
      "more write to the API server for each pod")                                                 \
    X(COUNT, metrics_nodes, "metrics-nodes", "5000", 0, LIMIT_METRICS_NODES, NULL,                 \
      "/metrics shows each card of this many nodes, in order of name, and only the totals of the " \
      "others")                                                                                    \
    X(DURATION, shutdown_grace_ms, "shutdown-grace", "25s", 0, 600 * CONFIG_SECOND, NULL,          \
      "after SIGTERM, wait this long for open requests")                                           \
    X(DURATION, shutdown_delay_ms, "shutdown-delay", "0s", 0, 600 * CONFIG_SECOND, NULL,           \
      "after SIGTERM, serve new requests for this long, while /readyz answers 503")

/* The C type of each config_type's field. */
#define CONFIG_FIELD_ADDRESS    struct str
#define CONFIG_FIELD_PATH       struct str
#define CONFIG_FIELD_NAME       struct str
#define CONFIG_FIELD_NAMES      struct str
#define CONFIG_FIELD_RESOURCES  struct str
#define CONFIG_FIELD_PORT       uint16_t
#define CONFIG_FIELD_DURATION   uint64_t
#define CONFIG_FIELD_SIZE       size_t
#define CONFIG_FIELD_COUNT      unsigned
#define CONFIG_FIELD_BOOL       bool
#define CONFIG_FIELD_LOG_LEVEL  enum log_level
#define CONFIG_FIELD_LOG_FORMAT enum config_log_format
#define CONFIG_FIELD_POLICY     enum policy
#define CONFIG_FIELD_SWAP_GUARD enum swap_guard
#define CONFIG_FIELD_DIALECTS   unsigned
#define CONFIG_FIELD_DRA        enum config_dra

enum config_row {
#define CONFIG_X(type, field, ...) CONFIG_ROW_##field,
    CONFIG_ROWS(CONFIG_X)
#undef CONFIG_X
    CONFIG_ROW_COUNT
};

enum config_action {
    CONFIG_RUN,
    CONFIG_HELP,    /* --help: print config_usage; nothing else is checked */
    CONFIG_VERSION, /* --version: likewise */
    CONFIG_CHECK,   /* --check-config: print config_print, and run nothing */
};

enum config_source {
    CONFIG_FROM_DEFAULT,
    CONFIG_FROM_FILE,
    CONFIG_FROM_ENVIRONMENT,
    CONFIG_FROM_FLAG,
};

struct config {
#define CONFIG_X(type, field, ...) CONFIG_FIELD_##type field;
    CONFIG_ROWS(CONFIG_X)
#undef CONFIG_X
    enum config_action action;
    struct str file; /* --config; absent: none */
    enum config_source sources[CONFIG_ROW_COUNT];
    struct arena arena; /* owns the strings of the fields */
};

/* The environment variables that cardpack reads; absent and empty mean unset. */
struct config_env {
    struct str port;       /* PORT */
    struct str log_level;  /* LOG_LEVEL */
    struct str kubeconfig; /* KUBECONFIG: one path, not a list */
    struct str pod_name;   /* POD_NAME, POD_NAMESPACE, POD_UID: by the downward API */
    struct str pod_namespace;
    struct str pod_uid;
};

/* Appends the file's content to out; its error names the path. */
typedef enum errc config_read_fn(void *ctx, struct str path, struct buf *out, struct err *reterr);

/*
 * Ignores argv[0]. *ret does not refer to the arguments afterwards. On failure *ret is untouched.
 * --cluster (or `cluster` in the file) together with a kubeconfig is an error; but a kubeconfig
 * that comes only from the environment is ignored, since it belongs to the shell. Settings of the
 * port that make it less secure than they read are an error too (config_check_port).
 */
enum errc config_parse(int argc, char *const argv[], const struct config_env *env,
                       config_read_fn *read, void *read_ctx, struct config *ret, struct err *reterr)
    _must_use_;
void config_done(struct config *c);

/* The config_read_fn for files; ignores ctx. */
enum errc config_read_file(void *ctx, struct str path, struct buf *out, struct err *reterr)
    _must_use_;

/*
 * Prints the effective configuration as YAML. Read back, it gives the same configuration, except
 * for bytes of a path that are not UTF-8.
 */
void config_print(const struct config *c, struct buf *out);

/* What --help prints. */
void config_usage(struct buf *out);

/* "default", "file", "environment", "flag": for logs. */
const char *config_source_name(enum config_source source);
