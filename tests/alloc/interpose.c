/*
 * Replaces the allocator, the clock and the wait; see interpose.h.
 *
 * No sanitizer may instrument this file: the loader and the constructors of libraries allocate
 * before the sanitizer is ready. ASan still sees each call: every call is passed to the next
 * definition, which in a sanitized build is ASan's.
 *
 * Time advances only when nothing else can happen: no descriptor is ready, and no byte is under way
 * between two sockets of this process. On loopback a byte nearly always arrives within send(); if
 * the kernel is late, the counts of bytes sent and received show it.
 */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's own are reserved
 * names */

#include "interpose.h"

#include "base/macro.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EARLY_BYTES   65536
#define FD_MAX        64
#define LATE_TURNS    1000
#define LATE_TURN_US  100
#define CLOCK_START_S 1750000000

/* Libraries must find these symbols. */
#pragma GCC visibility push(default)

/* ---- the allocator ---- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    bool asking;
} next;

/* Memory for calls before the next definitions are known; never freed. */
static _Alignas(16) char early[EARLY_BYTES];
static size_t early_used;

static struct {
    bool armed;
    bool outside;
    struct alloc_plan plan;
    size_t count[2];
    bool hit;
    ptrdiff_t live;
    ptrdiff_t held;
    struct alloc_trace *trace;
} state = {.outside = true};

static void find_next(void)
{
    next.asking = true;
    void *symbols[] = {dlsym(RTLD_NEXT, "malloc"), dlsym(RTLD_NEXT, "calloc"),
                       dlsym(RTLD_NEXT, "realloc"), dlsym(RTLD_NEXT, "free")};
    memcpy(&next.malloc, &symbols[0], sizeof(symbols[0]));
    memcpy(&next.calloc, &symbols[1], sizeof(symbols[1]));
    memcpy(&next.realloc, &symbols[2], sizeof(symbols[2]));
    memcpy(&next.free, &symbols[3], sizeof(symbols[3]));
    next.asking = false;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + EARLY_BYTES;
}

static void *early_alloc(size_t size)
{
    size_t room = (size + 15) & ~(size_t)15;
    if (room > EARLY_BYTES - early_used)
        abort();
    void *p = early + early_used;
    early_used += room;
    return p;
}

static bool fails(enum alloc_owner owner)
{
    if (!state.armed || state.outside)
        return false;
    size_t nth = ++state.count[owner];
    if (state.plan.first == 0 || owner != state.plan.owner || nth < state.plan.first ||
        nth > state.plan.last)
        return false;
    if (!state.hit) {
        state.outside = true;
        state.trace->n = (size_t)backtrace(state.trace->frames, COUNT_OF(state.trace->frames));
        state.outside = false;
    }
    state.hit = true;
    errno = ENOMEM;
    return true;
}

/* ---- calls by libraries ---- */

void *malloc(size_t size)
{
    if (next.malloc == NULL && !next.asking)
        find_next();
    if (next.malloc == NULL)
        return early_alloc(size);
    return fails(ALLOC_LIBRARIES) ? NULL : next.malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (next.calloc == NULL && !next.asking)
        find_next();
    if (next.calloc == NULL)
        return early_alloc(n * size); /* from the loader; already zero */
    return fails(ALLOC_LIBRARIES) ? NULL : next.calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    if (next.realloc == NULL && !next.asking)
        find_next();
    if (next.realloc != NULL && !is_early(p))
        return fails(ALLOC_LIBRARIES) ? NULL : next.realloc(p, size);
    void *q = next.malloc == NULL ? early_alloc(size) : next.malloc(size);
    if (p != NULL && q != NULL)
        memcpy(q, p, MIN_OF(size, (size_t)(early + EARLY_BYTES - (char *)p)));
    return q;
}

void free(void *p)
{
    if (p == NULL || is_early(p))
        return;
    if (next.free == NULL)
        find_next();
    next.free(p);
}

/* ASan's own versions would not call this allocator. */
char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    if (next.malloc == NULL)
        find_next();
    if (fails(ALLOC_LIBRARIES))
        return NULL;
    char *copy = next.malloc(n);
    return copy == NULL ? NULL : memcpy(copy, s, n);
}

