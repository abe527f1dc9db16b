/* Parses JSON escapes and numbers, for jread and jskim. */
#include "json/jtoken.h"

/* The value of 4 hexadecimal digits, or -1. */
static int32_t jtoken_hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int32_t digit = 0;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        else
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

int32_t jtoken_escape(const char *p, const char *end, size_t *ret_n)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (end - p < 2)
        return -1;
    *ret_n = 2;
    if (p[1] != 'u') {
        const char *found = memchr(letters, p[1], sizeof(letters) - 1);
        return found == NULL ? -1 : meanings[found - letters];
    }
    *ret_n = 6;
    int32_t first = jtoken_hex4(p + 2, end);
    if (first < 0 || (first >= 0xdc00 && first <= 0xdfff))
        return -1;
    if (first < 0xd800 || first > 0xdfff)
        return first;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return -1;
    int32_t second = jtoken_hex4(p + 8, end);
    if (second < 0xdc00 || second > 0xdfff)
        return -1;
    *ret_n = 12;
    return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

static char *jtoken_utf8_put(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | (c >> 6));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | (c >> 12));
        *to++ = (char)(0x80 | ((c >> 6) & 0x3f));
    } else {
        *to++ = (char)(0xf0 | (c >> 18));
        *to++ = (char)(0x80 | ((c >> 12) & 0x3f));
        *to++ = (char)(0x80 | ((c >> 6) & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

size_t jtoken_unescape(struct str raw, char *to)
{
    const char *begin = to;
    const char *end = raw.p + raw.n;
    for (const char *p = raw.p; p < end;) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((escape == NULL ? end : escape) - p);
        memcpy(to, p, plain);
        to += plain;
        p += plain;
        if (escape != NULL) {
            size_t n = 0;
            int32_t c = jtoken_escape(escape, end, &n);
            assert(c >= 0);
            to = jtoken_utf8_put(to, (uint32_t)c);
            p += n;
        }
    }
    return (size_t)(to - begin);
}

size_t jtoken_strings(struct str raw)
{
    const char *end = raw.p + raw.n;
    size_t sum = 0;
    bool inside = false;
    for (const char *p = raw.p; p < end;) {
        char utf8[4];
        size_t n = 1;
        int32_t c = -1;
        if (*p == '\\') {
            c = jtoken_escape(p, end, &n);
            n = c < 0 ? 2 : n;
        }
        if (*p == '"')
            inside = !inside;
        else if (inside)
            sum += c < 0 ? n : (size_t)(jtoken_utf8_put(utf8, (uint32_t)c) - utf8);
        p += n;
    }
    return sum;
}

static const char *jtoken_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

size_t jtoken_number(const char *p, const char *end)
{
    const char *integer = p + (p < end && *p == '-' ? 1 : 0);
    const char *at = jtoken_digits(integer, end);
    if (at == integer || (*integer == '0' && at > integer + 1))
        return 0;
    if (at < end && *at == '.') {
        const char *fraction = at + 1;
        at = jtoken_digits(fraction, end);
        if (at == fraction)
            return 0;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        const char *exponent = at + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-'))
            exponent++;
        at = jtoken_digits(exponent, end);
        if (at == exponent)
            return 0;
    }
    return (size_t)(at - p);
}
