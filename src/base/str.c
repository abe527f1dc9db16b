/* String functions without locale: only names of protocols are compared, and they are ASCII. */
#include "base/str.h"

#include <endian.h>

static unsigned char str_lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

/* Names often share a prefix: compares eight bytes at a time, as big-endian numbers. */
static int str_cmp_word(const char *a, const char *b)
{
    uint64_t x = 0;
    uint64_t y = 0;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x == y ? 0 : (be64toh(x) < be64toh(y) ? -1 : 1);
}

int str_cmp(struct str a, struct str b)
{
    size_t n = MIN_OF(a.n, b.n);
    int order = 0;
    for (size_t i = 0; i + 8 < n && order == 0; i += 8)
        order = str_cmp_word(a.p + i, b.p + i);
    /* The last word may repeat bytes, which are equal. */
    if (order == 0 && n >= 8)
        order = str_cmp_word(a.p + n - 8, b.p + n - 8);
    else if (order == 0 && n > 0)
        order = memcmp(a.p, b.p, n);
    if (order != 0)
        return order;
    return a.n == b.n ? 0 : (a.n < b.n ? -1 : 1);
}

size_t str_common_nocase(struct str a, struct str b)
{
    size_t i = 0;
    while (i < a.n && i < b.n && str_lower(a.p[i]) == str_lower(b.p[i]))
        i++;
    return i;
}

int str_cmp_nocase(struct str a, struct str b)
{
    size_t i = str_common_nocase(a, b);
    if (i < a.n && i < b.n)
        return str_lower(a.p[i]) < str_lower(b.p[i]) ? -1 : 1;
    return a.n == b.n ? 0 : (a.n < b.n ? -1 : 1);
}

bool str_eq_nocase(struct str a, struct str b)
{
    return a.n == b.n && str_common_nocase(a, b) == a.n;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq((struct str){s.p, prefix.n}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

struct str str_skip(struct str s, size_t n)
{
    n = MIN_OF(n, s.n);
    return s.p == NULL ? s : (struct str){s.p + n, s.n - n};
}

struct str str_head(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return (struct str){s.p, max};
}

static bool str_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

struct str str_trim(struct str s)
{
    while (s.n > 0 && str_is_space(s.p[0]))
        s = str_skip(s, 1);
    while (s.n > 0 && str_is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_cut(struct str s, char sep, struct str *ret_head, struct str *ret_tail)
{
    const char *at = s.n == 0 ? NULL : memchr(s.p, sep, s.n);
    if (at == NULL) {
        *ret_head = s;
        *ret_tail = STR_NULL;
        return false;
    }
    size_t n = (size_t)(at - s.p);
    *ret_head = (struct str){s.p, n};
    *ret_tail = str_skip(s, n + 1);
    return true;
}

size_t str_utf8(struct str s, uint32_t *ret_rune)
{
    static const struct {
        unsigned char mask, lead; /* mask and value of the first byte */
        uint32_t least;           /* smallest rune that needs this form */
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    if (s.n == 0)
        return 0;
    unsigned first = (unsigned char)s.p[0];
    size_t n = 0;
    while (n < COUNT_OF(forms) && (first & forms[n].mask) != forms[n].lead)
        n++;
    if (n == COUNT_OF(forms) || n >= s.n)
        return 0;
    uint32_t rune = first & ~(unsigned)forms[n].mask;
    for (size_t i = 1; i <= n; i++) {
        unsigned next = (unsigned char)s.p[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        rune = rune << 6 | (next & 0x3f);
    }
    if (rune < forms[n].least || (rune >= 0xd800 && rune < 0xe000) || rune > 0x10ffff)
        return 0;
    *ret_rune = rune;
    return n + 1;
}

bool str_is_unprintable(uint32_t rune)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e},   {0x200b, 0x200b},   {0x200e, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb}, {0xfffe, 0xffff},
        {0x1d173, 0x1d17a}, {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < COUNT_OF(ranges) && ranges[i].from <= rune; i++) {
        if (rune <= ranges[i].to)
            return true;
    }
    return false;
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value) || value > max)
            return false;
    }
    *ret = value;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    uint64_t magnitude = 0;
    uint64_t max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (!str_to_u64(negative ? str_skip(s, 1) : s, max, &magnitude))
        return false;
    if (!negative)
        *ret = (int64_t)magnitude;
    else
        *ret = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    return true;
}

struct str str_store(char **at, struct str s)
{
    if (s.p == NULL)
        return s;
    struct str copy = {*at, s.n};
    if (s.n > 0)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}
