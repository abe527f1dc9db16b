/*
 * Prints the answers of explain and fit: a sentence, a table, and what stops the next replica. With
 * --no-headers only the rows of the table are printed, for scripts.
 */
#include "kubectl/show.h"

#include "objects/limit.h"
#include "report/table.h"
#include "json/jread.h"

struct place {
    struct str text; /* "0:8 1:8", card and memory */
};

struct verdict_card {
    int64_t card;
    bool fits;
    struct str reason;
};

struct verdict_node {
    struct str name;
    bool fits;
    bool is_small; /* its usable cards are too small, also without pods */
    struct str reason;
    struct str cost; /* what a policy with costs says of the node: a number; absent: nothing */
    struct str why;  /* the same as a sentence */
    struct place place;
    struct verdict_card *cards;
    size_t n_cards;
};

struct explained {
    struct str namespace;
    struct str name;
    struct str state;
    struct str node;
    struct str nominated;
    struct str request;
    struct str error;
    struct str since;   /* of the condition PodScheduled, as the next one */
    struct str message; /* absent: the scheduler has not refused the pod */
    bool holds;         /* it holds cards, or memory of its node without a card: `place` */
    struct place place;
    int64_t nodes;
    int64_t fit;
    struct verdict_node *verdicts;
    size_t n_verdicts;
    size_t cap;
    const char *costs; /* the heading of the costs; NULL: there are none */
    struct table table;
    bool wide;
};

struct fitted {
    struct str request;
    struct str error;
    int64_t replicas;
    int64_t fit;
    struct str stopped; /* absent: all replicas fit */
    struct table table;
    bool wide;
    int64_t n; /* rows */
};

/* [{"card", "memory", "compute", "container"}] as "0:8 1:8 (30%)" */
static struct place show_explain_read_place(struct jread *r)
{
    struct buf b;
    struct str key;
    buf_init(&b, LIMIT_ALLOCATION_BYTES);
    jread_array (r) {
        int64_t card = 0;
        int64_t memory = 0;
        int64_t compute = 0;
        jread_object (r, key) {
            if (str_eq(key, STR("card")))
                card = jread_i64(r);
            else if (str_eq(key, STR("memory")))
                memory = jread_i64(r);
            else if (str_eq(key, STR("compute")))
                compute = jread_i64(r);
            else
                jread_skip(r);
        }
        buf_printf(&b, "%s%lld:%lld", b.n == 0 ? "" : " ", (long long)card, (long long)memory);
        if (compute > 0)
            buf_printf(&b, "(%lld%%)", (long long)compute);
    }
    bool none = b.n == 0;
    struct str text = arena_keep(r->arena, &b);
    return (struct place){.text = none ? STR_NULL : text};
}

static enum errc show_explain_no_answer(struct jread *r, bool complete, struct err *e)
{
    if (jread_finish(r, e) != OK)
        return err_wrap(e, "the answer is none of cardpack's");
    return complete ? OK : err_set(e, ERR_SYNTAX, "the answer is none of cardpack's");
}

/* ---- explain ---- */

static void show_explain_read_card(struct jread *r, struct verdict_card *c)
{
    struct str key;
    *c = (struct verdict_card){.card = 0};
    jread_object (r, key) {
        if (str_eq(key, STR("card")))
            c->card = jread_i64(r);
        else if (str_eq(key, STR("fits")))
            c->fits = jread_bool(r);
        else if (str_eq(key, STR("reason")))
            c->reason = jread_str(r);
        else
            jread_skip(r);
    }
}

static void show_explain_read_cards(struct jread *r, struct verdict_node *n)
{
    size_t cap = 0;
    jread_array (r) {
        struct verdict_card c;
        show_explain_read_card(r, &c);
        struct verdict_card *cards = arena_grow(r->arena, n->cards, n->n_cards, &cap, sizeof(c));
        if (cards == NULL) {
            jread_fail(r, ERR_LIMIT, "too many");
            continue;
        }
        n->cards = cards;
        cards[n->n_cards++] = c;
    }
}

