/* Reading files: pipes, limits, owners, and stamps that detect a change. */
#include "base/file.h"
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/cardpack-test-file-XXXXXX";
static char path[64];

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/f", directory);
}

static void tear_down(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

static void write_file(size_t n)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < n; i++)
        (void)fputc('a' + (int)(i % 26), f);
    ck_assert_int_eq(fclose(f), 0);
}

TEST_EACH(test_read_up_to_the_ceiling, 6)
{
    static const struct {
        size_t size;
        enum errc code;
    } cases[] = {{0, OK}, {1, OK}, {4096, OK}, {9999, OK}, {10000, OK}, {10001, ERR_LIMIT}};
    struct err e = ERR_INIT;
    struct buf b;
    write_file(cases[_i].size);
    buf_init(&b, 10000);
    ck_assert_int_eq(file_read(str_of(path), &b, &e), cases[_i].code);
    if (cases[_i].code == OK) {
        ck_assert_uint_eq(b.n, cases[_i].size);
        for (size_t i = 0; i < b.n; i++)
            ck_assert_int_eq(b.p[i], 'a' + (int)(i % 26));
    }
    buf_done(&b);
}

TEST(test_failures_name_the_path)
{
    struct err e = ERR_INIT;
    struct buf b;
    buf_init(&b, 100);
    ck_assert_int_eq(file_read(str_of(path), &b, &e), ERR_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(e.text, path));
    ck_assert_int_eq(file_read(str_of(directory), &b, &e), ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(e.text, "directory"));
    ck_assert_int_eq(file_read(STR(""), &b, &e), ERR_RANGE);
    ck_assert_int_eq(file_read(STR("/tmp/a\0b"), &b, &e), ERR_RANGE);
    buf_done(&b);
}

/* A pipe's writer may never come, and a daemon that waits for it answers no requests. */
TEST(test_a_pipe_is_not_read_again)
{
    struct err e = ERR_INIT;
    struct buf b;
    buf_init(&b, 100);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!file_stamp(str_of(path)).regular);
    ck_assert_int_eq(file_read_again(str_of(path), &b, &e), ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(e.text, "no regular file"));
    ck_assert_int_eq(unlink(path), 0);
    write_file(10);
    ck_assert(file_stamp(str_of(path)).regular);
    ck_assert_int_eq(file_read_again(str_of(path), &b, &e), OK);
    ck_assert_uint_eq(b.n, 10);
    buf_done(&b);
}

/* Replaces the function of file.c that waits for a pipe's writer: the wait is over at once. */
static int on_wait = -1; /* gets a byte at each wait */

int poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    (void)fds;
    ck_assert_uint_eq(nfds, 1);
    ck_assert_int_gt(timeout, 0);
    if (on_wait >= 0)
        ck_assert_int_eq(write(on_wait, "", 1), 1);
    return 0;
}

TEST(test_a_pipe_without_a_writer)
{
    struct err e = ERR_INIT;
    struct buf b;
    buf_init(&b, 100);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(file_read(str_of(path), &b, &e), ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(e.text, "a pipe that no process writes to"));
    ck_assert_ptr_nonnull(strstr(e.text, path));
    ck_assert_uint_eq(b.n, 0);
    buf_done(&b);
}

