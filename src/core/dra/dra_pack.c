/* A record is the length of the name, the name, the UUID, the parent's UUID, the PCI address and
 * the capacity. A UUID is its kind; a text that is none follows with its length. A number begins
 * with how many bytes follow, and how many of value 0 come before these: the least byte is the
 * first. All lengths have one byte. */
#include "core/dra/dra_pack.h"

#include "base/mem.h"

/* Of a UUID that is none of NVIDIA's driver. The API server allows 64, so none is cut; a table of
 * cards may have one of 256. */
#define TEXT_MAX ((size_t)255)

static_assert(DRA_NAME_MAX <= UINT8_MAX && TEXT_MAX <= UINT8_MAX, "one byte each");

struct dra_shape {
    struct interned interned;
    uint32_t n_devices;
    uint32_t n_bytes;
    unsigned char records[];
};

static size_t dra_pack_text_size(struct str text)
{
    return uuid_kind_of(text) == UUID_TEXT ? 2 + str_head(text, TEXT_MAX).n : 1;
}

static size_t dra_pack_short_size(struct str text)
{
    return uuid_is_short(uuid_kind_of(text)) ? UUID_BYTES : 0;
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

/* ---- writing ---- */

static size_t dra_pack_record_size(const struct dra_device_view *v)
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
    return kind == UUID_TEXT ? dra_pack_bytes(at, str_head(text, TEXT_MAX)) : at;
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

static unsigned char *dra_pack_record(unsigned char *at, const struct dra_device_view *v)
{
    at = dra_pack_bytes(at, v->name);
    at = dra_pack_text(at, v->uuid);
    at = dra_pack_text(at, v->parent);
    at = dra_pack_number(at, dra_pack_pci(v->pci));
    return dra_pack_number(at, (uint64_t)v->memory);
}

static bool dra_pack_is_like(const struct interned *thing, const void *like)
{
    const struct dra_shape *s = (const struct dra_shape *)(const void *)thing;
    const struct dra_shape *other = like;
    return s->n_devices == other->n_devices && s->n_bytes == other->n_bytes &&
           memcmp(s->records, other->records, s->n_bytes) == 0;
}

struct dra_shape *dra_shape_take(struct intern_table *t, const struct dra_device_view *devices,
                                 size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += dra_pack_record_size(&devices[i]);
    struct dra_shape *s = mem_alloc(sizeof(*s) + size);
    if (s == NULL)
        return NULL;
    unsigned char *at = s->records;
    for (size_t i = 0; i < n; i++)
        at = dra_pack_record(at, &devices[i]);
    s->n_devices = (uint32_t)n;
    s->n_bytes = (uint32_t)size;
    assert(at == s->records + size);
    uint64_t hash = siphash13(t->seed, (struct str){(const char *)s->records, size});
    struct interned *kept = intern_keep(t, &s->interned, hash, dra_pack_is_like);
    return kept == NULL ? NULL : CONTAINER_OF(kept, struct dra_shape, interned);
}

void dra_shape_give(struct intern_table *t, struct dra_shape *s)
{
    if (s != NULL)
        intern_give(t, &s->interned);
}

size_t dra_pack_uuids_size(const struct dra_device_view *devices, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += dra_pack_short_size(devices[i].uuid) + dra_pack_short_size(devices[i].parent);
    return size;
}

static unsigned char *dra_pack_short(unsigned char *at, struct str text)
{
    if (!uuid_is_short(uuid_kind_of(text)))
        return at;
    uuid_pack(text, at);
    return at + UUID_BYTES;
}

unsigned char *dra_pack_uuids(unsigned char *at, const struct dra_device_view *devices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        at = dra_pack_short(at, devices[i].uuid);
        at = dra_pack_short(at, devices[i].parent);
    }
    return at;
}

/* ---- reading ---- */

/* Where a reader is, in the records and in the UUIDs. */
struct dra_cursor {
    const unsigned char *record;
    const unsigned char *uuids;
};

static struct str dra_pack_read_bytes(struct dra_cursor *at)
{
    struct str text = {(const char *)at->record + 1, *at->record};
    at->record += 1 + text.n;
    return text;
}

static struct str dra_pack_read_text(struct dra_cursor *at, struct uuid_room *room)
{
    enum uuid_kind kind = (enum uuid_kind) * at->record++;
    if (kind == UUID_TEXT)
        return dra_pack_read_bytes(at);
    if (kind == UUID_NONE)
        return STR_NULL;
    at->uuids += UUID_BYTES;
    return uuid_unpack(kind, at->uuids - UUID_BYTES, room);
}

static void dra_pack_skip_text(struct dra_cursor *at)
{
    enum uuid_kind kind = (enum uuid_kind) * at->record++;
    if (kind == UUID_TEXT)
        (void)dra_pack_read_bytes(at);
    at->uuids += uuid_is_short(kind) ? UUID_BYTES : 0;
}

static uint64_t dra_pack_read_number(struct dra_cursor *at)
{
    unsigned head = *at->record++;
    uint64_t v = 0;
    for (unsigned i = 0; i < (head & 15); i++)
        v |= (uint64_t)*at->record++ << (8 * (i + (head >> 4)));
    return v;
}

/* The rest of a record, behind the name. */
static void dra_pack_read_facts(struct dra_cursor *at, struct dra_facts *ret)
{
    ret->uuid = dra_pack_read_text(at, &ret->rooms[0]);
    ret->parent = dra_pack_read_text(at, &ret->rooms[1]);
    uint64_t pci = dra_pack_read_number(at);
    ret->pci = pci >> 1 | pci << 63;
    ret->memory = (int64_t)dra_pack_read_number(at);
}

static void dra_pack_skip_facts(struct dra_cursor *at)
{
    dra_pack_skip_text(at);
    dra_pack_skip_text(at);
    (void)dra_pack_read_number(at);
    (void)dra_pack_read_number(at);
}

bool dra_shape_find(const struct dra_shape *s, const unsigned char *uuids, struct str name,
                    uint32_t *ret_index, struct dra_facts *ret)
{
    struct dra_cursor at = {s->records, uuids};
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (!str_eq(dra_pack_read_bytes(&at), name)) {
            dra_pack_skip_facts(&at);
            continue;
        }
        *ret_index = i;
        if (ret != NULL)
            dra_pack_read_facts(&at, ret);
        return true;
    }
    return false;
}
