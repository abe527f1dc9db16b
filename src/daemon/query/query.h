/*
 * People's questions: explain, inspect, cards and fit.
 *
 * explain says why a pod is placed where it is, or nowhere: for every node and each of its cards
 * whether it is feasible, or what exactly is missing. It describes the present and changes nothing.
 *
 *     {"pod": {"namespace", "name", "state", "node", "nominated"},
 *      "request": {"text", "memory", "cards", "compute", ...}, "error",
 *      "nodes": 3, "fit": 1, "refused": {"no_card_free": 2},
 *      "verdicts": [{"node", "fits", "verdict", "reason", "kept": ["NAMESPACE/POD"],
 *                    "placement": [{"container", "card", "memory", "compute"}],
 *                    "cards": [{"card", "fits", "verdict", "reason"}]}]}
 *
 * The reason of a node is the one that filter gives. Feasible nodes come first, the best by node
 * policy first; the others follow by name. Only cards are evaluated, and not what else
 * kube-scheduler checks (taints, CPU).
 */
#pragma once

#include "daemon/service.h"

struct explain_call;

/* GET .../explain/NAMESPACE/POD: for a pod that the API server has. */
void query_explain_get(struct service *s, struct http_request *r);

/* POST .../explain: for the Pod in the body, as JSON or YAML; it need not exist. */
void query_explain_post(struct service *s, struct http_request *r);

/*
 * Answers the requests that wait for the API server with an error. Later requests on open
 * connections get an error too, so that the shutdown waits for none of them. Call it before the
 * HTTP server is freed.
 */
void query_end(struct service *s);

/* GET .../inspect and .../inspect/NODE: gpushare's JSON. r->rest empty: all nodes with cards. */
void query_inspect(struct service *s, struct http_request *r);

/* GET .../cards and .../cards/NODE: the same with more about each card; 503 until ready. */
void query_cards(struct service *s, struct http_request *r);

/* POST .../fit: how many replicas of a pod would fit now; report/whatif.h. Changes nothing. */
void query_fit(struct service *s, struct http_request *r);
