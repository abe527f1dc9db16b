/* What pods use, over samples; when an event is due, and when the text is. */
#include "node/usage/usage_tally.h"

#include "fail_alloc.h"
#include "gpu/nvml.h"
#include "unit.h"

#include <stdio.h>

#define M(mib) (UINT64_C(mib) << 20)
#define HOUR   UINT64_C(3600000)

static struct usage_tally t;
static uint64_t now_ms;
static char told[4096];

static void set_up(void)
{
    usage_tally_init(&t);
    now_ms = 1000;
    told[0] = '\0';
}

static void tear_down(void)
{
    fail_alloc_disarm();
    usage_tally_done(&t);
}

static struct usage_owner pod(const char *uid)
{
    return (struct usage_owner){str_of(uid), STR("ns"), str_of(uid)};
}

static void on_over(void *ctx, const struct usage_use *u)
{
    size_t n = strlen(told);
    ck_assert_ptr_eq(ctx, &t);
    (void)snprintf(told + n, sizeof(told) - n, "%.*s@%u:%s%u>%u ", STR_ARG(u->pod.uid), u->card,
                   u->partial ? "+" : "", (unsigned)(u->bytes >> 20),
                   (unsigned)(u->promised >> 20));
}

static void begin(uint32_t card)
{
    ck_assert_int_eq(usage_tally_begin(&t, card, STR("GPU-x")), OK);
}

static void process(const char *uid, uint64_t bytes)
{
    const struct usage_owner p = pod(uid);
    usage_tally_process(&t, &p, bytes);
}

static void promise(const char *uid, uint64_t bytes)
{
    const struct usage_owner p = pod(uid);
    usage_tally_promise(&t, &p, bytes);
}

static void end(uint64_t used)
{
    const struct usage_reading r = {used, M(40960), 37};
    usage_tally_end(&t, &r, now_ms, on_over, &t);
    now_ms += 10000;
}

/* "pod@card:used/promised", in the order of names; what is not known: "?", or in part: "+" */
static void is(const char *expected)
{
    char text[1024] = "";
    for (int c = 'a'; c <= 'z'; c++) {
        for (uint32_t card = 0; card < 8; card++) {
            for (size_t i = 0; i < t.n_uses; i++) {
                const struct usage_use *u = t.uses[i];
                size_t n = strlen(text);
                if (u->pod.uid.p[0] != c || u->card != card || !u->there)
                    continue;
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%c@%u:", c, card);
                n += u->known ? (size_t)snprintf(text + n, sizeof(text) - n, "%s%u",
                                                 u->partial ? "+" : "", (unsigned)(u->bytes >> 20))
                              : (size_t)snprintf(text + n, sizeof(text) - n, "?");
                if (u->promises)
                    n += (size_t)snprintf(text + n, sizeof(text) - n, "/%u",
                                          (unsigned)(u->promised >> 20));
                (void)snprintf(text + n, sizeof(text) - n, " ");
            }
        }
    }
    ck_assert_str_eq(text, expected);
}

static void other_is(uint32_t card, int64_t mib)
{
    for (size_t i = 0; i < t.n_cards; i++) {
        const struct usage_tally_card *c = &t.cards[i];
        if (c->index == card)
            ck_assert_int_eq(c->other_known ? (int64_t)(c->other >> 20) : -1, mib);
    }
}

START_TEST(adds_up)
{
    usage_tally_round_begin(&t);
    begin(0);
    process("a", M(300));
    process("b", M(100));
    process("a", M(500));
    is(""); /* not before the end */
    promise("a", M(1024));
    promise("c", M(2048));
    end(M(1200));
    is("a@0:800/1024 b@0:100 c@0:0/2048 ");
    other_is(0, 300);
    begin(3);
    process("a", M(7));
    end(M(7));
    usage_tally_round_end(&t);
    is("a@0:800/1024 a@3:7 b@0:100 c@0:0/2048 ");
    other_is(3, 0);
    usage_tally_round_begin(&t);
    begin(0);
    process("a", M(1));
    promise("c", M(2048));
    end(M(1000));
    is("a@0:1 a@3:7 c@0:0/2048 ");
    usage_tally_round_end(&t); /* card 3 is gone */
    ck_assert_uint_eq(t.n_cards, 1);
    is("a@0:1 c@0:0/2048 ");
    usage_tally_gone(&t, STR("a"));
    usage_tally_gone(&t, STR("absent"));
    is("c@0:0/2048 ");
}

