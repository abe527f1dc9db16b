/* The cards that DRA has given away: slices, claims and classes in the cache. */
#include "core/place/fit.h"
#include "dra_rig.h"
#include "fail_alloc.h"
#include "report/plan.h"
#include "seeded.h"

/* Two slices of one GPU, which have its PCI address. */
static const struct card_view slices_of_a[] = {
    {.index = 0, .mem = 8, .numa = -1, .uuid = {"MIG-1", 5}, .pci = 0xa},
    {.index = 1, .mem = 8, .numa = -1, .uuid = {"MIG-2", 5}, .pci = 0xa},
};

/* "1 2": what of the two cards is usable and how much is charged: "-" for a card that is not. */
static const char *cards_of(const struct rig *r)
{
    static char text[64];
    const struct node *n = node_of(r, "n1");
    int at = 0;
    for (uint32_t i = 0; i < n->n_cards; i++)
        at += card_usable(&n->cards[i]) ? snprintf(text + at, sizeof(text) - (size_t)at, "%lld ",
                                                   (long long)n->cards[i].used)
                                        : snprintf(text + at, sizeof(text) - (size_t)at, "- ");
    return text;
}

#define SHARES(d, bytes) \
    ((struct dra_result_view){.device = STR(d), .shared = true, .memory = (bytes)})

static const struct {
    const struct card_view *cards;
    struct dra_device_view device;
    struct dra_result_view held;
    const char *then;
} joins[] = {
    /* by UUID, in any case of letters */
    {two, {.name = {"d", 1}, .uuid = {"gpu-B", 5}}, {.device = {"d", 1}}, "0 - "},
    /* a UUID that no card has, and the PCI address of one */
    {two, {.name = {"d", 1}, .uuid = {"GPU-x", 5}, .pci = 0xa}, {.device = {"d", 1}}, "- 0 "},
    /* no card */
    {two, {.name = {"d", 1}, .uuid = {"GPU-x", 5}, .pci = 0xc}, {.device = {"d", 1}}, "0 0 "},
    /* another device of the slice */
    {two, {.name = {"e", 1}, .uuid = {"GPU-a", 5}}, {.device = {"d", 1}}, "0 0 "},
    /* a MIG device of a card takes the card */
    {two,
     {.name = {"d", 1}, .uuid = {"MIG-9", 5}, .parent = {"GPU-b", 5}},
     {.device = {"d", 1}},
     "0 - "},
    {two,
     {.name = {"d", 1}, .uuid = {"MIG-9", 5}, .parent = {"GPU-b", 5}, .memory = 16 * GIB},
     {.device = {"d", 1}, .shared = true, .memory = GIB},
     "0 - "},
    /* a MIG device that is a card itself */
    {slices_of_a,
     {.name = {"d", 1}, .uuid = {"MIG-2", 5}, .parent = {"GPU-a", 5}, .pci = 0xa},
     {.device = {"d", 1}},
     "0 - "},
    /* a whole GPU whose slices are cards */
    {slices_of_a,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .pci = 0xa},
     {.device = {"d", 1}},
     "- - "},
    /* parts, rounded up in the node's unit */
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .memory = 16 * GIB},
     {.device = {"d", 1}, .shared = true, .memory = 4 * GIB},
     "4 0 "},
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .memory = 16 * GIB},
     {.device = {"d", 1}, .shared = true, .memory = 4 * GIB + 1},
     "5 0 "},
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .memory = 16 * GIB},
     {.device = {"d", 1}, .shared = true, .memory = INT64_MAX},
     "16 0 "},
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .memory = INT64_MAX},
     {.device = {"d", 1}, .shared = true, .memory = INT64_MAX / 2},
     "9 0 "},
    /* parts of unknown size: the whole card */
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}, .memory = 16 * GIB},
     {.device = {"d", 1}, .shared = true, .memory = -1},
     "- 0 "},
    {two,
     {.name = {"d", 1}, .uuid = {"GPU-a", 5}},
     {.device = {"d", 1}, .shared = true, .memory = GIB},
     "- 0 "},
    /* a node without a table: which of its cards it is can't be told */
    {NULL, {.name = {"d", 1}, .uuid = {"GPU-a", 5}}, {.device = {"d", 1}}, "- - "},
    {NULL, {.name = {"d", 1}, .pci = 0xa}, {.device = {"d", 1}}, "0 0 "},
};

