/*
 * Every allocation of kubectl-cardpack fails, once and from then on, in each of its commands with a
 * real daemon. The output must equal the usual one, or be empty with an error text and an error
 * status: no part of a table, no crash, no leak.
 *
 * test_kubectl_alloc CARDPACK ours|libraries [EVERY]
 *
 * The program's main runs in a new child each time. The parent has run every command once before,
 * so the libraries' first use is over. Prints TAP on standard output.
 */
#include "base/macro.h"
#include "base/str.h"
#include "interpose.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX  65536
#define NTH_MAX   20000
#define WORDS_MAX 12
#define MISSES    5
#define HUNG_S    60

int kubectl_main(int argc, char *argv[]);

static const char cluster[] =
    "apiVersion: v1\nkind: List\nitems:\n"
    "- kind: Node\n  metadata: {name: n1}\n  status:\n"
    "    capacity: &c {aliyun.com/gpu-mem: 32, aliyun.com/gpu-count: 2}\n    allocatable: *c\n"
    "- kind: Pod\n  metadata: {name: a, namespace: default, uid: uid-a,"
    " annotations: {ALIYUN_COM_GPU_MEM_IDX: \"1\"}}\n"
    "  spec:\n    nodeName: n1\n    containers:\n    - name: main\n"
    "      resources: {limits: {aliyun.com/gpu-mem: 5}}\n"
    "- kind: Pod\n  metadata: {name: b, namespace: default, uid: uid-b}\n"
    "  spec:\n    containers:\n    - name: main\n"
    "      resources: {limits: {aliyun.com/gpu-mem: 17}}\n";

static const char pod[] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
                          "spec:\n  replicas: 3\n  template:\n    spec:\n      containers:\n"
                          "      - name: main\n"
                          "        resources: {limits: {aliyun.com/gpu-mem: 4}}\n";

/* URL and FILE are replaced by values that are known only at run time. */
static const struct {
    const char *line;
    int status;
} commands[] = {
    {"k top --daemon-url URL", 0},
    {"k top -o wide --daemon-url URL", 0},
    {"k top -o name --sort-by used --daemon-url URL", 0},
    {"k cards --daemon-url URL --color always --sort-by free", 0},
    {"k cards n1 -o yaml --daemon-url URL", 0},
    {"k cards nobody --daemon-url URL", 1},
    {"k explain b --daemon-url URL", 3},
    {"k explain pod/a --daemon-url URL", 0},
    {"k explain -f FILE --daemon-url URL", 0},
    {"k explain -f FILE -o json --daemon-url URL", 0},
    {"k fit -f FILE --replicas 4 --daemon-url URL", 0},
    {"k fit -f FILE --replicas 400 --daemon-url URL", 3},
    {"k version --daemon-url URL", 0},
    {"k help fit", 0},
    {"k completion bash", 0},
};

struct outcome {
    int status; /* of waitpid */
    char out[TEXT_MAX];
    char err[TEXT_MAX];
};

/* Memory shared with the child. */
struct report {
    bool hit;
    ptrdiff_t left; /* cardpack's blocks that are not freed */
    struct alloc_trace trace;
};

static struct report *report;
static FILE *tap;
static int output[2]; /* the program's standard output and error */
static char url[64];
static char folder[] = "/tmp/cardpack-kubectl-alloc.XXXXXX";
static char file[64];

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert(f != NULL);
    (void)fputs(text, f);
    int bad = fclose(f);
    assert(bad == 0);
}

/* ---- the daemon ---- */

static pid_t start_daemon(const char *cardpack)
{
    char path[64];
    char text[TEXT_MAX];
    int log[2];
    (void)snprintf(path, sizeof(path), "%s/cluster.yaml", folder);
    put(path, cluster);
    int bad = pipe2(log, O_CLOEXEC);
    assert(bad == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(log[1], STDERR_FILENO);
        (void)execl(cardpack, cardpack, "--cluster", path, "--port", "0", "--log-format", "json",
                    (char *)NULL);
        _exit(127);
    }
    (void)close(log[1]);
    size_t n = 0;
    const char *port = NULL;
    const char *listens = NULL;
    while (port == NULL || strchr(port, '}') == NULL) {
        ssize_t more = read(log[0], text + n, sizeof(text) - 1 - n);
        if (more <= 0)
            return -1;
        n += (size_t)more;
        text[n] = '\0';
        listens = strstr(text, "\"listening\"");
        port = listens == NULL ? NULL : strstr(listens, "\"port\":");
    }
    uint64_t number = 0;
    struct str digits = str_of(port + 7);
    digits.n = strspn(digits.p, "0123456789");
    bool valid = str_to_u64(digits, UINT16_MAX, &number);
    assert(valid);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)number);
    return child; /* the pipe stays open: the daemon logs to it */
}

/* ---- a run ---- */

static int run_main(const char *line)
{
    static char bytes[256];
    char *argv[WORDS_MAX + 1] = {NULL};
    int argc = 0;
    (void)snprintf(bytes, sizeof(bytes), "%s", line);
    for (char *rest = bytes, *word = strsep(&rest, " "); word != NULL; word = strsep(&rest, " ")) {
        assert(argc < WORDS_MAX);
        argv[argc++] = strcmp(word, "URL") == 0 ? url : strcmp(word, "FILE") == 0 ? file : word;
    }
    interpose_outside(false);
    int status = kubectl_main(argc, argv);
    interpose_outside(true);
    return status;
}

static void read_back(int fd, char text[TEXT_MAX])
{
    ssize_t n = pread(fd, text, TEXT_MAX - 1, 0);
    assert(n >= 0 && n < TEXT_MAX - 1);
    text[n] = '\0';
}

