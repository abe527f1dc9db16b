/*
 * 64 bytes of JSON at once, as bit masks: the positions of the quotes, backslashes and brackets,
 * and which positions are inside a string. Only for targets with SSE2. On other targets
 * JBLOCK_BYTES is not defined, and readers go byte by byte.
 */
#pragma once

#include "json/jscan.h"

#if defined(__SSE2__) && !defined(JSCAN_PORTABLE)

#    define JBLOCK_BYTES 64

struct jblock {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t opening;
    uint64_t closing;
};

static inline struct jblock jblock_read(const char *p)
{
    struct jblock b = {.quotes = 0};
    for (unsigned i = 0; i < JBLOCK_BYTES; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        /* This turns '[' and ']' into '{' and '}', and no other byte into those. */
        __m128i braces = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        b.quotes |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')))
                    << i;
        b.backslashes |=
            (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))) << i;
        b.opening |=
            (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(braces, _mm_set1_epi8('{'))) << i;
        b.closing |=
            (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(braces, _mm_set1_epi8('}'))) << i;
    }
    return b;
}

/*
 * The bytes after a backslash that escapes. *escaped: whether the first byte is escaped; set for
 * the next block.
 */
static inline uint64_t jblock_escaped(uint64_t backslashes, bool *escaped)
{
    uint64_t found = *escaped ? 1 : 0;
    *escaped = false;
    backslashes &= ~found;
    while (backslashes != 0) {
        uint64_t first = backslashes & -backslashes;
        found |= first << 1;
        *escaped = first << 1 == 0;
        backslashes &= ~(first | first << 1);
    }
    return found;
}

/* The bytes from each opening quote up to its closing quote. */
static inline uint64_t jblock_inside(uint64_t quotes, bool in_string)
{
    quotes ^= quotes << 1;
    quotes ^= quotes << 2;
    quotes ^= quotes << 4;
    quotes ^= quotes << 8;
    quotes ^= quotes << 16;
    quotes ^= quotes << 32;
    return in_string ? ~quotes : quotes;
}

/* Some targets have no instruction to count bits, and a library call would be slower. */
static inline unsigned jblock_count(uint64_t bits)
{
    bits -= (bits >> 1) & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + ((bits >> 2) & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)((bits * UINT64_C(0x0101010101010101)) >> 56);
}

#endif
