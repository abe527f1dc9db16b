/* Requests with several containers: their charge on a card, and whether they may be on different
 * cards. */
#include "core/place/fit.h"

#include "cache_rig.h"

struct init_case {
    const char *name;
    bool whole;
    uint32_t percent;
    uint32_t cards;
    int64_t sidecar; /* each container's, over all cards */
    int64_t init;
    int64_t main;
    int64_t granted; /* on each card, after the init containers are done */
    int64_t charged; /* before that */
};

/* On two cards of 8. */
static const struct init_case cases[] = {
    {"plain", false, 0, 1, 0, 5, 2, 2, 5},
    {"beside a sidecar", false, 0, 1, 1, 5, 2, 3, 6},
    {"on two cards", false, 0, 2, 2, 10, 4, 3, 6},
    {"whole", true, 0, 1, 1, 5, 2, 8, 8},
    {"two whole ones", true, 0, 2, 2, 10, 4, 8, 8},
    {"percent", false, 25, 1, 0, 5, 1, 2, 5},
    {"percent beside a sidecar", false, 50, 1, 1, 5, 1, 4, 6},
    {"percent that is more", false, 75, 1, 1, 3, 1, 6, 6},
};

static uint32_t add(struct request *r, enum container_kind kind, uint16_t index, int64_t mem)
{
    if (mem > 0)
        r->demands[r->n_demands++] = (struct demand){.mem = mem, .index = index, .kind = kind};
    return r->n_demands;
}

static struct request request_of(const struct init_case *c)
{
    struct request r = {.whole = c->whole, .percent = c->percent, .cards = c->cards};
    r.lasting_mem = c->sidecar + c->main;
    r.mem = MAX_OF(r.lasting_mem, c->sidecar + c->init);
    add(&r, CONTAINER_SIDECAR, 1, c->sidecar);
    add(&r, CONTAINER_INIT, 2, c->init);
    add(&r, CONTAINER_MAIN, 0, c->main);
    return r;
}

TEST_EACH(an_init_container_runs_beside_what_a_sidecar_asks_for, COUNT_OF(cases))
{
    const struct init_case *c = &cases[_i];
    struct request request = request_of(c);
    struct rig r;
    rig_init(&r);
    node_set(&r, "n", "16", "2", NULL);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = STR("p"),
                                        .namespace = STR("ns"),
                                        .name = STR("p"),
                                        .node = STR("n"),
                                        .request = &request}};
    ck_assert_msg(rig_apply(&r, &e) == OK, "%s", c->name);
    const struct pod_allocation *h = pod_of(&r, "p")->allocation;
    for (uint32_t card = 0; card < c->cards; card++) {
        int64_t granted = 0;
        for (uint32_t i = 0; i < h->n_grants; i++)
            granted += h->grants[i].card == card ? h->grants[i].mem : 0;
        ck_assert_msg(granted == c->granted, "%s: %lld granted", c->name, (long long)granted);
        ck_assert_msg(card_used(&r, "n", card) == c->charged, "%s: %lld used", c->name,
                      (long long)card_used(&r, "n", card));
    }
    rig_done(&r);
}

TEST(containers_part_where_no_label_binds_them)
{
    struct request r = {.mem = 11, .lasting_mem = 11};
    const struct evaluation evaluation = {.request = &r};
    struct placement there;
    struct rig rig;
    rig_init(&rig);
    node_set(&rig, "n", "16", "2", NULL);
    add(&r, CONTAINER_MAIN, 0, 6);
    add(&r, CONTAINER_MAIN, 1, 5);
    ck_assert_int_eq(fit_place(node_of(&rig, "n"), &evaluation, &there), VERDICT_FITS);
    ck_assert_uint_eq(there.n, 2);
    ck_assert_uint_ne(there.grants[0].card, there.grants[1].card);
    r.cards = 1; /* aliyun.com/gpu-count: "1" */
    ck_assert_int_eq(fit_place(node_of(&rig, "n"), &evaluation, &there), VERDICT_TOO_LARGE);
    rig_done(&rig);
}

TEST(a_bad_table_says_which_field_it_is)
{
    struct rig r;
    char bytes[512];
    struct buf scratch = BUF_ON(bytes);
    rig_init(&r);
    struct cache_event e = {.type = CACHE_NODE_SET,
                            .node = {.name = STR("n"),
                                     .mem = STR("16"),
                                     .count = STR("2"),
                                     .has_cards = true,
                                     .cards_fault = "cardpack.io/cards: 0.memory: \"x\" is none"}};
    ck_assert_int_eq(rig_apply(&r, &e), OK);
    ck_assert_str_is(fit_reason(node_of(&r, "n"), VERDICT_BAD_CARDS, STR("n"), &scratch),
                     "The node's annotation cardpack.io/cards: 0.memory: \"x\" is none");
    ck_assert_str_is(fit_reason(NULL, VERDICT_UNKNOWN_NODE, STR("n"), &scratch),
                     "node \"n\" not found");
    rig_done(&r);
}
