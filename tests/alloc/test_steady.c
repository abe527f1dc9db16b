/*
 * How often the whole program allocates in steady state, when it is warm: for filter and prioritize
 * with names and answers of any length up to a maximum, for pods of sizes that it was asked about
 * before, on two kept connections, and for watch events of a pod that it knows. cardpack itself
 * never allocates, except to store other labels; libraries allocate as often as printed, and no
 * more than the limits here. See interpose.h for how the owner of an allocation is found.
 *
 * libmicrohttpd makes 4 allocations for each answer, and has no way without: the response, a
 * header's link, its name and its value. libcurl makes none for the bytes of a watch.
 */
#include "api.h"
#include "base/macro.h"
#include "base/str.h"
#include "interpose.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES       100
#define LARGE_PARTS 256
#define STRANGERS   350 /* names in a request that are not nodes */
#define PEERS       2
#define SIZES       60 /* of pods */
#define WAITS_MAX   1000000
#define PATIENCE_MS 100000
#define QUIET_MS    20

int cardpack_main(int argc, char *argv[]);

struct http_server;
uint16_t __real_http_server_port(const struct http_server *s);
uint16_t __wrap_http_server_port(const struct http_server *s);

struct phase {
    const char *what;
    bool (*move)(void);
    unsigned warm;      /* rounds before counting */
    unsigned rounds;    /* rounds that count */
    unsigned each;      /* requests or events per round */
    unsigned ours;      /* limit for each */
    unsigned libraries; /* limit for each */
    ptrdiff_t held;     /* bytes of cardpack's that a phase may add */
};

/* A question of a round, for the check of its answer. */
struct question {
    bool filter;
    unsigned known;
    unsigned strangers;
    unsigned first; /* the list begins with this one of its names */
};

static struct api api;
static struct http_peer peers[PEERS];
static struct question questions[PEERS];
static uint16_t port;
static const struct phase *phase;
static unsigned round_i;
static bool pending;
static uint64_t since_ms;
static size_t before[2];
static ptrdiff_t held_before;
static uint64_t chance = 88172645463325252U;
static bool all_good = true;
static bool ended;

static void fail(const char *why) __attribute__((noreturn));

static void fail(const char *why)
{
    (void)printf("Bail out! %s, in round %u of: %s\n", why, round_i, phase->what);
    (void)fflush(stdout);
    _exit(EXIT_FAILURE);
}

void api_fail(const char *file, int line, const char *why)
{
    (void)printf("# %s:%d\n", file, line);
    fail(why);
}

/* main calls it to log the port. */
uint16_t __wrap_http_server_port(const struct http_server *s)
{
    port = __real_http_server_port(s);
    return port;
}

static unsigned up_to(unsigned most)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance % (most + 1));
}

/* ---- requests ---- */

static size_t text_names(char *out, size_t room, const struct question *q)
{
    size_t n = 0;
    for (unsigned k = 0; k < q->known + q->strangers; k++) {
        unsigned i = (q->first + k) % (q->known + q->strangers);
        bool known = i < q->known;
        n += (size_t)snprintf(out + n, room - n, "%s\"%s-%u\"", k == 0 ? "" : ",",
                              known ? "node" : "nowhere", known ? i : i - q->known);
        assert(n < room);
    }
    return n;
}

/* While it warms up, the largest requests, of both kinds for each size of a pod, because cardpack
 * remembers verdicts and scores by size, with one list of names and with others, because it
 * remembers some lists, too; later any request. Some nodes have room for the pod. */
static void ask(struct http_peer *p, struct question *q)
{
    static char names[HTTP_PEER_BYTES / 2];
    bool largest = round_i < phase->warm;
    *q = (struct question){.filter = largest ? p == peers : up_to(1) == 0,
                           .known = largest ? NODES : 1 + up_to(NODES - 1),
                           .strangers = largest ? STRANGERS : up_to(STRANGERS),
                           .first = largest && round_i % 2 == 1 ? round_i : 0};
    int names_n = (int)text_names(names, sizeof(names), q);
    unsigned mem = 1 + (largest ? round_i / 2 : up_to(SIZES - 1));
    char pod[512];
    int pod_n =
        snprintf(pod, sizeof(pod),
                 "{\"metadata\":{\"name\":\"p-%u\",\"namespace\":\"default\",\"uid\":\"x-%u\"},"
                 "\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
                 "\"aliyun.com/gpu-mem\":\"%u\"}}}]}}",
                 round_i, round_i, mem);
    static const char tail[] = "]}";
    static const char head[] = "{\"Pod\":";
    static const char middle[] = ",\"Nodes\":null,\"NodeNames\":[";
    size_t n = sizeof(head) + sizeof(middle) + sizeof(tail) - 3 + (size_t)pod_n + (size_t)names_n;
    http_say(p,
             "POST /gpushare-scheduler/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n"
             "%s%s%s%s%s",
             q->filter ? "filter" : "prioritize", n, head, pod, middle, names, tail);
}

