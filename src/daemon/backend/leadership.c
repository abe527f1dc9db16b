/*
 * Follows the election through the stages of leadership.h, hands over to a replica whose
 * kube-scheduler is active, and explains why this replica does not decide.
 */
#include "daemon/backend/leadership.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>

/* A leader whose kube-scheduler has been quiet for so long may hand over to another replica. */
#define HAND_OVER_AFTER_MS 3000

enum stage {
    STAGE_FOLLOWS,
    STAGE_SETTLES,
    STAGE_READS,
    STAGE_DECIDES,
};

struct leadership {
    struct loop *loop;
    struct leadership_settings settings;
    struct leadership_counts own; /* used if the settings have no counts */
    struct election *election;    /* NULL: this is the only replica */
    struct buf identity;
    enum stage stage;
    bool clear; /* no Binding of the last leader is under way; a release of the Lease also says that
                 */
    bool had_leader; /* an earlier leader is known, not only possible */
    uint64_t term;
    struct timer settle;
    uint64_t asked_ms; /* 0: never */
    char trouble[256];
    char why[640];
    void (*resigned)(void *ctx);
    void *resigned_ctx;
    struct deferred tell_resigned; /* so that leadership_resign does not call `done` itself */
};

static void leadership_tell_changed(struct leadership *l)
{
    if (l->settings.changed != NULL)
        l->settings.changed(l->settings.ctx);
}

static void leadership_read_pods(struct timer *t)
{
    struct leadership *l = CONTAINER_OF(t, struct leadership, settle);
    assert(l->stage == STAGE_SETTLES);
    l->stage = STAGE_READS;
    l->clear = true;
    l->settings.read(l->settings.ctx);
}

static void leadership_begin(struct leadership *l, uint64_t clear_ms)
{
    uint64_t now_ms = loop_now_ms(l->loop);
    l->stage = STAGE_SETTLES;
    l->clear = clear_ms <= now_ms;
    timer_arm(l->loop, &l->settle, clear_ms > now_ms ? clear_ms - now_ms : 0);
}

static void leadership_end(struct leadership *l)
{
    l->settings.counts->losses += l->stage == STAGE_FOLLOWS ? 0 : 1;
    l->stage = STAGE_FOLLOWS;
    l->clear = true;
    timer_cancel(&l->settle);
    leadership_tell_changed(l);
}

void leadership_read(struct leadership *l)
{
    if (l->stage != STAGE_READS)
        return;
    assert(l->clear);
    l->stage = STAGE_DECIDES;
    l->term++;
    l->settings.counts->terms++;
    log_info("deciding from now on", kv_uint("term", l->term));
    leadership_tell_changed(l);
}

/* ---- what the election says ---- */

static void leadership_on_won(void *ctx, bool handed_over, uint64_t ended_ms)
{
    struct leadership *l = ctx;
    log_info("this replica leads", kv_str("identity", buf_str(&l->identity)),
             kv_bool("handed_over", handed_over));
    l->had_leader = election_had_leader(l->election);
    leadership_begin(l, handed_over ? 0 : ended_ms + l->settings.settle_ms);
}

static void leadership_on_lost(void *ctx)
{
    struct leadership *l = ctx;
    if (l->stage != STAGE_FOLLOWS)
        log_warn("this replica leads no more", kv_str("identity", buf_str(&l->identity)),
                 kv_str("leader", election_holder(l->election)));
    leadership_end(l);
    if (l->resigned != NULL)
        loop_defer(l->loop, &l->tell_resigned);
}

static void leadership_on_wanted(void *ctx)
{
    struct leadership *l = ctx;
    uint64_t quiet_ms = loop_now_ms(l->loop) - l->asked_ms;
    if (!l->clear || quiet_ms < HAND_OVER_AFTER_MS || !l->settings.idle(l->settings.ctx)) {
        log_debug("kube-scheduler calls another replica, and this one can't hand over now");
        return;
    }
    log_info("handing over to another replica, which kube-scheduler calls");
    leadership_end(l);
    election_hand_over(l->election);
}

static void leadership_on_note(void *ctx, const char *what, const struct err *err)
{
    struct leadership *l = ctx;
    (void)snprintf(l->trouble, sizeof(l->trouble), "%s", err == NULL ? "" : err->text);
    if (err != NULL)
        log_warn(what, kv_cstr("error", err->text));
    else
        log_info(what);
}

/* ---- what others ask ---- */

uint64_t leadership_term(const struct leadership *l)
{
    bool leads = l->election == NULL || election_leading(l->election);
    return l->stage == STAGE_DECIDES && leads ? l->term : 0;
}

bool leadership_takes_part(const struct leadership *l)
{
    if (l->election == NULL || l->stage == STAGE_DECIDES)
        return leadership_term(l) > 0;
    /* An error from before the leader's last renewal may be over: a follower writes nothing. */
    return l->trouble[0] == '\0' || election_following(l->election);
}

