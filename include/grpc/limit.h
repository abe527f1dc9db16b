/* The limits of grpc, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* A request message. The longest of the kubelet names each device of a container once or twice. */
#define LIMIT_GRPC_MESSAGE (16 * MIB)

/* All request messages of a server that have not been handled yet. */
#define LIMIT_GRPC_RECEIVED (64 * MIB)

/* A reply message. The list of pod resources of a node grows with its devices. */
#define LIMIT_GRPC_REPLY (16 * MIB)

/* What one call may hold unsent: two whole lists of 100,000 devices. The kubelet reads at most 4
 * MiB as one message. */
#define LIMIT_GRPC_UNSENT (16 * MIB)

/* What all calls of a server may hold unsent. */
#define LIMIT_GRPC_UNSENT_ALL (64 * MIB)

/* Connections of a server: the kubelet keeps one or two. */
#define LIMIT_GRPC_CONNECTIONS 16

/* Calls at the same time on one connection: the kubelet has one stream and few calls. */
#define LIMIT_GRPC_CALLS 128

/* The header list of a request or a reply, in bytes: names, values, and 32 for each pair. */
#define LIMIT_GRPC_HEADERS ((size_t)16384)

/* A status' text, in bytes before its percent-encoding. */
#define LIMIT_GRPC_TEXT ((size_t)1024)

/* A client that does not read what waits for it loses its connection. */
#define LIMIT_GRPC_STALL_MS 60000

/* A request without a timeout of its own. */
#define LIMIT_GRPC_REQUEST_MS 10000
