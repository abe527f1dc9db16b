/*
 * The port for probes and metrics: plain HTTP, so that a kubelet needs no certificate, and nothing
 * on it that decides anything.
 */
#pragma once

#include "service.h"

/* For struct http_server_settings; the ctx is the service. */
void probe_handle(void *service, struct http_request *r);
void probe_too_large(void *service, struct http_request *r, uint64_t body_bytes);
