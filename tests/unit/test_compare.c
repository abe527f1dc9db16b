/* The kubelet's list of devices beside the annotations: which containers differ. */
#include "node/kubelet/compare.h"
#include "node/roster/exchange.h"
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#define RESOURCE "aliyun.com/gpu-mem"

/* ContainerAllocateResponse with the variable ALIYUN_COM_GPU_MEM_IDX: "1". */
#define ANSWER_1 "ChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATE="

static struct specs specs;

static void set_pod(struct roster *r, const char *uid, const char *idx, const char *phase,
                    uint64_t version)
{
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = STR("ns"),
                               .name = str_of(uid),
                               .node = STR("n"),
                               .phase = str_of(phase),
                               .idx = str_of(idx),
                               .n_mains = 1,
                               .containers = &container,
                               .n_containers = 1};
    ck_assert_int_eq(roster_set(r, &v, version), OK);
}

static struct roster *two_cards(void)
{
    static struct roster r;
    const struct roster_card cards[] = {{0, 4}, {1, 4}};
    roster_init(&r);
    roster_set_cards(&r, cards, COUNT_OF(cards));
    return &r;
}

/* The checkpoint: the pod p has 1.0 and 1.1 of card 1. */
static void load(struct checkpoint_file *t, struct roster *r)
{
    static char path[64];
    struct err e = ERR_INIT;
    const struct str text =
        STR("{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"p\",\"ContainerName\":\"c\","
            "\"ResourceName\":\"" RESOURCE "\",\"DeviceIDs\":{\"-1\":[\"1.0\",\"1.1\"]},"
            "\"AllocResp\":\"" ANSWER_1 "\"}],\"RegisteredDevices\":{}},\"Checksum\":1}");
    (void)snprintf(path, sizeof(path), "/tmp/cardpack-compare-%d", (int)getpid());
    ck_assert_ok(file_replace(str_of(path), text, &e), &e);
    checkpoint_file_init(t, str_of(path), STR(RESOURCE), &specs);
    ck_assert_ok(checkpoint_file_load(t, &e), &e);
    (void)checkpoint_file_apply(t, r, true);
    (void)unlink(path);
    roster_settle(r);
    ck_assert(exchange_plan(r));
}

/* One pod with one container, which has these devices; NULL ends them. */
static void list(struct comparison *ret, const struct checkpoint_file *t, const struct roster *r,
                 const char *pod, const char *resource, const char *const *devices)
{
    struct str ids[4];
    struct pod_devices d = {.resource = str_of(resource), .ids = ids};
    while (devices[d.n_ids] != NULL) {
        ids[d.n_ids] = str_of(devices[d.n_ids]);
        d.n_ids++;
    }
    const struct pod_container c = {.name = STR("c"), .devices = &d, .n_devices = 1};
    const struct pod_entry e = {
        .namespace = STR("ns"), .name = str_of(pod), .containers = &c, .n_containers = 1};
    const struct pod_resources all = {.pods = &e, .n_pods = 1};
    compare(&all, t, r, ret);
}

enum {
    AGREES = -1,
    IGNORED = -2
};

static const struct {
    const char *idx; /* annotation of pod p */
    const char *pod;
    const char *resource;
    const char *devices[4];
    int kind; /* or AGREES, IGNORED */
} cases[] = {
    {"1", "p", RESOURCE, {"1.0", "1.1"}, AGREES},
    /* what an ID names is only what was preferred: the answer counts */
    {"0", "p", RESOURCE, {"1.0", "1.1"}, USAGE_DIFFERS_CARDS},
    {"", "p", RESOURCE, {"1.0"}, USAGE_DIFFERS_CARDS},
    {"1", "p", RESOURCE, {"1.0", "0.0"}, USAGE_DIFFERS_OWNER}, /* 0.0: nobody's */
    {"1", "q", RESOURCE, {"1.1"}, USAGE_DIFFERS_OWNER},
    {"1", "p", RESOURCE, {NULL}, USAGE_DIFFERS_NONE},
    {"1", "p", "nvidia.com/gpu", {"1.0"}, USAGE_DIFFERS_NONE},
    {"1", "q", RESOURCE, {NULL}, IGNORED},  /* it waits */
    {"1", "x", RESOURCE, {"1.0"}, IGNORED}, /* not known */
};

TEST_EACH(each_difference_is_found, COUNT_OF(cases))
{
    static struct comparison found;
    struct roster *r = two_cards();
    struct checkpoint_file t;
    set_pod(r, "p", cases[_i].idx, "Running", 1);
    set_pod(r, "q", "0", "Pending", 2);
    load(&t, r);
    list(&found, &t, r, cases[_i].pod, cases[_i].resource, cases[_i].devices);
    ck_assert_uint_eq(found.n, cases[_i].kind >= 0);
    ck_assert_uint_eq(found.compared,
                      cases[_i].kind != IGNORED && cases[_i].kind != USAGE_DIFFERS_NONE);
    if (cases[_i].kind >= 0) {
        ck_assert_int_eq((int)found.items[0].kind, cases[_i].kind);
        ck_assert_str_is(found.items[0].name, cases[_i].pod);
        ck_assert_str_is(found.items[0].container, "c");
        ck_assert_uint_eq(found.items[0].given.n, cases[_i].kind == USAGE_DIFFERS_CARDS);
    }
    checkpoint_file_done(&t);
    roster_done(r);
}

