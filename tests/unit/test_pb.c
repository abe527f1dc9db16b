/* The wire format of Protocol Buffers: golden bytes, and what a reader must refuse. */
#include "fail_alloc.h"
#include "kubelet/pb.h"
#include "unit.h"

#define ARENA_BYTES ((size_t)65536)
#define OUT_BYTES   ((size_t)1 << 20)

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena, ARENA_BYTES);
}

static void tear_down(void)
{
    arena_done(&arena);
}

#define BYTES(literal)                  \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

/* Reads all fields; of field 1 the number, of field 2 the string, of field 3 the message likewise.
 */
struct seen {
    int64_t number;
    struct str text;
    unsigned inner;
    unsigned fields;
};

static void read_all(struct pb_reader *r, struct seen *s)
{
    struct pb_field f;
    while (pb_next(r, &f)) {
        s->fields++;
        if (f.number == 1) {
            s->number = pb_i64(r, &f);
        } else if (f.number == 2) {
            s->text = pb_str(r, &f);
        } else if (f.number == 3) {
            struct pb_reader inner = pb_inner(r, &f);
            s->inner++;
            read_all(&inner, s);
        }
    }
}

static const struct {
    struct str bytes;
    int64_t number;
    const char *text;
    unsigned fields;
} good[] = {
    {BYTES(""), 0, NULL, 0},
    {BYTES("\x08\x96\x01"), 150, NULL, 1},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -1, NULL, 1},
    {BYTES("\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00"), 1, NULL,
     1},                                     /* more bytes than needed */
    {BYTES("\x08\x01\x08\x02"), 2, NULL, 2}, /* the last wins */
    {BYTES("\x12\x00"), 0, "", 1},
    {BYTES("\x12\x07testing"), 0, "testing", 1},
    {BYTES("\x12\x02\xc3\xa4"), 0, "\xc3\xa4", 1},
    {BYTES("\x1a\x02\x08\x07\x12\x01x"), 7, "x", 3},
    {BYTES("\x21"
           "12345678"
           "\x2d"
           "1234"
           "\x32\x02zz\x38\x01\x08\x05"),
     5, NULL, 5},
    {BYTES("\x23\x24\x08\x05"), 5, NULL, 2},                          /* a group */
    {BYTES("\x23\x2b\x12\x01y\x2c\x08\x03\x24\x08\x05"), 5, NULL, 2}, /* with a group in it */
    {BYTES("\xf8\xff\xff\xff\x0f\x01"), 0, NULL, 1}, /* the largest number of a field */
};

TEST_EACH(test_read, COUNT_OF(good))
{
    struct err e = ERR_INIT;
    struct seen s = {.text = STR_NULL};
    struct pb_reader r = pb_read(good[_i].bytes, &e);
    read_all(&r, &s);
    ck_assert_msg(e.code == OK, "%d: %s", _i, e.text);
    ck_assert_int_eq(s.number, good[_i].number);
    ck_assert_uint_eq(s.fields, good[_i].fields);
    if (good[_i].text == NULL)
        ck_assert_ptr_null(s.text.p);
    else
        ck_assert_str_is(s.text, good[_i].text);
}

static const struct {
    struct str bytes;
    const char *why;
} bad[] = {
    {BYTES("\x08"), "cut short at byte 1"},
    {BYTES("\x08\x96"), "cut short at byte 1"},
    {BYTES("\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02"), "more than 64 bits at byte 1"},
    {BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), "more than 64 bits"},
    {BYTES("\x12\x05"
           "abcd"),
     "cut short at byte 2"},
    {BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
           "a"),
     "cut short"},
    {BYTES("\x12\x01\xc3"), "field 2 is not UTF-8"},
    {BYTES("\x12\x02\xc0\x80"), "field 2 is not UTF-8"},
    {BYTES("\x0a\x01"
           "a"),
     "field 1 has wire type 2, expected 0"},
    {BYTES("\x10\x01"), "field 2 has wire type 0, expected 2"},
    {BYTES("\x18\x01"), "field 3 has wire type 0, expected 2"},
    {BYTES("\x00\x01"), "field number that is not allowed"},
    {BYTES("\x80\x80\x80\x80\x10\x01"), "field number that is not allowed"},
    {BYTES("\x0e\x01"), "unknown wire type"},
    {BYTES("\x0f\x01"), "unknown wire type"},
    {BYTES("\x24"), "unknown wire type"}, /* the end of a group that has no start */
    {BYTES("\x23"), "cut short"},
    {BYTES("\x23\x08\x01"), "cut short"},
    {BYTES("\x23\x2c"), "the end of another group"},
    {BYTES("\x21\x01\x02"), "cut short"},
    {BYTES("\x2d\x01\x02"), "cut short"},
    {BYTES("\x1a\x02\x08\x96"), "cut short at byte 1"},
};

TEST_EACH(test_refuse, COUNT_OF(bad))
{
    struct err e = ERR_INIT;
    struct seen s = {.text = STR_NULL};
    struct pb_field f;
    struct pb_reader r = pb_read(bad[_i].bytes, &e);
    read_all(&r, &s);
    ck_assert_int_eq(e.code, ERR_SYNTAX);
    ck_assert_msg(strstr(e.text, bad[_i].why) != NULL, "%d: \"%s\" without \"%s\"", _i, e.text,
                  bad[_i].why);
    ck_assert(!pb_next(&r, &f));
}

