/*
 * String scanning for the reader, the writer and the cutter: the length of a run of plain bytes,
 * and the check of one UTF-8 character. 16 bytes at a time if the target has SSE2. JSCAN_PORTABLE
 * selects the byte loop on every target, so that tests cover both.
 */
#pragma once

#include "base/str.h"

#if defined(__SSE2__) && !defined(JSCAN_PORTABLE)
#    include <emmintrin.h>
#endif

static inline bool jscan_is_plain(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 0x20 && u < 0x7f && u != '"' && u != '\\';
}

/*
 * The first byte from p on that is a quote, a backslash, a control character (DEL too) or not
 * ASCII; end if none.
 */
static inline const char *jscan_plain(const char *p, const char *end)
{
#if defined(__SSE2__) && !defined(JSCAN_PORTABLE)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i one = _mm_set1_epi8(1);
    const __m128i after_space = _mm_set1_epi8(' ' + 1);
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* The comparison is signed: with one more, DEL and the bytes from 0x80 on are negative. */
        __m128i odd = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
            _mm_cmplt_epi8(_mm_add_epi8(bytes, one), after_space));
        unsigned mask = (unsigned)_mm_movemask_epi8(odd);
        if (mask != 0)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    while (p < end && jscan_is_plain(*p))
        p++;
    return p;
}

/*
 * Length of the well-formed UTF-8 sequence at p (Unicode's table 3-7: no overlong forms, no
 * surrogates, nothing above U+10FFFF); 0: not well-formed. Requires p < end.
 */
static inline size_t jscan_utf8(const char *p, const char *end)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n = 0;

    if (u[0] < 0x80)
        return 1;
    if (u[0] >= 0xc2 && u[0] <= 0xdf) {
        n = 2;
    } else if (u[0] >= 0xe0 && u[0] <= 0xef) {
        n = 3;
        low = u[0] == 0xe0 ? 0xa0 : 0x80;
        high = u[0] == 0xed ? 0x9f : 0xbf;
    } else if (u[0] >= 0xf0 && u[0] <= 0xf4) {
        n = 4;
        low = u[0] == 0xf0 ? 0x90 : 0x80;
        high = u[0] == 0xf4 ? 0x8f : 0xbf;
    }
    if (n == 0 || (size_t)(end - p) < n || u[1] < low || u[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}
