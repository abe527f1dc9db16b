/*
 * Each case runs in a process of its own, also with CK_FORK=no: a process can't take back the
 * rights that it gives up. The child reports what it finds; the test checks the report.
 */
#include "io/confine.h"
#include "unit.h"

#include "base/str.h"
#include "io/limit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY ((uid_t)65534)

struct report {
    unsigned missing[2]; /* by confine_process and by confine_capabilities */
    int dumpable;
    int exec_errno;
    int privileged_port[2]; /* errno of a bind after each of the two */
    int own_file;           /* errno of open */
    int foreign_file;
    unsigned mode; /* of a file created with 0666 */
    struct rlimit core;
    struct rlimit descriptors;
    bool as_root;
    char status[4096];
    char first_status[4096]; /* between the two */
};

static void read_status(char out[4096])
{
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, 4095);
    out[n < 0 ? 0 : n] = '\0';
    (void)close(fd);
}

static int try_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int why = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    return why;
}

/* Tries a privileged port, on loopback, without listening. */
static int try_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(987)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int why = bind(fd, (const struct sockaddr *)(const void *)&a, sizeof(a)) == 0 ? 0 : errno;
    (void)close(fd);
    return why;
}

static int try_exec(void)
{
    char *argv[] = {(char[]){"true"}, NULL};
    (void)execv("/bin/true", argv);
    return errno;
}

static char directory[] = "/tmp/cardpack-test-confine-XXXXXX";
static char own[64];
static char foreign[64];
static char made[64];

static void put_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(own, sizeof(own), "%s/own", directory);
    (void)snprintf(foreign, sizeof(foreign), "%s/foreign", directory);
    (void)snprintf(made, sizeof(made), "%s/made", directory);
    put_file(own);
    put_file(foreign);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(foreign, NOBODY, (gid_t)-1), 0);
}

static void tear_down(void)
{
    (void)unlink(own);
    (void)unlink(foreign);
    (void)unlink(made);
    (void)rmdir(directory);
}

static void child(struct report *r)
{
    struct stat st = {0};
    struct rlimit few = {.rlim_cur = 64};
    (void)getrlimit(RLIMIT_NOFILE, &r->descriptors);
    few.rlim_max = r->descriptors.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &few);
    r->as_root = geteuid() == 0;
    r->missing[0] = confine_process();
    r->privileged_port[0] = try_port();
    read_status(r->first_status);
    r->missing[1] = confine_capabilities();
    r->privileged_port[1] = try_port();
    read_status(r->status);
    r->dumpable = prctl(PR_GET_DUMPABLE);
    r->own_file = try_open(own);
    r->foreign_file = try_open(foreign);
    int fd = open(made, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    (void)fstat(fd, &st);
    r->mode = (unsigned)st.st_mode & 07777;
    (void)close(fd);
    (void)getrlimit(RLIMIT_CORE, &r->core);
    (void)getrlimit(RLIMIT_NOFILE, &r->descriptors);
    r->exec_errno = try_exec();
}

/* Fills the report in a confined process. */
static void confined(struct report *r)
{
    int ends[2];
    *r = (struct report){.exec_errno = -1};
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        child(r);
        _exit(write(ends[1], r, sizeof(*r)) == (ssize_t)sizeof(*r) ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < sizeof(*r); n += (size_t)got)
        got = read(ends[0], (char *)r + n, sizeof(*r) - n);
    (void)close(ends[0]);
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(n, sizeof(*r));
}

/* The value after "name:\t" in /proc/self/status. */
static struct str field(const char *status, const char *name)
{
    char key[32];
    (void)snprintf(key, sizeof(key), "\n%s:\t", name);
    const char *at = strstr(status, key);
    ck_assert_msg(at != NULL, "no %s in %s", name, status);
    at += strlen(key);
    return (struct str){at, strcspn(at, "\n")};
}

#define NO_CAPABILITIES "0000000000000000"

TEST(test_every_step_is_done)
{
    struct report r;
    confined(&r);
    ck_assert_uint_eq(r.missing[0], 0);
    ck_assert_uint_eq(r.missing[1], 0);
    ck_assert_str_is(field(r.status, "NoNewPrivs"), "1");
    ck_assert_str_is(field(r.status, "Seccomp"), "2");
    ck_assert_int_eq(r.dumpable, 0);
    ck_assert_uint_eq(r.core.rlim_cur, 0);
    ck_assert_uint_eq(r.core.rlim_max, 0);
    ck_assert_uint_eq(r.mode, 0600);
    ck_assert_uint_eq(r.descriptors.rlim_cur,
                      MIN_OF(r.descriptors.rlim_max, (rlim_t)LIMIT_DESCRIPTORS));
}

TEST(test_no_capability_is_left)
{
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
    struct report r;
    confined(&r);
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        ck_assert_str_is(field(r.status, sets[i]), NO_CAPABILITIES);
    if (r.as_root)
        ck_assert_str_is(field(r.status, "CapBnd"), NO_CAPABILITIES);
}

/* Root may bind ports below 1024 until all ports are bound, and not afterwards. */
TEST(test_port_before_the_last_capability)
{
    struct report r;
    confined(&r);
    ck_assert_str_is(field(r.first_status, "CapEff"),
                     r.as_root ? "0000000000000400" : NO_CAPABILITIES);
    FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
    char text[16] = "";
    uint64_t open_from = 0;
    if (f != NULL) {
        ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
        (void)fclose(f);
        ck_assert(str_to_u64(str_trim(str_of(text)), UINT16_MAX, &open_from));
    }
    if (f == NULL || open_from <= 987)
        return;
    ck_assert_int_eq(r.privileged_port[0], r.as_root ? 0 : EACCES);
    ck_assert_int_eq(r.privileged_port[1], EACCES);
}

/* root's own kubeconfig with mode 0600 can be read again at any time; another user's can't. */
TEST(test_files_are_read_as_their_owner)
{
    struct report r;
    confined(&r);
    ck_assert_int_eq(r.own_file, 0);
    if (r.as_root)
        ck_assert_int_eq(r.foreign_file, EACCES);
}

TEST(test_nothing_can_be_executed)
{
    struct report r;
    confined(&r);
    ck_assert_int_eq(r.exec_errno, EACCES);
}

int main(void)
{
    TCase *c = unit_case("all");
    tcase_add_checked_fixture(c, set_up, tear_down);
    return unit_run();
}
