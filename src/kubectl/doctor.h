/*
 * kubectl cardpack doctor: checks a cluster from its nodes to its pods, and says what to do.
 *
 * The checks are functions of parsed objects and of the cache that the lists filled; doctor.c reads
 * the lists and calls them. What the kubelet has really given to a container (podresources) is
 * known only on the node: cardpack-node compares it with the annotations, and writes what differs
 * into the node's ConfigMap, beside what each pod's processes use.
 */
#pragma once

#include "core/cache/cache.h"
#include "core/state/measured.h"
#include "kubectl/client.h"
#include "kubectl/figures.h"
#include "kubectl/show.h"
#include "objects/kube.h"

enum finding_level {
    FINDING_OK,
    FINDING_WARN, /* it works, but not as it should, or the check is not possible */
    FINDING_FAIL,
    FINDING_LEVELS
};

struct finding {
    enum finding_level level;
    struct str object;  /* "node/n1", "pod/ns/p" */
    struct str text;    /* what is there, or what is wrong */
    const char *advice; /* what to do; "": nothing */
};

/* More findings than LIMIT_FINDINGS are counted and not kept. A tenth of them is kept for what is
 * no pod, so that authors of pods can't hide it. */
struct findings {
    struct arena *arena;
    struct finding *items;
    size_t n;
    size_t cap;
    size_t counts[FINDING_LEVELS]; /* with those left out */
};

void finding_add(struct findings *f, enum finding_level level, struct str object,
                 const char *advice, const char *fmt, ...) _printf_(5, 6);

/* "node/n1"; "pod/ns/p". Absent if the arena failed. */
struct str finding_node(const struct findings *f, struct str name);
struct str finding_pod(const struct findings *f, struct str namespace, struct str name);

/* ---- checks of nodes: doctor_nodes.c ---- */

/* What says which device plugin belongs on a node. */
struct doctor_marks {
    struct str node;
    bool gpushare;          /* label gpushare=true: gpushare's plugin */
    bool ours;              /* label cardpack.io/node=true: cardpack-node */
    bool table;             /* annotation cardpack.io/cards */
    struct str accelerator; /* a cloud provider's label for GPUs, on a node without nvidia.com/gpu;
                               absent: none */
    struct str paused;      /* "KEY=VALUE", the label by which cardpack-node leaves the node while
                               the GPU Operator has to do with its driver or its slices; absent:
                               none */
};

/* `n` is the view's node in the cache; now_s is Unix time. */
void doctor_node(struct findings *f, const struct node_view *v, const struct node *n,
                 const struct doctor_marks *m, uint32_t now_s);

/* The ConfigMap of a node's unhealthy cards. */
void doctor_health(struct findings *f, const struct cache *c, struct str name, struct str gpus);

/* Cards that hold more than their size, by the pods of the cache; then one line for all nodes. */
void doctor_usage(struct findings *f, const struct cache *c);

/* ---- checks of dialects: doctor_dialects.c ---- */

/* Whether the node says clearly which dialect it has, and one that is read, and has no device
 * plugin that is not known. */
void doctor_dialect(struct findings *f, const struct node_view *v, const struct node *n);

/* Pods of two device plugins, by the pods of the cache. */
void doctor_mixed(struct findings *f, const struct node *n);

/* Nodes that the running cardpack, which answered `shown`, does not share. */
void doctor_unread(struct findings *f, const struct cache *c, const struct figures *shown);

/* ---- checks of DRA's objects: doctor_dra.c ---- */

/* The nodes are in the cache already. */
void doctor_slice(struct findings *f, const struct cache *c, const struct dra_slice_view *v);

/* Cards that a claim holds and pods share. */
void doctor_claimed(struct findings *f, const struct node *n);

/* The pod of a card has claims, too. */
void doctor_pod_claims(struct findings *f, struct str object);

/* ---- checks of pods: doctor_pods.c ---- */

/* A pod that has not ended. The nodes are in the cache already, and what is really used in m; now_s
 * is Unix time. claims: it has ResourceClaims. */
void doctor_pod(struct findings *f, const struct cache *c, const struct measured *m,
                const struct pod_view *v, bool claims, uint32_t now_s);

/* How many nodes and containers cardpack-node has compared with the kubelet's podresources. */
struct doctor_listed_sum {
    size_t nodes;
    uint64_t containers;
    size_t differences;
};

/* What a node's cardpack-node has found; all of it, and one line for it. */
void doctor_listed(struct findings *f, struct str node, const struct usage_view *u,
                   struct doctor_listed_sum *sum);
void doctor_tell_listed(struct findings *f, const struct doctor_listed_sum *sum);

/* ---- checks of the programs: doctor_system.c ---- */

