/* Parses a quantity into decimal digits with a point. A decimal suffix moves the point; a binary
 * suffix doubles the number. This is exact without wide arithmetic. Nearly every quantity in a
 * cluster is a short run of digits, some with m, Ki, Mi or Gi behind it: quantity_short_parse
 * handles those. */
#include "core/quantity.h"

#define TEXT_MAX     ((size_t)128)
#define EXPONENT_MAX 30
#define DIGITS_MAX   (TEXT_MAX + 24) /* 2^60 adds 19 digits */

struct decimal {
    unsigned char digits[DIGITS_MAX]; /* most significant first */
    int n;
    int point; /* digits before the point; may be below 0 or above n */
};

struct suffix {
    char text[3];
    int exponent10;
    int exponent2;
};

static const struct suffix suffixes[] = {
    {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
    {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

/* The exponent behind e or E: [+-]digits. Go allows leading zeros. */
static enum errc quantity_exponent_parse(struct str text, int *ret)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    if (text.n > 0 && (text.p[0] == '-' || text.p[0] == '+'))
        text = str_skip(text, 1);
    if (text.n == 0)
        return ERR_SYNTAX;
    int value = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return ERR_SYNTAX;
        value = MIN_OF(value * 10 + (text.p[i] - '0'), EXPONENT_MAX + 1);
    }
    if (value > EXPONENT_MAX)
        return ERR_RANGE;
    *ret = negative ? -value : value;
    return OK;
}

static enum errc quantity_suffix_parse(struct str text, int *ret10, int *ret2)
{
    *ret10 = 0;
    *ret2 = 0;
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        if (str_eq(text, str_of(suffixes[i].text))) {
            *ret10 = suffixes[i].exponent10;
            *ret2 = suffixes[i].exponent2;
            return OK;
        }
    }
    if (text.n < 2 || (text.p[0] != 'e' && text.p[0] != 'E'))
        return ERR_SYNTAX;
    return quantity_exponent_parse(str_skip(text, 1), ret10);
}

/* Takes digits*[.digits*] off the front of *text. */
static void quantity_digits_parse(struct str *text, struct decimal *d)
{
    bool fraction = false;
    size_t i = 0;
    for (; i < text->n; i++) {
        char c = text->p[i];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9')
            break;
        assert(d->n < (int)TEXT_MAX);
        d->digits[d->n++] = (unsigned char)(c - '0');
        d->point += fraction ? 0 : 1;
    }
    *text = str_skip(*text, i);
}

static void quantity_times_two(struct decimal *d)
{
    unsigned carry = 0;
    for (int i = d->n - 1; i >= 0; i--) {
        unsigned v = d->digits[i] * 2U + carry;
        d->digits[i] = (unsigned char)(v % 10);
        carry = v / 10;
    }
    if (carry == 0)
        return;
    assert(d->n < (int)DIGITS_MAX);
    memmove(d->digits + 1, d->digits, (size_t)d->n);
    d->digits[0] = (unsigned char)carry;
    d->n++;
    d->point++;
}

/* The magnitude, rounded up. */
static uint64_t quantity_decimal_value(const struct decimal *d, bool *ret_whole,
                                       bool *ret_saturated)
{
    uint64_t value = 0;
    *ret_saturated = false;
    for (int i = 0; i < d->point && !*ret_saturated; i++) {
        uint64_t digit = i < d->n ? d->digits[i] : 0;
        *ret_saturated = __builtin_mul_overflow(value, (uint64_t)10, &value) ||
                         __builtin_add_overflow(value, digit, &value);
    }
    *ret_whole = true;
    for (int i = MAX_OF(d->point, 0); i < d->n; i++)
        *ret_whole = *ret_whole && d->digits[i] == 0;
    if (!*ret_saturated && !*ret_whole)
        *ret_saturated = __builtin_add_overflow(value, (uint64_t)1, &value);
    return value;
}

static struct quantity quantity_make(const struct decimal *d, bool negative)
{
    struct quantity q = {0};
    uint64_t magnitude = quantity_decimal_value(d, &q.whole, &q.saturated);
    uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    q.saturated = q.saturated || magnitude > max;
    if (q.saturated || magnitude == (uint64_t)INT64_MAX + 1)
        q.value = negative ? INT64_MIN : INT64_MAX;
    else
        q.value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return q;
}

/* Up to 9 digits and a common suffix, in units of 10^-exponent (0 or 3). False: use the other
 * way. */
static bool quantity_short_parse(struct str text, int exponent, int64_t *ret)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < text.n && i < 9 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        value = value * 10 + (text.p[i] - '0');
    struct str suffix = str_skip(text, i);
    if (i == 0 || suffix.n > 2)
        return false;
    *ret = value * (exponent == 0 ? 1 : 1000);
    if (suffix.n == 0)
        return true;
    if (suffix.n == 1) {
        *ret = value;
        return exponent == 3 && suffix.p[0] == 'm';
    }
    int shift = suffix.p[0] == 'K' ? 10 : suffix.p[0] == 'M' ? 20 : suffix.p[0] == 'G' ? 30 : 0;
    *ret = value << shift; /* below 2^60 */
    return exponent == 0 && shift > 0 && suffix.p[1] == 'i';
}

static enum errc quantity_parse_scaled(struct str text, int exponent, struct quantity *ret)
{
    if (text.n == 0)
        return ERR_SYNTAX;
    if (text.n > TEXT_MAX)
        return ERR_RANGE;
    bool negative = text.p[0] == '-';
    if (negative || text.p[0] == '+')
        text = str_skip(text, 1);
    struct decimal d = {.n = 0};
    quantity_digits_parse(&text, &d);
    int exponent10 = 0;
    int exponent2 = 0;
    enum errc code = quantity_suffix_parse(text, &exponent10, &exponent2);
    if (code != OK)
        return code;
    for (int i = 0; i < exponent2; i++)
        quantity_times_two(&d);
    d.point += exponent10 + exponent;
    *ret = quantity_make(&d, negative);
    return OK;
}

enum errc quantity_parse(struct str text, struct quantity *ret)
{
    uint64_t plain = 0;
    int64_t value = 0;
    if (text.n <= 18 && str_to_u64(text, INT64_MAX, &plain)) {
        *ret = (struct quantity){.value = (int64_t)plain, .whole = true};
        return OK;
    }
    if (quantity_short_parse(text, 0, &value)) {
        *ret = (struct quantity){.value = value, .whole = true};
        return OK;
    }
    return quantity_parse_scaled(text, 0, ret);
}

enum errc quantity_parse_milli(struct str text, struct quantity *ret)
{
    int64_t value = 0;
    if (quantity_short_parse(text, 3, &value)) {
        *ret = (struct quantity){.value = value, .whole = true};
        return OK;
    }
    return quantity_parse_scaled(text, 3, ret);
}
