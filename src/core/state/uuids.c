/* A block is its form, then either the bytes of each UUID, or where each record ends, in four bytes
 * each, and then the records. A record is the kind, and the text or its bytes. */
#include "core/state/uuids.h"

/* The form of a block whose UUIDs are not all of one kind; else it is the kind. */
#define UUIDS_MIXED ((unsigned char)UUID_NONE)

/* The kind of all texts; UUIDS_MIXED: they have different ones, or need more than UUID_BYTES. */
static unsigned char uuids_form_of(const struct str *texts, uint32_t n)
{
    enum uuid_kind first = n == 0 ? UUID_NONE : uuid_kind_of(texts[0]);
    for (uint32_t i = 1; i < n && uuid_is_short(first); i++) {
        if (uuid_kind_of(texts[i]) != first)
            return UUIDS_MIXED;
    }
    return uuid_is_short(first) ? (unsigned char)first : UUIDS_MIXED;
}

static size_t uuids_record_size(struct str text)
{
    return 1 + (uuid_is_short(uuid_kind_of(text)) ? UUID_BYTES : text.n);
}

size_t uuids_size(const struct str *texts, uint32_t n)
{
    size_t records = 0;
    bool some = false;
    for (uint32_t i = 0; i < n; i++) {
        some = some || texts[i].n > 0;
        records += uuids_record_size(texts[i]);
    }
    if (!some)
        return 0;
    return 1 + (uuids_form_of(texts, n) == UUIDS_MIXED ? n * sizeof(uint32_t) + records
                                                       : n * UUID_BYTES);
}

static unsigned char *uuids_put_record(unsigned char *at, struct str text)
{
    enum uuid_kind kind = uuid_kind_of(text);
    *at = (unsigned char)kind;
    if (uuid_is_short(kind))
        uuid_pack(text, at + 1);
    else if (kind == UUID_TEXT)
        memcpy(at + 1, text.p, text.n);
    return at + uuids_record_size(text);
}

void uuids_pack(const struct str *texts, uint32_t n, unsigned char *to)
{
    unsigned char *ends = to + 1;
    unsigned char *at = ends + n * sizeof(uint32_t);
    *to = uuids_form_of(texts, n);
    for (uint32_t i = 0; i < n; i++) {
        if (*to != UUIDS_MIXED) {
            uuid_pack(texts[i], ends + i * UUID_BYTES);
            continue;
        }
        at = uuids_put_record(at, texts[i]);
        uint32_t end = (uint32_t)(at - to);
        memcpy(ends + i * sizeof(end), &end, sizeof(end));
    }
}

static uint32_t uuids_end(const unsigned char *block, uint32_t i)
{
    uint32_t end;
    memcpy(&end, block + 1 + i * sizeof(end), sizeof(end));
    return end;
}

struct str uuids_get(const unsigned char *block, uint32_t n, uint32_t i, struct uuid_room *room)
{
    assert(i < n);
    if (*block != UUIDS_MIXED)
        return uuid_unpack((enum uuid_kind) * block, block + 1 + i * UUID_BYTES, room);
    uint32_t begin = i == 0 ? (uint32_t)(1 + n * sizeof(uint32_t)) : uuids_end(block, i - 1);
    const unsigned char *record = block + begin;
    enum uuid_kind kind = (enum uuid_kind) * record;
    if (uuid_is_short(kind))
        return uuid_unpack(kind, record + 1, room);
    size_t text_n = uuids_end(block, i) - begin - 1;
    return text_n == 0 ? STR_NULL : (struct str){(const char *)record + 1, text_n};
}

/* A record of a mixed block is compared as it is: an unpacked text takes longer. */
static uint32_t uuids_find_record(const unsigned char *block, uint32_t n, struct str text)
{
    unsigned char packed[UUID_BYTES];
    enum uuid_kind kind = uuid_kind_of(text);
    struct str bytes = text;
    uint32_t begin = (uint32_t)(1 + n * sizeof(uint32_t));
    uint32_t i = 0;
    if (uuid_is_short(kind)) {
        uuid_pack(text, packed);
        bytes = (struct str){(const char *)packed, UUID_BYTES};
    }
    for (; i < n; i++) {
        uint32_t end = uuids_end(block, i);
        if (end - begin == 1 + bytes.n && block[begin] == (unsigned char)kind &&
            memcmp(block + begin + 1, bytes.p, bytes.n) == 0)
            break;
        begin = end;
    }
    return i;
}

uint32_t uuids_find(const unsigned char *block, uint32_t n, struct str text)
{
    unsigned char packed[UUID_BYTES];
    uint32_t i = 0;
    if (text.n > 0 && *block == UUIDS_MIXED)
        return uuids_find_record(block, n, text);
    if (text.n == 0 || uuid_kind_of(text) != (enum uuid_kind) * block)
        return n;
    uuid_pack(text, packed);
    while (i < n && memcmp(block + 1 + i * UUID_BYTES, packed, UUID_BYTES) != 0)
        i++;
    return i;
}
