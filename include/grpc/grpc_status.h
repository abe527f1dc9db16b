/* The status of a gRPC call: the codes that the kubelet and this program use, with gRPC's numbers.
 */
#pragma once

#include "base/err.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

/* "invalid argument", ...: for logs and error texts. Any number; "unknown" for one without a name.
 */
const char *grpc_status_name(unsigned status);

/* The status that a caller gets for this failure, and the failure that a status is for us. */
enum grpc_status grpc_status_of(enum errc code);
enum errc grpc_status_errc(unsigned status);
