/* The JSON reader's interface: views, numbers, paths in errors, runs, and misuse. */
#include "json/jread.h"

#include "unit.h"
#include "json/limit.h"

#include <signal.h>
#include <stdio.h>

#define ARENA_MAX MIB

/* The reader bounds the recursion. */
static void read_objects(struct jread *r)
{
    struct str key;
    jread_object (r, key)
        read_objects(r);
}

/* A string without escapes is a view into the document: 5,000 names cost no memory. */
TEST(views_do_not_copy)
{
    struct arena arena;
    struct jread r;
    static const char text[] = "[\"node-1\",\"\"]";
    arena_init(&arena, ARENA_MAX);
    jread_init(&r, str_of(text), &arena);
    jread_array (&r) {
        struct str s = jread_str(&r);
        ck_assert_ptr_nonnull(s.p);
        ck_assert(s.p > text && s.p < text + sizeof(text));
    }
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_uint_eq(arena.used, 0);
    arena_done(&arena);
}

static const struct {
    const char *text;
    size_t max;
    size_t run; /* of the first call */
    const char *error;
} runs[] = {
    {"[\"a\",\"\",\"c\"]", 10, 3, ""},
    {"[\"a\",\"b\",\"c\"]", 2, 2, ""},
    {"[]", 10, 0, ""},
    {"[\"a\", \"b\"]", 10, 1, ""},
    {"[ \"a\"]", 10, 0, ""},
    {"[\"a\" ,\"b\"]", 10, 1, ""},
    {"[\"a\",\"\\u0062\"]", 10, 1, ""},
    {"[\"a\",\"\xc3\xa9\"]", 10, 1, ""},
    {"[\"a\",null,\"b\"]", 10, 1, ""},
    {"[\"a\",\"b\",1]", 10, 2, "[2]: expected a string, got a number at offset 9"},
    {"[\"a\",\"b]", 10, 1, "[1]: a string without an end at offset 8"},
    {"[\"a\",]", 10, 1, "[1]: expected a string, got ']' at offset 5"},
    {"[\"a\"\"b\"]", 10, 1, "expected ',' or ']', got a string at offset 4"},
    {"[\"a\",\"b\"", 10, 2, "expected ',' or ']', got the end at offset 8"},
    {"[\"a\"}", 10, 1, "expected ',' or ']', got '}' at offset 4"},
};

/* A run stops before a value that needs the single read, and the single read reports it. */
TEST_EACH(reads_strings_in_runs, COUNT_OF(runs))
{
    struct arena arena;
    struct jread r;
    struct str run[10];
    struct err err = ERR_INIT;
    arena_init(&arena, ARENA_MAX);
    jread_init(&r, str_of(runs[_i].text), &arena);
    ck_assert(jread_array_begin(&r));
    ck_assert_uint_eq(jread_str_run(&r, run, runs[_i].max), runs[_i].run);
    for (size_t i = 0; i < runs[_i].run; i++)
        ck_assert_uint_le(run[i].n, 1);
    while (jread_array_next(&r))
        (void)jread_str(&r);
    bool whole = jread_finish(&r, &err) == OK;
    ck_assert_int_eq(whole, runs[_i].error[0] == '\0');
    ck_assert_str_eq(err.text, runs[_i].error);
    ck_assert_uint_eq(jread_failed(&r) ? jread_str_run(&r, run, 10) : 0, 0);
    arena_done(&arena);
}

static const struct {
    const char *text;
    enum errc code;
    int64_t value;
    const char *why;
} integers[] = {
    {"0", OK, 0, ""},
    {"-0", OK, 0, ""},
    {"42", OK, 42, ""},
    {"-1", OK, -1, ""},
    {"9223372036854775807", OK, INT64_MAX, ""},
    {"-9223372036854775808", OK, INT64_MIN, ""},
    {"null", OK, 0, ""},
    {"9223372036854775808", ERR_RANGE, 0,
     "expected an integer within 64 bits, got 9223372036854775808"},
    {"-9223372036854775809", ERR_RANGE, 0,
     "expected an integer within 64 bits, got -9223372036854775809"},
    {"1.0", ERR_RANGE, 0, "expected an integer within 64 bits, got 1.0"},
    {"1e3", ERR_RANGE, 0, "expected an integer within 64 bits, got 1e3"},
    {"100000000000000000000000000000000000000000000000000000000000000", ERR_RANGE, 0,
     "expected an integer within 64 bits, got 100000000000000000000000000000000000000000000000..."},
    {"\"1\"", ERR_SYNTAX, 0, "expected an integer, got a string at offset 0"},
    {"01", ERR_SYNTAX, 0, "a malformed number at offset 0"},
    {"true", ERR_SYNTAX, 0, "expected an integer, got a boolean at offset 0"},
};

