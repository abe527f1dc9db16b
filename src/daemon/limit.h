/* The limits of the daemon, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* The largest shortlist that can be configured for filter's answer. A longer one is as good as all
 * nodes. */
#define LIMIT_SHORTLIST 10000

/* The file of tokens that authenticate clients of the main port. */
#define LIMIT_TOKEN_BYTES (64 * KIB)

/* A cluster file is the output of kubectl get -o json: 60 MB for 8,000 pods. */
#define LIMIT_CLUSTER_FILE_BYTES (1024 * MIB)

/* With fewer, kube-scheduler's connections and those of a person would have to take turns. */
#define LIMIT_LEAST_CONNECTIONS 8

/* Connections of the port for probes. A kubelet has one or two, and a probe has no body. */
#define LIMIT_PROBE_CONNECTIONS 16
#define LIMIT_PROBE_BODY        (4 * KIB)

/* kube-scheduler's client drops an idle connection after 90 s. The server must not close it
 * first. */
#define LIMIT_IDLE_SECONDS 120

/* How often the authentication of an open stream is checked again: its certificate may have
 * expired. */
#define LIMIT_STREAM_RECHECK_MS UINT64_C(10000)

/* A request or an answer without progress for so long is stalled: its connection may be closed when
 * other connections wait for a place, and at shutdown. */
#define LIMIT_STALL_MS UINT64_C(1000)

/* How long etcd may take for a write after the API server has given up the request. A new leader
 * cannot see a later commit: it has written the Lease since, and etcd applies its writes in
 * order. */
#define LIMIT_COMMIT_MS UINT64_C(1000)

/*
 * How long after a Binding in doubt the API server may still commit it. Its own limit for one
 * request is 60 s, and after its answer 504 the handler may still run. A Binding asks for a shorter
 * limit (post_deadline.h), but a proxy may drop that from the request. Waiting longer costs one
 * card for a while; waiting too short could bind a pod twice.
 */
#define LIMIT_DOUBT_MS UINT64_C(75000)

/* Nodes that have series of their own in /metrics. With 8 cards each these are some 50 MB, more
 * than a Prometheus server handles well. */
#define LIMIT_METRICS_NODES 20000

/* Kinds of pods that have series of their own in /metrics: the most frequent ones. */
#define LIMIT_METRICS_SHAPES 20

/* Unsent bytes of /metrics answers; beyond it /metrics refuses. A client that asks and does not
 * read must not fill the memory. */
#define LIMIT_METRICS_UNSENT (64 * MIB)

/* An answer of /metrics that took less CPU time than this may be followed by the next at once. */
#define LIMIT_METRICS_CHEAP_NS UINT64_C(10000000)

/* Pods that are remembered because filter refused them for lack of cards only; and, for each pod,
 * nodes on which an eviction may help it. One pod is helped at a time, on any of its nodes. */
#define LIMIT_REFUSALS      64
#define LIMIT_REFUSAL_NODES 128

/* Web pages that are open at the same time, one connection each. */
#define LIMIT_UI_STREAMS 32

/* Pending pods that a web page shows; and refusals of pending pods that are remembered for the
 * page. */
#define LIMIT_UI_PENDING 500
#define LIMIT_UI_REASONS 512

/* Namespaces whose quotas a web page shows. */
#define LIMIT_UI_QUOTAS 500

/* Pods that are evicted for one pod. To evict more is too high a price for a card. */
#define LIMIT_EVICT_VICTIMS 32

/* Pods whose eviction was refused. They are not chosen again for a while. */
#define LIMIT_EVICT_SPARED 64
