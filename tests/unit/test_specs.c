/* The folder of CDI specs: what is written, what others may have put there, what is removed. */
#include "node/kubelet/specs.h"

#include "base/limit.h"
#include "fail_alloc.h"
#include "kubelet/cdi.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_A   "a00000000000000010000000000000002"
#define ID_B   "affffffffffffffff0000000000000003"
#define OURS   "cardpack.io-alloc_"
#define FILE_A OURS ID_A ".json"

static char dir[64];
static const struct card_list on_two = {2, {0, 2}};
static bool written; /* by the last specs_put */

static const char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static struct str text_of(const char *id, const char *idx)
{
    static char bytes[512];
    struct buf b = BUF_ON(bytes);
    buf_printf(&b,
               "{\"devices\":[{\"name\":\"%s\",\"containerEdits\":{\"env\":["
               "\"ALIYUN_COM_GPU_MEM_IDX=%s\"]}}]}",
               id, idx);
    ck_assert(!buf_failed(&b));
    return buf_str(&b);
}

static void write_raw(const char *name, struct str text)
{
    int fd = open(path_of(name), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text.p, text.n), (ssize_t)text.n);
    (void)close(fd);
}

static bool is_there(const char *name)
{
    struct stat st;
    return lstat(path_of(name), &st) == 0;
}

