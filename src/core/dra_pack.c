/* A record is the length of the name, the name, the UUID, the parent's UUID, the PCI address and
 * the capacity. A UUID begins with its kind. A number begins with how many bytes follow, and how
 * many of value 0 come before these: the least byte is the first. All lengths have one byte. */
#include "core/dra_pack.h"

static_assert(DRA_NAME_MAX <= UINT8_MAX && DRA_PACK_TEXT_MAX <= UINT8_MAX, "one byte each");

static size_t dra_pack_text_size(struct str text)
{
    switch (uuid_kind_of(text)) {
    case UUID_NONE:
        return 1;
    case UUID_TEXT:
        return 2 + str_head(text, DRA_PACK_TEXT_MAX).n;
    case UUID_GPU:
    case UUID_MIG:
        break;
    }
    return 1 + UUID_BYTES;
}

/* The low bytes that are 0, as a capacity of whole MiB has. */
static unsigned dra_pack_zeros(uint64_t v)
{
    return v == 0 ? 0 : (unsigned)__builtin_ctzll(v) / 8;
}

static size_t dra_pack_number_size(uint64_t v)
{
    size_t n = 1;
    for (v >>= 8 * dra_pack_zeros(v); v > 0; v >>= 8)
        n++;
    return n;
}

/* Reads one or more hexadecimal digits up to `end`. */
static bool dra_pack_pci_part(struct str *rest, char end, uint32_t max, uint32_t *ret)
{
    struct str digits;
    uint32_t v = 0;
    bool cut = str_cut(*rest, end, &digits, rest);
    if (digits.n == 0 || digits.n > 8 || (end != '\0' && !cut))
        return false;
    for (size_t i = 0; i < digits.n; i++) {
        char c = digits.p[i];
        char lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    *ret = v;
    return v <= max;
}

uint64_t dra_pci(struct str text)
{
    uint32_t domain = 0;
    uint32_t bus = 0;
    uint32_t device = 0;
    uint32_t function = 0;
    if (!dra_pack_pci_part(&text, ':', UINT32_MAX, &domain) ||
        !dra_pack_pci_part(&text, ':', 255, &bus) || !dra_pack_pci_part(&text, '.', 31, &device) ||
        !dra_pack_pci_part(&text, '\0', 7, &function))
        return 0;
    return (uint64_t)1 << 63 | (uint64_t)domain << 16 | (uint64_t)bus << 8 | device << 3 | function;
}

/* The highest bit, which each address has, becomes the lowest: then it is a small number. */
static uint64_t dra_pack_pci(uint64_t pci)
{
    return pci << 1 | pci >> 63;
}

size_t dra_pack_size(const struct dra_device_view *v)
{
    assert(v->name.n <= DRA_NAME_MAX);
    return 1 + v->name.n + dra_pack_text_size(v->uuid) + dra_pack_text_size(v->parent) +
           dra_pack_number_size(dra_pack_pci(v->pci)) + dra_pack_number_size((uint64_t)v->memory);
}

static unsigned char *dra_pack_bytes(unsigned char *at, struct str text)
{
    *at++ = (unsigned char)text.n;
    if (text.n > 0)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

static unsigned char *dra_pack_text(unsigned char *at, struct str text)
{
    enum uuid_kind kind = uuid_kind_of(text);
    *at++ = (unsigned char)kind;
    if (kind == UUID_NONE)
        return at;
    if (kind == UUID_TEXT)
        return dra_pack_bytes(at, str_head(text, DRA_PACK_TEXT_MAX));
    uuid_pack(text, at);
    return at + UUID_BYTES;
}

static unsigned char *dra_pack_number(unsigned char *at, uint64_t v)
{
    unsigned char *head = at++;
    unsigned zeros = dra_pack_zeros(v);
    unsigned n = 0;
    for (v >>= 8 * zeros; v > 0; v >>= 8, n++)
        *at++ = (unsigned char)(v & 255);
    *head = (unsigned char)(zeros << 4 | n);
    return at;
}

unsigned char *dra_pack(unsigned char *at, const struct dra_device_view *v)
{
    at = dra_pack_bytes(at, v->name);
    at = dra_pack_text(at, v->uuid);
    at = dra_pack_text(at, v->parent);
    at = dra_pack_number(at, dra_pack_pci(v->pci));
    return dra_pack_number(at, (uint64_t)v->memory);
}

static struct str dra_pack_read_bytes(const unsigned char **at)
{
    struct str text = {(const char *)*at + 1, **at};
    *at += 1 + text.n;
    return text;
}

static struct str dra_pack_read_text(const unsigned char **at, struct uuid_room *room)
{
    enum uuid_kind kind = (enum uuid_kind) * (*at)++;
    if (kind == UUID_NONE)
        return STR_NULL;
    if (kind == UUID_TEXT)
        return dra_pack_read_bytes(at);
    *at += UUID_BYTES;
    return uuid_unpack(kind, *at - UUID_BYTES, room);
}

static uint64_t dra_pack_read_number(const unsigned char **at)
{
    unsigned head = *(*at)++;
    uint64_t v = 0;
    for (unsigned i = 0; i < (head & 15); i++)
        v |= (uint64_t) * (*at)++ << (8 * (i + (head >> 4)));
    return v;
}

static void dra_pack_skip_text(const unsigned char **at)
{
    unsigned kind = *(*at)++;
    if (kind == UUID_TEXT)
        (void)dra_pack_read_bytes(at);
    else if (kind != UUID_NONE)
        *at += UUID_BYTES;
}

struct str dra_pack_name(const unsigned char *record)
{
    return dra_pack_read_bytes(&record);
}

const unsigned char *dra_pack_next(const unsigned char *record)
{
    (void)dra_pack_read_bytes(&record);
    dra_pack_skip_text(&record);
    dra_pack_skip_text(&record);
    (void)dra_pack_read_number(&record);
    (void)dra_pack_read_number(&record);
    return record;
}

void dra_unpack(const unsigned char *record, struct dra_facts *ret)
{
    (void)dra_pack_read_bytes(&record);
    ret->uuid = dra_pack_read_text(&record, &ret->rooms[0]);
    ret->parent = dra_pack_read_text(&record, &ret->rooms[1]);
    uint64_t pci = dra_pack_read_number(&record);
    ret->pci = pci >> 1 | pci << 63;
    ret->memory = (int64_t)dra_pack_read_number(&record);
}