/* Written by hand: the sanitizer's strstr scans the whole text each time. */
static unsigned count(const char *in, const char *text)
{
    unsigned n = 0;
    size_t text_n = strlen(text);
    for (; *in != '\0'; in++)
        n += *in == *text && strncmp(in, text, text_n) == 0;
    return n;
}

/* Each name is in the answer; twice if its node can never be feasible. */
static void look(const struct question *q, const char *body)
{
    bool right = q->filter ? strstr(body, "\"Error\":\"\"") != NULL &&
                                 count(body, "\"node-") >= q->known &&
                                 count(body, "\"nowhere-") >= q->strangers
                           : count(body, "\"Host\":\"") == q->known + q->strangers;
    if (!right)
        fail("a wrong answer");
}

static bool move_requests(void)
{
    if (!pending) {
        for (size_t i = 0; i < PEERS; i++)
            ask(&peers[i], &questions[i]);
        pending = true;
        return true;
    }
    for (size_t i = 0; i < PEERS; i++) {
        size_t n = 0;
        if (peers[i].ended)
            fail("a connection was closed");
        if (http_body(&peers[i], &n) == NULL)
            return false;
    }
    for (size_t i = 0; i < PEERS; i++) {
        size_t n = 0;
        look(&questions[i], http_body(&peers[i], &n));
        http_next(&peers[i]);
    }
    pending = false;
    round_i++;
    return true;
}

