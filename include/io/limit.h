/* The limits of io, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* A reply that is not streamed: a Status, or an object that a list may hold, too. */
#define LIMIT_REPLY_BYTES LIMIT_OBJECT_BYTES

/* What one request may allocate besides its body. 50,000 node names of 64 bytes are 6 MiB. */
#define LIMIT_REQUEST_ARENA (256 * MIB)

/* The part of each request's body, arena and answer that memory-budget does not count. So a bind, a
 * probe and a filter of some hundred names are served even when memory-budget is used up. */
#define LIMIT_REQUEST_FREE (64 * KIB)

/* Request objects that are kept with that memory. More are rarely in use at once, and then come
 * from malloc. */
#define LIMIT_KEEP_REQUESTS 16

/* Handles of the HTTP client that are kept for later calls: at busy times as many binds are in
 * flight. */
#define LIMIT_KEEP_TRANSFERS 64

/* Certificates and keys: a bundle of CAs holds some 2 KiB for each. */
#define LIMIT_PEM_BYTES (256 * KIB)

/* Connections that are served at the same time. The others wait in the listen queue. */
#define LIMIT_CONNECTIONS 1000

/* Two for each connection: its own, and that of its bind's API call. The rest is for watches,
 * timers and files. */
#define LIMIT_DESCRIPTORS (2 * LIMIT_CONNECTIONS + 1000)

/* The part of the rest that cardpack cannot do without: standard descriptors, epoll sets and
 * listening sockets take 10, probes 16, watches, the Lease and events 12; a resolver and files take
 * some more. */
#define LIMIT_DESCRIPTORS_REST ((uint64_t)64)

/* Headers of a request: kube-scheduler sends five, a proxy adds as many. */
#define LIMIT_HEADERS 100

/* How much of a refused request's body is read and dropped, so that the client goes on to read the
 * answer. */
#define LIMIT_REFUSED_BODY (1 * MIB)

/* If the peer of a stream has acknowledged no byte for so long, the peer counts as gone. */
#define LIMIT_STREAM_UNHEARD_MS 60000

/* TCP_USER_TIMEOUT. By default the kernel resends unacknowledged data for 15 minutes: too late for
 * a Binding. */
#define LIMIT_UNACKNOWLEDGED_MS UINT64_C(4000)
