/* From when a replica may decide, and when it gives up its Lease. */
#include "base/log.h"
#include "kube_rig.h"

#include <sys/mman.h>

#define RENEW_MS UINT64_C(6000)
#define RETRY_MS UINT64_C(2000)

static struct {
    struct leadership *leadership;
    struct leadership_counts counts;
    unsigned reads; /* counts requests for a list of pods */
    bool busy;      /* a Binding is under way */
    bool resigned;
} t;

static void on_read(void *ctx)
{
    (void)ctx;
    t.reads++;
}

static bool on_idle(void *ctx)
{
    (void)ctx;
    return !t.busy;
}

static void on_resigned(void *ctx)
{
    (void)ctx;
    t.resigned = true;
}

/* lease: as the replica finds it; NULL: none. */
static void open_with(json_t *lease, bool elected)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    k = (struct kube_rig){.loop = fake_loop()};
    unsigned status = 201;
    if (lease != NULL)
        (void)lease_write(STR("kube-system"), STR(""), lease, &status);
    json_decref(lease);
    ck_assert_uint_eq(status, 201);
    struct kubeconfig config = {.server = STR("https://api/base"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(k.loop, &api, &k.api, &e), &e);
    struct election_settings election = {.namespace = STR("kube-system"),
                                         .name = STR("cardpack"),
                                         .identity = STR("me"),
                                         .times = {LEASE_MS, RENEW_MS, RETRY_MS}};
    struct leadership_settings s = {.loop = k.loop,
                                    .api = k.api,
                                    .election = elected ? &election : NULL,
                                    .settle_ms = SETTLE_MS,
                                    .read = on_read,
                                    .idle = on_idle,
                                    .counts = &t.counts};
    ck_assert_ok(leadership_new(&s, &t.leadership, &e), &e);
}

static void tear_down(void)
{
    t.leadership = leadership_free(t.leadership);
    k.api = kube_api_free(k.api);
    k.loop = loop_free(k.loop);
    leases_reset();
}

#define RENEWED "2026-01-01T00:00:01.000000Z"

static json_t *lease_of(const char *who)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:{s:s}}, s:{s:s, s:i, s:s, s:s, s:i}}", "kind",
                     "Lease", "metadata", "name", "cardpack", "namespace", "kube-system",
                     "resourceVersion", "9", "annotations", "cardpack.io/released-at",
                     who[0] == '\0' ? RENEWED : "2026-01-01T00:00:00.500000Z", "spec",
                     "holderIdentity", who, "leaseDurationSeconds",
                     who[0] == '\0' ? 1 : (int)(LEASE_MS / 1000), "acquireTime",
                     "2026-01-01T00:00:00.000000Z", "renewTime", RENEWED, "leaseTransitions", 6);
}

static bool decides(void)
{
    return leadership_term(t.leadership) > 0;
}

static bool why_has(const char *part)
{
    struct str why = leadership_why_not(t.leadership);
    return memmem(why.p, why.n, part, strlen(part)) != NULL;
}

static void says(const char *part)
{
    struct str why = leadership_why_not(t.leadership);
    ck_assert_msg(why_has(part), "\"%.*s\" lacks \"%s\"", STR_ARG(why), part);
}

/* Waiting and then reading, the replica names no previous leader. */
static void says_no_leader_is_known(void)
{
    says("no earlier leader is known");
    ck_assert(!why_has("previous leader"));
}

/* Runs until this replica holds the lease; returns the time when it won. */
static uint64_t won(void)
{
    uint64_t start_ms = k.loop->clock_ms;
    while (t.reads == 0 && (the_lease() == NULL || strcmp(holder(), "me") != 0)) {
        ck_assert_uint_lt(k.loop->clock_ms - start_ms, 10 * LEASE_MS);
        pass(100);
    }
    return k.loop->clock_ms;
}

/* ---- from when it may decide ---- */

/*
 * The previous leader was last seen at the start. By its own rules it stops two thirds of a lease
 * later, and what it sent until then must have ended. A list of pods from before does not count.
 */
