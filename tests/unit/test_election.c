/* An election against an API server with a script: requests, answers and notes. */
#include "kube/election.h"

#include "objects/lease.h"
#include "on_loop.h"
#include "script_server.h"

/* Short, so that tests do not wait. test_election_step.c tests the rules of time. */
static const struct election_times times = {3000, 2000, 8};

static struct {
    struct loop *loop;
    struct script_server server;
    struct kube_api *api;
    struct election *election;
    char path[64];
    unsigned won, lost, wanted, notes;
    bool handed_over;
    char note[512];
    char all_notes[8][512];
    size_t until; /* number of requests */
} rig;

static void on_won(void *ctx, bool handed_over, uint64_t ended_ms)
{
    (void)ctx;
    (void)ended_ms;
    rig.won++;
    rig.handed_over = handed_over;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    rig.lost++;
}

static void on_wanted(void *ctx)
{
    (void)ctx;
    rig.wanted++;
}

static void on_note(void *ctx, const char *what, const struct err *err)
{
    (void)ctx;
    (void)snprintf(rig.note, sizeof(rig.note), "%s: %s", what, err == NULL ? "" : err->text);
    if (rig.notes < COUNT_OF(rig.all_notes))
        memcpy(rig.all_notes[rig.notes], rig.note, sizeof(rig.note));
    rig.notes++;
}

static void start_with(const struct script_step *steps, size_t n, const struct election_times *t)
{
    struct err e = ERR_INIT;
    struct kube_api_settings s = {.kubeconfig = str_of(rig.path), .user_agent = STR("cardpack/1")};
    struct election_settings settings = {.namespace = STR("kube-system"),
                                         .name = STR("cardpack"),
                                         .identity = STR("me_1"),
                                         .times = *t};
    struct election_sink sink = {
        .won = on_won, .lost = on_lost, .wanted = on_wanted, .note = on_note};
    script_start(&rig.server, rig.loop, steps, n);
    script_kubeconfig(&rig.server, rig.path);
    ck_assert_ok(kube_api_new(rig.loop, &s, &rig.api, &e), &e);
    ck_assert_ok(election_new(rig.loop, rig.api, &settings, &sink, &rig.election, &e), &e);
}

#define start(steps) start_with(steps, COUNT_OF(steps), &times)

