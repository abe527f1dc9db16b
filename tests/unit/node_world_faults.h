/* What goes wrong in the world of node_world.h: reboots, edits by users, and what the kubelet and
 * the API server do to the agent. */
#pragma once

#include "node_world.h"

static void kill_agent(struct world *w)
{
    if (w->old_kubelet && w->n.losses > 0 && w->up)
        return;
    for (size_t i = 0; i < COUNT_OF(w->patches); i++) {
        w->patches[i].on = w->patches[i].on && !w->patches[i].done;
        w->patches[i].left = true; /* may still take effect */
    }
    w->up = false;
}

static void fail_pod(struct world *w, unsigned i)
{
    w->pods[i].life = LIFE_ENDED;
    tell(w, i);
}

/* The kubelet writes the phase later, and it stays when the containers have ended. */
static void report(struct world *w, unsigned i)
{
    if (w->pods[i].life == LIFE_ENDED || !w->pods[i].has_run || w->pods[i].now.runs)
        return;
    w->pods[i].now.runs = true;
    tell(w, i);
}

/* A user writes another card into the annotations of a pod: one with room, or any. */
static void edit(struct world *w, unsigned i)
{
    struct wpod *p = &w->pods[i];
    uint32_t card = (uint32_t)draw(w, CARDS);
    if (p->kind != KIND_PLAIN || p->life == LIFE_ENDED || p->now.n_said != 1 || p->stubborn)
        return;
    if ((w->faults & WILD_EDITS) == 0 && said_on(w, card) + size_of(p) > TOTAL)
        return;
    if ((w->faults & WILD_EDITS) != 0 && draw(w, 8) == 0)
        card = CARDS + 1; /* there is no such card */
    p->now.said[0].card = card;
    p->edited = true;
    w->n.edited++;
    tell(w, i);
}

static void restart_kubelet(struct world *w)
{
    NOTE("the kubelet restarts\n");
    w->mode = (int)draw(w, 3);
    hear(w, true); /* the agent lists pods anew */
    if (!w->up)
        return;
    read_checkpoint(w, false);
    roster_mark_backlog(&w->roster);
}

/* The kubelet will ask for the devices of this pod. */
static void queue_pod(struct world *w, unsigned i)
{
    for (unsigned k = 0; k < w->n_order; k++) {
        if (w->kubelet_order[k] == i)
            return;
    }
    w->kubelet_order[w->n_order++] = i;
}

/* Its containers have ended, and start again; without devices the kubelet asks for them first. */
static void stop(struct world *w, unsigned i)
{
    struct wpod *p = &w->pods[i];
    memset(p->on, 0, sizeof(p->on));
    p->forgotten = false;
    p->life = p->n_given < p->n_containers ? LIFE_BOUND : LIFE_ADMITTED;
    if (p->life == LIFE_BOUND) {
        w->n.again++;
        queue_pod(w, i);
    }
}

/* The kubelet has lost the devices of pods that run, and a user has edited their annotations. An
 * agent that starts before they are set back can't know where these pods run: only the one before
 * it had that in its memory. */
static void forget_lost(struct world *w)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        struct wpod *p = &w->pods[i];
        if (p->life == LIFE_RUNS && p->edited && p->n_given < p->n_containers && !is_right(p)) {
            p->forgotten = true;
            w->n.forgotten++;
        }
    }
}

/* All containers end, and the folder of specs is empty. */
static void reboot(struct world *w)
{
    kill_agent(w);
    w->n.reboots++;
    for (unsigned i = 0; i < w->n_pods; i++) {
        struct wpod *p = &w->pods[i];
        if (p->life == LIFE_RUNS)
            stop(w, i);
        for (unsigned k = 0; k < p->n_given; k++)
            p->has[k].n = p->late[k] ? 0 : p->has[k].n;
    }
}

static void change_world(struct world *w)
{
    if (w->binding == SWITCHED && draw(w, 2) == 0)
        w->late = !w->late;
    if (draw(w, 8) == 0)
        reboot(w);
    for (int k = 0; w->binding == EDITED && w->n_pods > 0 && k < 2; k++)
        edit(w, (unsigned)draw(w, w->n_pods));
}

/* The kubelet starts without its checkpoint. It asks again for what does not run, and an old one
 * for everything. */
static void lose_checkpoint(struct world *w)
{
    NOTE("the checkpoint is lost\n");
    w->n.losses++;
    for (unsigned i = 0; i < w->n_pods; i++) {
        struct wpod *p = &w->pods[i];
        if (p->life == LIFE_ENDED)
            continue;
        report(w, i);
        p->n_given = 0;
        memset(p->has, 0, sizeof(p->has));
        memset(p->late, 0, sizeof(p->late));
        p->life = p->life == LIFE_ADMITTED ? LIFE_BOUND : p->life;
        if (p->life == LIFE_BOUND || w->old_kubelet)
            queue_pod(w, i);
    }
    restart_kubelet(w);
}

static void add_fault(struct world *w)
{
    unsigned i = (unsigned)draw(w, PODS);
    if (i >= w->n_pods)
        return;
    if ((w->faults & WILD_EDITS) != 0)
        edit(w, i);
    if ((w->faults & LOSSES) != 0 && draw(w, 12) == 0)
        lose_checkpoint(w);
    if ((w->faults & REFUSALS) != 0 && w->up && draw(w, 4) == 0)
        exchange_retry(&w->roster);
    i = (unsigned)draw(w, w->n_pods);
    if (w->pods[i].life == LIFE_RUNS) {
        NOTE("%s restarts\n", w->pods[i].uid);
        stop(w, i);
    }
}
