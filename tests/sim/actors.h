/* The actors of the world besides cardpack: schedulers, users, kubelets and device plugins,
 * administrators, and faults. */
#pragma once

#include "proc.h"

/* Creates the nodes and the first pods before anything runs. */
void users_begin(void);

/* One action of one actor. */
void users_act(void);

void schedulers_begin(void);
void schedulers_move(void); /* the schedulers ask mostly another replica from now on */
void schedulers_stop(void); /* the schedulers begin no new cycle */

/* Asks every process which nodes are feasible, and compares the answers with the oracle. */
void schedulers_probe(void);

/* Asks every process prioritize, explain, fit and preempt, and compares each answer. */
void questions_ask(void);
bool questions_answered(void);

/* At rest: binds every feasible pod, one by one, and checks that each is bound soon. */
void schedulers_bind_all(void);

/* The scheduler sends its requests to this process, leader or not. */
void schedulers_turn_to(struct proc *p);
