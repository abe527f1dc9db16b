/*
 * A row is an array of entries, one for each slot of the cache: a look-up is one comparison of
 * versions. A slot that is reused needs no care, because no two nodes of a cache have
 * the same version.
 *
 * The figures of a refusal are 200 bytes, but few nodes of a cluster differ in more than the free
 * memory. So an entry has the number of its outcome, and that figure. The strings of an outcome are
 * copies: those of a node go with its next change.
 */
#include "report/evaluation_memo.h"

#include "base/mem.h"
#include "core/place/fit.h"
#include "report/limit.h"

#define OUTCOMES_MIN 8

/* A refusal's text. */
#define TEXT_BYTES 512

static void evaluation_memo_clear_outcomes(struct evaluation_memo *m, struct evaluation_row *row)
{
    for (uint32_t i = 0; i < row->n_outcomes; i++)
        mem_free(row->outcomes[i].owned);
    mem_free(row->outcomes);
    size_t bytes = row->cap_outcomes * sizeof(*row->outcomes);
    m->bytes -= bytes;
    row->bytes -= bytes;
    row->outcomes = NULL;
    row->n_outcomes = row->cap_outcomes = 0;
}

static void evaluation_memo_drop_row(struct evaluation_memo *m, unsigned i)
{
    struct evaluation_row *row = m->rows[i];
    evaluation_memo_clear_outcomes(m, row);
    m->bytes -= row->bytes;
    mem_free(row->entries);
    mem_free(row->request);
    mem_free(row);
    m->rows[i] = m->rows[--m->n_rows];
}

void evaluation_memo_done(struct evaluation_memo *m)
{
    while (m->n_rows > 0)
        evaluation_memo_drop_row(m, m->n_rows - 1);
    assert(m->bytes == 0);
    mem_free(m->seen);
    *m = (struct evaluation_memo){.n_rows = 0};
}

/* Whether there is room for so many bytes more, after the least recently used rows are gone. keep:
 * a row that stays; or NULL. */
static bool evaluation_memo_make_room(struct evaluation_memo *m, size_t bytes,
                                      const struct evaluation_row *keep)
{
    while (m->bytes + bytes > LIMIT_JUDGE_BYTES || (keep == NULL && m->n_rows == EVALUATION_ROWS)) {
        unsigned oldest = EVALUATION_ROWS;
        for (unsigned i = 0; i < m->n_rows; i++) {
            if (m->rows[i] != keep &&
                (oldest == EVALUATION_ROWS || m->rows[i]->asked < m->rows[oldest]->asked))
                oldest = i;
        }
        if (oldest == EVALUATION_ROWS)
            return false;
        evaluation_memo_drop_row(m, oldest);
    }
    return true;
}

static struct evaluation_row *evaluation_memo_add_row(struct evaluation_memo *m,
                                                      const struct request *r, uint64_t hash,
                                                      uint32_t slots)
{
    uint32_t n = slots + slots / 8 + 16; /* room for nodes that come */
    size_t bytes = sizeof(struct evaluation_row) + sizeof(struct request) +
                   n * sizeof(struct evaluation_entry);
    if (!evaluation_memo_make_room(m, bytes, NULL))
        return NULL;
    struct evaluation_row *row = mem_alloc(sizeof(*row));
    struct evaluation_entry *entries = row == NULL ? NULL : mem_alloc(n * sizeof(*entries));
    struct request *copy = entries == NULL ? NULL : request_copy(r);
    if (copy == NULL) {
        mem_free(entries);
        mem_free(row);
        return NULL;
    }
    *row = (struct evaluation_row){
        .request = copy, .hash = hash, .entries = entries, .n_entries = n, .bytes = bytes};
    m->bytes += bytes;
    m->rows[m->n_rows++] = row;
    return row;
}

static bool evaluation_memo_same_scene(const struct evaluation_scene *a,
                                       const struct evaluation_scene *b)
{
    return a->quota == b->quota && a->lesson == b->lesson && a->affinity_held == b->affinity_held;
}

static unsigned evaluation_memo_find(const struct evaluation_memo *m, const struct request *r,
                                     uint64_t hash)
{
    unsigned i = 0;
    while (i < m->n_rows && (m->rows[i]->hash != hash || !request_equal(m->rows[i]->request, r)))
        i++;
    return i;
}

struct evaluation_row *evaluation_memo_row(struct evaluation_memo *m, const struct cache *c,
                                           const struct request *r,
                                           const struct evaluation_scene *scene)
{
    uint64_t hash = request_hash(c->nodes.seed, r);
    unsigned i = evaluation_memo_find(m, r, hash);
    if (i < m->n_rows && m->rows[i]->n_entries < c->end_slot) {
        evaluation_memo_drop_row(m, i);
        i = m->n_rows;
    }
    struct evaluation_row *row =
        i < m->n_rows ? m->rows[i] : evaluation_memo_add_row(m, r, hash, c->end_slot);
    if (row == NULL)
        return NULL;
    if (!evaluation_memo_same_scene(&row->scene, scene)) {
        evaluation_memo_clear_outcomes(m, row);
        memset(row->entries, 0, row->n_entries * sizeof(*row->entries));
        row->scene = *scene;
    }
    row->asked = ++m->asked;
    return row;
}

static const struct evaluation_entry *evaluation_memo_put(struct evaluation_row *row,
                                                          const struct node *n, uint32_t outcome,
                                                          uint64_t figure)
{
    if (n->slot >= row->n_entries || n->version >> 48 != 0)
        return NULL;
    struct evaluation_entry *e = &row->entries[n->slot];
    *e = (struct evaluation_entry){.key = n->version << 16 | outcome, .figure = figure};
    return e;
}

