/*
 * Prints the table of top. It has one column for each card index, one for memory on no card, the
 * node's sum, and below the cluster's sum. A node without an index has "-" there. If there are more
 * indices than columns, the last ones are left out, and a line says so.
 *
 * The default table of top has at most WIDTH_MAX columns. If it would have more, names are cut in
 * their middle, because node names of some clouds differ at their beginning and those of others at
 * their end. If that is not enough, cells have percentages, and at last indices are left out.
 */
#include "kubectl/show.h"

#include "kubectl/order.h"
#include "kubectl/show_cell.h"
#include "report/limit.h"

/* The other columns: the name, memory on no card, the sum, and those of -o wide. */
#define OTHER_COLUMNS 14
#define INDICES_MAX   (LIMIT_TABLE_COLUMNS - OTHER_COLUMNS)

/* The widest default table, and the shortest name in it, in characters. */
#define WIDTH_MAX 100
#define NAME_MIN  20
#define GAP       3 /* between columns */

#define ELLIPSIS STR("\xe2\x80\xa6")

struct indices {
    int64_t ids[INDICES_MAX];
    size_t n;
    bool unplaced; /* some node has pods without a card */
    bool more;     /* there are more indices than columns */
};

static void show_add_index(struct indices *x, int64_t id)
{
    size_t at = 0;
    while (at < x->n && x->ids[at] < id)
        at++;
    if (at < x->n && x->ids[at] == id)
        return;
    x->more = x->more || x->n == INDICES_MAX;
    if (at == INDICES_MAX)
        return;
    x->n = MIN_OF(x->n + 1, (size_t)INDICES_MAX);
    memmove(&x->ids[at + 1], &x->ids[at], (x->n - at - 1) * sizeof(x->ids[0]));
    x->ids[at] = id;
}

static void show_find_indices(const struct figures *f, struct indices *ret)
{
    *ret = (struct indices){.n = 0};
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->nodes[i].n_cards; k++) {
            if (f->nodes[i].cards[k].id < 0)
                ret->unplaced = true;
            else
                show_add_index(ret, f->nodes[i].cards[k].id);
        }
    }
}

static const struct figures_card *show_card_of(const struct figures_node *n, int64_t id)
{
    for (size_t i = 0; i < n->n_cards; i++) {
        if (n->cards[i].id == id)
            return &n->cards[i];
    }
    return NULL;
}

/* How the table of top is laid out. */
struct layout {
    bool wide;     /* with more columns */
    bool gpushare; /* with gpushare's heads */
    bool percent;  /* a card's usage in percent, not as used/total */
    bool measured; /* wide: with what is really used */
    size_t name;   /* names are cut to this width */
};

static void show_top_share(struct buf *out, const struct figures_card *c, const struct layout *l)
{
    if (c == NULL)
        buf_putc(out, '-');
    else if (l->percent)
        buf_printf(out, "%lld%%", (long long)show_cell_percent(c->used, c->total));
    else
        buf_printf(out, "%lld/%lld", (long long)c->used, (long long)c->total);
}

static size_t show_top_name_width(const struct figures *f, struct arena *a)
{
    size_t width = STR("NAME").n;
    for (size_t i = 0; i < f->n; i++)
        width = MAX_OF(width, text_width(text_printable(f->nodes[i].name, a)));
    return width;
}

