/* Every ceiling of the program in one place, with the reason for each number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Nesting of JSON: Kubernetes objects stay below 30; the reader is iterative, so this bounds state.
 */
#define LIMIT_JSON_DEPTH 64

/* One object of a list or a watch: etcd stores at most 1.5 MiB, as JSON it may be several times
 * that. */
#define LIMIT_OBJECT_BYTES (16 * MIB)

/* A reply that is not streamed: a Status, a Pod. */
#define LIMIT_REPLY_BYTES (16 * MIB)

/* What one request may allocate beside its body: 50,000 node names of 64 bytes are 6 MiB. */
#define LIMIT_REQUEST_ARENA (256 * MIB)

/* Kept by a request's body, answer and arena for the next one on any connection. */
#define LIMIT_KEEP_BYTES (1 * MIB)

/* Request objects kept with that memory: more are rarely served at once, and then come from malloc.
 */
#define LIMIT_KEEP_REQUESTS 16

/* Handles of the HTTP client kept for its next calls: as many binds are in flight at busy times. */
#define LIMIT_KEEP_TRANSFERS 64

/* Cards of one node: 16 GPUs of 7 MIG instances each are 112. More is a node that lies. */
#define LIMIT_CARDS 1024

/* Which container has which card, as text: REQUEST_GRANTS_MAX of some 30 bytes, twice. */
#define LIMIT_ALLOCATION_BYTES (32 * KIB)

/* Replicas of one question; and cards and pods that are looked at for them, of which a million
 * takes some milliseconds, as nothing else happens meanwhile. */
#define LIMIT_WHATIF_REPLICAS 10000
#define LIMIT_PLAN_LOOKS      10000000

/* Nodes that filter may be told to answer with at most: more is as good as all. */
#define LIMIT_SHORTLIST 10000

/* Places tried for all nodes of one preempt, two microseconds each: what a scheduler waits for, and
 * everybody else meanwhile. Beyond it each node's first set is taken. */
#define LIMIT_VICTIM_STEPS 16384

/* Configuration, kubeconfig and credential files. */
#define LIMIT_FILE_BYTES (4 * MIB)

/* The tokens that admit to the main port. */
#define LIMIT_TOKEN_BYTES (64 * KIB)

/* Certificates and keys: a bundle of CAs holds some 2 KiB for each. */
#define LIMIT_PEM_BYTES (256 * KIB)

/* What the anchors of one YAML document may take: some 100,000 of them. */
#define LIMIT_YAML_ANCHORS (16 * MIB)

/* A cluster file is the output of kubectl get -o json: 60 MB with 8,000 pods. */
#define LIMIT_CLUSTER_FILE_BYTES (1024 * MIB)

/* Requests that are served at the same time; the rest waits in the listen queue. */
#define LIMIT_CONNECTIONS 1000

/* Two for each connection, its own and that of its bind's call; the rest is for watches, timers and
 * files. */
#define LIMIT_DESCRIPTORS (2 * LIMIT_CONNECTIONS + 1000)

/* Of the port for probes: a kubelet has one or two, and a probe has no body. */
#define LIMIT_PROBE_CONNECTIONS 16
#define LIMIT_PROBE_BODY        (4 * KIB)

/* Headers of a request: kube-scheduler sends five, a proxy adds as many. */
#define LIMIT_HEADERS 100

/* What is swallowed of a refused request's body, so that its sender comes to read the refusal. */
#define LIMIT_REFUSED_BODY (1 * MIB)

/* kube-scheduler's client drops an idle connection after 90 s: we must not be the first. */
#define LIMIT_IDLE_SECONDS 120

/* Of a stream's bytes nobody has acknowledged any for so long: the peer is not there. */
#define LIMIT_STREAM_UNHEARD_MS 60000

/* Who has a stream may have had a certificate that has expired: so often that is looked at. */
#define LIMIT_STREAM_JUDGE_MS UINT64_C(10000)

/* A peer that is silent for so long amid a request may be cut, where others wait for it to end. */
#define LIMIT_STALL_MS UINT64_C(1000)

/*
 * How long after a Binding of unknown outcome the API server may still commit it: its own limit for
 * one request is 60 s, and the handler may outlive the answer (contracts of the Binding, 504).
 */
#define LIMIT_SETTLE_MS UINT64_C(75000)

/* Events on their way to the API server, 1.5 KiB each. */
#define LIMIT_EVENTS_QUEUED ((size_t)128)

/* Of these, calls under way: they must not crowd out Bindings. */
#define LIMIT_EVENTS_IN_FLIGHT 4

/* Events, groups of them and pods with events that are remembered, 200 bytes each; client-go keeps
 * as many of each. More than may be queued, as what is queued is not forgotten. */
#define LIMIT_EVENT_RECORDS ((size_t)4096)
/* The limits of namespaces, as a ConfigMap holds them: some thousand namespaces. libyaml reads 1
 * MiB in about 100 ms, and nothing else happens meanwhile. */
#define LIMIT_QUOTA_TEXT (256 * KIB)
/* As JSON, with the anchors expanded; and in memory. */
#define LIMIT_QUOTA_JSON  (1 * MIB)
#define LIMIT_QUOTA_ARENA (32 * MIB)
/* Pools, models and limits of one namespace, each: a filter looks at all of them for every node. */
#define LIMIT_QUOTA_SCOPES 64

/* Nodes with series of their own in /metrics: with 8 cards each some 50 MB, which is more than a
 * Prometheus takes gladly. */
#define LIMIT_METRICS_NODES 20000

/* Answers that have not left, beyond which /metrics gives no other: who asks and does not read must
 * not fill the memory. */
#define LIMIT_METRICS_UNSENT (64 * MIB)

/* A page of /metrics that took less of the processor may be followed by the next at once. */
#define LIMIT_METRICS_CHEAP_NS UINT64_C(10000000)

/* Pods that are remembered as refused for the cards alone, and nodes of each that one may be helped
 * on: one is helped at a time, on any of its nodes. */
#define LIMIT_REFUSALS      64
#define LIMIT_REFUSAL_NODES 128

/* Nodes that are gone and whose names are kept for those who watch: where more go between two
 * looks, they are told everything anew. */
#define LIMIT_GONE 64

/* Pages that are open at the same time, with a connection each. */
#define LIMIT_UI_STREAMS 32

/* Pending pods that a page is shown; and refusals of pending pods that are remembered for it. */
#define LIMIT_UI_PENDING 500
#define LIMIT_UI_REASONS 512

/* Pods that are evicted for one: more are no price for a card. */
#define LIMIT_EVICT_VICTIMS 32

/* Pods whose eviction was refused, and which are spared for a while. */
#define LIMIT_EVICT_SPARED 64

/* Columns of a table for people: of the cards of a node as many as a person scrolls through. */
#define LIMIT_TABLE_COLUMNS 80

/* What kubectl-cardpack takes in memory for one answer: of 5,000 nodes with eight cards explain has
 * 4 MB, and with a pod on each card the list of cards 10 MB. */
#define LIMIT_KUBECTL_BYTES (512 * MIB)

/* What a program that the kubeconfig names may print to say who the user is: a token of some KiB,
 * or a certificate with its chain and key. */
#define LIMIT_LOGIN_BYTES (1 * MIB)

/* And how long it may take: a person may be logging in, in a browser, with a second factor. */
#define LIMIT_LOGIN_MS UINT64_C(600000)

/* Names for one TAB: a shell, and who sits there, waits for two seconds at most. */
#define LIMIT_NAMES_MS UINT64_C(1600)
