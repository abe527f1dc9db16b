/* The order of nodes for a shortlist, compared with a full sort. */
#include "core/place/rank.h"

#include "seeded.h"

#include <stdio.h>

#define MOST 200

static int better_first(const void *a, const void *b)
{
    const struct rank_entry *x = a;
    const struct rank_entry *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    int order = str_cmp(x->name, y->name);
    if (order != 0)
        return order;
    return x->i < y->i ? -1 : x->i > y->i;
}

static bool holds(const struct rank *r, size_t i)
{
    for (size_t k = 0; k < r->n; k++) {
        if (r->entries[k].i == i)
            return true;
    }
    return false;
}

/* Few scores and few names, so that most entries equal others. */
static size_t draw(uint64_t *state, struct rank_entry *entries, char names[MOST][8])
{
    size_t n = seeded_draw(state, MOST);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%u", seeded_draw(state, 60));
        uint64_t score = seeded_draw(state, 2) != 0 ? seeded_draw(state, 5) : UINT64_MAX - i;
        entries[i] = (struct rank_entry){score, str_of(names[i]), i};
    }
    return n;
}

TEST(keeps_what_sorting_all_would)
{
    uint64_t state = seeded_setting("CARDPACK_SEED", 11);
    static char names[MOST][8];
    struct rank_entry all[MOST];
    struct rank_entry room[MOST];
    for (int round = 0; round < 3000; round++) {
        size_t n = draw(&state, all, names);
        struct rank r = {.entries = room, .max = 1 + seeded_draw(&state, MOST - 1)};
        for (size_t i = 0; i < n; i++)
            rank_offer(&r, all[i]);
        qsort(all, n, sizeof(all[0]), better_first);
        ck_assert_uint_eq(r.n, MIN_OF(n, r.max));
        for (size_t k = 0; k < r.n; k++)
            ck_assert_msg(holds(&r, all[k].i), "round %d: the one at %zu is not kept", round, k);
    }
}

TEST(does_not_mind_the_order)
{
    static const char *const names[] = {"c", "a", "d", "b"};
    for (size_t first = 0; first < COUNT_OF(names); first++) {
        struct rank_entry room[2];
        struct rank r = {.entries = room, .max = 2};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            size_t at = (first + i) % COUNT_OF(names);
            rank_offer(&r, (struct rank_entry){5, str_of(names[at]), i});
        }
        struct str one = room[0].name;
        struct str other = room[1].name;
        ck_assert(str_eq(str_cmp(one, other) < 0 ? one : other, STR("a")));
        ck_assert(str_eq(str_cmp(one, other) < 0 ? other : one, STR("b")));
    }
}

static int higher_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

TEST(levels_are_dense_ranks)
{
    uint64_t state = seeded_setting("CARDPACK_SEED", 13);
    for (int round = 0; round < 3000; round++) {
        uint64_t all[40] = {0};
        struct rank_levels l = {.n = 0};
        size_t n = seeded_draw(&state, COUNT_OF(all) + 1);
        uint32_t bound = 1 + seeded_draw(&state, 30);
        for (size_t i = 0; i < n; i++) {
            all[i] = 1 + seeded_draw(&state, bound);
            rank_levels_add(&l, all[i]);
        }
        qsort(all, n, sizeof(all[0]), higher_first);
        unsigned level = RANK_LEVELS;
        for (size_t i = 0; i < n; i++) {
            if (i > 0 && all[i] != all[i - 1] && level > 0)
                level--;
            ck_assert_uint_eq(rank_level(&l, all[i]), level);
        }
        ck_assert_uint_eq(rank_level(&l, 1000), 0);
    }
}
