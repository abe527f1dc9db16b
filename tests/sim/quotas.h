/*
 * Quotas of namespaces (docs/quota.md): the ConfigMap, which changes at random, and usage counted
 * from the API server's objects. The model shares no sums and no patterns with cardpack.
 *
 * Not judged: which quotas are in force while the ConfigMap is not valid. cardpack keeps the last
 * valid ones, or has none if it started since.
 */
#pragma once

#include "oracle.h"
#include "slices.h"

/* Writes another quota ConfigMap, or deletes it. */
void quotas_change(void);

/* ---- decisions ---- */

/* Notes what the process may believe of quotas, pools and models. */
void quotas_note(const struct proc *p, struct decision *d);

/* The decision `first` also may have believed what `later` may. */
void quotas_keep(struct decision *first, const struct decision *later);

/* After a Binding of cardpack to a pod of this namespace: each decision that put a pod of the
 * namespace on its cards was within the quota. */
void quotas_check(const struct name *ns);

/* ---- at rest ---- */

/* What a namespace may use and uses, for the question whether one more pod fits. */
struct quota_room {
    const struct pod_object *pod;
    const struct limits_object *limits; /* NULL: none */
    bool unsure;                        /* what is in force, or used, is not certain: no limits */
    struct belief now;
    int64_t sums[SCOPES][LIMITED_KINDS];
};

void quotas_room(const struct pod_object *p, struct quota_room *ret);

/* Whether the quota has room for the pod if all its cards were like this one. */
bool quotas_allow_card(const struct quota_room *r, unsigned node, int64_t card);

/* Whether the quota denies the pod each card of the node even if its namespace held nothing.
 * perhaps: whether it may do so of some card. */
bool quotas_deny(const struct pod_object *p, unsigned node, bool perhaps);

/* Whether it has room for the pod with exactly these parts of cards. */
bool quotas_allow(const struct quota_room *r, unsigned node, const struct slices *all);

/* Whether `reason` says, with the right numbers, why the quota has no room for the pod on some card
 * of the node. */
bool quotas_explain(const struct quota_room *r, unsigned node, const char *reason);

/* Whether `reason` is one of quotas. */
bool quotas_is_reason(const char *reason);