START_TEST(won_after_the_end_of_another)
{
    open_with(lease_of("other"), true);
    uint64_t heard_ms = k.loop->clock_ms;
    uint64_t won_ms = won();
    ck_assert_uint_ge(won_ms, heard_ms + LEASE_MS);
    uint64_t settled_ms = heard_ms + LEASE_MS / 3 * 2 + SETTLE_MS;
    ck_assert_uint_lt(won_ms, settled_ms);
    while (k.loop->clock_ms + 100 < settled_ms) {
        ck_assert_uint_eq(t.reads, 0);
        says("Bindings of the previous leader may still be under way");
        leadership_read(t.leadership); /* a list that was requested earlier proves nothing */
        ck_assert(!decides());
        pass(100);
    }
    pass(200);
    ck_assert_uint_eq(t.reads, 1);
    says("what the previous leader has bound");
    ck_assert(!decides());
    leadership_read(t.leadership);
    ck_assert(decides());
    ck_assert_uint_eq(t.counts.terms, 1);
}

START_TEST(won_by_a_release)
{
    open_with(lease_of(""), true);
    pass(100);
    ck_assert_str_eq(holder(), "me");
    ck_assert_uint_eq(t.reads, 1);
    leadership_read(t.leadership);
    ck_assert(decides());
}

/*
 * The history is lost with the Lease. A leader that has not noticed the deletion may go on for two
 * thirds of a lease from now: this replica may have started just after the deletion.
 */
START_TEST(won_by_a_creation)
{
    open_with(NULL, true);
    uint64_t won_ms = won();
    while (k.loop->clock_ms + 200 < won_ms + LEASE_MS / 3 * 2 + SETTLE_MS) {
        ck_assert_uint_eq(t.reads, 0);
        says_no_leader_is_known();
        pass(100);
    }
    pass(300);
    ck_assert_uint_eq(t.reads, 1);
    says_no_leader_is_known();
}

START_TEST(the_only_replica)
{
    open_with(NULL, false);
    uint64_t start_ms = k.loop->clock_ms;
    while (k.loop->clock_ms + 100 < start_ms + SETTLE_MS) {
        ck_assert_uint_eq(t.reads, 0);
        says_no_leader_is_known();
        pass(100);
    }
    pass(200);
    ck_assert_uint_eq(t.reads, 1);
    says_no_leader_is_known();
    leadership_read(t.leadership);
    pass(100 * LEASE_MS);
    ck_assert(decides());
    ck_assert_ptr_null(the_lease());
}

/* ---- when it gives the Lease up ---- */

/* A release says that nothing of this leader is under way. While it settles that is not true. */
START_TEST(resigns_while_settling)
{
    open_with(lease_of("other"), true);
    (void)won();
    leadership_resign(t.leadership, on_resigned, NULL);
    ck_assert(!decides());
    pass(SETTLE_MS);
    ck_assert(t.resigned);
    ck_assert_uint_eq(t.reads, 0);
    ck_assert_str_eq(holder(), "me"); /* the lease expires */
}

START_TEST(resigns_while_deciding)
{
    open_with(lease_of(""), true);
    pass(100);
    leadership_read(t.leadership);
    ck_assert(decides());
    leadership_resign(t.leadership, on_resigned, NULL);
    ck_assert(!decides());
    ck_assert(!t.resigned); /* not from within the call */
    pass(100);
    ck_assert(t.resigned);
    ck_assert_str_eq(holder(), "");
}

static void want(void)
{
    lease_wanted();
    pass(2 * RETRY_MS);
}

START_TEST(wanted_while_settling)
{
    open_with(lease_of("other"), true);
    (void)won();
    want();
    ck_assert_str_eq(holder(), "me");
    ck_assert_uint_eq(t.counts.losses, 0);
}

START_TEST(wanted_while_reading)
{
    open_with(lease_of(""), true);
    pass(100);
    ck_assert_uint_eq(t.reads, 1);
    want();
    ck_assert_str_eq(holder(), "");
    ck_assert(!decides());
    leadership_read(t.leadership); /* a list of an ended term */
    ck_assert(!decides());
}