static void run(const char *line, const struct alloc_plan *plan, struct outcome *ret)
{
    for (size_t i = 0; i < COUNT_OF(output); i++) {
        int bad = ftruncate(output[i], 0);
        assert(bad == 0);
        (void)lseek(output[i], 0, SEEK_SET);
    }
    *report = (struct report){.hit = false};
    (void)fflush(tap);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        (void)alarm(HUNG_S);
        ptrdiff_t live = interpose_live();
        interpose_arm(plan, &report->trace);
        int status = run_main(line);
        report->hit = interpose_hit();
        interpose_disarm();
        report->left = interpose_live() - live;
        exit(status); /* LeakSanitizer looks for leaks here */
    }
    pid_t ended = waitpid(child, &ret->status, 0);
    assert(ended == child);
    read_back(output[0], ret->out);
    read_back(output[1], ret->err);
}

/* What is wrong with the outcome; NULL: nothing. */
static const char *evaluate(const struct outcome *o, const struct outcome *right, bool is_version)
{
    if (!WIFEXITED(o->status))
        return "it was ended by a signal";
    if (report->left != 0)
        return "not all blocks were freed";
    int status = WEXITSTATUS(o->status);
    if (status == WEXITSTATUS(right->status) && strcmp(o->out, right->out) == 0)
        return status == 1 && o->err[0] == '\0' ? "it fails without a word" : NULL;
    /* The output says that the daemon's version is not known; the rest is right. */
    if (is_version && status == 0 && strstr(o->err, "is not known") != NULL)
        return strcmp(o->out, "kubectl-cardpack " CARDPACK_VERSION "\n") == 0 ? NULL
                                                                              : "it is wrong";
    if (!report->hit)
        return "it differs, and no allocation has failed";
    if (status != 1 && status != 2)
        return "it says that all is well, and prints something else";
    if (o->out[0] != '\0')
        return "it fails, and prints a part";
    return strncmp(o->err, "kubectl cardpack: ", 18) == 0 ? NULL : "it fails without a word";
}

static bool climb(const char *line, const struct outcome *right, enum alloc_owner owner, bool once,
                  size_t every, size_t *ret_nth)
{
    static struct outcome o;
    unsigned missed = 0;
    size_t nth = 1;
    for (; missed < MISSES && nth < NTH_MAX; nth += every) {
        struct alloc_plan plan = {.owner = owner, .first = nth, .last = once ? nth : SIZE_MAX};
        run(line, &plan, &o);
        const char *wrong = evaluate(&o, right, strstr(line, " version ") != NULL);
        missed = report->hit ? 0 : missed + 1;
        if (wrong == NULL)
            continue;
        (void)fprintf(tap, "# allocation %zu: %s (status 0x%x)\n# out: %.400s\n# err: %.2000s\n",
                      nth, wrong, (unsigned)o.status, o.out, o.err);
        return false;
    }
    *ret_nth = nth;
    return true;
}

static bool check(size_t i, enum alloc_owner owner, size_t every)
{
    static struct outcome right;
    const char *line = commands[i].line;
    size_t nth[2] = {0};
    run(line, &(struct alloc_plan){.first = 0}, &right);
    bool good = WIFEXITED(right.status) && WEXITSTATUS(right.status) == commands[i].status &&
                (right.out[0] != '\0' || commands[i].status == 1) && report->left == 0;
    if (!good)
        (void)fprintf(tap, "# status 0x%x\n# out: %.400s\n# err: %.2000s\n", (unsigned)right.status,
                      right.out, right.err);
    good = good && climb(line, &right, owner, true, every, &nth[0]);
    good = good && climb(line, &right, owner, false, every, &nth[1]);
    (void)fprintf(tap, "%s %zu - %s (%zu, %zu)\n", good ? "ok" : "not ok", i + 1, line, nth[0],
                  nth[1]);
    (void)fflush(tap);
    return good;
}

static void prepare(void)
{
    int own = dup(STDOUT_FILENO);
    tap = fdopen(own, "w");
    assert(tap != NULL);
    for (int i = 0; i < 2; i++) {
        output[i] = memfd_create("output", MFD_CLOEXEC);
        assert(output[i] >= 0);
        int fd = dup2(output[i], STDOUT_FILENO + i);
        assert(fd == STDOUT_FILENO + i);
    }
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(report != MAP_FAILED);
    const char *made = mkdtemp(folder);
    assert(made != NULL);
    (void)snprintf(file, sizeof(file), "%s/pod.yaml", folder);
    put(file, pod);
    static const char *const names[] = {"KUBECONFIG", "http_proxy", "all_proxy", "ALL_PROXY",
                                        "KUBERNETES_SERVICE_HOST"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)unsetenv(names[i]);
}

static void clean(pid_t daemon)
{
    char path[64];
    (void)kill(daemon, SIGKILL);
    (void)waitpid(daemon, NULL, 0);
    (void)snprintf(path, sizeof(path), "%s/cluster.yaml", folder);
    (void)unlink(path);
    (void)unlink(file);
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    uint64_t every = 1;
    bool all = true;
    if (argc < 3 || (argc > 3 && (!str_to_u64(str_of(argv[3]), NTH_MAX, &every) || every == 0))) {
        (void)printf("Bail out! usage: %s CARDPACK ours|libraries [EVERY]\n", argv[0]);
        return EXIT_FAILURE;
    }
    enum alloc_owner owner = strcmp(argv[2], "ours") == 0 ? ALLOC_OURS : ALLOC_LIBRARIES;
    prepare();
    pid_t daemon = start_daemon(argv[1]);
    if (daemon < 0) {
        (void)fprintf(tap, "Bail out! no daemon\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        (void)run_main(commands[i].line);
    (void)fprintf(tap, "1..%zu\n", COUNT_OF(commands));
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        all = check(i, owner, every) && all;
    clean(daemon);
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
