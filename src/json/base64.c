/* Decodes base64; refuses unknown characters and wrong padding. */
#include "json/base64.h"

static int base64_sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

static bool base64_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

enum errc base64_decode(struct str text, struct arena *arena, struct str *ret)
{
    char *out = arena_alloc(arena, text.n / 4 * 3 + 3);
    size_t n = 0;
    size_t digits = 0;
    size_t padding = 0;
    uint32_t bits = 0;
    if (out == NULL)
        return arena_fault(arena);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (base64_is_space(c))
            continue;
        int value = base64_sextet(c);
        padding += c == '=' ? 1 : 0;
        if (c != '=' && (value < 0 || padding > 0))
            return ERR_SYNTAX;
        bits = bits << 6 | (c == '=' ? 0 : (uint32_t)value);
        if (++digits % 4 != 0)
            continue;
        if (padding > 2)
            return ERR_SYNTAX;
        out[n++] = (char)(bits >> 16 & 0xff);
        if (padding < 2)
            out[n++] = (char)(bits >> 8 & 0xff);
        if (padding < 1)
            out[n++] = (char)(bits & 0xff);
    }
    /* Padding must end the last group of four, and be at most two characters. */
    if (digits % 4 != 0 || padding > 2)
        return ERR_SYNTAX;
    *ret = (struct str){out, n};
    return OK;
}
