/*
 * Runs a scenario: its steps, the outside world's turns, and the checks of the result. See world.h.
 */
#include "world.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the program's time: longer than all its timeouts and pauses, so that none is cut short. */
#define PATIENCE_MS 200000
#define REST_MS     600000
#define WAITS_MAX   200000
#define REPEATS_MAX 50
#define REPEAT_MS   1000

int cardpack_main(int argc, char *argv[]);

static struct world w;
static struct world_report *report;
static int output = -1; /* the program's log */
static char file_path[128];

void world_fail(const char *format, ...)
{
    va_list args;
    interpose_outside(true);
    interpose_disarm();
    report->failed = true;
    va_start(args, format);
    int n = vsnprintf(report->text, sizeof(report->text), format, args);
    va_end(args);
    if (w.step != NULL && w.step->what != NULL && n > 0 && (size_t)n < sizeof(report->text))
        (void)snprintf(report->text + n, sizeof(report->text) - (size_t)n, " [%s%s]", w.step->what,
                       w.recovering ? ", with memory again" : "");
    _exit(1);
}

void api_fail(const char *file, int line, const char *why)
{
    world_fail("%s:%d: %s", file, line, why);
}

static void hang(const char *why)
{
    world_fail("it hangs: %s", why);
}

/* ---- what the program shows of itself ---- */

void __real_cache_init(struct cache *c, struct map_seed seed);
void __wrap_cache_init(struct cache *c, struct map_seed seed);
void __real_cache_done(struct cache *c);
void __wrap_cache_done(struct cache *c);
void __real_budgets_init(struct budgets *b, struct map_seed seed);
void __wrap_budgets_init(struct budgets *b, struct map_seed seed);
void __real_budgets_done(struct budgets *b);
void __wrap_budgets_done(struct budgets *b);
struct http_server;
uint16_t __real_http_server_port(const struct http_server *s);
uint16_t __wrap_http_server_port(const struct http_server *s);

void __wrap_cache_init(struct cache *c, struct map_seed seed)
{
    __real_cache_init(c, seed);
    w.cache = c;
}

void __wrap_cache_done(struct cache *c)
{
    w.cache = NULL;
    __real_cache_done(c);
}

void __wrap_budgets_init(struct budgets *b, struct map_seed seed)
{
    __real_budgets_init(b, seed);
    w.budgets = b;
}

void __wrap_budgets_done(struct budgets *b)
{
    w.budgets = NULL;
    __real_budgets_done(b);
}

/* main calls it to log the port. */
uint16_t __wrap_http_server_port(const struct http_server *s)
{
    w.port = __real_http_server_port(s);
    return w.port;
}

/* ---- steps ---- */

static void begin_step(const struct step *step)
{
    w.step = step;
    w.begun = false;
    w.since_ms = interpose_now_ms();
    w.repeats = 0;
}

static struct http_peer *call(const struct step *s)
{
    struct http_peer *p = &w.calls[w.n_calls];
    assert(w.n_calls + 1 < WORLD_CALLS);
    if (w.port == 0 || !http_connect(p, w.port))
        return NULL;
    const char *body = s->body == NULL ? "" : s->body;
    http_say(p, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", s->method, s->path,
             strlen(body), body);
    return p;
}

/* Whether the call has ended. */
static bool answered(const struct http_peer *p, struct answer *ret)
{
    *ret = (struct answer){.body = ""};
    if (!p->open)
        return true;
    const char *body = http_body(p, &ret->n);
    if (body != NULL && strncmp(p->in, "HTTP/1.1 ", 9) == 0) {
        ret->status = (unsigned)(p->in[9] - '0') * 100 + (unsigned)(p->in[10] - '0') * 10 +
                      (unsigned)(p->in[11] - '0');
        ret->body = body;
        if (ret->n == 0) /* a stream has no length: its answer is what has come */
            ret->n = p->n_in - (size_t)(body - p->in);
        return true;
    }
    ret->n = 0;
    return p->ended;
}

/* The answer must be right, or an error if an allocation failed; when memory is available again it
 * must become right. */
static bool evaluate(const struct step *s, const struct answer *a)
{
    bool error = a->status == 0 || a->status == 503;
    if (error)
        w.created = -1; /* it may have been done, and only the answer is lost */
    if (!error && s->right(&w, s, a, &error))
        return true;
    if (!error)
        world_fail("%s %s is answered wrongly: %u %s", s->method, s->path, a->status, a->body);
    if (!interpose_hit())
        world_fail("%s %s fails, and no allocation has: %u %s", s->method, s->path, a->status,
                   a->body);
    return !w.recovering;
}