static void show_explain_put_yes(struct table *t, bool fits)
{
    table_cell(t, fits ? STR("yes") : STR("no"), fits ? TINT_GOOD : TINT_BAD);
}

static void show_explain_put_place(struct table *t, const struct place *p)
{
    table_cell(t, p->text.n > 0 ? p->text : STR("-"), p->text.n > 0 ? TINT_NONE : TINT_DIM);
}

static struct str show_explain_reason_of(const struct verdict_node *n)
{
    return n->why.n > 0 ? n->why : n->reason;
}

static void show_explain_explain_row(struct explained *x, const struct verdict_node *n)
{
    struct table *t = &x->table;
    table_cell(t, n->name, TINT_NONE);
    if (x->wide)
        table_cell(t, STR_NULL, TINT_NONE);
    show_explain_put_yes(t, n->fits);
    show_explain_put_place(t, &n->place);
    if (x->costs != NULL)
        table_cell(t, n->cost, TINT_NONE);
    if (n->is_small)
        table_printf(t, TINT_NONE, "%.*s; its usable cards are too small even when empty",
                     STR_ARG(n->reason));
    else
        table_cell(t, show_explain_reason_of(n), TINT_NONE);
    for (size_t i = 0; x->wide && i < n->n_cards; i++) {
        const struct verdict_card *c = &n->cards[i];
        table_cell(t, n->name, TINT_DIM);
        table_printf(t, TINT_NONE, "%lld", (long long)c->card);
        show_explain_put_yes(t, c->fits);
        table_cell(t, STR_NULL, TINT_NONE);
        if (x->costs != NULL)
            table_cell(t, STR_NULL, TINT_NONE);
        table_cell(t, c->reason, TINT_NONE);
    }
}

/* The daemon prints six decimals of a cost; three of them are shown. */
static struct str show_explain_read_cost(struct jread *r, struct explained *x, bool scores)
{
    struct str number = jread_raw(r);
    size_t point = 0;
    x->costs = scores ? "SCORE" : "COST";
    while (point < number.n && number.p[point] != '.')
        point++;
    number.n = MIN_OF(number.n, point + 4);
    return number;
}

static void show_explain_read_verdict(struct jread *r, struct explained *x)
{
    struct verdict_node n = {.n_cards = 0};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("node")))
            n.name = jread_str(r);
        else if (str_eq(key, STR("fits")))
            n.fits = jread_bool(r);
        else if (str_eq(key, STR("verdict")))
            n.is_small = str_eq(jread_str(r), STR("too_large"));
        else if (str_eq(key, STR("reason")))
            n.reason = jread_str(r);
        else if (str_eq(key, STR("cost")) || str_eq(key, STR("score")))
            n.cost = show_explain_read_cost(r, x, str_eq(key, STR("score")));
        else if (str_eq(key, STR("why")))
            n.why = jread_str(r);
        else if (str_eq(key, STR("placement")))
            n.place = show_explain_read_place(r);
        else if (str_eq(key, STR("cards")))
            show_explain_read_cards(r, &n);
        else
            jread_skip(r);
    }
    struct verdict_node *verdicts =
        arena_grow(r->arena, x->verdicts, x->n_verdicts, &x->cap, sizeof(n));
    if (verdicts == NULL) {
        jread_fail(r, ERR_LIMIT, "too many");
        return;
    }
    x->verdicts = verdicts;
    verdicts[x->n_verdicts++] = n;
}

/* The condition PodScheduled. A message counts only if the scheduler has refused the pod. */
static void show_explain_read_condition(struct jread *r, struct explained *x)
{
    struct str key;
    struct str status = STR_NULL;
    struct str reason = STR_NULL;
    struct str message = STR_NULL;
    jread_object (r, key) {
        if (str_eq(key, STR("status")))
            status = jread_str(r);
        else if (str_eq(key, STR("reason")))
            reason = jread_str(r);
        else if (str_eq(key, STR("message")))
            message = jread_str(r);
        else if (str_eq(key, STR("since")))
            x->since = jread_str(r);
        else
            jread_skip(r);
    }
    if (!str_eq(status, STR("True")))
        x->message = message.n > 0 ? message : reason;
}

