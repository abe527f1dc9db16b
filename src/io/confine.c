/*
 * Drops privileges with prctl, setrlimit, seccomp and capset. Each step is tried even if an earlier
 * one failed: a kernel or sandbox may lack one of them.
 *
 * The seccomp filter denies execve only, because that is correct for every library version. The
 * full allow list, which must know all system calls of the libraries, is
 * manifests/seccomp/cardpack.json. The filter also denies system calls of a foreign architecture,
 * where execve has another number. Neither this program nor its libraries start programs:
 * credential plugins (exec in a kubeconfig) are refused.
 *
 * capset is called directly: it is one call, and libcap would be one more library to trust.
 */
#include "io/confine.h"

#include "base/log.h"
#include "io/limit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#    define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#    define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

/* Lowest number of x86_64's second system call table (x32). Other tables are smaller. */
#define FOREIGN_NUMBERS 0x40000000

static const char *const step_names[CONFINE_STEPS] = {
    [CONFINE_PRIVILEGES] = "no new privileges",
    [CONFINE_MEMORY] = "memory not dumpable",
    [CONFINE_CORE] = "no core file",
    [CONFINE_FILES] = "umask",
    [CONFINE_DESCRIPTORS] = "descriptors",
    [CONFINE_EXEC] = "no execve",
    [CONFINE_BOUNDING] = "bounding set",
    [CONFINE_CAPABILITIES] = "capabilities",
};

static unsigned confine_note(enum confine_step step, bool done)
{
    assert((unsigned)step < CONFINE_STEPS);
    if (done)
        return 0;
    log_debug("not confined", kv_cstr("step", step_names[step]), kv_cstr("why", strerror(errno)));
    return 1U << step;
}

static bool confine_limit_core(void)
{
    struct rlimit none = {0};
    return setrlimit(RLIMIT_CORE, &none) == 0;
}

/* No more than needed: some libraries loop over all possible descriptors. */
static bool confine_raise_descriptors(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return false;
    rlim_t wanted = MIN_OF(r.rlim_max, (rlim_t)LIMIT_DESCRIPTORS);
    if (r.rlim_cur >= wanted)
        return true;
    r.rlim_cur = wanted;
    return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

static bool confine_deny_exec(void)
{
#ifdef NATIVE_ARCH
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_NUMBERS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = COUNT_OF(code), .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
#else
    errno = ENOSYS;
    return false;
#endif
}

static bool confine_drop_bounding(void)
{
    /* Ask for each capability: the running kernel may know more than the headers of the build. */
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) != 0 && errno != EPERM)
            return false;
    }
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
}

/*
 * Keeps only the capabilities in `keep` (numbers below 32) that the process already has, as
 * effective and permitted.
 */
static bool confine_keep_capabilities(uint32_t keep)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, caps) != 0)
        return false;
    uint32_t kept = caps[0].permitted & keep;
    caps[0] = (struct __user_cap_data_struct){.effective = kept, .permitted = kept};
    caps[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, caps) == 0;
}

unsigned confine_process(void)
{
    unsigned missing = 0;
    missing |= confine_note(CONFINE_PRIVILEGES, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    missing |= confine_note(CONFINE_MEMORY, prctl(PR_SET_DUMPABLE, 0) == 0);
    missing |= confine_note(CONFINE_CORE, confine_limit_core());
    (void)umask(S_IRWXG | S_IRWXO);
    missing |= confine_note(CONFINE_DESCRIPTORS, confine_raise_descriptors());
    missing |= confine_note(CONFINE_EXEC, confine_deny_exec());
    missing |= confine_note(CONFINE_BOUNDING, confine_drop_bounding());
    missing |=
        confine_note(CONFINE_CAPABILITIES, confine_keep_capabilities(1U << CAP_NET_BIND_SERVICE));
    return missing;
}

unsigned confine_capabilities(void)
{
    return confine_note(CONFINE_CAPABILITIES, confine_keep_capabilities(0));
}
