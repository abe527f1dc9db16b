/* Numbers have as many digits as make sense beside other seeds: two in tables, four elsewhere. */
#include "sim/sim_show.h"

#include "report/table.h"
#include "json/jwrite.h"

static void sim_show_number(struct jwrite *w, const char *key, double x)
{
    char text[64];
    struct buf b = BUF_ON(text);
    jwrite_key(w, str_of(key));
    buf_printf(&b, "%.4f", x);
    jwrite_raw(w, buf_str(&b));
}

static void sim_show_count(struct jwrite *w, const char *key, uint64_t n)
{
    jwrite_u64_at(w, str_of(key), n);
}

static void sim_show_text(struct jwrite *w, const char *key, struct str text)
{
    jwrite_str_at(w, str_of(key), text);
}

/* A figure that there may be none of. */
static void sim_show_cell(struct table *t, double x)
{
    if (x < 0)
        table_cell(t, STR("-"), TINT_DIM);
    else
        table_printf(t, TINT_NONE, "%.2f", x);
}

static void sim_show_columns(struct table *t, const char *const *names, size_t n, size_t n_texts)
{
    for (size_t i = 0; i < n; i++)
        table_column(t, str_of(names[i]), i >= n_texts);
}

/* ---- replay ---- */

static struct str sim_show_order(const struct replays_row *row)
{
    if (!row->in_order)
        return STR("shuffled");
    return row->workload->in_file != NULL ? STR("file") : STR("created");
}

static void sim_show_trace_table(const struct replays *r, struct arena *a, struct buf *out)
{
    char at_fill[32];
    struct table t;
    struct buf b = BUF_ON(at_fill);
    buf_printf(&b, "AT %u%%", r->fill);
    const char *const names[] = {"WORKLOAD",   "POLICY",  "RUNS",     "AT 100%",
                                 buf_cstr(&b), "ARRIVED", "REJECTED", "BROKEN"};
    table_init(&t, a);
    sim_show_columns(&t, names, COUNT_OF(names), 2);
    for (size_t i = 0; i < r->n; i++) {
        const struct replays_row *row = &r->rows[i];
        table_cell(&t, row->workload->name, TINT_NONE);
        table_cell(&t, row->policy->name, TINT_NONE);
        table_printf(&t, TINT_NONE, "%u", row->runs);
        sim_show_cell(&t, row->at_full);
        sim_show_cell(&t, row->at_fill);
        sim_show_cell(&t, row->arrived);
        table_printf(&t, TINT_NONE, "%.1f", row->rejected);
        sim_show_cell(&t, row->broken);
    }
    table_write(&t, true, false, out);
}

static void sim_show_cluster_table(const struct replays *r, struct arena *a, struct buf *out)
{
    static const char *const names[] = {"POLICY",    "ORDER",    "RUNS",  "ARRIVED",
                                        "ALLOCATED", "REJECTED", "BROKEN"};
    struct table t;
    table_init(&t, a);
    sim_show_columns(&t, names, COUNT_OF(names), 2);
    for (size_t i = 0; i < r->n; i++) {
        const struct replays_row *row = &r->rows[i];
        table_cell(&t, row->policy->name, TINT_NONE);
        table_cell(&t, sim_show_order(row), TINT_NONE);
        table_printf(&t, TINT_NONE, "%u", row->runs);
        sim_show_cell(&t, row->arrived);
        sim_show_cell(&t, row->allocated);
        table_printf(&t, TINT_NONE, "%.1f", row->rejected);
        sim_show_cell(&t, row->broken);
    }
    table_write(&t, true, false, out);
}

