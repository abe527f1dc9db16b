/* YAML scalars: which texts are numbers, bools or null, and their JSON. */
#include "json/yaml_scalar.h"

#include "unit.h"

#define N    JTYPE_NUMBER
#define S    JTYPE_STRING
#define B    JTYPE_BOOL
#define NONE JTYPE_NONE

static const struct {
    const char *text;
    enum jtype type;
    const char *json; /* the JSON of a number or a bool */
} cases[] = {
    {"", JTYPE_NULL, ""},
    {"~", JTYPE_NULL, ""},
    {"null", JTYPE_NULL, ""},
    {"Null", JTYPE_NULL, ""},
    {"NULL", JTYPE_NULL, ""},
    {"nULL", S, ""},
    {"nil", S, ""},
    {"true", B, "true"},
    {"True", B, "true"},
    {"TRUE", B, "true"},
    {"false", B, "false"},
    {"False", B, "false"},
    {"FALSE", B, "false"},
    {"tRUE", S, ""},
    {"yes", S, ""},
    {"No", S, ""},
    {"on", S, ""},
    {"y", S, ""},
    /* Integers. */
    {"0", N, "0"},
    {"8", N, "8"},
    {"-8", N, "-8"},
    {"+8", N, "8"},
    {"-0", N, "0"},
    {"-0.0", N, "-0.0"},
    {"1_000", N, "1000"},
    {"1_", N, "1"},
    {"_1", S, ""},
    {"0777", N, "511"},
    {"-0777", N, "-511"},
    {"00", N, "0"},
    {"-00", N, "0"},
    {"0o17", N, "15"},
    {"0O17", N, "15"},
    {"0x1F", N, "31"},
    {"0Xff", N, "255"},
    {"-0x10", N, "-16"},
    {"+0x10", N, "16"},
    {"0b101", N, "5"},
    {"0B1", N, "1"},
    {"0xffffffffffffffff", N, "18446744073709551615"},
    {"0x10000000000000000", S, ""},
    {"0x", S, ""},
    {"0xg", S, ""},
    {"0o8", S, ""},
    {"0b2", S, ""},
    {"08", N, "8"},
    {"009", N, "9"},
    {"18446744073709551616", N, "18446744073709551616"},
    {"-", S, ""},
    {"+", S, ""},
    {"--1", S, ""},
    {"+-1", S, ""},
    {"1a", S, ""},
    {"1 2", S, ""},
    {"1.2.3.4", S, ""},
    {"12:30", S, ""},
    {"2001-01-01", S, ""},
    {"10Gi", S, ""},
    {"500m", S, ""},
    /* Fractions and exponents. */
    {"1.5", N, "1.5"},
    {"-1.50", N, "-1.50"},
    {".5", N, "0.5"},
    {"-.5", N, "-0.5"},
    {"+.5", N, "0.5"},
    {"1.", N, "1"},
    {"01.5", N, "1.5"},
    {"1e3", N, "1e3"},
    {"1E+3", N, "1E+3"},
    {"1.e-3", N, "1e-3"},
    {".5e1", N, "0.5e1"},
    {"1_0.5", N, "10.5"},
    {"._5", S, ""},
    {".5_0", N, "0.50"},
    {".5__0", S, ""},
    {".5_", S, ""},
    {"1e", S, ""},
    {"1e+", S, ""},
    {"e3", S, ""},
    {".e3", S, ""},
    {".", S, ""},
    {"..", S, ""},
    {"1e3.5", S, ""},
    {"1e999", S, ""},
    {"0x1p3", S, ""},
    {".inf", NONE, ""},
    {"-.Inf", NONE, ""},
    {"+.INF", NONE, ""},
    {".nan", NONE, ""},
    {".NaN", NONE, ""},
    {"-.nan", S, ""},
    {"inf", S, ""},
    {"+Inf", S, ""},
    {"nan", S, ""},
    {"a", S, ""},
};

TEST_EACH(resolves, COUNT_OF(cases))
{
    struct yaml_scalar s = yaml_scalar_resolve(str_of(cases[_i].text));
    ck_assert_msg(s.type == cases[_i].type, "\"%s\" is of type %d", cases[_i].text, (int)s.type);
    if (s.type == B)
        ck_assert_str_eq(s.truth ? "true" : "false", cases[_i].json);
    else
        ck_assert_str_is(((struct str){s.number, s.n}), cases[_i].json);
}

TEST(long_digits_are_a_string)
{
    char digits[101];
    memset(digits, '7', sizeof(digits));
    struct yaml_scalar s = yaml_scalar_resolve((struct str){digits, 100});
    ck_assert_int_eq(s.type, N);
    ck_assert_uint_eq(s.n, 100);
    ck_assert_int_eq(yaml_scalar_resolve((struct str){digits, 101}).type, S);
    digits[0] = '-';
    digits[1] = '.';
    s = yaml_scalar_resolve((struct str){digits, 100});
    ck_assert_int_eq(s.type, N);
    ck_assert_uint_eq(s.n, 101);
}

#define TAG(name) "tag:yaml.org,2002:" name

static const struct {
    const char *text;
    bool plain;
    const char *tag;
    enum errc code;
    enum jtype type;
} tagged[] = {
    {"8", true, NULL, OK, N},
    {"8", false, NULL, OK, S},
    {"8", true, "!", OK, S},
    {"8", true, TAG("str"), OK, S},
    {"8", false, TAG("int"), OK, N},
    {"1e3", true, TAG("int"), ERR_SYNTAX, N},
    {"8", true, TAG("float"), OK, N},
    {"x", true, TAG("float"), ERR_SYNTAX, S},
    {"x", true, TAG("bool"), ERR_SYNTAX, S},
    {"x", true, TAG("null"), ERR_SYNTAX, S},
    {"true", false, TAG("bool"), OK, B},
    {"", false, TAG("null"), OK, JTYPE_NULL},
    {"a", true, TAG("map"), ERR_SYNTAX, S},
    {"a", true, "!local", ERR_SYNTAX, S},
    {"a", true, "tag:example.org,2002:str", ERR_SYNTAX, S},
};

TEST_EACH(obeys_tags, COUNT_OF(tagged))
{
    struct yaml_scalar s;
    ck_assert_int_eq(yaml_scalar_read(str_of(tagged[_i].text), tagged[_i].plain,
                                      str_of(tagged[_i].tag), &s, NULL),
                     tagged[_i].code);
    ck_assert_int_eq(s.type, tagged[_i].type);
}
