/*
 * The program kubectl-cardpack: runs one command and exits. kubectl finds the plugin in PATH by
 * this name, and its completion by the name kubectl_complete-cardpack, which is the same program.
 */
#include "base/file.h"
#include "base/log.h"
#include "core/dialect/dialect.h"
#include "kubectl/ask.h"
#include "kubectl/card_pods.h"
#include "kubectl/complete.h"
#include "kubectl/doctor.h"
#include "kubectl/limit.h"
#include "kubectl/names.h"
#include "kubectl/say.h"
#include "kubectl/show.h"
#include "report/table.h"
#include "json/jprint.h"
#include "json/jwrite.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STANDARD_INPUT STR("/dev/stdin")

#define STATUS_USAGE   2
#define STATUS_NO_ROOM 3

struct program {
    struct kubectl_args args;
    struct kubectl_client client;
    struct arena arena;
    struct buf out;
    struct str answer; /* JSON; for watch, to see a change */
    struct timer pause;
    bool opened;
    bool no_room;
    bool ill; /* doctor has found something that is wrong */
};

static bool main_is_colored(const struct kubectl_args *a)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (a->color != KUBECTL_COLOR_AUTO)
        return a->color == KUBECTL_COLOR_ALWAYS;
    if ((no_color != NULL && no_color[0] != '\0') || (term != NULL && strcmp(term, "dumb") == 0))
        return false;
    return isatty(STDOUT_FILENO) == 1;
}

static enum errc main_open_client(struct program *p, struct err *e)
{
    if (p->opened)
        return OK;
    p->opened = true;
    return kubectl_client_open(&p->client, &p->args, e);
}

static void main_close_client(struct program *p)
{
    if (p->opened)
        kubectl_client_close(&p->client);
    p->opened = false;
}

static enum errc main_read_pod(struct program *p, struct kubectl_pod *ret, struct err *e)
{
    struct buf text;
    struct str path = p->args.filename;
    struct str namespace = p->args.namespace;
    bool standard = str_eq(path, STR("-"));
    buf_init(&text, LIMIT_OBJECT_BYTES);
    enum errc code = file_read(standard ? STANDARD_INPUT : path, &text, e);
    if (code == OK)
        code = kubectl_pod_read(buf_str(&text), path, namespace, &p->arena, ret, e);
    if (code == OK && ret->namespace.n == 0) {
        code = kubectl_client_namespace(&p->client, &p->arena, &namespace, e);
        if (code == OK)
            code = kubectl_pod_read(buf_str(&text), path, namespace, &p->arena, ret, e);
    }
    buf_done(&text);
    return code;
}

static struct kubectl_look main_look(const struct program *p)
{
    return (struct kubectl_look){.wide = p->args.output == KUBECTL_WIDE,
                                 .names = p->args.output == KUBECTL_NAME,
                                 .sort = p->args.sort,
                                 .gpushare = p->args.output == KUBECTL_GPUSHARE,
                                 .heads = !p->args.no_headers,
                                 .color = main_is_colored(&p->args)};
}

static enum errc main_show_table(struct program *p, struct str answer, struct err *e)
{
    struct kubectl_look look = main_look(p);
    enum kubectl_command c = p->args.command;
    if (c == KUBECTL_TOP)
        return kubectl_show_top(answer, look, &p->arena, &p->out, e);
    if (c == KUBECTL_CARDS)
        return kubectl_show_cards(answer, look, &p->arena, &p->out, e);
    if (c == KUBECTL_EXPLAIN)
        return kubectl_show_explain(answer, look, &p->arena, &p->out, e);
    return kubectl_show_fit(answer, look, &p->arena, &p->out, e);
}

static enum errc main_show(struct program *p, struct str answer, struct err *e)
{
    if (p->args.output == KUBECTL_JSON)
        return jprint_json(answer, &p->arena, &p->out, e);
    if (p->args.output == KUBECTL_YAML)
        return jprint_yaml(answer, &p->arena, &p->out, e);
    return main_show_table(p, answer, e);
}

/* The answer's result for the exit status: no such node, no room. */
static enum errc main_read_result(struct program *p, struct str answer, struct err *e)
{
    struct str error = STR_NULL;
    bool fits = true;
    enum errc code;
    if (p->args.command == KUBECTL_EXPLAIN || p->args.command == KUBECTL_FIT) {
        code = kubectl_answer_fits(answer, p->args.command, &p->arena, &fits, e);
        p->no_room = !fits;
        return code;
    }
    code = kubectl_answer_error(answer, &p->arena, &error, e);
    return code == OK && error.n > 0 ? err_set(e, ERR_NOTFOUND, "%.*s", STR_ARG(error)) : code;
}

