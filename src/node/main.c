/* The process cardpack-node: its command line, its privileges and its signals. node_program.c
 * connects the parts. */
#include "base/file.h"
#include "base/limit.h"
#include "io/confine.h"
#include "io/notify.h"
#include "node/node_program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct program {
    struct settings settings;
    struct loop *loop;
    struct notify notify;
    struct node_program node;
    bool stopping;
};

static void main_drained(void *ctx)
{
    const struct program *p = ctx;
    loop_stop(p->loop);
}

/* The second signal does not wait for events. */
static void main_on_signal(void *ctx, int signo)
{
    struct program *p = ctx;
    log_info("stopping", kv_int("signal", signo));
    notify_send(&p->notify, STR("STOPPING=1"));
    if (p->stopping)
        loop_stop(p->loop);
    else
        node_program_drain(&p->node, main_drained, p);
    p->stopping = true;
}

static enum errc main_open(struct program *p, struct err *reterr)
{
    struct node_program_settings s = {.settings = &p->settings,
                                      .service_host = str_of(getenv("KUBERNETES_SERVICE_HOST")),
                                      .service_port = str_of(getenv("KUBERNETES_SERVICE_PORT")),
                                      .home = str_of(getenv("HOME"))};
    struct notify_environment e = {.socket = str_of(getenv("NOTIFY_SOCKET")),
                                   .watchdog_usec = str_of(getenv("WATCHDOG_USEC")),
                                   .watchdog_pid = str_of(getenv("WATCHDOG_PID"))};
    enum errc code = loop_new(&p->loop, reterr);
    s.loop = p->loop;
    if (code == OK)
        code = notify_open_environment(&p->notify, p->loop, &e, reterr);
    if (code == OK)
        code = loop_signal(p->loop, SIGTERM, main_on_signal, p, reterr);
    if (code == OK)
        code = loop_signal(p->loop, SIGINT, main_on_signal, p, reterr);
    return code == OK ? node_program_open(&p->node, &s, reterr) : code;
}

/* Root without capabilities may still write in root's own folders, as the kubelet's are. */
static void main_confine(void)
{
    unsigned missing = confine_process();
    if (missing != 0)
        log_warn("some sandboxing steps failed; the debug log names them",
                 kv_uint("steps", (unsigned)__builtin_popcount(missing)));
}

static int main_run(struct program *p)
{
    struct err e = ERR_INIT;
    bool logfmt = p->settings.log_format == SETTINGS_LOG_LOGFMT ||
                  (p->settings.log_format == SETTINGS_LOG_AUTO && isatty(STDERR_FILENO) != 0);
    log_never_wait();
    log_setup(STDERR_FILENO, p->settings.log_level, logfmt ? LOG_FORMAT_LOGFMT : LOG_FORMAT_JSON);
    (void)signal(SIGPIPE, SIG_IGN);
    main_confine();
    enum errc code = main_open(p, &e);
    if (code == OK) {
        (void)confine_capabilities();
        notify_send(&p->notify, STR("READY=1"));
        code = loop_run(p->loop, &e);
    }
    if (code != OK)
        log_error("cardpack-node can't go on", kv_cstr("error", e.text));
    node_program_close(&p->node);
    notify_close(&p->notify);
    if (p->loop != NULL)
        p->loop = loop_free(p->loop);
    log_info("stopped");
    return code == OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
    static struct program p = {.notify = NOTIFY_INIT};
    struct err e = ERR_INIT;
    struct buf text;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    const struct settings_env env = {.node_name = str_of(getenv("NODE_NAME")),
                                     .kubeconfig = str_of(getenv("KUBECONFIG")),
                                     .log_level = str_of(getenv("LOG_LEVEL")),
                                     .disable = str_of(getenv("DP_DISABLE_HEALTHCHECKS")),
                                     .enable = str_of(getenv("DP_ENABLE_HEALTHCHECKS"))};
    if (settings_parse(argc, argv, &env, &p.settings, &e) != OK) {
        (void)fprintf(stderr, "cardpack-node: %s\n", e.text);
        return 2;
    }
    buf_init(&text, LIMIT_FILE_BYTES);
    switch (p.settings.action) {
    case SETTINGS_HELP:
        settings_usage(&text);
        break;
    case SETTINGS_VERSION:
        buf_put(&text, STR("cardpack-node " CARDPACK_VERSION "\n"));
        break;
    case SETTINGS_RUN:
        return main_run(&p);
    }
    int status = file_print(&text) ? EXIT_SUCCESS : EXIT_FAILURE;
    buf_done(&text);
    return status;
}
