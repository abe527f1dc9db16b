/* The token file: reading, comparison with requests, and changes. */
#include "daemon/token.h"

#include "fail_alloc.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST  "first-token-of-all"
#define SECOND "second.token/of+all=="

static char path[] = "/tmp/test_token.XXXXXX";

static void make(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
}

static void unmake(void)
{
    (void)unlink(path);
}

/* Writes a new file each time, as in a mounted Secret. */
static void put(struct str text)
{
    char fresh[64];
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text.p, text.n), (ssize_t)text.n);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(rename(fresh, path), 0);
}

static const struct {
    const char *file;
    const char *authorization; /* NULL: none */
    bool admits;
} cases[] = {
    {FIRST, "Bearer " FIRST, true},
    {FIRST "\n", "bearer " FIRST, true},
    {"\n  " FIRST "  \r\n\n", "BEARER  " FIRST " ", true},
    {FIRST "\n" SECOND "\n", "Bearer " FIRST, true},
    {FIRST "\n" SECOND "\n", "Bearer " SECOND, true},
    {FIRST "\n" SECOND, "Bearer " FIRST "\n" SECOND, false},
    {FIRST, NULL, false},
    {FIRST, "", false},
    {FIRST, "Bearer", false},
    {FIRST, "Bearer ", false},
    {FIRST, FIRST, false},
    {FIRST, "Basic " FIRST, false},
    {FIRST, "Bearer first-token-of-al", false},
    {FIRST, "Bearer " FIRST "x", false},
    {FIRST, "Bearer " FIRST FIRST, false},
    {FIRST, "Bearer First-token-of-all", false},
    {FIRST, "Bearer first-token-of-alm", false},
    {FIRST, "Bearer girst-token-of-all", false},
    {FIRST "\n", "Bearer \n", false},
};

TEST_EACH(who_is_admitted, COUNT_OF(cases))
{
    struct tokens t;
    struct err e = ERR_INIT;
    put(str_of(cases[_i].file));
    ck_assert_ok(tokens_open(&t, str_of(path), false, &e), &e);
    ck_assert(tokens_admit(&t, str_of(cases[_i].authorization)) == cases[_i].admits);
    tokens_done(&t);
}

static const struct {
    struct str file;
    enum errc code;
    const char *error; /* after the path */
} bad[] = {
    {{"", 0}, ERR_SYNTAX, "holds no token"},
    {{" \n\n", 3}, ERR_SYNTAX, "holds no token"},
    {{"two words are no token\n", 23}, ERR_SYNTAX, "holds a character that no token has"},
    {{"a-token-with-a\0byte-too-many", 28}, ERR_SYNTAX, "holds a character that no token has"},
    {{FIRST "\nfifteen-letters\n", 35},
     ERR_RANGE,
     "a token of 15 characters can be guessed: 16 at least"},
};

TEST_EACH(files_that_hold_none, COUNT_OF(bad))
{
    struct tokens t;
    struct err e = ERR_INIT;
    char expected[256];
    put(bad[_i].file);
    ck_assert_int_eq(tokens_open(&t, str_of(path), false, &e), bad[_i].code);
    (void)snprintf(expected, sizeof(expected), "token-file: %s: %s", path, bad[_i].error);
    ck_assert_str_eq(e.text, expected);
}

TEST(a_file_that_is_replaced)
{
    struct tokens t;
    struct err e = ERR_INIT;
    put(STR(FIRST));
    ck_assert_ok(tokens_open(&t, str_of(path), false, &e), &e);
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_SAME);
    put(STR(SECOND));
    ck_assert(tokens_admit(&t, STR("Bearer " FIRST)));
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_TAKEN);
    ck_assert(!tokens_admit(&t, STR("Bearer " FIRST)));
    ck_assert(tokens_admit(&t, STR("Bearer " SECOND)));
    put(STR(""));
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_REFUSED);
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_SAME);
    ck_assert(tokens_admit(&t, STR("Bearer " SECOND)));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_REFUSED);
    ck_assert(tokens_admit(&t, STR("Bearer " SECOND)));
    put(STR(FIRST));
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_TAKEN);
    ck_assert(tokens_admit(&t, STR("Bearer " FIRST)));
    tokens_done(&t);
}

/* The pipe's writer may never come: cardpack waits for it only at the start, when no request
 * waits. */
TEST(a_pipe_is_read_once)
{
    struct tokens t;
    struct err e = ERR_INIT;
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(tokens_open(&t, str_of(path), true, &e), ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(e.text, "no regular file"));
    tokens_done(&t);
    pid_t writer = fork();
    ck_assert_int_ge(writer, 0);
    if (writer == 0) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        _exit(write(fd, FIRST, sizeof(FIRST) - 1) == sizeof(FIRST) - 1 ? 0 : 1);
    }
    ck_assert_ok(tokens_open(&t, str_of(path), false, &e), &e);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    ck_assert(tokens_admit(&t, STR("Bearer " FIRST)));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(tokens_refresh(&t, &e), TOKENS_REFUSED);
    ck_assert(tokens_admit(&t, STR("Bearer " FIRST)));
    tokens_done(&t);
}

static enum errc without_memory(void *ctx)
{
    struct tokens t;
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = tokens_open(&t, str_of(path), false, &e);
    tokens_done(&t);
    return code;
}

TEST(memory_runs_out)
{
    put(STR(FIRST));
    ck_assert_uint_gt(fail_alloc_each(without_memory, NULL), 0);
}

int main(void)
{
    TCase *c = unit_case("token");
    tcase_add_checked_fixture(c, make, unmake);
    return unit_run();
}
