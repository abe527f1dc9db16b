/* Lists of names that the reader of filter's requests remembers: which ones, and that they are read
 * as all others. */
#include "codec/extender.h"

#include "codec/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#define NAMES 40
#define BEGIN "{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"NodeNames\":["

struct rig {
    struct extender_memo memo;
    struct arena arena;
    struct buf body;
    struct filter_args args;
};

static struct rig *rig_open(void)
{
    static struct rig r;
    r = (struct rig){.memo = {.names = {.ids = 0}}};
    arena_init(&r.arena, 64 * MIB);
    buf_init(&r.body, 64 * MIB);
    return &r;
}

static void rig_close(struct rig *r)
{
    extender_memo_done(&r->memo);
    buf_done(&r->body);
    arena_done(&r->arena);
}

static void write_names(struct rig *r, const char *prefix, unsigned n, const char *end)
{
    buf_clear(&r->body, SIZE_MAX);
    buf_put(&r->body, STR(BEGIN));
    for (unsigned i = 0; i < n; i++)
        buf_printf(&r->body, "%s\"%s%u\"", i == 0 ? "" : ",", prefix, i * 7 % n);
    buf_put(&r->body, str_of(end));
}

/* Reads the body with the lists; the result must be the one without them. */
static void read_body(struct rig *r)
{
    struct filter_args plain;
    struct err e = ERR_INIT;
    arena_reset(&r->arena);
    enum errc code = extender_read_filter(buf_str(&r->body), &r->arena, NULL, &plain, &e);
    ck_assert_int_eq(extender_read_filter(buf_str(&r->body), &r->arena, &r->memo, &r->args, &e),
                     code);
    if (code != OK)
        return;
    ck_assert_uint_eq(r->args.n, plain.n);
    ck_assert(r->args.plain == plain.plain && r->args.by_name == plain.by_name);
    for (size_t i = 0; i < plain.n; i++) {
        ck_assert(str_eq(r->args.names[i], plain.names[i]));
        if (plain.plain) {
            ck_assert_int_eq(r->args.names[i].p[-1], '"');
            ck_assert_int_eq(r->args.names[i].p[r->args.names[i].n], '"');
        }
    }
}

static void read_names(struct rig *r, const char *prefix, unsigned n, const char *end)
{
    write_names(r, prefix, n, end);
    read_body(r);
}

/* The same twice: if the first time is the one of LEARN_EACH, the second time knows the list. */
static void read_twice(struct rig *r, const char *prefix, unsigned n, const char *end)
{
    read_names(r, prefix, n, end);
    ck_assert_uint_eq(r->args.list, 0);
    read_names(r, prefix, n, end);
}

/* The first unknown list is remembered, then every fourth. */
START_TEST(a_list_is_known_again)
{
    struct rig *r = rig_open();
    read_twice(r, "node-", NAMES, "]}");
    uint64_t id = r->args.list;
    ck_assert_uint_ne(id, 0);
    read_names(r, "node-", NAMES, "]}");
    ck_assert_uint_eq(r->args.list, id);
    read_names(r, "node-", NAMES, "],\"x\":1}");
    ck_assert_uint_eq(r->args.list, id);
    read_names(r, "other-", NAMES, "]}");
    ck_assert_uint_eq(r->args.list, 0);
    ck_assert_ptr_null(r->args.keys);
    for (int i = 0; i < 4; i++)
        read_names(r, "other-", NAMES, "]}");
    ck_assert_uint_gt(r->args.list, id);
    rig_close(r);
}

END_TEST

/* No other list is taken for it: neither a part of it, nor one with more names. */
START_TEST(only_the_whole_list_is_known)
{
    struct rig *r = rig_open();
    read_twice(r, "node-", NAMES, "]}");
    ck_assert_uint_ne(r->args.list, 0);
    read_names(r, "node-", NAMES, ",\"node-99\"]}");
    ck_assert_uint_eq(r->args.list, 0);
    read_names(r, "node-", NAMES, " ]}");
    ck_assert_uint_eq(r->args.list, 0);
    read_names(r, "node-", NAMES, ",\"\\u0061\"]}");
    ck_assert_uint_eq(r->args.list, 0);
    write_names(r, "node-", NAMES, "");
    read_body(r);
    rig_close(r);
}

END_TEST

/* Of a repeated key the last one counts. */
START_TEST(a_known_list_can_be_taken_back)
{
    static const char *const ends[] = {
        "],\"NodeNames\":[\"a\",\"b\"]}",
        "],\"NodeNames\":[],\"NodeNames\":[\"a\"]}",
        "],\"NodeNames\":null,\"Nodes\":{\"items\":[]}}",
    };
    struct rig *r = rig_open();
    read_twice(r, "node-", NAMES, "]}");
    ck_assert_uint_ne(r->args.list, 0);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        read_names(r, "node-", NAMES, ends[i]);
        ck_assert_uint_eq(r->args.list, 0);
    }
    rig_close(r);
}

