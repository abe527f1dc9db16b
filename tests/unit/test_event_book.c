/* The numbers of client-go's event correlator, checked burst by burst on the test's clock. */
#include "kube/event_book.h"

#include "fail_alloc.h"
#include "kube/limit.h"
#include "unit.h"

#include <stdio.h>

static struct event_book book;
static uint64_t now_ms;
static struct event_record *got;

static void set_up(void)
{
    now_ms = 5000000;
    ck_assert_int_eq(event_book_init(&book, (struct map_seed){1, 2}, (struct map_seed){3, 4}), OK);
}

static void tear_down(void)
{
    event_book_done(&book);
}

static enum event_advice see(const char *pod, const char *reason, const char *message)
{
    struct event_subject p = {STR("ns"), str_of(pod), str_of(pod)};
    struct event_sight e = {
        .pod = &p, .level = EVENT_WARNING, .reason = str_of(reason), .message = str_of(message)};
    got = NULL;
    enum event_advice a = event_book_see(&book, &e, now_ms, UINT64_C(1000000000) * now_ms, &got);
    ck_assert((got == NULL) == (a == EVENT_DROP));
    return a;
}

/* Any number of pods, each with its own bucket. */
static enum event_advice see_other(unsigned i)
{
    char pod[32];
    (void)snprintf(pod, sizeof(pod), "pod-%u", i);
    return see(pod, "R", "m");
}

TEST(the_same_again_is_one)
{
    ck_assert_int_eq(see("p", "R", "m"), EVENT_SEND);
    const struct event_record *first = got;
    ck_assert_uint_eq(first->count, 1);
    uint64_t stamp = first->first_ns;
    now_ms += 60000;
    ck_assert_int_eq(see("p", "R", "m"), EVENT_SEND);
    ck_assert_ptr_eq(got, first);
    ck_assert_uint_eq(first->count, 2);
    ck_assert_uint_eq(first->first_ns, stamp);
}

/* Each differing field makes another event. */
TEST(what_tells_events_apart)
{
    static const struct {
        struct event_subject pod;
        enum event_level level;
        struct str reason;
        struct str message;
    } all[] = {
        {{STR("a"), STR("b"), STR("c")}, EVENT_WARNING, STR("d"), STR("e")},
        {{STR("x"), STR("b"), STR("c")}, EVENT_WARNING, STR("d"), STR("e")},
        {{STR("a"), STR("x"), STR("c")}, EVENT_WARNING, STR("d"), STR("e")},
        {{STR("a"), STR("b"), STR("x")}, EVENT_WARNING, STR("d"), STR("e")},
        {{STR("a"), STR("b"), STR("c")}, EVENT_NORMAL, STR("d"), STR("e")},
        {{STR("a"), STR("b"), STR("c")}, EVENT_WARNING, STR("x"), STR("e")},
        {{STR("a"), STR("b"), STR("c")}, EVENT_WARNING, STR("d"), STR("x")},
        {{STR("ab"), STR(""), STR("c")}, EVENT_WARNING, STR("d"), STR("e")},
    };
    struct event_record *records[COUNT_OF(all)];
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct event_sight e = {&all[i].pod, all[i].level, all[i].reason, all[i].message};
        ck_assert_int_eq(event_book_see(&book, &e, now_ms, 77, &records[i]), EVENT_SEND);
        ck_assert_uint_eq(records[i]->count, 1);
        for (size_t j = 0; j < i; j++) {
            ck_assert_ptr_ne(records[i], records[j]);
            /* Otherwise two events of a pod would have one name. */
            ck_assert_uint_ne(records[i]->first_ns, records[j]->first_ns);
        }
    }
}

static enum event_advice see_variant(unsigned i)
{
    char message[32];
    (void)snprintf(message, sizeof(message), "message %u", i);
    return see("p", "R", message);
}

TEST(similar_ones_are_combined)
{
    for (unsigned i = 0; i < 9; i++)
        ck_assert_int_eq(see_variant(i), EVENT_SEND);
    ck_assert_int_eq(see_variant(9), EVENT_SEND_COMBINED);
    const struct event_record *combined = got;
    ck_assert_uint_eq(combined->count, 1);
    ck_assert_int_eq(see_variant(10), EVENT_SEND_COMBINED);
    ck_assert_ptr_eq(got, combined);
    ck_assert_uint_eq(combined->count, 2);
    ck_assert_int_eq(see_variant(3), EVENT_SEND); /* counted as an event of its own */
    ck_assert_uint_eq(got->count, 2);
    ck_assert_int_eq(see("p", "Other", "m"), EVENT_SEND);
    ck_assert_int_eq(see("q", "R", "m"), EVENT_SEND);
}