START_TEST(wanted_while_deciding)
{
    open_with(lease_of(""), true);
    pass(100);
    leadership_read(t.leadership);
    t.busy = true;
    want();
    ck_assert(decides());
    t.busy = false;
    leadership_asked(t.leadership); /* its own scheduler still sends requests */
    lease_wanted();
    pass(RETRY_MS);
    ck_assert(decides());
    pass(2 * RETRY_MS);
    want();
    ck_assert(!decides());
    ck_assert_str_eq(holder(), "");
}

static unsigned lease_requests(void)
{
    unsigned n = 0;
    LIST_FOR_EACH (const struct http_call, c, &fake_calls, link)
        n += memmem(c->url.p, c->url.n, "/leases", 7) != NULL ? 1 : 0;
    return n;
}

/* The wish replaces the wait: when the wait would have ended, nothing is sent. */
START_TEST(asked_while_waiting)
{
    open_with(lease_of("other"), true);
    pass(0);
    ck_assert_uint_eq(lease_requests(), 0);
    k.lease_silent = true;
    leadership_asked(t.leadership);
    ck_assert_uint_eq(lease_requests(), 1);
    (void)fake_find("GET", "/leases/cardpack");
    pass(2 * RETRY_MS);
    ck_assert_uint_eq(lease_requests(), 1);
    k.lease_silent = false;
    pass(RETRY_MS);
    ck_assert_ptr_nonnull(json_object_get(json_object_get(lease_content(), "metadata"),
                                          "annotations")); /* the wish to lead is in the Lease */
    ck_assert_str_eq(holder(), "other");
}

/* ---- stalls ---- */

static const uint64_t stalls_ms[] = {1, 1000, RENEW_MS, LEASE_MS, 60000};

/* A stall in the middle of a turn, between any two steps: the clock decides, not the turn's
 * time. */
START_TEST(a_leader_that_was_stalled)
{
    open_with(lease_of(""), true);
    pass(100);
    leadership_read(t.leadership);
    k.lease_silent = true;
    for (unsigned turns = 0; turns < 20; turns++) {
        ck_assert(decides());
        fake_turn(k.loop);
    }
    fake_stall(k.loop, stalls_ms[_i]);
    ck_assert(decides() == (stalls_ms[_i] < RENEW_MS - 100));
    k.lease_silent = false;
    /* A late renewal succeeds if no other replica has taken the Lease: it is the same term. */
    pass(RETRY_MS);
    ck_assert(decides());
    ck_assert_uint_eq(t.counts.terms, 1);
}

/* Another replica has taken the Lease: the late renewal fails. */
START_TEST(a_leader_that_was_replaced_in_a_stall)
{
    open_with(lease_of(""), true);
    pass(100);
    leadership_read(t.leadership);
    lease_taken_by("other");
    fake_stall(k.loop, LEASE_MS);
    ck_assert(!decides());
    serve();
    ck_assert(!decides());
    says("replica \"other\" leads");
    ck_assert_uint_eq(t.counts.losses, 1);
}

/* The turn began before the stall, and the loop's time is still that of its start. */
static void answer_in_this_turn(struct http_call *c)
{
    char *text = json_dumps(lease_content(), JSON_COMPACT);
    ck_assert(fake_send(c));
    buf_put(&c->reply, str_of(text));
    free(text);
    fake_land(c, HTTP_ANSWERED, 200);
}

/*
 * A follower reads the Lease after a long stall within the turn. The leader counts as seen when the
 * answer is read, not when the turn began; otherwise its lease would look expired while it leads.
 */
START_TEST(a_follower_that_was_stalled)
{
    open_with(lease_of("other"), true);
    pass(1000);
    k.lease_silent = true;
    for (uint64_t ms = 0; fake_waiting("GET", "/leases/cardpack") == NULL; ms += 100) {
        ck_assert_uint_lt(ms, LEASE_MS);
        pass(100);
    }
    lease_taken_by("other"); /* the other replica renews */
    fake_stall(k.loop, 3 * LEASE_MS);
    uint64_t heard_ms = k.loop->clock_ms;
    answer_in_this_turn(fake_find("GET", "/leases/cardpack"));
    k.lease_silent = false;
    while (k.loop->clock_ms + 200 < heard_ms + LEASE_MS) {
        pass(100);
        ck_assert_str_eq(holder(), "other");
    }
    ck_assert_uint_ge(won(), heard_ms + LEASE_MS);
}

