/*
 * Control groups of containers: which container a process is in, and the folder of a container's
 * cgroup. A container's cgroup is named after the container's ID by the runtime:
 *
 *     .../ID                         containerd and dockerd with the driver cgroupfs
 *     .../crio-ID                    cri-o with the driver cgroupfs
 *     .../cri-containerd-ID.scope    with the driver systemd; also crio-ID.scope, docker-ID.scope
 *     .../SLICE:cri-containerd:ID    the kubelet with systemd, containerd with cgroupfs
 *
 * A container can make cgroups below its own, with any names. So of several names the outermost
 * counts, which the container can't change.
 */
#pragma once

#include "base/buf.h"
#include "base/limit.h"

#define CGROUP_ID_LEN   ((size_t)64)
#define CGROUP_ID_BYTES (CGROUP_ID_LEN + 1)

/* /proc/PID/cgroup: one line a hierarchy of version 1, each with a path of at most 4096 bytes. */
#define CGROUP_TEXT_MAX (64 * KIB)

/* 64 lower-case hexadecimal digits. */
bool cgroup_is_id(struct str text);

/* The container's ID in the name of a cgroup; absent: it is not the name of a container's. */
struct str cgroup_name_id(struct str name);

/* The same in the text of /proc/PID/cgroup, of version 1 or 2. Absent: the process is in no
 * container, or the lines name several. Seen from another cgroup namespace, a path begins with
 * "/..". A view of the text. */
struct str cgroup_text_id(struct str text);

/* Reads PROC/PID/cgroup into the scratch; *ret_id is a view of it, absent as above. ERR_NOTFOUND:
 * there is no such process. proc: "/proc". */
enum errc cgroup_process_id(struct str proc, uint32_t pid, struct buf *scratch, struct str *ret_id,
                            struct err *reterr) _must_use_;

/*
 * Appends the folder below root of the cgroup of version 2 that the process `pid`, this one, is in.
 * PROC/PID/cgroup names it, unless the process has a cgroup namespace of its own, in which its
 * cgroup is "/": then it is the container's cgroup whose cgroup.procs has the process. False: not
 * found; out has anything then.
 */
bool cgroup_own(struct str root, struct str proc, uint32_t pid, struct buf *out) _must_use_;

/*
 * A walk through all cgroups of version 2, in pieces that an event loop can do between other work:
 * the kernel takes some 50 us for each folder that is read. Reads no folder below a container's
 * cgroup, and at most CGROUP_DEPTH_MAX levels and CGROUP_WALK_MAX folders. Folders that come or go
 * meanwhile may be in it or not. The walk must not move in memory.
 */
#define CGROUP_DEPTH_MAX  10
#define CGROUP_WALK_MAX   20000
#define CGROUP_PATH_BYTES ((size_t)4096)

enum cgroup_step {
    CGROUP_CONTAINER, /* a container's cgroup */
    CGROUP_MORE,      /* as many folders as asked for; the walk goes on */
    CGROUP_END,       /* there are no more */
    CGROUP_TOO_MANY,  /* ended: too many folders, or too few descriptors */
};

struct cgroup_walk {
    char bytes[CGROUP_PATH_BYTES];
    struct buf path;                  /* on bytes: of the last folder, or of what was found in it */
    void *dirs[CGROUP_DEPTH_MAX];     /* DIR: the folders that are open, the root first */
    size_t lengths[CGROUP_DEPTH_MAX]; /* of their paths */
    unsigned depth;                   /* how many */
    unsigned folders;                 /* seen so far */
};

/* root: "/sys/fs/cgroup", where version 2 or, beside version 1, its folder "unified" is.
 * ERR_UNAVAILABLE: this machine has no cgroups of version 2 there. */
enum errc cgroup_walk_begin(struct cgroup_walk *w, struct str root, struct err *reterr) _must_use_;

/* Goes on past at most *most folders, which it counts down, until the next container. *ret_id and
 * w->path are valid until the next call. */
enum cgroup_step cgroup_walk_next(struct cgroup_walk *w, unsigned *most, struct str *ret_id);

void cgroup_walk_end(struct cgroup_walk *w); /* at any time; of one that is all zero, too */
