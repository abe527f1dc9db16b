/*
 * What gpu-proof needs in C. Roles:
 *
 *     probe nvml LIBRARY CARD       see nvml.c
 *     probe client MIB SECONDS      see probe.h
 *     probe fault
 *     probe as [uid=N] [bare] [read-only=FOLDER] [cgroup=FOLDER] [own-shm] [mounts-of=PID]
 *              [only=FOLDER] -- PROGRAM ARGUMENTS
 *                                   a program that ends with its parent, as another user, without
 *                                   capabilities, with a folder that it can't change, in a cgroup,
 *                                   with an empty /dev/shm, or the mounts of another process; only:
 *                                   of the folder two above, it sees nothing but this one
 */
#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t number_of(const char *text)
{
    uint64_t number = 0;
    if (!str_to_u64(str_of(text), INT32_MAX, &number)) {
        (void)fprintf(stderr, "probe: \"%s\" is not a number\n", text);
        exit(2);
    }
    return number;
}

/* ---- as ---- */

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{.effective = 0}};
    for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap, 0UL, 0UL, 0UL) == 0; cap++)
        ;
    return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0 &&
           syscall(SYS_capset, &head, none) == 0;
}

static bool own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool make_read_only(const char *folder)
{
    return own_mounts() && mount(folder, folder, NULL, MS_BIND, NULL) == 0 &&
           mount(NULL, folder, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

static bool empty_shm(void)
{
    return own_mounts() && mount("gpu-proof", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, NULL) == 0;
}

static bool mounts_of(uint64_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu64 "/ns/mnt", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && setns(fd, CLONE_NEWNS) == 0;
}

/* As a container that has a mount of this folder alone. */
static bool see_only(const char *folder)
{
    char above[PATH_MAX];
    char top[PATH_MAX];
    char from[64];
    int fd = own_mounts() ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    (void)snprintf(above, sizeof(above), "%s", folder);
    (void)dirname(above);
    (void)snprintf(top, sizeof(top), "%s", above);
    (void)dirname(top);
    (void)snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    return fd >= 0 && mount("gpu-proof", top, "tmpfs", 0, "mode=755") == 0 &&
           mkdir(above, 0755) == 0 && mkdir(folder, 0755) == 0 &&
           mount(from, folder, NULL, MS_BIND, NULL) == 0;
}

static bool enter_cgroup(const char *folder)
{
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "0", 1) == 1;
}

static bool become(const char *what)
{
    struct str name;
    struct str value;
    bool has = str_cut(str_of(what), '=', &name, &value);
    if (!has)
        return (str_eq(name, STR("bare")) && drop_capabilities()) ||
               (str_eq(name, STR("own-shm")) && empty_shm());
    if (str_eq(name, STR("read-only")))
        return make_read_only(value.p);
    if (str_eq(name, STR("cgroup")))
        return enter_cgroup(value.p);
    if (str_eq(name, STR("mounts-of")))
        return mounts_of(number_of(value.p));
    if (str_eq(name, STR("only")))
        return see_only(value.p);
    uid_t uid = (uid_t)number_of(value.p);
    return str_eq(name, STR("uid")) && setgroups(0, NULL) == 0 && setgid(uid) == 0 &&
           setuid(uid) == 0;
}

static int role_as(char **args)
{
    pid_t parent = getppid();
    for (; *args != NULL && strcmp(*args, "--") != 0; args++) {
        if (!become(*args)) {
            (void)printf("absent %s: %m\n", *args);
            return 126;
        }
    }
    if (*args == NULL || prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL) != 0 ||
        getppid() != parent)
        return 126;
    (void)execv(args[1], args + 1);
    (void)printf("absent %s: %m\n", args[1]);
    return 127;
}

int main(int argc, char **argv)
{
    struct str role = str_of(argc < 2 ? "" : argv[1]);
    if (str_eq(role, STR("as")))
        return role_as(argv + 2);
    if (str_eq(role, STR("nvml")) && argc == 4)
        return role_nvml(argv[2], (uint32_t)number_of(argv[3]));
    if (str_eq(role, STR("client")) && argc == 4)
        return role_client(number_of(argv[2]), number_of(argv[3]));
    if (str_eq(role, STR("fault")))
        return role_fault();
    (void)fprintf(stderr, "probe: no such role\n");
    return 2;
}
