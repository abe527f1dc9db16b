/* The process' memory, processor time and limit of descriptors. */
#include "io/process.h"

#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

TEST(counts_descriptors)
{
    struct process_usage before;
    struct process_usage after;
    struct rlimit r;
    process_usage_read(&before);
    int fds[] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};
    process_usage_read(&after);
    ck_assert_int_ge(before.open_fds, 3);
    ck_assert_int_eq(after.open_fds, before.open_fds + 2);
    (void)close(fds[0]);
    (void)close(fds[1]);
    process_usage_read(&after);
    ck_assert_int_eq(after.open_fds, before.open_fds);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    ck_assert_uint_eq((rlim_t)after.max_fds, MIN_OF(r.rlim_cur, (rlim_t)INT64_MAX));
}

/* A mapping counts as virtual memory at once, and as resident when it is written. */
TEST(measures_memory)
{
    const size_t size = (size_t)64 << 20;
    struct process_usage before;
    struct process_usage mapped;
    struct process_usage written;
    process_usage_read(&before);
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    process_usage_read(&mapped);
    memset(p, 1, size);
    process_usage_read(&written);
    ck_assert_int_gt(before.resident_bytes, 0);
    ck_assert_int_ge(mapped.virtual_bytes, before.virtual_bytes + (int64_t)size);
    ck_assert_int_ge(written.resident_bytes, mapped.resident_bytes + (int64_t)size / 2);
    ck_assert_int_eq(munmap(p, size), 0);
}

/* Three descriptors are open at the start, 64 are reserved, and each connection takes two. */
static const struct {
    int64_t max_fds;
    int64_t open_fds;
    unsigned wanted;
    unsigned connections;
} figures[] = {
    {-1, 3, 1000, 1000},   {INT64_MAX, 3, 1000, 1000}, {INT64_MAX, INT64_MAX, 1000, 0},
    {4096, 3, 1000, 1000}, {2064, 3, 1000, 1000},      {2063, 3, 1000, 999},
    {2063, 3, 999, 999},   {2063, -1, 1000, 999},      {2064, 5, 1000, 999},
    {1024, 3, 1000, 480},  {80, 3, 1000, 8},           {79, 3, 1000, 7},
    {64, 3, 1000, 0},      {63, 3, 1000, 0},           {0, 3, 1000, 0},
    {66, 3, 1, 1},
};

TEST_EACH(connections_have_descriptors, COUNT_OF(figures))
{
    struct process_usage u = {.max_fds = figures[_i].max_fds, .open_fds = figures[_i].open_fds};
    unsigned n = process_connections(&u, figures[_i].wanted);
    ck_assert_uint_eq(n, figures[_i].connections);
    if (n > 0 && u.max_fds > 0)
        ck_assert_uint_le(process_descriptors_for(&u, n), (uint64_t)u.max_fds);
    if (n < figures[_i].wanted)
        ck_assert_uint_gt(process_descriptors_for(&u, n + 1), (uint64_t)u.max_fds);
}

TEST(counts_processor_time)
{
    struct process_usage before;
    struct process_usage after;
    process_usage_read(&before);
    ck_assert_int_ge(before.cpu_us, 0);
    do
        process_usage_read(&after);
    while (after.cpu_us == before.cpu_us);
    ck_assert_int_gt(after.cpu_us, before.cpu_us);
}