TEST_EACH(reads_integers, COUNT_OF(integers))
{
    struct jread r;
    struct err e = ERR_INIT;
    jread_init(&r, str_of(integers[_i].text), NULL);
    int64_t got = jread_i64(&r);
    ck_assert_int_eq(jread_finish(&r, &e), integers[_i].code);
    ck_assert_int_eq(got, integers[_i].value);
    ck_assert_str_eq(e.text, integers[_i].why);
}

TEST(reads_text_of_quantities)
{
    struct jread r;
    struct err e = ERR_INIT;
    static const char *const want[] = {"16Gi", "1e3", "-0.50", "8", NULL, ""};
    size_t n = 0;
    jread_init(&r, STR("[\"16Gi\", 1e3, -0.50 ,8,null,\"\"]"), NULL);
    jread_array (&r) {
        struct str s = jread_text(&r);
        ck_assert_uint_lt(n, COUNT_OF(want));
        ck_assert((s.p == NULL) == (want[n] == NULL));
        ck_assert_str_is(s, want[n] == NULL ? "" : want[n]);
        n++;
    }
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert_uint_eq(n, COUNT_OF(want));

    jread_init(&r, STR("{}"), NULL);
    ck_assert_ptr_null(jread_text(&r).p);
    ck_assert_int_eq(jread_finish(&r, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "expected a string or a number, got an object at offset 0");
}

/* null is the zero value of each type. */
TEST(null_is_zero)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct str key;
    unsigned rounds = 0;
    jread_init(&r, STR("[null,null,null,null,null,null,null]"), NULL);
    jread_array (&r) {
        switch (rounds++) {
        case 0:
            jread_object (&r, key)
                ck_abort();
            break;
        case 1:
            jread_array (&r)
                ck_abort();
            break;
        case 2:
            ck_assert_ptr_null(jread_str(&r).p);
            break;
        case 3:
            ck_assert_int_eq(jread_i64(&r), 0);
            break;
        case 4:
            ck_assert(!jread_bool(&r));
            break;
        case 5:
            ck_assert_str_is(jread_raw(&r), "null");
            break;
        default:
            ck_assert_int_eq(jread_type(&r), JTYPE_NULL);
            jread_skip(&r);
            break;
        }
    }
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert_uint_eq(rounds, 7);
}

static const struct {
    const char *text;
    const char *value; /* NULL: absent */
    const char *error;
} members[] = {
    {"{\"a\":{\"name\":1},\"name\":\"x\",\"b\":[]}", "x", ""},
    {"{\"name\":\"\"}", "", ""},
    {"{\"name\":null}", NULL, ""},
    {"{\"name\":\"x\",\"name\":\"y\"}", "y", ""},
    {"{\"Name\":\"x\"}", NULL, ""},
    {"{}", NULL, ""},
    {"null", NULL, ""},
    {"{\"name\":1}", NULL, "name: expected a string, got a number at offset 8"},
    {"[]", NULL, "expected an object, got a list at offset 0"},
    {"{\"name\":\"x\"", "x", "expected ',' or '}', got the end at offset 11"},
};

TEST_EACH(reads_one_member, COUNT_OF(members))
{
    struct jread r;
    struct err e = ERR_INIT;
    jread_init(&r, str_of(members[_i].text), NULL);
    struct str value = jread_member(&r, STR("name"));
    ck_assert_int_eq(jread_finish(&r, &e) == OK, members[_i].error[0] == '\0');
    ck_assert_str_eq(e.text, members[_i].error);
    ck_assert_int_eq(value.p == NULL, members[_i].value == NULL);
    if (value.p != NULL)
        ck_assert_str_is(value, members[_i].value);
}

TEST(reads_booleans)
{
    struct jread r;
    struct err e = ERR_INIT;
    bool values[3] = {false, true, true};
    size_t n = 0;
    jread_init(&r, STR("[true,false,null]"), NULL);
    jread_array (&r)
        values[n++] = jread_bool(&r);
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert(values[0] && !values[1] && !values[2]);

    jread_init(&r, STR("0"), NULL);
    ck_assert(!jread_bool(&r));
    ck_assert_int_eq(jread_finish(&r, &e), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "expected a boolean, got a number at offset 0");
    jread_init(&r, STR("truth"), NULL);
    ck_assert(!jread_bool(&r));
    ck_assert_int_eq(jread_finish(&r, &e), ERR_SYNTAX);
}