static bool step_ask(const struct step *s)
{
    struct http_peer *p = &w.calls[w.n_calls];
    struct answer a;
    if (!w.begun) {
        if (interpose_now_ms() < w.since_ms)
            return false;
        w.begun = true;
        if (call(s) == NULL)
            p->open = false;
        return false;
    }
    if (!answered(p, &a)) {
        if (interpose_now_ms() - w.since_ms >= PATIENCE_MS)
            world_fail("%s %s is never answered", s->method, s->path);
        return false;
    }
    bool good = evaluate(s, &a);
    http_close(p);
    if (good)
        return true;
    if (++w.repeats > REPEATS_MAX)
        world_fail("%s %s goes on failing: %u %s", s->method, s->path, a.status, a.body);
    w.begun = false;
    w.since_ms = interpose_now_ms() + REPEAT_MS;
    return false;
}

static bool gives_up(void)
{
    uint64_t waited_ms = interpose_now_ms() - w.since_ms;
    if (!w.recovering && interpose_hit() && waited_ms >= PATIENCE_MS)
        return true;
    if (waited_ms >= REST_MS)
        world_fail("it never comes to this");
    return false;
}

static bool step_await(const struct step *s)
{
    struct http_peer *p = &w.calls[w.n_calls];
    struct answer a;
    if (!w.begun) {
        w.begun = true;
        w.asked_ms = interpose_now_ms();
        if (call(s) == NULL)
            p->open = false;
        return false;
    }
    if (gives_up()) {
        http_close(p);
        return true;
    }
    if (p->open && !answered(p, &a))
        return false;
    if (p->open) {
        bool error = false;
        bool right = a.status != 0 && s->right(&w, s, &a, &error);
        http_close(p);
        if (right)
            return true;
    }
    w.begun = interpose_now_ms() - w.asked_ms < REPEAT_MS;
    return false;
}

static bool step_until(const struct step *s)
{
    return s->until(&w) || gives_up();
}

static bool step_done(const struct step *s)
{
    switch (s->type) {
    case STEP_END:
        return false;
    case STEP_ASK:
        return step_ask(s);
    case STEP_AWAIT:
        return step_await(s);
    case STEP_SEND:
        if (call(s) != NULL)
            w.n_calls++;
        return true;
    case STEP_CHANGE:
        s->change(&w);
        return true;
    case STEP_UNTIL:
        return step_until(s);
    case STEP_ARM:
        interpose_arm(&w.plan, &report->trace);
        return true;
    }
    return false;
}

/* Runs the scenario's steps, then the steps with memory available again, then the end. */
static bool steps_turn(void)
{
    bool moved = false;
    while (!w.stopping) {
        if (w.step->type != STEP_END) {
            if (!step_done(w.step))
                return moved;
            begin_step(w.step + 1);
            moved = true;
            continue;
        }
        if (w.recovering || w.mode == PLAN_FOR_EVER) {
            w.stopping = true;
            w.since_ms = interpose_now_ms();
            (void)kill(getpid(), SIGTERM);
            return true;
        }
        if (w.mode == PLAN_FOR_A_WHILE)
            interpose_disarm();
        w.recovering = true;
        begin_step(w.scenario->after);
    }
    return moved;
}

/* Shortens the wait to the next turn that the outside world needs. */
static void shorten(int *wait_ms)
{
    uint64_t now_ms = interpose_now_ms();
    uint64_t left = w.since_ms > now_ms ? w.since_ms - now_ms : REST_MS - (now_ms - w.since_ms);
    if (w.since_ms <= now_ms && now_ms - w.since_ms < PATIENCE_MS)
        left = PATIENCE_MS - (now_ms - w.since_ms);
    if (w.since_ms <= now_ms && now_ms - w.since_ms >= REST_MS)
        world_fail("it does not end");
    if (w.step->type == STEP_AWAIT)
        left = MIN_OF(left, (uint64_t)REPEAT_MS);
    if (*wait_ms < 0 || (uint64_t)*wait_ms > left)
        *wait_ms = (int)left;
}

static bool turn(int *wait_ms)
{
    bool moved = api_turn(&w.api);
    if (w.cache != NULL)
        cache_check(w.cache);
    if (w.budgets != NULL)
        budgets_check(w.budgets);
    if (!api_is_sound())
        world_fail("a card holds more than its size");
    for (size_t i = 0; i < WORLD_CALLS; i++) {
        if (w.calls[i].open && !w.calls[i].ended)
            moved = http_move(&w.calls[i]) || moved;
    }
    moved = steps_turn() || moved;
    shorten(wait_ms);
    return moved;
}

/* ---- a run ---- */

