/*
 * The world of the double, as the file that CARDPACK_NVML_WORLD names describes it; README.md has
 * its format. The file is read again at each call, so that a test can change it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CARDS    64
#define SLICES   16
#define PROCS    512
#define TEXT     96
#define NO_VALUE 0xFFFFFFFFu

struct process {
    unsigned int pid;
    unsigned long long mib;
};

struct slice {
    char uuid[TEXT];
    char profile[TEXT];
    unsigned int gi, ci;
    unsigned long long mib;
    int error, memory_error; /* as those of a card */
};

struct card {
    char uuid[TEXT];
    char name[TEXT];
    unsigned int bus, minor, pending, failure, rows, pages, compute_mode;
    unsigned long long mib, used, reserved, ecc;
    unsigned int anew;         /* the errors are counted from the driver's start of the card */
    unsigned int counted;      /* `used` grows with the processes */
    unsigned int recovery;     /* NO_VALUE: the driver does not know the field */
    unsigned int memory_error; /* what the question for the memory answers */
    int error;                 /* what every call for the card answers */
    unsigned int mig, n_slices, n_procs, n_mps;
    struct slice slices[SLICES];
    struct process procs[PROCS];
    struct process mps[PROCS]; /* clients of MPS */
};

struct event {
    unsigned long long number;
    char uuid[TEXT];
    unsigned int xid, gi;
};

/* Arrays last: only what is in front of them is cleared. */
struct world {
    unsigned int n, n_events, init_error, hang, slow_ms, no_events;
    unsigned int init_unprivileged, limits_unprivileged; /* without CAP_SYS_ADMIN */
    unsigned int limits, limits_error, limits_unset, limits_ignored, limits_denied;
    unsigned int protected_memory; /* processes are told in the longer struct */
    unsigned int mig_monitor;      /* the process has the capability to see MIG cards as a whole */
    unsigned int shift;            /* 1 + the slice before which the next world begins; 0: none */
    struct card cards[CARDS];
    struct event events[CARDS];
};

/* A handle: the UUID that it stands for. Handles are never freed, as a late call may use them. */
struct nvmlDevice {
    char uuid[TEXT];
    unsigned int session;
};

extern struct world world;
extern unsigned int inits; /* calls of nvmlInit without their nvmlShutdown */

/* Takes the lock and reads the file; waits while it says so. Each call of NVML begins with it. */
void world_begin(void);
/* With the lock: the device nodes are open, as README.md describes it; idempotent. */
void world_open_devices(void);
void world_close_devices(void);
/* With the lock: whether nothing has had the cards open at some time since the world's beginning.
 */
bool world_started_again(void);
/* With the lock: the file with .next at its end takes the place of the world's. */
void world_shift(void);
/* Gives the lock back. Returns code. */
int world_end(int code);
/* Whether this process has CAP_SYS_ADMIN. */
bool world_privileged(void);

struct nvmlDevice *world_handle(const char *uuid);
/* The card of a handle, and its slice if it is one. NULL: it is gone. */
struct card *world_find(const struct nvmlDevice *d, struct slice **slice);

/* What every call for the card or the slice answers. */
static inline int world_code(const struct card *c, const struct slice *s)
{
    if (inits == 0)
        return 1;
    if (c == NULL)
        return 15;
    return c->error == 0 && s != NULL ? s->error : c->error;
}

/* The lines that each call for a card begins and ends with. */
#define CARD_CALL(d, work)                    \
    do {                                      \
        struct slice *s;                      \
        world_begin();                        \
        struct card *c = world_find((d), &s); \
        int code = world_code(c, s);          \
        if (c != NULL && code == 0)           \
            (work);                           \
        return world_end(code);               \
    } while (0)

#define EXPORT __attribute__((visibility("default")))
