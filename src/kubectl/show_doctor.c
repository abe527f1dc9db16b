/* Prints the findings of doctor, the gravest first, as a table or as JSON. */
#include "kubectl/doctor.h"
#include "report/table.h"
#include "json/jwrite.h"

static const struct {
    const char *word;
    const char *json;
    enum tint tint;
} levels[FINDING_LEVELS] = {
    [FINDING_OK] = {"OK", "ok", TINT_GOOD},
    [FINDING_WARN] = {"WARN", "warn", TINT_WARN},
    [FINDING_FAIL] = {"FAIL", "fail", TINT_BAD},
};

static void show_doctor_row(struct table *t, const struct finding *x)
{
    table_cell(t, str_of(levels[x->level].word), levels[x->level].tint);
    table_cell(t, x->object, TINT_NONE);
    table_cell(t, x->text, TINT_NONE);
    table_cell(t, x->advice[0] == '\0' ? STR("-") : str_of(x->advice),
               x->advice[0] == '\0' ? TINT_DIM : TINT_NONE);
}

enum errc kubectl_doctor_show(const struct findings *f, struct kubectl_look look, struct buf *out,
                              struct err *reterr)
{
    struct table t;
    size_t all = f->counts[FINDING_OK] + f->counts[FINDING_WARN] + f->counts[FINDING_FAIL];
    table_init(&t, f->arena);
    table_column(&t, STR("RESULT"), false);
    table_column(&t, STR("OBJECT"), false);
    table_column(&t, STR("FINDING"), false);
    table_column(&t, STR("WHAT TO DO"), false);
    for (unsigned level = FINDING_LEVELS; level-- > 0;) {
        for (size_t i = 0; i < f->n; i++) {
            if (f->items[i].level == (enum finding_level)level)
                show_doctor_row(&t, &f->items[i]);
        }
    }
    table_write(&t, look.heads, look.color, out);
    if (look.heads && all > f->n)
        buf_printf(out, "%zu more findings are not shown\n", all - f->n);
    if (look.heads)
        buf_printf(out, "%zu FAIL, %zu WARN, %zu OK\n", f->counts[FINDING_FAIL],
                   f->counts[FINDING_WARN], f->counts[FINDING_OK]);
    return arena_failed(f->arena) ? err_set(reterr, arena_fault(f->arena), "the table is too large")
                                  : OK;
}

static void show_doctor_write(struct jwrite *w, const struct finding *x)
{
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("result"), str_of(levels[x->level].json));
    jwrite_str_at(w, STR("object"), x->object);
    jwrite_str_at(w, STR("finding"), x->text);
    jwrite_str_at(w, STR("advice"), str_of(x->advice));
    jwrite_object_end(w);
}

void kubectl_doctor_write(const struct findings *f, struct buf *out)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    for (unsigned level = FINDING_LEVELS; level-- > 0;)
        jwrite_u64_at(&w, str_of(levels[level].json), f->counts[level]);
    jwrite_array_at(&w, STR("findings"));
    for (unsigned level = FINDING_LEVELS; level-- > 0;) {
        for (size_t i = 0; i < f->n; i++) {
            if (f->items[i].level == (enum finding_level)level)
                show_doctor_write(&w, &f->items[i]);
        }
    }
    jwrite_array_end(&w);
    jwrite_object_end(&w);
}
