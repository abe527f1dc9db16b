/* The cutter: pieces of lists and of lines, for every way to chunk the body. */
#include "json/jcut.h"

#include "base/limit.h"
#include "unit.h"

#define PIECE_MAX ((size_t)64)

/* The pieces, one a line with "i " or "m " before it; then how the cutting ended. */
struct record {
    struct buf text;
    struct str chunk; /* of the present push */
    unsigned whole;   /* pieces that were within it */
    unsigned pieces;
    enum errc refuse; /* the callback's result from the third piece on */
};

static enum errc on_piece(void *ctx, enum jcut_piece kind, struct str piece, struct err *reterr)
{
    struct record *rec = ctx;
    buf_printf(&rec->text, "%s %.*s\n",
               kind == JCUT_ITEM   ? "i"
               : kind == JCUT_KIND ? "k"
                                   : "m",
               STR_ARG(piece));
    rec->pieces++;
    if (piece.p >= rec->chunk.p && piece.p + piece.n <= rec->chunk.p + rec->chunk.n)
        rec->whole++;
    if (rec->refuse != OK && rec->pieces > 2)
        return err_set(reterr, rec->refuse, "no more");
    return OK;
}

/* Each chunk is a copy on the heap, freed after its push. */
static enum errc push(struct jcut *c, struct record *rec, struct str chunk)
{
    char *copy = malloc(chunk.n == 0 ? 1 : chunk.n);
    ck_assert_ptr_nonnull(copy);
    if (chunk.n > 0)
        memcpy(copy, chunk.p, chunk.n);
    rec->chunk = (struct str){copy, chunk.n};
    enum errc code = jcut_push(c, rec->chunk, NULL);
    free(copy);
    return code;
}

static void end(struct jcut *c, struct record *rec)
{
    struct err e = ERR_INIT;
    rec->chunk = STR_NULL;
    ck_assert_int_eq(jcut_finish(c, &e), e.code);
    buf_printf(&rec->text, "%s", e.text);
}

/* Pushes chunks of `size` bytes; the first has `first`. */
static void cut(struct jcut *c, struct record *rec, struct str body, size_t first, size_t size)
{
    size_t n = first;
    jcut_reset(c);
    buf_clear(&rec->text, SIZE_MAX);
    rec->pieces = 0;
    rec->whole = 0;
    while (body.n > 0) {
        n = MIN_OF(n, body.n);
        ck_assert_int_eq(push(c, rec, (struct str){body.p, n}), c->err.code);
        body = str_skip(body, n);
        n = size;
    }
    end(c, rec);
}

/* The outcome must be the same for every chunking. */
static void check(enum jcut_mode mode, struct str body, const char *want, enum errc refuse)
{
    struct jcut c;
    struct record rec = {.refuse = refuse};
    buf_init(&rec.text, MIB);
    jcut_init(&c, mode, PIECE_MAX, on_piece, &rec);
    cut(&c, &rec, body, body.n, body.n);
    ck_assert_str_is(buf_str(&rec.text), want);
    /* Of lines, the last may wait for its newline. */
    ck_assert_uint_ge(rec.whole + (mode == JCUT_LINES ? 1 : 0), rec.pieces);
    for (size_t size = 1; size < 20; size++) {
        cut(&c, &rec, body, size, size);
        ck_assert_str_is(buf_str(&rec.text), want);
    }
    for (size_t first = 1; first < body.n; first++) {
        cut(&c, &rec, body, first, body.n);
        ck_assert_str_is(buf_str(&rec.text), want);
    }
    jcut_done(&c);
    buf_done(&rec.text);
}

#define X16 "xxxxxxxxxxxxxxxx"
#define X62 X16 X16 X16 "xxxxxxxxxxxxxx"