TEST(tells_types)
{
    static const enum jtype want[] = {JTYPE_NULL,   JTYPE_BOOL,   JTYPE_BOOL,  JTYPE_NUMBER,
                                      JTYPE_NUMBER, JTYPE_STRING, JTYPE_ARRAY, JTYPE_OBJECT};
    struct jread r;
    struct err e = ERR_INIT;
    size_t n = 0;
    jread_init(&r, STR(" [ null , true,false,-1,0,\"\",[ ],{ } ]"), NULL);
    ck_assert_int_eq(jread_type(&r), JTYPE_ARRAY);
    jread_array (&r) {
        ck_assert_int_eq(jread_type(&r), want[n++]);
        ck_assert_int_eq(jread_type(&r), want[n - 1]);
        jread_skip(&r);
        ck_assert_int_eq(jread_type(&r), JTYPE_NONE);
    }
    ck_assert_int_eq(jread_type(&r), JTYPE_NONE);
    ck_assert_ok(jread_finish(&r, &e), &e);

    jread_init(&r, STR("?"), NULL);
    ck_assert_int_eq(jread_type(&r), JTYPE_NONE);
    ck_assert(jread_failed(&r));
}

TEST(raw_values_stand_as_they_were)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct str key;
    struct str metadata = STR_NULL;
    struct str last = STR_NULL;
    jread_init(&r, STR("{\"metadata\": {\"a\" : [1, \"\\n\"] } , \"metadata2\":-1.5e0 }"), NULL);
    jread_object (&r, key) {
        if (str_eq(key, STR("metadata")))
            metadata = jread_raw(&r);
        else
            last = jread_raw(&r);
    }
    ck_assert_ok(jread_finish(&r, &e), &e);
    ck_assert_str_is(metadata, "{\"a\" : [1, \"\\n\"] }");
    ck_assert_str_is(last, "-1.5e0");

    jread_init(&r, STR("{\"a\": 1"), NULL);
    ck_assert_ptr_null(jread_raw(&r).p);
    ck_assert_ptr_null(jread_raw(&r).p);
    ck_assert_int_eq(jread_finish(&r, NULL), ERR_SYNTAX);
}

/* The error names the path as Kubernetes does, for each kind of failure. */
static void read_pod(struct jread *r)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("annotations"))) {
            jread_object (r, key)
                (void)jread_str(r);
        } else if (str_eq(key, STR("containers"))) {
            jread_array (r) {
                jread_object (r, key) {
                    (void)jread_str(r);
                }
            }
        } else if (str_eq(key, STR("meaning"))) {
            if (jread_i64(r) != 42)
                jread_fail(r, ERR_RANGE, "not the %s", "answer");
        } else {
            jread_skip(r);
        }
    }
}

static const struct {
    const char *text;
    enum errc code;
    const char *why;
} paths[] = {
    {"{\"containers\":[{\"name\":7}]}", ERR_SYNTAX,
     "containers[0].name: expected a string, got a number at offset 23"},
    {"{\"containers\":[{},null,{\"name\":\"\",\"b\":\"\x01\"}]}", ERR_SYNTAX,
     "containers[2].b: a raw control character in a string at offset 39"},
    {"{\"containers\":[{\"a\":\"\" ]}", ERR_SYNTAX,
     "containers[0]: expected ',' or '}', got ']' at offset 23"},
    {"{\"containers\":[{\"a\":\"\"}}", ERR_SYNTAX,
     "containers: expected ',' or ']', got '}' at offset 23"},
    {"{\"containers\":7}", ERR_SYNTAX, "containers: expected a list, got a number at offset 14"},
    {"{\"annotations\":{\"cardpack.io/policy\":[]}}", ERR_SYNTAX,
     "annotations[cardpack.io/policy]: expected a string, got a list at offset 37"},
    {"{\"annotations\":{\"\":[]}}", ERR_SYNTAX,
     "annotations[]: expected a string, got a list at offset 19"},
    {"{\"meaning\":41}", ERR_RANGE, "meaning: not the answer"},
    {"{\"other\":{\"deep\":[0,{\"x\":[[nope]]}]", ERR_SYNTAX,
     "other: a value without an end at offset 9"},
    {"{\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff\":}", ERR_SYNTAX,
     "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeee...: expected a value, got '}' at offset 64"},
    {"[]", ERR_SYNTAX, "expected an object, got a list at offset 0"},
};

TEST_EACH(errors_name_where, COUNT_OF(paths))
{
    struct arena arena;
    struct jread r;
    struct err e = ERR_INIT;
    arena_init(&arena, ARENA_MAX);
    jread_init(&r, str_of(paths[_i].text), &arena);
    read_pod(&r);
    ck_assert_int_eq(jread_finish(&r, &e), paths[_i].code);
    ck_assert_str_eq(e.text, paths[_i].why);
    arena_done(&arena);
}

