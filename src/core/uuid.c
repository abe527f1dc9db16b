/* A UUID of 36 characters has 32 digits, so 16 bytes. */
#include "core/uuid.h"

#define PREFIX_N ((size_t)4)

static const struct str prefixes[] = {[UUID_GPU] = STR("GPU-"), [UUID_MIG] = STR("MIG-")};

/* 8-4-4-4-12 */
static bool uuid_is_dash(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

/* 16: no digit. */
static unsigned uuid_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

static bool uuid_has_digits(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (uuid_is_dash(i) ? text.p[i] != '-' : uuid_digit(text.p[i]) > 15)
            return false;
    }
    return true;
}

enum uuid_kind uuid_kind_of(struct str text)
{
    for (size_t k = UUID_GPU; k < COUNT_OF(prefixes); k++) {
        if (text.n == UUID_TEXT_N && str_starts(text, prefixes[k]) &&
            uuid_has_digits(str_skip(text, PREFIX_N)))
            return (enum uuid_kind)k;
    }
    return text.n == 0 ? UUID_NONE : UUID_TEXT;
}

/* Where the two digits of each byte are in the text. */
static const unsigned char places[UUID_BYTES] = {4,  6,  8,  10, 13, 15, 18, 20,
                                                 23, 25, 28, 30, 32, 34, 36, 38};

void uuid_pack(struct str text, unsigned char to[static UUID_BYTES])
{
    assert(text.n == UUID_TEXT_N);
    for (size_t i = 0; i < UUID_BYTES; i++)
        to[i] =
            (unsigned char)(uuid_digit(text.p[places[i]]) << 4 | uuid_digit(text.p[places[i] + 1]));
}

struct str uuid_unpack(enum uuid_kind kind, const unsigned char from[static UUID_BYTES],
                       struct uuid_room *room)
{
    static const char digits[] = "0123456789abcdef";
    assert(kind == UUID_GPU || kind == UUID_MIG);
    memset(room->text, '-', sizeof(room->text));
    memcpy(room->text, prefixes[kind].p, PREFIX_N);
    for (size_t i = 0; i < UUID_BYTES; i++) {
        room->text[places[i]] = digits[from[i] >> 4];
        room->text[places[i] + 1] = digits[from[i] & 15];
    }
    return (struct str){room->text, UUID_TEXT_N};
}