/* The width of all columns behind the name, with the gaps before them. */
static size_t show_top_width(const struct figures *f, const struct indices *x,
                             const struct layout *l)
{
    char bytes[64];
    struct buf b = BUF_ON(bytes);
    size_t sum = 0;
    size_t width = STR("MEMORY(GiB)").n;
    size_t no_card = STR("NO CARD").n;
    for (size_t k = 0; k < x->n; k++) {
        buf_clear(&b, SIZE_MAX);
        buf_printf(&b, "GPU%lld", (long long)x->ids[k]);
        size_t widest = b.n;
        for (size_t i = 0; i < f->n; i++) {
            buf_clear(&b, SIZE_MAX);
            show_top_share(&b, show_card_of(&f->nodes[i], x->ids[k]), l);
            widest = MAX_OF(widest, b.n);
        }
        sum += GAP + widest;
    }
    for (size_t i = 0; i < f->n; i++) {
        buf_clear(&b, SIZE_MAX);
        buf_printf(&b, "%lld/%lld", (long long)f->nodes[i].used, (long long)f->nodes[i].total);
        width = MAX_OF(width, b.n);
        const struct figures_card *none = show_card_of(&f->nodes[i], -1);
        buf_clear(&b, SIZE_MAX);
        buf_printf(&b, "%lld", none == NULL ? 0 : (long long)none->used);
        no_card = MAX_OF(no_card, b.n);
    }
    return sum + GAP + width + (x->unplaced ? GAP + no_card : 0);
}

/* Chooses the layout, and leaves indices out if there is no other way. */
static void show_top_fit(const struct figures *f, struct indices *x, struct layout *l,
                         struct arena *a)
{
    size_t name = show_top_name_width(f, a);
    size_t least = MIN_OF(name, (size_t)NAME_MIN);
    size_t width = show_top_width(f, x, l);
    if (width + least > WIDTH_MAX) {
        l->percent = true;
        width = show_top_width(f, x, l);
    }
    while (width + least > WIDTH_MAX && x->n > 0) {
        x->n--;
        x->more = true;
        width = show_top_width(f, x, l);
    }
    l->name = MIN_OF(name, width + least > WIDTH_MAX ? least : WIDTH_MAX - width);
}

/* The first n characters of printable text. */
static struct str show_characters(struct str printable, size_t n)
{
    size_t at = 0;
    while (at < printable.n && n > 0) {
        uint32_t rune = 0;
        at += MAX_OF(str_utf8(str_skip(printable, at), &rune), (size_t)1);
        n--;
    }
    return (struct str){printable.p, at};
}

static struct str show_cut(struct str text, size_t width, struct arena *a)
{
    struct str whole = text_printable(text, a);
    size_t characters = text_width(whole);
    struct buf b;
    if (characters <= width)
        return whole;
    size_t head = width / 2;
    struct str dropped = show_characters(whole, characters - (width - head - 1));
    buf_init(&b, whole.n + ELLIPSIS.n);
    buf_put(&b, show_characters(whole, head));
    buf_put(&b, ELLIPSIS);
    buf_put(&b, str_skip(whole, dropped.n));
    return arena_keep(a, &b);
}

static void show_top_columns(struct table *t, const struct indices *x, const char *unit,
                             const struct layout *l)
{
    bool full = l->wide || l->gpushare;
    char text[64];
    struct buf b = BUF_ON(text);
    table_column(t, STR("NAME"), false);
    for (size_t i = 0; i < x->n; i++) {
        buf_clear(&b, SIZE_MAX);
        buf_printf(&b, "GPU%lld%s", (long long)x->ids[i], full ? "(Allocated/Total)" : "");
        table_column(t, buf_str(&b), false);
    }
    if (x->unplaced)
        table_column(t, full ? STR("PENDING(Allocated)") : STR("NO CARD"), false);
    buf_clear(&b, SIZE_MAX);
    buf_printf(&b, "%s(%s)", full ? "GPU Memory" : "MEMORY", unit);
    table_column(t, buf_str(&b), false);
    if (!l->wide)
        return;
    table_column(t, STR("USED"), true);
    table_column(t, STR("FREE"), true);
    table_column(t, STR("LARGEST"), true);
    table_column(t, STR("PODS"), true);
    if (l->measured) {
        table_column(t, STR("REALLY(MiB)"), true);
        table_column(t, STR("BUSY"), true);
    }
    table_column(t, STR("MODEL"), false);
    table_column(t, STR("POOL"), false);
    table_column(t, STR("STATE"), false);
}