static void sim_show_series(struct jwrite *w, const struct replays_row *row, uint32_t fill)
{
    jwrite_array_at(w, STR("series"));
    for (uint32_t i = 0; i <= fill; i++) {
        if (row->series[i] < 0)
            continue;
        jwrite_object_begin(w);
        sim_show_count(w, "arrivedPercent", i);
        sim_show_number(w, "allocatedPercent", row->series[i]);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

static void sim_show_replays_json(const struct replays *r, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_array_begin(&w);
    for (size_t i = 0; i < r->n; i++) {
        const struct replays_row *row = &r->rows[i];
        jwrite_object_begin(&w);
        sim_show_text(&w, "workload", row->workload->name);
        sim_show_text(&w, "policy", row->policy->name);
        sim_show_text(&w, "order", sim_show_order(row));
        sim_show_count(&w, "runs", row->runs);
        sim_show_number(&w, "arrivedPercent", row->arrived);
        sim_show_number(&w, "allocatedPercent", row->allocated);
        sim_show_number(&w, "rejectedPods", row->rejected);
        sim_show_number(&w, "brokenPercent", row->broken);
        sim_show_series(&w, row, r->fill);
        jwrite_object_end(&w);
    }
    jwrite_array_end(&w);
    buf_putc(out, '\n');
}

static void sim_show_replays_csv(const struct replays *r, struct buf *out)
{
    buf_put(out, STR("workload,policy,order,arrived_percent,allocated_percent\n"));
    for (size_t i = 0; i < r->n; i++) {
        const struct replays_row *row = &r->rows[i];
        for (uint32_t k = 0; k <= r->fill; k++) {
            if (row->series[k] >= 0)
                buf_printf(out, "%.*s,%.*s,%.*s,%u,%.4f\n", STR_ARG(row->workload->name),
                           STR_ARG(row->policy->name), STR_ARG(sim_show_order(row)), k,
                           row->series[k]);
        }
    }
}

void sim_show_replays(const struct replays *r, enum sim_output output, struct arena *a,
                      struct buf *out)
{
    if (output == SIM_JSON)
        sim_show_replays_json(r, out);
    else if (output == SIM_CSV)
        sim_show_replays_csv(r, out);
    else if (r->once && r->of_cluster)
        sim_show_cluster_table(r, a, out);
    else
        sim_show_trace_table(r, a, out);
}

/* ---- churn ---- */

static void sim_show_churns_table(const struct churns *c, struct arena *a, struct buf *out)
{
    static const char *const names[] = {"WORKLOAD", "POLICY", "LOAD",     "RUNS",
                                        "REJECTED", "ERROR",  "ALLOCATED"};
    struct table t;
    table_init(&t, a);
    sim_show_columns(&t, names, COUNT_OF(names), 2);
    for (size_t i = 0; i < c->n; i++) {
        table_cell(&t, c->rows[i].workload->name, TINT_NONE);
        table_cell(&t, c->rows[i].policy->name, TINT_NONE);
        table_printf(&t, TINT_NONE, "%.4g", c->rows[i].load);
        table_printf(&t, TINT_NONE, "%u", c->rows[i].runs);
        sim_show_cell(&t, c->rows[i].rejected);
        sim_show_cell(&t, c->rows[i].error);
        sim_show_cell(&t, c->rows[i].allocated);
    }
    table_write(&t, true, false, out);
}

static void sim_show_churns_json(const struct churns *c, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_array_begin(&w);
    for (size_t i = 0; i < c->n; i++) {
        jwrite_object_begin(&w);
        sim_show_text(&w, "workload", c->rows[i].workload->name);
        sim_show_text(&w, "policy", c->rows[i].policy->name);
        sim_show_number(&w, "load", c->rows[i].load);
        sim_show_count(&w, "runs", c->rows[i].runs);
        sim_show_number(&w, "rejectedPercent", c->rows[i].rejected);
        sim_show_number(&w, "standardError", c->rows[i].error);
        sim_show_number(&w, "allocatedPercent", c->rows[i].allocated);
        jwrite_object_end(&w);
    }
    jwrite_array_end(&w);
    buf_putc(out, '\n');
}

static void sim_show_churns_csv(const struct churns *c, struct buf *out)
{
    buf_put(out,
            STR("workload,policy,load,runs,rejected_percent,standard_error,allocated_percent\n"));
    for (size_t i = 0; i < c->n; i++)
        buf_printf(out, "%.*s,%.*s,%.4g,%u,%.4f,%.4f,%.4f\n", STR_ARG(c->rows[i].workload->name),
                   STR_ARG(c->rows[i].policy->name), c->rows[i].load, c->rows[i].runs,
                   c->rows[i].rejected, c->rows[i].error, c->rows[i].allocated);
}

void sim_show_churns(const struct churns *c, enum sim_output output, struct arena *a,
                     struct buf *out)
{
    if (output == SIM_JSON)
        sim_show_churns_json(c, out);
    else if (output == SIM_CSV)
        sim_show_churns_csv(c, out);
    else
        sim_show_churns_table(c, a, out);
}

/* ---- fit and grow ---- */

static void sim_show_fit_json(const struct sim_fit_answer *f, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    sim_show_count(&w, "fit", f->fit);
    sim_show_count(&w, "nodes", f->nodes);
    jwrite_array_at(&w, STR("stopped"));
    for (size_t i = 0; i < f->n_stops; i++) {
        jwrite_object_begin(&w);
        sim_show_count(&w, "nodes", f->stops[i].nodes);
        sim_show_text(&w, "reason", f->stops[i].reason);
        jwrite_object_end(&w);
    }
    jwrite_array_end(&w);
    jwrite_object_end(&w);
    buf_putc(out, '\n');
}

static void sim_show_fit_table(const struct sim_fit_answer *f, struct arena *a, struct buf *out)
{
    static const char *const names[] = {"WHAT STOPS THE NEXT ONE", "NODES"};
    struct table t;
    buf_printf(out, "%llu%s fit, on %u nodes.\n", (unsigned long long)f->fit,
               f->limited ? " or more" : "", f->nodes);
    if (f->n_stops == 0)
        return;
    buf_putc(out, '\n');
    table_init(&t, a);
    sim_show_columns(&t, names, COUNT_OF(names), 1);
    for (size_t i = 0; i < f->n_stops; i++) {
        table_cell(&t, f->stops[i].reason, TINT_NONE);
        table_printf(&t, TINT_NONE, "%u", f->stops[i].nodes);
    }
    table_write(&t, true, false, out);
}

void sim_show_fit(const struct sim_fit_answer *f, enum sim_output output, struct arena *a,
                  struct buf *out)
{
    if (output == SIM_JSON) {
        sim_show_fit_json(f, out);
    } else if (output == SIM_CSV) {
        buf_put(out, STR("nodes,reason\n"));
        for (size_t i = 0; i < f->n_stops; i++)
            buf_printf(out, "%u,\"%.*s\"\n", f->stops[i].nodes, STR_ARG(f->stops[i].reason));
    } else {
        sim_show_fit_table(f, a, out);
    }
}

void sim_show_grow(const struct grow_answer *g, enum sim_output output, struct buf *out)
{
    struct jwrite w;
    if (output == SIM_CSV) {
        buf_printf(out, "pending,run_now,nodes,run\n%u,%u,%u,%u\n", g->pending, g->run_now,
                   g->nodes, g->run);
        return;
    }
    if (output == SIM_TABLE) {
        buf_printf(out, "%u of %u pending pods fit now.\n", g->run_now, g->pending);
        if (g->run > g->run_now)
            buf_printf(out, "With %u more node%s %u of %u fit.\n", g->nodes,
                       g->nodes == 1 ? "" : "s", g->run, g->pending);
        if (g->run < g->pending)
            buf_printf(out, "%u fit on no such node.\n", g->pending - g->run);
        return;
    }
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    sim_show_count(&w, "pending", g->pending);
    sim_show_count(&w, "runNow", g->run_now);
    sim_show_count(&w, "nodes", g->nodes);
    sim_show_count(&w, "run", g->run);
    jwrite_object_end(&w);
    buf_putc(out, '\n');
}
