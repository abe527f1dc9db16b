/* Values of settings: parsing, printing and refusals, for each type. */
#include "daemon/config/config_value.h"

#include "core/request/policy.h"
#include "unit.h"

#define NO_CARD_RESOURCE                                                               \
    "a resource with a domain that is of none of the dialects, as example.com/gpu or " \
    "example.com/mig-*"

static const struct {
    enum config_type type;
    const char *text;
    uint64_t number;     /* or, for text types, ignored */
    const char *printed; /* NULL: refused, with this error: */
    const char *error;   /* after the quoted text */
} cases[] = {
    {CONFIG_ADDRESS, "127.0.0.1", 0, "\"127.0.0.1\"", NULL},
    {CONFIG_ADDRESS, "::", 0, "\"::\"", NULL},
    {CONFIG_ADDRESS, "fe80::1", 0, "\"fe80::1\"", NULL},
    {CONFIG_ADDRESS, "", 0, NULL, "an IPv4 or IPv6 address"},
    {CONFIG_ADDRESS, "localhost", 0, NULL, "an IPv4 or IPv6 address"},
    {CONFIG_ADDRESS, "127.0.0.1:80", 0, NULL, "an IPv4 or IPv6 address"},
    {CONFIG_ADDRESS, "[::1]", 0, NULL, "an IPv4 or IPv6 address"},
    {CONFIG_ADDRESS, "1.2.3", 0, NULL, "an IPv4 or IPv6 address"},
    {CONFIG_ADDRESS, "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", 0, NULL,
     "an IPv4 or IPv6 address"},
    {CONFIG_PORT, "0", 0, "0", NULL},
    {CONFIG_PORT, "39999", 39999, "39999", NULL},
    {CONFIG_PORT, "100000", 0, NULL, "0 to 99999"},
    {CONFIG_PORT, "-1", 0, NULL, "a number"},
    {CONFIG_PORT, "", 0, NULL, "a number"},
    {CONFIG_PORT, "http", 0, NULL, "a number"},
    {CONFIG_PORT, "99999999999999999999", 0, NULL, "a number"},
    {CONFIG_PATH, "", 0, "\"\"", NULL},
    {CONFIG_PATH, "/a b/\"c\"", 0, "\"/a b/\\\"c\\\"\"", NULL},
    {CONFIG_PATH, "\x7f\xc2\x80\xc2\x9f\xc2\xa0", 0, "\"\\u007f\\u0080\\u009f\xc2\xa0\"", NULL},
    {CONFIG_PATH, "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa7", 0, "\"\\u2028\\u2029\xe2\x80\xa7\"",
     NULL},
    {CONFIG_PATH, "\xef\xbb\xbf\xef\xbf\xbd\xef\xbf\xbe\xef\xbf\xbf", 0,
     "\"\\ufeff\xef\xbf\xbd\\ufffe\\uffff\"", NULL},
    {CONFIG_NAME, "", 0, "\"\"", NULL},
    {CONFIG_NAME, "a", 0, "\"a\"", NULL},
    {CONFIG_NAME, "kube-system", 0, "\"kube-system\"", NULL},
    {CONFIG_NAME, "0.a-b.c9", 0, "\"0.a-b.c9\"", NULL},
    {CONFIG_NAME, "Kube", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "-a", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "a-", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "a-.b", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, ".a", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "a..b", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "a.", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAME, "a/b", 0, NULL, "a name of lower-case letters, digits, '-' and '.'"},
    {CONFIG_NAMES, "", 0, "\"\"", NULL},
    {CONFIG_NAMES, "a:b", 0, "\"a:b\"", NULL},
    {CONFIG_NAMES, "a,b, c", 0, "\"a,b, c\"", NULL},
    {CONFIG_NAMES, ",", 0, NULL, "names with one comma between each two, or empty"},
    {CONFIG_NAMES, "a,", 0, NULL, "names with one comma between each two, or empty"},
    {CONFIG_NAMES, "a, ,b", 0, NULL, "names with one comma between each two, or empty"},
    {CONFIG_RESOURCES, "", 0, "\"\"", NULL},
    {CONFIG_RESOURCES, "a.com/gpu", 0, "\"a.com/gpu\"", NULL},
    {CONFIG_RESOURCES, "a.com/*, b/mig-*", 0, "\"a.com/*, b/mig-*\"", NULL},
    {CONFIG_RESOURCES, "gpu", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "*", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "/gpu", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "a.com/", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "*/gpu", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "a.com/g*u", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "aliyun.com/gpu-mem", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "nvidia.com/*", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_RESOURCES, "volcano.sh/vgpu-c*", 0, NULL, NO_CARD_RESOURCE},
    {CONFIG_DURATION, "0", 0, "0s", NULL},
    {CONFIG_DURATION, "0s", 0, "0s", NULL},
    {CONFIG_DURATION, "30s", 30000, "30s", NULL},
    {CONFIG_DURATION, "1m30s", 90000, "1m30s", NULL},
    {CONFIG_DURATION, "90s", 90000, "1m30s", NULL},
    {CONFIG_DURATION, "500ms", 500, "500ms", NULL},
    {CONFIG_DURATION, "1s500ms", 1500, "1s500ms", NULL},
    {CONFIG_DURATION, "99999ms", 99999, "1m39s999ms", NULL},
    {CONFIG_DURATION, "2m", 0, NULL, "0s to 1m39s999ms"},
    {CONFIG_DURATION, "30", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "s", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "1.5s", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "-1s", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "1 s", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "1m30", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "5124095576030431h", 0, NULL, "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_DURATION, "18446744073709551615ms1ms", 0, NULL,
     "a duration such as 30s, 1m30s or 500ms"},
    {CONFIG_SIZE, "0", 0, "0", NULL},
    {CONFIG_SIZE, "4095", 4095, "4095", NULL},
    {CONFIG_SIZE, "4096", 4096, "4KiB", NULL},
    {CONFIG_SIZE, "64KiB", 65536, "64KiB", NULL},
    {CONFIG_SIZE, "1MiB", 0, NULL, "0 to 99999"},
    {CONFIG_SIZE, "17179869184GiB", 0, NULL, "a size such as 32MiB, 64KiB or a number of bytes"},
    {CONFIG_SIZE, "1kb", 0, NULL, "a size such as 32MiB, 64KiB or a number of bytes"},
    {CONFIG_SIZE, "1KiB1", 0, NULL, "a size such as 32MiB, 64KiB or a number of bytes"},
    {CONFIG_SIZE, "KiB", 0, NULL, "a size such as 32MiB, 64KiB or a number of bytes"},
    {CONFIG_SIZE, "-1", 0, NULL, "a size such as 32MiB, 64KiB or a number of bytes"},
    {CONFIG_COUNT, "99999", 99999, "99999", NULL},
    {CONFIG_COUNT, "100000", 0, NULL, "0 to 99999"},
    {CONFIG_BOOL, "true", 1, "true", NULL},
    {CONFIG_BOOL, "false", 0, "false", NULL},
    {CONFIG_BOOL, "yes", 0, NULL, "true or false"},
    {CONFIG_LOG_LEVEL, "debug", 0, "debug", NULL},
    {CONFIG_LOG_LEVEL, "error", 3, "error", NULL},
    {CONFIG_LOG_LEVEL, "", 0, NULL, "debug, info, warn or error"},
    {CONFIG_LOG_LEVEL, "Debug", 0, NULL, "debug, info, warn or error"},
    {CONFIG_LOG_FORMAT, "auto", 0, "auto", NULL},
    {CONFIG_LOG_FORMAT, "json", 2, "json", NULL},
    {CONFIG_LOG_FORMAT, "xml", 0, NULL, "auto, logfmt or json"},
    {CONFIG_POLICY, "binpack", POLICY_BINPACK, "binpack", NULL},
    {CONFIG_POLICY, "spread", POLICY_SPREAD, "spread", NULL},
    {CONFIG_POLICY, "Spread", 0, NULL, "binpack, spread, fgd or bid-price"},
    {CONFIG_POLICY, "", 0, NULL, "binpack, spread, fgd or bid-price"},
};