static void set_up(void)
{
    memset(&rig, 0, sizeof(rig));
    (void)snprintf(rig.path, sizeof(rig.path), "/tmp/cardpack-test-election-XXXXXX");
    int fd = mkstemp(rig.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    rig.loop = loop_make();
}

static void tear_down(void)
{
    rig.election = election_free(rig.election);
    rig.api = kube_api_free(rig.api);
    script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    (void)unlink(rig.path);
}

/* One request more than get an answer: the effects of the last answer are then visible. */
static bool asked_beyond(void *ctx)
{
    (void)ctx;
    return rig.server.n_requests >= rig.until;
}

static void run_all(void)
{
    rig.until = rig.server.n_steps + 1;
    run_until(rig.loop, asked_beyond, NULL);
}

static bool sent(const char *text)
{
    struct str heads = buf_str(&rig.server.heads);
    return memmem(heads.p, heads.n, text, strlen(text)) != NULL;
}

/* What was sent behind the last such text. */
static const char *last_sent(const char *text)
{
    const char *last = NULL;
    for (const char *at = buf_cstr(&rig.server.heads); (at = strstr(at, text)) != NULL; last = at)
        at += strlen(text);
    ck_assert_ptr_nonnull(last);
    return last;
}

#define LEASES "/base/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define GET    "GET " LEASES "/cardpack HTTP/1.1\r\n"
#define POST   "POST " LEASES " HTTP/1.1\r\n"
#define PUT    "PUT " LEASES "/cardpack HTTP/1.1\r\n"

#define META(version)                                                                   \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"cardpack\",\"labels\":{\"a\":\"b\"}," \
    "\"resourceVersion\":\"" version "\""
#define SPEC(holder, tag)                                                                       \
    "\"spec\":{\"holderIdentity\":\"" holder "\",\"leaseDurationSeconds\":3,\"acquireTime\":\"" \
    "2026-01-01T00:00:00.000000Z\",\"renewTime\":\"" tag "\",\"leaseTransitions\":6,"           \
    "\"strategy\":\"kept\"}}"
/* A Lease that a leader released at this time, and that was renewed last at another. */
#define RELEASED(version, at, renewed, transitions)                                           \
    META(version)                                                                             \
    ",\"annotations\":{\"" LEASE_RELEASED_AT "\":" at "}},\"spec\":{\"holderIdentity\":\"\"," \
    "\"leaseDurationSeconds\":1,\"acquireTime\":\"2026-01-01T00:00:00.000000Z\","             \
    "\"renewTime\":" renewed ",\"leaseTransitions\":" transitions "}}"
#define FREE(version)               RELEASED(version, "\"r\"", "\"r\"", "6")
#define LEASE(version, holder, tag) META(version) "}," SPEC(holder, tag)
#define STATUS(status, reason, kind, code)                                                         \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"" status "\","        \
    "\"message\":\"no such thing\",\"reason\":\"" reason "\",\"details\":{\"kind\":\"" kind "\"}," \
    "\"code\":" #code "}"
/* A refusal by the API server. */
#define REFUSED(code, reason) SCRIPT_BODY, STATUS("Failure", reason, "leases", code), code, NULL
#define NOT_FOUND             REFUSED(404, "NotFound")

TEST(test_creates_and_renews)
{
    static const struct script_step steps[] = {
        {GET, NOT_FOUND},
        {POST, SCRIPT_BODY, LEASE("1", "me_1", "a"), 201, NULL},
        {PUT, SCRIPT_BODY, LEASE("2", "me_1", "b"), 200, NULL},
        {PUT, SCRIPT_BODY, LEASE("3", "me_1", "c"), 200, NULL},
    };
    start(steps);
    ck_assert(!election_leading(rig.election));
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert(!rig.handed_over);
    ck_assert(election_leading(rig.election));
    ck_assert_str_is(election_holder(rig.election), "me_1");
    ck_assert(sent("\"metadata\":{\"name\":\"cardpack\",\"namespace\":\"kube-system\"}"));
    ck_assert(sent("\"holderIdentity\":\"me_1\",\"leaseDurationSeconds\":3,"));
    /* A renewal keeps unknown fields and the acquireTime. */
    ck_assert(sent("\"labels\":{\"a\":\"b\"},\"resourceVersion\":\"2\"}"));
    ck_assert(sent("\"strategy\":\"kept\""));
    ck_assert(sent("\"acquireTime\":\"2026-01-01T00:00:00.000000Z\""));
    ck_assert_uint_eq(rig.notes + rig.lost, 0);
}

TEST(test_follows)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("1", "other_2", "a"), 0, NULL},
        {GET, SCRIPT_BODY, LEASE("2", "other_2", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert(!election_leading(rig.election));
    ck_assert_str_is(election_holder(rig.election), "other_2");
    ck_assert_uint_eq(rig.won + rig.lost + rig.notes, 0);
}

TEST(test_takes_over_what_was_released)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert(rig.handed_over);
    ck_assert(sent("\"leaseTransitions\":7"));
    ck_assert(!sent("\"acquireTime\":\"2026-01-01T00:00:00.000000Z\",\"renewTime\":\"2026-01"));
}

/* An empty holder that no release wrote. */
TEST(test_takes_over_what_was_emptied)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "", "a"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert(!rig.handed_over);
}

/* Edits that leave the Lease as a release does, but for its proof: without one, with that of an
 * earlier release, with a spec of nothing else, and an earlier release restored as a whole. The
 * leader does not learn of them until its next renewal. */
static const char *const forged[] = {
    META(
        "8") "},\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"acquireTime\":\"r\","
             "\"renewTime\":\"r\",\"leaseTransitions\":6}}",
    RELEASED("8", "\"q\"", "\"r\"", "6"),
    RELEASED("8", "\"q\"", "null", "6"),
    RELEASED("8", "\"\"", "\"\"", "6"),
    RELEASED("8", "null", "null", "6"),
    RELEASED("8", "\"q\"", "\"q\"", "5"),
};

TEST_EACH(test_takes_over_what_is_forged, COUNT_OF(forged))
{
    const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "other_2", "r"), 0, NULL},
        {GET, SCRIPT_BODY, forged[_i], 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("9", "me_1", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert(!rig.handed_over);
}

/* The answer to a write is not a Lease, or another replica's: it does not make this replica
 * leader. */
static const char *const nonsense[] = {"<html>", "{}", LEASE("8", "other_2", "b")};

TEST_EACH(test_nonsense_in_answer_to_a_write, COUNT_OF(nonsense))
{
    struct script_step steps[] = {
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        {PUT, SCRIPT_BODY, nonsense[_i], 0, NULL},
        {GET, SCRIPT_BODY, "", 503, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 0);
    ck_assert_uint_eq(rig.notes, 1);
    ck_assert(!election_leading(rig.election));
}

TEST(test_loses_a_race)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "", "a"), 0, NULL},
        {PUT, REFUSED(409, "Conflict")},
        {GET, SCRIPT_BODY, LEASE("8", "other_2", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won + rig.notes, 0);
    ck_assert_str_is(election_holder(rig.election), "other_2");
}

