/* Device IDs, units, the list of devices, and the choice among available ones. */
#include "node/kubelet/devices.h"
#include "node/limit.h"
#include "unit.h"

#include <stdio.h>

#define GIB (INT64_C(1) << 30)

static void assert_id(uint32_t card, uint32_t n, const char *text)
{
    char id[DEVICE_ID_BYTES];
    uint32_t back_card = 0;
    uint32_t back_n = 0;
    device_id(id, card, n);
    ck_assert_str_eq(id, text);
    ck_assert(device_parse(str_of(id), &back_card, &back_n));
    ck_assert_uint_eq(back_card, card);
    ck_assert_uint_eq(back_n, n);
}

TEST(test_ids)
{
    assert_id(0, 0, "0.0");
    assert_id(7, 35, "7.z");
    assert_id(36, 36, "10.10");
    assert_id(1023, 99999, "sf.255r");
    assert_id(UINT32_MAX, UINT32_MAX, "1z141z3.1z141z3");
}

TEST(test_bad_ids)
{
    static const char *const bad[] = {
        "",    ".",    "0",     "0.",      ".0",          "00.0",        "0.00",
        "A.0", "0.0 ", "0.0.0", "GPU-1.0", "1z141z4.0",   "0.1z141z4",   "-1.0",
        "0,0", " 0.0", "0.Z",   "0.0\n",   "zzzzzzzzz.0", "0.100000000", "0.\xc3\xa4",
    };
    uint32_t card;
    uint32_t n;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(!device_parse(str_of(bad[i]), &card, &n), "\"%s\" is an ID", bad[i]);
    ck_assert(!device_parse((struct str){"0.0\0", 4}, &card, &n));
    ck_assert(!device_parse(STR_NULL, &card, &n));
}

TEST(test_units)
{
    struct device_unit gib = {GIB};
    ck_assert_int_eq(devices_units(gib, 80 * GIB, 0), 80);
    ck_assert_int_eq(devices_units(gib, 80 * GIB - 1, 0), 79);
    ck_assert_int_eq(devices_units(gib, 80 * GIB, 1), 79);
    ck_assert_int_eq(devices_units(gib, 80 * GIB, 80 * GIB), 0);
    ck_assert_int_eq(devices_units(gib, 80 * GIB, 81 * GIB), 0);
    ck_assert_int_eq(devices_units((struct device_unit){256 << 20}, 23 * GIB + (300 << 20), 0), 93);
    ck_assert_int_eq(devices_units((struct device_unit){1}, INT64_MAX, 0), INT64_MAX);
}

TEST(test_limit)
{
    struct err e = ERR_INIT;
    struct card_offer cards[8];
    for (uint32_t i = 0; i < 8; i++)
        cards[i] = (struct card_offer){.index = i, .units = 12500, .numa = -1};
    ck_assert_ok(devices_check(cards, 8, &e), &e);
    ck_assert_ok(devices_check(NULL, 0, &e), &e);
    cards[7].units++;
    ck_assert_int_eq(devices_check(cards, 8, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "the cards have 100001 units of memory, and a kubelet takes at most "
                             "100000 devices: set a unit of memory that is 2 times as large");
    for (uint32_t i = 0; i < 8; i++)
        cards[i].units = 81920;
    ck_assert_int_eq(devices_check(cards, 8, &e), ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "that is 7 times as large") != NULL, "%s", e.text);
    cards[0].units = cards[1].units = INT64_MAX;
    ck_assert_int_eq(devices_check(cards, 8, &e), ERR_LIMIT);
    cards[0].units = -1;
    ck_assert_int_eq(devices_check(cards, 8, &e), ERR_RANGE);
}

/* The list as "ID health numa, ..." */
static void read_list(struct str bytes, struct buf *ret)
{
    struct err e = ERR_INIT;
    struct pb_field f;
    struct pb_reader r = pb_read(bytes, &e);
    while (pb_next(&r, &f)) {
        struct pb_field d;
        struct pb_reader device = pb_inner(&r, &f);
        ck_assert_uint_eq(f.number, 1);
        while (pb_next(&device, &d)) {
            if (d.number < 3)
                buf_printf(ret, "%.*s ", STR_ARG(pb_str(&device, &d)));
            else
                buf_printf(ret, "numa ");
        }
    }
    ck_assert_ok(e.code, &e);
}

