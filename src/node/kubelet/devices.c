/* Device IDs, the list of devices, and the choice among available ones. */
#include "node/kubelet/devices.h"

#include "base/sort.h"
#include "node/limit.h"

#include <inttypes.h>

#define BASE 36

/* ---- IDs ---- */

static const char devices_digits[BASE + 1] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void devices_put_number(struct buf *out, uint32_t v)
{
    char digits[8];
    size_t n = 0;
    do {
        digits[n++] = devices_digits[v % BASE];
        v /= BASE;
    } while (v > 0);
    while (n > 0)
        buf_putc(out, digits[--n]);
}

void device_id(char ret[DEVICE_ID_BYTES], uint32_t card, uint32_t n)
{
    struct buf out = buf_on(ret, DEVICE_ID_BYTES);
    devices_put_number(&out, card);
    buf_putc(&out, '.');
    devices_put_number(&out, n);
    const char *id = buf_cstr(&out);
    assert(id == ret);
}

static bool devices_read_number(struct str s, uint32_t *ret)
{
    uint64_t v = 0;
    if (s.n == 0 || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n && v <= UINT32_MAX; i++) {
        const char *digit = memchr(devices_digits, s.p[i], BASE);
        if (digit == NULL)
            return false;
        v = v * BASE + (uint64_t)(digit - devices_digits);
    }
    *ret = (uint32_t)v;
    return v <= UINT32_MAX;
}

bool device_parse(struct str id, uint32_t *ret_card, uint32_t *ret_n)
{
    struct str card;
    struct str n;
    return str_cut(id, '.', &card, &n) && devices_read_number(card, ret_card) &&
           devices_read_number(n, ret_n);
}

/* ---- the list ---- */

int64_t devices_units(struct device_unit unit, int64_t bytes, int64_t reserve)
{
    assert(unit.bytes > 0 && reserve >= 0);
    return bytes <= reserve ? 0 : (bytes - reserve) / unit.bytes;
}

enum errc devices_check(const struct card_offer *cards, size_t n, struct err *reterr)
{
    int64_t units = 0;
    for (size_t i = 0; i < n; i++) {
        if (cards[i].units < 0)
            return err_set(reterr, ERR_RANGE, "card %" PRIu32 " has %" PRId64 " units of memory",
                           cards[i].index, cards[i].units);
        if (__builtin_add_overflow(units, cards[i].units, &units))
            units = INT64_MAX;
    }
    if (units <= LIMIT_DEVICES)
        return OK;
    return err_set(reterr, ERR_LIMIT,
                   "the cards have %" PRId64 " units of memory, and a kubelet takes at most %d "
                   "devices: set a unit of memory that is %" PRId64 " times as large",
                   units, LIMIT_DEVICES, units / LIMIT_DEVICES + (units % LIMIT_DEVICES != 0));
}

void devices_list(struct buf *out, const struct card_offer *cards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct card_offer *c = &cards[i];
        for (uint32_t k = 0; k < c->units; k++) {
            char id[DEVICE_ID_BYTES];
            device_id(id, c->index, k);
            device_write(out, &(struct plugin_device){
                                  .id = str_of(id), .healthy = c->healthy, .numa = c->numa});
        }
    }
}

/* ---- the choice ---- */

struct devices_choice {
    const struct device_wish *wishes;
    int64_t *open; /* of each wish: units that are not chosen yet */
    size_t n;
    const struct str *must;
    uint32_t *sorted; /* indices of must, by ID */
    size_t n_must;
    struct str *ids;
    size_t n_ids;
};

static bool devices_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct devices_choice *d = ctx;
    int order = str_cmp(d->must[a], d->must[b]);
    return order != 0 ? order < 0 : a < b;
}

static bool devices_is_must(const struct devices_choice *d, struct str id)
{
    size_t low = 0;
    size_t high = d->n_must;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(d->must[d->sorted[middle]], id);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* The wish that the device is for; SIZE_MAX: none. */
static size_t devices_wish_of(const struct devices_choice *d, struct str id)
{
    uint32_t card;
    uint32_t n;
    if (!device_parse(id, &card, &n))
        return SIZE_MAX;
    for (size_t i = 0; i < d->n; i++) {
        if (d->wishes[i].card == card)
            return i;
    }
    return SIZE_MAX;
}

static void devices_take_must(struct devices_choice *d, size_t most)
{
    for (size_t i = 0; i < d->n_must && d->n_ids < most; i++) {
        size_t wish = devices_wish_of(d, d->must[i]);
        if (wish != SIZE_MAX)
            d->open[wish]--;
        d->ids[d->n_ids++] = d->must[i];
    }
}

static void devices_take_available(struct devices_choice *d, const struct preferred_container *c,
                                   size_t most)
{
    for (size_t i = 0; i < c->n_available && d->n_ids < most; i++) {
        struct str id = c->available[i];
        size_t wish = devices_wish_of(d, id);
        if (wish == SIZE_MAX || d->open[wish] <= 0 || devices_is_must(d, id))
            continue;
        d->open[wish]--;
        d->ids[d->n_ids++] = id;
    }
}

enum errc devices_prefer(const struct preferred_container *c, const struct device_wish *wishes,
                         size_t n, struct arena *a, struct allocate_container *ret)
{
    /* The IDs are of the request, so a wrong size of it can't make the array too large. */
    size_t most = MIN_OF(c->size < 0 ? 0 : (size_t)c->size, c->n_available + c->n_must_include);
    struct devices_choice d = {.wishes = wishes,
                               .open = arena_array(a, n, sizeof(*d.open)),
                               .n = n,
                               .must = c->must_include,
                               .sorted = arena_array(a, c->n_must_include, sizeof(*d.sorted)),
                               .n_must = c->n_must_include,
                               .ids = arena_array(a, most, sizeof(*d.ids))};
    if (arena_failed(a))
        return arena_fault(a);
    for (size_t i = 0; i < n; i++)
        d.open[i] = wishes[i].units;
    for (size_t i = 0; i < d.n_must; i++)
        d.sorted[i] = (uint32_t)i;
    sort_by(d.sorted, (uint32_t)d.n_must, devices_before, &d);
    devices_take_must(&d, most);
    devices_take_available(&d, c, most);
    *ret = (struct allocate_container){.ids = d.ids, .n_ids = d.n_ids};
    return OK;
}
