/*
 * The program kubectl-cardpack: runs one command and exits. kubectl finds the plugin in PATH by
 * this name, and its completion by the name kubectl_complete-cardpack, which is the same program.
 */
#include "base/file.h"
#include "base/log.h"
#include "codec/jprint.h"
#include "codec/jwrite.h"
#include "kubectl/ask.h"
#include "kubectl/complete.h"
#include "kubectl/config.h"
#include "kubectl/limit.h"
#include "kubectl/login.h"
#include "kubectl/names.h"
#include "kubectl/show.h"
#include "report/table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SERVICE_ACCOUNT STR("/var/run/secrets/kubernetes.io/serviceaccount")
#define STANDARD_INPUT  STR("/dev/stdin")

#define STATUS_USAGE   2
#define STATUS_NO_ROOM 3

struct program {
    struct kubectl_args args;
    struct kubectl_client client;
    struct arena arena;
    struct buf out;
    struct str hint; /* how to install a missing credential plugin */
    bool opened;
    bool no_room;
};

static bool is_colored(const struct kubectl_args *a)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (a->color != KUBECTL_COLOR_AUTO)
        return a->color == KUBECTL_COLOR_ALWAYS;
    if ((no_color != NULL && no_color[0] != '\0') || (term != NULL && strcmp(term, "dumb") == 0))
        return false;
    return isatty(STDOUT_FILENO) == 1;
}

static enum errc open_client(struct program *p, struct err *e)
{
    struct kube_api_settings settings;
    struct kubectl_env env = {.kubeconfig = str_of(getenv("KUBECONFIG")),
                              .home = str_of(getenv("HOME")),
                              .service_host = str_of(getenv("KUBERNETES_SERVICE_HOST")),
                              .service_port = str_of(getenv("KUBERNETES_SERVICE_PORT")),
                              .service_account = SERVICE_ACCOUNT};
    struct kubectl_login login = {
        .environment = environ, .path = str_of(getenv("PATH")), .timeout_ms = LIMIT_LOGIN_MS};
    if (str_eq(p->args.filename, STR("-")))
        login.input_taken = "what -f - reads";
    if (p->args.command == KUBECTL_COMPLETE) { /* at the prompt of a shell */
        login.input_taken = "a shell's";
        login.quiet = true;
        login.timeout_ms = LIMIT_NAMES_MS;
    }
    enum errc code = kubectl_config_find(&p->args, &env, &p->arena, &settings, e);
    p->opened = true;
    if (code == OK)
        code = kubectl_login(&login, &p->arena, &settings, &p->hint, e);
    if (code == OK)
        code = kubectl_client_open(&p->client, &p->args, &settings, e);
    return code;
}

/* Prints the kubeconfig's hint line by line, because each line gets a prefix. */
static void advise(const struct program *p, const struct err *e)
{
    for (struct str line, rest = p->hint; rest.n > 0;) {
        (void)str_cut(rest, '\n', &line, &rest);
        if (str_trim(line).n > 0)
            kubectl_say("%.*s", STR_ARG(line));
    }
    if (strstr(e->text, "auth provider") != NULL)
        kubectl_say("kubectl has none either since 1.26: let the provider's program write the "
                    "kubeconfig again, with \"exec\"");
}

static enum errc read_pod(struct program *p, struct kubectl_pod *ret, struct err *e)
{
    struct buf text;
    struct str path = p->args.filename;
    bool standard = str_eq(path, STR("-"));
    buf_init(&text, LIMIT_OBJECT_BYTES);
    enum errc code = file_read(standard ? STANDARD_INPUT : path, &text, e);
    if (code == OK)
        code = kubectl_pod_read(buf_str(&text), path, p->args.namespace,
                                kubectl_client_namespace(&p->client), &p->arena, ret, e);
    buf_done(&text);
    return code;
}

static enum errc show_table(struct program *p, struct str answer, struct err *e)
{
    struct kubectl_look look = {.wide = p->args.output == KUBECTL_WIDE,
                                .heads = !p->args.no_headers,
                                .color = is_colored(&p->args)};
    enum kubectl_command c = p->args.command;
    if (c == KUBECTL_TOP)
        return kubectl_show_top(answer, look, &p->arena, &p->out, e);
    if (c == KUBECTL_CARDS)
        return kubectl_show_cards(answer, look, &p->arena, &p->out, e);
    if (c == KUBECTL_EXPLAIN)
        return kubectl_show_explain(answer, look, &p->arena, &p->out, e);
    return kubectl_show_fit(answer, look, &p->arena, &p->out, e);
}

static enum errc show(struct program *p, struct str answer, struct err *e)
{
    if (p->args.output == KUBECTL_JSON)
        return jprint_json(answer, &p->arena, &p->out, e);
    if (p->args.output == KUBECTL_YAML)
        return jprint_yaml(answer, &p->arena, &p->out, e);
    return show_table(p, answer, e);
}

/* The answer's result for the exit status: no such node, no room. */
static enum errc judge(struct program *p, struct str answer, struct err *e)
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

