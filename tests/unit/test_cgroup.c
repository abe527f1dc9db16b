/* Container IDs in the names of cgroups, in /proc/PID/cgroup, and in a tree of folders. */
#include "node/containers/cgroup.h"

#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "b123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *name;
    const char *id; /* NULL: none */
} names[] = {
    {A, A},
    {"cri-containerd-" A ".scope", A},
    {"crio-" A ".scope", A},
    {"docker-" A ".scope", A},
    {"crio-" A, A},
    {"kubepods-burstable-pod1.slice:cri-containerd:" A, A},
    {"", NULL},
    {"crio-conmon-" A ".scope", NULL},
    {"cri-containerd-" A, NULL},
    {"cri-containerd-" A ".scope ", NULL},
    {"cri-containerd-" A ".scope (deleted)", NULL},
    {"cri-containerd-.scope", NULL},
    {"cri-containerd-x" A ".scope", NULL},
    {A "0", NULL},
    {"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", NULL},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde", NULL},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg", NULL},
    {"podc2b0c3a4-9b5d-4f8e-8a56-0123456789ab", NULL},
    {"kubepods-podc2b0c3a4_9b5d_4f8e_8a56_0123456789ab.slice", NULL},
    {"cri-containerd:" A, NULL},
    {"scope", NULL},
};

static void is(struct str id, const char *expected)
{
    if (expected == NULL)
        ck_assert_msg(id.p == NULL, "\"%.*s\"", STR_ARG(id));
    else
        ck_assert_str_is(id, expected);
}

START_TEST(name)
{
    is(cgroup_name_id(str_of(names[_i].name)), names[_i].id);
}

static const struct {
    const char *text;
    const char *id;
} texts[] = {
    /* version 2 */
    {"0::/kubepods/besteffort/podc2b0/" A "\n", A},
    {"0::/kubepods.slice/kubepods-podc2b0.slice/cri-containerd-" A ".scope\n", A},
    {"0::/kubepods.slice/kubepods-podc2b0.slice/crio-" A ".scope", A},
    /* from another namespace */
    {"0::/../../kubepods-podc2b0.slice/cri-containerd-" A ".scope\n", A},
    /* below the container */
    {"0::/kubepods/podc2b0/" A "/init.scope\n", A},
    {"0::/kubepods/podc2b0/" A "/docker/" B "\n", A},
    {"0::/kubepods/podc2b0/" A "/kubepods/pod7/" B "\n", A},
    /* version 1, and both */
    {"12:memory:/kubepods/podc2b0/" A "\n11:cpu,cpuacct:/kubepods/podc2b0/" A "\n"
     "1:name=systemd:/kubepods/podc2b0/" A "\n0::/\n",
     A},
    {"12:memory:/system.slice/containerd.service\n0::/k8s.io/" A "\n", A},
    {"5:devices:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" A "\n", A},
    /* none */
    {"", NULL},
    {"0::/\n", NULL},
    {"0::/init.scope\n", NULL},
    {"0::/user.slice/user-0.slice/session-1.scope\n", NULL},
    {"0::/kubepods/podc2b0/" A " (deleted)\n", NULL},
    /* two hierarchies, two containers */
    {"2:memory:/docker/" A "\n1:cpu:/docker/" B "\n", NULL},
    {"2:memory:/docker/" A "\n1:cpu:/docker/" B "\n0::/docker/" A "\n", NULL},
    /* not such a text */
    {A, NULL},
    {"0:" A, NULL},
    {"0::" A, NULL},
    {"\n\n::\n:\n", NULL},
    {"0::/x\n/docker/" A "\n", NULL},
};

START_TEST(text)
{
    is(cgroup_text_id(str_of(texts[_i].text)), texts[_i].id);
}

/* ---- with files ---- */

static char root[64];

