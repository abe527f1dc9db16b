/* Random histories of budgets that appear, change and go, compared with a simple model. */
#include "core/preempt/budget.h"

#include "seeded.h"
#include "unit.h"

static const struct map_seed seed = {1, 2};

#define SPACES       3
#define NAMES        4
#define KEYS         3
#define POD_NAMES    3
#define REQUIREMENTS 3

struct model_budget {
    bool there;
    bool named; /* since the list began */
    bool selects;
    unsigned n;

    struct {
        unsigned key;
        enum requirement_op op;
        unsigned values; /* a set of bits */
    } requirements[REQUIREMENTS];

    int allowed;
    int left;
    unsigned disrupted; /* a set of bits */
};

struct trial {
    uint64_t state;
    struct budgets b;
    struct model_budget model[SPACES][NAMES];
};

/* A static string of one letter or digit. */
static struct str letter(unsigned i)
{
    return (struct str){&"abcdefghij"[i], 1};
}

static size_t spell_set(unsigned bits, struct str *out)
{
    size_t n = 0;
    for (unsigned i = 0; i < 3; i++) {
        if ((bits >> i & 1) != 0)
            out[n++] = letter(i);
    }
    return n;
}

static void draw_budget(struct trial *t)
{
    unsigned space = seeded_draw(&t->state, SPACES);
    unsigned name = seeded_draw(&t->state, NAMES);
    struct model_budget m = {.there = true, .named = true};
    struct requirement_view requirements[REQUIREMENTS];
    struct str values[REQUIREMENTS][3];
    struct str disrupted[3];
    m.selects = seeded_draw(&t->state, 8) > 0;
    m.n = seeded_draw(&t->state, REQUIREMENTS + 1);
    m.allowed = (int)seeded_draw(&t->state, 4);
    m.disrupted = seeded_draw(&t->state, 1U << POD_NAMES);
    for (unsigned i = 0; i < m.n; i++) {
        m.requirements[i].key = seeded_draw(&t->state, KEYS);
        m.requirements[i].op = (enum requirement_op)seeded_draw(&t->state, 4);
        m.requirements[i].values = seeded_draw(&t->state, 8);
        requirements[i] =
            (struct requirement_view){.key = letter(m.requirements[i].key),
                                      .op = m.requirements[i].op,
                                      .values = values[i],
                                      .n_values = spell_set(m.requirements[i].values, values[i])};
    }
    struct budget_view view = {.namespace = letter(space),
                               .name = letter(name),
                               .selects = m.selects,
                               .requirements = requirements,
                               .n_requirements = m.n,
                               .allowed = m.allowed,
                               .disrupted = disrupted,
                               .n_disrupted = spell_set(m.disrupted, disrupted)};
    ck_assert_int_eq(budgets_set(&t->b, &view), OK);
    /* The store must have its own copy. */
    memset(values, 'x', sizeof(values));
    memset(requirements, 0, sizeof(requirements));
    memset(disrupted, 'x', sizeof(disrupted));
    t->model[space][name] = m;
}

/* label[k]: the pod's value of label k; -1: the pod lacks it. */
static bool model_selects(const struct model_budget *m, const int *label)
{
    for (unsigned i = 0; i < m->n; i++) {
        int value = label[m->requirements[i].key];
        bool in = value >= 0 && (m->requirements[i].values >> value & 1) != 0;
        bool holds[] = {[REQUIREMENT_IN] = in,
                        [REQUIREMENT_NOT_IN] = !in,
                        [REQUIREMENT_EXISTS] = value >= 0,
                        [REQUIREMENT_ABSENT] = value < 0};
        if (!holds[m->requirements[i].op])
            return false;
    }
    return m->selects;
}

/* The rules of kube-scheduler's filterPodsWithPDBViolation. */
static bool model_count(struct trial *t, unsigned space, unsigned pod, const int *label,
                        unsigned *ret_charged)
{
    bool violates = false;
    *ret_charged = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        struct model_budget *m = &t->model[space][i];
        if (!m->there || !model_selects(m, label) || (m->disrupted >> pod & 1) != 0)
            continue;
        ++*ret_charged;
        if (--m->left < 0)
            violates = true;
    }
    return violates;
}

