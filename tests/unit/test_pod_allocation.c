/* What a pod holds of each card: by its request, its grants, and its annotations. */
#include "core/state/pod_allocation.h"

#include "asked.h"
#include "base/mem.h"
#include "fail_alloc.h"

enum {
    FEW = 6
};

static struct request read_request(const struct pod_view *pod)
{
    struct request r;
    enum errc code = request_read(pod, &r, NULL);
    (void)code; /* a bound pod's request may be invalid */
    return r;
}

/* A share, without what only containers with cards of their own have. */
struct plain_share {
    int64_t mem;
    uint32_t card;
    uint32_t cores;
};

/* Shares with this placement, before and after the init containers are done. */
static const struct {
    struct pod_view pod;
    struct grant grants[FEW];
    struct plain_share before[FEW];
    struct plain_share after[FEW]; /* by card; ends with the first of all zeros */
} shares[] = {
    {POD("one", CONTAINERS(1, MAIN(0, "8"))), {{8, 1, UINT16_MAX, 0}}, {{8, 1, 0}}, {{8, 1, 0}}},
    {POD("two containers, two cards", CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN(1, "4"))),
     {{8, 2, 0, 30}, {4, 0, 1, 0}},
     {{4, 0, 0}, {8, 2, 30}},
     {{4, 0, 0}, {8, 2, 30}}},
    {POD("two containers, one card", CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN(1, "4"))),
     {{8, 2, 0, 30}, {4, 2, 1, 0}},
     {{12, 2, 30}},
     {{12, 2, 30}}},
    {POD("over two cards", .count_label = S("2"), CONTAINERS(1, MAIN_CORES(0, "8", "60"))),
     {{4, 3, 0, 30}, {4, 1, 0, 30}},
     {{4, 1, 30}, {4, 3, 30}},
     {{4, 1, 30}, {4, 3, 30}}},
    /* Init containers run on the card of the first lasting container. */
    {POD("a peak", CONTAINERS(2, INIT(0, "9"), MAIN(0, "2"), MAIN(1, "4"))),
     {{2, 0, 0, 0}, {4, 1, 1, 0}},
     {{9, 0, 0}, {4, 1, 0}},
     {{2, 0, 0}, {4, 1, 0}}},
    {POD("no peak", CONTAINERS(2, INIT(0, "2"), MAIN(0, "2"), MAIN(1, "4"))),
     {{2, 0, 0, 0}, {4, 1, 1, 0}},
     {{2, 0, 0}, {4, 1, 0}},
     {{2, 0, 0}, {4, 1, 0}}},
    /* Beside the sidecars that start before it, on that card. */
    {POD("before it", CONTAINERS(1, SIDECAR(0, "3"), INIT(1, "5"), MAIN(0, "4"))),
     {{3, 0, 1, 0}, {4, 1, 0, 0}},
     {{8, 0, 0}, {4, 1, 0}},
     {{3, 0, 0}, {4, 1, 0}}},
    {POD("after it", CONTAINERS(1, INIT(0, "5"), SIDECAR(1, "3"), MAIN(0, "4"))),
     {{3, 0, 2, 0}, {4, 1, 0, 0}},
     {{5, 0, 0}, {4, 1, 0}},
     {{3, 0, 0}, {4, 1, 0}}},
    {POD("elsewhere", CONTAINERS(1, SIDECAR(0, "1"), SIDECAR(1, "3"), INIT(2, "5"), MAIN(0, "4"))),
     {{1, 0, 1, 0}, {3, 1, 2, 0}, {4, 0, 0, 0}},
     {{6, 0, 0}, {3, 1, 0}},
     {{5, 0, 0}, {3, 1, 0}}},
    {POD("a peak over two cards", .count_label = S("2"), CONTAINERS(1, INIT(0, "8"), MAIN(0, "6"))),
     {{3, 0, 0, 0}, {3, 1, 0, 0}},
     {{4, 0, 0}, {4, 1, 0}},
     {{3, 0, 0}, {3, 1, 0}}},
    {POD("nothing lasts", CONTAINERS(0, INIT(0, "8"), INIT(1, "5"))),
     {{8, 2, 0, 0}, {5, 2, 1, 0}},
     {{8, 2, 0}},
     {{0, 2, 0}}},
    {POD("overhead", .mem_overhead = S("2"), CONTAINERS(1, INIT(0, "9"), MAIN(0, "8"))),
     {{8, 2, 0, 0}},
     {{11, 2, 0}},
     {{10, 2, 0}}},
    /* What the percentage gives beyond the sidecar's request is not part of the peak. */
    {POD("half a card", .percent = S("50"),
         CONTAINERS(1, SIDECAR(0, "2"), INIT(1, "3"), MAIN(0, "1"))),
     {{7, 2, 1, 0}, {1, 2, 0, 0}},
     {{8, 2, 0}},
     {{8, 2, 0}}},
};