/* A deep path of long names is cut; the offset after it is not. */
TEST(long_paths_are_cut)
{
    char text[4096] = "";
    size_t n = 0;
    struct err e = ERR_INIT;
    for (int i = 0; i < LIMIT_JSON_DEPTH; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"some-rather-long-name-%d\":", i);
    struct jread r;
    jread_init(&r, (struct str){text, n}, NULL);
    read_objects(&r);
    ck_assert_int_eq(jread_finish(&r, &e), ERR_SYNTAX);
    ck_assert(str_starts(str_of(e.text), STR("some-rather-long-name-0.some-")));
    char tail[64];
    (void)snprintf(tail, sizeof(tail), ": expected an object, got the end at offset %zu", n);
    ck_assert(str_ends(str_of(e.text), str_of(tail)));
}

TEST(failure_is_sticky)
{
    struct jread r;
    struct err e = ERR_INIT;
    struct str key;
    jread_init(&r, STR("[1, 2, 3]"), NULL);
    jread_fail(&r, ERR_CONFLICT, "first");
    jread_fail(&r, ERR_RANGE, "second");
    jread_object (&r, key)
        ck_abort();
    jread_array (&r)
        ck_abort();
    ck_assert(!jread_object_next(&r, &key));
    ck_assert(!jread_array_next(&r));
    ck_assert_ptr_null(jread_str(&r).p);
    ck_assert_ptr_null(jread_text(&r).p);
    ck_assert_ptr_null(jread_raw(&r).p);
    ck_assert_int_eq(jread_i64(&r), 0);
    ck_assert(!jread_bool(&r));
    ck_assert_int_eq(jread_type(&r), JTYPE_NONE);
    jread_skip(&r);
    ck_assert_int_eq(jread_finish(&r, &e), ERR_CONFLICT);
    ck_assert_str_eq(e.text, "first");
    ck_assert_int_eq(jread_finish(&r, NULL), ERR_CONFLICT);
}

/* Keys may be escaped too; without room that is ERR_LIMIT, not a syntax error. */
TEST(escapes_need_an_arena)
{
    struct arena arena;
    struct jread r;
    struct err e = ERR_INIT;
    struct str key;
    arena_init(&arena, ARENA_MAX);
    jread_init(&r, STR("{\"\\u0061b\":1}"), &arena);
    jread_object (&r, key) {
        ck_assert_str_is(key, "ab");
        jread_skip(&r);
    }
    ck_assert_ok(jread_finish(&r, &e), &e);
    arena_done(&arena);

    jread_init(&r, STR("{\"\\u0061b\":1}"), NULL);
    jread_object (&r, key)
        ck_abort();
    ck_assert_int_eq(jread_finish(&r, &e), ERR_LIMIT);

    arena_init(&arena, 8);
    jread_init(&r, STR("[\"fine\", \"\\n longer than that\"]"), &arena);
    jread_array (&r)
        (void)jread_str(&r);
    ck_assert_int_eq(jread_finish(&r, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "[1]: no room for a string with escapes before offset 30");
    arena_done(&arena);
}

TEST(last_of_doubled_keys_wins)
{
    struct jread r;
    struct str key;
    int64_t value = 0;
    jread_init(&r, STR("{\"a\":1,\"a\":2}"), NULL);
    jread_object (&r, key)
        value = jread_i64(&r);
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
    ck_assert_int_eq(value, 2);
}

/* A decoder that does not consume exactly one value per round is a bug; its first run aborts. */
START_TEST(forgetting_a_value_aborts)
{
    struct jread r;
    struct str key;
    jread_init(&r, STR("{\"a\":1,\"b\":2}"), NULL);
    jread_object (&r, key) {
    }
}

START_TEST(reading_two_values_aborts)
{
    struct jread r;
    jread_init(&r, STR("[1,2]"), NULL);
    jread_array (&r) {
        (void)jread_i64(&r);
        (void)jread_i64(&r);
    }
}

START_TEST(breaking_out_aborts)
{
    struct jread r;
    jread_init(&r, STR("[1,2]"), NULL);
    jread_array (&r) {
        (void)jread_i64(&r);
        break;
    }
    ck_assert_int_eq(jread_finish(&r, NULL), OK);
}

int main(void)
{
    TCase *t = unit_case("jread");
    tcase_add_test_raise_signal(t, forgetting_a_value_aborts, SIGABRT);
    tcase_add_test_raise_signal(t, reading_two_values_aborts, SIGABRT);
    tcase_add_test_raise_signal(t, breaking_out_aborts, SIGABRT);
    return unit_run();
}