static void count_some(struct trial *t)
{
    unsigned victims = 1 + seeded_draw(&t->state, 6);
    budgets_count_begin(&t->b);
    for (unsigned i = 0; i < SPACES * NAMES; i++)
        t->model[i / NAMES][i % NAMES].left = t->model[i / NAMES][i % NAMES].allowed;
    for (unsigned v = 0; v < victims; v++) {
        struct label_view labels[KEYS];
        int label[KEYS];
        unsigned charged = 0;
        unsigned space = seeded_draw(&t->state, SPACES);
        unsigned name = seeded_draw(&t->state, POD_NAMES);
        struct budget_pod pod = {
            .namespace = letter(space), .name = letter(name), .labels = labels};
        for (unsigned k = 0; k < KEYS; k++) {
            label[k] = (int)seeded_draw(&t->state, 4) - 1;
            if (label[k] >= 0)
                labels[pod.n_labels++] = (struct label_view){letter(k), letter((unsigned)label[k])};
        }
        bool violates = model_count(t, space, name, label, &charged);
        for (const struct budget *d = budgets_next_of(&t->b, &pod, NULL); d != NULL;
             d = budgets_next_of(&t->b, &pod, d))
            charged--;
        ck_assert_uint_eq(charged, 0);
        ck_assert_int_eq(budgets_count(&t->b, &pod), violates);
        for (unsigned i = 0; i < NAMES; i++) {
            const struct budget *d = budgets_get(&t->b, letter(space), letter(i));
            ck_assert_int_eq(d != NULL, t->model[space][i].there);
            ck_assert(d == NULL || budgets_left(&t->b, d) == t->model[space][i].left);
        }
    }
}

static void relist(struct trial *t)
{
    unsigned gone = 0;
    budgets_list_begin(&t->b);
    for (unsigned i = 0; i < SPACES * NAMES; i++)
        t->model[i / NAMES][i % NAMES].named = false;
    for (unsigned i = seeded_draw(&t->state, 12); i > 0; i--)
        draw_budget(t);
    bool torn = seeded_draw(&t->state, 4) == 0;
    if (torn)
        budgets_list_tear(&t->b);
    for (unsigned i = 0; i < SPACES * NAMES && !torn; i++) {
        struct model_budget *m = &t->model[i / NAMES][i % NAMES];
        gone += m->there && !m->named ? 1 : 0;
        m->there = m->there && m->named;
    }
    ck_assert_uint_eq(budgets_list_end(&t->b), gone);
}

static void take_one(struct trial *t)
{
    unsigned space = seeded_draw(&t->state, SPACES);
    unsigned name = seeded_draw(&t->state, NAMES);
    struct model_budget *m = &t->model[space][name];
    ck_assert_int_eq(budgets_gone(&t->b, letter(space), letter(name)), m->there);
    m->there = false;
}

TEST(counts_as_a_naive_model)
{
    uint64_t first = seeded_setting("BUDGET_SEED", 1);
    uint64_t seeds = seeded_setting("BUDGET_SEEDS", 100);
    for (uint64_t s = first; s < first + seeds; s++) {
        struct trial t = {.state = s};
        budgets_init(&t.b, seed);
        for (unsigned step = 0; step < 200; step++) {
            unsigned what = seeded_draw(&t.state, 20);
            if (what == 0)
                relist(&t);
            else if (what < 3)
                take_one(&t);
            else if (what < 10)
                draw_budget(&t);
            else
                count_some(&t);
            size_t n = 0;
            for (unsigned i = 0; i < SPACES * NAMES; i++)
                n += t.model[i / NAMES][i % NAMES].there ? 1 : 0;
            ck_assert_uint_eq(t.b.all.n, n);
            budgets_check(&t.b);
        }
        budgets_done(&t.b);
    }
}
