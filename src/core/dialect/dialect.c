/* The table of dialects, and the set of those that are read. */
#include "dialects.h"

#include "core/dialect/gpushare.h"

static const struct dialect_facts *const table[DIALECT_COUNT] = {
    [DIALECT_GPUSHARE] = &dialect_gpushare, [DIALECT_VOLCANO] = &dialect_volcano,
    [DIALECT_ELASTIC] = &dialect_elastic,   [DIALECT_TENCENT] = &dialect_tencent,
    [DIALECT_VGPU] = &dialect_vgpu,         [DIALECT_HAMI] = &dialect_hami,
};

static unsigned used = DIALECT_BIT(DIALECT_GPUSHARE);

const struct dialect_facts *dialect_facts(enum dialect d)
{
    assert((unsigned)d < DIALECT_COUNT);
    return table[d];
}

bool dialect_has_uuids(enum dialect d)
{
    return dialect_facts(d)->table.p != NULL;
}

bool dialect_names_containers(enum dialect d)
{
    return dialect_facts(d)->seat.p != NULL && !dialect_facts(d)->seat_index;
}

bool dialect_has_nvidias(enum dialect d)
{
    return str_eq(dialect_facts(d)->count, GPUSHARE_RESOURCE_EXCLUSIVE);
}

bool dialect_find_nvidias(enum dialect *ret)
{
    for (enum dialect d = 0; d < DIALECT_COUNT; d++) {
        if (!dialect_is_used(d) || !dialect_has_nvidias(d))
            continue;
        if (ret != NULL)
            *ret = d;
        return true;
    }
    return false;
}

struct str dialect_waits(enum dialect d)
{
    return dialect_has_uuids(d) ? STR("allocating") : STR("false");
}

struct str dialect_served(enum dialect d)
{
    return dialect_has_uuids(d) ? STR("success") : STR("true");
}

bool dialect_parse(struct str name, enum dialect *ret)
{
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        if (str_eq(name, table[d]->name)) {
            *ret = (enum dialect)d;
            return true;
        }
    }
    return false;
}

bool dialects_parse(struct str list, unsigned *ret, struct str *ret_bad)
{
    unsigned set = 0;
    struct str rest = list;
    *ret_bad = STR_NULL;
    while (rest.n > 0) {
        struct str name;
        enum dialect d;
        (void)str_cut(rest, ',', &name, &rest);
        name = str_trim(name);
        if (!dialect_parse(name, &d) || (set & DIALECT_BIT(d)) != 0) {
            *ret_bad = name;
            return false;
        }
        set |= DIALECT_BIT(d);
    }
    *ret = set;
    return set != 0;
}

void dialects_write(unsigned set, struct buf *out)
{
    const char *between = "";
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        if ((set & DIALECT_BIT(d)) == 0)
            continue;
        buf_printf(out, "%s%.*s", between, STR_ARG(table[d]->name));
        between = ",";
    }
}

void dialects_use(unsigned set)
{
    assert(set != 0 && set < DIALECT_BIT(DIALECT_COUNT));
    used = set;
}

bool dialect_is_used(enum dialect d)
{
    return (used & DIALECT_BIT(d)) != 0;
}