static const struct {
    const char *body;
    const char *want;
} lists[] = {
    {"{\"items\":[]}", ""},
    {" {\n\"items\" : [ ] \t} \r\n", ""},
    {"{\"items\":null}", ""},
    {"{\"items\": null , \"a\":1}", ""},
    {"{\"items\":[{}]}", "i {}\n"},
    {"{\"items\":[{\"a\":[1,{}]},{\"b\":\"]}\"} , {}]}",
     "i {\"a\":[1,{}]}\ni {\"b\":\"]}\"}\ni {}\n"},
    {"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},"
     "\"items\":[{\"x\":\"\\\"}\"}]}",
     "k \"PodList\"\nm {\"resourceVersion\":\"7\"}\ni {\"x\":\"\\\"}\"}\n"},
    {"{\"items\":[1,-2.5e1,true,null,\"s\",[],[[]]],\"metadata\":{}}",
     "i 1\ni -2.5e1\ni true\ni null\ni \"s\"\ni []\ni [[]]\nm {}\n"},
    {"{\"items\":[ 1 , 2\n]}", "i 1\ni 2\n"},
    {"{\"metadata\":null,\"items\":[{\"\\\\\":\"\\\\\\\"\"}]}",
     "m null\ni {\"\\\\\":\"\\\\\\\"\"}\n"},
    {"{\"metadata\":{\"items\":[1]},\"items\":[2]}", "m {\"items\":[1]}\ni 2\n"},
    {"{\"other\":{\"items\":[1]},\"items\":[2],\"more\":[{}]}", "i 2\n"},
    {"{\"\\u0069tems\":[1],\"items\":[2]}", "i 2\n"},
    {"{\"Items\":[1],\"items\":[2]}", "i 2\n"},
    {"{\"a\\\"\":1,\"items\":[2]}", "i 2\n"},
    {"{\"items\":[\"" X62 "\"]}", "i \"" X62 "\"\n"},
    {"{\"items\":[\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"]}",
     "i \"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"\n"},
    /* The cutter does not check the inside of a piece; its decoder does. */
    {"{\"items\":[{]}", "i {]\nexpected ',' or ']' at offset 12"},
    {"{\"items\":[nonsense, {\"a\" 1}]}", "i nonsense\ni {\"a\" 1}\n"},

    {"", "the list is cut short at offset 0"},
    {" ", "the list is cut short at offset 1"},
    {"{", "the list is cut short at offset 1"},
    {"{}", "a list without \"items\" at offset 2"},
    {"{\"kind\":\"Status\",\"code\":410}", "k \"Status\"\na list without \"items\" at offset 28"},
    {"[]", "expected an object at offset 0"},
    {"null", "expected an object at offset 0"},
    {"<html>", "expected an object at offset 0"},
    {"{\"items\":[{}", "i {}\nthe list is cut short at offset 12"},
    {"{\"items\":[{}]", "i {}\nthe list is cut short at offset 13"},
    {"{\"items\":[{\"a", "the list is cut short at offset 13"},
    {"{\"items\":[1", "the list is cut short at offset 11"},
    {"{\"items\":[]} x", "expected the end at offset 13"},
    {"{\"items\":[]}{", "expected the end at offset 12"},
    {"{\"items\":[1,]}", "i 1\nexpected a value at offset 12"},
    {"{\"items\":[,1]}", "expected a value at offset 10"},
    {"{\"items\":[1 2]}", "i 1\nexpected ',' or ']' at offset 12"},
    {"{\"items\":[1\"2\"]}", "i 1\nexpected ',' or ']' at offset 11"},
    {"{\"items\":[{}{}]}", "i {}\nexpected ',' or ']' at offset 12"},
    {"{\"items\":[1}", "i 1\nexpected ',' or ']' at offset 11"},
    {"{\"items\":[:]}", "expected a value at offset 10"},
    {"{\"items\":{}}", "expected a list of items at offset 9"},
    {"{\"items\":nul}", "expected a list of items at offset 9"},
    {"{\"items\":\"null\"}", "expected a list of items at offset 9"},
    {"{\"items\":}", "expected a value at offset 9"},
    {"{\"items\"[]}", "expected ':' at offset 8"},
    {"{\"items\" \"a\"}", "expected ':' at offset 9"},
    {"{items:[]}", "expected a member's name at offset 1"},
    {"{\"items\":[],}", "expected a member's name at offset 12"},
    {"{,\"items\":[]}", "expected a member's name at offset 1"},
    {"{\"items\":[] \"a\":1}", "expected ',' or '}' at offset 12"},
    {"{\"items\":[]]", "expected ',' or '}' at offset 11"},
    {"{\"items\":[1],\"items\":[2]}", "i 1\na second \"items\" at offset 13"},
    {"{\"items\":null,\"items\":[2]}", "a second \"items\" at offset 14"},
    {"{\"metadata\":1,\"metadata\":2}", "m 1\na second \"metadata\" at offset 14"},
    /* A key and the value of an unknown one are skipped by their quotes and brackets. */
    {"{\"a\":tru,\"items\":[]}", ""},
    {"{\"a\":[1,],\"items\":[]}", ""},
    {"{\"\x01\":1,\"items\":[]}", ""},
    {"{\"a\":\"\xff\",\"items\":[]}", ""},
    {"{\"items\":[\"" X62 "x\"]}", "the value at offset 10 is larger than the limit of 64 bytes"},
    {"{\"items\":[0,\"" X62 X62,
     "i 0\nthe value at offset 12 is larger than the limit of 64 bytes"},
    {"{\"a\":\"" X62 "x\"}", "the value at offset 5 is larger than the limit of 64 bytes"},
    {"{\"" X62 "x\":1}", "the value at offset 1 is larger than the limit of 64 bytes"},
};

