/*
 * An HTTP client for benchmarks: one kept connection, a request that is sent at once, and its
 * answer. It blocks, and costs little time itself. A failure ends the process.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct blocking_client {
    int fd;
    struct buf in; /* the last answer, head and body */
    unsigned status;
    struct str body; /* the body in `in` */
};

void client_open(struct blocking_client *c, uint16_t port);
void client_close(struct blocking_client *c);

/* Writes a request, head and body, as kube-scheduler does. */
void client_request(struct buf *out, const char *path, struct str body);

void client_do(struct blocking_client *c, struct str request);

/* The decimal number at the start of s. */
uint64_t number_at(const char *s);

/* Prints an error and ends the benchmark. */
void die(const char *format, ...) _printf_(1, 2) __attribute__((noreturn));
