/*
 * What one container gets: which cards, and how much of them, in the variables of gpushare's device
 * plugin; and the cards' device nodes, if they are wanted. Either as the answer to Allocate, or as
 * a CDI spec whose device that answer only names (late binding).
 */
#pragma once

#include "gpu/gpu_list.h"
#include "node/kubelet/devices.h"

#define ANSWER_CDI_KIND "cardpack.io/alloc"
#define ANSWER_ID_MAX   40

struct answer_settings {
    bool disable_cgpu;  /* the node has the label cgpu.disable.isolation=true */
    bool device_nodes;  /* list the device nodes too: for a runtime that is not NVIDIA's */
    bool limits;        /* the driver (R615 or newer) and NVIDIA's runtime limit the memory */
    struct str mps_dir; /* MPS is to serve the cards, with the pipe directories there; absent: no */
    struct device_unit unit;
    const char *dev;  /* of this process; NULL: "/dev" */
    const char *proc; /* NULL: "/proc" */
};

struct answer_want {
    const struct gpu_card *const *cards; /* in the order of their indices; at least one */
    size_t n_cards;
    const int64_t *dev_total; /* units of each card */
    int64_t container_units;  /* on all cards, each has the same share */
    int64_t pod_units;
    int64_t limit_units; /* on each card, with limits or MPS */
    uint32_t cores;      /* percent of each card, with MPS; 0: no limit */
};

/*
 * Appends an AllocateResponse with one grant. Such messages one after the other are one with all
 * grants.
 *
 *     NVIDIA_VISIBLE_DEVICES         UUIDs, of a slice its own: "GPU-...,GPU-..."
 *     ALIYUN_COM_GPU_MEM_IDX         indices: "0,2"
 *     ALIYUN_COM_GPU_MEM_POD         units of the pod
 *     ALIYUN_COM_GPU_MEM_CONTAINER   units of the container
 *     ALIYUN_COM_GPU_MEM_DEV         units of the (first) card
 *     CGPU_DISABLE                   "true", with disable_cgpu
 *     NVIDIA_GPU_MEMORY_REQUEST      0: a soft limit would stay in the cgroups above when the
 *                                    container's is removed (NVIDIA's guide to MPS v3)
 *     NVIDIA_GPU_MEMORY_LIMIT        MiB on each card, with limits; not for MIG slices, which the
 *                                    driver can't limit further
 *
 *     CUDA_MPS_PIPE_DIRECTORY, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
 *                                    with mps_dir, for one card that is no slice; also mounts of
 *                                    the pipe directory and of /dev/shm. The card is number 0 in
 *                                    the container: CUDA drops all limits if one names a card
 *                                    that is not visible
 *
 * ERR_UNAVAILABLE: with device_nodes, a card that was not seen since the start, so that its nodes
 * are not known. ERR_NOMEM. Nothing was appended then; a failure of `out` stays in it.
 */
enum errc answer_write(struct buf *out, const struct answer_settings *s,
                       const struct answer_want *w, struct err *reterr) _must_use_;

/*
 * The same variables, nodes and mounts as a CDI spec with the device `id`. A runtime sets them
 * after those of the pod and the image, and replaces equal names.
 */
enum errc answer_write_spec(struct buf *out, const struct answer_settings *s,
                            const struct answer_want *w, struct str id, struct err *reterr)
    _must_use_;

/*
 * Why a container that starts again must not start with the grant that the kubelet has kept of the
 * answer to its Allocate, whose cards these are; NULL: it may. The driver gives the numbers of
 * device nodes anew when it is loaded. mps_dir: as in struct answer_settings.
 */
const char *answer_find_stale(struct str kept, const struct gpu_card *const *cards, size_t n,
                              struct str mps_dir);

/*
 * Appends an AllocateResponse without a card: the name of the CDI device `id`, at most
 * ANSWER_ID_MAX bytes, and NVIDIA_VISIBLE_DEVICES=void, so that a runtime that ignores CDI shows no
 * card and never a wrong one.
 */
void answer_write_late(struct buf *out, struct str id);
