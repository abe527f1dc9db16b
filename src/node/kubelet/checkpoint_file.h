/*
 * What the kubelet has given: its checkpoint of devices, read again whenever the file has changed.
 * The kubelet writes it before it asks for the next container, and before PreStartContainer.
 */
#pragma once

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "kubelet/checkpoint.h"
#include "node/kubelet/specs.h"
#include "node/roster/roster.h"

/* Pods that the checkpoint names and the API server does not; the kubelet drops them late. */
#define CHECKPOINT_FILE_GONE_MAX 512

struct checkpoint_file_device {
    struct str id;
    const struct checkpoint_entry *owner;
};

struct checkpoint_file {
    struct str path; /* borrowed, as all three */
    struct str resource;
    const struct specs *specs; /* of late binding */
    struct buf text;
    struct arena arena;
    struct checkpoint now;   /* views of text and arena */
    struct card_list *cards; /* of the entries of our resource; in the arena */
    struct str *ids;         /* of their specs; absent: the answer names cards */
    struct map devices; /* struct checkpoint_file_device by ID, of our resource; in the arena */
    struct file_stamp stamp;
    bool loaded;
    bool there;                              /* the file exists */
    uint64_t gone[CHECKPOINT_FILE_GONE_MAX]; /* hashes of UIDs; a ring */
    size_t n_gone;
};

void checkpoint_file_init(struct checkpoint_file *t, struct str path, struct str resource,
                          const struct specs *specs);
void checkpoint_file_done(struct checkpoint_file *t);

/* Reads the file if it has changed. A missing file is an empty checkpoint: the kubelet has given
 * nothing. On failure nothing is known. */
enum errc checkpoint_file_load(struct checkpoint_file *t, struct err *reterr) _must_use_;

/* Applies it to the roster. False: a pod of the checkpoint is not in the roster, and
 * checkpoint_file_forget has not been called for it. after_allocate: see roster_truth_end. */
bool checkpoint_file_apply(struct checkpoint_file *t, struct roster *r, bool after_allocate);

/* The API server has shown that this pod has ended, or has removed it. The kubelet drops its
 * devices only when it writes the file the next time: after it has asked for the next pod's. */
void checkpoint_file_forget_pod(struct checkpoint_file *t, struct str uid);

/* The pods that the roster does not know now have gone from the API server. */
void checkpoint_file_forget(struct checkpoint_file *t, const struct roster *r);

/* The container that has this device of our resource; NULL: none. */
const struct checkpoint_entry *checkpoint_file_owner(const struct checkpoint_file *t,
                                                     struct str device);
