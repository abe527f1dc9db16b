/*
 * The real programs as processes: an API server (bench_api), and a cardpack that reads from it.
 * They end when the process that started them ends. A failure ends the benchmark.
 */
#pragma once

#include "bench.h"

#include <sys/types.h>

#define API_SETTINGS 16

struct process {
    pid_t pid;
    int in;        /* its standard input, or -1 */
    uint16_t port; /* the port that it listens on */
};

struct daemon {
    struct process process;
    char folder[64]; /* holds its kubeconfig and log */
    double ready_s;  /* seconds from its start until it was ready */
};

struct memory {
    double now_mib;
    double peak_mib;
};

_Noreturn void bench_fail(const char *what);

/* Settings are NAME=NUMBER, with NULL at the end. */
void api_start(struct process *p, const char *program, const char *const *settings);

/* Returns when the program is ready. `extra`: flags with NULL at the end; or NULL. */
void daemon_start(struct daemon *d, const char *program, const struct process *api, bool tls,
                  const char *const *extra);
void daemon_stop(struct daemon *d);
void process_stop(struct process *p);

struct memory process_memory(pid_t pid);
double process_cpu_s(pid_t pid);

/* A GET on 127.0.0.1 with a new connection. Returns the status (0: no answer) and as much of the
 * body as fits into `text`. */
unsigned local_get(uint16_t port, const char *path, char *text, size_t size);