static void put(const char *path, const char *content)
{
    char whole[512];
    (void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(whole, 0700);
        *at = '/';
    }
    if (content == NULL) {
        (void)mkdir(whole, 0700);
        return;
    }
    FILE *f = fopen(whole, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(content, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void set_up(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/cardpack-test-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void tear_down(void)
{
    ck_assert_int_eq(nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS), 0);
}

START_TEST(process)
{
    struct buf scratch;
    struct str id = STR_NULL;
    struct err e = ERR_INIT;
    buf_init(&scratch, CGROUP_TEXT_MAX);
    put("17/cgroup", "0::/kubepods/pod1/" A "\n");
    put("18/cgroup", "0::/init.scope\n");
    ck_assert_ok(cgroup_process_id(str_of(root), 17, &scratch, &id, &e), &e);
    ck_assert_str_is(id, A);
    ck_assert_ok(cgroup_process_id(str_of(root), 18, &scratch, &id, &e), &e);
    ck_assert_ptr_null(id.p);
    ck_assert_int_eq(cgroup_process_id(str_of(root), 19, &scratch, &id, &e), ERR_NOTFOUND);
    /* the kernel's own */
    ck_assert_ok(cgroup_process_id(STR("/proc"), (uint32_t)getpid(), &scratch, &id, &e), &e);
    buf_done(&scratch);
}

/* Walks in pieces of `piece` folders. Whether it finds container A, and where; path NULL: not. */
static void walk_is(unsigned piece, const char *path)
{
    char whole[512] = "";
    struct cgroup_walk w;
    struct err e = ERR_INIT;
    struct str id = STR_NULL;
    enum cgroup_step step = CGROUP_MORE;
    unsigned found = 0;
    ck_assert_ok(cgroup_walk_begin(&w, str_of(root), &e), &e);
    if (path != NULL)
        (void)snprintf(whole, sizeof(whole), "%s/%s", root, path);
    while (step == CGROUP_MORE) {
        unsigned most = piece;
        while ((step = cgroup_walk_next(&w, &most, &id)) == CGROUP_CONTAINER) {
            if (!str_eq(id, STR(A)))
                continue;
            ck_assert_str_is(buf_str(&w.path), whole);
            found++;
        }
        ck_assert(step == CGROUP_END || most == 0);
    }
    ck_assert_int_eq(step, CGROUP_END);
    ck_assert_uint_eq(found, path != NULL ? 1 : 0);
    cgroup_walk_end(&w);
}

static void folder_is(enum errc expected, const char *path)
{
    struct cgroup_walk w = {.depth = 0};
    struct err e = ERR_INIT;
    if (expected == ERR_UNAVAILABLE) {
        ck_assert_int_eq(cgroup_walk_begin(&w, str_of(root), &e), expected);
        cgroup_walk_end(&w);
        return;
    }
    walk_is(1, path);
    walk_is(2, path);
    walk_is(1000, path);
}

START_TEST(folder)
{
    folder_is(ERR_UNAVAILABLE, NULL);
    put("cgroup.controllers", "cpu\n");
    folder_is(ERR_NOTFOUND, NULL);
    put("init.scope", NULL);
    put("kubepods.slice/cpu.max", "");
    put("kubepods.slice/kubepods-pod2.slice/cri-containerd-" B ".scope/cgroup.procs", "");
    /* below another container: that container's choice */
    put("kubepods.slice/kubepods-pod2.slice/cri-containerd-" B ".scope/" A, NULL);
    put(A ".scope", "a file");
    folder_is(ERR_NOTFOUND, NULL);
    put("kubepods.slice/kubepods-pod1.slice/cri-containerd-" A ".scope/init", NULL);
    folder_is(OK, "kubepods.slice/kubepods-pod1.slice/cri-containerd-" A ".scope");
}

START_TEST(folder_beside_version_1)
{
    put("memory/kubepods/pod1/" A, NULL);
    folder_is(ERR_UNAVAILABLE, NULL);
    put("unified/cgroup.controllers", "");
    put("unified/kubepods/pod1/" A, NULL);
    folder_is(OK, "unified/kubepods/pod1/" A);
}

static void own_is(const char *proc, const char *path)
{
    char whole[512];
    char bytes[CGROUP_PATH_BYTES];
    struct buf out = BUF_ON(bytes);
    (void)snprintf(whole, sizeof(whole), "%s/%s", root, proc);
    bool found = cgroup_own(str_of(root), str_of(whole), 17, &out);
    ck_assert_int_eq(found, path != NULL);
    (void)snprintf(whole, sizeof(whole), "%s/%s", root, path == NULL ? "" : path);
    if (path != NULL)
        ck_assert_str_is(buf_str(&out), whole);
}

/* Of a daemon of systemd, and of a container with a cgroup namespace of its own. */
START_TEST(own)
{
    put("cgroup.controllers", "cpu\n");
    put("cgroup.procs", "17\n");
    put("system.slice/cardpack-node.service/cgroup.procs", "17\n");
    put("proc1/17/cgroup", "1:name=systemd:/other\n0::/system.slice/cardpack-node.service\n");
    own_is("proc1", "system.slice/cardpack-node.service");
    put("proc2/17/cgroup", "0::/\n");
    own_is("proc2", NULL);
    put("kubepods.slice/cri-containerd-" B ".scope/cgroup.procs", "0\n1\n171\n0\n");
    own_is("proc2", NULL);
    put("kubepods.slice/cri-containerd-" A ".scope/cgroup.procs", "0\n17\n");
    own_is("proc2", "kubepods.slice/cri-containerd-" A ".scope");
    /* a path of another namespace */
    put("proc3/17/cgroup", "0::/gone/cri-containerd-" A ".scope\n");
    own_is("proc3", "kubepods.slice/cri-containerd-" A ".scope");
    own_is("absent", "kubepods.slice/cri-containerd-" A ".scope");
}

/* It may be given up at any point, and says when there are too many folders. */
START_TEST(no_end)
{
    struct cgroup_walk w;
    struct err e = ERR_INIT;
    struct str id = STR_NULL;
    unsigned most = 3;
    put("cgroup.controllers", "");
    put("1/2/3/4/5/6", NULL);
    ck_assert_ok(cgroup_walk_begin(&w, str_of(root), &e), &e);
    ck_assert_int_eq(cgroup_walk_next(&w, &most, &id), CGROUP_MORE);
    ck_assert_uint_eq(most, 0);
    ck_assert_uint_eq(w.folders, 3);
    w.folders = CGROUP_WALK_MAX - 2; /* as if it had seen so many */
    most = 1000;
    ck_assert_int_eq(cgroup_walk_next(&w, &most, &id), CGROUP_TOO_MANY);
    ck_assert_uint_eq(most, 998);
    cgroup_walk_end(&w);
}

START_TEST(too_deep)
{
    put("cgroup.controllers", "");
    put("1/2/3/4/5/6/7/8/9/" A, NULL);
    folder_is(OK, "1/2/3/4/5/6/7/8/9/" A);
    tear_down();
    ck_assert_int_eq(mkdir(root, 0700), 0);
    put("cgroup.controllers", "");
    put("1/2/3/4/5/6/7/8/9/10/" A, NULL);
    folder_is(ERR_NOTFOUND, NULL);
}

int main(void)
{
    TCase *c = unit_case("names");
    tcase_add_loop_test(c, name, 0, COUNT_OF(names));
    tcase_add_loop_test(c, text, 0, COUNT_OF(texts));
    c = unit_case("files");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, process);
    tcase_add_test(c, folder);
    tcase_add_test(c, own);
    tcase_add_test(c, folder_beside_version_1);
    tcase_add_test(c, too_deep);
    tcase_add_test(c, no_end);
    return unit_run();
}