END_TEST

/* A new list replaces the one that was not asked about for the longest time. */
START_TEST(the_oldest_list_goes_first)
{
    static const char *const prefixes[NAME_LISTS + 1] = {"a", "b", "c", "d", "e"};
    struct rig *r = rig_open();
    for (size_t i = 0; i <= NAME_LISTS; i++) {
        for (int k = 0; k < 5; k++)
            read_names(r, prefixes[i], NAMES, "]}");
        ck_assert_uint_ne(r->args.list, 0);
        if (i + 1 == NAME_LISTS)
            read_names(r, prefixes[0], NAMES, "]}");
    }
    read_names(r, prefixes[0], NAMES, "]}");
    ck_assert_uint_ne(r->args.list, 0);
    read_names(r, prefixes[1], NAMES, "]}");
    ck_assert_uint_eq(r->args.list, 0);
    rig_close(r);
}

END_TEST

START_TEST(lists_are_bounded)
{
    struct rig *r = rig_open();
    read_names(r, "n", 4, "]}");
    ck_assert_uint_eq(r->args.list, 0);
    read_names(r, "a-name-of-some-length-", LIMIT_NAME_LIST_BYTES / 32, "]}");
    ck_assert_uint_eq(r->args.list, 0);
    ck_assert_uint_eq(r->memo.names.ids, 0);
    rig_close(r);
}

END_TEST

/* Whatever the names have in common. */
START_TEST(keys_have_the_order_of_names)
{
    static const char *const prefixes[] = {"", "n", "node-0000", "a-name-of-some-length-"};
    for (size_t p = 0; p < COUNT_OF(prefixes); p++) {
        struct rig *r = rig_open();
        read_twice(r, prefixes[p], NAMES, "]}");
        const struct filter_args *a = &r->args;
        ck_assert_ptr_nonnull(a->keys);
        for (size_t i = 0; i < a->n; i++) {
            for (size_t k = 0; k < a->n; k++) {
                if (a->keys[i] < a->keys[k])
                    ck_assert_int_lt(str_cmp(a->names[i], a->names[k]), 0);
            }
        }
        rig_close(r);
    }
}

END_TEST

/* A name that is the beginning of another one, and names that differ late. */
START_TEST(keys_may_be_equal)
{
    struct rig *r = rig_open();
    buf_put(&r->body, STR(BEGIN "\"ab\""));
    for (unsigned i = 0; i < NAMES; i++)
        buf_printf(&r->body, ",\"abcdefghijkl%02u\"", i);
    buf_put(&r->body, STR("]}"));
    read_body(r);
    read_body(r);
    ck_assert_ptr_nonnull(r->args.keys);
    ck_assert_uint_lt(r->args.keys[0], r->args.keys[1]);
    ck_assert_uint_eq(r->args.keys[1], r->args.keys[2]);
    rig_close(r);
}

END_TEST

START_TEST(without_memory_less_is_remembered)
{
    struct rig *r = rig_open();
    write_names(r, "node-", NAMES, "]}");
    read_body(r);
    arena_reset(&r->arena);
    for (unsigned nth = 1; nth <= 3; nth++) {
        struct err e = ERR_INIT;
        name_lists_done(&r->memo.names);
        fail_alloc_arm(FAIL_ONCE, nth);
        ck_assert_ok(extender_read_filter(buf_str(&r->body), &r->arena, &r->memo, &r->args, &e),
                     &e);
        fail_alloc_disarm();
        ck_assert(fail_alloc_hit());
        ck_assert_ok(extender_read_filter(buf_str(&r->body), &r->arena, &r->memo, &r->args, &e),
                     &e);
        ck_assert_uint_eq(r->args.list, 0);
        ck_assert_uint_eq(r->args.n, NAMES);
        arena_reset(&r->arena);
    }
    rig_close(r);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("name_lists");
    TCase *tc = tcase_create("name_lists");
    tcase_add_test(tc, a_list_is_known_again);
    tcase_add_test(tc, only_the_whole_list_is_known);
    tcase_add_test(tc, a_known_list_can_be_taken_back);
    tcase_add_test(tc, the_oldest_list_goes_first);
    tcase_add_test(tc, lists_are_bounded);
    tcase_add_test(tc, keys_have_the_order_of_names);
    tcase_add_test(tc, keys_may_be_equal);
    tcase_add_test(tc, without_memory_less_is_remembered);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