static void set_up(void)
{
    (void)umask(S_IRWXG | S_IRWXO);
    (void)snprintf(dir, sizeof(dir), "/tmp/specs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void forget(const char *name)
{
    ck_assert_int_eq(unlink(path_of(name)), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else is left */
}

static void put(struct specs *s, const char *id, const char *idx)
{
    struct err e = ERR_INIT;
    struct card_list cards;
    card_list_read(str_of(idx), &cards);
    ck_assert_ok(specs_put(s, str_of(id), &cards, text_of(id, idx), &written, &e), &e);
}

static void load(struct specs *s)
{
    struct err e = ERR_INIT;
    specs_init(s, str_of(dir));
    ck_assert_ok(specs_load(s, &e), &e);
}

TEST(test_ids)
{
    char id[SPECS_ID_BYTES + 1];
    specs_make_id(1, 2, id);
    ck_assert_str_eq(id, ID_A);
    specs_make_id(UINT64_MAX, 3, id);
    ck_assert_str_eq(id, ID_B);
}

TEST(test_write_and_read)
{
    struct specs s;
    struct stat st;
    ck_assert_int_eq(rmdir(dir), 0); /* it is made when the first spec is written */
    load(&s);
    ck_assert_ptr_null(specs_find(&s, STR(ID_A)));
    put(&s, ID_A, "0,2");
    ck_assert(card_list_equal(specs_find(&s, STR(ID_A)), &on_two));
    ck_assert_int_eq(stat(path_of(FILE_A), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0755);
    ck_assert(is_there(FILE_A));
    ck_assert(!is_there(OURS ID_A ".new"));
    specs_done(&s);
    load(&s); /* another process */
    ck_assert(card_list_equal(specs_find(&s, STR(ID_A)), &on_two));
    put(&s, ID_A, "1"); /* what is written stays */
    specs_done(&s);
    load(&s);
    ck_assert(card_list_equal(specs_find(&s, STR(ID_A)), &on_two));
    forget(FILE_A);
    put(&s, ID_A, "0,2"); /* again */
    ck_assert(written && is_there(FILE_A));
    put(&s, ID_A, "0,2");
    ck_assert(!written);
    specs_done(&s);
    forget(FILE_A);
}

/* What is not a spec of ours is left alone; what pretends to be is removed. */
TEST(test_other_files)
{
    struct specs s;
    static const char *const others[] = {"nvidia.json", OURS "x.json", OURS ID_B ".yaml",
                                         "x" OURS ID_B ".json"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        write_raw(others[i], text_of(ID_B, "0"));
    write_raw(OURS ID_A ".new", text_of(ID_A, "0"));
    write_raw(FILE_A, text_of(ID_B, "0"));
    ck_assert_int_eq(symlink("nvidia.json", path_of(OURS ID_B ".json")), 0);
    load(&s);
    ck_assert_uint_eq(s.n, 0);
    ck_assert(!is_there(OURS ID_A ".new") && !is_there(FILE_A) && !is_there(OURS ID_B ".json"));
    specs_done(&s);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        forget(others[i]);
}

/* A link in the way is replaced, and its target is not written to. */
TEST(test_links)
{
    struct specs s;
    struct stat st;
    load(&s);
    write_raw("target", STR("1"));
    ck_assert_int_eq(symlink("target", path_of(FILE_A)), 0);
    ck_assert_int_eq(symlink("target", path_of(OURS ID_A ".new")), 0);
    put(&s, ID_A, "0,2");
    ck_assert_int_eq(lstat(path_of(FILE_A), &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(stat(path_of("target"), &st), 0);
    ck_assert_int_eq(st.st_size, 1);
    specs_done(&s);
    forget(FILE_A);
    forget("target");
}

static void fails(const char *at, const char *why, enum errc expected)
{
    struct specs s;
    struct err e = ERR_INIT;
    specs_init(&s, str_of(at));
    ck_assert_int_eq(specs_put(&s, STR(ID_A), &on_two, text_of(ID_A, "0,2"), &written, &e),
                     expected);
    ck_assert_msg(strstr(e.text, at) != NULL && strstr(e.text, why) != NULL, "%s", e.text);
    ck_assert_ptr_null(specs_find(&s, STR(ID_A)));
    specs_done(&s);
}

TEST(test_failures)
{
    char other[128];
    struct specs s;
    struct err e = ERR_INIT;
    (void)snprintf(other, sizeof(other), "%s/none/cdi", dir);
    fails(other, "No such file", ERR_UNAVAILABLE);
    (void)snprintf(other, sizeof(other), "%s/file", dir);
    write_raw("file", STR(""));
    fails(other, "Not a directory", ERR_UNAVAILABLE);
    specs_init(&s, str_of(other));
    ck_assert_int_eq(specs_load(&s, &e), ERR_UNAVAILABLE);
    ck_assert(!s.loaded);
    forget("file");
    ck_assert_int_eq(symlink("/tmp", other), 0);
    ck_assert_int_ne(specs_load(&s, &e), OK);
    forget("file");
    ck_assert_int_eq(chmod(dir, 0777), 0);
    fails(dir, "users other than root", ERR_DENIED);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    /* The name of a spec is a folder: it can't be replaced. */
    ck_assert_int_eq(mkdir(path_of(FILE_A), 0700), 0);
    fails(dir, "directory", ERR_UNAVAILABLE);
    ck_assert(!is_there(OURS ID_A ".new"));
    ck_assert_int_eq(rmdir(path_of(FILE_A)), 0);
    ck_assert_int_eq(specs_put(&s, STR("../x"), &on_two, STR(""), &written, &e), ERR_RANGE);
}

/* A spec that can't be opened now is not lost: the folder counts as not read, and is read again. */
TEST(test_unread)
{
    struct specs s;
    struct err e = ERR_INIT;
    struct rlimit usual;
    write_raw(FILE_A, text_of(ID_A, "0,2"));
    specs_init(&s, str_of(dir));
    int free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(free_fd, 0);
    (void)close(free_fd);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit only_folder = {(rlim_t)free_fd + 1, usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &only_folder), 0);
    enum errc code = specs_load(&s, &e);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    ck_assert_int_eq(code, ERR_UNAVAILABLE);
    ck_assert_msg(strstr(e.text, FILE_A) != NULL, "%s", e.text);
    ck_assert(!s.loaded && is_there(FILE_A));
    ck_assert_int_eq(specs_load(&s, &e), OK);
    ck_assert(s.loaded && card_list_equal(specs_find(&s, STR(ID_A)), &on_two));
    specs_done(&s);
    forget(FILE_A);
}

/* A file system in which no file can be made: the error has the path. */
TEST(test_folder_without_files)
{
    struct specs s;
    struct err e = ERR_INIT;
    load(&s);
    specs_done(&s);
    specs_init(&s, STR("/sys/kernel"));
    ck_assert_int_ne(specs_put(&s, STR(ID_A), &on_two, text_of(ID_A, "0"), &written, &e), OK);
    ck_assert_msg(strstr(e.text, "/sys/kernel") != NULL, "%s", e.text);
    specs_done(&s);
}

TEST(test_sweep)
{
    struct specs s;
    char id[SPECS_ID_BYTES + 1];
    load(&s);
    for (uint64_t i = 0; i < SPECS_SWEEP_MAX + 2; i++) {
        specs_make_id(7, i, id);
        put(&s, id, "1");
    }
    specs_make_id(7, 5, id);
    write_raw("nvidia.json", STR("{}"));
    specs_mark_begin(&s);
    specs_mark(&s, str_of(id));
    specs_mark(&s, STR(ID_A));
    ck_assert(!specs_mark_end(&s));
    ck_assert_uint_eq(s.n, 2);
    specs_mark_begin(&s);
    specs_mark(&s, str_of(id));
    ck_assert(specs_mark_end(&s));
    ck_assert_uint_eq(s.n, 1);
    ck_assert_ptr_nonnull(specs_find(&s, str_of(id)));
    specs_mark_begin(&s);
    ck_assert(specs_mark_end(&s));
    ck_assert_uint_eq(s.n, 0);
    specs_done(&s);
    forget("nvidia.json");
}

static enum errc scenario(void *ctx)
{
    struct specs s;
    struct err e = ERR_INIT;
    (void)ctx;
    (void)unlink(path_of(OURS ID_B ".json"));
    specs_init(&s, str_of(dir));
    enum errc code = specs_load(&s, &e);
    for (unsigned i = 0; i < 2 && code == OK; i++) /* the second time it is read */
        code = specs_put(&s, STR(ID_B), &on_two, text_of(ID_B, "0,2"), &written, &e);
    if (code == OK && (s.n != 2 || specs_find(&s, STR(ID_A)) == NULL))
        code = ERR_INTERNAL;
    specs_done(&s);
    return code;
}

TEST(test_without_memory)
{
    write_raw(FILE_A, text_of(ID_A, "1"));
    ck_assert_uint_gt(fail_alloc_each(scenario, NULL), 1);
    ck_assert(is_there(FILE_A)); /* a lack of memory is no reason to remove it */
    forget(FILE_A);
    forget(OURS ID_B ".json");
}

int main(void)
{
    TCase *t = unit_case("specs");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