TEST_EACH(value, COUNT_OF(cases))
{
    struct err err = ERR_INIT;
    struct config_value v = {.number = 7};
    struct str text = str_of(cases[_i].text);
    struct buf out;
    buf_init(&out, 256);
    enum errc code = config_value_parse(cases[_i].type, text, 0, 99999, &v, &err);
    if (cases[_i].printed != NULL) {
        ck_assert_ok(code, &err);
        ck_assert_uint_eq(v.number, cases[_i].number);
        ck_assert(str_eq(v.text, text));
        config_value_print(cases[_i].type, &v, &out);
        ck_assert_str_is(buf_str(&out), cases[_i].printed);
    } else {
        buf_printf(&out, "\"%s\": must be %s", cases[_i].text, cases[_i].error);
        ck_assert_int_eq(code, ERR_RANGE);
        ck_assert_str_is(buf_str(&out), err.text);
        ck_assert_uint_eq(v.number, 7);
    }
    buf_done(&out);
}

TEST(minimum)
{
    struct err err = ERR_INIT;
    struct config_value v;
    ck_assert_int_eq(config_value_parse(CONFIG_DURATION, STR("999ms"), 1000, 300000, &v, &err),
                     ERR_RANGE);
    ck_assert_str_eq(err.text, "\"999ms\": must be 1s to 5m");
    ck_assert_int_eq(config_value_parse(CONFIG_NAME, STR(""), 1, 253, &v, &err), ERR_RANGE);
    ck_assert_int_eq(config_value_parse(CONFIG_NAME, STR("abcd"), 0, 3, &v, &err), ERR_RANGE);
    ck_assert_int_eq(config_value_parse(CONFIG_SIZE, STR("65535"), (uint64_t)1 << 16,
                                        (uint64_t)1 << 30, &v, &err),
                     ERR_RANGE);
    ck_assert_str_eq(err.text, "\"65535\": must be 64KiB to 1GiB");
}

TEST(nul)
{
    struct config_value v;
    ck_assert_int_eq(config_value_parse(CONFIG_PATH, STR("a\0b"), 0, 0, &v, NULL), ERR_RANGE);
    ck_assert_int_eq(config_value_parse(CONFIG_ADDRESS, STR("::\0"), 0, 0, &v, NULL), ERR_RANGE);
}
