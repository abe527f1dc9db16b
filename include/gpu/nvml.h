/*
 * NVIDIA's management library, opened at run time: no build and no start needs it. Every call may
 * block for seconds, or for ever if the driver hangs, so only the watch's own thread makes calls
 * (gpu_watch.h).
 *
 * The declarations of the library's interface are in nvml.c. A function that an older driver lacks
 * is tried by its older name, and answers NVML_FUNCTION_NOT_FOUND if there is none. Without the
 * functions that a list of cards needs, nvml_open fails and names the first that is missing.
 *
 * All calls return NVML's own code, because the code decides what the caller does; 0 is success.
 */
#pragma once

#include "base/err.h"
#include "gpu/limit.h"

struct nvml;
struct nvml_device; /* a card or a slice; valid until nvml_shutdown */
struct nvml_events;

enum nvml_code {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_OPERATING_SYSTEM = 17,
    NVML_VERSION_MISMATCH = 18, /* the library is of another version than the loaded driver */
    NVML_MEMORY = 20,
    NVML_UNKNOWN = 999,
};

/* The card itself is away until its reset. */
static inline bool nvml_is_away(int code)
{
    return code == NVML_GPU_IS_LOST || code == NVML_RESET_REQUIRED;
}

/* Types of events, as bits. */
#define NVML_EVENT_SINGLE_BIT UINT64_C(0x1)
#define NVML_EVENT_DOUBLE_BIT UINT64_C(0x2)
#define NVML_EVENT_XID        UINT64_C(0x8)
#define NVML_EVENT_MIG_CONFIG UINT64_C(0x100)

/* An instance id of a card without MIG, and of an event that belongs to no instance. */
#define NVML_NO_INSTANCE UINT32_MAX

/* Bytes of memory that the driver does not report. */
#define NVML_BYTES_UNKNOWN UINT64_MAX

/* A hard limit of memory that is none. */
#define NVML_LIMIT_NONE UINT64_MAX

/* Which processes may use a card. */
enum nvml_compute_mode {
    NVML_COMPUTE_DEFAULT = 0, /* several at a time */
    NVML_COMPUTE_PROHIBITED = 2,
    NVML_COMPUTE_EXCLUSIVE_PROCESS = 3,
};

/* What a card needs by the driver's judgement: values of NVML_FI_DEV_GET_GPU_RECOVERY_ACTION. */
enum nvml_recovery {
    NVML_RECOVERY_NONE = 0,
    NVML_RECOVERY_RESET = 1,
    NVML_RECOVERY_REBOOT = 2,
    NVML_RECOVERY_DRAIN_P2P = 3, /* and be asked again */
    NVML_RECOVERY_DRAIN_AND_RESET = 4,
    NVML_RECOVERY_IMEX_DOMAIN = 5,
    NVML_RECOVERY_BUS_RESET = 6,
    NVML_RECOVERY_SYSTEM_REBOOT = 7,
};

struct nvml_memory {
    uint64_t total; /* bytes; includes what the driver reserves */
    uint64_t used;
    uint64_t free;
    uint64_t reserved; /* 0 before R510, which do not report it; `used` then includes it */
};

struct nvml_event {
    struct nvml_device *device; /* of a slice: its parent */
    uint64_t type;              /* NVML_EVENT_ */
    uint64_t data;              /* the number of an XID */
    uint32_t gpu_instance;
    uint32_t compute_instance;
};

struct nvml_rows {
    uint32_t corrected; /* rows remapped after a corrected error */
    uint32_t uncorrected;
    bool pending; /* a remapping takes effect at the next reset */
    bool failure; /* no spare row was left */
};

struct nvml_process {
    uint32_t pid;
    uint64_t bytes; /* of the card's memory; NVML_BYTES_UNKNOWN */
    uint32_t gpu_instance;
    uint32_t compute_instance;
    bool mps; /* a client of MPS; the list that it is in says so, and not NVML */
};

/* Bytes of a card's memory, for all processes of a cgroup together. */
struct nvml_limits {
    uint64_t soft; /* the driver may end processes that use more than this */
    uint64_t hard; /* an allocation beyond it fails; NVML_LIMIT_NONE */
    uint64_t used;
};

struct nvml_attributes {
    uint32_t gpu_slices;
    uint32_t compute_slices;
    uint64_t memory_bytes;
};

/*
 * path: of libnvidia-ml.so.1, or its name alone for the loader's search. ERR_NOTFOUND: the library
 * can't be loaded. ERR_CONFLICT: it lacks a function that is needed.
 */
enum errc nvml_open(const char *path, struct nvml **ret, struct err *reterr) _must_use_;

/* Unloads the library. No call may be under way, and nvml_shutdown was called. Returns NULL. */
struct nvml *nvml_close(struct nvml *n);

int nvml_init(struct nvml *n);
int nvml_shutdown(struct nvml *n);

/* "GPU is lost", as the library says it. Valid until nvml_close. */
const char *nvml_text(const struct nvml *n, int code);