static void write_file(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void write_file(const char *path, const char *format, ...)
{
    FILE *f = fopen(path, "we");
    assert(f != NULL);
    va_list args;
    va_start(args, format);
    (void)vfprintf(f, format, args);
    va_end(args);
    int bad = fclose(f);
    assert(bad == 0);
}

static char *in_folder(const char *name)
{
    (void)snprintf(file_path, sizeof(file_path), "%s/%s", report->folder, name);
    return file_path;
}

static void write_files(const struct scenario *s)
{
    char cluster[160] = "";
    if (s->cluster != NULL) {
        write_file(in_folder("cluster.yaml"), "%s", s->cluster);
        (void)snprintf(cluster, sizeof(cluster), "cluster: %s\n", file_path);
    }
    write_file(in_folder("kubeconfig"),
               "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
               "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
               "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
               "users: [{name: u, user: {token: s3cret}}]\n",
               w.api.listener.port);
    write_file(in_folder("config.yaml"),
               "start-settle: 1s\nlist-page-size: 2\nleader-elect: %s\n%s",
               s->elects ? "true" : "false", cluster);
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void forget_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    const struct timespec now = {0};
    while (sigtimedwait(&set, NULL, &now) > 0)
        continue;
}

static int run_main(void)
{
    char config[128];
    char program[] = "cardpack";
    char flag[] = "--config";
    char port[] = "--port=0";
    (void)snprintf(config, sizeof(config), "%s", in_folder("config.yaml"));
    char *argv[] = {program, flag, config, port, NULL};
    /* Before the program first reads the clock and random numbers. */
    interpose_waits(turn, WAITS_MAX, hang);
    interpose_outside(false);
    int status = cardpack_main(4, argv);
    interpose_outside(true);
    interpose_waits(NULL, 0, NULL);
    return status;
}

/* The program ended without being told to: allowed only for lack of memory. */
static void evaluate_end(int status)
{
    struct stat log;
    int bad = fstat(output, &log);
    assert(bad == 0);
    if (w.stopping && status == EXIT_SUCCESS)
        return;
    if (w.stopping && w.mode == PLAN_FOR_EVER)
        return;
    if (!interpose_hit())
        world_fail("it ended with %d, and no allocation has failed", status);
    if (w.port != 0)
        world_fail("it ended with %d when it was up", status);
    if (status == EXIT_SUCCESS || log.st_size == 0)
        world_fail("it ended with %d and said %lld bytes", status, (long long)log.st_size);
}

/* Requests under way at the end: answered, refused, or their connection closed. */
static void evaluate_calls(void)
{
    const struct step *s = w.scenario->steps;
    size_t i = 0;
    for (; s->type != STEP_END; s++) {
        struct answer a;
        if (s->type != STEP_SEND || i >= w.n_calls)
            continue;
        (void)http_move(&w.calls[i]);
        if (!answered(&w.calls[i], &a))
            world_fail("%s %s was left alone", s->method, s->path);
        w.step = s;
        (void)evaluate(s, &a);
        i++;
    }
}

struct run_result world_run(const struct scenario *s, enum plan_mode mode, enum alloc_owner owner,
                            size_t nth)
{
    report->nth = nth;
    memset(&w, 0, sizeof(w));
    w.scenario = s;
    w.mode = mode;
    w.plan = (struct alloc_plan){.owner = owner,
                                 .first = mode == PLAN_NONE ? 0 : nth,
                                 .last = mode == PLAN_ONCE ? nth : SIZE_MAX};
    api_open(&w.api);
    if (s->setup != NULL)
        s->setup();
    write_files(s);
    forget_signals();
    int bad = ftruncate(output, 0);
    assert(bad == 0);
    size_t descriptors = open_descriptors();
    interpose_reset();
    ptrdiff_t live = interpose_live();
    begin_step(s->steps);
    if (s->steps->type == STEP_ARM) { /* before the program's first allocation */
        interpose_arm(&w.plan, &report->trace);
        begin_step(s->steps + 1);
    }
    int status = run_main();
    evaluate_end(status);
    evaluate_calls();
    struct run_result result = {.count = interpose_count(owner), .hit = interpose_hit()};
    interpose_disarm();
    if (interpose_live() != live)
        world_fail("%td of our blocks were not freed", interpose_live() - live);
    for (size_t i = 0; i < WORLD_CALLS; i++)
        http_close(&w.calls[i]);
    size_t left = open_descriptors();
    for (size_t i = 0; i < API_CALLS; i++)
        left -= w.api.calls[i].open;
    if (left != descriptors)
        world_fail("%zu descriptors were not closed", left - descriptors);
    api_close(&w.api);
    return result;
}

void world_start(struct world_report *r)
{
    const char *base = getenv("TMPDIR");
    report = r;
    (void)snprintf(report->folder, sizeof(report->folder), "%.40s/cardpack-alloc-XXXXXX",
                   base == NULL ? "/tmp" : base);
    const char *made = mkdtemp(report->folder);
    assert(made != NULL);
    output = open(in_folder("log"), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    assert(output >= 0);
    (void)snprintf(report->log, sizeof(report->log), "%s/log", report->folder);
    int fd = dup2(output, STDERR_FILENO);
    assert(fd == STDERR_FILENO);
    (void)setenv("KUBECONFIG", in_folder("kubeconfig"), 1);
    (void)setenv("LOG_LEVEL", "debug", 1);
    (void)unsetenv("PORT");
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    (void)unsetenv("ALL_PROXY");
}

void world_remove(const struct world_report *r)
{
    static const char *const names[] = {"log", "cluster.yaml", "kubeconfig", "config.yaml"};
    char path[128];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", r->folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(r->folder);
}
