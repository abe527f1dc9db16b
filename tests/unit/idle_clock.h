/*
 * The clock of the loop in unit tests: it passes only while the loop sleeps. The work of a test,
 * and the time for which a busy machine does not run it, take none. So no deadline of a few
 * milliseconds is missed because the machine is slow. A sleep that an event ends takes no time
 * either.
 *
 * The functions replace those of the C library in the whole program, also for libmicrohttpd. Only
 * CLOCK_BOOTTIME, which the loop alone reads, is such a clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* CLOCK_BOOTTIME in nanoseconds: the machine has run for days. */
static uint64_t idle_clock_ns = UINT64_C(1000000123456789);

/* A test may set it: added to CLOCK_REALTIME, also for GnuTLS. */
static time_t idle_clock_wall_ahead_s;

/* So much time passes at once, as if the loop had slept. */
static inline void idle_clock_pass(uint64_t ms)
{
    idle_clock_ns += ms * 1000000;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (clock != CLOCK_BOOTTIME) {
        int rc = (int)syscall(SYS_clock_gettime, clock, ret);
        ret->tv_sec += clock == CLOCK_REALTIME ? idle_clock_wall_ahead_s : 0;
        return rc;
    }
    ret->tv_sec = (time_t)(idle_clock_ns / 1000000000);
    ret->tv_nsec = (long)(idle_clock_ns % 1000000000);
    return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    int n = (int)syscall(SYS_epoll_pwait, fd, events, most, timeout_ms, NULL, (size_t)0);
    if (n == 0 && timeout_ms > 0)
        idle_clock_pass((uint64_t)timeout_ms);
    return n;
}
