/* The log: both formats, escapes, cuts, levels, and a reader that does not read. */
#include "base/log.h"

#include "fail_alloc.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define CAPTURE_BYTES 65536

static char captured[CAPTURE_BYTES + 1];
static int sink_fd = -1;

static void capture(enum log_level level, enum log_format format)
{
    sink_fd = memfd_create("log", 0);
    ck_assert_int_ge(sink_fd, 0);
    log_setup(sink_fd, level, format);
}

/* The output since the last call; it must be whole lines. */
static struct str written(void)
{
    ssize_t n = pread(sink_fd, captured, CAPTURE_BYTES, 0);
    ck_assert_int_ge(n, 0);
    captured[n] = '\0';
    ck_assert(n == 0 || captured[n - 1] == '\n');
    ck_assert_int_eq(ftruncate(sink_fd, 0), 0);
    ck_assert_int_eq((int)lseek(sink_fd, 0, SEEK_SET), 0);
    return (struct str){captured, (size_t)n};
}

/* One line without its newline and its time; checks the time. */
static struct str line_after(const char *before, const char *after)
{
    const char pattern[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    struct str s = written();
    ck_assert(str_starts(s, str_of(before)));
    s = str_skip(s, strlen(before));
    for (size_t i = 0; i < sizeof(pattern) - 1; i++) {
        ck_assert_uint_gt(s.n, i);
        bool digit = s.p[i] >= '0' && s.p[i] <= '9';
        ck_assert(pattern[i] == 'd' ? digit : s.p[i] == pattern[i]);
    }
    s = str_skip(s, sizeof(pattern) - 1);
    ck_assert(str_starts(s, str_of(after)));
    s = str_skip(s, strlen(after));
    s.n--;
    ck_assert_ptr_null(memchr(s.p, '\n', s.n));
    return s;
}

static json_t *line_as_json(void)
{
    struct str s = written();
    ck_assert_uint_gt(s.n, 0);
    ck_assert_ptr_eq(memchr(s.p, '\n', s.n), s.p + s.n - 1);
    json_error_t why;
    json_t *root = json_loadb(s.p, s.n - 1, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    ck_assert_msg(root != NULL, "%s: %.200s", why.text, s.p);
    return root;
}

TEST(logfmt)
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    log_info("bound", kv_str("pod", STR("ns/a")), kv_int("mem", INT64_MIN),
             kv_uint("took_us", UINT64_MAX), kv_bool("again", 2 > 1), kv_bool("late", 2 < 1));
    ck_assert_str_is(line_after("time=", " level=info msg=bound "),
                     "pod=ns/a mem=-9223372036854775808 took_us=18446744073709551615 again=true "
                     "late=false");
    log_error("not bound");
    ck_assert_str_is(line_after("time=", " level=error msg="), "\"not bound\"");
}

TEST(json)
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_warn("not bound", kv_str("pod", STR("ns/a")), kv_int("mem", -8), kv_uint("took_us", 12),
             kv_bool("again", true));
    ck_assert_str_is(line_after("{\"time\":\"", "\",\"level\":\"warn\",\"msg\":\"not bound\","),
                     "\"pod\":\"ns/a\",\"mem\":-8,\"took_us\":12,\"again\":true}");
}