struct sums {
    int64_t free;
    int64_t largest; /* free on one card */
    size_t pods;
    size_t cards; /* without the entry for pods on no card */
    size_t bad;   /* unusable cards */
    struct str model;
    bool models;      /* there are several models */
    int64_t used_mib; /* of the cards of which it is known; -1: of none */
    int64_t size_mib;
    int64_t busy; /* sum of their percentages */
    size_t n_busy;
};

/* Whether the pod is also on an earlier card of the node: a pod on several cards counts once. All
 * pods in one card's list are different. */
static bool show_is_counted(const struct figures_node *n, size_t card, const struct figures_pod *p)
{
    for (size_t i = 0; i < card; i++) {
        for (size_t k = 0; k < n->cards[i].n_pods; k++) {
            const struct figures_pod *q = &n->cards[i].pods[k];
            if (str_eq(p->name, q->name) && str_eq(p->namespace, q->namespace))
                return true;
        }
    }
    return false;
}

static void show_sum_measured(const struct figures_card *c, struct sums *s)
{
    if (c->used_mib >= 0 && c->size_mib >= 0) {
        s->used_mib = MAX_OF(s->used_mib, (int64_t)0) + c->used_mib;
        s->size_mib = MAX_OF(s->size_mib, (int64_t)0) + c->size_mib;
    }
    if (c->busy >= 0) {
        s->busy += c->busy;
        s->n_busy++;
    }
}

static void show_sum_up(const struct figures_node *n, struct sums *ret)
{
    *ret = (struct sums){.used_mib = -1, .size_mib = -1};
    for (size_t i = 0; i < n->n_cards; i++) {
        const struct figures_card *c = &n->cards[i];
        ret->free += c->free;
        show_sum_measured(c, ret);
        ret->largest = MAX_OF(ret->largest, show_cell_free(n, c));
        ret->cards += c->id >= 0 ? 1 : 0;
        ret->bad += c->id >= 0 && !show_cell_is_ok(c->state) ? 1 : 0;
        for (size_t k = 0; k < c->n_pods; k++)
            ret->pods += show_is_counted(n, i, &c->pods[k]) ? 0 : 1;
        if (c->model.n > 0 && ret->model.n > 0 && !str_eq(c->model, ret->model))
            ret->models = true;
        if (c->model.n > 0)
            ret->model = c->model;
    }
    ret->free = MIN_OF(ret->free, n->free);
}

static void show_top_more(struct table *t, const struct figures_node *n, bool measured)
{
    struct sums s;
    show_sum_up(n, &s);
    table_printf(t, TINT_NONE, "%lld%%", (long long)show_cell_percent(n->used, n->total));
    table_printf(t, TINT_NONE, "%lld", (long long)s.free);
    table_printf(t, TINT_NONE, "%lld", (long long)s.largest);
    table_printf(t, TINT_NONE, "%zu", s.pods);
    if (measured) {
        show_cell_measured(t, s.used_mib, s.size_mib);
        show_cell_busy(t, s.n_busy == 0 ? -1 : s.busy / (int64_t)s.n_busy);
    }
    show_cell_text(t, s.models ? STR("several") : s.model);
    show_cell_text(t, n->pool);
    if (n->fault.n > 0)
        table_cell(t, n->fault, TINT_BAD);
    else if (s.bad > 0)
        table_printf(t, TINT_WARN, "%zu of %zu cards closed", s.bad, s.cards);
    else
        table_cell(t, STR("ok"), TINT_GOOD);
}

static void show_top_card(struct table *t, const struct figures_card *c, const struct layout *l)
{
    char bytes[64];
    struct buf b = BUF_ON(bytes);
    show_top_share(&b, c, l);
    table_cell(t, buf_str(&b),
               c == NULL                   ? TINT_DIM
               : show_cell_is_ok(c->state) ? show_cell_tint(c->used, c->total)
                                           : TINT_BAD);
}