TEST(test_wanted)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "", "a"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
        {PUT, REFUSED(409, "Conflict")},
        {GET, SCRIPT_BODY,
         META("9") ",\"annotations\":{\"" LEASE_WANTED_BY "\":\"other_2 now\"}}," SPEC("me_1", "b"),
         0, NULL},
        {"\"other_2 now\"", SCRIPT_BODY, LEASE("10", "me_1", "c"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.wanted, 1);
    ck_assert(election_leading(rig.election));
}

TEST(test_wants)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "other_2", "a"), 0, NULL},
        {GET, SCRIPT_BODY, LEASE("7", "other_2", "a"), 0, NULL},
        {"\"annotations\":{\"" LEASE_WANTED_BY "\":\"me_1 2", SCRIPT_BODY,
         LEASE("8", "other_2", "a"), 0, NULL},
    };
    start(steps);
    rig.until = 1;
    run_until(rig.loop, asked_beyond, NULL);
    election_asked(rig.election);
    run_all();
    ck_assert(!sent("\"holderIdentity\":\"me_1\""));
    ck_assert_uint_eq(rig.won, 0);
}

TEST(test_stop)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, LEASE("7", "", "a"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
        {"\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,", SCRIPT_BODY, LEASE("9", "", "c"), 0,
         NULL},
    };
    static const struct election_times slow = {3000, 2000, 900};
    start_with(steps, COUNT_OF(steps), &slow);
    run_while(rig.loop, rig.won == 0);
    election_stop(rig.election);
    ck_assert(!election_leading(rig.election)); /* before the answer */
    run_while(rig.loop, rig.lost == 0);
    ck_assert_uint_eq(rig.server.n_requests, 3);
    const char *proof = last_sent("\"" LEASE_RELEASED_AT "\":\"");
    ck_assert_mem_eq(proof, last_sent("\"renewTime\":\""), MICRO_TIME_BYTES - 1);
}

/* An answer that does not come from an API server proves nothing about the Lease or about the
 * rights. */
static const struct {
    struct script_step step;
    const char *note;
} strangers[] = {
    {{GET, SCRIPT_BODY, "404 page not found", 404, NULL}, "404: 404 page not found"},
    {{GET, SCRIPT_BODY, "<html>denied", 403, NULL}, "403: <html>denied"},
    {{GET, SCRIPT_BODY, STATUS("Failure", "NotFound", "leases", 404), 403, NULL},
     "403: no such thing"},
    {{GET, SCRIPT_BODY, STATUS("Failure", "NotFound", "leases", 403), 404, NULL},
     "404: no such thing"},
    {{GET, SCRIPT_BODY, STATUS("Failure", "Forbidden", "leases", 404), 404, NULL},
     "404: no such thing"},
    {{GET, SCRIPT_BODY, STATUS("Failure", "Forbidden", "leases", 404), 403, NULL},
     "lease can't be read or written: GET http"},
    {{GET, SCRIPT_BODY, STATUS("Success", "Forbidden", "leases", 403), 403, NULL},
     "lease can't be read or written: GET http"},
    {{GET, SCRIPT_BODY, STATUS("Success", "NotFound", "leases", 404), 404, NULL},
     "404: no such thing"},
    {{GET, SCRIPT_BODY, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}", 404, NULL}, "404: "},
    {{GET, SCRIPT_BODY, "{\"reason\":\"NotFound\",\"status\":\"Failure\",\"code\":404}", 404, NULL},
     "404: "},
    {{GET, SCRIPT_BODY, STATUS("Failure", "NotFound", "leases", 404), 200, NULL},
     "without metadata.resourceVersion"},
    {{GET, SCRIPT_BODY, STATUS("Failure", "Forbidden", "leases", 403), 200, NULL},
     "without metadata.resourceVersion"},
    {{GET, SCRIPT_BODY, "", 503, NULL}, "503: "},
    {{GET, SCRIPT_BODY, "{\"kind\":\"Lease\"}", 200, NULL}, "without metadata.resourceVersion"},
    {{GET, SCRIPT_BODY, "<html>", 200, NULL}, "offset 0"},
    {{GET, SCRIPT_CLOSE, NULL, 0, NULL}, "GET http"},
};

TEST_EACH(test_strangers, COUNT_OF(strangers))
{
    struct script_step steps[4];
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = strangers[_i].step;
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won + rig.lost, 0);
    ck_assert_uint_eq(rig.notes, 1); /* logged once */
    ck_assert_msg(strstr(rig.note, strangers[_i].note) != NULL, "%s", rig.note);
    ck_assert(!sent("POST"));
}