/* The checkpoint has become unreadable: what was known of the cards still counts, owners do not. */
TEST(without_the_checkpoint_no_owner_is_known)
{
    static struct comparison found;
    static const char *const own[] = {"1.0", "1.1", NULL};
    static const char *const other[] = {"0.7", NULL};
    struct roster *r = two_cards();
    struct checkpoint_file t;
    set_pod(r, "p", "0", "Running", 1);
    load(&t, r);
    t.loaded = false;
    map_done(&t.devices);
    list(&found, &t, r, "p", RESOURCE, own);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_int_eq((int)found.items[0].kind, USAGE_DIFFERS_CARDS);
    list(&found, &t, r, "p", RESOURCE, other);
    ck_assert_int_eq((int)found.items[0].kind, USAGE_DIFFERS_CARDS);
    checkpoint_file_done(&t);
    roster_done(r);
}

/* With late binding the cards are those of the spec; before it is written there are none. */
TEST(late_binding_has_no_cards_before_the_spec)
{
    static struct comparison found;
    static const char *const ids[] = {"1.0", NULL};
    const struct card_list none = {.n = 0};
    const struct card_list zero = {1, {0}};
    const struct checkpoint_file t = {.resource = STR(RESOURCE)};
    struct roster *r = two_cards();
    set_pod(r, "p", "1", "Pending", 1);
    for (int i = 0; i < 2; i++) {
        roster_truth_begin(r);
        ck_assert(roster_truth(r, STR("p"), STR("c"), i == 0 ? &none : &zero, true));
        roster_truth_end(r, true);
        list(&found, &t, r, "p", RESOURCE, ids);
        ck_assert_uint_eq(found.compared, 1);
        ck_assert_uint_eq(found.n, (size_t)i);
    }
    ck_assert_uint_eq(found.items[0].given.cards[0], 0);
    roster_done(r);
}

/* The kubelet takes the devices of a pod back while the API server still shows it. */
TEST(a_pod_that_is_deleted_is_not_compared)
{
    static struct comparison found;
    static const char *const none[] = {NULL};
    struct container_view container = {.name = STR("c"), .mem = STR("4")};
    struct pod_view v = {.uid = STR("p"),
                         .namespace = STR("ns"),
                         .name = STR("p"),
                         .node = STR("n"),
                         .phase = STR("Running"),
                         .idx = STR("1"),
                         .n_mains = 1,
                         .containers = &container,
                         .n_containers = 1};
    struct roster *r = two_cards();
    struct checkpoint_file t;
    for (uint64_t version = 1; version <= 2; version++) {
        v.deleting = version == 2;
        ck_assert_int_eq(roster_set(r, &v, version), OK);
        if (version == 1)
            load(&t, r);
        list(&found, &t, r, "p", RESOURCE, none);
        ck_assert_uint_eq(found.n, version == 1);
    }
    checkpoint_file_done(&t);
    roster_done(r);
}

/* The kubelet lists its pods in another order each time. If more containers differ than are kept,
 * these must be the same ones, or each answer would name others. */
TEST(the_same_containers_are_kept_in_any_order)
{
    enum {
        PODS = COMPARE_MAX + 8
    };
    static struct comparison found[2];
    static struct pod_entry entries[PODS];
    static char names[PODS][8];
    const struct pod_container c = {.name = STR("c")};
    const struct card_list one = {1, {1}};
    const struct checkpoint_file t = {.resource = STR(RESOURCE)};
    struct roster *r = two_cards();
    for (size_t i = 0; i < PODS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "p%zu", i);
        set_pod(r, names[i], "1", "Running", i + 1);
    }
    roster_truth_begin(r);
    for (size_t i = 0; i < PODS; i++)
        ck_assert(roster_truth(r, str_of(names[i]), STR("c"), &one, false));
    roster_truth_end(r, true);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < PODS; i++)
            entries[k == 0 ? i : PODS - 1 - i] = (struct pod_entry){.namespace = STR("ns"),
                                                                    .name = str_of(names[i]),
                                                                    .containers = &c,
                                                                    .n_containers = 1};
        const struct pod_resources all = {.pods = entries, .n_pods = PODS};
        compare(&all, &t, r, &found[k]);
        ck_assert_uint_eq(found[k].n, COMPARE_MAX);
        ck_assert_uint_eq(found[k].left_out, PODS - COMPARE_MAX);
    }
    for (size_t i = 0; i < COMPARE_MAX; i++)
        ck_assert(str_eq(found[1].items[i].name, found[0].items[i].name));
    roster_done(r);
}
