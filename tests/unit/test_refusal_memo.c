/* Answers of filter that are copied from earlier ones: an answer with a memo is, byte for byte, the
 * one without. */
#include "codec/extender.h"

#include "codec/limit.h"
#include "fail_alloc.h"
#include "unit.h"

#include <limits.h>
#include <stdio.h>

#define NODES 200
#define KINDS 12 /* of candidates, the first of which are not refused */

static const uint64_t lists[] = {7, 9};

static struct {
    struct extender_memo memo;
    char bytes[NODES * 16 + 64]; /* of the names, with quotes */
    struct str names[NODES];
    struct filter_args args;
    unsigned char offers[NODES];
    unsigned char kinds[NODES];
    char texts[KINDS][1200]; /* by kind */
    bool own[KINDS];         /* each candidate has a text of its own */
    bool unresolvable[KINDS];
    unsigned made; /* reasons that were asked for */
    struct buf with;
    struct buf without;
    uint64_t random;
} x;

static unsigned draw(unsigned below)
{
    x.random = x.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((x.random >> 33) % below);
}

static struct str reason(void *ctx, size_t i, bool *ret_common)
{
    static char text[64];
    unsigned char kind = x.kinds[i];
    ck_assert_ptr_eq(ctx, &x);
    ck_assert_uint_gt(kind, 0);
    ck_assert_uint_ge(x.offers[i], OFFER_REFUSED);
    x.made++;
    *ret_common = !x.own[kind];
    if (!x.own[kind])
        return str_of(x.texts[kind]);
    (void)snprintf(text, sizeof(text), "node %zu alone", i);
    return str_of(text);
}

static void set_up(void)
{
    memset(&x, 0, sizeof(x));
    char *at = x.bytes;
    for (unsigned i = 0; i < NODES; i++) {
        int n = snprintf(at, 16, "\"node-%u\",", i * i % 1000);
        x.names[i] = (struct str){at + 1, (size_t)n - 3};
        at += n;
    }
    x.args = (struct filter_args){
        .by_name = true, .plain = true, .names = x.names, .n = NODES, .list = lists[0]};
    for (unsigned k = 0; k < KINDS; k++)
        (void)snprintf(x.texts[k], sizeof(x.texts[k]), "reason \"%u\" of 5%%", k);
    buf_init(&x.with, MIB);
    buf_init(&x.without, MIB);
    x.random = 1;
}

static void tear_down(void)
{
    extender_memo_done(&x.memo);
    buf_done(&x.with);
    buf_done(&x.without);
}

static void refuse(unsigned i, unsigned kind)
{
    x.kinds[i] = (unsigned char)kind;
    x.offers[i] = kind == 0              ? (unsigned char)(i % 3 == 0 ? OFFER_FITS : OFFER_LEFT_OUT)
                  : x.unresolvable[kind] ? OFFER_UNRESOLVABLE
                                         : OFFER_REFUSED;
}

/* Returns how many reasons were asked for with the memo. */
static unsigned ask(void)
{
    buf_clear(&x.without, SIZE_MAX);
    buf_clear(&x.with, SIZE_MAX);
    extender_write_filter(&x.without, &x.args, x.offers, x.kinds, reason, &x, NULL);
    x.made = 0;
    extender_write_filter(&x.with, &x.args, x.offers, x.kinds, reason, &x, &x.memo);
    ck_assert(!buf_failed(&x.with));
    ck_assert_str_is(buf_str(&x.with), buf_cstr(&x.without));
    return x.made;
}

static void refuse_all(unsigned kind)
{
    for (unsigned i = 0; i < NODES; i++)
        refuse(i, kind);
}

static unsigned maps(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < REFUSAL_KNOWN; i++)
        n += x.memo.refusals.all[i].kinds != NULL ? 1 : 0;
    return n;
}