char *strndup(const char *s, size_t max)
{
    size_t n = strnlen(s, max);
    if (next.malloc == NULL)
        find_next();
    if (fails(ALLOC_LIBRARIES))
        return NULL;
    char *copy = next.malloc(n + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

/* ---- calls by cardpack: the linker's --wrap ---- */

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static void *counted(void *p)
{
    if (!state.outside && p != NULL) {
        state.live++;
        state.held += (ptrdiff_t)malloc_usable_size(p);
    }
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails(ALLOC_OURS) ? NULL : counted(next.calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    if (fails(ALLOC_OURS))
        return NULL;
    if (p == NULL)
        return counted(next.realloc(p, size));
    size_t old = malloc_usable_size(p);
    void *q = next.realloc(p, size);
    if (!state.outside && q != NULL)
        state.held += (ptrdiff_t)malloc_usable_size(q) - (ptrdiff_t)old;
    return q;
}

void __wrap_free(void *p)
{
    if (p != NULL && !state.outside) {
        state.live--;
        state.held -= (ptrdiff_t)malloc_usable_size(p);
    }
    free(p);
}

void interpose_arm(const struct alloc_plan *plan, struct alloc_trace *trace)
{
    (void)backtrace(trace->frames, 1); /* its first call loads a library */
    trace->n = 0;
    state.trace = trace;
    state.plan = *plan;
    state.count[ALLOC_OURS] = state.count[ALLOC_LIBRARIES] = 0;
    state.hit = false;
    state.armed = true;
}

void interpose_disarm(void)
{
    state.armed = false;
}

size_t interpose_count(enum alloc_owner owner)
{
    return state.count[owner];
}

bool interpose_hit(void)
{
    return state.hit;
}

ptrdiff_t interpose_live(void)
{
    return state.live;
}

ptrdiff_t interpose_held(void)
{
    return state.held;
}

void interpose_outside(bool outside)
{
    state.outside = outside;
}

/* ---- time and random numbers ---- */

static struct {
    uint64_t now_ms;
    uint64_t random;
    interpose_world_fn *act;
    size_t waits;
    size_t waits_max;
    void (*hang)(const char *why);
} world;

void interpose_reset(void)
{
    world.now_ms = 1000000;
    world.random = 0x9e3779b97f4a7c15ULL;
    world.waits = 0;
}

uint64_t interpose_now_ms(void)
{
    return world.now_ms;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (world.act == NULL || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        return (int)syscall(SYS_clock_gettime, clock, ret);
    bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    ret->tv_sec = (time_t)(world.now_ms / 1000) + (wall ? CLOCK_START_S : 0);
    ret->tv_nsec = (long)(world.now_ms % 1000) * 1000000;
    return 0;
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
    if (world.act == NULL)
        return (ssize_t)syscall(SYS_getrandom, bytes, n, flags);
    for (size_t i = 0; i < n; i++) {
        world.random ^= world.random << 13;
        world.random ^= world.random >> 7;
        world.random ^= world.random << 17;
        ((unsigned char *)bytes)[i] = (unsigned char)(world.random >> 32);
    }
    return (ssize_t)n;
}

/* ---- the wait ---- */

static int wait_really(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
    return (int)syscall(SYS_epoll_pwait, epoll, events, max, timeout_ms, NULL, 8);
}

struct end {
    in_port_t here;
    in_port_t there;
    uint64_t sent;
    uint64_t received;
};

static bool look_at(int fd, struct end *ret)
{
    struct sockaddr_in here = {0};
    struct sockaddr_in there = {0};
    struct tcp_info info;
    socklen_t n = sizeof(info);
    socklen_t n_here = sizeof(here);
    socklen_t n_there = sizeof(there);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 ||
        getsockname(fd, (struct sockaddr *)&here, &n_here) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &n_there) != 0)
        return false;
    ret->here = here.sin_port;
    ret->there = there.sin_port;
    ret->sent = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    ret->received = info.tcpi_bytes_received;
    return true;
}

/* Whether a socket of this process has sent bytes that its peer in this process has not
 * received. */
static bool bytes_under_way(void)
{
    struct end ends[FD_MAX] = {0};
    size_t n = 0;
    for (int fd = 3; fd < FD_MAX; fd++)
        n += look_at(fd, &ends[n]);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (ends[i].here == ends[j].there && ends[i].there == ends[j].here &&
                ends[i].sent > ends[j].received)
                return true;
        }
    }
    return false;
}

static bool ready_late(int epoll, struct epoll_event *events, int max, int *ret_n)
{
    for (int i = 0; i < LATE_TURNS && bytes_under_way(); i++) {
        (void)usleep(LATE_TURN_US);
        *ret_n = wait_really(epoll, events, max, 0);
        if (*ret_n != 0)
            return true;
    }
    return false;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
    if (world.act == NULL)
        return wait_really(epoll, events, max, timeout_ms);
    if (++world.waits > world.waits_max)
        world.hang("it turns and turns");
    if (timeout_ms == 0)
        return wait_really(epoll, events, max, 0);
    for (;;) {
        int until_ms = timeout_ms;
        interpose_outside(true);
        bool moved = world.act(&until_ms);
        interpose_outside(false);
        int n = wait_really(epoll, events, max, 0);
        if (n != 0)
            return n;
        if (moved)
            continue;
        if (ready_late(epoll, events, max, &n))
            return n;
        if (until_ms < 0)
            world.hang("it waits for nothing");
        world.now_ms += (uint64_t)until_ms;
        if (until_ms == timeout_ms)
            return 0;
        timeout_ms = timeout_ms < 0 ? -1 : timeout_ms - until_ms;
    }
}

void interpose_waits(interpose_world_fn *act, size_t max, void (*hang)(const char *why))
{
    world.act = act;
    world.waits = 0;
    world.waits_max = max;
    world.hang = hang;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
