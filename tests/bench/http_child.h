/*
 * The servers that are measured, each a process of its own: cardpack as it is, with an embedded
 * cluster, and echoes.
 */
#pragma once

#include "talk.h"

#include <sys/types.h>

#define TEMP_PATH 64

struct http_child {
    pid_t pid;
    uint16_t port;
    char log[TEMP_PATH]; /* file of what it says; "": it says nothing */
};

/* A new file, removed when we end; its descriptor. */
int temp_open(char path[static TEMP_PATH]);

/* Waits until it listens; with an embedded cluster it is ready then. */
void cardpack_start(struct http_child *c, const char *program, const char *cluster,
                    const char *shortlist);

/* Answers each request with its body. */
void echo_start(struct http_child *c);

/* The same by cardpack's own HTTP server: what is above libmicrohttpd, and below the verbs. */
void own_echo_start(struct http_child *c);

/* Resident memory, in bytes. */
size_t http_child_resident(const struct http_child *c);

void http_child_stop(struct http_child *c);
