/* The intrusive list: order, removal, the walk, and the asserts on misuse. */
#include "base/list.h"

#include "unit.h"

#include <signal.h>

struct item {
    int number;
    struct list_link link;
};

static void expect(const struct list *l, const char *numbers)
{
    char text[64];
    size_t n = 0;
    LIST_FOR_EACH (const struct item, item, l, link)
        text[n++] = (char)('0' + item->number);
    text[n] = '\0';
    ck_assert_str_eq(text, numbers);
    ck_assert(list_is_empty(l) == (n == 0));
    /* And the same backwards. */
    for (struct list_link *x = l->ring.prev; x != &l->ring; x = x->prev)
        ck_assert_int_eq(CONTAINER_OF(x, const struct item, link)->number, text[--n] - '0');
    ck_assert_uint_eq(n, 0);
}

TEST(keeps_the_order)
{
    struct item items[] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    struct list l;
    list_init(&l);
    expect(&l, "");
    ck_assert_ptr_null(list_first(&l));
    ck_assert_ptr_null(list_last(&l));
    ck_assert_ptr_null(LIST_FIRST(&l, struct item, link));
    ck_assert_ptr_null(LIST_LAST(&l, struct item, link));
    list_push_back(&l, &items[1].link);
    list_push_back(&l, &items[2].link);
    list_push_front(&l, &items[0].link);
    expect(&l, "012");
    list_insert(&items[2].link, &items[3].link);
    expect(&l, "0132");
    ck_assert_ptr_eq(LIST_FIRST(&l, struct item, link), &items[0]);
    ck_assert_ptr_eq(LIST_LAST(&l, struct item, link), &items[2]);
    ck_assert_ptr_eq(LIST_NEXT(&l, &items[1], struct item, link), &items[3]);
    ck_assert_ptr_null(LIST_NEXT(&l, &items[2], struct item, link));
    ck_assert_ptr_eq(LIST_PREV(&l, &items[3], struct item, link), &items[1]);
    ck_assert_ptr_null(LIST_PREV(&l, &items[0], struct item, link));
}

/* First, middle, last and only entry; a removed entry can be added again. */
TEST(removes)
{
    static const char *const left[] = {"12", "02", "01"};
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        struct item items[] = {{.number = 0}, {.number = 1}, {.number = 2}};
        struct list l;
        list_init(&l);
        for (size_t j = 0; j < COUNT_OF(items); j++) {
            ck_assert(!list_is_linked(&items[j].link));
            list_push_back(&l, &items[j].link);
            ck_assert(list_is_linked(&items[j].link));
        }
        list_remove(&items[i].link);
        ck_assert(!list_is_linked(&items[i].link));
        expect(&l, left[i]);
        list_push_back(&l, &items[i].link);
        ck_assert_ptr_eq(list_last(&l), &items[i].link);
        while (!list_is_empty(&l))
            list_remove(list_first(&l));
        expect(&l, "");
    }
}

TEST(walk_may_free)
{
    struct list l = LIST_EMPTY(l);
    for (int i = 0; i < 4; i++) {
        struct item *item = malloc(sizeof(*item));
        ck_assert_ptr_nonnull(item);
        *item = (struct item){.number = i};
        list_push_back(&l, &item->link);
    }
    LIST_FOR_EACH (struct item, item, &l, link) {
        if (item->number % 2 == 0)
            continue;
        list_remove(&item->link);
        free(item);
    }
    expect(&l, "02");
    LIST_FOR_EACH (struct item, item, &l, link) {
        list_remove(&item->link);
        free(item);
    }
    expect(&l, "");
}

TEST(moves_all)
{
    struct item items[] = {{.number = 0}, {.number = 1}};
    struct list from = LIST_EMPTY(from);
    struct list to = LIST_EMPTY(to);
    list_move(&to, &from);
    expect(&to, "");
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        list_push_back(&from, &items[i].link);
        list_move(&to, &from);
        expect(&from, "");
        expect(&to, i == 0 ? "0" : "01");
        list_move(&from, &to);
    }
    expect(&from, "01");
}

/* ---- each of these must abort ---- */

static void add_twice(void)
{
    struct item item = {.number = 1};
    struct list l = LIST_EMPTY(l);
    list_push_back(&l, &item.link);
    list_push_back(&l, &item.link);
}

static void add_to_two_lists(void)
{
    struct item item = {.number = 1};
    struct list a = LIST_EMPTY(a);
    struct list b = LIST_EMPTY(b);
    list_push_front(&a, &item.link);
    list_push_front(&b, &item.link);
}

static void remove_unlinked(void)
{
    struct item item = {.number = 1};
    list_remove(&item.link);
}

static void remove_twice(void)
{
    struct item item = {.number = 1};
    struct list l = LIST_EMPTY(l);
    list_push_back(&l, &item.link);
    list_remove(&item.link);
    list_remove(&item.link);
}

static void remove_copied(void)
{
    struct item item = {.number = 1};
    struct list l = LIST_EMPTY(l);
    list_push_back(&l, &item.link);
    struct item copy = item;
    list_remove(&copy.link);
}

static void add_to_uninitialized(void)
{
    struct item item = {.number = 1};
    struct list l = {.ring = {.next = NULL}};
    list_push_back(&l, &item.link);
}

static void move_onto_entries(void)
{
    struct item item = {.number = 1};
    struct list from = LIST_EMPTY(from);
    struct list to = LIST_EMPTY(to);
    list_push_back(&to, &item.link);
    list_move(&to, &from);
}

static void (*const misuses[])(void) = {
    add_twice,     add_to_two_lists,     remove_unlinked,   remove_twice,
    remove_copied, add_to_uninitialized, move_onto_entries,
};

START_TEST(misuse_aborts)
{
    misuses[_i]();
}

int main(void)
{
    TCase *tc = unit_case("list");
    tcase_add_loop_test_raise_signal(tc, misuse_aborts, SIGABRT, 0, (int)COUNT_OF(misuses));
    return unit_run();
}
