/*
 * The checks of all tracks, with a bound on the work of one turn of the loop, because hundreds may
 * be due at the same time: when the program starts, and every minute after that.
 *
 *     sought: the folder is not known --> one walk of the tree for all --> ready
 *     ready:  the folder is known ------> a request to the watch of the GPUs --> answer
 *                                   +---> it is not there any more ------------> sought
 */
#include "node/isolation/limits_state.h"

#include <stdio.h>
#include <sys/stat.h>

#define TRACKS_A_TURN  64U
#define FOLDERS_A_TURN 32U /* of the walk */
#define ASKED_MOST     16U /* the thread makes one call after the other anyway */

/* Whether there is something to do without an answer of the watch. */
static void limits_check_wake(struct limits *l)
{
    if ((!list_is_empty(&l->ready) && l->asked < ASKED_MOST) || !list_is_empty(&l->sought))
        timer_arm(l->s.loop, &l->turn, 0);
}

bool limits_check_is_lost(const struct track *t)
{
    const struct gpu_card *card = gpu_watch_find(t->held->owner->s.gpu, t->card);
    return card == NULL || card->missing || card->health == GPU_UNHEALTHY;
}

static void limits_check_seek(struct track *t)
{
    t->since = t->held->owner->walks;
    list_push_back(&t->held->owner->sought, &t->wait);
}

void limits_check(struct track *t)
{
    t->found = OK;
    if (t->held->folder[0] == '\0' && !limits_check_is_lost(t))
        limits_check_seek(t);
    else
        list_push_back(&t->held->owner->ready, &t->wait);
    limits_check_wake(t->held->owner);
}

void limits_check_cancel(struct track *t)
{
    struct limits *l = t->held->owner;
    if (list_is_linked(&t->wait))
        list_remove(&t->wait);
    if (!t->asked)
        return;
    gpu_watch_cancel(&t->request.base);
    t->asked = false;
    l->asked--;
    limits_check_wake(l);
}

/* ---- the folders ---- */

static void limits_check_found(struct limits *l, struct str id)
{
    LIST_FOR_EACH (struct track, t, &l->sought, wait) {
        struct held *h = t->held;
        if (!str_eq(str_of(h->id), id))
            continue;
        (void)snprintf(h->folder, sizeof(h->folder), "%.*s", STR_ARG(buf_str(&l->walk.path)));
        list_remove(&t->wait);
        list_push_back(&l->ready, &t->wait);
    }
}

/* A walk has ended. Writes its result to each track that was sought when the walk began and was not
 * found. */
static void limits_check_lost(struct limits *l, enum errc code, const char *why)
{
    LIST_FOR_EACH (struct track, t, &l->sought, wait) {
        if (t->since == l->walks)
            continue;
        t->found = code;
        if (why != NULL)
            (void)snprintf(t->why, sizeof(t->why), "%.*s", (int)sizeof(t->why) - 1, why);
        else
            (void)snprintf(t->why, sizeof(t->why), "%.*s has no cgroup of container %s",
                           STR_ARG(l->s.cgroup_root), t->held->id);
        list_remove(&t->wait);
        list_push_back(&l->ready, &t->wait);
    }
}

static void limits_check_walk(struct limits *l)
{
    struct err e = ERR_INIT;
    struct str id = STR_NULL;
    unsigned most = FOLDERS_A_TURN;
    if (!l->walking) {
        l->walks++;
        enum errc code = cgroup_walk_begin(&l->walk, l->s.cgroup_root, &e);
        l->walking = code == OK;
        if (code != OK)
            limits_check_lost(l, code, e.text);
    }
    while (l->walking && !list_is_empty(&l->sought)) {
        enum cgroup_step step = cgroup_walk_next(&l->walk, &most, &id);
        if (step == CGROUP_CONTAINER)
            limits_check_found(l, id);
        else if (step == CGROUP_MORE)
            return;
        else
            l->walking = false;
        if (step == CGROUP_END)
            limits_check_lost(l, ERR_NOTFOUND, NULL);
        else if (step == CGROUP_TOO_MANY)
            limits_check_lost(l, ERR_LIMIT, "too many cgroups, or too few file descriptors");
    }
    l->walking = false;
    cgroup_walk_end(&l->walk);
}

/* ---- one check ---- */

static void limits_check_on_done(struct gpu_limit_request *r)
{
    static const enum limit_event events[] = {
        [GPU_LIMIT_UNKNOWN] = LIMIT_ON_UNKNOWN,   [GPU_LIMIT_NO_CARD] = LIMIT_ON_LOST,
        [GPU_LIMIT_NO_GROUP] = LIMIT_ON_NO_GROUP, [GPU_LIMIT_THERE] = LIMIT_ON_THERE,
        [GPU_LIMIT_SET] = LIMIT_ON_OURS,          [GPU_LIMIT_ABSENT] = LIMIT_ON_ABSENT,
    };
    struct track *t = CONTAINER_OF(r, struct track, request);
    struct limits *l = t->held->owner;
    t->asked = false;
    l->asked--;
    memcpy(t->why, r->limit.why, sizeof(t->why));
    l->counts.preset += r->limit.outcome == GPU_LIMIT_THERE && !t->state.seen ? 1 : 0;
    if (r->limit.outcome == GPU_LIMIT_NO_GROUP)
        t->held->folder[0] = '\0';
    limits_react(t, events[r->limit.outcome]);
    limits_check_wake(l);
}

/* The folder stays where it is as long as the container runs. */
static bool limits_check_has_folder(struct held *h)
{
    struct stat st;
    if (h->folder[0] != '\0' && stat(h->folder, &st) != 0)
        h->folder[0] = '\0';
    return h->folder[0] != '\0';
}

static void limits_check_one(struct track *t)
{
    struct limits *l = t->held->owner;
    if (limits_check_is_lost(t)) {
        limits_react(t, LIMIT_ON_LOST);
    } else if (t->found != OK) {
        limits_react(t, t->found == ERR_NOTFOUND ? LIMIT_ON_NO_GROUP : LIMIT_ON_UNKNOWN);
    } else if (!limits_check_has_folder(t->held)) {
        limits_check_seek(t);
    } else {
        t->request.base.index = t->card;
        t->request.cgroup = str_of(t->held->folder);
        t->request.on_done = limits_check_on_done;
        t->asked = true;
        l->asked++;
        gpu_watch_limit(l->s.gpu, &t->request);
    }
}

static void limits_check_on_turn(struct timer *timer)
{
    struct limits *l = CONTAINER_OF(timer, struct limits, turn);
    for (unsigned i = 0; i < TRACKS_A_TURN && l->asked < ASKED_MOST; i++) {
        if (list_is_empty(&l->ready))
            break;
        struct track *t = LIST_FIRST(&l->ready, struct track, wait);
        list_remove(&t->wait);
        limits_check_one(t);
    }
    if (l->walking || !list_is_empty(&l->sought))
        limits_check_walk(l);
    limits_check_wake(l);
}

void limits_check_init(struct limits *l)
{
    l->turn.fire = limits_check_on_turn;
    list_init(&l->ready);
    list_init(&l->sought);
}

void limits_check_done(struct limits *l)
{
    timer_cancel(&l->turn);
    cgroup_walk_end(&l->walk);
}