static void same_shares(const struct share *a, uint32_t n, const struct plain_share *b)
{
    uint32_t expected = 0;
    while (expected < FEW && (b[expected].mem > 0 || b[expected].card > 0))
        expected++;
    ck_assert_uint_eq(n, expected);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(a[i].card, b[i].card);
        ck_assert_int_eq(a[i].mem, b[i].mem);
        ck_assert_uint_eq(a[i].cores, b[i].cores);
    }
}

TEST_EACH(says_what_grants_come_to, COUNT_OF(shares))
{
    struct request r = read_request(&shares[_i].pod);
    struct placement p = {.n = 0};
    struct share got[FEW];
    for (; p.n < FEW && shares[_i].grants[p.n].mem > 0; p.n++)
        p.grants[p.n] = shares[_i].grants[p.n];
    same_shares(got, shares_of(&r, p.grants, p.n, false, got), shares[_i].before);
    same_shares(got, shares_of(&r, p.grants, p.n, true, got), shares[_i].after);
    struct pod_allocation *h = pod_allocation_new(&r, &p, false);
    ck_assert_ptr_nonnull(h);
    ck_assert(pod_allocation_has(h, &p));
    same_shares(h->shares, h->n_shares, shares[_i].before);
    pod_allocation_recompute(h, &r, true);
    same_shares(h->shares, h->n_shares, shares[_i].after);
    pod_allocation_recompute(h, &r, false);
    same_shares(h->shares, h->n_shares, shares[_i].before);
    p.grants[0].card++;
    ck_assert(!pod_allocation_has(h, &p));
    p.n--;
    ck_assert(!pod_allocation_has(h, &p));
    mem_free(h);
}

/* The charge of a percentage or a whole card, by the card's size. */
static const struct {
    struct request request;
    int64_t mem;
    int64_t total;
    int64_t charge;
} charges[] = {
    {{.percent = 0}, 8, 16, 8},
    {{.percent = 50}, 0, 16, 8},
    {{.percent = 50}, 8, 16, 8},
    {{.percent = 50}, 9, 16, 9},
    {{.percent = 50}, 0, 15, 8}, /* rounded up */
    {{.percent = 1}, 0, 1, 1},
    {{.percent = 1}, 0, 100, 1},
    {{.percent = 1}, 0, 101, 2},
    {{.percent = 100}, 0, 16, 16},
    {{.percent = 33}, 0, 16276, 5372},
    {{.percent = 99}, 0, REQUEST_MEM_MAX, 1088516511499}, /* 1088516511498.24 */
    {{.whole = true}, 8, 16, 16},
    {{.whole = true}, 20, 16, 20},
    {{.whole = true}, 0, 0, 0},
};

TEST_EACH(says_what_a_share_costs, COUNT_OF(charges))
{
    struct share s = {.mem = charges[_i].mem};
    ck_assert_int_eq(share_charge(&charges[_i].request, &s, charges[_i].total), charges[_i].charge);
}

/* A bound pod's annotations; the expected grants end with the first of all zeros. */
#define TWO   CONTAINERS(2, MAIN_CORES(0, "8", "30"), MAIN(1, "4"))
#define EIGHT .mem = 8, .container = UINT16_MAX

