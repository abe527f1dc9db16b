/* kubectl-cardpack: what it prints of the answers of top, cards and explain. */
#include "base/limit.h"
#include "kubectl/show.h"
#include "report/table.h"
#include "unit.h"

#include <stdio.h>

static struct arena arena;
static struct buf out;
static struct err err;

static void setup(void)
{
    arena_init(&arena, 64 * MIB);
    buf_init(&out, MIB);
    err = (struct err)ERR_INIT;
}

static void teardown(void)
{
    buf_done(&out);
    arena_done(&arena);
}

/* Usage on no card is not a card's, and lowers what is free. A card of 139 is in GiB. */
TEST(top_of_node)
{
    struct kubectl_look look = {.wide = true, .heads = true};
    struct str answer =
        STR("{\"nodes\": [{\"name\": \"n\", \"totalGPU\": 278, \"usedGPU\": 210, \"devs\": ["
            "{\"id\": 0, \"totalGPU\": 139, \"usedGPU\": 0, \"freeGPU\": 139},"
            "{\"id\": 1, \"totalGPU\": 139, \"usedGPU\": 0, \"state\": \"cordoned\"},"
            "{\"id\": -1, \"usedGPU\": 210, \"state\": \"none\"}]}]}");
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    ck_assert_msg(strstr(text, "GPU Memory(GiB)") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "   75%     68        68      0") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "1 of 2 cards closed\n") != NULL, "%s", text);
}

/* What is really used is in the wide tables alone, and only if it is known of some card. A figure
 * that no card can have does not overflow a sum. */
TEST(what_is_measured)
{
    struct kubectl_look wide = {.wide = true, .heads = true};
    struct kubectl_look plain = {.heads = true};
    struct str answer =
        STR("{\"nodes\": [{\"name\": \"n\", \"totalGPU\": 160, \"usedGPU\": 8, \"devs\": ["
            "{\"id\": 0, \"totalGPU\": 80, \"usedGPU\": 8, \"usedMiB\": 9000, \"sizeMiB\": 81920,"
            "\"busyPercent\": 37, \"pods\": [{\"name\": \"p\", \"namespace\": \"s\","
            "\"usedGPU\": 8, \"usedMiB\": 9000, \"exceeds\": true}]},"
            "{\"id\": 1, \"totalGPU\": 80, \"usedGPU\": 0, \"usedMiB\": 9223372036854775807,"
            "\"sizeMiB\": 9223372036854775807, \"busyPercent\": 60},"
            "{\"id\": 2, \"totalGPU\": 80, \"usedGPU\": 0}]}]}");
    ck_assert_ok(kubectl_show_top(answer, wide, &arena, &out, &err), &err);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "PODS             REALLY(MiB)   BUSY   MODEL"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "   4294976295/4295049215    48%   -"));
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_show_top(answer, plain, &arena, &out, &err), &err);
    ck_assert_ptr_null(strstr(buf_cstr(&out), "REALLY"));
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_show_cards(answer, wide, &arena, &out, &err), &err);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "  9000/81920    37%   s/p (8, really 9000 MiB, "
                                                 "more than its share)\n"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "   -      -   -\n"));
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_show_cards(answer, plain, &arena, &out, &err), &err);
    ck_assert_ptr_null(strstr(buf_cstr(&out), "REALLY"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "s/p (8, more than its share)\n"));
}

/* Nodes with n_cards cards of that size, and one pod's usage on each. */
static struct str answer_of(const char *const *names, size_t n, unsigned n_cards, long size)
{
    struct buf b;
    buf_init(&b, MIB);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s{\"name\": \"%s\", \"totalGPU\": %ld, \"usedGPU\": %ld, \"devs\": [",
                   i == 0 ? "{\"nodes\": [" : ", ", names[i], n_cards * size, size / 2);
        for (unsigned k = 0; k < n_cards; k++)
            buf_printf(&b, "%s{\"id\": %u, \"totalGPU\": %ld, \"usedGPU\": %ld}",
                       k == 0 ? "" : ", ", k, size, k == 0 ? size / 2 : 0);
        buf_put(&b, STR("]}"));
    }
    buf_put(&b, STR("]}"));
    return arena_keep(&arena, &b);
}

static const char long_name[] = "ip-10-0-112-231.eu-west-1.compute.internal";