START_TEST(what_is_not_known)
{
    usage_tally_round_begin(&t);
    begin(0);
    process("a", M(300));
    process("a", NVML_BYTES_UNKNOWN);
    process("b", M(1));
    promise("a", M(10));
    promise("c", M(10));
    end(M(500));
    is("a@0:+300/10 b@0:1 c@0:0/10 ");
    other_is(0, -1);
    begin(0);
    process("a", NVML_BYTES_UNKNOWN);
    usage_tally_miss(&t); /* it may be c's */
    promise("c", M(10));
    end(M(500));
    is("a@0:? c@0:?/10 ");
    begin(0);
    process("a", M(3));
    process("a", UINT64_MAX - 1); /* more than there is */
    end(M(500));
    is("a@0:+3 ");
    other_is(0, -1);
    begin(0);
    process("a", M(3));
    usage_tally_miss(&t); /* it may be a's */
    end(M(500));
    is("a@0:+3 ");
    begin(0);
    process("a", M(3));
    end(NVML_BYTES_UNKNOWN);
    is("a@0:3 ");
    other_is(0, -1);
    ck_assert(!t.cards[0].known);
    begin(0);
    process("a", M(3));
    end(M(3));
    usage_tally_fail(&t, 0, STR("GPU-x"), NULL);
    is("a@0:? ");
    ck_assert(!t.cards[0].known && t.cards[0].busy_percent == USAGE_BUSY_UNKNOWN);
    begin(0);
    process("a", M(3));
    end(M(3));
    ck_assert(t.cards[0].known && t.cards[0].busy_percent == 37);
    usage_tally_forget(&t);
    is("a@0:? ");
    ck_assert(!t.cards[0].known);
}

static void sample(uint64_t used)
{
    begin(0);
    if (used > 0)
        process("a", used);
    promise("a", M(8192));
    end(M(40000));
}

START_TEST(over_the_share)
{
    usage_tally_round_begin(&t);
    sample(M(9000));
    ck_assert_str_eq(told, "");
    ck_assert_uint_eq(usage_tally_over(&t), 0);
    sample(M(9100));
    ck_assert_str_eq(told, "a@0:9100>8192 ");
    ck_assert_uint_eq(usage_tally_over(&t), 1);
    for (int i = 0; i < 400; i++) /* more than an hour, never below */
        sample(M(9100));
    ck_assert_str_eq(told, "a@0:9100>8192 ");
    sample(M(8192)); /* exactly its share */
    ck_assert_uint_eq(usage_tally_over(&t), 0);
    sample(M(8192) + 1);
    ck_assert_str_eq(told, "a@0:9100>8192 ");
    sample(M(8192) + 1);
    ck_assert_str_eq(told, "a@0:9100>8192 a@0:8192>8192 ");
    /* below, and over again within the hour: not before the hour is over */
    uint64_t first = now_ms - 10000;
    sample(0);
    while (now_ms - first < HOUR)
        sample(M(9999));
    ck_assert_str_eq(told, "a@0:9100>8192 a@0:8192>8192 ");
    sample(M(9999));
    ck_assert_str_eq(told, "a@0:9100>8192 a@0:8192>8192 a@0:9999>8192 ");
}

/* Its process and its promise go and come again: that is no new pod. */
START_TEST(told_is_remembered)
{
    usage_tally_round_begin(&t);
    sample(M(9000));
    sample(M(9000));
    ck_assert_str_eq(told, "a@0:9000>8192 ");
    begin(0);
    end(0);
    is("");
    sample(M(9000));
    sample(M(9000));
    ck_assert_str_eq(told, "a@0:9000>8192 ");
    now_ms += HOUR;
    begin(0);
    end(0);
    ck_assert_uint_eq(t.n_uses, 0);
}

START_TEST(not_over)
{
    usage_tally_round_begin(&t);
    for (int i = 0; i < 5; i++) {
        begin(0);
        process("a", M(9000)); /* without a share: not judged */
        process("b", i % 2 == 0 ? M(200) : M(100));
        process("c", i % 2 == 0 ? M(200) : NVML_BYTES_UNKNOWN);
        promise("b", M(100));
        promise("c", M(100));
        end(M(40000));
    }
    ck_assert_str_eq(told, "");
    for (int i = 0; i < 3; i++) {
        begin(0);
        process("b", M(200));
        promise("b", M(100));
        end(M(40000));
        begin(1);
        process("b", M(200));
        promise("b", M(100));
        end(M(40000));
    }
    ck_assert_uint_eq(usage_tally_over(&t), 1); /* one pod, on two cards */
    ck_assert_str_eq(told, "b@0:200>100 b@1:200>100 ");
}

/* What is known is more than the share, whatever the rest is. */
START_TEST(a_part_alone_is_over)
{
    usage_tally_round_begin(&t);
    for (int i = 0; i < 2; i++) {
        begin(0);
        process("a", M(200));
        process("a", NVML_BYTES_UNKNOWN);
        process("b", M(50));
        process("b", NVML_BYTES_UNKNOWN);
        promise("a", M(100));
        promise("b", M(100));
        end(M(40000));
    }
    ck_assert_str_eq(told, "a@0:+200>100 ");
}

/* A pod with a share of another card has none of this one. */
START_TEST(no_share_of_this_card)
{
    usage_tally_round_begin(&t);
    for (int i = 0; i < 2; i++) {
        begin(1);
        process("a", M(300));
        promise("a", 0);
        promise("b", 0); /* without a process: not on this card */
        end(M(40000));
    }
    is("a@1:300/0 ");
    ck_assert_str_eq(told, "a@1:300>0 ");
}

/* ---- the text ---- */