/* A pod of a device plugin. */
struct doctor_plugin {
    struct str node;
    struct str namespace;
    struct str name;
    bool ours; /* cardpack-node; else gpushare's */
    bool runs;
    bool ends; /* it is being deleted, as when its DaemonSet is updated */
    bool ready;
};

enum doctor_program {
    DOCTOR_AGENT,    /* cardpack-node */
    DOCTOR_PLUGIN,   /* gpushare's */
    DOCTOR_EXTENDER, /* gpushare's */
    DOCTOR_PROGRAMS
};

/* What the nodes and pods say of the programs that belong to cardpack. A user who can create pods
 * in a namespace can give them any name and label: only pods of kube-system, and of the namespace
 * of cardpack's Service, are such programs. */
struct doctor_system {
    struct str namespace;                  /* of cardpack's Service */
    struct str strangers[DOCTOR_PROGRAMS]; /* the first pod of another namespace that has the name
                                              or the labels of this program; absent: none */
    struct doctor_plugin *plugins;         /* those that have not ended */
    size_t n_plugins;
    size_t cap;
    struct doctor_marks *marks; /* of each node */
    size_t n_marks;
    size_t marks_cap;
    struct str extender; /* a pod of gpushare's extender that runs; absent: none */
    bool autoscaler;     /* cluster-autoscaler is there */
    struct str leader;   /* a pod of cardpack with the leader's label; absent: none */
    size_t n_leaders;
    size_t n_replicas; /* pods of cardpack that run, in the namespace of its Service */
};

/* Whether the pod, which has the name or the labels of this program, is one of it. */
bool doctor_system_counts(struct doctor_system *s, const struct pod_view *v, enum doctor_program p,
                          struct arena *a);

void doctor_system_take(struct doctor_system *s, const struct pod_view *v, struct arena *a);

/* ---- checks of the device plugins: doctor_plugins.c ---- */

void doctor_plugins_mark(struct doctor_system *s, const struct doctor_marks *m, struct arena *a);
void doctor_plugins_take(struct doctor_system *s, const struct pod_view *v, struct arena *a);

/* Needs the nodes of the cache. */
void doctor_plugins(struct findings *f, const struct doctor_system *s, const struct cache *c);

/* ---- checks of the programs, continued: doctor_system.c ---- */

struct str doctor_system_label(const struct pod_view *v, struct str key); /* "": none */

/* What cardpack answered. */
struct doctor_daemon {
    bool asked;           /* not with --direct */
    bool through_service; /* not with --daemon-url */
    bool no_service;      /* the API server does not have the Service */
    bool denied;          /* the user may not call it through the API server */
    struct err fault;     /* why it does not answer, or is not ready; code OK: it is ready */
    struct str ready;     /* the answer of /readyz */
    struct str version;   /* absent: not known */
};

void doctor_daemon(struct findings *f, const struct doctor_system *s,
                   const struct doctor_daemon *d);

/* Needs the nodes of the cache. */
void doctor_system(struct findings *f, const struct doctor_system *s, const struct cache *c);

/* A value of a ConfigMap. False: it is no configuration of kube-scheduler, and nothing is found. */
bool doctor_scheduler(struct findings *f, struct str configmap, struct str text);

/* A right that the commands of kubectl cardpack need. */
struct doctor_right {
    const char *verb;
    const char *group;
    const char *resource;
    const char *subresource; /* "": none */
    bool of_service;         /* of the Service of cardpack */
    bool of_system;          /* in kube-system */
    enum finding_level level;
    const char *lack; /* what does not work without it */
};

const struct doctor_right *doctor_rights(size_t *ret_n);

/* A list that is not complete, with the reason why the user may not read it; NULL: an object of it
 * can't be read. */
void doctor_list(struct findings *f, struct str name, enum cache_kind kind, const char *denied);

/* The user lacks it. */
void doctor_right(struct findings *f, const struct doctor_right *r);

/* ---- all of it: doctor.c ---- */

/* Reads the cluster and fills *f. A list that the user may not read is a finding. `daemon` may be
 * `cluster`: then cardpack is called through the API server; NULL: it is not called. An error: the
 * API server is not reachable, or there is no memory. */
enum errc kubectl_doctor(struct kubectl_client *cluster, struct kubectl_client *daemon,
                         struct findings *f, struct err *reterr) _must_use_;

/* ---- show_doctor.c ---- */

enum errc kubectl_doctor_show(const struct findings *f, struct kubectl_look look, struct buf *out,
                              struct err *reterr) _must_use_;

/* {"fail": N, "warn": N, "ok": N, "findings": [{"result", "object", "finding", "advice"}]} */
void kubectl_doctor_write(const struct findings *f, struct buf *out);
