/* A pod's labels in the cache: the shared store, its ceiling and lack of memory. */
#include "core/request/labels.h"

#include "fail_alloc.h"
#include "unit.h"

static const struct label_view some[] = {
    {STR("app"), STR("web")}, {STR("empty"), STR("")}, {STR("app"), STR("again")}};

TEST(a_copy_is_the_same_in_the_same_order)
{
    struct labels *l = NULL;
    struct intern_table table;
    struct label_view back[COUNT_OF(some)];
    intern_init(&table, (struct map_seed){1, 2});
    ck_assert_int_eq(labels_take(&table, some, COUNT_OF(some), &l), OK);
    ck_assert_uint_eq(labels_count(l), COUNT_OF(some));
    labels_view(l, back);
    for (size_t i = 0; i < COUNT_OF(some); i++) {
        ck_assert(str_eq(back[i].key, some[i].key) && back[i].key.p != some[i].key.p);
        ck_assert(str_eq(back[i].value, some[i].value));
    }
    ck_assert(labels_same(l, some, COUNT_OF(some)));
    for (size_t n = 0; n < COUNT_OF(some); n++)
        ck_assert(!labels_same(l, some, n));
    ck_assert(!labels_same(NULL, some, 1));
    labels_give(&table, l);
    intern_done(&table);
}

TEST(another_key_or_value_is_not_the_same)
{
    struct labels *l = NULL;
    struct intern_table table;
    struct label_view other[] = {{STR("app"), STR("web")}, {STR("tier"), STR("x")}};
    intern_init(&table, (struct map_seed){1, 2});
    ck_assert_int_eq(labels_take(&table, other, 2, &l), OK);
    other[1].value = STR("y");
    ck_assert(!labels_same(l, other, 2));
    other[1] = (struct label_view){STR("tie"), STR("rx")};
    ck_assert(!labels_same(l, other, 2));
    labels_give(&table, l);
    intern_done(&table);
}

TEST(the_same_are_there_once)
{
    static const struct label_view cut[] = {{STR("ap"), STR("pweb")}};
    struct intern_table table;
    struct labels *a = NULL;
    struct labels *b = NULL;
    struct labels *c = NULL;
    intern_init(&table, (struct map_seed){1, 2});
    ck_assert_int_eq(labels_take(&table, some, 1, &a), OK);
    ck_assert_int_eq(labels_take(&table, some, 1, &b), OK);
    ck_assert_int_eq(labels_take(&table, cut, 1, &c), OK);
    ck_assert(a == b && a != c);
    intern_check(&table, 3);
    labels_check(&table, a);
    labels_give(&table, a);
    ck_assert(labels_same(b, some, 1) && labels_same(c, cut, 1));
    labels_give(&table, b);
    labels_give(&table, c);
    labels_give(&table, NULL);
    intern_done(&table);
}

TEST(none_take_nothing)
{
    struct labels *l = NULL;
    struct intern_table table;
    intern_init(&table, (struct map_seed){1, 2});
    ck_assert_int_eq(labels_take(&table, NULL, 0, &l), OK);
    ck_assert_ptr_null(l);
    ck_assert_uint_eq(labels_count(l), 0);
    ck_assert(labels_same(l, NULL, 0));
    labels_view(l, NULL);
    intern_done(&table);
}

/* No API server stores such labels, but an input may have them. */
TEST(one_beyond_all_measure_is_left_out)
{
    static char much[UINT16_MAX + 1];
    struct labels *l = NULL;
    struct intern_table table;
    struct label_view all[] = {{{much, sizeof(much)}, STR("a")},
                               {STR("b"), {much, sizeof(much)}},
                               {{much, UINT16_MAX}, {much, UINT16_MAX}}};
    struct label_view back[1];
    intern_init(&table, (struct map_seed){1, 2});
    ck_assert_int_eq(labels_take(&table, all, 3, &l), OK);
    ck_assert_uint_eq(labels_count(l), 1);
    ck_assert(labels_same(l, all, 3));
    labels_view(l, back);
    ck_assert_uint_eq(back[0].key.n, UINT16_MAX);
    ck_assert_uint_eq(back[0].value.n, UINT16_MAX);
    labels_give(&table, l);
    intern_done(&table);
}

static enum errc scenario(void *ctx)
{
    struct labels *l = NULL;
    struct intern_table table;
    (void)ctx;
    intern_init(&table, (struct map_seed){1, 2});
    enum errc code = labels_take(&table, some, COUNT_OF(some), &l);
    labels_give(&table, l);
    intern_done(&table);
    return code;
}

TEST(without_memory)
{
    ck_assert_uint_eq(fail_alloc_each(scenario, NULL), 2);
}
