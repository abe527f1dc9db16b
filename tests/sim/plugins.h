/*
 * Nodes with other device plugins than gpushare's, and their pods (docs/dialects.md). Each function
 * does nothing, and draws nothing, in a world without such plugins.
 */
#pragma once

#include "api/plugins.h"
#include "sim.h"

/* The setting "dialects". */
void plugins_put_setting(struct text *t);

/* Makes some of the pods and nodes those of another plugin. */
void plugins_make_pod(struct pod_object *p);
void plugins_make_node(struct node_object *n);

/* A node of HAMi's family has a table of its own. */
void plugins_make_table(struct node_object *n);

/* After a change: what a node of HAMi's family reports agrees with its table. */
void plugins_settle_node(struct node_object *n);

/* The plugin reports ill cards. False: it does not. */
bool plugins_change_node(struct node_object *n);

/* The administrator puts another plugin on the node. */
void plugins_replace(struct node_object *n);

/* Writes the annotations that name the pod's cards as another client would: with any cards. False:
 * the pod is gpushare's. */
bool plugins_allocate(struct pod_object *p);

/* Whether another client may bind the pod to the node. */
bool plugins_may_bind(const struct pod_object *p, const struct node_object *n);

/* Another client edits the annotations. False: the pod is gpushare's. */
bool plugins_edit(struct pod_object *p);
