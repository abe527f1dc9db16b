/*
 * The servers to measure, each in its own process: the real cardpack with an embedded cluster, and
 * echo servers.
 */
#pragma once

#include "blocking_client.h"

#include <sys/types.h>
#include <time.h>

#define TEMP_PATH 64

struct http_child {
    pid_t pid;
    uint16_t port;
    char log[TEMP_PATH]; /* the log file; "": no log */
};

/* Makes a new file, which is removed at exit; returns its descriptor. */
int temp_open(char path[static TEMP_PATH]);

/* Waits until it listens; with an embedded cluster it is then ready. */
void cardpack_start(struct http_child *c, const char *program, const char *cluster,
                    const char *shortlist);

/* Answers "POST /N" with N bytes: the body, filled up if it is shorter. */
void echo_start(struct http_child *c);

/* Answers with the whole body, through cardpack's own HTTP server: without the verbs. */
void own_echo_start(struct http_child *c);

/* The clock of its processor time, for all its threads. */
clockid_t http_child_clock(const struct http_child *c);

/* Resident memory, in bytes. */
size_t http_child_resident(const struct http_child *c);

void http_child_stop(struct http_child *c);
