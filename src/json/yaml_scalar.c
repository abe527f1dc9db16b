/*
 * Resolves plain scalars. A number is rewritten as text and never becomes a double, so no digit is
 * lost. The only use of a double is a range check, because Go's loader reads 1e999 as a string.
 */
#include "json/yaml_scalar.h"

#include <math.h>
#include <stdlib.h>

/* A longer text is a string: no real number is that long. */
#define NUMBER_MAX ((size_t)100)

#define CORE_TAG "tag:yaml.org,2002:"

static bool yaml_scalar_is_one_of(struct str s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(s, str_of(words[i])))
            return true;
    }
    return false;
}

static bool yaml_scalar_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static unsigned yaml_scalar_digit_value(char c)
{
    if (yaml_scalar_is_digit(c))
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    if (c >= 'A' && c <= 'F')
        return (unsigned)(c - 'A') + 10;
    return 16;
}

static void yaml_scalar_put(struct yaml_scalar *s, struct str bytes)
{
    assert(bytes.n < sizeof(s->number) - s->n);
    if (bytes.n > 0)
        memcpy(s->number + s->n, bytes.p, bytes.n);
    s->n += bytes.n;
}

static struct str yaml_scalar_digits_at(struct str s)
{
    size_t n = 0;
    while (n < s.n && yaml_scalar_is_digit(s.p[n]))
        n++;
    return (struct str){s.p, n};
}

/* The digits after 0x, 0o, 0b or a plain 0, and their radix; 10 if none of these applies. */
static unsigned yaml_scalar_radix_of(struct str s, struct str *ret_digits)
{
    unsigned radix = 10;
    if (s.n < 2 || s.p[0] != '0')
        return radix;
    size_t prefix = 2;
    switch (s.p[1]) {
    case 'x':
    case 'X':
        radix = 16;
        break;
    case 'o':
    case 'O':
        radix = 8;
        break;
    case 'b':
    case 'B':
        radix = 2;
        break;
    default:
        radix = 8;
        prefix = 1;
    }
    *ret_digits = str_skip(s, prefix);
    for (size_t i = 0; i < ret_digits->n; i++) {
        if (yaml_scalar_digit_value(ret_digits->p[i]) >= radix)
            return 10;
    }
    return ret_digits->n == 0 ? 10 : radix;
}

static void yaml_scalar_put_radix(struct yaml_scalar *ret, bool negative, struct str digits,
                                  unsigned radix)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (__builtin_mul_overflow(value, (uint64_t)radix, &value) ||
            __builtin_add_overflow(value, (uint64_t)yaml_scalar_digit_value(digits.p[i]), &value))
            return;
    }
    char text[20];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + (char)(value % 10));
        value /= 10;
    } while (value > 0);
    if (negative && text[at] != '0')
        yaml_scalar_put(ret, STR("-"));
    yaml_scalar_put(ret, (struct str){text + at, sizeof(text) - at});
    ret->type = JTYPE_NUMBER;
}

/*
 * s begins after the sign: digits, a fraction, an exponent. Each may be absent, but one digit is
 * needed.
 */
static void yaml_scalar_put_decimal(struct yaml_scalar *ret, bool negative, struct str s)
{
    struct str whole = yaml_scalar_digits_at(s);
    s = str_skip(s, whole.n);
    struct str fraction = STR_NULL;
    if (s.n > 0 && s.p[0] == '.') {
        fraction = yaml_scalar_digits_at(str_skip(s, 1));
        s = str_skip(s, 1 + fraction.n);
    }
    if (whole.n + fraction.n == 0)
        return;
    if (s.n > 0) {
        size_t sign = s.n > 1 && (s.p[1] == '+' || s.p[1] == '-') ? 2 : 1;
        struct str digits = yaml_scalar_digits_at(str_skip(s, sign));
        if ((s.p[0] != 'e' && s.p[0] != 'E') || digits.n == 0 || sign + digits.n != s.n)
            return;
    }
    while (whole.n > 1 && whole.p[0] == '0')
        whole = str_skip(whole, 1);
    bool zero = str_eq(whole, STR("0")) && fraction.n + s.n == 0;
    if (negative && !zero)
        yaml_scalar_put(ret, STR("-"));
    yaml_scalar_put(ret, whole.n == 0 ? STR("0") : whole);
    if (fraction.n > 0) {
        yaml_scalar_put(ret, STR("."));
        yaml_scalar_put(ret, fraction);
    }
    yaml_scalar_put(ret, s);
    ret->number[ret->n] = '\0';
    if (isinf(strtod(ret->number, NULL)))
        ret->n = 0;
    else
        ret->type = JTYPE_NUMBER;
}