/* The conflict means that another replica updated the Lease, or it was deleted: only the API
 * server's own answer proves that. */
static const struct script_step no_conflicts[] = {
    {PUT, SCRIPT_BODY, "409 Conflict", 409, NULL},
    {PUT, SCRIPT_BODY, STATUS("Failure", "Conflict", "leases", 404), 409, NULL},
    {PUT, SCRIPT_BODY, STATUS("Success", "Conflict", "leases", 409), 409, NULL},
    {PUT, SCRIPT_BODY, STATUS("Failure", "NotFound", "leases", 409), 404, NULL},
    {PUT, SCRIPT_BODY, "404 page not found", 404, NULL},
};

/* Unlike a conflict it is logged. The replica reads the Lease before it does anything else. */
TEST_EACH(test_strangers_answer_a_write, COUNT_OF(no_conflicts))
{
    const struct script_step steps[] = {
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        no_conflicts[_i],
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
    };
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert_uint_eq(rig.notes, 2); /* the failure, and that it works again */
}

#define FORBIDDEN(line)                 \
    {                                   \
        line, REFUSED(403, "Forbidden") \
    }
#define MAY_NOT(verb)                                                            \
    "no right to " verb " leases.coordination.k8s.io \"cardpack\" in namespace " \
    "\"kube-system\" (needed: get, create, update): "

/* The replica does not lead (for how long: test_election_step.c) and logs once which right to
 * grant. */
TEST(test_may_not_get)
{
    static struct script_step steps[40];
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = (struct script_step)FORBIDDEN(GET);
    start(steps);
    run_all();
    ck_assert(!election_leading(rig.election));
    ck_assert_uint_eq(rig.won + rig.lost, 0);
    ck_assert_uint_eq(rig.notes, 1);
    ck_assert_ptr_nonnull(strstr(rig.note, MAY_NOT("get")));
    ck_assert_ptr_nonnull(strstr(rig.note, "403: no such thing"));
}

TEST(test_may_not_create)
{
    static const struct script_step steps[] = {
        {GET, NOT_FOUND}, FORBIDDEN(POST),  {GET, NOT_FOUND},
        FORBIDDEN(POST),  {GET, NOT_FOUND}, FORBIDDEN(POST),
    };
    start(steps);
    run_all();
    ck_assert(!election_leading(rig.election));
    ck_assert_uint_eq(rig.won + rig.lost, 0);
    ck_assert_uint_eq(rig.notes, 1);
    ck_assert_ptr_nonnull(strstr(rig.note, MAY_NOT("create")));
}

/* The reads between the denials succeed, but must not log that the denial is over. */
TEST(test_may_not_update)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL}, FORBIDDEN(PUT),
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL}, FORBIDDEN(PUT),
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL}, FORBIDDEN(PUT),
    };
    start(steps);
    run_all();
    ck_assert(!election_leading(rig.election));
    ck_assert_uint_eq(rig.won + rig.lost, 0);
    ck_assert_uint_eq(rig.notes, 1);
    ck_assert_ptr_nonnull(strstr(rig.note, MAY_NOT("update")));
}

/* Another kind of failure is another line, and so is its end. */
TEST(test_rights_that_come)
{
    static const struct script_step steps[] = {
        {GET, SCRIPT_BODY, "", 503, NULL},
        FORBIDDEN(GET),
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        FORBIDDEN(PUT),
        {GET, SCRIPT_BODY, FREE("7"), 0, NULL},
        {PUT, SCRIPT_BODY, LEASE("8", "me_1", "b"), 0, NULL},
    };
    static const char *const said[] = {"503: ", MAY_NOT("get"), "read and written again",
                                       MAY_NOT("update"), "read and written again"};
    start(steps);
    run_all();
    ck_assert_uint_eq(rig.won, 1);
    ck_assert_uint_eq(rig.notes, COUNT_OF(said));
    for (size_t i = 0; i < COUNT_OF(said); i++)
        ck_assert_msg(strstr(rig.all_notes[i], said[i]) != NULL, "%s", rig.all_notes[i]);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