static enum errc main_ask(struct program *p, struct err *e)
{
    const struct kubectl_args *a = &p->args;
    struct kubectl_pod pod = {.replicas = 0};
    struct str answer = STR_NULL;
    struct kubectl_question q = {.command = a->command};
    enum errc code = main_open_client(p, e);
    if (code == OK && a->filename.n > 0)
        code = main_read_pod(p, &pod, e);
    if (code == OK && a->command == KUBECTL_EXPLAIN && a->subject.n > 0)
        code = kubectl_client_namespace(&p->client, &p->arena, &q.namespace, e);
    if (code != OK)
        return code;
    q.pod = a->filename.n > 0 ? &pod : NULL;
    q.node = a->command == KUBECTL_CARDS ? a->subject : STR_NULL;
    q.name = a->command == KUBECTL_EXPLAIN ? a->subject : STR_NULL;
    q.replicas = a->replicas > 0 ? a->replicas : pod.replicas;
    code = kubectl_ask(&p->client, &q, &p->arena, &answer, e);
    p->answer = answer;
    if (code == OK)
        code = main_read_result(p, answer, e);
    return code == OK ? main_show(p, answer, e) : code;
}

static enum errc main_show_pods(struct program *p, const struct card_pods *pods, struct err *e)
{
    struct buf json;
    bool is_table = p->args.output != KUBECTL_JSON && p->args.output != KUBECTL_YAML;
    buf_init(&json, LIMIT_KUBECTL_BYTES);
    kubectl_pods_write(pods, &json);
    p->answer = arena_keep(&p->arena, &json);
    if (p->answer.p == NULL)
        return err_set(e, arena_fault(&p->arena), "there are too many pods");
    if (is_table)
        return kubectl_pods_show(pods, main_look(p), (uint32_t)time(NULL), &p->arena, &p->out, e);
    return main_show(p, p->answer, e);
}

/* Asks kubectl for the context's namespace once, also with --watch. */
static enum errc main_choose_namespace(struct program *p, struct err *e)
{
    static char kept[256];
    struct str namespace;
    if (p->args.all_namespaces || p->args.namespace.n > 0)
        return OK;
    enum errc code = kubectl_client_namespace(&p->client, &p->arena, &namespace, e);
    if (code == OK && namespace.n > sizeof(kept))
        code = err_set(e, ERR_LIMIT, "the context's namespace is too long");
    if (code != OK)
        return code;
    memcpy(kept, namespace.p, namespace.n);
    p->args.namespace = (struct str){kept, namespace.n};
    return OK;
}

static enum errc main_list_pods(struct program *p, struct err *e)
{
    const struct kubectl_args *a = &p->args;
    struct card_pods pods;
    enum errc code = main_open_client(p, e);
    if (code == OK)
        code = main_choose_namespace(p, e);
    struct str namespace = a->all_namespaces ? STR_NULL : a->namespace;
    if (code == OK)
        code = kubectl_pods_read(&p->client, namespace, a->selector, &p->arena, &pods, e);
    if (code == OK && a->output == KUBECTL_WIDE)
        code = kubectl_pods_measure(&p->client, &pods, e);
    if (code == OK)
        code = kubectl_pods_sort(&pods, a->sort, &p->arena, e);
    if (code != OK)
        return code;
    if (pods.n == 0 && namespace.p != NULL)
        kubectl_say_once("no pod in namespace %.*s uses cards or asks for them",
                         STR_ARG(namespace));
    else if (pods.n == 0)
        kubectl_say_once("no pod uses cards or asks for them");
    return main_show_pods(p, &pods, e);
}

static enum errc main_show_findings(struct program *p, const struct findings *f, struct err *e)
{
    struct buf json;
    p->ill = f->counts[FINDING_FAIL] > 0;
    if (p->args.output != KUBECTL_JSON && p->args.output != KUBECTL_YAML)
        return kubectl_doctor_show(f, main_look(p), &p->out, e);
    buf_init(&json, LIMIT_KUBECTL_BYTES);
    kubectl_doctor_write(f, &json);
    enum errc code = buf_failed(&json) ? err_set(e, buf_fault(&json), "there are too many findings")
                                       : main_show(p, buf_str(&json), e);
    buf_done(&json);
    return code;
}

