/*
 * The program's settings. One table says all about each: its type, its field, its name (flag and
 * key of the file), its default, its range, the environment variable that also sets it, and a line
 * for a person. Everything else follows from the table.
 *
 * A flag beats the environment, that beats the file, that beats the default. Of a repeated flag the
 * last counts; a key that the file repeats is an error, as is anything unknown. Every error names
 * where it comes from and quotes the value:
 *
 *     flag --port: "99999": must be 0 to 65535
 *     environment LOG_LEVEL: "loud": must be debug, info, warn or error
 *     config file "/etc/cardpack.yaml": prot: unknown key, did you mean "port"?
 */
#pragma once

#include "arena.h"
#include "config_value.h"
#include "limit.h"
#include "log.h"
#include "pack.h"

#define CONFIG_SECOND ((uint64_t)1000)

/* X(type, field, name, default, min, max, environment variable or NULL, help) */
#define CONFIG_ROWS(X)                                                                             \
    X(ADDRESS, listen_address, "listen-address", "127.0.0.1", 0, 0, NULL,                          \
      "address to listen on; 0.0.0.0 or :: for all")                                               \
    X(PORT, port, "port", "39999", 0, 65535, "PORT", "port to listen on; 0 for any free one")      \
    X(BOOL, allow_plain_http, "allow-plain-http", "false", 0, 0, NULL,                             \
      "speak plain HTTP on an address that is not loopback: whoever reaches the port can bind "    \
      "pods")                                                                                      \
    X(PATH, tls_cert_file, "tls-cert-file", "", 0, 0, NULL,                                        \
      "PEM file of the server's certificate, then those between it and its CA: the port speaks "   \
      "TLS, and nothing else")                                                                     \
    X(PATH, tls_key_file, "tls-key-file", "", 0, 0, NULL, "PEM file of that certificate's key")    \
    X(PATH, client_ca_file, "client-ca-file", "", 0, 0, NULL,                                      \
      "PEM file of CAs: who has no certificate of theirs for client authentication is refused")    \
    X(NAMES, client_names, "client-names", "", 0, 0, NULL,                                         \
      "only such certificates of client-ca-file whose common name or DNS name is one of these")    \
    X(PATH, token_file, "token-file", "", 0, 0, NULL,                                              \
      "file of bearer tokens, one a line: a request must carry one, unless its client's "          \
      "certificate admits it")                                                                     \
    X(ADDRESS, probe_address, "probe-address", "127.0.0.1", 0, 0, NULL,                            \
      "address of the port for probes")                                                            \
    X(PORT, probe_port, "probe-port", "0", 0, 65535, NULL,                                         \
      "port that answers /healthz, /livez, /readyz, /version and /metrics in plain HTTP, and "     \
      "nothing else; "                                                                             \
      "0 for none: probes ask the main port")                                                      \
    X(PATH, kubeconfig, "kubeconfig", "", 0, 0, "KUBECONFIG",                                      \
      "how to reach the API server; empty: as a pod of the cluster, else ~/.kube/config")          \
    X(PATH, cluster, "cluster", "", 0, 0, NULL,                                                    \
      "file of nodes and pods to serve from memory instead of a Kubernetes cluster")               \
    X(LOG_LEVEL, log_level, "log-level", "info", 0, 0, "LOG_LEVEL", "least level that is logged")  \
    X(LOG_FORMAT, log_format, "log-format", "auto", 0, 0, NULL,                                    \
      "how a line is written; auto: logfmt on a terminal, else json")                              \
    X(SIZE, max_body, "max-body", "128MiB", 64 * KIB, 1024 * MIB, NULL,                            \
      "largest body of a request; it must hold every node's name, and without nodeCacheCapable "   \
      "every node")                                                                                \
    X(COUNT, max_connections, "max-connections", "1000", 1, LIMIT_CONNECTIONS, NULL,               \
      "connections served at the same time; more wait")                                            \
    X(DURATION, request_timeout_ms, "request-timeout", "30s", 1 * CONFIG_SECOND,                   \
      300 * CONFIG_SECOND, NULL, "a request must have come whole within this time")                \
    X(DURATION, bind_timeout_ms, "bind-timeout", "25s", 1 * CONFIG_SECOND, 300 * CONFIG_SECOND,    \
      NULL, "a bind is answered within this time; keep it below kube-scheduler's httpTimeout")     \
    X(COUNT, list_page_size, "list-page-size", "500", 1, 10000, NULL,                              \
      "objects per page when the API server is asked for all")                                     \
    X(DURATION, start_settle_ms, "start-settle", "8s", 0, 300 * CONFIG_SECOND, NULL,               \
      "how long Bindings of a process that was killed may still commit; who comes after it waits " \
      "so long before it decides")                                                                 \
    X(BOOL, leader_elect, "leader-elect", "true", 0, 0, NULL,                                      \
      "agree with other replicas on one that decides, by a Lease; false: there is no other one")   \
    X(DURATION, lease_ms, "leader-elect-lease-duration", "10s", 3 * CONFIG_SECOND,                 \
      300 * CONFIG_SECOND, NULL, "a leader that has not been heard of for so long is replaced")    \
    X(DURATION, renew_deadline_ms, "leader-elect-renew-deadline", "6s", 1 * CONFIG_SECOND,         \
      200 * CONFIG_SECOND, NULL,                                                                   \
      "a leader that could not renew its lease for so long ends; two thirds of the lease at most") \
    X(DURATION, retry_period_ms, "leader-elect-retry-period", "2s", 200, 100 * CONFIG_SECOND,      \
      NULL, "how often the lease is renewed; half of the renew deadline at most")                  \
    X(NAME, lease_name, "leader-elect-resource-name", "cardpack", 1, 253, NULL,                    \
      "the Lease's name")                                                                          \
    X(NAME, lease_namespace, "leader-elect-resource-namespace", "", 0, 63, NULL,                   \
      "and its namespace; empty: this process' own, else kube-system")                             \
    X(BOOL, shrink_after_init, "shrink-after-init", "true", 0, 0, NULL,                            \
      "memory of a card that only init containers need is given back when they are done; they "    \
      "want it again if the pod's sandbox is made anew")                                           \
    X(PACK, node_policy, "node-policy", "binpack", 0, 0, NULL,                                     \
      "which of the nodes that fit is best for a pod that does not say: the fullest or the "       \
      "emptiest; for prioritize and shortlist")                                                    \
    X(PACK, card_policy, "card-policy", "binpack", 0, 0, NULL,                                     \
      "which of the cards that fit is best for a pod that does not say: the fullest or the "       \
      "emptiest")                                                                                  \
    X(COUNT, shortlist, "shortlist", "0", 0, LIMIT_SHORTLIST, NULL,                                \
      "filter answers with so many nodes at most, the best by node-policy; 0 for all that fit")    \
    X(BOOL, evict_for_cards, "evict-for-cards", "false", 0, 0, NULL,                               \
      "evict pods of lower priority for one that preempts, where a node has the memory for it "    \
      "but no card has; wants the right to evict")                                                 \
    X(DURATION, evict_after_ms, "evict-for-cards-after", "30s", 1 * CONFIG_SECOND,                 \
      3600 * CONFIG_SECOND, NULL, "once it has been refused for the cards alone for so long")      \
    X(DURATION, evict_keep_ms, "evict-for-cards-keep", "2m", 1 * CONFIG_SECOND,                    \
      3600 * CONFIG_SECOND, NULL, "and the cards that are free then are kept for it for so long")  \
    X(COUNT, metrics_nodes, "metrics-nodes", "5000", 0, LIMIT_METRICS_NODES, NULL,                 \
      "nodes that /metrics shows with each of their cards at most, the first by name; of those "   \
      "beyond only the totals")                                                                    \
    X(DURATION, shutdown_grace_ms, "shutdown-grace", "25s", 0, 600 * CONFIG_SECOND, NULL,          \
      "how long requests under way may take to end after SIGTERM")                                 \
    X(DURATION, shutdown_delay_ms, "shutdown-delay", "0s", 0, 600 * CONFIG_SECOND, NULL,           \
      "how long requests are served as before after SIGTERM, with /readyz at 503: until a "        \
      "Service "                                                                                   \
      "sends no more of them here")