/* 600 s count from the last event. */
TEST(combining_ends)
{
    for (unsigned i = 0; i < 9; i++)
        ck_assert_int_eq(see_variant(i), EVENT_SEND);
    now_ms += 600000;
    ck_assert_int_eq(see_variant(10), EVENT_SEND_COMBINED);
    now_ms += 600000;
    ck_assert_int_eq(see_variant(11), EVENT_SEND_COMBINED);
    now_ms += 600001;
    ck_assert_int_eq(see_variant(12), EVENT_SEND);
    ck_assert_uint_eq(got->count, 1);
}

TEST(a_pod_has_its_share)
{
    for (unsigned i = 0; i < 25; i++)
        ck_assert_int_eq(see("p", "R", "m"), EVENT_SEND);
    ck_assert_int_eq(see("p", "R", "m"), EVENT_DROP);
    ck_assert_int_eq(see("p", "Other", "m"), EVENT_DROP);
    ck_assert_int_eq(see("q", "R", "m"), EVENT_SEND);
    now_ms += 299999;
    ck_assert_int_eq(see("p", "R", "m"), EVENT_DROP);
    now_ms += 1;
    ck_assert_int_eq(see("p", "R", "m"), EVENT_SEND);
    ck_assert_uint_eq(got->count, 28); /* including those that were not sent */
    ck_assert_int_eq(see("p", "R", "m"), EVENT_DROP);
    now_ms += 1000 * UINT64_C(300000);
    for (unsigned i = 0; i < 25; i++)
        ck_assert_int_eq(see("p", "R", "m"), EVENT_SEND);
    ck_assert_int_eq(see("p", "R", "m"), EVENT_DROP);
}

TEST(all_pods_together_have_theirs)
{
    for (unsigned i = 0; i < 200; i++)
        ck_assert_int_eq(see_other(i), EVENT_SEND);
    ck_assert_int_eq(see_other(200), EVENT_DROP);
    now_ms += 200;
    ck_assert_int_eq(see_other(201), EVENT_SEND);
    ck_assert_int_eq(see_other(202), EVENT_DROP);
}

/* Each pod takes three records; more pods come than fit. */
TEST(the_oldest_is_forgotten)
{
    unsigned pods = (unsigned)LIMIT_EVENT_RECORDS;
    ck_assert_int_eq(see("pinned", "R", "m"), EVENT_SEND);
    struct event_record *pinned = got;
    pinned->pinned = true;
    for (unsigned i = 0; i < pods; i++) {
        now_ms += 1000;
        ck_assert_int_eq(see_other(i), EVENT_SEND);
        ck_assert_uint_eq(got->count, 1);
    }
    ck_assert_uint_eq(book.n, LIMIT_EVENT_RECORDS);
    ck_assert_uint_eq(book.by_digest.n, LIMIT_EVENT_RECORDS);
    ck_assert_int_eq(see("pinned", "R", "m"), EVENT_SEND);
    ck_assert_ptr_eq(got, pinned);
    ck_assert_uint_eq(got->count, 2);
    now_ms += 1000;
    ck_assert_int_eq(see_other(pods - 1), EVENT_SEND);
    ck_assert_uint_eq(got->count, 2);
    now_ms += 1000;
    ck_assert_int_eq(see_other(0), EVENT_SEND);
    ck_assert_uint_eq(got->count, 1);
}

/* All records are in use: none is forgotten or overwritten. */
TEST(nothing_that_is_pinned_is_forgotten)
{
    for (unsigned i = 0; i < LIMIT_EVENT_RECORDS / 3; i++) {
        now_ms += 1000;
        ck_assert_int_eq(see_other(i), EVENT_SEND);
    }
    for (size_t i = 0; i < book.n; i++)
        book.records[i].pinned = true;
    now_ms += 1000;
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(see_other(1000000 + i), EVENT_DROP);
    ck_assert_int_eq(see_other(0), EVENT_SEND);
    ck_assert_uint_eq(got->count, 2);
}

static enum errc without_memory(void *ctx)
{
    struct event_book b;
    struct event_record *r = NULL;
    struct event_subject p = {STR("ns"), STR("p"), STR("u")};
    enum errc code = event_book_init(&b, (struct map_seed){1, 2}, (struct map_seed){3, 4});
    (void)ctx;
    for (unsigned i = 0; code == OK && i < 9; i++) {
        struct event_sight e = {
            .pod = &p, .reason = STR("R"), .message = (struct str){"abcdefghi", i}};
        code = event_book_see(&b, &e, 1, 1, &r) == EVENT_DROP ? ERR_NOMEM : OK;
    }
    /* The book goes on with the memory that it has. */
    for (unsigned i = 0; b.records != NULL && i < 9; i++) {
        struct event_sight e = {.pod = &p, .reason = STR("S"), .message = STR("")};
        if (event_book_see(&b, &e, 1, 1, &r) == EVENT_DROP)
            code = ERR_NOMEM;
    }
    event_book_done(&b);
    return code;
}

TEST(memory_runs_out)
{
    ck_assert_uint_ge(fail_alloc_each(without_memory, NULL), 2);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
