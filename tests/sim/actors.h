/* Who else acts: schedulers, users, kubelets and device plugins, administrators, and fate. */
#pragma once

#include "proc.h"

/* Nodes and the first pods, before anything runs. */
void users_begin(void);

/* One thing that one of them does. */
void users_act(void);

void schedulers_begin(void);
void schedulers_move(void); /* from now on they mostly ask another replica */
void schedulers_stop(void); /* they begin nothing more */
bool schedulers_idle(void);

/* Asks every process what fits, and compares. */
void schedulers_probe(void);