/* A body of 4 MiB, nearly all of it in one annotation. */
static bool move_large(void)
{
    static const char head[] = "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"";
    static const char tail[] = "\"}}},\"Nodes\":null,\"NodeNames\":[\"node-0\"]}";
    static char filling[HTTP_PEER_BYTES / 4];
    static size_t left;
    struct http_peer *p = &peers[0];
    size_t n = 0;
    if (!pending) {
        memset(filling, 'x', sizeof(filling));
        left = LARGE_PARTS;
        http_say(p,
                 "POST /gpushare-scheduler/filter HTTP/1.1\r\nHost: x\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 sizeof(head) + sizeof(tail) - 2 + left * sizeof(filling), head);
        pending = true;
        return true;
    }
    if (left > 0 && p->n_out == 0) {
        http_say(p, "%.*s%s", (int)sizeof(filling), filling, --left == 0 ? tail : "");
        return true;
    }
    const char *body = http_body(p, &n);
    if (body == NULL)
        return false;
    if (strstr(body, "\"NodeNames\":[\"node-0\"]") == NULL)
        fail("a wrong answer");
    http_next(p);
    pending = false;
    round_i++;
    return true;
}

/* ---- events ---- */

/* Time advances when nothing else can happen: then the event has been processed. */
static bool move_event(void (*change)(void))
{
    if (!pending) {
        change();
        since_ms = interpose_now_ms();
        pending = true;
        return true;
    }
    if (interpose_now_ms() < since_ms + QUIET_MS)
        return false;
    pending = false;
    round_i++;
    return true;
}

static void same_again(void)
{
    api_put_pod("bound", 8, "node-0", 0);
}

static void other_label(void)
{
    api_label_pod("bound", round_i % 2 == 0 ? "blue" : "green-and-blue");
}

static bool move_same(void)
{
    return move_event(same_again);
}

static bool move_label(void)
{
    return move_event(other_label);
}

/* ---- time ---- */

static bool move_second(void)
{
    if (!pending) {
        since_ms = interpose_now_ms();
        pending = true;
        return true;
    }
    if (interpose_now_ms() < since_ms + 1000)
        return false;
    pending = false;
    round_i++;
    return true;
}

/* ---- the phases ---- */

static bool move_start(void)
{
    size_t n = 0;
    if (port == 0)
        return false;
    for (size_t i = 0; i < PEERS; i++) {
        if (!peers[i].open && !http_connect(&peers[i], port))
            fail("no connection");
    }
    if (!pending) {
        if (interpose_now_ms() < since_ms)
            return false;
        http_say(&peers[0], "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
        pending = true;
        return true;
    }
    if (http_body(&peers[0], &n) == NULL)
        return false;
    bool ready = strncmp(peers[0].in, "HTTP/1.1 200", 12) == 0;
    http_next(&peers[0]);
    pending = false;
    since_ms = interpose_now_ms() + QUIET_MS;
    round_i += ready;
    return true;
}

static const struct phase phases[] = {
    {"it is ready", move_start, 1, 0, 1, 0, 0, 0},
    /* The first look at the configuration's file reads it; later looks see that it is unchanged. */
    {"a second in which nothing happens", move_second, 10, 15, 1, 0, 0, 0},
    {"filter and prioritize", move_requests, 2 * SIZES, 300, PEERS, 0, 4, 0},
    {"an event that changes nothing", move_same, 10, 30, 1, 0, 0, 0},
    {"an event that changes a label", move_label, 10, 30, 1, 1, 0, 64}, /* the labels themselves */
    /* A buffer grows for it, twice as large each time, and is freed afterwards. */
    {"a body of 4 MiB", move_large, 0, 5, 1, 20, 4, 0},
};

static void judge(void)
{
    size_t n = (size_t)phase->rounds * phase->each;
    size_t ours = interpose_count(ALLOC_OURS) - before[ALLOC_OURS];
    size_t theirs = interpose_count(ALLOC_LIBRARIES) - before[ALLOC_LIBRARIES];
    ptrdiff_t held = interpose_held() - held_before;
    bool good = ours <= n * phase->ours && theirs <= n * phase->libraries && held <= phase->held;
    (void)printf("%s %d - %s: of %zu, allocations of ours %zu, of libraries %zu (%.2f each); held "
                 "%+td bytes\n",
                 good ? "ok" : "not ok", (int)(phase - phases), phase->what, n, ours, theirs,
                 n == 0 ? 0.0 : (double)theirs / (double)n, held);
    all_good = all_good && good;
}

static void begin_to_count(void)
{
    before[ALLOC_OURS] = interpose_count(ALLOC_OURS);
    before[ALLOC_LIBRARIES] = interpose_count(ALLOC_LIBRARIES);
    held_before = interpose_held();
}

static bool next_phase(void)
{
    if (phase->rounds > 0)
        judge();
    round_i = 0;
    since_ms = interpose_now_ms();
    begin_to_count();
    if (++phase < phases + COUNT_OF(phases))
        return true;
    phase--;
    ended = true;
    (void)kill(getpid(), SIGTERM);
    return true;
}

static bool phase_move(void)
{
    if (ended)
        return false;
    bool moved = phase->move();
    if (moved && !pending && round_i == phase->warm)
        begin_to_count();
    return round_i == phase->warm + phase->rounds ? next_phase() : moved;
}

static void hang(const char *why)
{
    fail(why);
}

static bool turn(int *wait_ms)
{
    bool moved = api_turn(&api);
    for (size_t i = 0; i < PEERS; i++) {
        if (peers[i].open && !peers[i].ended)
            moved = http_move(&peers[i]) || moved;
    }
    moved = phase_move() || moved;
    if (interpose_now_ms() > since_ms + PATIENCE_MS)
        fail("it does not come to this");
    /* The clock is about to jump; on a busy machine the kernel may still hold bytes back. */
    if (!moved)
        (void)poll(NULL, 0, 1);
    if (*wait_ms < 0 || *wait_ms > QUIET_MS)
        *wait_ms = QUIET_MS;
    return moved;
}

/* ---- a run ---- */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert(f != NULL);
    int bad = fputs(text, f) < 0 ? 1 : 0;
    bad |= fclose(f);
    assert(bad == 0);
}

static int run(const char *folder)
{
    static struct alloc_trace trace;
    const struct alloc_plan none = {.owner = ALLOC_OURS};
    char config[128];
    char kubeconfig[128];
    char text[512];
    char program[] = "cardpack";
    char flag[] = "--config";
    char any_port[] = "--port=0";
    char *argv[] = {program, flag, config, any_port, NULL};
    (void)snprintf(config, sizeof(config), "%s/config.yaml", folder);
    (void)snprintf(kubeconfig, sizeof(kubeconfig), "%s/kubeconfig", folder);
    (void)snprintf(text, sizeof(text),
                   "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                   "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                   "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
                   "users: [{name: u, user: {token: s3cret}}]\n",
                   api.listener.port);
    write_file(kubeconfig, text);
    write_file(config, "start-settle: 1s\nleader-elect: false\n");
    (void)setenv("KUBECONFIG", kubeconfig, 1);
    interpose_reset();
    since_ms = interpose_now_ms();
    interpose_arm(&none, &trace);
    interpose_waits(turn, WAITS_MAX, hang);
    interpose_outside(false);
    int status = cardpack_main(4, argv);
    interpose_outside(true);
    interpose_waits(NULL, 0, NULL);
    interpose_disarm();
    (void)unlink(config);
    (void)unlink(kubeconfig);
    return status;
}

int main(void)
{
    const char *base = getenv("TMPDIR");
    char folder[64];
    char name[32];
    (void)unsetenv("PORT");
    (void)unsetenv("LOG_LEVEL");
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    (void)unsetenv("ALL_PROXY");
    (void)printf("1..%zu\n", COUNT_OF(phases));
    (void)snprintf(folder, sizeof(folder), "%.30s/cardpack-steady-XXXXXX",
                   base == NULL ? "/tmp" : base);
    const char *made = mkdtemp(folder);
    assert(made != NULL);
    phase = phases;
    api_open(&api);
    for (unsigned i = 0; i < NODES; i++) {
        (void)snprintf(name, sizeof(name), "node-%u", i);
        api_put_node(name, 16 + (int)(i % 5) * 16, 2);
    }
    same_again();
    int status = run(folder);
    (void)rmdir(folder);
    for (size_t i = 0; i < PEERS; i++)
        http_close(&peers[i]);
    api_close(&api);
    (void)printf("%s %zu - it ends well\n", status == EXIT_SUCCESS ? "ok" : "not ok",
                 COUNT_OF(phases));
    return all_good && ended && status == EXIT_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