TEST_EACH(cuts_lists, COUNT_OF(lists))
{
    check(JCUT_LIST, str_of(lists[_i].body), lists[_i].want, OK);
}

static const struct {
    const char *body;
    const char *want;
} lines[] = {
    {"", ""},
    {"\n\n", ""},
    {"{}\n", "i {}\n"},
    {"{}", "i {}\n"},
    {"{\"a\":1}\n{\"b\":2}\n", "i {\"a\":1}\ni {\"b\":2}\n"},
    {"\n{\"a\":1}\n \t\r\n\n{\"b\":2}", "i {\"a\":1}\ni {\"b\":2}\n"},
    {"{}\r\n{}\r\n", "i {}\r\ni {}\r\n"},
    {"not JSON\n\"open\n", "i not JSON\ni \"open\n"},
    {X62 "xx\n1\n", "i " X62 "xx\ni 1\n"},
    {"1\n" X62 "xxx\n", "i 1\nthe line at offset 2 is larger than the limit of 64 bytes"},
    {"1\n" X62 "xxx", "i 1\nthe line at offset 2 is larger than the limit of 64 bytes"},
};

TEST_EACH(cuts_lines, COUNT_OF(lines))
{
    check(JCUT_LINES, str_of(lines[_i].body), lines[_i].want, OK);
}

TEST(consumer_may_stop)
{
    check(JCUT_LIST, STR("{\"items\":[1,2,3,4]}"), "i 1\ni 2\ni 3\nno more", ERR_CONFLICT);
    check(JCUT_LINES, STR("1\n2\n3\n4\n"), "i 1\ni 2\ni 3\nno more", ERR_CONFLICT);
    check(JCUT_LINES, STR("1\n2\n3"), "i 1\ni 2\ni 3\nno more", ERR_CONFLICT);
}

static enum errc refuse_silently(void *ctx, enum jcut_piece kind, struct str piece,
                                 struct err *reterr)
{
    (void)ctx;
    (void)kind;
    (void)piece;
    (void)reterr;
    return ERR_DENIED;
}

TEST(failure_is_sticky)
{
    struct jcut c;
    struct err e = ERR_INIT;
    jcut_init(&c, JCUT_LINES, PIECE_MAX, refuse_silently, NULL);
    ck_assert_int_eq(jcut_push(&c, STR("12\n"), &e), ERR_DENIED);
    ck_assert_str_eq(e.text, "refused what begins at offset 0");
    ck_assert_int_eq(jcut_push(&c, STR("34\n"), NULL), ERR_DENIED);
    ck_assert_int_eq(jcut_finish(&c, &e), ERR_DENIED);
    jcut_reset(&c);
    ck_assert_ok(jcut_finish(&c, &e), &e);
    jcut_done(&c);
}