/* In any order of node, slice and claim. */
TEST_EACH(a_held_device_takes_its_card, COUNT_OF(joins))
{
    for (int order = 0; order < 6; order++) {
        struct rig r;
        rig_init(&r);
        for (int step = 0; step < 3; step++) {
            int what = (order + (order < 3 ? step : 2 * step)) % 3;
            if (what == 0)
                ck_assert_int_eq(table_set(&r, joins[_i].cards, NULL, NULL), OK);
            else if (what == 1)
                ck_assert_int_eq(slice_set(&r, "s", 1, joins[_i].device), OK);
            else
                ck_assert_int_eq(claim_set(&r, "c", joins[_i].held), OK);
        }
        ck_assert_str_eq(cards_of(&r), joins[_i].then);
        claim_gone(&r, "c");
        ck_assert_str_eq(cards_of(&r), "0 0 ");
        rig_done(&r);
    }
}

TEST(a_claim_without_allocation_releases)
{
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-a")), OK);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    uint64_t version = node_of(&r, "n1")->version;
    ck_assert_str_eq(cards_of(&r), "- 0 ");
    /* the same again changes nothing */
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert(!r.fx.changed && node_of(&r, "n1")->version == version);
    ck_assert_int_eq(claim_set(&r, "c", (struct dra_result_view){.memory = -1}), OK);
    ck_assert_str_eq(cards_of(&r), "0 0 ");
    ck_assert(r.fx.changed && node_of(&r, "n1")->version != version);
    ck_assert_uint_eq(r.cache.dra.claims.n, 0);
    rig_done(&r);
}

/* A driver restarts: the kubelet deletes its slices, and the pods go on. */
TEST(a_card_stays_held_without_its_slice)
{
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-a")), OK);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    slice_gone(&r, "s");
    ck_assert_str_eq(cards_of(&r), "- 0 ");
    /* an older slice of that name says less than the kept one would, but it is there */
    ck_assert_int_eq(slice_set(&r, "t", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_str_eq(cards_of(&r), "0 - ");
    ck_assert_int_eq(slice_set(&r, "u", 2, NAMED("d", "GPU-a")), OK);
    ck_assert_str_eq(cards_of(&r), "- 0 ");
    /* the device has left its slice */
    slice_gone(&r, "t");
    ck_assert_int_eq(slice_set(&r, "u", 3, NAMED("e", "GPU-b")), OK);
    ck_assert_str_eq(cards_of(&r), "- 0 ");
    claim_gone(&r, "c");
    ck_assert_str_eq(cards_of(&r), "0 0 ");
    slice_gone(&r, "u");
    ck_assert(r.cache.dra.pools.n == 0 && r.cache.dra.nodes.n == 0);
    rig_done(&r);
}

TEST(a_list_drops_what_it_does_not_name)
{
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    list_begin(&r, CACHE_SLICES);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-a")), OK);
    list_end(&r, CACHE_SLICES);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert_int_eq(claim_set(&r, "k", SHARES("d", GIB)), OK);
    list_begin(&r, CACHE_CLAIMS);
    ck_assert_int_eq(claim_set(&r, "k", SHARES("d", GIB)), OK);
    list_end(&r, CACHE_CLAIMS);
    ck_assert_uint_eq(r.fx.swept, 1);
    ck_assert_str_eq(cards_of(&r), "1 0 ");
    list_begin(&r, CACHE_SLICES);
    list_end(&r, CACHE_SLICES);
    ck_assert_str_eq(cards_of(&r), "1 0 ");
    list_begin(&r, CACHE_CLAIMS);
    list_end(&r, CACHE_CLAIMS);
    ck_assert_str_eq(cards_of(&r), "0 0 ");
    rig_done(&r);
}

static enum verdict fits(const struct rig *r, int64_t mem)
{
    struct request q = {.mem = mem,
                        .lasting_mem = mem,
                        .n_demands = 1,
                        .demands = {{.mem = mem, .kind = CONTAINER_MAIN}}};
    struct evaluation evaluation;
    cache_evaluation(&r->cache, STR("?"), &q, &evaluation);
    return fit_node(node_of(r, "n1"), &evaluation);
}

TEST(shared_pods_get_no_card_that_is_held)
{
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-a")), OK);
    ck_assert_int_eq(slice_set(&r, "t", 1, NAMED("e", "GPU-b")), OK);
    ck_assert_int_eq(claim_set(&r, "c", SHARES("d", 10 * GIB)), OK);
    ck_assert_int_eq(claim_set(&r, "k", HOLDS("e")), OK);
    ck_assert_int_eq(fits(&r, 6), VERDICT_FITS);
    ck_assert_int_eq(fits(&r, 7), VERDICT_NO_CARD_FREE);
    ck_assert_int_eq(reserve(&r, "p", "n1", 6), OK);
    ck_assert_str_eq(cards_of(&r), "16 - ");
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert_int_eq(fits(&r, 1), VERDICT_CLAIMED);
    /* the card was taken between the reservation and the Binding: the Binding is not sent */
    ck_assert_int_eq(renew(&r, "p"), ERR_UNAVAILABLE);
    ck_assert_int_eq(r.fx.verdict, VERDICT_CLAIMED);
    cancel(&r, "p");
    claim_gone(&r, "c");
    ck_assert_str_eq(cards_of(&r), "0 - ");
    rig_done(&r);
}

TEST(cards_are_set_aside_for_dra)
{
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, "1", NULL), OK);
    ck_assert_str_eq(cards_of(&r), "0 - ");
    ck_assert_int_eq(fits(&r, 1), VERDICT_FITS);
    ck_assert_int_eq(table_set(&r, two, NULL, "true"), OK);
    ck_assert_str_eq(cards_of(&r), "- - ");
    ck_assert_int_eq(fits(&r, 1), VERDICT_UNUSABLE);
    ck_assert_int_eq(table_set(&r, two, NULL, "false"), OK);
    ck_assert_str_eq(cards_of(&r), "0 0 ");
    ck_assert_uint_eq(node_of(&r, "n1")->sizes->bad_tokens, 0);
    ck_assert_int_eq(table_set(&r, two, "0", "yes"), OK);
    ck_assert_str_eq(cards_of(&r), "- 0 ");
    ck_assert_uint_eq(node_of(&r, "n1")->sizes->bad_tokens, 1);
    rig_done(&r);
}

