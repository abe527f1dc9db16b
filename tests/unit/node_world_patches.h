/* What the API server does with the PATCHes of the agent in node_world.h: at any time, or never. */
#pragma once

#include "node_world.h"

static bool is_copy_equal(const struct copy *a, const struct copy *b)
{
    bool equal =
        a->n_said == b->n_said && a->assigned == b->assigned && strcmp(a->vacated, b->vacated) == 0;
    for (uint32_t i = 0; equal && i < a->n_said; i++)
        equal = a->said[i].card == b->said[i].card && a->said[i].mem == b->said[i].mem &&
                a->said[i].container == b->said[i].container;
    return equal;
}

/* A merge patch: it changes what it names and no more. Without a change there is no new version. */
static void land(struct world *w, const struct patch *x)
{
    struct copy *now = &w->pods[x->pod].now;
    const struct copy before = *now;
    if (x->action == EXCHANGE_MOVE) {
        now->n_said = x->to.n_said;
        memcpy(now->said, x->to.said, sizeof(now->said));
    }
    if (x->action == EXCHANGE_MARK || x->action == EXCHANGE_FINISH)
        memcpy(now->vacated, x->to.vacated, sizeof(now->vacated));
    now->assigned = now->assigned || x->to.assigned;
    NOTE("lands%s\n", x->left ? " late" : "");
    w->n.landed_late += x->left;
    if (!is_copy_equal(now, &before))
        tell(w, x->pod);
}

static void answer(struct world *w, const struct patch *x, struct roster_pod *r)
{
    bool seen = x->ok && (w->quiet || draw(w, 10) > 0); /* the answer is not lost */
    if (seen)
        show(w, x->pod, &x->to);
    if (x->refused) {
        w->n.patches_refused++;
        (void)exchange_refuse(r);
    }
    w->n.conflicts += x->conflict;
    exchange_answered(r, x->conflict  ? EXCHANGE_CONFLICT
                         : x->refused ? EXCHANGE_NOT_WRITTEN
                         : seen       ? EXCHANGE_WRITTEN
                                      : EXCHANGE_UNKNOWN);
}

static struct roster_pod *sender_of(struct world *w, const struct patch *x)
{
    return w->up && !x->left ? roster_find(&w->roster, str_of(w->pods[x->pod].uid)) : NULL;
}

/* The API server works on a PATCH, or its answer arrives or is lost, or takes too long. */
static bool patch_step(struct world *w, struct patch *x)
{
    if (!x->on)
        return false;
    struct wpod *p = &w->pods[x->pod];
    struct roster_pod *r = sender_of(w, x);
    if (!x->done && !x->left && !w->quiet && draw(w, 16) == 0) {
        x->left = true;
        if (r != NULL)
            exchange_answered(r, EXCHANGE_UNKNOWN);
        return true;
    }
    if (!x->done) {
        x->done = true;
        x->conflict = x->version != 0 && x->version != p->now.version;
        x->refused = p->life != LIFE_ENDED && p->stubborn;
        x->ok =
            p->life != LIFE_ENDED && !x->conflict && !p->stubborn && (w->quiet || draw(w, 10) > 0);
        if (x->ok)
            land(w, x);
        x->to = p->now;
        x->on = !x->left;
        return true;
    }
    x->on = false;
    if (r != NULL)
        answer(w, x, r);
    return true;
}

/* Until the API server has dropped it, at the latest after some time. */
static bool is_patch_left(const struct world *w)
{
    for (size_t i = 0; i < COUNT_OF(w->patches); i++) {
        if (w->patches[i].on && w->patches[i].left)
            return true;
    }
    return false;
}
