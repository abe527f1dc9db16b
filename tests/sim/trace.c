/*
 * The trace: a ring of the last lines, and a hash of all lines. Two runs of a seed are the same
 * history exactly if their hashes are equal; so the hash includes texts and numbers, never a
 * pointer.
 */
#include "sim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RING 80

struct line {
    uint64_t step;
    uint64_t now_ms;
    const char *what;
    char who[64];
    int64_t a;
    int64_t b;
};

static struct {
    struct line lines[RING];
    uint64_t n;
} ring;

bool trace_all;

static void line_print(const struct line *l)
{
    (void)fprintf(stderr, "  %6llu %10llu ms  %-22s %-30s %lld %lld\n", (unsigned long long)l->step,
                  (unsigned long long)l->now_ms, l->what, l->who, (long long)l->a, (long long)l->b);
}

static void hash_word(uint64_t v)
{
    world.hash = (world.hash ^ v) * 0x9e3779b97f4a7c15U;
    world.hash ^= world.hash >> 29;
}

static void hash_bytes(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325U ^ n;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3U;
    hash_word(h);
}

void trace(const char *what, struct str who, int64_t a, int64_t b)
{
    struct line *l = &ring.lines[ring.n++ % RING];
    size_t n = MIN_OF(who.n, sizeof(l->who) - 1);
    *l = (struct line){.step = world.steps, .now_ms = world.now_ms, .what = what, .a = a, .b = b};
    if (n > 0)
        memcpy(l->who, who.p, n);
    hash_bytes(what, strlen(what));
    hash_bytes(who.p, who.n);
    hash_word(world.now_ms);
    hash_word((uint64_t)a);
    hash_word((uint64_t)b);
    if (trace_all)
        line_print(l);
}

void trace_reset(void)
{
    ring.n = 0;
}

/* Prints the last lines, the seed and the step. An assertion of cardpack and a sanitizer's report
 * end here, too. */
static void tail_print(const char *why)
{
    if (!trace_all) {
        for (uint64_t i = ring.n > RING ? ring.n - RING : 0; i < ring.n; i++)
            line_print(&ring.lines[i % RING]);
    }
    (void)fprintf(stderr, "seed=%llu step=%llu: %s\nreplay: sim --seed %llu --trace\n",
                  (unsigned long long)world.set.seed, (unsigned long long)world.steps, why,
                  (unsigned long long)world.set.seed);
}

void sim_fail(const char *file, int line, const char *why)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "%s:%d: %s", file, line, why);
    tail_print(text);
    _exit(1);
}

/* Replaces libc's function: a failed assertion of cardpack prints the trace's tail. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    (void)function;
    sim_fail(file, (int)line, assertion);
}

static void on_sanitizer(void)
{
    tail_print("a sanitizer has found something");
}

/* Defined only in builds with sanitizers. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Prints the tail, then lets the signal's default action end the process. */
static void on_crash(int signo)
{
    tail_print(strsignal(signo));
    (void)raise(signo);
}

/* Handles crash signals on a separate stack: endless recursion leaves no room on the normal one. */
void trace_catch(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    static char room[64 << 10];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction taken;
    struct sigaction action = {.sa_handler = on_crash,
                               .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND)};
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(on_sanitizer);
    else
        sim_check(sigaltstack(&stack, NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        sim_check(sigaction(signals[i], NULL, &taken) == 0);
        /* A sanitizer handles some signals itself, and calls on_sanitizer. */
        if (taken.sa_handler == SIG_DFL)
            sim_check(sigaction(signals[i], &action, NULL) == 0);
    }
}

void trace_note(const char *what, struct str who)
{
    (void)fprintf(stderr, "  %6llu %10llu ms  log: %s: %.*s\n", (unsigned long long)world.steps,
                  (unsigned long long)world.now_ms, what, STR_ARG(who));
}
