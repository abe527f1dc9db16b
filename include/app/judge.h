/* What filter and prioritize are asked alike: how each candidate of a request suits its pod. */
#pragma once

#include "extender.h"
#include "request.h"
#include "score.h"
#include "service.h"
#include "verdict.h"

struct judgement {
    struct request request;
    struct err bad_request;         /* code OK: the request can be read */
    unsigned char *verdicts;        /* enum verdict of each candidate; in the request's arena */
    unsigned counts[VERDICT_COUNT]; /* how many candidates got each */
    uint64_t *scores; /* and its score; SCORE_NONE where it doesn't fit or none is better */
};

/*
 * Changes nothing. Without `scored` scores stays NULL. No node is better than another for a pod
 * that wants no card: where it goes is not our business. ERR_NOMEM, ERR_LIMIT: no room for it.
 */
enum errc judge(const struct service *s, const struct filter_args *args, struct arena *a,
                bool scored, struct judgement *ret) _must_use_;
