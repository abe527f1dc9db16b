/* The limits of kube, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Objects of one list over all its pages, and pages in it without any object. Kubernetes supports
 * 150,000 pods; clusters of 65,000 nodes are known. A list with more than this is taken for
 * endless. */
#define LIMIT_LIST_OBJECTS     ((size_t)4000000)
#define LIMIT_LIST_EMPTY_PAGES ((size_t)100)

/* Events that wait for the API server, 1.5 KiB each. */
#define LIMIT_EVENTS_QUEUED ((size_t)128)

/* Calls for events that are in flight at once. They must not slow down Bindings. */
#define LIMIT_EVENTS_IN_FLIGHT 4

/* Events, groups of events and pods with events that are remembered, 200 bytes each. client-go
 * keeps as many of each. It is more than LIMIT_EVENTS_QUEUED, because a queued event must not be
 * forgotten. */
#define LIMIT_EVENT_RECORDS ((size_t)4096)