static void yaml_scalar_resolve_number(struct yaml_scalar *ret, struct str text)
{
    char bytes[NUMBER_MAX] = "";
    struct str plain = {bytes, 0};
    for (size_t i = 0; i < text.n; i++) {
        /* 1_000 is allowed as in YAML 1.1; after a leading point only between digits. */
        bool between = i > 0 && i + 1 < text.n && yaml_scalar_is_digit(text.p[i - 1]) &&
                       yaml_scalar_is_digit(text.p[i + 1]);
        if (text.p[i] != '_' || (text.p[0] == '.' && !between))
            bytes[plain.n++] = text.p[i];
    }
    bool negative = plain.p[0] == '-';
    if (negative || plain.p[0] == '+')
        plain = str_skip(plain, 1);
    struct str digits = STR_NULL;
    unsigned radix = yaml_scalar_radix_of(plain, &digits);
    if (radix == 10)
        yaml_scalar_put_decimal(ret, negative, plain);
    else
        yaml_scalar_put_radix(ret, negative, digits, radix);
}

struct yaml_scalar yaml_scalar_resolve(struct str text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const truths[] = {"true", "True", "TRUE"};
    static const char *const lies[] = {"false", "False", "FALSE"};
    static const char *const wild[] = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf", "+.INF",
                                       "-.inf", "-.Inf", "-.INF", ".nan",  ".NaN",  ".NAN"};
    struct yaml_scalar ret = {.type = JTYPE_STRING};
    if (yaml_scalar_is_one_of(text, nulls, COUNT_OF(nulls)))
        ret.type = JTYPE_NULL;
    else if (yaml_scalar_is_one_of(text, wild, COUNT_OF(wild)))
        ret.type = JTYPE_NONE;
    else if (yaml_scalar_is_one_of(text, truths, COUNT_OF(truths)) ||
             yaml_scalar_is_one_of(text, lies, COUNT_OF(lies))) {
        ret.type = JTYPE_BOOL;
        ret.truth = text.p[0] == 't' || text.p[0] == 'T';
    } else if (text.n <= NUMBER_MAX && (yaml_scalar_is_digit(text.p[0]) || text.p[0] == '-' ||
                                        text.p[0] == '+' || text.p[0] == '.'))
        yaml_scalar_resolve_number(&ret, text);
    return ret;
}

static bool yaml_scalar_is_whole(const struct yaml_scalar *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->number[i] == '.' || s->number[i] == 'e' || s->number[i] == 'E')
            return false;
    }
    return true;
}

bool yaml_tag_allows(struct str tag, struct str name)
{
    if (tag.p == NULL || str_eq(tag, STR("!")))
        return true;
    return str_starts(tag, STR(CORE_TAG)) && str_eq(str_skip(tag, strlen(CORE_TAG)), name);
}

enum errc yaml_scalar_read(struct str text, bool plain, struct str tag, struct yaml_scalar *ret,
                           struct err *reterr)
{
    *ret = (struct yaml_scalar){.type = JTYPE_STRING};
    if (tag.p == NULL ? !plain : yaml_tag_allows(tag, STR("str")))
        return OK;
    *ret = yaml_scalar_resolve(text);
    if (ret->type == JTYPE_NONE)
        return err_set(reterr, ERR_RANGE, "a number that JSON does not have");
    if (tag.p == NULL)
        return OK;
    bool fits = false;
    if (yaml_tag_allows(tag, STR("int")))
        fits = ret->type == JTYPE_NUMBER && yaml_scalar_is_whole(ret);
    else if (yaml_tag_allows(tag, STR("float")))
        fits = ret->type == JTYPE_NUMBER;
    else if (yaml_tag_allows(tag, STR("bool")))
        fits = ret->type == JTYPE_BOOL;
    else if (yaml_tag_allows(tag, STR("null")))
        fits = ret->type == JTYPE_NULL;
    else
        return err_set(reterr, ERR_SYNTAX,
                       "a tag that is not supported here (an unquoted \"!\" begins one)");
    if (!fits)
        return err_set(reterr, ERR_SYNTAX, "a value that is not what its tag says");
    return OK;
}