/*
 * No byte of a Binding leaves after the process was stopped beyond its lease. The stop comes before
 * each clock read, from the turn that holds the card to the first byte. Only a clock read can
 * notice a stop; the rest of the turn can't.
 */
START_TEST(nothing_leaves_after_a_stop_anywhere)
{
    bool left = false;
    size_t nth = 0;
    while (!left) {
        ck_assert_uint_lt(nth++, 1000);
        lead();
        k.lease_silent = true;
        memset(&fake_stop, 0, sizeof(fake_stop));
        fake_stop.nth = nth;
        fake_stop.ms = 6000;
        fake_turn(k.loop);
        reserve_p();
        post_p();
        struct http_call *c = binding_waits() ? binding_of_p() : NULL;
        left = c != NULL && fake_send(c);
        ck_assert(!left || fake_stop.behind_ms == 0);
        if (left)
            fake_answer(c, 201, "{\"kind\":\"Status\",\"status\":\"Success\"}");
        else
            fake_turn(k.loop);
        posted(left ? POST_CREATED : POST_REFUSED);
        memset(&fake_stop, 0, sizeof(fake_stop));
        rig_close();
    }
    ck_assert_uint_ge(nth, 4); /* clock reads: turn, card, before the call, before the byte */
}

static const struct {
    uint64_t settle_ms;
    const char *deadline;
    bool short_of; /* it is too short */
} settles[] = {
    {SETTLE_MS, "/binding?timeout=3000ms", false},
    {SETTLE_MS + 4000, "/binding?timeout=7000ms", false},
    {0, "/binding?timeout=2000ms", true},
};

/* How long the API server may work on the Binding: see post_deadline.h. */
START_TEST(a_binding_says_its_deadline)
{
    char log[4096] = "";
    int fd = memfd_create("log", MFD_CLOEXEC);
    log_setup(fd, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    rig_open_settling(true, settles[_i].settle_ms);
    ck_assert_int_ge(pread(fd, log, sizeof(log) - 1, 0), 0);
    ck_assert((strstr(log, "start-settle is too short") != NULL) == settles[_i].short_of);
    pass(3 * SETTLE_MS);
    ck_assert(is_ready());
    reserve_p();
    post_p();
    struct str url = binding_of_p()->url;
    ck_assert_msg(str_ends(url, str_of(settles[_i].deadline)), "%.*s", STR_ARG(url));
    fake_land(binding_of_p(), HTTP_UNKNOWN, 0);
    posted(POST_UNKNOWN);
    cancel_p();
    rig_close();
    (void)close(fd);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, won_after_the_end_of_another);
    tcase_add_test(tc, won_by_a_release);
    tcase_add_test(tc, won_by_a_creation);
    tcase_add_test(tc, the_only_replica);
    tcase_add_test(tc, resigns_while_settling);
    tcase_add_test(tc, resigns_while_deciding);
    tcase_add_test(tc, wanted_while_settling);
    tcase_add_test(tc, wanted_while_reading);
    tcase_add_test(tc, wanted_while_deciding);
    tcase_add_test(tc, asked_while_waiting);
    tcase_add_loop_test(tc, a_leader_that_was_stalled, 0, (int)COUNT_OF(stalls_ms));
    tcase_add_test(tc, a_leader_that_was_replaced_in_a_stall);
    tcase_add_test(tc, a_follower_that_was_stalled);
    tc = unit_case("with its backend");
    tcase_add_test(tc, nothing_leaves_after_a_stop_anywhere);
    tcase_add_loop_test(tc, a_binding_says_its_deadline, 0, COUNT_OF(settles));
    return unit_run();
}
