/*
 * What the kubelet has given: its checkpoint of devices, read again whenever the file has changed.
 * The kubelet writes it before it asks for the next container, and before PreStartContainer.
 */
#pragma once

#include "base/arena.h"
#include "base/file.h"
#include "codec/checkpoint.h"
#include "node/allot/roster.h"
#include "node/allot/specs.h"

/* Pods that the checkpoint names and the API server does not; the kubelet drops them late. */
#define TRUTH_GONE_MAX 512

struct truth_device {
    struct str id; /* absent: a free slot */
    const struct checkpoint_entry *owner;
};

struct truth {
    struct str path; /* borrowed, as all three */
    struct str resource;
    const struct specs *specs; /* of late binding */
    struct buf text;
    struct arena arena;
    struct checkpoint now;        /* views of text and arena */
    struct card_list *cards;      /* of the entries of our resource; in the arena */
    struct str *ids;              /* of their specs; absent: the answer names cards */
    struct truth_device *devices; /* by the hash of the ID, of our resource; in the arena */
    size_t n_slots;               /* a power of two; 0: no devices */
    struct file_stamp stamp;
    bool loaded;
    bool there;                    /* the file exists */
    uint64_t gone[TRUTH_GONE_MAX]; /* hashes of UIDs; a ring */
    size_t n_gone;
};

void truth_init(struct truth *t, struct str path, struct str resource, const struct specs *specs);
void truth_done(struct truth *t);

/* Reads the file if it has changed. A missing file is an empty checkpoint: the kubelet has given
 * nothing. On failure nothing is known. */
enum errc truth_load(struct truth *t, struct err *reterr) _must_use_;

/* Tells the roster. False: a pod of the checkpoint is not in the roster, and truth_forget has not
 * been called for it. after_allocate: see roster_truth_end. */
bool truth_tell(struct truth *t, struct roster *r, bool after_allocate);

/* The API server has shown that this pod has ended, or has removed it. The kubelet drops its
 * devices only when it writes the file the next time: after it has asked for the next pod's. */
void truth_forget_pod(struct truth *t, struct str uid);

/* The pods that the roster does not know now have gone from the API server. */
void truth_forget(struct truth *t, const struct roster *r);

/* The container that has this device of our resource; NULL: none. */
const struct checkpoint_entry *truth_owner(const struct truth *t, struct str device);