TEST(test_list)
{
    struct card_offer cards[] = {
        {.index = 0, .units = 2, .healthy = true, .numa = -1},
        {.index = 3, .units = 0, .healthy = true, .numa = 0},
        {.index = 40, .units = 1, .healthy = false, .numa = 1},
    };
    struct buf list;
    struct buf text;
    buf_init(&list, MIB);
    buf_init(&text, MIB);
    devices_list(&list, cards, COUNT_OF(cards));
    read_list(buf_str(&list), &text);
    ck_assert_str_is(buf_str(&text), "0.0 Healthy 0.1 Healthy 14.0 Unhealthy numa ");
    buf_done(&text);
    buf_done(&list);
}

/* The kubelet reads 4 MiB at most, whatever the indices and NUMA nodes are. */
TEST(test_largest_list)
{
    struct err e = ERR_INIT;
    struct card_offer cards[2] = {
        {.index = 1022, .units = 1, .healthy = false, .numa = 7},
        {.index = 1023, .units = LIMIT_DEVICES - 1, .healthy = false, .numa = 7},
    };
    struct buf list;
    buf_init(&list, 4 * MIB);
    ck_assert_ok(devices_check(cards, 2, &e), &e);
    devices_list(&list, cards, 2);
    ck_assert(!buf_failed(&list));
    ck_assert_uint_gt(list.n, 2 * MIB);
    buf_done(&list);
}

static void split(const char *text, struct str *ids, size_t *n)
{
    struct str rest = str_of(text);
    *n = 0;
    while (rest.n > 0)
        (void)str_cut(rest, ' ', &ids[(*n)++], &rest);
}

static void assert_choice(const char *available, const char *must, int32_t size,
                          const struct device_wish *wishes, size_t n, const char *expected)
{
    struct str ids[32];
    struct str musts[32];
    char text[256];
    struct buf b = BUF_ON(text);
    struct arena a;
    struct preferred_container c = {.available = ids, .must_include = musts, .size = size};
    struct allocate_container got;
    split(available, ids, &c.n_available);
    split(must, musts, &c.n_must_include);
    arena_init(&a, MIB);
    ck_assert_int_eq(devices_prefer(&c, wishes, n, &a, &got), OK);
    for (size_t i = 0; i < got.n_ids; i++)
        buf_printf(&b, i > 0 ? " %.*s" : "%.*s", STR_ARG(got.ids[i]));
    ck_assert_str_is(buf_str(&b), expected);
    arena_done(&a);
}

TEST(test_choice)
{
    struct device_wish one[] = {{1, 2}};
    struct device_wish two[] = {{2, 1}, {0, 2}};
    assert_choice("0.0 1.5 2.0 1.1 1.9", "", 2, one, 1, "1.5 1.1");
    assert_choice("0.0 1.5", "", 2, one, 1, "1.5");
    assert_choice("0.0 2.0", "", 2, one, 1, "");
    assert_choice("0.0 0.1 0.2 2.1 2.2", "", 3, two, 2, "0.0 0.1 2.1");
    /* What must be included is in the list of available ones too, and counts. */
    assert_choice("1.7 1.5 1.1", "1.5", 2, one, 1, "1.5 1.7");
    assert_choice("1.7 1.5 1.1", "1.1 1.5", 2, one, 1, "1.1 1.5");
    assert_choice("1.7 1.5 0.1", "0.1", 2, one, 1, "0.1 1.7");
    assert_choice("1.7 1.5 0.1 bad", "bad", 3, one, 1, "bad 1.7 1.5");
    /* Sizes that no kubelet sends. */
    assert_choice("1.7 1.5", "1.5 1.7", 1, one, 1, "1.5");
    assert_choice("1.7 1.5", "", 0, one, 1, "");
    assert_choice("1.7 1.5", "", -1, one, 1, "");
    assert_choice("1.7 1.5", "", INT32_MAX, one, 1, "1.7 1.5");
    assert_choice("1.7 1.5", "", 2, NULL, 0, "");
}

TEST(test_choice_without_memory)
{
    struct arena a;
    struct str ids[] = {STR("0.0")};
    struct preferred_container c = {.available = ids, .n_available = 1, .size = 1};
    struct device_wish wish = {0, 1};
    struct allocate_container got;
    arena_init(&a, 16);
    ck_assert_int_eq(devices_prefer(&c, &wish, 1, &a, &got), ERR_LIMIT);
    arena_done(&a);
}