static void view_is(const char *expected)
{
    struct arena a;
    struct buf out;
    struct usage_view v;
    arena_init(&a, 65536);
    buf_init(&out, 65536);
    ck_assert_int_eq(usage_tally_view(&t, &a, &v), OK);
    v.seen = STR("2026-11-25T19:20:00Z");
    usage_write(&out, &v);
    ck_assert_str_eq(buf_cstr(&out), expected);
    buf_done(&out);
    arena_done(&a);
}

START_TEST(view)
{
    usage_tally_round_begin(&t);
    begin(2);
    process("u", NVML_BYTES_UNKNOWN);
    process("a", M(300));
    process("b", M(4100));
    promise("c", M(10));
    end(M(9000));
    usage_tally_fail(&t, 1, STR("GPU-y"), NULL);
    view_is("{\"seen\":\"2026-11-25T19:20:00Z\",\"cards\":[{\"index\":2,\"usedMiB\":9000,"
            "\"totalMiB\":40960,\"busyPercent\":37}],\"pods\":["
            "{\"uid\":\"b\",\"namespace\":\"ns\",\"name\":\"b\",\"card\":2,\"usedMiB\":4100},"
            "{\"uid\":\"a\",\"namespace\":\"ns\",\"name\":\"a\",\"card\":2,\"usedMiB\":300},"
            "{\"uid\":\"c\",\"namespace\":\"ns\",\"name\":\"c\",\"card\":2,\"usedMiB\":0}]}");
}

static void two(uint64_t a, uint64_t b, uint64_t used)
{
    usage_tally_round_begin(&t);
    begin(0);
    process("a", a);
    if (b > 0)
        process("b", b);
    end(used);
    usage_tally_round_end(&t);
}

START_TEST(changed)
{
    ck_assert(!usage_tally_changed(&t));
    two(M(1000), 0, M(3000));
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    ck_assert(!usage_tally_changed(&t));
    /* 1 % of 40,960 MiB is more than 256 MiB */
    two(M(1409), 0, M(3000));
    ck_assert(!usage_tally_changed(&t));
    two(M(1410), 0, M(3000));
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    two(M(1410), 0, M(2590));
    ck_assert(usage_tally_changed(&t)); /* the card */
    usage_tally_written(&t);
    two(M(1410), M(1), M(2590)); /* a pod came */
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    two(M(1410), 0, M(2590)); /* and went */
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    usage_tally_gone(&t, STR("a"));
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    usage_tally_fail(&t, 0, STR("GPU-x"), NULL);
    ck_assert(usage_tally_changed(&t));
    usage_tally_written(&t);
    ck_assert(!usage_tally_changed(&t));
    usage_tally_round_begin(&t);
    usage_tally_round_end(&t); /* the card is gone, and was not in the text */
    ck_assert(!usage_tally_changed(&t));
}

START_TEST(one_pod_of_a_name)
{
    const struct usage_owner old = {STR("1"), STR("ns"), STR("db-0")};
    const struct usage_owner new = {STR("2"), STR("ns"), STR("db-0")};
    usage_tally_round_begin(&t);
    begin(0);
    usage_tally_process(&t, &old, M(1));
    end(M(1));
    begin(1);
    usage_tally_process(&t, &new, M(1));
    end(M(1));
    ck_assert_uint_eq(t.n_uses, 1);
    ck_assert_str_is(t.uses[0]->pod.uid, "2");
}

START_TEST(too_many)
{
    char uid[16];
    usage_tally_round_begin(&t);
    begin(0);
    for (size_t i = 0; i < USAGE_PODS_MAX + 3; i++) {
        (void)snprintf(uid, sizeof(uid), "u%zu", i);
        process(uid, M(1));
    }
    end(M(40960));
    ck_assert_uint_eq(t.n_uses, USAGE_PODS_MAX);
    ck_assert_uint_eq(t.left_out, 3);
}

static enum errc scenario(void *ctx)
{
    struct usage_view v;
    struct arena a;
    (void)ctx;
    set_up();
    arena_init(&a, 65536);
    usage_tally_round_begin(&t);
    enum errc code = usage_tally_begin(&t, 0, STR("GPU-x"));
    if (code == OK) {
        process("a", M(1));
        end(M(1));
        code = t.left_out > 0 ? ERR_NOMEM : usage_tally_view(&t, &a, &v);
    }
    arena_done(&a);
    usage_tally_done(&t);
    return code;
}

START_TEST(without_memory)
{
    ck_assert_uint_ge(fail_alloc_each(scenario, NULL), 3);
}

int main(void)
{
    TCase *c = unit_case("samples");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, adds_up);
    tcase_add_test(c, what_is_not_known);
    tcase_add_test(c, over_the_share);
    tcase_add_test(c, told_is_remembered);
    tcase_add_test(c, not_over);
    tcase_add_test(c, a_part_alone_is_over);
    tcase_add_test(c, no_share_of_this_card);
    tcase_add_test(c, view);
    tcase_add_test(c, changed);
    tcase_add_test(c, one_pod_of_a_name);
    tcase_add_test(c, too_many);
    c = unit_case("memory");
    tcase_add_test(c, without_memory);
    return unit_run();
}
