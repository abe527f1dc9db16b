/*
 * A double of NVIDIA's management library: its world is the file that CARDPACK_NVML_WORLD names.
 * The file is read again at each call, so that a test can change it; README.md has its format. The
 * interface is written down here once more, apart from the program's own declarations.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT   __attribute__((visibility("default")))
#define CARDS    64
#define SLICES   16
#define PROCS    64
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
};

struct card {
    char uuid[TEXT];
    char name[TEXT];
    unsigned int bus, minor, pending, failure, rows, pages, hang;
    unsigned long long mib, used, ecc;
    int error; /* what every call for the card answers */
    unsigned int mig, n_slices, n_procs;
    struct slice slices[SLICES];
    struct process procs[PROCS];
};

struct event {
    unsigned long long number;
    char uuid[TEXT];
    unsigned int xid, gi;
};

struct world {
    unsigned int n, init_error, hang, no_events;
    struct card cards[CARDS];
    struct event events[CARDS];
    unsigned int n_events;
};

/* A handle: the UUID that it stands for. Handles are never freed, as a late call may use them. */
struct nvmlDevice {
    char uuid[TEXT];
    unsigned int session;
};

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

struct memory {
    unsigned long long total, free, used;
};

struct event_data {
    struct nvmlDevice *device;
    unsigned long long type, data;
    unsigned int gi, ci;
};

struct attributes {
    unsigned int counts[6], gpu_slices, compute_slices;
    unsigned long long mib;
};

struct process_info {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gi, ci;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct world world;
static struct nvmlDevice handles[CARDS * (SLICES + 1)];
static unsigned int n_handles;
static char listed[CARDS][TEXT]; /* at the init: NVML lists cards only then */
static unsigned int n_listed, inits;
static unsigned long long seen; /* events up to this number were delivered */

static unsigned int number(const char *line, const char *key, unsigned int otherwise)
{
    const char *at = strstr(line, key);
    unsigned int n = 0;
    if (at == NULL)
        return otherwise;
    at += strlen(key);
    unsigned int base = strncmp(at, "0x", 2) == 0 ? 16 : 10;
    for (at += base == 16 ? 2 : 0; isxdigit((unsigned char)*at); at++)
        n = n * base +
            (unsigned int)(isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
    return n;
}

static void word(const char *line, const char *key, char out[TEXT])
{
    const char *at = strstr(line, key);
    size_t n = at == NULL ? 0 : strcspn(at + strlen(key), " \n");
    out[0] = '\0';
    if (n > 0 && n < TEXT) {
        memcpy(out, at + strlen(key), n);
        out[n] = '\0';
    }
    for (char *c = out; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
}

static void read_card(const char *line, struct card *c)
{
    memset(c, 0, sizeof(*c));
    word(line, " uuid=", c->uuid);
    word(line, " name=", c->name);
    c->bus = number(line, " bus=", 0);
    c->minor = number(line, " minor=", 0);
    c->mib = number(line, " mib=", 1024);
    c->used = number(line, " used=", 0);
    c->error = (int)number(line, " error=", 0);
    c->rows = number(line, " rows=", 1);
    c->pending = number(line, " pending=", 0);
    c->failure = number(line, " failure=", 0);
    c->pages = number(line, " pages=", 0);
    c->ecc = number(line, " ecc=", 0);
    c->mig = number(line, " mig=", 0);
    c->hang = number(line, " hang=", 0);
}

static void read_line(struct world *w, const char *line)
{
    struct card *c = w->n == 0 ? NULL : &w->cards[w->n - 1];
    if (strncmp(line, "init ", 5) == 0)
        w->init_error = number(line, " error=", 0);
    else if (strncmp(line, "hang", 4) == 0)
        w->hang = 1;
    else if (strncmp(line, "no-events", 9) == 0)
        w->no_events = 1;
    else if (strncmp(line, "card ", 5) == 0 && w->n < CARDS)
        read_card(line, &w->cards[w->n++]);
    else if (strncmp(line, "slice ", 6) == 0 && c != NULL && c->n_slices < SLICES) {
        struct slice *s = &c->slices[c->n_slices++];
        word(line, " uuid=", s->uuid);
        word(line, " profile=", s->profile);
        s->gi = number(line, " gi=", 0);
        s->ci = number(line, " ci=", 0);
        s->mib = number(line, " mib=", 0);
    } else if (strncmp(line, "process ", 8) == 0 && c != NULL && c->n_procs < PROCS) {
        c->procs[c->n_procs++] =
            (struct process){number(line, " pid=", 0), number(line, " mib=", 0)};
    } else if (strncmp(line, "event ", 6) == 0 && w->n_events < CARDS) {
        struct event *e = &w->events[w->n_events++];
        e->number = number(line, " number=", 0);
        word(line, " uuid=", e->uuid);
        e->xid = number(line, " xid=", 0);
        e->gi = number(line, " gi=", NO_VALUE);
    }
}

/* With the lock held. While a test replaces the file, the old world stays. */
static void look(void)
{
    char line[512];
    const char *path = getenv("CARDPACK_NVML_WORLD");
    FILE *f = path == NULL ? NULL : fopen(path, "re");
    if (f == NULL)
        return;
    memset(&world, 0, sizeof(world));
    while (fgets(line, sizeof(line), f) != NULL)
        read_line(&world, line);
    (void)fclose(f);
}

/* A call that does not return until the file says so. */
static void hang(unsigned int (*hangs)(void))
{
    const struct timespec step = {.tv_nsec = 2000000};
    while (hangs() != 0) {
        (void)pthread_mutex_unlock(&lock);
        (void)nanosleep(&step, NULL);
        (void)pthread_mutex_lock(&lock);
        look();
    }
}

static unsigned int hangs_now(void)
{
    return world.hang;
}

static void begin(void)
{
    (void)pthread_mutex_lock(&lock);
    look();
    hang(hangs_now);
}

static int end(int code)
{
    (void)pthread_mutex_unlock(&lock);
    return code;
}

static struct nvmlDevice *handle(const char *uuid)
{
    for (unsigned int i = 0; i < n_handles; i++)
        if (strcmp(handles[i].uuid, uuid) == 0)
            return &handles[i];
    struct nvmlDevice *d = &handles[n_handles++];
    memcpy(d->uuid, uuid, TEXT);
    return d;
}

/* The card of a handle, and its slice if it is one. NULL: it is gone. */
static struct card *find(const struct nvmlDevice *d, struct slice **slice)
{
    *slice = NULL;
    for (unsigned int i = 0; i < world.n; i++) {
        struct card *c = &world.cards[i];
        if (strcmp(c->uuid, d->uuid) == 0)
            return c;
        for (unsigned int j = 0; j < c->n_slices; j++)
            if (strcmp(c->slices[j].uuid, d->uuid) == 0) {
                *slice = &c->slices[j];
                return c;
            }
    }
    return NULL;
}

/* The lines that each call for a card begins and ends with. */
#define CARD_CALL(d, work)                            \
    do {                                              \
        struct slice *s;                              \
        int code = 15;                                \
        begin();                                      \
        struct card *c = find((d), &s);               \
        if (inits == 0)                               \
            code = 1;                                 \
        else if (c != NULL && (code = c->error) == 0) \
            (work);                                   \
        (void)s;                                      \
        return end(code);                             \
    } while (0)

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int code);
EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned int n);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned int n);
EXPORT int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned int n);
EXPORT int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct pci *ret);
EXPORT int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct memory *ret);
EXPORT int nvmlDeviceGetMinorNumber(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct memory_v2 *ret);
EXPORT int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned int *now, unsigned int *later);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice *d, unsigned int i,
                                               struct nvmlDevice **ret);