/* Messages in messages, and groups in groups: one level more than allowed fails. */
TEST(test_depth)
{
    for (size_t levels = LIMIT_PB_DEPTH - 1; levels <= LIMIT_PB_DEPTH; levels++) {
        struct buf out;
        struct err e = ERR_INIT;
        struct seen s = {.text = STR_NULL};
        size_t begun[LIMIT_PB_DEPTH];
        buf_init(&out, OUT_BYTES);
        for (size_t i = 0; i < levels; i++)
            begun[i] = pb_begin(&out, 3);
        for (size_t i = levels; i > 0; i--)
            pb_end(&out, begun[i - 1]);
        struct pb_reader r = pb_read(buf_str(&out), &e);
        read_all(&r, &s);
        ck_assert_int_eq(e.code == OK, levels < LIMIT_PB_DEPTH);
        ck_assert_uint_eq(s.inner, levels);
        buf_done(&out);
    }
    char groups[2 * (LIMIT_PB_DEPTH + 1)];
    for (size_t levels = LIMIT_PB_DEPTH; levels <= LIMIT_PB_DEPTH + 1; levels++) {
        struct err e = ERR_INIT;
        struct seen s = {.text = STR_NULL};
        memset(groups, 0x23, levels);
        memset(groups + levels, 0x24, levels);
        struct pb_reader r = pb_read((struct str){groups, 2 * levels}, &e);
        read_all(&r, &s);
        ck_assert_int_eq(e.code == OK, levels <= LIMIT_PB_DEPTH);
    }
}

TEST(test_write)
{
    static const char golden[] =
        "\x0a\x07testing\x10\x01\x18\x96\x01\x20\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\x01\x2a\x00\x32\x06\x0a\x01k\x12\x01v\x32\x00\x3a\x00";
    struct buf out;
    buf_init(&out, OUT_BYTES);
    pb_put_str(&out, 1, STR("testing"));
    pb_put_bool(&out, 2, true);
    pb_put_i64(&out, 3, 150);
    pb_put_i64(&out, 4, -1);
    pb_put_item(&out, 5, STR(""));
    pb_put_pair(&out, 6, STR("k"), STR("v"));
    pb_put_pair(&out, 6, STR(""), STR(""));
    pb_end(&out, pb_begin(&out, 7));
    pb_put_str(&out, 8, STR("")); /* defaults are left out */
    pb_put_bool(&out, 9, false);
    pb_put_i64(&out, 10, 0);
    ck_assert(str_eq(buf_str(&out), (struct str){golden, sizeof(golden) - 1}));
    buf_done(&out);
}

/* The length of a message takes one byte more at 128 and at 16384. */
TEST(test_length)
{
    static const size_t sizes[] = {0, 124, 125, 126, 16379, 16380, 16381, 70000};
    static char text[70000];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct buf out;
        struct err e = ERR_INIT;
        struct seen s = {.text = STR_NULL};
        buf_init(&out, OUT_BYTES);
        size_t outer = pb_begin(&out, 3);
        size_t inner = pb_begin(&out, 3);
        pb_put_item(&out, 2, (struct str){text, sizes[i]});
        pb_end(&out, inner);
        pb_end(&out, outer);
        pb_put_i64(&out, 1, 9);
        struct pb_reader r = pb_read(buf_str(&out), &e);
        read_all(&r, &s);
        ck_assert_msg(e.code == OK, "%zu: %s", sizes[i], e.text);
        ck_assert_uint_eq(s.text.n, sizes[i]);
        ck_assert_int_eq(s.number, 9);
        buf_done(&out);
    }
}

/* A buf that is full keeps its failure, and pb_end does not touch what is not there. */
TEST(test_write_full)
{
    for (size_t max = 0; max < 150; max++) {
        static char text[140];
        struct buf out;
        memset(text, 'b', sizeof(text));
        buf_init(&out, max);
        size_t begun = pb_begin(&out, 1);
        pb_put_item(&out, 1, (struct str){text, sizeof(text)});
        pb_end(&out, begun);
        ck_assert_int_eq(buf_failed(&out), max < 3 + 3 + sizeof(text));
        buf_done(&out);
    }
}

static enum errc add_strings(void *ctx)
{
    struct str bytes = *(const struct str *)ctx;
    struct err e = ERR_INIT;
    struct arena a;
    struct pb_field f;
    struct pb_strs list = {.n = 0};
    arena_init(&a, ARENA_BYTES);
    struct pb_reader r = pb_read(bytes, &e);
    while (pb_next(&r, &f))
        pb_add_str(&r, &a, &list, &f);
    if (e.code == OK)
        ck_assert_uint_eq(list.n, bytes.n / 3);
    arena_done(&a);
    return e.code;
}

TEST(test_no_memory)
{
    char bytes[3 * 1000];
    for (size_t i = 0; i < sizeof(bytes); i += 3)
        memcpy(bytes + i, "\x12\x01x", 3);
    struct str all = {bytes, sizeof(bytes)};
    ck_assert_uint_gt(fail_alloc_each(add_strings, &all), 0);
    /* The ceiling of the arena is a limit of ours, not a lack of memory. */
    struct err e = ERR_INIT;
    struct arena a;
    struct pb_field f;
    struct pb_strs list = {.n = 0};
    arena_init(&a, 64);
    struct pb_reader r = pb_read(all, &e);
    while (pb_next(&r, &f))
        pb_add_str(&r, &a, &list, &f);
    ck_assert_int_eq(e.code, ERR_LIMIT);
    arena_done(&a);
}

int main(void)
{
    TCase *t = unit_case("pb");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
