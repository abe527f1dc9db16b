/*
 * Why a pod goes where, or nowhere: for every node and each of its cards whether it fits, or what
 * exactly is missing. Of this moment; changes nothing.
 *
 *     {"pod": {"namespace", "name", "state", "node", "nominated"},
 *      "request": {"text", "memory", "cards", "compute", ...}, "error",
 *      "nodes": 3, "fit": 1, "refused": {"no_card_free": 2},
 *      "verdicts": [{"node", "fits", "verdict", "reason", "kept": ["NAMESPACE/POD"],
 *                    "placement": [{"container", "card", "memory", "compute"}],
 *                    "cards": [{"card", "fits", "verdict", "reason"}]}]}
 *
 * A node's reason is the one that filter gives. Nodes that fit come first, the best by the node
 * policy first of all; the others by name. Only cards are looked at: what else a scheduler asks of
 * a node (taints, CPU) is not.
 */
#pragma once

#include "service.h"

struct explain_call;

/* GET .../explain/NAMESPACE/POD: of a pod that the API server has. */
void explain_handle_get(struct service *s, struct http_request *r, struct str pod);

/* POST .../explain: of the Pod in the body, as JSON or YAML, which need not exist. */
void explain_handle_post(struct service *s, struct http_request *r);

/* Those that wait for the API server are given up, and none does from now on, whoever asks on a
 * connection that is still there: the end waits for none. Before the HTTP server is freed. */
void explain_end(struct service *s);