START_TEST(the_third_question_is_remembered)
{
    refuse_all(1);
    refuse(3, 2);
    for (unsigned i = 0; i < 5; i++) {
        (void)ask();
        ck_assert_uint_eq(maps(), i >= 2 ? 1 : 0);
    }
    /* each change is asked for alone, after the kinds' texts were compared */
    refuse(0, 0);
    refuse(NODES - 1, 2);
    refuse(100, 4);
    ck_assert_uint_eq(ask(), 2 + 2);
}

END_TEST

START_TEST(another_text)
{
    refuse_all(1);
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    ck_assert_uint_eq(maps(), 1);
    (void)snprintf(x.texts[1], sizeof(x.texts[1]), "another reason");
    (void)ask();
    x.unresolvable[1] = true;
    refuse_all(1);
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    x.own[1] = true;
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
}

END_TEST

/* Pods of two sizes in turn are both remembered. */
START_TEST(two_sizes)
{
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(x.texts[1], sizeof(x.texts[1]), "asks %u", i % 2);
        refuse_all(1);
        for (unsigned k = 0; k < (i % 2 == 0 ? NODES / 2 : 20); k++)
            refuse(k, 0);
        unsigned made = ask();
        ck_assert(i < 6 || made <= 2);
    }
}

END_TEST

/* Another list, or the names of no list. */
START_TEST(other_lists)
{
    refuse_all(1);
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    x.names[5] = STR("a-name-that-differs");
    x.args.list = lists[1];
    x.args.plain = true;
    char *at = x.bytes; /* plain names are in quotes */
    for (unsigned i = 0; i < NODES; i++) {
        int n = snprintf(at, 16, "\"other%u\",", i);
        x.names[i] = (struct str){at + 1, (size_t)n - 3};
        at += n;
    }
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    x.args.list = 0;
    ck_assert_uint_eq(ask(), 1);
}

END_TEST

/* What is too long or too much is answered without. */
START_TEST(too_long)
{
    memset(x.texts[1], 'x', sizeof(x.texts[1]) - 1);
    refuse_all(1);
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    ck_assert_uint_eq(maps(), 0);
    for (unsigned i = 0; i < NODES; i++)
        refuse(i, 2 + i % (KINDS - 2));
    for (unsigned i = 0; i < 4; i++)
        (void)ask();
    ck_assert_uint_eq(maps(), 0); /* more than REFUSAL_REASONS */
    x.own[3] = true;
    for (unsigned i = 0; i < NODES; i++)
        refuse(i, i % 2 == 0 ? 3 : 2);
    for (unsigned i = 0; i < 8; i++)
        (void)ask();
    ck_assert_uint_eq(maps(), 0); /* half of the entries would be missing */
}

END_TEST

/* Maps that are in use do not make room for others; those of sizes that do not come any more do. */
START_TEST(the_limit_of_bytes)
{
    static char long_text[1000];
    size_t most = 0;
    memset(long_text, 'y', sizeof(long_text) - 1);
    refuse_all(1);
    for (unsigned i = 0; i < 400; i++) {
        size_t bytes = 0;
        bool last[2] = {false, false};
        unsigned size = i < 200 ? i % 6 : 6 + i % 2;
        (void)snprintf(x.texts[1], sizeof(x.texts[1]), "%u%.900s", size, long_text);
        (void)ask();
        for (unsigned k = 0; k < REFUSAL_KNOWN; k++) {
            const struct refusal_known *known = &x.memo.refusals.all[k];
            const char *text = known->n_reasons == 0 ? "" : known->reasons[0].text.p;
            bytes += known->bytes;
            for (unsigned j = 0; j < 2; j++)
                last[j] = last[j] || (known->kinds != NULL && text[3] == (char)('6' + j));
        }
        ck_assert_uint_le(bytes, LIMIT_REFUSALS_BYTES);
        ck_assert_msg(i < 300 || (last[0] && last[1]), "%u", i);
        most = MAX_OF(most, bytes);
    }
    ck_assert_uint_gt(most, LIMIT_REFUSALS_BYTES / 4);
}

END_TEST

