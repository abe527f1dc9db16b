/* The codes of gRPC, their names, and our own failures for them. */
#include "grpc/grpc_status.h"

static const struct {
    const char *name;
    enum errc code;
} grpc_status_table[] = {
    [GRPC_OK] = {"ok", OK},
    [GRPC_CANCELLED] = {"cancelled", ERR_CANCELED},
    [GRPC_UNKNOWN] = {"unknown", ERR_UNAVAILABLE},
    [GRPC_INVALID_ARGUMENT] = {"invalid argument", ERR_RANGE},
    [GRPC_DEADLINE_EXCEEDED] = {"deadline exceeded", ERR_TIMEOUT},
    [GRPC_NOT_FOUND] = {"not found", ERR_NOTFOUND},
    [GRPC_ALREADY_EXISTS] = {"already exists", ERR_CONFLICT},
    [GRPC_PERMISSION_DENIED] = {"permission denied", ERR_DENIED},
    [GRPC_RESOURCE_EXHAUSTED] = {"resource exhausted", ERR_LIMIT},
    [GRPC_FAILED_PRECONDITION] = {"failed precondition", ERR_CONFLICT},
    [GRPC_ABORTED] = {"aborted", ERR_CONFLICT},
    [GRPC_OUT_OF_RANGE] = {"out of range", ERR_RANGE},
    [GRPC_UNIMPLEMENTED] = {"unimplemented", ERR_NOTFOUND},
    [GRPC_INTERNAL] = {"internal", ERR_INTERNAL},
    [GRPC_UNAVAILABLE] = {"unavailable", ERR_UNAVAILABLE},
    [GRPC_DATA_LOSS] = {"data loss", ERR_INTERNAL},
    [GRPC_UNAUTHENTICATED] = {"unauthenticated", ERR_DENIED},
};

const char *grpc_status_name(unsigned status)
{
    return grpc_status_table[status < COUNT_OF(grpc_status_table) ? status : GRPC_UNKNOWN].name;
}

enum errc grpc_status_errc(unsigned status)
{
    return grpc_status_table[status < COUNT_OF(grpc_status_table) ? status : GRPC_UNKNOWN].code;
}

enum grpc_status grpc_status_of(enum errc code)
{
    static const enum grpc_status statuses[ERRC_COUNT] = {
        [OK] = GRPC_OK,
        [ERR_SYNTAX] = GRPC_INVALID_ARGUMENT,
        [ERR_RANGE] = GRPC_INVALID_ARGUMENT,
        [ERR_LIMIT] = GRPC_RESOURCE_EXHAUSTED,
        [ERR_NOMEM] = GRPC_RESOURCE_EXHAUSTED,
        [ERR_NOTFOUND] = GRPC_NOT_FOUND,
        [ERR_CONFLICT] = GRPC_FAILED_PRECONDITION,
        [ERR_DENIED] = GRPC_PERMISSION_DENIED,
        [ERR_UNAVAILABLE] = GRPC_UNAVAILABLE,
        [ERR_TIMEOUT] = GRPC_DEADLINE_EXCEEDED,
        [ERR_CANCELED] = GRPC_CANCELLED,
        [ERR_INTERNAL] = GRPC_INTERNAL,
    };

    assert((unsigned)code < ERRC_COUNT);
    return statuses[code];
}
