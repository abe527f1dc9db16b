/*
 * A double of CUDA's driver library for `run`: what its processes use is written into the world of
 * NVML's double (tests/nvml/README.md), and taken away when they end, however they end. The
 * interface is written down here once more, apart from cuda.c. Where mps_double.py serves, they are
 * its clients.
 *
 * DOUBLE_LIES names what it does wrong: "processes" (NVML does not list them), "xid" (a bad store
 * is XID 79), "shm" (MPS needs no common /dev/shm), "caps" (no limit of multiprocessors).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum code {
    OK = 0,
    INVALID = 1,
    NO_MEMORY = 2,
    NO_DEVICE = 100,
    FAULTED = 700,
    NO_MPS = 805
};

#define CONTEXT_MIB 300
#define PROCESSORS  100

static unsigned long long mib;
static int context;
static int bad;     /* a kernel */
static int good;    /* another one */
static int faulted; /* the last kernel did */
static int mps;     /* this process is a client of it */
static int user;    /* its PID */
static int processors = PROCESSORS;
static int alive[2]; /* a pipe that breaks when it ends */

static int lies(const char *what)
{
    const char *lie = getenv("DOUBLE_LIES");
    return lie != NULL && strcmp(lie, what) == 0;
}

/* Writes the world anew, without the lines that begin so, and with one more behind the card's. */
static void edit(const char *without, const char *more)
{
    static char text[65536];
    char path[600];
    char card[128];
    const char *world = getenv("CARDPACK_NVML_WORLD");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)snprintf(path, sizeof(path), "%s.lock", world);
    (void)snprintf(card, sizeof(card), "card uuid=%s", visible == NULL ? "" : visible);
    int lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    FILE *from = flock(lock, LOCK_EX) == 0 ? fopen(world, "re") : NULL;
    (void)snprintf(path, sizeof(path), "%s.fresh", world);
    FILE *to = from == NULL ? NULL : fopen(path, "we");
    text[from == NULL ? 0 : fread(text, 1, sizeof(text) - 1, from)] = '\0';
    for (char *line = text, *end = NULL; to != NULL && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        if (without[0] == '\0' || strncmp(line, without, strlen(without)) != 0)
            (void)fprintf(to, "%s\n", line);
        if (strncmp(line, card, strlen(card)) == 0)
            (void)fputs(more, to);
    }
    if (to != NULL && fclose(to) == 0)
        (void)rename(path, world);
    if (from != NULL)
        (void)fclose(from);
    (void)close(lock);
}

static void tell(int there)
{
    char mine[64];
    char line[128];
    (void)snprintf(mine, sizeof(mine), "%s pid=%d ", mps != 0 ? "mps" : "process", user);
    (void)snprintf(line, sizeof(line), "%smib=%llu\n", mine, mib + CONTEXT_MIB);
    if (!lies("processes"))
        edit(mine, there != 0 ? line : "");
}

/* Another process waits for this one's end, and takes its line away. */
static void watch(void)
{
    char byte = 0;
    user = (int)getpid();
    if (pipe(alive) != 0 || fork() != 0)
        return;
    for (int fd = 0; fd < 64; fd++) {
        if (fd != alive[0])
            (void)close(fd);
    }
    while (read(alive[0], &byte, 1) > 0)
        ;
    tell(0);
    _exit(0);
}

/* What the daemon says of its /dev/shm, and of this client's part of the card. */
static int served(const char *answer)
{
    struct stat st = {.st_ino = 0};
    char mine[64];
    (void)stat("/dev/shm", &st);
    (void)snprintf(mine, sizeof(mine), "%llu %llu ", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    if (strncmp(answer, mine, strlen(mine)) != 0 && !lies("shm"))
        return NO_MPS;
    processors = lies("caps") ? PROCESSORS : 0;
    for (const char *c = strrchr(answer, ' ') + 1; !lies("caps") && *c != '\0'; c++)
        processors = processors * 10 + (*c - '0');
    return OK;
}

int cuInit(unsigned int flags)
{
    char answer[64] = "";
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s/control",
                   getenv("CUDA_MPS_PIPE_DIRECTORY"));
    mps = access(to.sun_path, F_OK) == 0;
    int fd =
        mps != 0 ? socket(AF_UNIX, SOCK_SEQPACKET, 0) : -1; /* open as long as this process is */
    if (mps != 0 &&
        (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || send(fd, "client", 6, 0) != 6 ||
         recv(fd, answer, sizeof(answer) - 1, 0) <= 0 || served(answer) != OK))
        return NO_MPS;
    return flags == 0 && getenv("CARDPACK_NVML_WORLD") != NULL ? OK : NO_DEVICE;
}

int cuDeviceGet(int *ret, int ordinal)
{
    *ret = 0;
    return ordinal == 0 ? OK : INVALID;
}

int cuDeviceGetAttribute(int *ret, int attribute, int device)
{
    *ret = attribute == 16 ? processors : 0;
    return device == 0 ? OK : INVALID;
}

int cuDevicePrimaryCtxRetain(void **ret, int device)
{
    *ret = &context;
    watch();
    tell(1);
    return device == 0 ? OK : INVALID;
}

int cuCtxSetCurrent(void *ctx)
{
    return ctx == &context ? OK : INVALID;
}

int cuMemAlloc_v2(unsigned long long *ret, size_t bytes)
{
    const char *limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    *ret = 1 << 20;
    if (mps != 0 && limit != NULL && strcmp(limit, "0=1024M") == 0 && bytes >> 20 > 1024)
        return NO_MEMORY;
    mib += bytes >> 20;
    tell(1);
    return OK;
}

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    *ret_free = *ret_total = (size_t)40960 << 20;
    return OK;
}

int cuModuleLoadData(void **ret, const void *image)
{
    *ret = &context;
    return strstr(image, ".visible .entry") != NULL ? OK : INVALID;
}

int cuModuleGetFunction(void **ret, void *module, const char *name)
{
    *ret = strcmp(name, "store_badly") == 0 ? &bad : &good;
    return module == &context ? OK : INVALID;
}

int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz,
                   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                   void *stream, void **params, void **extra)
{
    char line[256];
    struct timespec now;
    if (gx * gy * gz * bx * by * bz != 1 || shared != 0 || stream != NULL || extra != NULL)
        return INVALID;
    if (function == &good)
        return params == NULL ? INVALID : OK;
    faulted = 1;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* the numbers of events must rise */
    (void)snprintf(line, sizeof(line), "event number=%ld uuid=%s xid=%d\n",
                   (long)now.tv_sec * 100 + now.tv_nsec / 10000000, getenv("CUDA_VISIBLE_DEVICES"),
                   lies("xid") ? 79 : 31);
    edit("", line);
    return OK;
}

int cuCtxSynchronize(void)
{
    const struct timespec t = {.tv_nsec = 30000000};
    (void)nanosleep(&t, NULL);
    return faulted != 0 ? FAULTED : OK;
}