static struct str leadership_why_print(struct leadership *l, const char *before, struct str what,
                                       const char *behind)
{
    int n = snprintf(l->why, sizeof(l->why), "%s%.*s%s", before, (int)MIN_OF(what.n, (size_t)256),
                     what.p, behind);
    return (struct str){l->why, MIN_OF((size_t)MAX_OF(n, 0), sizeof(l->why) - 1)};
}

/*
 * Names this replica's trouble too, for example a missing right: that leader's Lease may have
 * expired long ago.
 */
static struct str leadership_why_leader(struct leadership *l, struct str leader, struct str trouble)
{
    char behind[sizeof(l->trouble) + 64];
    (void)snprintf(behind, sizeof(behind), "\" leads, and this one follows it%s%.*s",
                   trouble.n > 0 ? "; " : "", STR_ARG(trouble));
    return leadership_why_print(l, "replica \"", leader, behind);
}

struct str leadership_why_not(struct leadership *l)
{
    struct str leader = l->election == NULL ? STR("") : election_holder(l->election);
    struct str trouble = str_of(l->trouble);
    switch (l->stage) {
    case STAGE_FOLLOWS:
        if (leader.n > 0 && !str_eq(leader, buf_str(&l->identity)))
            return leadership_why_leader(l, leader, trouble);
        return trouble.n > 0 ? leadership_why_print(l, "no replica leads yet: ", trouble, "")
                             : STR("no replica leads yet");
    case STAGE_SETTLES:
        return l->had_leader ? STR("Bindings of the previous leader may still be under way")
                             : STR("no earlier leader is known; if there was one, its Bindings may "
                                   "still be under way");
    case STAGE_READS:
        return l->had_leader
                   ? STR("the pods are being read again, to know what the previous leader has "
                         "bound")
                   : STR("the pods are being read again: no earlier leader is known, but one may "
                         "have bound pods");
    case STAGE_DECIDES:
        return leadership_why_print(l, "the lease could not be renewed in time: ", trouble, "");
    }
    return STR("");
}

void leadership_asked(struct leadership *l)
{
    l->asked_ms = loop_now_ms(l->loop);
    if (l->election != NULL && l->stage == STAGE_FOLLOWS && l->resigned == NULL)
        election_asked(l->election);
}

static void leadership_tell_resigned(struct deferred *d)
{
    struct leadership *l = CONTAINER_OF(d, struct leadership, tell_resigned);
    assert(l->resigned != NULL && l->stage == STAGE_FOLLOWS);
    l->resigned(l->resigned_ctx);
}

void leadership_resign(struct leadership *l, void (*done)(void *ctx), void *ctx)
{
    assert(l->resigned == NULL && done != NULL);
    /*
     * Releases the Lease only if `clear`: the next leader does not wait after a release. Otherwise
     * the Lease must expire.
     */
    bool release = l->election != NULL && l->clear;
    leadership_end(l);
    l->resigned = done;
    l->resigned_ctx = ctx;
    if (release)
        election_stop(l->election);
    else
        loop_defer(l->loop, &l->tell_resigned);
}

/* ---- life ---- */

enum errc leadership_new(const struct leadership_settings *s, struct leadership **ret,
                         struct err *reterr)
{
    struct leadership *l = mem_alloc(sizeof(*l));
    if (l == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the leadership");
    *l = (struct leadership){.loop = s->loop, .settings = *s};
    if (s->counts == NULL)
        l->settings.counts = &l->own;
    l->settle.fire = leadership_read_pods;
    l->clear = true;
    l->settings.election = NULL; /* valid during this call only */
    l->tell_resigned.run = leadership_tell_resigned;
    buf_init(&l->identity, KIB);
    *ret = l;
    if (s->election == NULL) {
        leadership_begin(l, loop_now_ms(l->loop) + s->settle_ms);
        return OK;
    }
    buf_put(&l->identity, s->election->identity);
    struct election_sink sink = {.won = leadership_on_won,
                                 .lost = leadership_on_lost,
                                 .wanted = leadership_on_wanted,
                                 .note = leadership_on_note,
                                 .ctx = l};
    enum errc code = election_new(l->loop, s->api, s->election, &sink, &l->election, reterr);
    if (code == OK && buf_failed(&l->identity))
        code = err_set(reterr, ERR_LIMIT, "no room for the identity \"%.*s\"",
                       STR_ARG(s->election->identity));
    if (code != OK)
        *ret = leadership_free(l);
    return code;
}

struct leadership *leadership_free(struct leadership *l)
{
    if (l == NULL)
        return NULL;
    timer_cancel(&l->settle);
    deferred_cancel(&l->tell_resigned);
    election_free(l->election);
    buf_done(&l->identity);
    mem_free(l);
    return NULL;
}