static void show_explain_read_pod(struct jread *r, struct explained *x)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("namespace"))) {
            x->namespace = jread_str(r);
        } else if (str_eq(key, STR("name"))) {
            x->name = jread_str(r);
        } else if (str_eq(key, STR("state"))) {
            x->state = jread_str(r);
        } else if (str_eq(key, STR("node"))) {
            x->node = jread_str(r);
        } else if (str_eq(key, STR("nominated"))) {
            x->nominated = jread_str(r);
        } else if (str_eq(key, STR("placement"))) {
            x->holds = true;
            x->place = show_explain_read_place(r);
        } else if (str_eq(key, STR("condition"))) {
            show_explain_read_condition(r, x);
        } else {
            jread_skip(r);
        }
    }
}

static enum errc show_explain_read_explained(struct str answer, struct arena *a,
                                             struct explained *x, struct err *e)
{
    struct jread r;
    struct str key;
    bool has_verdicts = false;
    jread_init(&r, answer, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        if (str_eq(key, STR("pod"))) {
            show_explain_read_pod(&r, x);
        } else if (str_eq(key, STR("request"))) {
            x->request = jread_member(&r, STR("text"));
        } else if (str_eq(key, STR("error"))) {
            x->error = jread_str(&r);
        } else if (str_eq(key, STR("nodes"))) {
            x->nodes = jread_i64(&r);
        } else if (str_eq(key, STR("fit"))) {
            x->fit = jread_i64(&r);
        } else if (str_eq(key, STR("verdicts"))) {
            has_verdicts = true;
            jread_array (&r) {
                show_explain_read_verdict(&r, x);
            }
        } else {
            jread_skip(&r);
        }
    }
    return show_explain_no_answer(&r, has_verdicts, e);
}

/* "pod ns/train, pending, asks for 8: it fits on 1 of 2 nodes" */
static void show_explain_put_sentence(const struct explained *x, struct arena *a, struct buf *out)
{
    bool placed = x->node.n > 0;
    bool is_named = x->name.n > 0;
    buf_printf(out, "pod %.*s%s%.*s", STR_ARG(text_printable(x->namespace, a)), is_named ? "/" : "",
               STR_ARG(text_printable(is_named ? x->name : STR(""), a)));
    if (!str_eq(x->state, STR("unknown")))
        buf_printf(out, ", %.*s", STR_ARG(text_printable(x->state, a)));
    if (placed)
        buf_printf(out, " on node %.*s", STR_ARG(text_printable(x->node, a)));
    if (placed && x->since.n > 0 && str_eq(x->state, STR("bound")))
        buf_printf(out, " since %.*s", STR_ARG(text_printable(x->since, a)));
    if (x->nominated.n > 0)
        buf_printf(out, ", nominated for %.*s", STR_ARG(text_printable(x->nominated, a)));
    if (x->error.n > 0) {
        buf_printf(out, ": its request can't be read: %.*s\n",
                   STR_ARG(text_printable(x->error, a)));
        return;
    }
    buf_printf(out, ", asks for %.*s", STR_ARG(text_printable(x->request, a)));
    if (!placed)
        buf_printf(out, ": it fits on %lld of %lld node%s", (long long)x->fit, (long long)x->nodes,
                   x->nodes == 1 ? "" : "s");
    buf_putc(out, '\n');
}

/* Where a pod is that has a node already: where it would fit does not matter. */
static void show_explain_fill_held(struct explained *x)
{
    if (!x->holds)
        return;
    table_column(&x->table, STR("NODE"), false);
    table_column(&x->table, STR("PLACE"), false);
    table_cell(&x->table, x->node, TINT_NONE);
    show_explain_put_place(&x->table, &x->place);
}