static const struct {
    struct pod_view pod;
    struct grant grants[FEW];
} read[] = {
    {POD("none", CONTAINERS(1, MAIN(0, "8"))), {{0}}},
    {POD("index", .idx = S("3"), CONTAINERS(1, MAIN(0, "8"))), {{EIGHT, .card = 3}}},
    {POD("no index", .idx = S("x"), CONTAINERS(1, MAIN(0, "8"))), {{0}}},
    {POD("negative", .idx = S("-1"), CONTAINERS(1, MAIN(0, "8"))), {{0}}},
    {POD("several", .idx = S("0,2"), CONTAINERS(1, MAIN(0, "8"))), {{EIGHT}, {EIGHT, .card = 2}}},
    {POD("parts", .idx = S("2,0"), .count_label = S("2"), CONTAINERS(1, MAIN(0, "16"))),
     {{EIGHT, .card = 2}, {EIGHT}}},
    {POD("fewer than asked", .idx = S("2"), .count_label = S("2"), CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 2}}},
    {POD("partly readable", .idx = S("x,1,,-1,1,3,"), CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 1}, {EIGHT, .card = 3}}},
    {POD("blanks", .idx = S(" 0,\t2 "), .count_label = S("2"), CONTAINERS(1, MAIN(0, "16"))),
     {{EIGHT}, {EIGHT, .card = 2}}},
    {POD("signs", .idx = S("+3,-0"), CONTAINERS(1, MAIN(0, "8"))), {{EIGHT, .card = 3}, {EIGHT}}},
    {POD("several, peak", .idx = S("0,2"), CONTAINERS(1, INIT(0, "9"), MAIN(0, "8"))),
     {{.mem = 9, .container = UINT16_MAX}, {.mem = 9, .card = 2, .container = UINT16_MAX}}},
    {POD("whole cards", .idx = S("0,1"), .count_label = S("2"), WHOLE, CONTAINERS(1, MAIN(0, "2"))),
     {{.mem = 1, .container = UINT16_MAX}, {.mem = 1, .card = 1, .container = UINT16_MAX}}},
    {POD("several and a broken allocation", .idx = S("0,2"), ALLOCATION({0, 0, 3}, {0, 2, 4}),
         CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT}, {EIGHT, .card = 2}}},
    {POD("both of several", .idx = S("0,2"), ALLOCATION({0, 0, 4}, {0, 2, 4}),
         CONTAINERS(1, MAIN(0, "8"))),
     {{4, 0, 0, 0}, {4, 2, 0, 0}}},
    {POD("an allocation with fewer cards", .idx = S("0,2"), ALLOCATION({0, 0, 8}),
         CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT}, {EIGHT, .card = 2}}},
    {POD("an allocation with more cards", .idx = S("0"), ALLOCATION({0, 0, 4}, {0, 2, 4}),
         CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT}}},
    {POD("huge", .idx = S("2147483648"), CONTAINERS(1, MAIN(0, "8"))), {{0}}},
    {POD("peak", .idx = S("3"), CONTAINERS(1, INIT(0, "9"), MAIN(0, "8"))), {{EIGHT, .card = 3}}},
    {POD("both", .idx = S("1"), ALLOCATION({0, 1, 8}), CONTAINERS(1, MAIN(0, "8"))),
     {{8, 1, 0, 0}}},
    {POD("another pod's", .idx = S("3"), ALLOCATION({0, 1, 8}), CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 3}}},
    {POD("unreadable", .idx = S("3"), .has_allocation = false, CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 3}}},
    {POD("two", ALLOCATION({0, 1, 8}, {1, 0, 4}), TWO), {{8, 1, 0, 30}, {4, 0, 1, 0}}},
    {POD("four", ALLOCATION({0, 1, 5}, {0, 2, 3}, {1, 0, 4}), TWO),
     {{5, 1, 0, 15}, {3, 2, 0, 15}, {4, 0, 1, 0}}},
    {POD("a sidecar", ALLOCATION({1, 1, 3}, {0, 2, 4}),
         CONTAINERS(1, SIDECAR(0, "3"), MAIN(0, "4"))),
     {{3, 1, 1, 0}, {4, 2, 0, 0}}},
    {POD("an init container needs none", ALLOCATION({0, 2, 4}),
         CONTAINERS(1, INIT(0, "3"), MAIN(0, "4"))),
     {{4, 2, 0, 0}}},
    {POD("more of a percentage", .percent = S("50"), ALLOCATION({0, 2, 14}, {1, 2, 4}), TWO),
     {{14, 2, 0, 30}, {4, 2, 1, 0}}},
    {POD("more of a whole card", WHOLE, ALLOCATION({0, 2, 16}), CONTAINERS(1, MAIN(0, "8"))),
     {{16, 2, 0, 0}}},
    /* The spec says how much. An annotation that contradicts it leaves only the index. */
    {POD("too much", .idx = S("3"), ALLOCATION({0, 1, 9}), CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 3}}},
    {POD("too little", .idx = S("3"), ALLOCATION({0, 1, 7}), CONTAINERS(1, MAIN(0, "8"))),
     {{EIGHT, .card = 3}}},
    {POD("one is missing", ALLOCATION({0, 1, 8}), TWO), {{0}}},
    {POD("a stranger", ALLOCATION({0, 1, 8}, {1, 1, 4}, {2, 1, 1}), TWO), {{0}}},
    {POD("twice", ALLOCATION({0, 1, 4}, {0, 1, 4}, {1, 1, 4}), TWO), {{0}}},
    {POD("negative part", ALLOCATION({0, 1, 9}, {0, 2, -1}, {1, 1, 4}), TWO), {{0}}},
    {POD("no such index", ALLOCATION({0, (uint32_t)INT32_MAX + 1, 8}, {1, 1, 4}), TWO), {{0}}},
    {POD("wraps", ALLOCATION({0, 1, INT64_MIN}, {0, 2, INT64_MIN}, {0, 3, 8}, {1, 1, 4}), TWO),
     {{0}}},
    {POD("more than there is", WHOLE, ALLOCATION({0, 2, INT64_MAX}, {1, 2, INT64_MAX}), TWO),
     {{0}}},
    {POD("more cards than asked for", WHOLE, ALLOCATION({0, 1, 16}, {0, 2, 16}),
         CONTAINERS(1, MAIN(0, "8"))),
     {{0}}},
    {POD("the whole range", .percent = S("1"), ALLOCATION({0, 2, REQUEST_MEM_MAX}, {1, 2, 1}),
         CONTAINERS(2, MAIN(0, "0"), MAIN(1, "0"))),
     {{0}}},
    {POD("no container asks", .mem_overhead = S("8"), .idx = S("3"), ALLOCATION({0, 1, 64}),
         CONTAINERS(1, MAIN(0, "0"))),
     {{EIGHT, .card = 3}}},
    {POD("another plugin's", .idx = S("3"), CONTAINERS(1, {.name = S("c"), .exclusive = S("1")})),
     {{0}}},
};