/* The two sizes of a pair have a reason in common. Both are remembered, and then nothing is written
 * anew. */
START_TEST(sizes_that_share_a_reason)
{
    for (unsigned i = 0; i < 40; i++) {
        refuse_all(1);
        for (unsigned k = 0; k < NODES; k += i % 3 == 2 ? NODES : 2)
            refuse(k, 2);
        uint64_t tries = x.memo.refusals.tries;
        (void)ask();
        ck_assert_msg(i < 12 || (maps() == 2 && x.memo.refusals.tries == tries), "%u", i);
    }
}

END_TEST

/* What has no room is not tried again with each question, nor is what never serves. */
START_TEST(maps_that_are_for_nothing)
{
    static char long_text[1000];
    memset(long_text, 'y', sizeof(long_text) - 1);
    for (unsigned i = 0; i < 120; i++) {
        (void)snprintf(x.texts[1], sizeof(x.texts[1]), "%u%.900s", _i == 0 ? i % 6 : 0, long_text);
        refuse_all(1);
        for (unsigned k = 0; _i == 1 && k < NODES / 4; k++)
            refuse((k + i * NODES / 4 + i / 4) % NODES, 0);
        for (unsigned k = 0; _i == 2 && k < NODES; k++)
            refuse(k, draw(2));
        (void)ask();
    }
    ck_assert_uint_lt(x.memo.refusals.tries, 25);
}

END_TEST

START_TEST(random_questions)
{
    x.random = (uint64_t)_i + 1;
    for (unsigned i = 0; i < 400; i++) {
        if (draw(40) == 0)
            (void)snprintf(x.texts[1 + draw(KINDS - 1)], 20, "other %u", draw(3));
        if (draw(60) == 0)
            x.own[1 + draw(KINDS - 1)] = draw(3) == 0;
        if (draw(60) == 0) {
            unsigned kind = 1 + draw(KINDS - 1);
            x.unresolvable[kind] = draw(2) == 0;
        }
        x.args.list = draw(20) == 0 ? lists[draw(COUNT_OF(lists))] : x.args.list;
        unsigned most = draw(15) == 0 ? NODES : draw(4);
        unsigned kinds = 1 + draw(KINDS);
        for (unsigned k = 0; k < most; k++)
            x.kinds[draw(NODES)] = (unsigned char)draw(kinds);
        for (unsigned k = 0; k < NODES; k++)
            refuse(k, x.kinds[k]);
        (void)ask();
    }
}

END_TEST

/* Each allocation may fail: then less is remembered. */
START_TEST(no_memory)
{
    for (size_t nth = 1; nth < 8; nth++) {
        extender_memo_done(&x.memo);
        refuse_all(1);
        (void)ask();
        (void)ask();
        buf_clear(&x.with, SIZE_MAX);
        fail_alloc_arm(FAIL_ONCE, nth);
        extender_write_filter(&x.with, &x.args, x.offers, x.kinds, reason, &x, &x.memo);
        fail_alloc_disarm();
        ck_assert_str_is(buf_str(&x.with), buf_cstr(&x.without));
        for (unsigned i = 0; i < 4; i++)
            (void)ask();
        ck_assert_uint_eq(maps(), 1);
    }
}

END_TEST

int main(void)
{
    Suite *s = suite_create("refusal_memo");
    TCase *c = tcase_create("refusal_memo");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, the_third_question_is_remembered);
    tcase_add_test(c, another_text);
    tcase_add_test(c, two_sizes);
    tcase_add_test(c, other_lists);
    tcase_add_test(c, too_long);
    tcase_add_test(c, the_limit_of_bytes);
    tcase_add_test(c, sizes_that_share_a_reason);
    tcase_add_loop_test(c, maps_that_are_for_nothing, 0, 3);
    tcase_add_loop_test(c, random_questions, 0, 40);
    tcase_add_test(c, no_memory);
    suite_add_tcase(s, c);
    return unit_main(s);
}