/* A value as printed after "v=" in logfmt and after "\"v\":" in JSON. */
static const struct {
    struct str value;
    const char *logfmt, *json;
} values[] = {
    {{"plain/1.0:x", 11}, "plain/1.0:x", "\"plain/1.0:x\""},
    {{"", 0}, "\"\"", "\"\""},
    {{NULL, 0}, "\"\"", "\"\""},
    {{"a b", 3}, "\"a b\"", "\"a b\""},
    {{"a=b", 3}, "\"a=b\"", "\"a=b\""},
    {{"say \"no\"", 8}, "\"say \\\"no\\\"\"", "\"say \\\"no\\\"\""},
    {{"C:\\x", 4}, "\"C:\\\\x\"", "\"C:\\\\x\""},
    {{"a\nlevel=error", 13}, "\"a\\u000alevel=error\"", "\"a\\u000alevel=error\""},
    {{"\r\t\x1b[2J\x7f", 7},
     "\"\\u000d\\u0009\\u001b[2J\\u007f\"",
     "\"\\u000d\\u0009\\u001b[2J\\u007f\""},
    {{"a\0b", 3}, "\"a\\u0000b\"", "\"a\\u0000b\""},
    {{"K\xc3\xb6ln", 5}, "\"K\xc3\xb6ln\"", "\"K\xc3\xb6ln\""},
    {{"\xf0\x9f\x98\x80", 4}, "\"\xf0\x9f\x98\x80\"", "\"\xf0\x9f\x98\x80\""},
    /* Line breaks and terminal controls outside ASCII: NEL, CSI, the two separators. */
    {{"\xc2\x85\xc2\x9b"
      "2J",
      6},
     "\"\\u0085\\u009b2J\"",
     "\"\\u0085\\u009b2J\""},
    {{"\xe2\x80\xa8\xe2\x80\xa9", 6}, "\"\\u2028\\u2029\"", "\"\\u2028\\u2029\""},
    /* Characters that change the direction of text, have no width, or are above U+FFFF. */
    {{"\xe2\x80\xae\xd8\x9c\xef\xbb\xbf", 8}, /* NOLINT(misc-misleading-bidirectional) */
     "\"\\u202e\\u061c\\ufeff\"",
     "\"\\u202e\\u061c\\ufeff\""},
    {{"\xf3\xa0\x81\x81", 4}, "\"\\udb40\\udc41\"", "\"\\udb40\\udc41\""},
    {{"\xe2\x80\xa7\xe2\x80\xb0", 6},
     "\"\xe2\x80\xa7\xe2\x80\xb0\"",
     "\"\xe2\x80\xa7\xe2\x80\xb0\""},
    /* Not UTF-8: one U+FFFD for each byte. */
    {{"a\xff"
      "b",
      3},
     "\"a\xef\xbf\xbd"
     "b\"",
     "\"a\xef\xbf\xbd"
     "b\""},
    {{"\xed\xa0\x80", 3},
     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {{"\xe2\x82", 2}, "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
};

TEST_EACH(escapes, COUNT_OF(values))
{
    char expected[200];
    capture(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    log_info("m", kv_str("v", values[_i].value), kv_int("end", 1));
    (void)snprintf(expected, sizeof(expected), "v=%s end=1", values[_i].logfmt);
    ck_assert_str_is(line_after("time=", " level=info msg=m "), expected);
    log_setup(sink_fd, LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_info("m", kv_str("v", values[_i].value), kv_int("end", 1));
    (void)snprintf(expected, sizeof(expected), "\"v\":%s,\"end\":1}", values[_i].json);
    ck_assert_str_is(line_after("{\"time\":\"", "\",\"level\":\"info\",\"msg\":\"m\","), expected);
}

/* Repeated to 20,000 bytes: the line is whole, and says that it was cut. */
static const char *const fillers[] = {
    "x", "\"", "\n", "\xff", "\xc3\xb6", "\xf0\x9f\x98\x80", "ab\x01", "\xe2\x80\xa8z",
};

static struct str long_value(const char *filler, size_t shift)
{
    static char bytes[20000];
    struct str f = str_of(filler);
    memset(bytes, 's', sizeof(bytes));
    for (size_t i = shift; i + f.n <= sizeof(bytes); i += f.n)
        memcpy(bytes + i, f.p, f.n);
    return (struct str){bytes, sizeof(bytes)};
}

TEST_EACH(long_values_leave_a_whole_line, COUNT_OF(fillers))
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    for (size_t shift = 0; shift < 8; shift++) {
        struct str v = long_value(fillers[_i], shift);
        log_info("long", kv_str("a", v), kv_uint("n", 7), kv_str("b", v), kv_str("c", v),
                 kv_str("d", v), kv_str("e", v), kv_bool("last", true));
        json_t *root = line_as_json();
        /* A long value does not remove the fields after it. */
        ck_assert_int_eq(json_integer_value(json_object_get(root, "n")), 7);
        ck_assert_ptr_nonnull(json_object_get(root, "b"));
        ck_assert(json_is_true(json_object_get(root, "cut")));
        json_decref(root);
    }
}

TEST_EACH(long_values_leave_a_whole_logfmt_line, COUNT_OF(fillers))
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    for (size_t shift = 0; shift < 8; shift++) {
        struct str v = long_value(fillers[_i], shift);
        log_info("long", kv_str("a", v), kv_uint("n", 7), kv_str("b", v), kv_str("c", v),
                 kv_str("d", v), kv_str("e", v));
        struct str line = line_after("time=", " level=info msg=long a=");
        ck_assert_ptr_nonnull(memmem(line.p, line.n, " n=7 b=", 7));
        ck_assert(str_ends(line, STR(" cut=true")));
    }
}

/* Every length around the ceilings of a value and of a line. */
TEST(no_length_breaks_a_line)
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    struct str v = long_value("y", 0);
    size_t cut = 0;
    for (size_t n = 0; n < 4000; n += n < 3600 ? 50 : 1) {
        size_t head = MIN_OF(n, (size_t)1000);
        log_info("m", kv_str("a", ((struct str){v.p, head})),
                 kv_str("b", ((struct str){v.p, MIN_OF(n - head, (size_t)1000)})),
                 kv_str("c", ((struct str){v.p, n < 2000 ? 0 : MIN_OF(n - 2000, (size_t)1000)})),
                 kv_str("d", ((struct str){v.p, n < 3000 ? 0 : n - 3000})), kv_int("e", -12345));
        json_t *root = line_as_json();
        ck_assert_uint_eq(json_string_length(json_object_get(root, "a")), head);
        bool says_cut = json_object_get(root, "cut") != NULL;
        size_t left_out = (size_t)3 + 5 + (says_cut ? 1U : 0U) - json_object_size(root);
        ck_assert(says_cut == (left_out > 0));
        ck_assert(says_cut || json_integer_value(json_object_get(root, "e")) == -12345);
        cut += says_cut ? 1 : 0;
        json_decref(root);
    }
    ck_assert_uint_gt(cut, 0);
    ck_assert_uint_lt(cut, 200);
}

TEST(many_fields_leave_a_whole_line)
{
    enum {
        N = 1000
    };

    static struct kv fields[N];
    static char keys[N][8];
    capture(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    for (int i = 0; i < N; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        fields[i] = kv_int(keys[i], i);
    }
    log_write(LOG_LEVEL_INFO, "many", fields, N);
    json_t *root = line_as_json();
    ck_assert_int_eq(json_integer_value(json_object_get(root, "k100")), 100);
    ck_assert(json_is_true(json_object_get(root, "cut")));
    json_decref(root);
}

TEST(level_is_checked_before_the_fields)
{
    int evaluated = 0;
    capture(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    log_debug("no", kv_int("n", ++evaluated));
    log_info("no", kv_int("n", ++evaluated));
    ck_assert_int_eq(evaluated, 0);
    ck_assert_uint_eq(written().n, 0);
    log_warn("yes", kv_int("n", ++evaluated));
    log_error("yes", kv_int("n", ++evaluated));
    ck_assert_int_eq(evaluated, 2);
    ck_assert_uint_gt(written().n, 0);
}

/* The log works without memory, and between a failed call and the check of its errno. */
TEST(allocates_nothing_and_keeps_errno)
{
    capture(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    log_error("no memory", kv_str("v", STR("\x01")));
    ck_assert_uint_eq(fail_alloc_count(), 0);
    fail_alloc_disarm();
    ck_assert_uint_gt(written().n, 0);
    log_setup(open("/dev/full", O_WRONLY | O_CLOEXEC), LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    errno = EDOM;
    log_error("lost");
    ck_assert_int_eq(errno, EDOM);
}

/* The process goes on, and the log says later how many lines were lost. */
TEST(a_reader_that_stalls_holds_up_nothing)
{
    int ends[2];
    static char bytes[1 << 20];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
    ck_assert_int_eq(write(ends[1], bytes, 4096), 4096);
    log_setup(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    log_never_wait();
    uint64_t before = log_dropped();
    for (int i = 0; i < 3; i++)
        log_info("lost"); /* a blocking write would wait forever */
    ck_assert_uint_eq(log_dropped() - before, 3);
    ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(read(ends[0], bytes, sizeof(bytes)), 4096);
    log_info("seen");
    ssize_t n = read(ends[0], bytes, sizeof(bytes) - 1);
    ck_assert_int_gt(n, 0);
    bytes[n] = '\0';
    ck_assert_ptr_nonnull(strstr(bytes, "msg=\"log lines were dropped\" lines=3\n"));
    /* A pipe of one page has room again after it is read. */
    log_info("later");
    ck_assert_uint_le(log_dropped() - before, 5);
    (void)close(ends[0]);
    log_info("no reader"); /* lost, as before */
    (void)close(ends[1]);
}

TEST(lines_of_one_cause_are_counted_instead)
{
    struct log_limit l = {.n = 0};
    char want[64];
    capture(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    for (uint64_t now = 50000; now < 60000; now += 10) {
        bool is = log_limit_allows(&l, now, "cause");
        ck_assert(is == (now < 50000 + LOG_LIMIT_LINES * 10));
        ck_assert_uint_eq(written().n, 0);
    }
    ck_assert(log_limit_allows(&l, 60000, "cause"));
    (void)snprintf(want, sizeof(want), " of=cause lines=%d\n", 1000 - LOG_LIMIT_LINES);
    ck_assert(str_ends(written(), str_of(want)));
    ck_assert(log_limit_allows(&l, 60001, "cause"));
    ck_assert_uint_eq(written().n, 0);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return unit_run();
}
