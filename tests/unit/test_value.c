/* Values of settings: what reads, what does not, and that what is printed reads back. */
#include "base/value.h"

#include "unit.h"

static const struct {
    const char *text;
    bool reads;
    uint64_t ms;
    const char *printed;
} durations[] = {
    {"0", true, 0, "0s"},
    {"0s", true, 0, "0s"},
    {"500ms", true, 500, "500ms"},
    {"1m30s", true, 90000, "1m30s"},
    {"90s", true, 90000, "1m30s"},
    {"5m", true, 300000, "5m"},
    {"2h1ms", true, 7200001, "2h1ms"},
    {"18446744073709551615ms", true, UINT64_MAX, "5124095576030h25m51s615ms"},
    {"18446744073709551616ms", false, 0, NULL},
    {"18446744073709551615s", false, 0, NULL},
    {"18446744073709551615ms1ms", false, 0, NULL},
    {"", false, 0, NULL},
    {"30", false, 0, NULL},
    {"s", false, 0, NULL},
    {"1d", false, 0, NULL},
    {"1s ", false, 0, NULL},
    {" 1s", false, 0, NULL},
    {"-1s", false, 0, NULL},
    {"1.5s", false, 0, NULL},
};

TEST_EACH(a_duration, COUNT_OF(durations))
{
    uint64_t ms = 7;
    char bytes[64];
    struct buf out = BUF_ON(bytes);
    ck_assert(value_read_duration(str_of(durations[_i].text), &ms) == durations[_i].reads);
    if (!durations[_i].reads)
        return;
    ck_assert_uint_eq(ms, durations[_i].ms);
    value_put_duration(&out, ms);
    ck_assert_str_is(buf_str(&out), durations[_i].printed);
    ck_assert(value_read_duration(buf_str(&out), &ms) && ms == durations[_i].ms);
}

static const struct {
    const char *text;
    bool reads;
    uint64_t bytes;
    const char *printed;
} sizes[] = {
    {"0", true, 0, "0"},
    {"4097", true, 4097, "4097"},
    {"4096", true, 4096, "4KiB"},
    {"256MiB", true, UINT64_C(256) << 20, "256MiB"},
    {"1024MiB", true, UINT64_C(1) << 30, "1GiB"},
    {"17179869183GiB", true, UINT64_C(17179869183) << 30, "17179869183GiB"},
    {"17179869184GiB", false, 0, NULL},
    {"", false, 0, NULL},
    {"MiB", false, 0, NULL},
    {"1MB", false, 0, NULL},
    {"1mib", false, 0, NULL},
    {"1MiB1", false, 0, NULL},
    {"1 MiB", false, 0, NULL},
    {"-1", false, 0, NULL},
};

TEST_EACH(a_size, COUNT_OF(sizes))
{
    uint64_t n = 7;
    char bytes[64];
    struct buf out = BUF_ON(bytes);
    ck_assert(value_read_size(str_of(sizes[_i].text), &n) == sizes[_i].reads);
    if (!sizes[_i].reads)
        return;
    ck_assert_uint_eq(n, sizes[_i].bytes);
    value_put_size(&out, n);
    ck_assert_str_is(buf_str(&out), sizes[_i].printed);
    ck_assert(value_read_size(buf_str(&out), &n) && n == sizes[_i].bytes);
}

static const struct {
    const char *address;
    bool loopback;
} addresses[] = {
    {"127.0.0.1", true},
    {"127.255.0.9", true},
    {"::1", true},
    {"::ffff:127.0.0.1", true},
    {"0.0.0.0", false},
    {"::", false},
    {"10.0.0.1", false},
    {"128.0.0.1", false},
    {"::ffff:10.0.0.1", false},
    {"::127.0.0.1", false},
    {"fe80::1", false},
    {"localhost", false},
    {"", false},
};

TEST_EACH(loopback, COUNT_OF(addresses))
{
    struct str address = str_of(addresses[_i].address);
    ck_assert(value_is_loopback(address) == addresses[_i].loopback);
}

/* A word is found whole, has its index, and prints as it reads. */
TEST(a_word)
{
    static const char list[] = "auto|on|off";
    char bytes[64];
    struct buf all = BUF_ON(bytes);
    unsigned i = 7;
    ck_assert(!value_read_word(STR(""), list, &i) && !value_read_word(STR("o"), list, &i));
    ck_assert(!value_read_word(STR("on|off"), list, &i) && i == 7);
    ck_assert(value_read_word(STR("auto"), list, &i) && i == 0);
    ck_assert(value_read_word(STR("off"), list, &i) && i == 2);
    ck_assert_str_is(value_word(list, 0), "auto");
    ck_assert_str_is(value_word(list, 2), "off");
    value_put_words(&all, list);
    ck_assert_str_is(buf_str(&all), "auto, on or off");
    buf_clear(&all, sizeof(bytes));
    value_put_words(&all, "on");
    ck_assert_str_is(buf_str(&all), "on");
}
