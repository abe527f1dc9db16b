/* Which replicas are ready: the leader, and a follower that could take over. */
#include "kube_rig.h"

#include "base/log.h"

#include <fcntl.h>

/* text: "" for a leader. */
static void stands_by(bool yes, const char *text)
{
    struct str said;
    ck_assert_msg(k.face->stands_by(k.face, &said) == yes, "\"%.*s\"", STR_ARG(said));
    ck_assert_msg(text[0] == '\0' ? said.n == 0
                                  : memmem(said.p, said.n, text, strlen(text)) != NULL,
                  "\"%.*s\" is not \"%s\"", STR_ARG(said), text);
    ck_assert(is_ready() == (text[0] == '\0'));
}

static const char *const missing[CACHE_KINDS] = {"first list of nodes", "first list of pods",
                                                 "first list of unhealthy cards"};

/* A follower is ready when its lists are in, and stays so until it leads. */
TEST_EACH(a_follower_is_ready_with_its_lists, CACHE_KINDS)
{
    rig_open(true);
    k.held[_i] = true;
    pass(2000);
    stands_by(false, missing[_i]);
    lease_taken_by("other");
    pass(4000);
    stands_by(false, missing[_i]);
    k.held[_i] = false;
    pass(2000);
    stands_by(true, "replica \"other\" leads, and this one follows it");
    lease_taken_by("");
    pass(4000);
    k.held[CACHE_PODS] = true;
    stands_by(true, "");
    rig_close();
}

/* Each stage of a replica that takes over is ready: its pod must not leave the Service then. */
TEST(a_new_leader_stays_ready)
{
    bool settled = false;
    rig_open(true);
    pass(100);
    for (unsigned i = 0; !is_ready(); i++) {
        struct str said;
        ck_assert_uint_lt(i, 1000);
        ck_assert(k.face->stands_by(k.face, &said));
        settled = settled || str_starts(said, STR("no earlier leader is known"));
        pass(100);
    }
    ck_assert(settled);
    ck_assert_uint_eq(k.changes, 1);
    stands_by(true, "");
    lease_taken_by("other");
    pass(4000);
    stands_by(true, "replica \"other\" leads");
    ck_assert_uint_eq(k.changes, 2);
    rig_close();
}

/* A leader whose renewals get no answer does not decide, and does not lead again by itself. */
TEST(a_leader_that_can_not_renew)
{
    lead();
    k.lease_silent = true;
    k.loop->clock_ms += 6000;
    ck_assert(!is_ready());
    stands_by(false, "the lease could not be renewed in time");
    rig_close();
}

/* A replica without a right to the Lease never takes over. */
TEST(a_replica_without_its_lease)
{
    rig_open(true);
    k.lease_silent = true;
    pass(0);
    say_status(fake_find("GET", "/leases"), 403, "Forbidden", "leases");
    pass(0);
    stands_by(false, "no replica leads yet: no right to get leases");
    k.lease_silent = false;
    pass(4000);
    struct str said;
    ck_assert(k.face->stands_by(k.face, &said));
    rig_close();
}

/* A follower does not write, so it does not learn that a missing right to write is there now. */
TEST(a_follower_that_could_not_write)
{
    rig_open(true);
    pass(100);
    lease_taken_by("other");
    pass(LEASE_MS);
    k.lease_silent = true;
    for (unsigned i = 0; fake_waiting("PUT", "/leases") == NULL; i++) {
        ck_assert_uint_lt(i, 100);
        if (fake_waiting("GET", "/leases") != NULL)
            serve_lease(fake_find("GET", "/leases"));
        k.loop->clock_ms += 500;
        fake_turn(k.loop);
    }
    say_status(fake_find("PUT", "/leases"), 403, "Forbidden", "leases");
    pass(0);
    stands_by(false, "leads, and this one follows it; no right to update leases");
    lease_taken_by("third");
    k.lease_silent = false;
    pass(4000);
    stands_by(true, "replica \"third\" leads, and this one follows it; no right to update");
    rig_close();
}

/* Without an election there is nothing to stand by for. */
TEST(the_only_replica)
{
    rig_open(false);
    pass(SETTLE_MS / 2);
    stands_by(false, "no earlier leader is known");
    pass(SETTLE_MS);
    stands_by(true, "");
    ck_assert_uint_eq(k.changes, 1);
    rig_close();
}

int main(void)
{
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    return unit_run();
}
