/* Objects that come again: a reader with a memo reads exactly what one without reads, and knows an
 * object only by all of its bytes. */
#include "codec/jread.h"

#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

#define OBJECT                                                                             \
    "{\"name\":\"p\",\"skipped\":{\"a\":[1,{\"name\":\"}\"},\"\\\"\"]},\"n\":12,\"list\":" \
    "[{\"name\":\"q\",\"x\":null},{\"y\":[[]],\"name\":\"r\"}],\"last\":true}"
#define DOCUMENT "{\"before\":[1,2], \"it\": " OBJECT " ,\"after\":{\"name\":\"s\"}}"

struct rig {
    struct jmemo memo;
    struct arena arena;
    struct buf told; /* what the decoder has read */
    struct err e;
};

static struct rig *rig_open(void)
{
    static struct rig r;
    r = (struct rig){.memo = {.asked = 0}};
    arena_init(&r.arena, MIB);
    buf_init(&r.told, MIB);
    return &r;
}

static void rig_close(struct rig *r)
{
    jmemo_done(&r->memo);
    arena_done(&r->arena);
    buf_done(&r->told);
}

/* Skips the values of a member of this name, or tells them; looks into lists and objects unless
 * their name begins with an s. */
static void read_value(struct rig *x, struct jread *r, struct str skip)
{
    struct str key;
    switch (jread_type(r)) {
    case JTYPE_OBJECT:
        jread_object (r, key) {
            if (str_eq(key, skip) || str_starts(key, STR("s")))
                jread_skip(r);
            else
                read_value(x, r, skip);
        }
        break;
    case JTYPE_ARRAY:
        jread_array (r)
            read_value(x, r, skip);
        break;
    case JTYPE_STRING: {
        struct str text = jread_str(r);
        buf_printf(&x->told, "'%.*s'", STR_ARG(text));
        break;
    }
    case JTYPE_NULL:
    case JTYPE_BOOL:
    case JTYPE_NUMBER:
    case JTYPE_NONE: {
        struct str raw = jread_raw(r);
        buf_printf(&x->told, "%.*s,", STR_ARG(raw));
        break;
    }
    }
}

/* memo: NULL: without. */
static enum errc read_document(struct rig *x, struct jmemo *memo, struct str text, const char *skip)
{
    struct jread r;
    struct str key;
    arena_reset(&x->arena);
    buf_clear(&x->told, SIZE_MAX);
    x->e = (struct err)ERR_INIT;
    jread_init(&r, text, &x->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("it")) && memo != NULL)
            jread_memo_begin(&r, memo);
        read_value(x, &r, str_of(skip));
        if (str_eq(key, STR("it")) && memo != NULL)
            jread_memo_end(&r, memo);
    }
    return jread_finish(&r, &x->e);
}

/* Reads the document with the memo and without. */
static enum errc read_both(struct rig *x, struct str text, const char *skip)
{
    char said[4096];
    enum errc code = read_document(x, NULL, text, skip);
    ck_assert_uint_lt(x->told.n, sizeof(said));
    size_t n = x->told.n;
    memcpy(said, x->told.p, n);
    struct err e = x->e;
    ck_assert_int_eq(read_document(x, &x->memo, text, skip), code);
    ck_assert_str_eq(x->e.text, e.text);
    if (code == OK)
        ck_assert(str_eq(buf_str(&x->told), (struct str){said, n}));
    return code;
}

static bool is_known(struct rig *x, const char *object)
{
    return jmemo_find(&x->memo, str_of(object), 1) != NULL;
}

START_TEST(an_object_is_known_again)
{
    struct rig *x = rig_open();
    ck_assert_int_eq(read_both(x, STR(DOCUMENT), "n"), OK);
    ck_assert(is_known(x, OBJECT));
    ck_assert_uint_gt(x->memo.all[0].n_skips, 1);
    ck_assert_int_eq(read_both(x, STR(DOCUMENT), "n"), OK);
    ck_assert_uint_eq(x->memo.all[1].asked, 0); /* it took no second place */
    rig_close(x);
}

END_TEST

/* What is skipped is a fact about the text: a decoder may skip more, or less, or other values. */
START_TEST(another_decoder_may_skip_other_values)
{
    static const char *const skips[] = {"n", "list", "nothing", "name", "x", "last", "n"};
    struct rig *x = rig_open();
    for (size_t i = 0; i < COUNT_OF(skips); i++)
        ck_assert_int_eq(read_both(x, STR(DOCUMENT), skips[i]), OK);
    rig_close(x);
}

END_TEST

/* Each byte of the object is changed: nothing of what was known is taken for it. */
START_TEST(one_other_byte_makes_another_object)
{
    struct rig *x = rig_open();
    char text[] = DOCUMENT;
    size_t begin = (size_t)(strstr(text, OBJECT) - text);
    for (size_t i = 0; i < sizeof(OBJECT) - 1; i++) {
        static const char others[] = {'x', '"', '{', '}', ',', '\\', '1', '\x01'};
        for (size_t k = 0; k < sizeof(others); k++) {
            char was = text[begin + i];
            ck_assert_int_eq(read_both(x, str_of(text), "n"), OK);
            text[begin + i] = others[k];
            (void)read_both(x, str_of(text), "n");
            (void)read_both(x, str_of(text), "list");
            text[begin + i] = was;
        }
    }
    rig_close(x);
}

