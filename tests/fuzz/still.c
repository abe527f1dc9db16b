/* A loop on a simulated clock; see still.h. */
#include "still.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>

#define START_MS 100000000

static struct {
    struct loop *loop;
    uint64_t now_ms;
    uint64_t pass_ms;
    int waits_ms; /* its last wait in ms; -1: without a limit */
    uint64_t random;
} still;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);
ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    (void)clock;
    ret->tv_sec = (time_t)(still.now_ms / 1000);
    ret->tv_nsec = (long)(still.now_ms % 1000) * 1000000;
    return 0;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
    (void)epoll;
    (void)events;
    (void)max;
    if (timeout_ms == 0)
        return 0;
    if (still.pass_ms > 0) {
        still.now_ms += still.pass_ms;
        still.pass_ms = 0;
        return 0;
    }
    still.waits_ms = timeout_ms;
    loop_stop(still.loop);
    return 0;
}

ssize_t __wrap_getrandom(void *bytes, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++) {
        still.random = still.random * UINT64_C(6364136223846793005) + 1442695040888963407;
        ((unsigned char *)bytes)[i] = (unsigned char)(still.random >> 56);
    }
    return (ssize_t)n;
}

struct loop *still_loop(void)
{
    still.now_ms = START_MS;
    still.pass_ms = 0;
    still.random = 1;
    if (loop_new(&still.loop, NULL) != OK)
        abort();
    return still.loop;
}

void still_run(struct loop *l)
{
    if (l != still.loop || loop_run(l, NULL) != OK)
        abort();
}

void still_pass(struct loop *l, uint64_t ms)
{
    still_run(l);
    still.pass_ms = ms;
    still_run(l);
}

bool still_next(struct loop *l, uint64_t max_ms)
{
    still_run(l);
    if (still.waits_ms < 0 || (uint64_t)still.waits_ms > max_ms)
        return false;
    still_pass(l, (uint64_t)still.waits_ms);
    return true;
}