/* nvidia.com/gpu by a DeviceClass: claims say which cards are taken, so both kinds of pods run. */
TEST(whole_cards_by_dra_are_not_exclusive)
{
    struct rig r;
    const struct request whole = {.exclusive = 1};
    const struct request pair = {.exclusive = 2};
    const struct evaluation of_whole = {.request = &whole};
    const struct evaluation of_pair = {.request = &pair};
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(reserve(&r, "p", "n1", 6), OK);
    ck_assert_int_eq(fit_node(node_of(&r, "n1"), &of_whole), VERDICT_SHARED);
    ck_assert_int_eq(class_set(&r, "other", "example.com/gpu"), OK);
    ck_assert(!node_of(&r, "n1")->delegated);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    ck_assert(r.fx.changed && node_of(&r, "n1")->delegated);
    ck_assert_int_eq(fit_node(node_of(&r, "n1"), &of_whole), VERDICT_FITS);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_pair), VERDICT_FITS);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-b")), OK);
    ck_assert_int_eq(claim_set(&r, "c", HOLDS("d")), OK);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_whole), VERDICT_FITS);
    ck_assert_int_eq(plan_evaluate(node_of(&r, "n1"), &of_pair), VERDICT_NO_EXCLUSIVE);
    list_begin(&r, CACHE_CLASSES);
    list_end(&r, CACHE_CLASSES);
    ck_assert(!node_of(&r, "n1")->delegated);
    rig_done(&r);
}

/* The plugin may have been removed, or not come back yet, since it gave out cards: only the status
 * of a pod tells that a claim serves it. */