/* The C type of each config_type's field. */
#define CONFIG_FIELD_ADDRESS    struct str
#define CONFIG_FIELD_PATH       struct str
#define CONFIG_FIELD_NAME       struct str
#define CONFIG_FIELD_NAMES      struct str
#define CONFIG_FIELD_PORT       uint16_t
#define CONFIG_FIELD_DURATION   uint64_t
#define CONFIG_FIELD_SIZE       size_t
#define CONFIG_FIELD_COUNT      unsigned
#define CONFIG_FIELD_BOOL       bool
#define CONFIG_FIELD_LOG_LEVEL  enum log_level
#define CONFIG_FIELD_LOG_FORMAT enum config_log_format
#define CONFIG_FIELD_PACK       enum pack

enum config_row {
#define CONFIG_X(type, field, ...) CONFIG_ROW_##field,
    CONFIG_ROWS(CONFIG_X)
#undef CONFIG_X
    CONFIG_ROW_COUNT
};

enum config_action {
    CONFIG_RUN,
    CONFIG_HELP,    /* --help: print config_usage; nothing else was looked at */
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
    struct arena arena; /* owns what the fields view */
};

/* The environment, as far as it counts; absent and empty mean unset. */
struct config_env {
    struct str port;       /* PORT */
    struct str log_level;  /* LOG_LEVEL */
    struct str kubeconfig; /* KUBECONFIG: one path, not a list */
};

/* Appends the file's content to out; its error names the path. */
typedef enum errc config_read_fn(void *ctx, struct str path, struct buf *out, struct err *reterr);

/*
 * argv[0] is not looked at; nothing of the arguments need live on. On failure *ret is untouched.
 * --cluster (or the file's cluster) beside a kubeconfig is an error, but one from the environment
 * only: that is the shell's and yields. So are settings of the port that would leave it open to
 * others than they seem to.
 */
enum errc config_parse(int argc, char *const argv[], const struct config_env *env,
                       config_read_fn *read, void *read_ctx, struct config *ret, struct err *reterr)
    _must_use_;
void config_done(struct config *c);

/* The config_read_fn for files; ctx is not looked at. */
enum errc config_read_file(void *ctx, struct str path, struct buf *out, struct err *reterr)
    _must_use_;

/* The effective configuration as YAML: read back, it gives the same, but for a path's bytes that
 * are not UTF-8. */
void config_print(const struct config *c, struct buf *out);

/* What --help prints. */
void config_usage(struct buf *out);

/* "default", "file", "environment", "flag": for logs. */
const char *config_source_name(enum config_source source);
