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

/* A peer that is silent for so long amid a request may be cut, where others wait for it to end. */
#define LIMIT_STALL_MS UINT64_C(1000)

/*
 * How long after a Binding of unknown outcome the API server may still commit it: its own limit for
 * one request is 60 s, and the handler may outlive the answer (contracts of the Binding, 504).
 */
#define LIMIT_SETTLE_MS UINT64_C(75000)
