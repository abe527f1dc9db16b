/* How a request was answered: http_request.outcome. */
#pragma once

enum request_outcome {
    OUTCOME_UNSAID, /* by the status: OK below 400, else ERROR */
    OUTCOME_OK,
    OUTCOME_REFUSED,  /* no node is feasible, or not this one; or the request is not allowed */
    OUTCOME_IN_DOUBT, /* bind: the result is unknown */
    OUTCOME_ERROR,
    OUTCOME_COUNT
};