EXPORT int nvmlDeviceGetGpuInstanceId(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetComputeInstanceId(struct nvmlDevice *d, unsigned int *ret);
EXPORT int nvmlDeviceGetAttributes_v2(struct nvmlDevice *d, struct attributes *ret);
EXPORT int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned int *corrected,
                                     unsigned int *uncorrected, unsigned int *pending,
                                     unsigned int *failure);
EXPORT int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                       unsigned long long *ret);
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(struct nvmlDevice *d, int *ret);
EXPORT int nvmlDeviceGetUtilizationRates(struct nvmlDevice *d, unsigned int ret[2]);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                                   struct process_info *ret);
EXPORT int nvmlEventSetCreate(void **ret);
EXPORT int nvmlEventSetFree(void *set);
EXPORT int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *ret);
EXPORT int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types, void *set);
EXPORT int nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned int timeout_ms);

int nvmlInit_v2(void)
{
    begin();
    if (world.init_error != 0)
        return end((int)world.init_error);
    inits++;
    n_listed = 0;
    for (unsigned int i = 0; i < world.n; i++)
        if (world.cards[i].error != 15)
            memcpy(listed[n_listed++], world.cards[i].uuid, TEXT);
    return end(0);
}

int nvmlShutdown(void)
{
    begin();
    int code = inits == 0 ? 1 : 0;
    inits -= inits > 0;
    return end(code);
}

const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *out, unsigned int n)
{
    (void)snprintf(out, n, "550.54.15");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *ret)
{
    begin();
    *ret = n_listed;
    return end(inits == 0 ? 1 : (int)world.init_error);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct nvmlDevice **ret)
{
    begin();
    if (i >= n_listed)
        return end(2);
    *ret = handle(listed[i]);
    return end(0);
}

int nvmlDeviceGetUUID(struct nvmlDevice *d, char *out, unsigned int n)
{
    CARD_CALL(d, (void)snprintf(out, n, "%s", d->uuid));
}

