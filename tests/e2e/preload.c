/*
 * Preloaded into cardpack-node by scenarios/shipped.py, for what a test's node has not: its clocks
 * are later by the milliseconds in the file FOLDER/clock, and /proc/driver/nvidia-caps, which
 * NVIDIA's driver makes, is FOLDER/driver/nvidia-caps. CARDPACK_PRELOAD names FOLDER.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DRIVER  "/proc/driver/nvidia-caps/"
#define WAIT_NS 50000000

int open64(const char *path, int flags, ...)
{
    char other[PATH_MAX];
    unsigned int mode = 0;
    va_list more;
    va_start(more, flags);
    if ((flags & (O_CREAT | O_TMPFILE)) != 0)
        mode = va_arg(more, unsigned int);
    va_end(more);
    if (strncmp(path, DRIVER, strlen(DRIVER)) == 0) {
        (void)snprintf(other, sizeof(other), "%s%s", getenv("CARDPACK_PRELOAD"),
                       path + strlen("/proc"));
        path = other;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static long long later_ms(void)
{
    char path[PATH_MAX];
    char text[16] = "";
    long long ms = 0;
    (void)snprintf(path, sizeof(path), "%s/clock", getenv("CARDPACK_PRELOAD"));
    int fd = open64(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    for (const char *c = text; *c >= '0' && *c <= '9'; c++)
        ms = ms * 10 + (*c - '0');
    return ms;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, clock, t);
    if (r == 0 && (clock == CLOCK_BOOTTIME || clock == CLOCK_MONOTONIC)) {
        long long ms = t->tv_nsec / 1000000 + later_ms();
        t->tv_sec += ms / 1000;
        t->tv_nsec = t->tv_nsec % 1000000 + ms % 1000 * 1000000;
    }
    return r;
}

/* No wait outlasts a step of the clock by much: the real one does not know of it. */
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *) = NULL;
    struct timespec soon;
    void *found = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    (void)until;
    memcpy(&wait, &found, sizeof(found));
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += WAIT_NS;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    return wait(c, m, &soon);
}
