/* Cells that the tables of top and cards have in common. */
#pragma once

#include "kubectl/figures.h"
#include "report/table.h"

static inline int64_t show_cell_percent(int64_t used, int64_t total)
{
    return total <= 0 ? 0 : (int64_t)((double)used * 100 / (double)total);
}

static inline enum tint show_cell_tint(int64_t used, int64_t total)
{
    int64_t p = show_cell_percent(used, total);
    if (used > total)
        return TINT_BAD;
    return p >= 90 ? TINT_WARN : used > 0 ? TINT_GOOD : TINT_NONE;
}

static inline bool show_cell_is_ok(struct str state)
{
    return state.n == 0 || str_eq(state, STR("ok"));
}

/* What a new pod can get of the card: not more than the node has free. */
static inline int64_t show_cell_free(const struct figures_node *n, const struct figures_card *c)
{
    return MIN_OF(c->free, n->free);
}

static inline void show_cell_text(struct table *t, struct str text)
{
    table_cell(t, text.n > 0 ? text : STR("-"), text.n > 0 ? TINT_NONE : TINT_DIM);
}

/* What is really used of so many MiB; negative: unknown. */
static inline void show_cell_measured(struct table *t, int64_t used_mib, int64_t size_mib)
{
    if (used_mib < 0 || size_mib < 0)
        table_cell(t, STR("-"), TINT_DIM);
    else
        table_printf(t, show_cell_tint(used_mib, size_mib), "%lld/%lld", (long long)used_mib,
                     (long long)size_mib);
}

static inline void show_cell_busy(struct table *t, int64_t percent)
{
    if (percent < 0)
        table_cell(t, STR("-"), TINT_DIM);
    else
        table_printf(t, TINT_NONE, "%lld%%", (long long)percent);
}

static inline enum errc show_cell_finish(const struct table *t, struct err *e)
{
    return arena_failed(t->arena) ? err_set(e, arena_fault(t->arena), "the table is too large")
                                  : OK;
}