/* The writer starts when the wait is over, before or after the first read. */
TEST(test_a_pipe_with_a_slow_writer)
{
    struct err e = ERR_INIT;
    struct buf b;
    int told[2];
    char c;
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pipe(told), 0);
    on_wait = told[1];
    int writer = open(path, O_RDWR | O_CLOEXEC); /* so that the open does not wait for the reader */
    ck_assert_int_ge(writer, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(read(told[0], &c, 1) == 1 && write(writer, "ab", 2) == 2 &&
                      write(writer, "cd", 2) == 2
                  ? 0
                  : 1);
    (void)close(writer);
    buf_init(&b, 100);
    ck_assert_ok(file_read(str_of(path), &b, &e), &e);
    ck_assert_str_is(buf_str(&b), "abcd");
    buf_done(&b);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

TEST(test_stamp_tells_versions_apart)
{
    char other[80];
    (void)snprintf(other, sizeof(other), "%s.new", path);
    ck_assert(file_stamp_eq(file_stamp(str_of(path)), (struct file_stamp){0}));
    write_file(10);
    struct file_stamp old = file_stamp(str_of(path));
    ck_assert(file_stamp_eq(old, file_stamp(str_of(path))));
    write_file(11);
    ck_assert(!file_stamp_eq(old, file_stamp(str_of(path))));

    /* As the kubelet does: another file of the same size replaces it by rename. */
    old = file_stamp(str_of(path));
    ck_assert_int_eq(link(path, other), 0);
    ck_assert_int_eq(unlink(path), 0);
    write_file(11);
    ck_assert(!file_stamp_eq(old, file_stamp(str_of(path))));
    ck_assert_int_eq(unlink(other), 0);
}

/* As rsync --times does, or an editor that restores the time: only the content differs. */
TEST(test_stamp_tells_a_rewrite_in_place)
{
    struct stat before;
    write_file(11);
    ck_assert_int_eq(stat(path, &before), 0);
    struct file_stamp old = file_stamp(str_of(path));
    struct timespec times[] = {before.st_atim, before.st_mtim};
    struct file_stamp now = old;
    /* The kernel's clock for files advances in steps of some milliseconds. */
    for (int i = 0; i < 1000 && file_stamp_eq(old, now); i++) {
        (void)usleep(1000);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "y", 1), 1);
        (void)close(fd);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
        now = file_stamp(str_of(path));
    }
    ck_assert_int_eq(now.size, old.size);
    ck_assert_int_eq(now.mtime_ns, old.mtime_ns);
    ck_assert_uint_eq(now.inode, old.inode);
    ck_assert(!file_stamp_eq(old, now));
}

/* What lies at NAME.new is neither followed nor opened: opening a pipe would wait for ever. */
TEST_EACH(test_replace_opens_nothing_that_is_there, 5)
{
    static const char *const kinds[] = {"pipe", "link", "hard link", "file", "folder"};
    char fresh[80];
    char victim[80];
    struct err e = ERR_INIT;
    struct buf b;
    buf_init(&b, 100);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    (void)snprintf(victim, sizeof(victim), "%s/victim", directory);
    write_file(3);
    ck_assert_int_eq(rename(path, victim), 0);
    if (strcmp(kinds[_i], "pipe") == 0)
        ck_assert_int_eq(mkfifo(fresh, 0600), 0);
    else if (strcmp(kinds[_i], "link") == 0)
        ck_assert_int_eq(symlink(victim, fresh), 0);
    else if (strcmp(kinds[_i], "hard link") == 0)
        ck_assert_int_eq(link(victim, fresh), 0);
    else if (strcmp(kinds[_i], "file") == 0)
        ck_assert_int_eq(rename(victim, fresh), 0);
    else
        ck_assert_int_eq(mkdir(fresh, 0700), 0);
    bool folder = strcmp(kinds[_i], "folder") == 0;
    ck_assert(folder == (file_replace(str_of(path), STR("content"), &e) != OK));
    ck_assert(folder == (file_read(str_of(path), &b, &e) != OK));
    ck_assert(folder || str_eq(buf_str(&b), STR("content")));
    buf_clear(&b, 0);
    if (strcmp(kinds[_i], "file") != 0)
        ck_assert_int_eq(file_read(str_of(victim), &b, &e), OK);
    ck_assert(b.n == 0 || str_eq(buf_str(&b), STR("abc")));
    buf_done(&b);
    (void)rmdir(fresh);
    (void)unlink(victim);
}

int main(void)
{
    TCase *t = unit_case("file");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
