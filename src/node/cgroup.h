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
 * Appends the path of the container's cgroup of version 2 to `out`. root: "/sys/fs/cgroup", where
 * version 2 or, beside version 1, its folder "unified" is. Walks at most CGROUP_DEPTH_MAX levels
 * and CGROUP_WALK_MAX folders. ERR_NOTFOUND: there is none; ERR_UNAVAILABLE: this machine has no
 * cgroups of version 2 there; ERR_LIMIT: the walk was too long.
 */
#define CGROUP_DEPTH_MAX 10
#define CGROUP_WALK_MAX  20000
enum errc cgroup_folder(struct str root, struct str id, struct buf *out, struct err *reterr)
    _must_use_;