END_TEST

/* An object that breaks off is not kept, wherever it does. */
START_TEST(only_a_whole_object_is_kept)
{
    struct rig *x = rig_open();
    struct str text = STR(DOCUMENT);
    size_t begin = (size_t)(strstr(text.p, OBJECT) - text.p);
    for (size_t n = begin; n < begin + sizeof(OBJECT) - 1; n++) {
        ck_assert_int_ne(read_both(x, (struct str){text.p, n}, "n"), OK);
        ck_assert(!is_known(x, OBJECT));
    }
    rig_close(x);
}

END_TEST

/* A number can go on behind its last byte. */
START_TEST(only_objects_are_kept)
{
    static const char *const values[] = {"1", "null", "[1]", "\"x\"", "true"};
    struct rig *x = rig_open();
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "{\"it\":%s}", values[i]);
        ck_assert_int_eq(read_both(x, str_of(text), "n"), OK);
        ck_assert_uint_eq(x->memo.all[0].n, 0);
    }
    rig_close(x);
}

END_TEST

static void write_long(struct buf *out, size_t n)
{
    buf_clear(out, SIZE_MAX);
    buf_put(out, STR("{\"it\":{\"skipped\":\""));
    while (out->n < n)
        buf_putc(out, 'x');
    buf_put(out, STR("\",\"name\":\"p\"}}"));
}

START_TEST(texts_are_bounded)
{
    struct rig *x = rig_open();
    struct buf text;
    buf_init(&text, MIB);
    write_long(&text, LIMIT_JMEMO_BYTES - 64);
    ck_assert_int_eq(read_both(x, buf_str(&text), "n"), OK);
    ck_assert_uint_gt(x->memo.all[0].n, 0);
    write_long(&text, LIMIT_JMEMO_BYTES + 64);
    for (unsigned i = 0; i < 2 * JMEMO_TEXTS; i++)
        ck_assert_int_eq(read_both(x, buf_str(&text), "n"), OK);
    for (unsigned i = 0; i < JMEMO_TEXTS; i++)
        ck_assert_uint_le(x->memo.all[i].n, LIMIT_JMEMO_BYTES);
    buf_done(&text);
    rig_close(x);
}

END_TEST

static void write_small(char text[static 64], unsigned i)
{
    (void)snprintf(text, 64, "{\"it\":{\"name\":\"p%u\",\"skipped\":[%u]}}", i, i);
}

START_TEST(the_oldest_gives_way)
{
    struct rig *x = rig_open();
    char text[64];
    for (unsigned i = 0; i < JMEMO_TEXTS; i++) {
        write_small(text, i);
        ck_assert_int_eq(read_both(x, str_of(text), "n"), OK);
    }
    ck_assert(is_known(x, "{\"name\":\"p0\",\"skipped\":[0]}")); /* which is a use of it */
    write_small(text, JMEMO_TEXTS);
    ck_assert_int_eq(read_both(x, str_of(text), "n"), OK);
    ck_assert(is_known(x, "{\"name\":\"p0\",\"skipped\":[0]}"));
    ck_assert(!is_known(x, "{\"name\":\"p1\",\"skipped\":[1]}"));
    rig_close(x);
}

END_TEST

/* The nesting that is left is smaller deeper in a document. */
START_TEST(an_object_is_known_at_its_depth)
{
    struct rig *x = rig_open();
    ck_assert_int_eq(read_both(x, STR(DOCUMENT), "n"), OK);
    ck_assert_ptr_nonnull(jmemo_find(&x->memo, STR(OBJECT), 1));
    ck_assert_ptr_null(jmemo_find(&x->memo, STR(OBJECT), 2));
    rig_close(x);
}

END_TEST

START_TEST(without_memory_nothing_is_kept)
{
    struct rig *x = rig_open();
    ck_assert_int_eq(read_document(x, NULL, STR(DOCUMENT), "n"), OK); /* the arena and the buffer */
    for (unsigned nth = 1; nth <= 2; nth++) {
        jmemo_done(&x->memo);
        fail_alloc_arm(FAIL_ONCE, nth);
        ck_assert_int_eq(read_document(x, &x->memo, STR(DOCUMENT), "n"), OK);
        ck_assert(fail_alloc_hit());
        fail_alloc_disarm();
        ck_assert(!is_known(x, OBJECT));
        ck_assert_int_eq(read_both(x, STR(DOCUMENT), "n"), OK);
        ck_assert(is_known(x, OBJECT));
    }
    rig_close(x);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("jmemo");
    TCase *tc = tcase_create("jmemo");
    tcase_add_test(tc, an_object_is_known_again);
    tcase_add_test(tc, another_decoder_may_skip_other_values);
    tcase_add_test(tc, one_other_byte_makes_another_object);
    tcase_add_test(tc, only_a_whole_object_is_kept);
    tcase_add_test(tc, only_objects_are_kept);
    tcase_add_test(tc, texts_are_bounded);
    tcase_add_test(tc, the_oldest_gives_way);
    tcase_add_test(tc, an_object_is_known_at_its_depth);
    tcase_add_test(tc, without_memory_nothing_is_kept);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
