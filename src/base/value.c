/* Reads and prints the values of settings: numbers with units, words, names, addresses. */
#include "base/value.h"

#include <arpa/inet.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first, for printing. */
static const struct unit duration_units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit size_units[] = {
    {"GiB", (uint64_t)1 << 30}, {"MiB", (uint64_t)1 << 20}, {"KiB", (uint64_t)1 << 10}};

/* Reads the number at the start of *text and moves *text behind it. */
static bool value_take_number(struct str *text, uint64_t *ret)
{
    size_t n = 0;
    while (n < text->n && text->p[n] >= '0' && text->p[n] <= '9')
        n++;
    struct str digits = {text->p, n};
    *text = str_skip(*text, n);
    return str_to_u64(digits, UINT64_MAX, ret);
}

/* Reads the unit at the start of *text and moves *text behind it. */
static bool value_take_unit(struct str *text, const struct unit *units, size_t n_units,
                            uint64_t *ret)
{
    size_t n = 0;
    while (n < text->n && (text->p[n] < '0' || text->p[n] > '9'))
        n++;
    struct str name = {text->p, n};
    *text = str_skip(*text, n);
    for (size_t i = 0; i < n_units; i++) {
        if (str_eq(name, str_of(units[i].name))) {
            *ret = units[i].factor;
            return true;
        }
    }
    return false;
}

bool value_read_duration(struct str text, uint64_t *ret_ms)
{
    uint64_t total = 0;
    if (str_eq(text, STR("0"))) {
        *ret_ms = 0;
        return true;
    }
    do {
        uint64_t count = 0;
        uint64_t factor = 0;
        if (!value_take_number(&text, &count) ||
            !value_take_unit(&text, duration_units, COUNT_OF(duration_units), &factor) ||
            __builtin_mul_overflow(count, factor, &count) ||
            __builtin_add_overflow(total, count, &total))
            return false;
    } while (text.n > 0);
    *ret_ms = total;
    return true;
}

bool value_read_size(struct str text, uint64_t *ret_bytes)
{
    uint64_t count = 0;
    uint64_t factor = 1;
    if (!value_take_number(&text, &count))
        return false;
    if (text.n > 0 && !value_take_unit(&text, size_units, COUNT_OF(size_units), &factor))
        return false;
    return text.n == 0 && !__builtin_mul_overflow(count, factor, ret_bytes);
}

void value_put_duration(struct buf *out, uint64_t ms)
{
    if (ms == 0)
        buf_put(out, STR("0s"));
    for (size_t i = 0; i < COUNT_OF(duration_units); i++) {
        uint64_t factor = duration_units[i].factor;
        assert(factor > 0);
        if (ms < factor)
            continue;
        buf_put_u64(out, ms / factor);
        buf_put(out, str_of(duration_units[i].name));
        ms %= factor;
    }
}

void value_put_size(struct buf *out, uint64_t bytes)
{
    for (size_t i = 0; i < COUNT_OF(size_units); i++) {
        uint64_t factor = size_units[i].factor;
        assert(factor > 0);
        if (bytes == 0 || bytes % factor != 0)
            continue;
        buf_put_u64(out, bytes / factor);
        buf_put(out, str_of(size_units[i].name));
        return;
    }
    buf_put_u64(out, bytes);
}

bool value_read_word(struct str text, const char *words, unsigned *ret)
{
    unsigned i = 0;
    for (struct str word, rest = str_of(words); rest.p != NULL; i++) {
        (void)str_cut(rest, '|', &word, &rest);
        if (str_eq(text, word)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

struct str value_word(const char *words, unsigned i)
{
    struct str word;
    struct str rest = str_of(words);
    do {
        assert(rest.p != NULL);
        (void)str_cut(rest, '|', &word, &rest);
    } while (i-- > 0);
    return word;
}

void value_put_words(struct buf *out, const char *words)
{
    for (struct str word, rest = str_of(words); rest.p != NULL;) {
        bool first = rest.p == words;
        (void)str_cut(rest, '|', &word, &rest);
        buf_put(out, first ? STR("") : rest.p == NULL ? STR(" or ") : STR(", "));
        buf_put(out, word);
    }
}

bool value_is_dns_name(struct str text)
{
    bool begins = true; /* at the start of a label; it starts and ends with a letter or digit */
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool solid = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool ends = i + 1 == text.n || text.p[i + 1] == '.';
        if (c == '.' ? begins : !solid && (c != '-' || begins || ends))
            return false;
        begins = c == '.';
    }
    return !begins;
}

int value_read_address(struct str text, unsigned char ret[static 16])
{
    char z[INET6_ADDRSTRLEN];
    if (text.n >= sizeof(z) || memchr(text.p, '\0', text.n) != NULL)
        return 0;
    memcpy(z, text.p, text.n);
    z[text.n] = '\0';
    if (inet_pton(AF_INET, z, ret) == 1)
        return AF_INET;
    return inet_pton(AF_INET6, z, ret) == 1 ? AF_INET6 : 0;
}

bool value_is_loopback(struct str text)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const unsigned char loopback6[16] = {[15] = 1};
    unsigned char a[16] = {0};
    switch (value_read_address(text, a)) {
    case AF_INET:
        return a[0] == 127;
    case AF_INET6:
        return memcmp(a, loopback6, sizeof(loopback6)) == 0 ||
               (memcmp(a, mapped, sizeof(mapped)) == 0 && a[sizeof(mapped)] == 127);
    default:
        return false;
    }
}
