/* The work of one request in steps: what costs steps, and how the budget is shared. */
#include "core/step_budget.h"

#include "core/limit.h"
#include "core/pattern.h"
#include "unit.h"

#include <stdio.h>

/* So many names that they push each other out of the memo. */
TEST(models_are_evaluated_as_without_a_memo)
{
    static struct step_budget w;
    static char names[400][8]; /* the memo borrows them */
    static const char *const lists[] = {"", "m1*", "!m1*", "M2*,!*9", " , m3 , ! m31 ", "!*", "*"};
    uint64_t compared = 0;
    step_budget_begin(&w, 1);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t l = 0; l < COUNT_OF(lists); l++) {
            for (unsigned i = 0; i < COUNT_OF(names); i++) {
                int n = snprintf(names[i], sizeof(names[i]), "m%u", i);
                struct str model = {names[i], (size_t)n};
                struct str list = str_of(lists[l]);
                bool allowed = pattern_list_allows(list, model, true, &compared);
                ck_assert(step_budget_matches_model(&w, list, model) == allowed);
                ck_assert(step_budget_matches_model(&w, list, model) == allowed);
                ck_assert(step_budget_matches_model(NULL, list, model) == allowed);
            }
            ck_assert(step_budget_matches_model(&w, str_of(lists[l]), STR_NULL) ==
                      pattern_list_allows(str_of(lists[l]), STR_NULL, true, &compared));
        }
    }
}

TEST(a_model_is_evaluated_once)
{
    static struct step_budget w;
    struct str list = STR("NVIDIA-A100*,!*-40GB");
    step_budget_begin(&w, 1);
    ck_assert(step_budget_matches_model(&w, list, STR("NVIDIA-A100-80GB")));
    uint64_t once = w.steps;
    ck_assert_uint_ge(once, list.n);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(step_budget_matches_model(&w, list, STR("NVIDIA-A100-80GB")));
    ck_assert_uint_le(w.steps, once + UINT64_C(1000) * 3);
}

/* Each pattern may be compared with the whole model. */
TEST(a_model_costs_its_length_for_each_pattern)
{
    static struct step_budget w;
    static char model[200];
    struct str list = STR("!*a*,!*c*,*e*");
    memset(model, 'x', sizeof(model));
    step_budget_begin(&w, 1);
    ck_assert(!step_budget_matches_model(&w, list, (struct str){model, sizeof(model)}));
    ck_assert_uint_ge(w.steps, 3 * sizeof(model) / LIMIT_STEP_BYTES);
    ck_assert_uint_le(w.steps, 5 * sizeof(model) / LIMIT_STEP_BYTES);
}

/* A model costs the bytes that are compared: here nearly the whole piece at each place of it. */
TEST(a_model_costs_what_is_compared)
{
    static struct step_budget w;
    static char model[200];
    struct str list = STR("*xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy*");
    memset(model, 'x', sizeof(model));
    step_budget_begin(&w, 1);
    ck_assert(!step_budget_matches_model(&w, list, (struct str){model, sizeof(model)}));
    ck_assert_uint_ge(w.steps, (sizeof(model) - 40) * 40 / LIMIT_STEP_BYTES);
    ck_assert_uint_le(w.steps, sizeof(model) * 42 / LIMIT_STEP_BYTES);
}

/* Another model is refused without a look at it, and the judgement is not remembered. */
TEST(an_end_of_the_work_is_no_answer)
{
    static struct step_budget w;
    struct str list = STR("a*");
    step_budget_begin(&w, 1);
    ck_assert(step_budget_matches_model(&w, list, STR("a1")));
    w.steps = LIMIT_REQUEST_STEPS + 1;
    ck_assert(step_budget_matches_model(&w, list, STR("a1")));
    ck_assert(!w.cut);
    ck_assert(!step_budget_matches_model(&w, list, STR("a2")));
    ck_assert(w.cut);
    step_budget_begin(&w, 1);
    ck_assert(step_budget_matches_model(&w, list, STR("a2")));
}

static const char *const lists[] = {
    "",        "GPU-7",       "!GPU-7",         "GPU-7,!gpu-7", "gpu-1,GPU-2 , GPU-3,GPU-2,,",
    "!GPU-1,", "! gpu-1,!x,", "GPU-9, !GPU-10", ",,,",          "GPU-*",
};

TEST_EACH(uuids_are_evaluated_as_without_a_list_in_order, COUNT_OF(lists))
{
    static struct step_budget w;
    uint64_t compared = 0;
    step_budget_begin(&w, 1);
    for (unsigned i = 0; i < 30; i++) {
        char bytes[16];
        int n = snprintf(bytes, sizeof(bytes), i % 2 == 0 ? "GPU-%u" : "gpU-%u", i / 2);
        struct str uuid = {bytes, (size_t)n};
        struct str list = str_of(lists[_i]);
        bool allowed = pattern_list_allows(list, uuid, false, &compared);
        ck_assert(step_budget_matches_uuid(&w, list, uuid) == allowed);
        ck_assert(step_budget_matches_uuid(NULL, list, uuid) == allowed);
    }
    ck_assert(step_budget_matches_uuid(&w, str_of(lists[_i]), STR_NULL) ==
              pattern_list_allows(str_of(lists[_i]), STR_NULL, false, &compared));
}

/* As many UUIDs as a pod may name. */
TEST(a_uuid_is_looked_up)
{
    static struct step_budget w;
    static char text[LIMIT_WISH_BYTES];
    size_t n = 0;
    for (unsigned i = 0; i < LIMIT_WISH_ITEMS; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%sGPU-%03u", i == 0 ? "" : ",",
                              i * 7 % 128 * 2);
    struct str list = {text, n};
    step_budget_begin(&w, 1);
    (void)step_budget_matches_uuid(&w, list, STR("GPU-000"));
    uint64_t read = w.steps;
    for (unsigned i = 0; i < 256; i++) {
        char bytes[16];
        int length = snprintf(bytes, sizeof(bytes), "gpu-%03u", i);
        ck_assert(step_budget_matches_uuid(&w, list, (struct str){bytes, (size_t)length}) ==
                  (i % 2 == 0));
    }
    ck_assert_uint_le(w.steps, read + UINT64_C(256) * 8 * 2);
}

/* Steps that one node leaves are for the other nodes; each has a minimum. */
TEST(looks_are_shared)
{
    static struct step_budget w;
    step_budget_begin(&w, 4);
    ck_assert_uint_eq(step_budget_looks(&w, 1), LIMIT_APART_LOOKS / 4);
    step_budget_looked(&w, LIMIT_APART_LOOKS / 4, false);
    step_budget_next_node(&w);
    ck_assert_uint_eq(step_budget_looks(&w, 1), LIMIT_APART_LOOKS / 4);
    step_budget_next_node(&w);
    ck_assert_uint_eq(step_budget_looks(&w, 1), LIMIT_APART_LOOKS / 4 * 3 / 2);
    step_budget_looked(&w, LIMIT_APART_LOOKS, true);
    ck_assert_uint_eq(step_budget_looks(&w, 77), 77);
    ck_assert(!step_budget_is_spent(&w));
    w.steps = LIMIT_REQUEST_STEPS;
    ck_assert(!step_budget_is_spent(&w));
    w.steps++;
    ck_assert(step_budget_is_spent(&w));
}
