/* A card of HAMi's family that has grown between its reservation and the Binding. */
#include "dialect_rig.h"

#define HAMI_ONE(mem)                                                                         \
    HAMI_TABLE(                                                                               \
        "[{\\\"id\\\":\\\"GPU-a\\\",\\\"count\\\":10,\\\"devcore\\\":100,\\\"devmem\\\":" mem \
        ",\\\"health\\\":true}]")
#define HAMI_PERCENT(n) "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"" n "\""
#define HAMI_WHOLE      HAMI("1", "8") ",\"nvidia.com/gpucores\":\"100\""

static const struct {
    const char *what;
    const char *containers;
    bool larger; /* the card, before the Binding is sent */
    enum errc code;
} growths[] = {
    {"the same card", ONE(HAMI_PERCENT("50")), false, OK},
    {"a percentage of a larger card", ONE(HAMI_PERCENT("50")), true, ERR_UNAVAILABLE},
    {"of a second container", TWO(HAMI("1", "4"), HAMI_PERCENT("50")), true, ERR_UNAVAILABLE},
    {"memory of a larger card", TWO(HAMI("1", "4"), HAMI("1", "8")), true, OK},
    {"a whole card that is larger", ONE(HAMI_WHOLE), true, OK},
};

static void set_card(struct rig *r, const char *table)
{
    struct object o;
    object_node(&o, "n", table, "\"nvidia.com/gpu\":\"10\"", "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* The plugin gives the container what the list says, which was written for the smaller card. */
TEST_EACH(a_list_is_for_the_card_as_it_was, COUNT_OF(growths))
{
    struct rig r;
    struct object o;
    all_dialects();
    rig_init(&r);
    set_card(&r, HAMI_ONE("16"));
    object_pod(&o, "p", growths[_i].containers, "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    if (growths[_i].larger)
        set_card(&r, HAMI_ONE("24"));
    enum errc code = renew(&r, "p");
    ck_assert_msg(code == growths[_i].code, "%s: %s", growths[_i].what, errc_name(code));
    object_end(&o);
    rig_done(&r);
}
