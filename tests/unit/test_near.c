/* The known name nearest to a mistyped one. */
#include "base/near.h"

#include "unit.h"

static const char *const known[] = {"port", "policy", "card-policy", "card-model"};

static const struct {
    const char *name;
    const char *found;
} rows[] = {
    {"prot", "port"},
    {"port", "port"},
    {"polic", "policy"},
    {"card-polcy", "card-policy"},
    {"cad-modl", "card-model"},
    {"model", NULL}, /* five letters are missing */
    {"xyz", NULL},
    {"", NULL},
    {"card-model-card-model-card-model-card-model-card-model-card-model-", NULL},
};

TEST_EACH(finds_the_nearest, COUNT_OF(rows))
{
    struct near near = near_to(str_of(rows[_i].name));
    for (size_t i = 0; i < COUNT_OF(known); i++)
        near_offer(&near, str_of(known[i]));
    if (rows[_i].found == NULL)
        ck_assert_ptr_null(near.found.p);
    else
        ck_assert_str_is(near.found, rows[_i].found);
}

TEST(takes_the_first_of_equals)
{
    struct near near = near_to(STR("bat"));
    near_offer(&near, STR("cat"));
    near_offer(&near, STR("hat"));
    ck_assert_str_is(near.found, "cat");
}