/* With --daemon-url there are two servers: the API server, and the daemon. */
static enum errc main_check_cluster(struct program *p, struct err *e)
{
    struct kubectl_args far = p->args;
    struct kubectl_client daemon;
    struct findings f = {.arena = &p->arena};
    bool apart = p->args.daemon_url.n > 0;
    far.server = STR_NULL;
    p->args.daemon_url = STR_NULL;
    enum errc code = main_open_client(p, e);
    struct kubectl_client *called = p->args.way == KUBECTL_DIRECT ? NULL : &p->client;
    if (code == OK && apart) {
        code = kubectl_client_open(&daemon, &far, e);
        called = &daemon;
    }
    if (code == OK)
        code = kubectl_doctor(&p->client, called, &f, e);
    if (called == &daemon)
        kubectl_client_close(&daemon);
    return code == OK ? main_show_findings(p, &f, e) : code;
}

static void main_write_version(struct str daemon, struct buf *json)
{
    struct jwrite w;
    jwrite_init(&w, json);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("client"), STR(CARDPACK_VERSION));
    jwrite_str_at(&w, STR("daemon"), daemon);
    jwrite_object_end(&w);
}

/* Prints the plugin's and the daemon's version. Reports an unavailable daemon; it is no failure. */
static enum errc main_tell_version(struct program *p, struct err *e)
{
    struct kubectl_question q = {.command = KUBECTL_VERSION};
    struct str daemon = STR_NULL;
    struct buf json;
    struct err why = ERR_INIT;
    enum errc code = p->args.way == KUBECTL_DIRECT ? OK : main_open_client(p, &why);
    if (code == OK && p->args.way != KUBECTL_DIRECT)
        code = kubectl_ask(&p->client, &q, &p->arena, &daemon, &why);
    if (code != OK)
        kubectl_say("the daemon's version is not known: %s", why.text);
    daemon = daemon.p == NULL ? STR_NULL : text_printable(str_head(daemon, 64), &p->arena);
    if (p->args.output == KUBECTL_TABLE) {
        buf_put(&p->out, STR("kubectl-cardpack " CARDPACK_VERSION "\n"));
        if (daemon.n > 0)
            buf_printf(&p->out, "cardpack %.*s\n", STR_ARG(daemon));
        return OK;
    }
    buf_init(&json, LIMIT_FILE_BYTES);
    main_write_version(daemon, &json);
    code = main_show(p, buf_str(&json), e);
    buf_done(&json);
    return code;
}

static enum errc main_tell_help(struct program *p)
{
    enum kubectl_command c = KUBECTL_HELP;
    (void)kubectl_verb_find(p->args.subject, &c);
    kubectl_usage(&p->out, p->args.subject.n > 0 ? c : KUBECTL_HELP);
    return OK;
}

static uint64_t main_now_ms(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Offers completions. Names that can't be found, or not in time, are left out without an error. */
static void main_complete(struct program *p)
{
    struct kubectl_wish wish;
    struct err unsaid = ERR_INIT;
    uint64_t began = main_now_ms();
    kubectl_complete(p->args.rest, p->args.n_rest, &wish, &p->out);
    if (wish.names == KUBECTL_NO_NAMES)
        return;
    p->args = wish.args;
    p->args.command = KUBECTL_COMPLETE;
    enum errc code = main_open_client(p, &unsaid);
    uint64_t took = main_now_ms() - began;
    if (code == OK && took < LIMIT_NAMES_MS)
        kubectl_names(&p->client, &wish, LIMIT_NAMES_MS - took, &p->arena, &p->out);
    kubectl_complete_end(&p->out);
}

static enum errc main_answer_once(struct program *p, struct err *e)
{
    return p->args.command == KUBECTL_PODS ? main_list_pods(p, e) : main_ask(p, e);
}

/* Text that did not fit is missing from the output, so nothing of it may be printed. */
static enum errc main_check_room(const struct program *p, enum errc code, struct err *e)
{
    bool lacks = arena_failed(&p->arena) || buf_failed(&p->out);
    return code == OK && lacks
               ? err_set(e, ERR_NOMEM, "what is to be shown does not fit into memory")
               : code;
}

/* ---- watch ---- */

static void main_on_pause(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct program, pause)->client.loop);
}

/* Whether the reader of a pipe has ended. */
static bool main_is_unread(void)
{
    struct pollfd f = {.fd = STDOUT_FILENO};
    return poll(&f, 1, 0) == 1 && (f.revents & (POLLERR | POLLHUP)) != 0;
}