TEST_EACH(reads_where_a_bound_pod_is, COUNT_OF(read))
{
    struct request r = read_request(&read[_i].pod);
    struct placement p;
    uint32_t expected = 0;
    while (read[_i].grants[expected].mem > 0)
        expected++;
    placement_read(&read[_i].pod, &r, &p);
    ck_assert_uint_eq(p.n, expected);
    for (uint32_t i = 0; i < p.n; i++)
        ck_assert_mem_eq(&p.grants[i], &read[_i].grants[i], sizeof(p.grants[i]));
}

/* An annotation that large is scanned once, not once for each entry. */
TEST(too_many_grants_are_none)
{
    enum {
        MANY = 10000
    };
    static struct grant_view grants[MANY];
    struct container_view c = MAIN(0, "10000");
    struct pod_view pod = {.has_allocation = true, .containers = &c, .n_containers = 1};
    struct placement p;
    for (uint32_t i = 0; i < MANY; i++)
        grants[i] = (struct grant_view){.card = i, .mem = 1};
    struct request r = read_request(&pod);
    pod.grants = grants;
    pod.n_grants = MANY;
    placement_read(&pod, &r, &p);
    ck_assert_uint_eq(p.n, 0);
    r.demands[0].mem = REQUEST_GRANTS_MAX;
    pod.n_grants = REQUEST_GRANTS_MAX;
    placement_read(&pod, &r, &p);
    ck_assert_uint_eq(p.n, REQUEST_GRANTS_MAX);
}

static enum errc make(void *ctx)
{
    struct request r = {.mem = 8, .lasting_mem = 8};
    struct placement p = {.n = 1, .grants = {{8, 1, UINT16_MAX, 0}}};
    struct pod_allocation *h = pod_allocation_new(&r, &p, false);
    (void)ctx;
    if (h == NULL)
        return ERR_NOMEM;
    mem_free(h);
    return OK;
}

TEST(is_one_block)
{
    ck_assert_uint_eq(fail_alloc_each(make, NULL), 1);
}
