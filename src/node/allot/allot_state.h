/* What allot.c and allot_start.c share: the calls that wait, and the state that answers them. */
#pragma once

#include "node/allot/allot.h"
#include "node/allot/late_binding.h"
#include "node/kubelet/answer.h"
#include "node/pods/pod_patcher.h"
#include "node/roster/pod_match.h"

/* A call of the kubelet that waits. */
struct ask {
    struct list_link link;
    struct grpc_call *call;
    bool start;        /* PreStartContainer; else Allocate */
    bool stuck;        /* of PreStartContainer: the spec can't be written */
    bool relisted;     /* of Allocate: the pods were listed for it */
    int64_t n;         /* devices */
    uint64_t since_ms; /* when it came */
    uint64_t bound_ms; /* of PreStartContainer: when a spec was written for it; 0: none was */
    uint64_t seen_ms;  /* if so: the runtime has read it after this time */
    struct err why;    /* why it waits */
    char *device;      /* the first one; owned */
    char *owner;       /* of Allocate: UID of the pod that has one of the devices already; owned */
};

struct allot {
    struct allot_settings s;
    struct str path; /* owned, as resource */
    struct str resource;
    struct str cdi_dir;
    struct roster roster;
    struct specs specs;
    struct checkpoint_file checkpoint;
    struct pod_patcher patcher;
    struct list asks;
    struct timer tick;
    struct buf reply;
    struct arena arena; /* for one answer */
    struct timer again; /* lists the pods, if one could not be kept */
    bool listed;        /* a list of the pods is complete, and all were kept */
    bool listing;       /* one is asked for, or under way */
    bool settling;      /* the next list begins when no PATCH is on its way any more */
    bool settles;       /* so did this one */
    bool unkept;        /* a pod could not be kept since the list began */
    bool disable_cgpu;
    bool late;
    bool swept; /* the specs that are not needed are removed, as of this checkpoint: */
    struct file_stamp swept_stamp;
    enum isolation means; /* what containers are given */
    bool planless;        /* no memory for the exchange */
    struct allot_counts counts;
};

/* The checkpoint and the plans. False: the checkpoint has a pod that the watch has not shown. */
bool allot_refresh(struct allot *a, bool after_allocate, struct err *e);

uint64_t allot_age(const struct allot *a, const struct ask *k);
void allot_refuse(struct allot *a, struct ask *k); /* because of k->why; frees it */
void allot_drop(struct ask *k);

/* What the container gets, into `reply`: an answer to Allocate, or with an ID the spec of it. */
enum errc allot_write(struct allot *a, const struct pod_match *c, struct str id, struct err *e);

/* Call before allot_write: whether MPS can serve the container. It serves a limited number of
 * containers on a card, and only containers with one card. */
enum errc allot_check_mps(const struct allot *a, const struct pod_match *c, struct err *e);

/* After that: what the container got, in the log. */
void allot_log(bool late, const struct pod_match *c);

/* Answers a PreStartContainer, if it is known how. */
void allot_try_start(struct allot *a, struct ask *k);
