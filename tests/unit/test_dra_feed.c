/* The lists of DRA's objects, and whether cardpack decides without them. */
#include "kube_rig.h"

static const char *const resources[DRA_FEED_KINDS] = {[DRA_FEED_CLAIMS] = "/resourceclaims?",
                                                      [DRA_FEED_SLICES] = "/resourceslices?",
                                                      [DRA_FEED_CLASSES] = "/deviceclasses?"};
static const char *const kinds[DRA_FEED_KINDS] = {[DRA_FEED_CLAIMS] = "ResourceClaimList",
                                                  [DRA_FEED_SLICES] = "ResourceSliceList",
                                                  [DRA_FEED_CLASSES] = "DeviceClassList"};

/* One card, which has a UUID. */
#define NODE_D                                                                                  \
    "{\"metadata\":{\"name\":\"n\",\"annotations\":{\"cardpack.io/cards\":\"[{\\\"index\\\":0," \
    "\\\"memory\\\":16,\\\"uuid\\\":\\\"GPU-1\\\"}]\"}},\"status\":{\"capacity\":{\"aliyun.com" \
    "/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"1\"}}}"
#define SLICE                                                                                  \
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"g\",\"pool\":{\"name\":\"n\","      \
    "\"generation\":1},\"nodeName\":\"n\",\"devices\":[{\"name\":\"d\",\"attributes\":{\"uuid" \
    "\":{\"string\":\"GPU-1\"}}}]}}"
#define CLAIM                                                                               \
    "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":" \
    "\"11\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"g\","      \
    "\"pool\":\"n\",\"device\":\"d\"}]}}}}"

static void answer_look(unsigned status)
{
    struct http_call *probe = NULL;
    LIST_FOR_EACH (struct http_call, c, &fake_calls, link) {
        if (str_ends(c->url, STR("/apis/resource.k8s.io/v1")))
            probe = c;
    }
    ck_assert_ptr_nonnull(probe);
    fake_answer(probe, status, "{}");
    pass(0);
}

static void open_feed(enum config_dra dra)
{
    rig_dra = dra;
    rig_open(false);
    k.items[CACHE_NODES] = NODE_D;
    pass(2 * SETTLE_MS);
}

static void begin(enum config_dra dra)
{
    open_feed(dra);
    if (dra != CONFIG_DRA_OFF)
        answer_look(200);
}

static void end(void)
{
    rig_close();
    rig_dra = CONFIG_DRA_OFF;
}

static void answer_list(enum dra_feed_kind kind, const char *items)
{
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "{\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}",
                     kinds[kind], items);
    ck_assert(n > 0 && n < (int)sizeof(text));
    fake_answer(fake_find("GET", resources[kind]), 200, text);
    pass(0);
}

/* The card's slice, no class, and these claims. */
static void answer_lists(const char *claims)
{
    answer_list(DRA_FEED_SLICES, SLICE);
    answer_list(DRA_FEED_CLASSES, "");
    answer_list(DRA_FEED_CLAIMS, claims);
}

static void refuse_lists(unsigned code)
{
    for (size_t i = 0; i < DRA_FEED_KINDS; i++) {
        struct http_call *c = fake_waiting("GET", resources[i]);
        if (c != NULL && memmem(c->url.p, c->url.n, "watch=", 6) != NULL)
            continue;
        if (c != NULL && code == 404)
            fake_answer(c, 404, "404 page not found\n");
        else if (c != NULL)
            say_status(c, code, code == 403 ? "Forbidden" : "InternalError", resources[i]);
    }
    pass(0);
}

static enum dra_feed_state state_of(enum dra_feed_kind kind)
{
    return k.counts.dra.states[kind];
}

static bool is_claimed(void)
{
    return cache_node(&k.cache, STR("n"))->cards[0].claimed;
}

static bool is_asked(void)
{
    return fake_waiting("GET", "/resource.k8s.io/") != NULL;
}

static void is_absent(void)
{
    ck_assert_int_eq(state_of(DRA_FEED_CLAIMS), DRA_FEED_ABSENT);
    ck_assert(is_ready() && !is_asked());
}

TEST(nothing_is_read_if_it_is_off)
{
    begin(CONFIG_DRA_OFF);
    ck_assert(is_ready() && !is_asked());
    end();
}

TEST_EACH(all_three_lists_come_first, 6)
{
    static const enum dra_feed_kind orders[][DRA_FEED_KINDS] = {
        {DRA_FEED_CLAIMS, DRA_FEED_SLICES, DRA_FEED_CLASSES},
        {DRA_FEED_SLICES, DRA_FEED_CLASSES, DRA_FEED_CLAIMS},
        {DRA_FEED_CLASSES, DRA_FEED_CLAIMS, DRA_FEED_SLICES},
    };

    static const char *const items[DRA_FEED_KINDS] = {CLAIM, SLICE, ""};
    begin(_i < 3 ? CONFIG_DRA_AUTO : CONFIG_DRA_ON);
    for (size_t i = 0; i < DRA_FEED_KINDS; i++) {
        enum dra_feed_kind kind = orders[_i % 3][i];
        is_missing("the first list of ");
        answer_list(kind, items[kind]);
        ck_assert_int_eq(state_of(kind), DRA_FEED_SYNCED);
    }
    ck_assert(is_ready());
    ck_assert(is_claimed());
    /* the claim is gone */
    fake_chunk(fake_find("GET", "/resourceclaims?watch=true"),
               "{\"type\":\"DELETED\",\"object\":" CLAIM "}\n");
    ck_assert(!is_claimed());
    end();
}

