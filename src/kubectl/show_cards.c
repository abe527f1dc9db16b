/* Prints the table of cards, with the faults of nodes below it. */
#include "kubectl/show.h"

#include "base/limit.h"
#include "kubectl/order.h"
#include "kubectl/show_cell.h"

/* Pods that a row of cards names, without -o wide. */
#define PODS_NAMED 3

static void show_cards_put_pods(struct table *t, const struct figures_card *c, bool is_wide,
                                struct arena *a)
{
    struct buf b;
    buf_init(&b, LIMIT_OBJECT_BYTES);
    for (size_t i = 0; i < c->n_pods; i++) {
        const struct figures_pod *p = &c->pods[i];
        if (!is_wide && i == PODS_NAMED) {
            buf_printf(&b, ", %zu more", c->n_pods - i);
            break;
        }
        buf_printf(&b, "%s%.*s/%.*s (%lld", i == 0 ? "" : ", ", STR_ARG(p->namespace),
                   STR_ARG(p->name), (long long)p->used);
        if (is_wide && p->used_mib >= 0)
            buf_printf(&b, ", really %lld MiB", (long long)p->used_mib);
        buf_put(&b, p->exceeds ? STR(", more than its share)") : STR(")"));
    }
    show_cell_text(t, arena_keep(a, &b));
}

static void show_cards_columns(struct table *t, const char *unit, bool is_wide, bool measured)
{
    char text[32];
    struct buf b = BUF_ON(text);
    buf_printf(&b, "SIZE(%s)", unit);
    table_column(t, STR("NODE"), false);
    table_column(t, STR("CARD"), true);
    table_column(t, buf_str(&b), true);
    table_column(t, STR("USED"), true);
    table_column(t, STR("FREE"), true);
    table_column(t, STR("COMPUTE"), true);
    table_column(t, STR("STATE"), false);
    table_column(t, STR("MODEL"), false);
    table_column(t, STR("UUID"), false);
    if (is_wide) {
        table_column(t, STR("PROFILE"), false);
        table_column(t, STR("NUMA"), true);
        table_column(t, STR("UNUSED"), true);
    }
    if (is_wide && measured) {
        table_column(t, STR("REALLY(MiB)"), true);
        table_column(t, STR("BUSY"), true);
    }
    table_column(t, STR("PODS"), false);
}

static void show_cards_row(struct table *t, const struct figures_node *n,
                           const struct figures_card *c, bool is_wide, bool measured)
{
    bool is_card = c->id >= 0;
    table_cell(t, n->name, TINT_NONE);
    if (is_card)
        table_printf(t, TINT_NONE, "%lld", (long long)c->id);
    else
        table_cell(t, STR("-"), TINT_DIM);
    table_printf(t, TINT_NONE, "%lld", (long long)c->total);
    table_printf(t, is_card ? show_cell_tint(c->used, c->total) : TINT_WARN, "%lld",
                 (long long)c->used);
    table_printf(t, show_cell_free(n, c) < c->free ? TINT_WARN : TINT_NONE, "%lld",
                 (long long)show_cell_free(n, c));
    table_printf(t, TINT_NONE, "%lld%%", (long long)c->compute);
    table_cell(t, is_card ? c->state : STR("no card"),
               is_card && show_cell_is_ok(c->state) ? TINT_GOOD : TINT_BAD);
    show_cell_text(t, c->model);
    show_cell_text(t, c->uuid);
    if (is_wide) {
        show_cell_text(t, c->profile);
        if (c->numa >= 0)
            table_printf(t, TINT_NONE, "%lld", (long long)c->numa);
        else
            table_cell(t, STR("-"), TINT_DIM);
        table_printf(t, TINT_NONE, "%lld", (long long)c->free);
    }
    if (is_wide && measured) {
        show_cell_measured(t, c->used_mib, c->size_mib);
        show_cell_busy(t, c->busy);
    }
    show_cards_put_pods(t, c, is_wide, t->arena);
}

/* Nodes with a fault, and the fault. */
static void show_cards_put_faults(const struct figures *f, struct arena *a, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->nodes[i].fault.n > 0)
            buf_printf(out, "%.*s: %.*s\n", STR_ARG(text_printable(f->nodes[i].name, a)),
                       STR_ARG(text_printable(f->nodes[i].fault, a)));
    }
}

/* Nodes with less free memory than the sum of their cards: pods on no card use some of it, or some
 * of it is not allocatable. */
static void show_cards_put_narrow(const struct figures *f, struct arena *a, struct buf *out)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct figures_node *n = &f->nodes[i];
        int64_t sum = 0;
        for (size_t k = 0; k < n->n_cards; k++)
            sum += n->cards[k].free;
        if (sum > n->free && n->fault.n == 0)
            buf_printf(
                out, "%.*s: its cards have %lld free, of which the node leaves %lld for new pods\n",
                STR_ARG(text_printable(n->name, a)), (long long)sum, (long long)n->free);
    }
}

struct card_row {
    const struct figures_node *node;
    const struct figures_card *card;
};

static size_t show_cards_count(const struct figures *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->nodes[i].n_cards;
    return n;
}

static int64_t show_cards_key(const struct card_row *row, enum kubectl_sort by)
{
    if (by == KUBECTL_SORT_USED)
        return row->card->used;
    if (by == KUBECTL_SORT_FREE)
        return show_cell_free(row->node, row->card);
    return by == KUBECTL_SORT_PODS ? (int64_t)row->card->n_pods : 0;
}

/* Adds all cards to the table, in the order of --sort-by. */
static void show_cards_fill(struct table *t, const struct figures *f, struct kubectl_look look)
{
    size_t n = 0;
    struct order_row *order = order_rows(t->arena, show_cards_count(f));
    struct card_row *cards = arena_array(t->arena, show_cards_count(f) + 1, sizeof(*cards));
    if (order == NULL || cards == NULL)
        return;
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->nodes[i].n_cards; k++, n++) {
            cards[n] = (struct card_row){&f->nodes[i], &f->nodes[i].cards[k]};
            order[n].key = show_cards_key(&cards[n], look.sort);
            order[n].text = look.sort == KUBECTL_SORT_NODE ? f->nodes[i].name : STR("");
        }
    }
    order_sort(order, n);
    for (size_t i = 0; i < n; i++)
        show_cards_row(t, cards[order[i].at].node, cards[order[i].at].card, look.wide, f->measured);
}

enum errc kubectl_show_cards(struct str answer, struct kubectl_look look, struct arena *a,
                             struct buf *out, struct err *reterr)
{
    struct figures f;
    struct table t;
    enum errc code = figures_read(answer, a, &f, reterr);
    if (code != OK)
        return code;
    table_init(&t, a);
    show_cards_columns(&t, figures_unit(&f), look.wide, f.measured);
    show_cards_fill(&t, &f, look);
    table_write(&t, look.heads, look.color, out);
    if (look.heads) {
        show_cards_put_narrow(&f, a, out);
        show_cards_put_faults(&f, a, out);
    }
    return show_cell_finish(&t, reterr);
}