const struct evaluation_entry *evaluate_row_fits(struct evaluation_row *row, const struct node *n,
                                                 uint64_t score)
{
    return evaluation_memo_put(row, n, 0, score);
}

/* The figure of the reason that most nodes have of their own. */
static int64_t *evaluation_memo_own_figure(enum verdict v, struct shortfall *l)
{
    return v == VERDICT_NODE_FULL ? &l->left : &l->free;
}

static bool evaluation_memo_is_outcome(const struct evaluation_outcome *o, enum verdict v,
                                       const struct shortfall *shortfall,
                                       const struct quota_refusal *refusal)
{
    return o->verdict == v && shortfall_equal(&o->shortfall, shortfall) &&
           (o->text.p != NULL) == (refusal != NULL) &&
           (refusal == NULL || quota_refusal_equal(&o->refusal, refusal));
}

static bool evaluation_memo_grow_outcomes(struct evaluation_memo *m, struct evaluation_row *row)
{
    uint32_t cap = MAX_OF(2 * row->cap_outcomes, (uint32_t)OUTCOMES_MIN);
    size_t more = (cap - row->cap_outcomes) * sizeof(*row->outcomes);
    if (row->n_outcomes < row->cap_outcomes)
        return true;
    if (cap > EVALUATION_OUTCOMES_MAX || !evaluation_memo_make_room(m, more, row))
        return false;
    struct evaluation_outcome *grown = mem_resize(row->outcomes, cap * sizeof(*grown));
    if (grown == NULL)
        return false;
    row->outcomes = grown;
    row->cap_outcomes = cap;
    row->bytes += more;
    m->bytes += more;
    return true;
}

/* Copies an outcome with its strings. False: no memory. */
static bool evaluation_memo_init_outcome(struct evaluation_outcome *o, enum verdict v,
                                         const struct shortfall *shortfall,
                                         const struct quota_refusal *refusal)
{
    char bytes[TEXT_BYTES];
    struct buf text = BUF_ON(bytes);
    *o = (struct evaluation_outcome){.verdict = v, .shortfall = *shortfall};
    if (refusal != NULL) {
        o->refusal = *refusal;
        o->refusal.namespace = STR_NULL;
        quota_refusal_write(refusal, &text);
    }
    size_t n = text.n + o->refusal.name.n;
    for (uint32_t i = 0; i < shortfall->n_models; i++)
        n += shortfall->models[i].n;
    if (buf_failed(&text))
        return false;
    if (n == 0)
        return true;
    o->owned = mem_alloc(n);
    if (o->owned == NULL)
        return false;
    char *at = o->owned;
    for (uint32_t i = 0; i < shortfall->n_models; i++)
        o->shortfall.models[i] = str_store(&at, shortfall->models[i]);
    if (refusal != NULL && refusal->name.n > 0)
        o->refusal.name = str_store(&at, refusal->name);
    if (refusal != NULL)
        o->text = str_store(&at, buf_str(&text));
    return true;
}

/* The number of the outcome, which begins at 1; 0: there is no room for it. */
static uint32_t evaluation_memo_outcome(struct evaluation_memo *m, struct evaluation_row *row,
                                        enum verdict v, const struct shortfall *shortfall,
                                        const struct quota_refusal *refusal)
{
    for (uint32_t i = 0; i < row->n_outcomes; i++) {
        if (evaluation_memo_is_outcome(&row->outcomes[i], v, shortfall, refusal))
            return i + 1;
    }
    if (!evaluation_memo_grow_outcomes(m, row) ||
        !evaluation_memo_init_outcome(&row->outcomes[row->n_outcomes], v, shortfall, refusal))
        return 0;
    return ++row->n_outcomes;
}

const struct evaluation_entry *
evaluate_row_refuses(struct evaluation_memo *m, struct evaluation_row *row, const struct node *n,
                     const struct evaluation *e, enum verdict v, const struct shortfall *shortfall)
{
    struct quota_refusal refusal;
    struct shortfall common = *shortfall;
    bool refused = fit_refusal(n, e, v, &refusal);
    int64_t figure = *evaluation_memo_own_figure(v, &common);
    *evaluation_memo_own_figure(v, &common) = 0;
    assert(v != VERDICT_FITS && figure >= 0);
    uint32_t outcome = evaluation_memo_outcome(m, row, v, &common, refused ? &refusal : NULL);
    return outcome == 0 ? NULL : evaluation_memo_put(row, n, outcome, (uint64_t)figure);
}

const struct evaluation_entry *evaluate_row_refuses_again(struct evaluation_row *row,
                                                          const struct node *n, uint32_t outcome,
                                                          uint64_t figure)
{
    assert(outcome > 0 && outcome <= row->n_outcomes);
    return evaluation_memo_put(row, n, outcome, figure);
}

void evaluate_outcome_add(const struct evaluation_outcome *o, uint64_t times, uint64_t figure,
                          struct shortfall *sum)
{
    struct shortfall one = o->shortfall;
    *evaluation_memo_own_figure(o->verdict, &one) = (int64_t)figure;
    shortfall_merge(sum, &one, times);
}

bool evaluation_memo_begin(struct evaluation_memo *m, const struct cache *c)
{
    if (m->n_seen < c->n_slots) {
        uint32_t *seen = mem_resize(m->seen, c->n_slots * sizeof(*seen));
        if (seen == NULL)
            return false;
        memset(seen + m->n_seen, 0, (c->n_slots - m->n_seen) * sizeof(*seen));
        m->seen = seen;
        m->n_seen = c->n_slots;
    }
    if (++m->request == 0) {
        m->request = 1;
        memset(m->seen, 0, m->n_seen * sizeof(*m->seen));
    }
    return true;
}
