/*
 * The other side of an HTTP server for benchmarks: one kept connection, a request that is there
 * whole, and its answer. Blocking, and with nothing in it that takes time of its own. What goes
 * wrong ends the process.
 */
#pragma once

#include "buf.h"

#include <stdint.h>

struct talk {
    int fd;
    struct buf in; /* the last answer, head and body */
    unsigned status;
    struct str body; /* of it, in `in` */
};

void talk_open(struct talk *c, uint16_t port);
void talk_close(struct talk *c);

/* As kube-scheduler sends it: head and body, into *out. */
void talk_request(struct buf *out, const char *path, struct str body);

void talk_do(struct talk *c, struct str request);

/* The decimal number that begins at s, as far as its digits go. */
uint64_t number_at(const char *s);

/* What goes wrong in a benchmark ends it. */
void die(const char *format, ...) _printf_(1, 2) __attribute__((noreturn));
