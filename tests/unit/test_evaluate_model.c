/*
 * Random histories of a small cluster. After each event some shapes of requests are asked twice: of
 * evaluate() with a memo that lives as long as the history, and of evaluate() without one. Both
 * must give the same verdicts, scores, figures and texts. A failure prints its seed and step:
 *
 * EVALUATION_MODEL_SEED=17 EVALUATION_MODEL_HISTORIES=1 test_evaluate_model
 */
#include "evaluate_world.h"

#include "fail_alloc.h"
#include "report/evaluate.h"
#include "report/reason.h"
#include "report/shortfall_write.h"

enum {
    STEPS = 40,
    QUESTIONS = 3, /* after each event */
    ROLLS = 6,
    QUIET = 14,
};

/* Nodes of some histories without pods, mostly alike: in a list many fit one after the other. */
static const char *const quiet_nodes[QUIET] = {
    "quiet-a", "quiet-b", "quiet-c", "quiet-d", "quiet-e", "quiet-f", "quiet-g",
    "quiet-h", "quiet-i", "quiet-j", "quiet-k", "quiet-l", "quiet-m", "quiet-n"};

/* A list of names that is asked about again and again. */
struct roll {
    struct str names[W_NAMES];
    size_t n;
};

struct inquiry {
    struct cache cache;
    struct world world;
    struct evaluation_memo memo;
    struct arena arena;
    struct step_budget step_budget;
    struct step_budget plain_work;
    struct w_pod pod;
    struct roll rolls[ROLLS];
    const struct roll *of; /* the question's */
    bool quiet;            /* the history has such nodes */
    uint64_t steps;        /* with the memo */
    uint64_t plain_steps;
};

/* Mostly the nodes' order, from some node on; some are left out, named twice, or do not exist. */
static void make_names(struct inquiry *q, struct roll *r)
{
    struct world *w = &q->world;
    uint32_t first = once_in(w, 2) ? 0 : draw(w, COUNT_OF(w_nodes));
    r->n = 0;
    uint32_t last = q->quiet ? draw(w, QUIET + 1) : 0;
    for (uint32_t i = once_in(w, 2) ? 0 : draw(w, 3); i < last; i++)
        r->names[r->n++] = str_of(quiet_nodes[i]);
    if (last > 0 && once_in(w, 2))
        return;
    for (uint32_t i = 0; i < COUNT_OF(w_nodes) && r->n < W_NAMES; i++) {
        uint32_t at = once_in(w, 12) ? draw(w, COUNT_OF(w_nodes)) : (first + i) % COUNT_OF(w_nodes);
        if (!once_in(w, 12))
            r->names[r->n++] = str_of(w_nodes[at]);
    }
}

/* Most lists were asked about before, and some of them are replaced. */
static void choose_names(struct inquiry *q)
{
    struct world *w = &q->world;
    struct roll *r = &q->rolls[once_in(w, 3) ? 0 : draw(w, ROLLS)];
    if (r == q->rolls || r->n == 0 || once_in(w, 12))
        make_names(q, r);
    q->of = r;
}

/* A shape that was asked before, of an unknown pod or of one of the cluster's. */
static void make_question(struct inquiry *q)
{
    struct world *w = &q->world;
    q->pod = w->shapes[draw(w, W_SHAPES)];
    q->pod.view.uid = str_of(w_pods[once_in(w, 2) ? W_PODS : draw(w, W_PODS)]);
    q->pod.view.containers = q->pod.containers;
    choose_names(q);
}

static void compare_shortfalls(struct inquiry *q, const struct candidates *a,
                               const struct candidates *b)
{
    struct world *w = &q->world;
    char a_bytes[1024];
    char b_bytes[1024];
    world_assert(w, (a->shortfalls == NULL) == (b->shortfalls == NULL));
    for (unsigned v = 0; a->shortfalls != NULL && v < VERDICT_COUNT; v++) {
        struct buf a_text = BUF_ON(a_bytes);
        struct buf b_text = BUF_ON(b_bytes);
        world_assert(w, shortfall_equal(&a->shortfalls[v], &b->shortfalls[v]));
        if (a->counts[v] == 0)
            continue;
        shortfall_write(&a_text, (enum verdict)v, &a->evaluation, a->shortfalls);
        shortfall_write(&b_text, (enum verdict)v, &b->evaluation, b->shortfalls);
        world_assert(w, str_eq(buf_str(&a_text), buf_str(&b_text)));
    }
}

/* The text that the memo has for a quota's refusal. */
static void compare_refusal(struct inquiry *q, const struct candidates *a, size_t i)
{
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    struct str text = evaluate_refusal(a, i);
    enum verdict v = (enum verdict)a->verdicts[i];
    if (text.p == NULL)
        return;
    const struct node *n = cache_node(&q->cache, q->of->names[i]);
    world_assert(&q->world, v == VERDICT_QUOTA || v == VERDICT_QUOTA_DENIED);
    world_assert(&q->world,
                 str_eq(text, reason_node(&scratch, q->of->names[i], n, &a->evaluation, v)));
}