/* Cards and size of a card; the row of the node with the long name in the default table. */
static const struct {
    unsigned cards;
    long size;
    const char *head;
    const char *row;
} budgets[] = {
    {2, 16, "GPU0   GPU1   MEMORY(GiB)\n",
     "\nip-10-0-112-231.eu-west-1.compute.internal   8/16   0/16   8/32\n"},
    {8, 80, "GPU7   MEMORY(GiB)\n",
     "\nip-10-0-112-23\xe2\x80\xa6mpute.internal   40/80   0/80   0/80   0/80   0/80   0/80   0/80 "
     "  "
     "0/80   40/640\n"},
    {8, 81920, "GPU7   MEMORY(MiB)\n",
     "\nip-10-0-112-23\xe2\x80\xa6mpute.internal   50%    0%     0%     0%     0%     0%     0%    "
     " 0%  "
     "   40960/655360\n"},
    {16, 16, "GPU8   MEMORY(GiB)\n",
     "\nip-10-0-112\xe2\x80\xa6te.internal   50%    0%     0%     0%     0%     0%     0%     0%   "
     "  0% "
     "    8/256\n"},
};

/* The default table has at most 100 columns; the others cut nothing and have every card. */
TEST_EACH(width_of_top, COUNT_OF(budgets))
{
    static const char *const names[] = {"n", long_name};
    struct str answer = answer_of(names, 2, budgets[_i].cards, budgets[_i].size);
    struct kubectl_look look = {.heads = true};
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    ck_assert_msg(strstr(text, budgets[_i].head) != NULL, "%s", text);
    ck_assert_msg(strstr(text, budgets[_i].row) != NULL, "%s", text);
    for (struct str one, rest = buf_str(&out); rest.n > 0;) {
        (void)str_cut(rest, '\n', &one, &rest);
        ck_assert_msg(text_width(one) <= 100, "%.*s", STR_ARG(one));
    }
    bool said =
        strstr(text, "\nSome cards are in no column: see kubectl cardpack cards.\n") != NULL;
    ck_assert(said == (budgets[_i].cards == 16));
    static const struct kubectl_look full[] = {
        {.wide = true, .heads = true}, {.gpushare = true, .heads = true}, {.heads = false}};
    for (size_t i = 0; i < COUNT_OF(full); i++) {
        char cell[128];
        (void)snprintf(cell, sizeof(cell), "%s   %ld/%ld", long_name, budgets[_i].size / 2,
                       budgets[_i].size);
        buf_clear(&out, 0);
        ck_assert_ok(kubectl_show_top(answer, full[i], &arena, &out, &err), &err);
        text = buf_cstr(&out);
        ck_assert_msg(strstr(text, cell) != NULL, "%s", text);
        (void)snprintf(cell, sizeof(cell), "GPU%u(Allocated/Total)", budgets[_i].cards - 1);
        ck_assert_msg((strstr(text, cell) != NULL) == full[i].heads, "%s", text);
    }
}

/* A new pod gets no more than the node has left. If that is less than the cards have, both are
 * printed. */
