/* Victims for a pod that asks for more than memory of one card. */
#include "victims_rig.h"

/* Cards with too little room for any pod, so that the node's sum is not short. */
static void fill_cards(struct rig *r, int from, int to, const char *mem)
{
    static const char *const names[] = {"f0", "f1", "f2", "f3", "f4", "f5"};
    for (int i = from; i < to; i++)
        actor_apply(r, (struct actor){.uid = names[i], .mem = mem, .card = i, .priority = 100});
}

TEST(several_cards)
{
    struct victims_rig s;
    victims_rig_init(&s, "64", "4");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "8", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "8", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "c", .mem = "16", .card = 1});
    actor_apply(&s.rig, (struct actor){.uid = "d", .mem = "16", .card = 2, .priority = 5});
    actor_apply(&s.rig, (struct actor){.uid = "e", .mem = "2", .card = 3});
    s.request.cards = 2;
    want(&s, 32);
    ck_assert_str_eq(choose(&s), "c e");
    want(&s, 28); /* 14 on each card: evicting e leaves as much */
    ck_assert_str_eq(choose(&s), "c");
    s.request.cards = 3;
    want(&s, 48);
    ck_assert_str_eq(choose(&s), "a b c e");
    s.request.cards = 5;
    want(&s, 5);
    ck_assert_str_eq(choose(&s), "too_few");
    s.request.cards = 1;
    s.request.whole = true;
    want(&s, 1);
    ck_assert_str_eq(choose(&s), "c");
    victims_rig_done(&s);
}

TEST(containers_apart)
{
    static const char *const fill[] = {"x", "y", "z"};
    struct victims_rig s;
    victims_rig_init(&s, "80", "5");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "6", .card = 0});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "10", .card = 0, .priority = 3});
    actor_apply(&s.rig, (struct actor){.uid = "c", .mem = "6", .card = 1});
    actor_apply(&s.rig, (struct actor){.uid = "d", .mem = "10", .card = 1, .priority = 3});
    for (int i = 2; i < 5; i++)
        actor_apply(&s.rig,
                    (struct actor){.uid = fill[i - 2], .mem = "11", .card = i, .priority = 100});
    s.request.n_demands = 2;
    s.request.demands[0].mem = 6;
    s.request.demands[1] = (struct demand){.mem = 6, .index = 1, .kind = CONTAINER_MAIN};
    s.request.mem = s.request.lasting_mem = 12;
    ck_assert_str_eq(choose(&s), "a c");
    victims_rig_done(&s);
}

TEST(compute_and_groups)
{
    struct victims_rig s;
    victims_rig_init(&s, "32", "2");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "2", .card = 0, .cores = "60"});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "2", .card = 0, .cores = "30"});
    actor_apply(&s.rig,
                (struct actor){
                    .uid = "c", .mem = "2", .card = 1, .cores = "90", .anti = "g", .priority = 8});
    s.request.cores = s.request.lasting_cores = 20;
    s.request.demands[0].cores = 20;
    want(&s, 2);
    ck_assert_str_eq(choose(&s), "a"); /* not c, which has a higher priority */
    s.request.cores = s.request.lasting_cores = 0;
    s.request.demands[0].cores = 0;
    s.request.anti_affinity = STR("g");
    want(&s, 14);
    ck_assert_str_eq(choose(&s), "a");
    s.request.uuids = STR("");
    want(&s, 15);
    ck_assert_str_eq(choose(&s), "a b");
    actor_apply(&s.rig, (struct actor){.uid = "d", .mem = "12", .card = 0, .priority = 100});
    ck_assert_str_eq(choose(&s), "c"); /* its group does not matter after it is gone */
    s.request.anti_affinity = STR_NULL;
    s.request.affinity = STR("h");
    actor_apply(&s.rig, (struct actor){.uid = "e", .mem = "4", .card = 1, .beside = "h"});
    want(&s, 12);
    ck_assert_str_eq(choose(&s), "c"); /* on e's card, and e stays */
    want(&s, 13);
    ck_assert_str_eq(choose(&s), "no_card_free");
    victims_rig_done(&s);
}

/* Without e its card has room for the other pod; without d too, that pod gets d's card. */
TEST(room_for_others_on_another_card)
{
    struct victims_rig s;
    victims_rig_init(&s, "64", "4");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "8", .card = 0, .priority = 50});
    actor_apply(&s.rig, (struct actor){.uid = "d", .mem = "8", .card = 0, .priority = 1});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "8", .card = 1, .priority = 50});
    actor_apply(&s.rig, (struct actor){.uid = "e", .mem = "8", .card = 1});
    fill_cards(&s.rig, 2, 4, "9");
    want(&s, 8);
    ck_assert_str_eq(choose(&s), "e");
    nominate(&s.rig, "other", "8", 100);
    ck_assert_str_eq(choose(&s), "d e");
    victims_rig_done(&s);
}

TEST(who_holds_of_both_kinds)
{
    struct victims_rig s;
    victims_rig_init(&s, "80", "5");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "2", .card = 0, .exclusive = "1"});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "14", .card = 0, .priority = 50});
    actor_apply(&s.rig, (struct actor){.uid = "c", .mem = "16", .card = 1, .priority = 1});
    fill_cards(&s.rig, 2, 5, "9");
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "a c");
    victims_rig_done(&s);
}

/* Too many sets to try all. The cards are tried one by one, so it finds the one small pod. */
TEST(the_cheap_cards_of_many)
{
    struct victims_rig s;
    char uids[8][5][8];
    victims_rig_init(&s, "160", "10");
    actor_apply(&s.rig, (struct actor){.uid = "a", .mem = "1", .card = 2});
    actor_apply(&s.rig, (struct actor){.uid = "b", .mem = "1", .card = 8});
    for (int i = 0; i < 40; i++) {
        char *uid = uids[i / 5][i % 5];
        int card = i / 5 + (i / 5 >= 2 ? 1 : 0) + (i / 5 >= 7 ? 1 : 0);
        (void)snprintf(uid, sizeof(uids[0][0]), "p%02d", i);
        actor_apply(
            &s.rig,
            (struct actor){.uid = uid, .mem = i % 5 == 4 ? "4" : "3", .card = card, .anti = uid});
    }
    want(&s, 16);
    ck_assert_str_eq(choose(&s), "a");
    s.request.cards = 2;
    want(&s, 32);
    ck_assert_str_eq(choose(&s), "a b");
    victims_rig_done(&s);
}

/* With no more steps than for the first set, the result is still a set in which each victim is
 * needed. */
TEST(tired_it_takes_what_it_has)
{
    struct victims_rig s;
    char uids[40][8];
    victims_rig_init(&s, "64", "1");
    for (int i = 0; i < 40; i++) {
        (void)snprintf(uids[i], sizeof(uids[i]), "p%02d", i);
        actor_apply(&s.rig, (struct actor){.uid = uids[i],
                                           .mem = i % 2 == 0 ? "1" : "2",
                                           .card = 0,
                                           .priority = i % 7});
    }
    want(&s, 10);
    s.steps = 0;
    const char *quick = choose(&s);
    ck_assert_uint_gt(s.got.cost.n, 0);
    ck_assert_msg(strlen(quick) >= 9, "%s", quick);
    struct victims_cost first = s.got.cost;
    s.steps = STEPS;
    (void)choose(&s);
    ck_assert_uint_gt(STEPS - s.steps, 40);
    ck_assert_uint_le(STEPS - s.steps, 4096 + 40);
    ck_assert_int_le(victims_cost_cmp(&s.got.cost, &first), 0);
    victims_rig_done(&s);
}
