/*
 * Reader, writer and cutter together, on random documents and mutations of them. The seed is fixed,
 * so a failure repeats; its message has the case and the document.
 */
#include "json_oracle.h"
#include "unit.h"
#include "json/jcut.h"
#include "json/jwrite.h"

#define SEED      UINT64_C(20240229)
#define DOCUMENTS 15000
#define DEPTH_MAX 6

static uint64_t state;

static uint64_t splitmix(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(size_t n)
{
    return (size_t)(splitmix() % n);
}

static struct str pick(const char *const *table, size_t n)
{
    return str_of(table[below(n)]);
}

#define PICK(table) pick(table, COUNT_OF(table))

static void put_space(struct buf *b)
{
    static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t", "\r\n", "    "};
    buf_put(b, PICK(spaces));
}

static void put_string(struct buf *b)
{
    static const char *const pieces[] = {
        "a",
        "node-",
        "0123456789abcdef",
        "nvidia.com/gpu",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0041",
        "\\u00e9",
        "\\u20ac",
        "\\ud83d\\ude00",
        "\xc3\xa9",
        "\xe2\x82\xac",
        "\xf0\x9f\x98\x80",
        "{}[],:",
        " ",
        "\x7f",
    };
    buf_putc(b, '"');
    for (size_t n = below(8); n > 0; n--)
        buf_put(b, PICK(pieces));
    buf_putc(b, '"');
}

static void put_number(struct buf *b)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "1",
        "-1",
        "42",
        "1.5",
        "-0.25",
        "1e3",
        "1E-7",
        "2.5e+10",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1e400",
        "123456789012345678901234567890",
        "0.1e1",
        "0e0",
        "5e-324",
    };
    buf_put(b, PICK(numbers));
}

static void put_value(struct buf *b, unsigned depth);

static void put_nested(struct buf *b, unsigned depth, bool object)
{
    buf_putc(b, object ? '{' : '[');
    put_space(b);
    for (size_t n = below(5); n > 0; n--) {
        if (object) {
            put_string(b);
            put_space(b);
            buf_putc(b, ':');
            put_space(b);
        }
        put_value(b, depth + 1);
        put_space(b);
        if (n > 1)
            buf_putc(b, ',');
        put_space(b);
    }
    buf_putc(b, object ? '}' : ']');
}

/* DEPTH_MAX limits the recursion. */
static void put_value(struct buf *b, unsigned depth)
{
    static const char *const literals[] = {"null", "true", "false"};
    size_t kind = below(depth < DEPTH_MAX ? 8 : 3);
    switch (kind) {
    case 0:
        buf_put(b, PICK(literals));
        return;
    case 1:
        put_number(b);
        return;
    case 2:
        put_string(b);
        return;
    default:
        put_nested(b, depth, kind % 2 == 0);
        return;
    }
}

/* One random change, of a kind that often breaks JSON. */
static void mutate(struct buf *b)
{
    static const char *const tokens[] = {
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "0",
        "-",
        ".",
        "e",
        "null",
        "true",
        "\\u",
        "\\ud800",
        "\xff",
        "\xc3",
        "\xed\xa0\x80",
        "\n",
        "\x01",
        " ",
        "1e999",
        "/",
        "'",
        "\\u0000",
        "\x80",
    };
    struct str token = PICK(tokens);
    size_t at = below(b->n + 1);
    switch (below(4)) {
    case 0: /* insert */
        if (!buf_reserve(b, token.n))
            return;
        memmove(b->p + at + token.n, b->p + at, b->n - at);
        memcpy(b->p + at, token.p, token.n);
        b->n += token.n;
        return;
    case 1: /* overwrite */
        memcpy(b->p + at, token.p, MIN_OF(token.n, b->n - at));
        return;
    case 2: /* remove */
        if (at < b->n) {
            memmove(b->p + at, b->p + at + 1, b->n - at - 1);
            b->n--;
        }
        return;
    default: /* cut short */
        b->n = at;
        return;
    }
}

static void check_against_jansson(const struct buf *doc, int round)
{
    /* A copy of the exact size lets ASan see an over-read. */
    char *copy = malloc(doc->n == 0 ? 1 : doc->n);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, doc->p, doc->n);
    const char *why = oracle_disagreement((struct str){copy, doc->n});
    free(copy);
    ck_assert_msg(why == NULL, "seed %llu, case %d: %s: %.*s", (unsigned long long)SEED, round, why,
                  STR_ARG(buf_str(doc)));
}

TEST(agrees_with_jansson)
{
    struct buf doc;
    buf_init(&doc, MIB);
    state = SEED;
    for (int round = 0; round < DOCUMENTS; round++) {
        buf_clear(&doc, SIZE_MAX);
        put_space(&doc);
        put_value(&doc, 0);
        put_space(&doc);
        check_against_jansson(&doc, round);
        for (size_t n = 1 + below(3); n > 0; n--) {
            mutate(&doc);
            check_against_jansson(&doc, round);
        }
    }
    ck_assert(!buf_failed(&doc));
    buf_done(&doc);
}

