/* The further names of resources for whole cards and their parts. */
#include "core/dialect/card_resources.h"

#include "core/dialect/dialect.h"
#include "core/dialect/gpushare.h"

static struct str used;

static bool card_resources_matches(struct str pattern, struct str resource)
{
    if (str_ends(pattern, STR("*")))
        return str_starts(resource, (struct str){pattern.p, pattern.n - 1});
    return str_eq(pattern, resource);
}

static bool card_resources_are_in(struct str list, struct str resource)
{
    for (struct str name, rest = list; rest.n > 0;) {
        (void)str_cut(rest, ',', &name, &rest);
        if (card_resources_matches(str_trim(name), resource))
            return true;
    }
    return false;
}

static bool card_resources_is_of_a_dialect(struct str pattern)
{
    if (card_resources_matches(pattern, GPUSHARE_RESOURCE_MEM) ||
        card_resources_matches(pattern, GPUSHARE_RESOURCE_COUNT) ||
        card_resources_matches(pattern, GPUSHARE_RESOURCE_CORES) ||
        card_resources_matches(pattern, GPUSHARE_RESOURCE_EXCLUSIVE))
        return true;
    for (unsigned d = 0; d < DIALECT_COUNT; d++) {
        const struct dialect_facts *f = dialect_facts((enum dialect)d);
        const struct str names[] = {f->mem, f->cores, f->count, f->percent};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            if (names[i].n > 0 && card_resources_matches(pattern, names[i]))
                return true;
        }
    }
    return false;
}

void card_resources_use(struct str list)
{
    used = list;
}

bool card_resources_check(struct str list, struct str *ret_bad)
{
    for (struct str name, rest = list; rest.p != NULL && list.n > 0;) {
        (void)str_cut(rest, ',', &name, &rest);
        name = str_trim(name);
        const char *slash = name.n == 0 ? NULL : memchr(name.p, '/', name.n);
        const char *star = name.n == 0 ? NULL : memchr(name.p, '*', name.n);
        if (slash == NULL || slash == name.p || slash == name.p + name.n - 1 ||
            (star != NULL && (star < slash || star != name.p + name.n - 1)) ||
            card_resources_is_of_a_dialect(name)) {
            *ret_bad = name;
            return false;
        }
    }
    return true;
}

bool card_resources_has(struct str resource)
{
    return card_resources_are_in(STR("nvidia.com/gpu.*,nvidia.com/mig-*"), resource) ||
           card_resources_are_in(used, resource);
}

enum card_guess card_resources_guess(struct str resource)
{
    struct str bad;
    bool says = false;
    if (resource.n == 0 || str_starts(resource, STR("amd.com/")) ||
        str_starts(resource, STR("gpu.intel.com/")) || card_resources_has(resource) ||
        !card_resources_check(resource, &bad))
        return CARD_GUESS_NO;
    for (size_t i = 0; i + 3 <= resource.n && !says; i++)
        says = str_eq_nocase((struct str){resource.p + i, 3}, STR("gpu"));
    if (says)
        return CARD_GUESS_YES;
    return str_starts(resource, STR("nvidia.com/")) ? CARD_GUESS_PERHAPS : CARD_GUESS_NO;
}
