/* Pins threads to cores; see cores.h. */
#include "cores.h"

#include "blocking_client.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t cores_find(size_t cores[static CORES_MAX])
{
    cpu_set_t set;
    size_t n = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        die("which cores there are can't be read: %s", strerror(errno));
    for (size_t core = 0; core < CPU_SETSIZE && n < CORES_MAX; core++)
        if (CPU_ISSET(core, &set))
            cores[n++] = core;
    return n;
}

void cores_pin(size_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        die("core %zu can't be chosen: %s", core, strerror(errno));
}

void cores_check(pid_t pid, size_t core)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    size_t n = 0;
    if (threads == NULL)
        die("%s can't be read: %s", path, strerror(errno));
    /* cppcheck-suppress readdirCalled; no other thread reads this folder */
    for (struct dirent *e; (e = readdir(threads)) != NULL;) {
        cpu_set_t set;
        if (e->d_name[0] == '.')
            continue;
        pid_t thread = (pid_t)number_at(e->d_name);
        if (sched_getaffinity(thread, sizeof(set), &set) != 0 || CPU_COUNT(&set) != 1 ||
            !CPU_ISSET(core, &set))
            die("thread %s of process %d is not on core %zu alone", e->d_name, (int)pid, core);
        n++;
    }
    (void)closedir(threads);
    if (n == 0)
        die("process %d has no threads", (int)pid);
}