TEST(cards_of_narrow_node)
{
    struct kubectl_look look = {.wide = true, .heads = true};
    struct str answer =
        STR("{\"nodes\": [{\"name\": \"n\", \"totalGPU\": 32, \"usedGPU\": 18, \"freeGPU\": 3, "
            "\"devs\": [{\"id\": 0, \"totalGPU\": 16, \"usedGPU\": 9, \"freeGPU\": 7},"
            "{\"id\": 1, \"totalGPU\": 16, \"usedGPU\": 14, \"freeGPU\": 2}]},"
            "{\"name\": \"wide\", \"totalGPU\": 16, \"usedGPU\": 0, \"freeGPU\": 16, \"devs\": ["
            "{\"id\": 0, \"totalGPU\": 16, \"usedGPU\": 0, \"freeGPU\": 16}]}]}");
    ck_assert_ok(kubectl_show_cards(answer, look, &arena, &out, &err), &err);
    const char *text = buf_cstr(&out);
    static const char *const rows[] = {
        "NODE   CARD   SIZE(GiB)   USED   FREE   COMPUTE",
        "n         0          16      9      3        0%",
        "n         1          16     14      2        0%",
        "wide      0          16      0     16        0%",
        "   UNUSED   PODS\n",
        "        7   -\n",
        "\nn: its cards have 9 free, of which the node leaves 3 for new pods\n",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        ck_assert_msg(strstr(text, rows[i]) != NULL, "%s is not in\n%s", rows[i], text);
    ck_assert_ptr_null(strstr(text, "wide: its cards"));
    buf_clear(&out, 0);
    ck_assert_ok(kubectl_show_top(answer, look, &arena, &out, &err), &err);
    text = buf_cstr(&out);
    ck_assert_msg(strstr(text, "18/32              56%      3         3") != NULL, "%s", text);
}

/* An answer of explain with that pod and that error; it fits on no node. */
#define EXPLAINED(pod, error)                                                          \
    "{\"pod\": {\"namespace\": \"ns\", \"name\": \"p\", " pod                          \
    "}, \"request\": {\"text\": \"8\"}, "                                              \
    "\"error\": \"" error                                                              \
    "\", \"nodes\": 1, \"fit\": 0, \"refused\": {}, \"verdicts\": [{\"node\": \"n\", " \
    "\"fits\": false, \"reason\": \"no room\"}]}"
#define REFUSED(more) "\"state\": \"pending\", \"condition\": {\"status\": \"False\"" more "}"

static const struct {
    const char *answer;
    const char *text;
    bool fits;
} explained[] = {
    {EXPLAINED("\"state\": \"pending\"", ""),
     "pod ns/p, pending, asks for 8: it fits on 0 of 1 node\n"
     "NODE   FITS   PLACE   REASON\nn      no     -       no room\n",
     false},
    {EXPLAINED(REFUSED(", \"reason\": \"Unschedulable\", \"message\": \"0/1\\u001b\""), ""),
     "pod ns/p, pending, asks for 8: it fits on 0 of 1 node\n"
     "NODE   FITS   PLACE   REASON\nn      no     -       no room\nthe scheduler says: 0/1\\x1b\n",
     false},
    {EXPLAINED(REFUSED(", \"reason\": \"SchedulingGated\""), "bad"),
     "pod ns/p, pending: its request can't be read: bad\nthe scheduler says: SchedulingGated\n",
     false},
    {EXPLAINED(
         "\"state\": \"bound\", \"node\": \"n\", \"placement\": [{\"card\": 0, \"memory\": 8}, "
         "{\"card\": 2, \"memory\": 8, \"compute\": 30}], \"condition\": {\"status\": \"True\", "
         "\"since\": \"2026-11-22T05:40:00Z\", \"message\": \"x\"}",
         ""),
     "pod ns/p, bound on node n since 2026-11-22T05:40:00Z, asks for 8\n"
     "NODE   PLACE\nn      0:8 2:8(30%)\n",
     true},
    {EXPLAINED("\"state\": \"bound\", \"node\": \"n\", \"placement\": []", "bad"),
     "pod ns/p, bound on node n: its request can't be read: bad\nNODE   PLACE\nn      -\n", true},
    {EXPLAINED(
         "\"state\": \"reserved\", \"node\": \"n\", \"placement\": [{\"card\": 0, \"memory\": 8}], "
         "\"condition\": {\"status\": \"False\", \"since\": \"2026-11-22T05:40:00Z\"}",
         ""),
     "pod ns/p, reserved on node n, asks for 8\nNODE   PLACE\nn      0:8\n", true},
    {EXPLAINED("\"state\": \"ended\", \"node\": \"n\"", ""),
     "pod ns/p, ended on node n, asks for 8\n", true},
};

/* Where a bound pod is; one reason for all nodes once; what the scheduler says of a pending pod. */
TEST_EACH(explained_pod, COUNT_OF(explained))
{
    struct kubectl_look look = {.heads = true};
    struct str answer = str_of(explained[_i].answer);
    bool fits = !explained[_i].fits;
    ck_assert_ok(kubectl_show_explain(answer, look, &arena, &out, &err), &err);
    ck_assert_str_eq(buf_cstr(&out), explained[_i].text);
    ck_assert_ok(kubectl_answer_fits(answer, KUBECTL_EXPLAIN, &arena, &fits, &err), &err);
    ck_assert(fits == explained[_i].fits);
}

/* Three nodes, of which no two columns have the same order. */
static const char three[] =
    "{\"nodes\": ["
    "{\"name\": \"a\", \"totalGPU\": 10, \"usedGPU\": 6, \"freeGPU\": 4, \"devs\": [{\"id\": 0, "
    "\"totalGPU\": 10, \"usedGPU\": 6, \"freeGPU\": 4, \"pods\": [{\"name\": \"p\", \"usedGPU\": "
    "6}]}]},"
    "{\"name\": \"b\\u001b\", \"totalGPU\": 40, \"usedGPU\": 8, \"freeGPU\": 32, \"devs\": "
    "[{\"id\": 0, "
    "\"totalGPU\": 40, \"usedGPU\": 8, \"freeGPU\": 32, \"pods\": [{\"name\": \"q\", \"usedGPU\": "
    "4}, "
    "{\"name\": \"r\", \"usedGPU\": 4}]}]},"
    "{\"name\": \"c\", \"totalGPU\": 9, \"usedGPU\": 0, \"freeGPU\": 9, \"devs\": [{\"id\": 0, "
    "\"totalGPU\": 9, \"usedGPU\": 0, \"freeGPU\": 9}]}]}";

static const struct {
    enum kubectl_sort by;
    const char *nodes; /* of top -o name */
    const char *cards; /* the first letters of the rows */
} sorts[] = {
    {KUBECTL_SORT_NONE, "node/a\nnode/b\\x1b\nnode/c\n", "abc"},
    {KUBECTL_SORT_NAME, "node/a\nnode/b\\x1b\nnode/c\n", NULL},
    {KUBECTL_SORT_NODE, NULL, "abc"},
    {KUBECTL_SORT_USED, "node/b\\x1b\nnode/a\nnode/c\n", "bac"},
    {KUBECTL_SORT_FREE, "node/b\\x1b\nnode/c\nnode/a\n", "bca"},
    {KUBECTL_SORT_PODS, "node/b\\x1b\nnode/a\nnode/c\n", "bac"},
};

/* Numbers from the largest, for nodes and for cards. */
TEST_EACH(sorted, COUNT_OF(sorts))
{
    struct kubectl_look look = {.names = true, .sort = sorts[_i].by};
    if (sorts[_i].nodes != NULL) {
        ck_assert_ok(kubectl_show_top(str_of(three), look, &arena, &out, &err), &err);
        ck_assert_str_eq(buf_cstr(&out), sorts[_i].nodes);
        buf_clear(&out, 0);
    }
    if (sorts[_i].cards == NULL)
        return;
    look.names = false;
    char first[4] = "";
    size_t n = 0;
    ck_assert_ok(kubectl_show_cards(str_of(three), look, &arena, &out, &err), &err);
    for (struct str one, rest = buf_str(&out); rest.n > 0 && n < 3;) {
        (void)str_cut(rest, '\n', &one, &rest);
        first[n++] = one.p[0];
    }
    ck_assert_str_eq(first, sorts[_i].cards);
}

/* An answer with costs or scores: the best node, one without a sentence, and one that is refused.
 */
#define COSTS(name, best, next)                                                                  \
    "{\"pod\": {\"namespace\": \"ns\"}, \"request\": {\"text\": \"8\"}, \"nodes\": 3, \"fit\": " \
    "2, "                                                                                        \
    "\"verdicts\": [{\"node\": \"a\", \"fits\": true, \"reason\": \"fits\", \"" name "\": " best \
    ", \"why\": \"costs\\u001b\", \"cards\": [{\"card\": 0, \"fits\": true, \"reason\": "        \
    "\"fits\"}]}, "                                                                              \
    "{\"node\": \"b\", \"fits\": true, \"reason\": \"fits\", \"" name "\": " next                \
    "}, {\"node\": \"c\", \"fits\": false, \"reason\": \"no room\"}]}"

static const struct {
    const char *answer;
    bool wide;
    const char *table;
} costs[] = {
    {COSTS("cost", "-0.000900", "10.812345"), false,
     "NODE   FITS   PLACE     COST   REASON\n"
     "a      yes    -       -0.000   costs\\x1b\n"
     "b      yes    -       10.812   fits\n"
     "c      no     -                no room\n"},
    {COSTS("score", "62", "7"), false,
     "NODE   FITS   PLACE   SCORE   REASON\n"
     "a      yes    -          62   costs\\x1b\n"
     "b      yes    -           7   fits\n"
     "c      no     -               no room\n"},
    {COSTS("score", "62", "7"), true,
     "NODE   CARD   FITS   PLACE   SCORE   REASON\n"
     "a             yes    -          62   costs\\x1b\n"
     "a         0   yes                    fits\n"
     "b             yes    -           7   fits\n"
     "c             no     -               no room\n"},
};

TEST_EACH(costs_of_nodes, COUNT_OF(costs))
{
    struct kubectl_look look = {.heads = true, .wide = costs[_i].wide};
    ck_assert_ok(kubectl_show_explain(str_of(costs[_i].answer), look, &arena, &out, &err), &err);
    const char *table = strchr(buf_cstr(&out), '\n');
    ck_assert_ptr_nonnull(table);
    ck_assert_str_eq(table + 1, costs[_i].table);
}

/* The feasible nodes; for a pod that has a node: that one. */
TEST_EACH(names_of_explain, 2)
{
    static const char *const answers[] = {
        "{\"pod\": {}, \"nodes\": 3, \"fit\": 2, \"verdicts\": [{\"node\": \"x\\n\", \"fits\": "
        "true}, "
        "{\"node\": \"y\", \"fits\": false}, {\"node\": \"z\", \"fits\": true}]}",
        EXPLAINED("\"state\": \"bound\", \"node\": \"n2\"", ""),
    };
    static const char *const names[] = {"node/x\\x0a\nnode/z\n", "node/n2\n"};
    struct kubectl_look look = {.names = true};
    ck_assert_ok(kubectl_show_explain(str_of(answers[_i]), look, &arena, &out, &err), &err);
    ck_assert_str_eq(buf_cstr(&out), names[_i]);
}

int main(void)
{
    TCase *t = unit_case("kubectl_show");
    tcase_add_checked_fixture(t, setup, teardown);
    return unit_run();
}
