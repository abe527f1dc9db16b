/* Which cards are in use, over lists, changes and ends of pods. */
#include "node/roster/in_use.h"

#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

static struct in_use u;

static void set_up(void)
{
    in_use_init(&u, (struct map_seed){1, 2});
}

static void tear_down(void)
{
    fail_alloc_disarm();
    in_use_done(&u);
}

static const struct container_view asks = {.name = STR("c"),
                                           .of = {[DIALECT_GPUSHARE] = {.mem = STR("1")}}};

static void set(const char *uid, const char *idx, const char *phase)
{
    const struct pod_view v = {.uid = str_of(uid),
                               .idx = str_of(idx),
                               .phase = phase == NULL ? STR_NULL : str_of(phase),
                               .containers = &asks,
                               .n_containers = 1};
    in_use_set(&u, &v);
}

static void uses(const char *bits)
{
    char is[8] = "";
    for (uint32_t i = 0; i < 6; i++)
        is[i] = in_use_has(&u, i) ? '1' : '0';
    ck_assert_str_eq(is, bits);
}

TEST(over_a_life)
{
    const struct grant_view grants[] = {{.container = 0, .card = 4}, {.container = 1, .card = 5}};
    const struct pod_view granted = {
        .uid = STR("g"), .grants = grants, .n_grants = 2, .containers = &asks, .n_containers = 1};
    const struct pod_view without = {.uid = STR("w"), .idx = STR("0,1,2,3,4,5")};
    in_use_begin(&u);
    in_use_set(&u, &without); /* its author can write that, and its containers get no card */
    set("a", "0", "Pending");
    set("b", "+1, 3", NULL);
    set("c", NULL, "Running");
    in_use_set(&u, &granted);
    in_use_end(&u);
    uses("110111");
    set("a", "2", "Running"); /* its cards were exchanged */
    uses("011111");
    set("a", "2", "Failed");
    uses("010111");
    in_use_gone(&u, STR("g"));
    in_use_gone(&u, STR("absent"));
    uses("010100");
    in_use_begin(&u);
    set("d", "x,-1,1024, 5", NULL);
    in_use_end(&u);
    uses("000001");
}

/* A list that failed midway: another begins, and its pods stay. */
TEST(a_list_that_fails)
{
    in_use_begin(&u);
    set("a", "0", NULL);
    in_use_begin(&u);
    set("b", "1", NULL);
    uses("110000");
    in_use_end(&u);
    uses("010000");
}

TEST(many_pods)
{
    char uid[16];
    for (int list = 0; list < 2; list++) {
        in_use_begin(&u);
        for (int i = list; i < 500; i += list + 1) {
            (void)snprintf(uid, sizeof(uid), "u%d", i);
            set(uid, i % 2 == 0 ? "0" : "1", NULL);
        }
        in_use_end(&u);
        uses(list == 0 ? "110000" : "010000");
    }
    ck_assert_uint_eq(u.pods.n, 250);
}

START_TEST(no_memory)
{
    fail_alloc_arm(FAIL_ONCE, (size_t)_i);
    set("a", "0", NULL);
    fail_alloc_disarm();
    uses("111111");
}

int main(void)
{
    TCase *c = unit_case("in_use");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_loop_test(c, no_memory, 1, 3);
    return unit_run();
}