/* Writes what it reads; the reader's depth limits the recursion. */
static void copy_value(struct jread *r, struct jwrite *w)
{
    struct str key;
    switch (jread_type(r)) {
    case JTYPE_NONE:
        return;
    case JTYPE_NULL:
        jwrite_str(w, jread_str(r));
        return;
    case JTYPE_BOOL:
        jwrite_bool(w, jread_bool(r));
        return;
    case JTYPE_NUMBER:
        jwrite_raw(w, jread_raw(r));
        return;
    case JTYPE_STRING:
        jwrite_str(w, jread_str(r));
        return;
    case JTYPE_ARRAY:
        jwrite_array_begin(w);
        jread_array (r)
            copy_value(r, w);
        jwrite_array_end(w);
        return;
    case JTYPE_OBJECT:
        jwrite_object_begin(w);
        jread_object (r, key) {
            jwrite_key(w, key);
            copy_value(r, w);
        }
        jwrite_object_end(w);
        return;
    }
}

static void copy_document(struct str in, struct buf *out)
{
    struct arena arena;
    struct jread r;
    struct jwrite w;
    struct err e = ERR_INIT;
    arena_init(&arena, MIB);
    buf_clear(out, SIZE_MAX);
    jread_init(&r, in, &arena);
    jwrite_init(&w, out);
    copy_value(&r, &w);
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert(!buf_failed(out));
    arena_done(&arena);
}

TEST(survives_a_round_trip)
{
    struct buf doc;
    struct buf once;
    struct buf twice;
    buf_init(&doc, MIB);
    buf_init(&once, MIB);
    buf_init(&twice, MIB);
    state = SEED + 1;
    for (int round = 0; round < DOCUMENTS / 5; round++) {
        buf_clear(&doc, SIZE_MAX);
        put_value(&doc, 0);
        copy_document(buf_str(&doc), &once);
        copy_document(buf_str(&once), &twice);
        ck_assert_msg(str_eq(buf_str(&once), buf_str(&twice)), "seed %llu, case %d: %.*s",
                      (unsigned long long)SEED + 1, round, STR_ARG(buf_str(&doc)));
        json_error_t error;
        json_t *a = json_loadb(doc.p, doc.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        json_t *b = json_loadb(once.p, once.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        ck_assert(a == NULL ? b == NULL : json_equal(a, b));
        json_decref(a);
        json_decref(b);
    }
    buf_done(&doc);
    buf_done(&once);
    buf_done(&twice);
}

static enum errc count_valid(void *ctx, enum jcut_piece kind, struct str piece, struct err *reterr)
{
    size_t *n = ctx;
    json_error_t error;
    json_t *theirs = json_loadb(piece.p, piece.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    bool valid = theirs != NULL || json_error_code(&error) == json_error_numeric_overflow ||
                 json_error_code(&error) == json_error_null_byte_in_key;
    json_decref(theirs);
    *n += kind == JCUT_ITEM ? 1 : 0;
    return valid ? OK : err_set(reterr, ERR_SYNTAX, "not JSON");
}

static bool is_skipped(struct str json)
{
    struct jread r;
    jread_init(&r, json, NULL);
    jread_skip(&r);
    return jread_finish(&r, NULL) == OK;
}

/* The cutter finds as many valid items as jansson counts, and notices a broken list. A key and the
 * value of an unknown one are skipped, so they may hold any bytes. */
TEST(cuts_what_jansson_reads)
{
    struct buf doc;
    size_t items = 0;
    struct jcut c;
    buf_init(&doc, MIB);
    jcut_init(&c, JCUT_LIST, MIB, count_valid, &items);
    state = SEED + 2;
    for (int round = 0; round < DOCUMENTS / 5; round++) {
        buf_clear(&doc, SIZE_MAX);
        buf_put(&doc, STR("{\"kind\": \"List\",\"metadata\":"));
        put_value(&doc, 2);
        buf_put(&doc, STR(",\"items\":"));
        put_nested(&doc, 2, false);
        put_space(&doc);
        buf_putc(&doc, '}');
        bool broken = round % 3 == 0;
        if (broken)
            mutate(&doc);
        json_error_t error;
        json_t *theirs = json_loadb(doc.p, doc.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        enum json_error_code code = theirs == NULL ? json_error_code(&error) : json_error_unknown;
        jcut_reset(&c);
        items = 0;
        for (struct str rest = buf_str(&doc); rest.n > 0;) {
            size_t n = 1 + below(40);
            struct str chunk = {rest.p, MIN_OF(n, rest.n)};
            ck_assert_int_eq(jcut_push(&c, chunk, NULL), c.err.code);
            rest = str_skip(rest, chunk.n);
        }
        bool ours = jcut_finish(&c, NULL) == OK;
        if (theirs != NULL && ours)
            ck_assert_uint_eq(items, json_array_size(json_object_get(theirs, "items")));
        else if (theirs == NULL && code != json_error_numeric_overflow &&
                 code != json_error_duplicate_key && code != json_error_null_byte_in_key)
            ck_assert_msg(!ours || is_skipped(buf_str(&doc)), "seed %llu, case %d: %.*s",
                          (unsigned long long)SEED + 2, round, STR_ARG(buf_str(&doc)));
        else if (!broken)
            ck_assert_msg(ours, "seed %llu, case %d: %.*s", (unsigned long long)SEED + 2, round,
                          STR_ARG(buf_str(&doc)));
        json_decref(theirs);
    }
    jcut_done(&c);
    buf_done(&doc);
}