/* A terminal shows one answer at a time; in a pipe one follows the other. */
static enum errc main_print_next(const struct program *p, bool is_terminal, bool is_first,
                                 struct err *e)
{
    const char *between = is_terminal                      ? "\033[H\033[2J"
                          : is_first                       ? ""
                          : p->args.output == KUBECTL_YAML ? "---\n"
                                                           : "\n";
    if (fputs(between, stdout) >= 0 && file_print(&p->out))
        return OK;
    return err_set(e, ERR_UNAVAILABLE, "standard output: it can't be written");
}

static enum errc main_pause(struct program *p, struct err *e)
{
    timer_arm(p->client.loop, &p->pause, p->args.interval_ms);
    enum errc code = loop_run(p->client.loop, e);
    timer_cancel(&p->pause);
    return code;
}

/*
 * Prints the answer, and prints it again when it has changed, until an error, a signal or the end
 * of its reader. On a terminal it is printed each time, for the ages in it.
 */
static enum errc main_watch(struct program *p, struct err *e)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    bool is_first = true;
    struct buf last;
    enum errc code = OK;
    buf_init(&last, LIMIT_KUBECTL_BYTES);
    while (code == OK) {
        code = main_check_room(p, main_answer_once(p, e), e);
        if (code != OK || main_is_unread())
            break;
        if (is_terminal || is_first || !str_eq(buf_str(&last), p->answer))
            code = main_print_next(p, is_terminal, is_first, e);
        buf_clear(&last, SIZE_MAX);
        buf_put(&last, p->answer);
        is_first = false;
        buf_clear(&p->out, SIZE_MAX);
        arena_reset(&p->arena);
        if (code == OK)
            code = main_pause(p, e);
    }
    buf_clear(&p->out, SIZE_MAX); /* it is printed already */
    buf_done(&last);
    return main_is_unread() ? OK : code;
}

static enum errc main_run(struct program *p, struct err *e)
{
    switch (p->args.command) {
    case KUBECTL_HELP:
        return main_tell_help(p);
    case KUBECTL_VERSION:
        return main_tell_version(p, e);
    case KUBECTL_DOCTOR:
        return main_check_cluster(p, e);
    case KUBECTL_COMPLETION:
        return kubectl_completion(p->args.subject, &p->out, e);
    case KUBECTL_COMPLETE:
        main_complete(p);
        return OK;
    case KUBECTL_PODS:
    case KUBECTL_TOP:
    case KUBECTL_CARDS:
    case KUBECTL_EXPLAIN:
    case KUBECTL_FIT:
    case KUBECTL_COMMANDS:
        break;
    }
    return p->args.watch ? main_watch(p, e) : main_answer_once(p, e);
}

/* Restores SIGPIPE: if the reader of a pipe exits, this program ends as others do. */
static int main_print(const struct buf *out)
{
    (void)signal(SIGPIPE, SIG_DFL);
    if (file_print(out))
        return EXIT_SUCCESS;
    kubectl_say("standard output: it can't be written");
    return EXIT_FAILURE;
}

static int main_answer(struct program *p)
{
    struct err e = ERR_INIT;
    arena_init(&p->arena, LIMIT_KUBECTL_BYTES);
    buf_init(&p->out, LIMIT_KUBECTL_BYTES);
    enum errc code = main_run(p, &e);
    int status = EXIT_SUCCESS;
    /* Before the output: print may be ended by SIGPIPE. */
    main_close_client(p);
    code = main_check_room(p, code, &e);
    if (code != OK) {
        kubectl_say("%s", e.text);
        status = p->args.command == KUBECTL_COMPLETION ? STATUS_USAGE : EXIT_FAILURE;
    } else if (p->out.n > 0) {
        status = main_print(&p->out);
    }
    if (status == EXIT_SUCCESS && p->no_room)
        status = STATUS_NO_ROOM;
    if (status == EXIT_SUCCESS && p->ill)
        status = EXIT_FAILURE;
    buf_done(&p->out);
    arena_done(&p->arena);
    return status;
}

static bool main_is_completer(const char *argv0)
{
    return str_ends(str_of(argv0), STR("kubectl_complete-cardpack"));
}

int main(int argc, char *argv[])
{
    struct program p = {.pause = {.fire = main_on_pause}};
    struct err e = ERR_INIT;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (argc > 0 && main_is_completer(argv[0])) {
        p.args = (struct kubectl_args){
            .command = KUBECTL_COMPLETE, .rest = argv + 1, .n_rest = argc - 1};
    } else if (kubectl_args_parse(argc, argv, &p.args, &e) != OK) {
        kubectl_say("%s", e.text);
        return STATUS_USAGE;
    }
    dialects_use(p.args.dialects == 0 ? DIALECTS_ALL : p.args.dialects);
    return main_answer(&p);
}
