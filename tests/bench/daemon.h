/*
 * The real programs, as processes: an API server (bench_api) and a cardpack that reads from it.
 * They end with who started them. What can't be ends the benchmark.
 */
#pragma once

#include "bench.h"

#include <sys/types.h>

#define API_SETTINGS 16

struct process {
    pid_t pid;
    int in;        /* its standard input, or -1 */
    uint16_t port; /* where it listens */
};

struct daemon {
    struct process process;
    char folder[64]; /* of its kubeconfig and log */
    double ready_s;  /* from its start until it was ready */
};

struct memory {
    double now_mib;
    double peak_mib;
};

_Noreturn void bench_fail(const char *what);

/* NAME=NUMBER each, up to a NULL. */
void api_start(struct process *p, const char *program, const char *const *settings);

/* Returns once it is ready. `extra` are flags, up to a NULL; or NULL. */
void daemon_start(struct daemon *d, const char *program, const struct process *api, bool tls,
                  const char *const *extra);
void daemon_stop(struct daemon *d);
void process_stop(struct process *p);

struct memory process_memory(pid_t pid);
double process_cpu_s(pid_t pid);

/* A GET on 127.0.0.1 by a new connection; the status (0: no answer), and the body in
 * `text`, as much as fits. */
unsigned local_get(uint16_t port, const char *path, char *text, size_t size);
