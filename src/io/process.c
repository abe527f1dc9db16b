/*
 * Reads the usage from /proc/self. A process can read its own statm and list its own descriptors
 * even after it has made itself undumpable.
 */
#include "io/process.h"

#include "base/str.h"
#include "io/limit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t process_cpu_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static int64_t process_max_fds(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return -1;
    return (int64_t)MIN_OF(r.rlim_cur, (rlim_t)INT64_MAX);
}

/* Does not count ".", "..", and the descriptor of this directory. */
static int64_t process_open_fds(void)
{
    int64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL)
        return -1;
    /* cppcheck-suppress readdirCalled; d is used by this thread only */
    while (readdir(d) != NULL)
        n++;
    (void)closedir(d);
    return n - 3;
}

/* The first two numbers of statm: total pages and resident pages. */
static void process_read_memory(struct process_usage *ret)
{
    char bytes[128];
    struct str size;
    struct str resident;
    struct str rest;
    uint64_t pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, bytes, sizeof(bytes));
    (void)close(fd);
    int64_t page = sysconf(_SC_PAGESIZE);
    if (n <= 0 || page <= 0 || !str_cut((struct str){bytes, (size_t)n}, ' ', &size, &rest) ||
        !str_cut(rest, ' ', &resident, &rest))
        return;
    if (str_to_u64(size, (uint64_t)(INT64_MAX / page), &pages))
        ret->virtual_bytes = (int64_t)pages * page;
    if (str_to_u64(resident, (uint64_t)(INT64_MAX / page), &pages))
        ret->resident_bytes = (int64_t)pages * page;
}

void process_usage_read(struct process_usage *ret)
{
    uint64_t cpu_ns = process_cpu_ns();
    *ret = (struct process_usage){.cpu_us = cpu_ns == 0 ? -1 : (int64_t)(cpu_ns / 1000),
                                  .resident_bytes = -1,
                                  .virtual_bytes = -1,
                                  .open_fds = process_open_fds(),
                                  .max_fds = process_max_fds()};
    process_read_memory(ret);
}

#define STANDARD 3

uint64_t process_descriptors_for(const struct process_usage *u, unsigned connections)
{
    uint64_t inherited = u->open_fds > STANDARD ? (uint64_t)u->open_fds - STANDARD : 0;
    return inherited + LIMIT_DESCRIPTORS_REST + 2 * (uint64_t)connections;
}

unsigned process_connections(const struct process_usage *u, unsigned wanted)
{
    uint64_t rest = process_descriptors_for(u, 0);
    if (u->max_fds < 0) /* the system does not say */
        return wanted;
    if ((uint64_t)u->max_fds < rest)
        return 0;
    unsigned n = (unsigned)MIN_OF(((uint64_t)u->max_fds - rest) / 2, (uint64_t)wanted);
    assert(n <= wanted && process_descriptors_for(u, n) <= (uint64_t)u->max_fds);
    return n;
}