static enum errc ask(struct program *p, struct err *e)
{
    const struct kubectl_args *a = &p->args;
    struct kubectl_pod pod;
    struct str answer = STR_NULL;
    struct kubectl_question q = {.command = a->command};
    enum errc code = open_client(p, e);
    if (code == OK && a->filename.n > 0)
        code = read_pod(p, &pod, e);
    if (code != OK)
        return code;
    q.pod = a->filename.n > 0 ? &pod : NULL;
    q.node = a->command == KUBECTL_CARDS ? a->subject : STR_NULL;
    q.namespace = kubectl_client_namespace(&p->client);
    q.name = a->command == KUBECTL_EXPLAIN ? a->subject : STR_NULL;
    q.replicas = a->replicas > 0 || q.pod == NULL ? a->replicas : pod.replicas;
    code = kubectl_ask(&p->client, &q, &p->arena, &answer, e);
    if (code == OK)
        code = judge(p, answer, e);
    return code == OK ? show(p, answer, e) : code;
}

static void write_version(struct str daemon, struct buf *json)
{
    struct jwrite w;
    jwrite_init(&w, json);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("client"));
    jwrite_str(&w, STR(CARDPACK_VERSION));
    jwrite_key(&w, STR("daemon"));
    jwrite_str(&w, daemon);
    jwrite_object_end(&w);
}

/* Prints the plugin's and the daemon's version. Reports an unavailable daemon; it is no failure. */
static enum errc tell_version(struct program *p, struct err *e)
{
    struct kubectl_question q = {.command = KUBECTL_VERSION};
    struct str daemon = STR_NULL;
    struct buf json;
    struct err why = ERR_INIT;
    enum errc code = p->args.way == KUBECTL_DIRECT ? OK : open_client(p, &why);
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
    write_version(daemon, &json);
    code = show(p, buf_str(&json), e);
    buf_done(&json);
    return code;
}

static enum errc tell_help(struct program *p)
{
    enum kubectl_command c = KUBECTL_HELP;
    (void)kubectl_verb_find(p->args.subject, &c);
    kubectl_usage(&p->out, p->args.subject.n > 0 ? c : KUBECTL_HELP);
    return OK;
}

static uint64_t now_ms(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Offers completions. Names that can't be found, or not in time, are left out without an error. */
static void complete(struct program *p)
{
    struct kubectl_wish wish;
    struct err unsaid = ERR_INIT;
    uint64_t began = now_ms();
    kubectl_complete(p->args.rest, p->args.n_rest, &wish, &p->out);
    if (wish.names == KUBECTL_NO_NAMES)
        return;
    p->args = wish.args;
    p->args.command = KUBECTL_COMPLETE;
    enum errc code = open_client(p, &unsaid);
    uint64_t took = now_ms() - began;
    if (code == OK && took < LIMIT_NAMES_MS)
        kubectl_names(&p->client, &wish, LIMIT_NAMES_MS - took, &p->arena, &p->out);
    kubectl_complete_end(&p->out);
}

static enum errc run(struct program *p, struct err *e)
{
    switch (p->args.command) {
    case KUBECTL_HELP:
        return tell_help(p);
    case KUBECTL_VERSION:
        return tell_version(p, e);
    case KUBECTL_COMPLETION:
        return kubectl_completion(p->args.subject, &p->out, e);
    case KUBECTL_COMPLETE:
        complete(p);
        return OK;
    case KUBECTL_TOP:
    case KUBECTL_CARDS:
    case KUBECTL_EXPLAIN:
    case KUBECTL_FIT:
    case KUBECTL_COMMANDS:
        break;
    }
    return ask(p, e);
}

/* Restores SIGPIPE: if the reader of a pipe exits, this program ends as others do. */
static int print(struct buf *out)
{
    (void)signal(SIGPIPE, SIG_DFL);
    if (fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0)
        return EXIT_SUCCESS;
    kubectl_say("standard output: it can't be written");
    return EXIT_FAILURE;
}

static int answer(struct program *p)
{
    struct err e = ERR_INIT;
    arena_init(&p->arena, LIMIT_KUBECTL_BYTES);
    buf_init(&p->out, LIMIT_KUBECTL_BYTES);
    enum errc code = run(p, &e);
    int status = EXIT_SUCCESS;
    /* Text that did not fit is missing from the output, so nothing of it may be printed. */
    if (code == OK && (arena_failed(&p->arena) || buf_failed(&p->out)))
        code = err_set(&e, ERR_NOMEM, "what is to be shown does not fit into memory");
    if (code != OK) {
        kubectl_say("%s", e.text);
        advise(p, &e);
        status = p->args.command == KUBECTL_COMPLETION ? STATUS_USAGE : EXIT_FAILURE;
    } else if (p->out.n > 0) {
        status = print(&p->out);
    }
    if (status == EXIT_SUCCESS && p->no_room)
        status = STATUS_NO_ROOM;
    if (p->opened)
        kubectl_client_close(&p->client);
    buf_done(&p->out);
    arena_done(&p->arena);
    return status;
}

static bool is_completer(const char *argv0)
{
    return str_ends(str_of(argv0), STR("kubectl_complete-cardpack"));
}

int main(int argc, char *argv[])
{
    struct program p = {.opened = false};
    struct err e = ERR_INIT;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    log_setup(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (argc > 0 && is_completer(argv[0])) {
        p.args = (struct kubectl_args){
            .command = KUBECTL_COMPLETE, .rest = argv + 1, .n_rest = argc - 1};
    } else if (kubectl_args_parse(argc, argv, &p.args, &e) != OK) {
        kubectl_say("%s", e.text);
        return STATUS_USAGE;
    }
    return answer(&p);
}