static void show_explain_fill_verdicts(struct explained *x)
{
    table_column(&x->table, STR("NODE"), false);
    if (x->wide)
        table_column(&x->table, STR("CARD"), true);
    table_column(&x->table, STR("FITS"), false);
    table_column(&x->table, STR("PLACE"), false);
    if (x->costs != NULL)
        table_column(&x->table, str_of(x->costs), true);
    table_column(&x->table, STR("REASON"), false);
    for (size_t i = 0; i < x->n_verdicts; i++)
        show_explain_explain_row(x, &x->verdicts[i]);
}

/* If no node is feasible: whether no card is large enough, and that the table leaves out the cards.
 */
static void show_explain_put_hint(const struct explained *x, struct buf *out)
{
    size_t with_cards = 0;
    size_t small = 0;
    for (size_t i = 0; i < x->n_verdicts; i++) {
        with_cards += x->verdicts[i].n_cards > 0 ? 1 : 0;
        small += x->verdicts[i].is_small ? 1 : 0;
    }
    if (with_cards == 0 || x->fit > 0 || x->node.n > 0 || x->error.n > 0)
        return;
    const char *why = small < with_cards ? "" : ": the usable cards of every node are too small";
    if (!x->wide)
        buf_printf(out, "no node is feasible%s; -o wide also has the reason of each card\n", why);
    else if (why[0] != '\0')
        buf_printf(out, "no node is feasible%s\n", why);
}

/* The nodes that fit; for a pod that has a node: that node. */
static void show_explain_put_names(const struct explained *x, struct arena *a, struct buf *out)
{
    if (x->node.n > 0)
        buf_printf(out, "node/%.*s\n", STR_ARG(text_printable(x->node, a)));
    for (size_t i = 0; x->node.n == 0 && i < x->n_verdicts; i++) {
        if (x->verdicts[i].fits)
            buf_printf(out, "node/%.*s\n", STR_ARG(text_printable(x->verdicts[i].name, a)));
    }
}

enum errc kubectl_show_explain(struct str answer, struct kubectl_look look, struct arena *a,
                               struct buf *out, struct err *reterr)
{
    struct explained x = {.wide = look.wide};
    table_init(&x.table, a);
    enum errc code = show_explain_read_explained(answer, a, &x, reterr);
    if (code != OK)
        return code;
    if (look.names) {
        show_explain_put_names(&x, a, out);
        return OK;
    }
    if (look.heads)
        show_explain_put_sentence(&x, a, out);
    if (x.node.n > 0)
        show_explain_fill_held(&x);
    else if (x.error.n == 0) /* with an error every node has the same reason */
        show_explain_fill_verdicts(&x);
    table_write(&x.table, look.heads, look.color, out);
    if (look.heads)
        show_explain_put_hint(&x, out);
    if (look.heads && x.node.n == 0 && x.message.n > 0)
        buf_printf(out, "the scheduler says: %.*s\n", STR_ARG(text_printable(x.message, a)));
    return arena_failed(a) ? err_set(reterr, arena_fault(a), "the table is too large") : OK;
}

/* ---- fit ---- */

/* Reads one entry of "nodes" or "placements": one row for a node or for a replica. */
static void show_explain_read_site(struct jread *r, struct fitted *f)
{
    struct str key;
    struct str node = STR_NULL;
    struct place place = {.text = STR_NULL};
    int64_t replicas = 0;
    jread_object (r, key) {
        if (str_eq(key, STR("node")))
            node = jread_str(r);
        else if (str_eq(key, STR("replicas")))
            replicas = jread_i64(r);
        else if (str_eq(key, STR("placement")))
            place = show_explain_read_place(r);
        else
            jread_skip(r);
    }
    if (f->wide)
        table_printf(&f->table, TINT_NONE, "%lld", (long long)++f->n);
    table_cell(&f->table, node, TINT_NONE);
    if (f->wide)
        table_cell(&f->table, place.text.n > 0 ? place.text : STR("-"), TINT_NONE);
    else
        table_printf(&f->table, TINT_NONE, "%lld", (long long)replicas);
}

