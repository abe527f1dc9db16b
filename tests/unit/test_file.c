#include "file.h"
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
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

START_TEST(test_read_up_to_the_ceiling)
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

END_TEST

START_TEST(test_failures_name_the_path)
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

END_TEST

/* Its writer need not come: whoever waits for it answers nobody else. */
START_TEST(test_a_pipe_is_not_read_again)
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

END_TEST

START_TEST(test_stamp_tells_versions_apart)
{
    char other[80];
    (void)snprintf(other, sizeof(other), "%s.new", path);
    ck_assert(file_stamp_eq(file_stamp(str_of(path)), (struct file_stamp){0}));
    write_file(10);
    struct file_stamp old = file_stamp(str_of(path));
    ck_assert(file_stamp_eq(old, file_stamp(str_of(path))));
    write_file(11);
    ck_assert(!file_stamp_eq(old, file_stamp(str_of(path))));

    /* As the kubelet does it: another file of the same size takes the name. */
    old = file_stamp(str_of(path));
    ck_assert_int_eq(link(path, other), 0);
    ck_assert_int_eq(unlink(path), 0);
    write_file(11);
    ck_assert(!file_stamp_eq(old, file_stamp(str_of(path))));
    ck_assert_int_eq(unlink(other), 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_loop_test(t, test_read_up_to_the_ceiling, 0, 6);
    tcase_add_test(t, test_failures_name_the_path);
    tcase_add_test(t, test_a_pipe_is_not_read_again);
    tcase_add_test(t, test_stamp_tells_versions_apart);
    suite_add_tcase(suite, t);
    return unit_main(suite);
}
