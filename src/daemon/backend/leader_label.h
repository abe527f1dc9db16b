/*
 * Keeps the label `cardpack.io/leader-of: LEASE` on the pod of the replica that answers
 * kube-scheduler, and on no other pod: a Service selects it. Followers are ready too, so readiness
 * can't distinguish them from the leader. The calls to the API server run beside everything else;
 * no decision waits for them.
 *
 * A replica that begins to lead adds the label to its own pod, and then removes it from every other
 * pod of the namespace that has it. A replica that leads no more removes its own label. Each PATCH
 * names the pod's UID, so it never changes another pod of the same name. It goes to pods/status,
 * which takes labels too: the right to patch that can't change an image.
 */
#pragma once

#include "kube/kube_api.h"

#define LEADER_LABEL_KEY "cardpack.io/leader-of"

struct leader_label;

struct leader_label_settings {
    struct loop *loop;
    struct kube_api *api;
    struct str namespace; /* of the own pod; all strings are copied */
    struct str pod;
    struct str uid;
    struct str lease; /* the label's value: the name of the Lease */
    /* Whether this replica answers kube-scheduler now. */
    bool (*leads)(void *ctx);
    void *ctx;
};

/* Sends the first call in the loop's next turn. All that `s` points to must outlive the label. */
enum errc leader_label_new(const struct leader_label_settings *s, struct leader_label **ret,
                           struct err *reterr) _must_use_;
struct leader_label *leader_label_free(struct leader_label *l); /* returns NULL; sends nothing */

/*
 * Asks `leads` at the end of this turn of the loop. The module does that by itself twice a second;
 * with this call it notices a change at once. l may be NULL.
 */
void leader_label_look(struct leader_label *l);

/*
 * Why the own pod has no label although this replica leads: the error of the last call; empty:
 * there was none. Valid until the next turn of the loop. l may be NULL.
 */
struct str leader_label_trouble(const struct leader_label *l);