static void compare(struct inquiry *q, const struct candidates *a, const struct candidates *b,
                    bool scored)
{
    struct world *w = &q->world;
    for (size_t i = 0; i < q->of->n; i++) {
        world_assert(w, a->verdicts[i] == b->verdicts[i]);
        world_assert(w, !scored || a->scores[i] == b->scores[i]);
        compare_refusal(q, a, i);
    }
    world_assert(w, memcmp(a->counts, b->counts, sizeof(a->counts)) == 0);
    world_assert(w, a->denied == b->denied && a->denial == b->denial);
    compare_shortfalls(q, a, b);
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        w->met[v] += a->counts[v];
}

static void ask(struct inquiry *q)
{
    struct candidates with;
    struct candidates without;
    struct err e = ERR_INIT;
    make_question(q);
    bool scored = once_in(&q->world, 2);
    const struct filter_args args = {
        .pod = q->pod.view, .names = q->of->names, .n = q->of->n, .by_name = true};
    struct cache *c = &q->cache;
    arena_reset(&q->arena);
    if (once_in(&q->world, 8))
        fail_alloc_arm(once_in(&q->world, 2) ? FAIL_ONCE : FAIL_FROM_THEN_ON,
                       draw(&q->world, 4) + 1);
    enum errc code = evaluate(c, &q->memo, &q->step_budget, &args, &q->arena, scored, &with, &e);
    fail_alloc_disarm();
    if (code == ERR_NOMEM && fail_alloc_hit())
        return;
    ck_assert_ok(code, &e);
    ck_assert_ok(evaluate(c, NULL, &q->plain_work, &args, &q->arena, scored, &without, &e), &e);
    q->steps += q->step_budget.steps;
    q->plain_steps += q->plain_work.steps;
    compare(q, &with, &without, scored);
}

/* Most of them are equal; some become too small for most pods, have other models, or a table of
 * cards that can't be read. */
static void set_quiet(struct world *w, uint32_t i, bool equal)
{
    static const char *const sizes[] = {"64", "64", "32", "2"};
    bool torn = !equal && once_in(w, 6);
    const struct node_view v = {.name = str_of(quiet_nodes[i]),
                                .mem = str_of(equal ? "64" : sizes[draw(w, COUNT_OF(sizes))]),
                                .count = STR("4"),
                                .cpu = STR("32"),
                                .model = equal ? STR("A100") : ONE_OF(w, w_models),
                                .has_cards = torn,
                                .cards_fault = torn ? "the table is no \"JSON\"" : NULL};
    apply(w, "quiet node", &(struct cache_event){.type = CACHE_NODE_SET, .node = v});
}

static void run_history(uint64_t seed, struct inquiry *q)
{
    world_open(&q->world, &q->cache, seed);
    arena_init(&q->arena, MIB);
    q->memo = (struct evaluation_memo){.n_rows = 0};
    memset(q->rolls, 0, sizeof(q->rolls));
    q->quiet = once_in(&q->world, 2);
    for (uint32_t i = 0; q->quiet && i < QUIET; i++)
        set_quiet(&q->world, i, true);
    for (q->world.step = 0; q->world.step < STEPS; q->world.step++) {
        world_step(&q->world);
        if (q->quiet && once_in(&q->world, 6))
            set_quiet(&q->world, draw(&q->world, QUIET), once_in(&q->world, 2));
        for (unsigned i = 0; i < QUESTIONS; i++)
            ask(q);
    }
    evaluation_memo_done(&q->memo);
    arena_done(&q->arena);
    cache_done(&q->cache);
}

/* Other dialects are not part of the world; NO_EXCLUSIVE and NO_DEVICES are kube-scheduler's own.
 */
static bool never_of_evaluate(enum verdict v)
{
    return v == VERDICT_NO_EXCLUSIVE || v == VERDICT_NO_DEVICES || v == VERDICT_DIALECT ||
           v == VERDICT_PLUGIN_ORDER || v == VERDICT_LOCKED;
}

TEST(the_memo_changes_no_answer)
{
    static struct inquiry q;
    uint64_t first = seeded_setting("EVALUATION_MODEL_SEED", 1);
    uint64_t n = seeded_setting("EVALUATION_MODEL_HISTORIES", 1500);
    unsigned met[VERDICT_COUNT] = {0};
    for (uint64_t i = 0; i < n; i++) {
        run_history(first + i, &q);
        for (unsigned v = 0; v < VERDICT_COUNT; v++)
            met[v] += q.world.met[v];
    }
    if (n < 500)
        return;
    /* Otherwise the histories would test nothing. */
    ck_assert_uint_lt(3 * q.steps, 2 * q.plain_steps);
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        ck_assert_msg(met[v] > 0 || never_of_evaluate((enum verdict)v), "no %s", verdict_name(v));
}

int main(void)
{
    TCase *tc = unit_case("evaluate_model");
    tcase_set_timeout(tc, 0);
    return unit_run();
}