int nvmlDeviceGetName(struct nvmlDevice *d, char *out, unsigned int n)
{
    CARD_CALL(d, (void)snprintf(out, n, "%.40s%s%.40s", c->name, s == NULL ? "" : " MIG ",
                                s == NULL ? "" : s->profile));
}

int nvmlDeviceGetPciInfo_v3(struct nvmlDevice *d, struct pci *ret)
{
    CARD_CALL(d, *ret = (struct pci){.bus = c->bus});
}

int nvmlDeviceGetMemoryInfo(struct nvmlDevice *d, struct memory *ret)
{
    CARD_CALL(d, *ret = ((struct memory){c->mib << 20, (c->mib - c->used) << 20, c->used << 20}));
}

int nvmlDeviceGetMinorNumber(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = c->minor);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvmlDevice *d, struct memory_v2 *ret)
{
    if (ret->version != (2U << 24 | 40U))
        return 25;
    CARD_CALL(d, (ret->total = (s == NULL ? c->mib : s->mib) << 20, ret->used = c->used << 20));
}

int nvmlDeviceGetMigMode(struct nvmlDevice *d, unsigned int *now, unsigned int *later)
{
    CARD_CALL(d, *now = *later = c->mig);
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, *ret = 7);
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvmlDevice *d, unsigned int i,
                                        struct nvmlDevice **ret)
{
    CARD_CALL(d, i < c->n_slices ? (void)(*ret = handle(c->slices[i].uuid)) : (void)(code = 6));
}

int nvmlDeviceGetGpuInstanceId(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3) : (void)(*ret = s->gi));
}

int nvmlDeviceGetComputeInstanceId(struct nvmlDevice *d, unsigned int *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3) : (void)(*ret = s->ci));
}

int nvmlDeviceGetAttributes_v2(struct nvmlDevice *d, struct attributes *ret)
{
    CARD_CALL(d, s == NULL ? (void)(code = 3)
                           : (void)(*ret = (struct attributes){
                                        .gpu_slices = 1, .compute_slices = 1, .mib = s->mib}));
}

int nvmlDeviceGetRemappedRows(struct nvmlDevice *d, unsigned int *corrected,
                              unsigned int *uncorrected, unsigned int *pending,
                              unsigned int *failure)
{
    CARD_CALL(d, (*corrected = *uncorrected = 0, *pending = c->pending, *failure = c->failure,
                  code = c->rows == 0 ? 3 : 0));
}

int nvmlDeviceGetTotalEccErrors(struct nvmlDevice *d, int type, int counter,
                                unsigned long long *ret)
{
    if (type != 1 || counter != 0)
        return 2;
    CARD_CALL(d, *ret = c->ecc);
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvmlDevice *d, int *ret)
{
    CARD_CALL(d, *ret = (int)c->pages);
}

int nvmlDeviceGetUtilizationRates(struct nvmlDevice *d, unsigned int ret[2])
{
    CARD_CALL(d, ret[0] = ret[1] = 37);
}

static int processes(const struct card *c, unsigned int *n, struct process_info *ret)
{
    unsigned int room = *n;
    *n = c->n_procs;
    if (room < c->n_procs)
        return 7;
    for (unsigned int i = 0; i < c->n_procs; i++)
        ret[i] = (struct process_info){c->procs[i].pid, c->procs[i].mib << 20, NO_VALUE, NO_VALUE};
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvmlDevice *d, unsigned int *n,
                                            struct process_info *ret)
{
    CARD_CALL(d, code = processes(c, n, ret));
}

int nvmlEventSetCreate(void **ret)
{
    static int set;
    *ret = &set;
    begin();
    return end(world.no_events != 0 ? 3 : 0);
}

int nvmlEventSetFree(void *set)
{
    return set == NULL ? 2 : 0;
}

int nvmlDeviceGetSupportedEventTypes(struct nvmlDevice *d, unsigned long long *ret)
{
    CARD_CALL(d, *ret = 0x1f);
}

int nvmlDeviceRegisterEvents(struct nvmlDevice *d, unsigned long long types, void *set)
{
    if (set == NULL || (types & ~0x1fULL) != 0)
        return 2;
    CARD_CALL(d, code = 0);
}

/* The next event by its number. */
static int next(struct event_data *ret)
{
    for (unsigned int i = 0; i < world.n_events; i++) {
        const struct event *e = &world.events[i];
        if (e->number <= seen)
            continue;
        seen = e->number;
        *ret = (struct event_data){handle(e->uuid), 0x8, e->xid, e->gi, NO_VALUE};
        return 0;
    }
    return 10;
}

int nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned int timeout_ms)
{
    const struct timespec step = {.tv_nsec = 5000000};
    for (unsigned int waited = 0;; waited += 5) {
        begin();
        int code = set == NULL ? 2 : next(ret);
        if (end(code) != 10 || waited >= timeout_ms)
            return code;
        (void)nanosleep(&step, NULL);
    }
}