TEST(an_api_server_without_it_is_asked_again)
{
    begin(CONFIG_DRA_AUTO);
    refuse_lists(404);
    is_missing("the first list of ");
    answer_look(404);
    is_absent();
    pass(59000);
    ck_assert(!is_asked());
    /* it was upgraded */
    pass(2000);
    answer_look(200);
    answer_list(DRA_FEED_SLICES, SLICE);
    answer_list(DRA_FEED_CLASSES, "");
    is_missing("the first list of ResourceClaims");
    answer_list(DRA_FEED_CLAIMS, CLAIM);
    ck_assert(is_ready() && is_claimed());
    end();
}

static void lose_the_claims(void)
{
    begin(CONFIG_DRA_AUTO);
    answer_lists(CLAIM);
    fake_land(fake_find("GET", "/resourceclaims?watch=true"), HTTP_ANSWERED, 410);
    pass(30000);
    refuse_lists(404);
    is_missing("served before");
    ck_assert(is_claimed());
}

/* From a load balancer, or from an API server that starts. */
TEST_EACH(one_404_does_not_end_the_lists, 2)
{
    lose_the_claims();
    answer_look(_i == 0 ? 200 : 404);
    is_missing("served before");
    ck_assert_int_eq(state_of(DRA_FEED_SLICES), DRA_FEED_SYNCED);
    pass(2000);
    answer_list(DRA_FEED_CLAIMS, "");
    ck_assert(is_ready() && !is_claimed());
    if (_i == 1) {
        pass(60000);
        answer_look(404);
    }
    ck_assert(is_ready());
    ck_assert_ptr_nonnull(fake_find("GET", "/resourceclaims?watch=true"));
    end();
}

/* While a watch of the group goes on, one of several API servers serves it. */
TEST(absent_is_what_no_list_has_found_for_a_minute)
{
    lose_the_claims();
    answer_look(404);
    for (int i = 0; i < 2; i++) {
        pass(30000);
        refuse_lists(404);
        is_missing("served before");
    }
    answer_look(404);
    is_missing("served before");
    ck_assert_ptr_nonnull(fake_find("GET", "/resourceslices?watch=true"));
    fake_land(fake_find("GET", "/resourceslices?watch=true"), HTTP_ANSWERED, 404);
    fake_land(fake_find("GET", "/deviceclasses?watch=true"), HTTP_ANSWERED, 404);
    for (int i = 0; i < 2; i++) {
        pass(30000);
        refuse_lists(404);
        is_missing("served before");
    }
    answer_look(404);
    is_absent();
    ck_assert(is_claimed());
    pass(61000);
    answer_look(200);
    is_missing("served before");
    answer_lists("");
    ck_assert(is_ready() && !is_claimed());
    end();
}

TEST_EACH(without_the_right_it_decides_only_if_it_may, 2)
{
    begin(_i == 0 ? CONFIG_DRA_AUTO : CONFIG_DRA_ON);
    refuse_lists(403);
    ck_assert_int_eq(state_of(DRA_FEED_CLAIMS), DRA_FEED_DENIED);
    if (_i == 0)
        ck_assert(is_ready());
    else
        is_missing("no right to read");
    /* the right is given */
    pass(60000);
    answer_lists(CLAIM);
    ck_assert(is_ready());
    ck_assert(is_claimed());
    end();
}

/* It would deny the lists: a denied request is a line in its audit log. */
TEST(an_old_api_server_is_not_asked_for_lists)
{
    open_feed(CONFIG_DRA_AUTO);
    is_missing("the first list of ");
    ck_assert_ptr_null(fake_waiting("GET", "/resourceclaims"));
    answer_look(404);
    is_absent();
    end();
}

/* It says nothing of what is served: the lists find out. */
TEST(a_failed_look_begins_the_lists)
{
    open_feed(CONFIG_DRA_AUTO);
    answer_look(500);
    is_missing("the first list of ");
    answer_lists("");
    ck_assert(is_ready());
    end();
}

TEST(on_waits_for_an_api_server_that_has_it)
{
    begin(CONFIG_DRA_ON);
    refuse_lists(404);
    answer_look(404);
    is_missing("does not serve");
    end();
}

/* An API server checks rights before paths: one without DRA denies what it does not serve. */
TEST_EACH(what_is_denied_may_be_absent, 3)
{
    begin(_i < 2 ? CONFIG_DRA_AUTO : CONFIG_DRA_ON);
    refuse_lists(403);
    ck_assert_int_eq(state_of(DRA_FEED_CLAIMS), DRA_FEED_DENIED);
    answer_look(_i == 1 ? 200 : 404);
    ck_assert_int_eq(state_of(DRA_FEED_CLAIMS), _i == 1 ? DRA_FEED_DENIED : DRA_FEED_ABSENT);
    if (_i == 2)
        is_missing("does not serve");
    else
        ck_assert(is_ready());
    if (_i != 1)
        ck_assert(!is_asked());
    end();
}

/* An answer that says nothing of rights. */
TEST(a_failure_is_no_answer)
{
    begin(CONFIG_DRA_AUTO);
    refuse_lists(500);
    is_missing("the first list of ");
    ck_assert_int_eq(state_of(DRA_FEED_CLAIMS), DRA_FEED_WAITS);
    end();
}

/* An object is lost for lack of memory: nothing is decided until it was listed again. */
TEST(a_lost_claim_is_read_again)
{
    begin(CONFIG_DRA_AUTO);
    answer_lists("");
    ck_assert(is_ready());
    struct http_call *watch = fake_find("GET", "/resourceclaims?watch=true");
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    fake_chunk(watch, "{\"type\":\"ADDED\",\"object\":" CLAIM "}\n");
    fail_alloc_disarm();
    is_missing("memory was short");
    pass(6000);
    answer_lists(CLAIM);
    ck_assert(is_ready());
    ck_assert(is_claimed());
    end();
}