/* The version of the driver; ret is NUL-terminated. */
int nvml_driver(const struct nvml *n, char ret[GPU_NAME_BYTES]);

int nvml_count(const struct nvml *n, uint32_t *ret);
int nvml_card(const struct nvml *n, uint32_t i, struct nvml_device **ret);
int nvml_uuid(const struct nvml *n, struct nvml_device *d, char ret[GPU_UUID_BYTES]);
int nvml_name(const struct nvml *n, struct nvml_device *d, char ret[GPU_NAME_BYTES]);
int nvml_pci(const struct nvml *n, struct nvml_device *d, char ret[GPU_PCI_BYTES]);
int nvml_minor(const struct nvml *n, struct nvml_device *d, uint32_t *ret);
int nvml_memory(const struct nvml *n, struct nvml_device *d, struct nvml_memory *ret);

/* Whether the card is in MIG mode now. NVML_NOT_SUPPORTED: it has no such mode. */
int nvml_mig_mode(const struct nvml *n, struct nvml_device *d, bool *ret);
/* The most slices that the card may have, and one of them; NVML_NOT_FOUND: there is none at i. */
int nvml_mig_count(const struct nvml *n, struct nvml_device *d, uint32_t *ret);
int nvml_mig_device(const struct nvml *n, struct nvml_device *d, uint32_t i,
                    struct nvml_device **ret);
int nvml_instances(const struct nvml *n, struct nvml_device *slice, uint32_t *ret_gpu,
                   uint32_t *ret_compute);
int nvml_attributes(const struct nvml *n, struct nvml_device *slice, struct nvml_attributes *ret);

/* Health. NVML_NOT_SUPPORTED and NVML_FUNCTION_NOT_FOUND: the card or the driver does not know. */
int nvml_rows(const struct nvml *n, struct nvml_device *d, struct nvml_rows *ret);
int nvml_uncorrected(const struct nvml *n, struct nvml_device *d, uint64_t *ret); /* since reset */
int nvml_pages_pending(const struct nvml *n, struct nvml_device *d, bool *ret);
/* enum nvml_recovery, or a newer value. Drivers before R570 do not report it. */
int nvml_recovery(const struct nvml *n, struct nvml_device *d, uint32_t *ret);
int nvml_retired_pages(const struct nvml *n, struct nvml_device *d, uint32_t *ret);

/* Percent of the last sample period. */
int nvml_utilisation(const struct nvml *n, struct nvml_device *d, uint32_t *ret_gpu,
                     uint32_t *ret_memory);

/*
 * Processes with a compute context. *n_ret: the room in ret, and on return the number. NVML_MEMORY:
 * no memory for a copy. NVML_INSUFFICIENT_SIZE: there are more; *n_ret is their number.
 */
int nvml_processes(const struct nvml *n, struct nvml_device *d, struct nvml_process *ret,
                   uint32_t *n_ret);

/* The same for clients of MPS. */
int nvml_mps_processes(const struct nvml *n, struct nvml_device *d, struct nvml_process *ret,
                       uint32_t *n_ret);

int nvml_compute_mode(const struct nvml *n, struct nvml_device *d, enum nvml_compute_mode *ret);

/*
 * The driver's own limits of memory, of R615 and newer, for a card and a cgroup. cgroup: the full
 * path of its folder in /sys/fs/cgroup. Both answer NVML_FUNCTION_NOT_FOUND and NVML_NOT_SUPPORTED
 * where the driver has no limits, NVML_INVALID_ARGUMENT for a slice, and NVML_OPERATING_SYSTEM if
 * the folder can't be opened.
 *
 * Set: soft 0 and hard NVML_LIMIT_NONE clear the limits. The driver adds a soft limit to the
 * reservations of the cgroups above and takes it back only when the soft limit is set to 0, so
 * clear it before the cgroup is removed. NVML_NO_PERMISSION; NVML_INVALID_ARGUMENT: also soft >
 * hard, or a limit above the card's memory. NVML_NOT_FOUND: the cgroup can have no limits.
 *
 * Get: a cgroup without limits has those of the nearest one above. NVML_NOT_FOUND: there are none.
 */
int nvml_limits_set(const struct nvml *n, struct nvml_device *d, const char *cgroup, uint64_t soft,
                    uint64_t hard);
int nvml_limits_get(const struct nvml *n, struct nvml_device *d, const char *cgroup,
                    struct nvml_limits *ret);

int nvml_events_new(const struct nvml *n, struct nvml_events **ret);
void nvml_events_free(const struct nvml *n, struct nvml_events *s); /* accepts NULL */
int nvml_events_supported(const struct nvml *n, struct nvml_device *d, uint64_t *ret_types);
int nvml_events_register(const struct nvml *n, struct nvml_events *s, struct nvml_device *d,
                         uint64_t types);
/* NVML_TIMEOUT: no event in that time. */
int nvml_events_wait(const struct nvml *n, struct nvml_events *s, uint32_t timeout_ms,
                     struct nvml_event *ret);