TEST(empty_chunks_do_nothing)
{
    struct jcut c;
    struct err e = ERR_INIT;
    struct record rec = {.refuse = OK};
    buf_init(&rec.text, MIB);
    jcut_init(&c, JCUT_LIST, PIECE_MAX, on_piece, &rec);
    ck_assert_int_eq(push(&c, &rec, STR("{\"items\":[\"a")), OK);
    ck_assert_int_eq(push(&c, &rec, STR("")), OK);
    ck_assert_int_eq(jcut_push(&c, STR_NULL, NULL), OK);
    ck_assert_int_eq(push(&c, &rec, STR("b\"]}")), OK);
    ck_assert_ok(jcut_finish(&c, &e), &e);
    ck_assert_str_is(buf_str(&rec.text), "i \"ab\"\n");
    jcut_done(&c);
    buf_done(&rec.text);
}

/* A list of many small items needs memory for only one item at a time. */
TEST(memory_stays_flat)
{
    struct jcut c;
    struct record rec = {.refuse = OK};
    static const char chunk[] = "{\"name\":\"pod\"},{\"name\":\"pod\"},{\"na";
    static const char rest[] = "me\":\"pod\"},";
    buf_init(&rec.text, 0);
    jcut_init(&c, JCUT_LIST, PIECE_MAX, on_piece, &rec);
    ck_assert_int_eq(jcut_push(&c, STR("{\"items\":["), NULL), OK);
    for (int i = 0; i < 20000; i++) {
        ck_assert_int_eq(jcut_push(&c, str_of(chunk), NULL), OK);
        ck_assert_int_eq(jcut_push(&c, str_of(rest), NULL), OK);
        ck_assert_uint_le(c.hold.cap, 256);
    }
    ck_assert_uint_eq(rec.pieces, 60000);
    jcut_done(&c);
    buf_done(&rec.text);
}

/*
 * Long pieces are scanned 16 bytes at a time, but not in chunks of one byte: the outcome must be
 * the same for any bytes. The input has backslashes and brackets in special places, valid or not.
 */
START_TEST(blocks_change_nothing)
{
    static const char bytes[] = "\\\\\\\"\"\"\"[]{}{}{},:x xxxxxxxx";
    struct jcut c;
    struct record rec = {.refuse = OK};
    struct buf body;
    struct buf want;
    uint64_t state = (uint64_t)_i;
    buf_init(&body, MIB);
    buf_init(&want, MIB);
    buf_init(&rec.text, MIB);
    jcut_init(&c, JCUT_LIST, MIB, on_piece, &rec);
    for (int round = 0; round < 60; round++) {
        buf_clear(&body, MIB);
        buf_put(&body, STR("{\"items\":[{\"a\":[{\"b\":[{\"c\":"));
        while (body.n < 400) {
            state = state * UINT64_C(6364136223846793005) + 1;
            buf_putc(&body, bytes[(state >> 33) % (sizeof(bytes) - 1)]);
        }
        buf_put(&body, STR("\"}]}]}}]}"));
        cut(&c, &rec, buf_str(&body), 1, 1);
        buf_clear(&want, MIB);
        buf_put(&want, buf_str(&rec.text));
        for (size_t first = 64; first < 84; first += 3) {
            cut(&c, &rec, buf_str(&body), first, 300);
            ck_assert_str_is(buf_str(&rec.text), buf_cstr(&want));
        }
    }
    jcut_done(&c);
    buf_done(&rec.text);
    buf_done(&want);
    buf_done(&body);
}

int main(void)
{
    TCase *t = unit_case("jcut");
    tcase_add_loop_test(t, blocks_change_nothing, 1, 9);
    return unit_run();
}