TEST_EACH(cards_of_a_plugin_that_is_gone_stay_taken, 6)
{
    static const struct {
        unsigned claims;
        uint32_t renamed;
        int64_t exclusive;
    } of[] = {{0, 0, 1},
              {CLAIMS_RENAMED, 0, 1},
              {CLAIMS_CARDS, 0, 0},
              {CLAIMS_CARDS, 2, 2},
              {CLAIMS_RENAMED, 2, 1},
              {CLAIMS_CARDS | CLAIMS_RENAMED, 2, 0}};

    const struct container_view c = {
        .name = STR("c"), .exclusive = STR("1"), .renamed = of[_i].renamed};
    const struct request shared = {.mem = 4, .n_demands = 1, .demands = {{.mem = 4}}};
    const struct evaluation evaluation = {.request = &shared};
    struct cache_event set = {.type = CACHE_POD_SET,
                              .pod = {.uid = STR("p"),
                                      .namespace = STR("ns"),
                                      .name = STR("p"),
                                      .node = STR("n1"),
                                      .claims = of[_i].claims,
                                      .containers = &c,
                                      .n_containers = 1,
                                      .n_mains = 1}};
    struct rig r;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(class_set(&r, "gpu", "nvidia.com/gpu"), OK);
    ck_assert_int_eq(rig_apply(&r, &set), OK);
    ck_assert(node_of(&r, "n1")->delegated);
    ck_assert_int_eq(node_of(&r, "n1")->exclusive, of[_i].exclusive);
    ck_assert_int_eq(fit_node(node_of(&r, "n1"), &evaluation),
                     of[_i].exclusive > 0 ? VERDICT_EXCLUSIVE : VERDICT_FITS);
    /* The same without the class. */
    list_begin(&r, CACHE_CLASSES);
    list_end(&r, CACHE_CLASSES);
    ck_assert_int_eq(node_of(&r, "n1")->exclusive, of[_i].exclusive);
    pod_gone(&r, "p");
    ck_assert_int_eq(fit_node(node_of(&r, "n1"), &evaluation), VERDICT_FITS);
    rig_done(&r);
}

TEST(devices_are_counted)
{
    struct rig r;
    uint64_t n[DRA_JOINED_COUNT];
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    ck_assert_int_eq(slice_set(&r, "s", 1, NAMED("d", "GPU-a")), OK);
    ck_assert_int_eq(slice_set(&r, "t", 1, NAMED("e", "NIC-1")), OK);
    ck_assert_int_eq(claim_set(&r, "1", HOLDS("d")), OK);
    ck_assert_int_eq(claim_set(&r, "2", HOLDS("e")), OK);
    ck_assert_int_eq(claim_set(&r, "3", HOLDS("f")), OK);
    dra_count(&r.cache.dra, n);
    ck_assert(n[DRA_CARD] == 1 && n[DRA_NO_CARD] == 1 && n[DRA_UNKNOWN] == 1);
    node_gone(&r, "n1");
    dra_count(&r.cache.dra, n);
    ck_assert(n[DRA_CARD] == 0 && n[DRA_NO_CARD] == 2 && n[DRA_UNKNOWN] == 1);
    rig_done(&r);
}

static const struct {
    const char *text;
    uint64_t bits; /* without the highest; UINT64_MAX: not an address */
} addresses[] = {
    {"0000:3b:00.0", 0x3b00},
    {"00000000:3B:00.0", 0x3b00},
    {"0001:ff:1f.7", 0x1ffff},
    {"ffffffff:00:00.0", 0xffffffff0000},
    {"", UINT64_MAX},
    {"0000:3b:00", UINT64_MAX},
    {"3b:00.0", UINT64_MAX},
    {"0000:3b:20.0", UINT64_MAX},
    {"0000:3b:00.8", UINT64_MAX},
    {"0000:100:00.0", UINT64_MAX},
    {"000000000:3b:00.0", UINT64_MAX},
    {"0000:3g:00.0", UINT64_MAX},
    {"0000:3b:00.0.", UINT64_MAX},
    {"0000::00.0", UINT64_MAX},
};

TEST_EACH(pci_addresses_have_two_forms, COUNT_OF(addresses))
{
    uint64_t then = addresses[_i].bits == UINT64_MAX ? 0 : addresses[_i].bits | (uint64_t)1 << 63;
    ck_assert_uint_eq(dra_pci(str_of(addresses[_i].text)), then);
}

/* ---- each allocation fails ---- */

