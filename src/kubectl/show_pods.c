/* Prints the pods of card_pods.h as a table or as JSON. */
#include "kubectl/card_pods.h"

#include "objects/limit.h"
#include "objects/stamp.h"
#include "report/table.h"
#include "json/jwrite.h"

#define MINUTE 60U
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

struct str kubectl_age(uint32_t seconds, struct buf *out)
{
    /* From `from` seconds on: so many whole `unit`, and the rest in the unit below if `both`. */
    static const struct {
        uint32_t from;
        uint32_t unit;
        char name;
        bool both;
    } steps[] = {
        {8 * DAY, DAY, 'd', false},
        {2 * DAY, DAY, 'd', true},
        {8 * HOUR, HOUR, 'h', false},
        {3 * HOUR, HOUR, 'h', true},
        {10 * MINUTE, MINUTE, 'm', false},
        {2 * MINUTE, MINUTE, 'm', true},
        {0, 1, 's', false},
    };

    size_t i = 0;
    while (seconds < steps[i].from)
        i++;
    buf_printf(out, "%u%c", seconds / steps[i].unit, steps[i].name);
    uint32_t rest = seconds % steps[i].unit;
    uint32_t below = i + 1 < COUNT_OF(steps) ? steps[i + 1].unit : 1;
    if (steps[i].both && rest / below > 0)
        buf_printf(out, "%u%c", rest / below, steps[i + 1].name);
    return buf_str(out);
}

static void show_pods_columns(struct table *t, bool is_wide, bool measured)
{
    table_column(t, STR("NAMESPACE"), false);
    table_column(t, STR("NAME"), false);
    table_column(t, STR("NODE"), false);
    table_column(t, STR("CARDS"), false);
    table_column(t, STR("MEMORY"), true);
    table_column(t, STR("AGE"), true);
    table_column(t, STR("STATUS"), false);
    if (is_wide) {
        table_column(t, STR("PLACE"), false);
        table_column(t, STR("REQUEST"), false);
    }
    if (is_wide && measured)
        table_column(t, STR("REALLY(MiB)"), true);
    table_column(t, STR("REASON"), false);
}

static void show_pods_text(struct table *t, struct str text)
{
    table_cell(t, text.n > 0 ? text : STR("-"), text.n > 0 ? TINT_NONE : TINT_DIM);
}

/* "0,2", or in full "0:8 2:8(30%)". */
static void show_pods_shares(struct table *t, const struct card_pods_row *row, bool full)
{
    struct buf b;
    buf_init(&b, LIMIT_ALLOCATION_BYTES);
    for (uint32_t i = 0; i < row->n_shares; i++) {
        const struct share *s = &row->shares[i];
        buf_put(&b, i == 0 ? STR("") : full ? STR(" ") : STR(","));
        if (s->card < INT32_MAX)
            buf_printf(&b, "%u", s->card);
        else
            buf_put(&b, STR("?"));
        if (full)
            buf_printf(&b, ":%lld", (long long)s->mem);
        if (full && s->cores > 0)
            buf_printf(&b, "(%u%%)", s->cores);
    }
    show_pods_text(t, arena_keep(t->arena, &b));
}

static void show_pods_age(struct table *t, uint32_t created_s, uint32_t now_s)
{
    char bytes[32];
    struct buf b = BUF_ON(bytes);
    if (created_s == 0)
        table_cell(t, STR("-"), TINT_DIM);
    else
        table_cell(t, kubectl_age(now_s > created_s ? now_s - created_s : 0, &b), TINT_NONE);
}

static void show_pods_row(struct table *t, const struct card_pods_row *row, bool is_wide,
                          bool measured, uint32_t now_s)
{
    bool waits = row->node.n == 0;
    show_pods_text(t, row->namespace);
    show_pods_text(t, row->name);
    show_pods_text(t, row->node);
    show_pods_shares(t, row, false);
    if (row->percent > 0)
        table_printf(t, TINT_NONE, "%u%%", row->percent);
    else if (row->memory > 0)
        table_printf(t, TINT_NONE, "%lld", (long long)row->memory);
    else
        table_cell(t, STR("-"), TINT_DIM);
    show_pods_age(t, row->created_s, now_s);
    table_cell(t, row->status.n > 0 ? row->status : STR("-"), waits ? TINT_WARN : TINT_NONE);
    if (is_wide) {
        show_pods_shares(t, row, true);
        show_pods_text(t, row->asks);
    }
    if (is_wide && measured && row->used_mib >= 0)
        table_printf(t, TINT_NONE, "%lld", (long long)row->used_mib);
    else if (is_wide && measured)
        table_cell(t, STR("-"), TINT_DIM);
    show_pods_text(t, row->reason);
}

enum errc kubectl_pods_show(const struct card_pods *p, struct kubectl_look look, uint32_t now_s,
                            struct arena *a, struct buf *out, struct err *reterr)
{
    struct table t;
    if (look.names) {
        for (size_t i = 0; i < p->n; i++)
            buf_printf(out, "pod/%.*s\n", STR_ARG(text_printable(p->rows[i].name, a)));
        return OK;
    }
    table_init(&t, a);
    show_pods_columns(&t, look.wide, p->measured);
    for (size_t i = 0; i < p->n; i++)
        show_pods_row(&t, &p->rows[i], look.wide, p->measured, now_s);
    table_write(&t, look.heads, look.color, out);
    return arena_failed(a) ? err_set(reterr, arena_fault(a), "the table is too large") : OK;
}

/* ---- JSON ---- */

static void show_pods_write_str(struct jwrite *w, const char *key, struct str value)
{
    jwrite_str_at(w, str_of(key), value.p == NULL ? STR("") : value);
}

static void show_pods_write_placement(struct jwrite *w, const struct card_pods_row *row)
{
    jwrite_array_at(w, STR("placement"));
    for (uint32_t i = 0; i < row->n_shares; i++) {
        jwrite_object_begin(w);
        if (row->shares[i].card < INT32_MAX)
            jwrite_u64_at(w, STR("card"), row->shares[i].card);
        jwrite_i64_at(w, STR("memory"), row->shares[i].mem);
        if (row->shares[i].cores > 0)
            jwrite_u64_at(w, STR("compute"), row->shares[i].cores);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

static void show_pods_write_row(struct jwrite *w, const struct card_pods_row *row)
{
    char text[STAMP_BYTES];
    jwrite_object_begin(w);
    show_pods_write_str(w, "namespace", row->namespace);
    show_pods_write_str(w, "name", row->name);
    show_pods_write_str(w, "node", row->node);
    show_pods_write_str(w, "status", row->status);
    show_pods_write_str(w, "request", row->asks);
    jwrite_i64_at(w, STR("memory"), row->memory);
    show_pods_write_placement(w, row);
    if (row->created_s > 0)
        show_pods_write_str(w, "created", stamp_print(row->created_s, text));
    show_pods_write_str(w, "reason", row->reason);
    jwrite_object_end(w);
}

void kubectl_pods_write(const struct card_pods *p, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_array_at(&w, STR("pods"));
    for (size_t i = 0; i < p->n; i++)
        show_pods_write_row(&w, &p->rows[i]);
    jwrite_array_end(&w);
    jwrite_object_end(&w);
}