static enum errc show_explain_read_fitted(struct str answer, struct arena *a, struct fitted *f,
                                          struct err *e)
{
    struct jread r;
    struct str key;
    struct str rows = f->wide ? STR("placements") : STR("nodes");
    bool has_rows = false;
    jread_init(&r, answer, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        if (str_eq(key, rows)) {
            has_rows = true;
            jread_array (&r) {
                show_explain_read_site(&r, f);
            }
        } else if (str_eq(key, STR("request"))) {
            f->request = jread_str(&r);
        } else if (str_eq(key, STR("error"))) {
            f->error = jread_str(&r);
        } else if (str_eq(key, STR("replicas"))) {
            f->replicas = jread_i64(&r);
        } else if (str_eq(key, STR("fit"))) {
            f->fit = jread_i64(&r);
        } else if (str_eq(key, STR("stopped"))) {
            f->stopped = jread_member(&r, STR("message"));
        } else {
            jread_skip(&r);
        }
    }
    return show_explain_no_answer(&r, has_rows, e);
}

enum errc kubectl_show_fit(struct str answer, struct kubectl_look look, struct arena *a,
                           struct buf *out, struct err *reterr)
{
    struct fitted f = {.wide = look.wide};
    table_init(&f.table, a);
    if (look.wide)
        table_column(&f.table, STR("REPLICA"), true);
    table_column(&f.table, STR("NODE"), false);
    table_column(&f.table, look.wide ? STR("PLACE") : STR("REPLICAS"), !look.wide);
    enum errc code = show_explain_read_fitted(answer, a, &f, reterr);
    if (code != OK)
        return code;
    bool all = f.fit >= f.replicas;
    enum tint tint = all ? TINT_GOOD : TINT_BAD;
    if (look.heads && f.error.n > 0) {
        buf_printf(out, "the pod's request can't be read: %.*s\n",
                   STR_ARG(text_printable(f.error, a)));
    } else if (look.heads) {
        tint_begin(out, tint, look.color);
        buf_printf(out, "%lld of %lld replica%s fit%s", (long long)f.fit, (long long)f.replicas,
                   f.replicas == 1 ? "" : "s", f.replicas == 1 && f.fit == 1 ? "s" : "");
        tint_end(out, tint, look.color);
        buf_printf(out, ", each asks for %.*s\n", STR_ARG(text_printable(f.request, a)));
    }
    if (f.table.n > 0)
        table_write(&f.table, look.heads, look.color, out);
    if (look.heads && f.stopped.n > 0 && f.error.n == 0)
        buf_printf(out, "the next one is stopped by: %.*s\n",
                   STR_ARG(text_printable(f.stopped, a)));
    return arena_failed(a) ? err_set(reterr, arena_fault(a), "the table is too large") : OK;
}

/* ---- the exit status ---- */

enum errc kubectl_answer_fits(struct str answer, enum kubectl_command c, struct arena *a, bool *ret,
                              struct err *reterr)
{
    struct jread r;
    struct str key;
    int64_t fit = -1;
    int64_t replicas = 1;
    struct explained x = {.fit = 0};
    jread_init(&r, answer, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        if (str_eq(key, STR("fit")))
            fit = jread_i64(&r);
        else if (str_eq(key, STR("replicas")) && c == KUBECTL_FIT)
            replicas = jread_i64(&r);
        else if (str_eq(key, STR("pod")) && c == KUBECTL_EXPLAIN)
            show_explain_read_pod(&r, &x);
        else
            jread_skip(&r);
    }
    enum errc code = show_explain_no_answer(&r, fit >= 0, reterr);
    if (code == OK)
        *ret = fit >= replicas || x.node.n > 0;
    return code;
}