static enum errc fill(void *ctx)
{
    struct rig r;
    (void)ctx;
    rig_init(&r);
    enum errc code = table_set(&r, two, NULL, NULL);
    if (code == OK)
        code = slice_set(&r, "s", 1, NAMED("d", "GPU-a"));
    if (code == OK)
        code = slice_set(&r, "s", 2, NAMED("d", "GPU-b"));
    if (code == OK)
        code = claim_set(&r, "c", HOLDS("d"));
    if (code == OK)
        code = claim_set(&r, "c", SHARES("d", GIB));
    if (code == OK)
        code = class_set(&r, "k", "nvidia.com/gpu");
    rig_done(&r);
    return code;
}

TEST(each_allocation_may_fail)
{
    ck_assert_uint_gt(fail_alloc_each(fill, NULL), 8);
}

/* ---- random histories against a plain list of what was said ---- */

enum {
    SLICES = 4,
    CLAIMS = 5,
    DEVICES = 3,
    STEPS = 400
};

struct said {
    bool there[SLICES]; /* slice i names device i % DEVICES as card (i / DEVICES) or another */
    int64_t generation[SLICES];
    uint32_t card[SLICES];
    bool held[CLAIMS];
    uint32_t device[CLAIMS];
    int64_t part[CLAIMS]; /* in GiB; 0: whole */
};

static const char *const names[] = {"0", "1", "2", "3", "4"};

/* The slice that says which card a device is; SLICES: none. */
static uint32_t speaks(const struct said *s, uint32_t device)
{
    uint32_t best = SLICES;
    for (uint32_t i = 0; i < SLICES; i++) {
        if (s->there[i] && i % DEVICES == device &&
            (best == SLICES || s->generation[i] > s->generation[best]))
            best = i;
    }
    return best;
}

static void compare(const struct rig *r, const struct said *s)
{
    const struct node *n = node_of(r, "n1");
    int64_t used[2] = {0};
    bool whole[2] = {false};
    for (uint32_t i = 0; i < CLAIMS; i++) {
        uint32_t at = s->held[i] ? speaks(s, s->device[i]) : SLICES;
        if (at == SLICES)
            continue;
        used[s->card[at]] += s->part[i];
        whole[s->card[at]] = whole[s->card[at]] || s->part[i] == 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert(n->cards[i].claimed == whole[i]);
        ck_assert_int_eq(n->cards[i].used, whole[i] ? 0 : used[i]);
    }
}

static void step(struct rig *r, struct said *s, uint64_t *rng)
{
    uint32_t i = seeded_draw(rng, SLICES);
    uint32_t c = seeded_draw(rng, CLAIMS);
    bool used = false;
    for (uint32_t k = 0; k < CLAIMS; k++)
        used = used || (s->held[k] && s->device[k] == i % DEVICES);
    if (seeded_draw(rng, 3) > 0) {
        s->held[c] = seeded_draw(rng, 3) > 0;
        s->device[c] = seeded_draw(rng, DEVICES);
        s->part[c] = seeded_draw(rng, 4);
        struct dra_result_view x = {.device = str_of(names[s->device[c]]),
                                    .shared = s->part[c] > 0,
                                    .memory = s->part[c] > 0 ? s->part[c] * GIB : -1};
        if (s->held[c])
            ck_assert_int_eq(claim_set(r, names[c], x), OK);
        else
            claim_gone(r, names[c]);
    } else if (!used || !s->there[i]) { /* what is held keeps its slice: tested above */
        s->there[i] = !s->there[i];
        s->generation[i] = (int64_t)seeded_draw(rng, 1000) * SLICES + i;
        s->card[i] = seeded_draw(rng, 2);
        struct dra_device_view x = {.name = str_of(names[i % DEVICES]),
                                    .uuid = s->card[i] == 0 ? STR("GPU-a") : STR("GPU-b"),
                                    .memory = 16 * GIB};
        if (s->there[i])
            ck_assert_int_eq(slice_set(r, names[i], s->generation[i], x), OK);
        else
            slice_gone(r, names[i]);
    }
    compare(r, s);
}

TEST_EACH(random_histories_agree_with_a_plain_list, 20)
{
    struct rig r;
    struct said s = {.there = {false}};
    uint64_t rng = 1000 + (uint64_t)_i;
    rig_init(&r);
    ck_assert_int_eq(table_set(&r, two, NULL, NULL), OK);
    for (int i = 0; i < STEPS; i++)
        step(&r, &s, &rng);
    rig_done(&r);
}