static void show_top_row(struct table *t, const struct figures_node *n, const struct indices *x,
                         const struct layout *l)
{
    table_cell(t, show_cut(n->name, l->name, t->arena), n->fault.n > 0 ? TINT_BAD : TINT_NONE);
    for (size_t i = 0; i < x->n; i++)
        show_top_card(t, show_card_of(n, x->ids[i]), l);
    if (x->unplaced) {
        const struct figures_card *c = show_card_of(n, -1);
        if (c == NULL)
            table_cell(t, STR("-"), TINT_DIM);
        else
            table_printf(t, TINT_WARN, "%lld", (long long)c->used);
    }
    table_printf(t, show_cell_tint(n->used, n->total), "%lld/%lld", (long long)n->used,
                 (long long)n->total);
    if (l->wide)
        show_top_more(t, n, l->measured);
}

static void show_put_totals(const struct figures *f, bool color, struct buf *out)
{
    int64_t used = 0;
    int64_t total = 0;
    for (size_t i = 0; i < f->n; i++) {
        used += f->nodes[i].used;
        total += f->nodes[i].total;
    }
    buf_put(out, STR("------------------------------------------------------------\n"
                     "Allocated/Total GPU Memory In Cluster:\n"));
    tint_begin(out, show_cell_tint(used, total), color);
    buf_printf(out, "%lld/%lld (%lld%%)", (long long)used, (long long)total,
               (long long)show_cell_percent(used, total));
    tint_end(out, show_cell_tint(used, total), color);
    buf_putc(out, '\n');
}

/* The nodes in the order of --sort-by, as in show_cards_key. NULL: the arena failed. */
static struct order_row *show_sort(const struct figures *f, enum kubectl_sort by, struct arena *a)
{
    struct order_row *rows = order_rows(a, f->n);
    for (size_t i = 0; rows != NULL && i < f->n; i++) {
        struct sums s;
        show_sum_up(&f->nodes[i], &s);
        if (by == KUBECTL_SORT_USED)
            rows[i].key = f->nodes[i].used;
        else if (by == KUBECTL_SORT_FREE)
            rows[i].key = s.free;
        else if (by == KUBECTL_SORT_PODS)
            rows[i].key = (int64_t)s.pods;
        else if (by == KUBECTL_SORT_NAME)
            rows[i].text = f->nodes[i].name;
    }
    if (rows != NULL)
        order_sort(rows, f->n);
    return rows;
}

static enum errc show_write_nodes(const struct figures *f, const struct order_row *rows,
                                  struct kubectl_look look, struct arena *a, struct buf *out,
                                  struct err *e)
{
    struct indices x;
    struct table t;
    struct layout l = {
        .wide = look.wide, .gpushare = look.gpushare, .measured = f->measured, .name = SIZE_MAX};
    show_find_indices(f, &x);
    if (look.heads && !look.wide && !look.gpushare)
        show_top_fit(f, &x, &l, a);
    table_init(&t, a);
    show_top_columns(&t, &x, figures_unit(f), &l);
    for (size_t i = 0; i < f->n; i++)
        show_top_row(&t, &f->nodes[rows[i].at], &x, &l);
    table_write(&t, look.heads, look.color, out);
    if (look.heads && x.more)
        buf_put(out, STR("Some cards are in no column: see kubectl cardpack cards.\n"));
    if (look.heads)
        show_put_totals(f, look.color, out);
    return show_cell_finish(&t, e);
}

enum errc kubectl_show_top(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr)
{
    struct figures f;
    enum errc code = figures_read(answer, a, &f, reterr);
    if (code != OK)
        return code;
    const struct order_row *rows = show_sort(&f, look.sort, a);
    if (rows == NULL)
        return err_set(reterr, arena_fault(a), "there are too many nodes");
    if (!look.names)
        return show_write_nodes(&f, rows, look, a, out, reterr);
    for (size_t i = 0; i < f.n; i++)
        buf_printf(out, "node/%.*s\n", STR_ARG(text_printable(f.nodes[rows[i].at].name, a)));
    return OK;
}

enum errc kubectl_answer_error(struct str answer, struct arena *a, struct str *ret,
                               struct err *reterr)
{
    struct figures f;
    enum errc code = figures_read(answer, a, &f, reterr);
    if (code == OK)
        *ret = f.error;
    return code;
}
