/*
 * The process: its command line, its descriptors and its supervisor. daemon.c connects the parts,
 * drain.c ends them. cardpack has one thread; libcurl adds a resolver thread for a moment where the
 * API server's address is a name.
 */
#include "base/file.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/limit.h"
#include "io/confine.h"
#include "io/process.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct program {
    struct config config;
    int argc; /* a reload parses argc, argv and env again */
    char *const *argv;
    struct config_env env;
    char host[64];
    unsigned connections; /* max-connections, or fewer where descriptors are short */
    struct notify notify;
    struct loop *loop;
    struct daemon daemon;
};

/*
 * Limits the connections to the descriptors that are available: a client without one would wait in
 * the listen queue without an answer.
 */
static enum errc main_fit_connections(struct program *p, struct err *reterr)
{
    struct process_usage u;
    unsigned wanted = p->config.max_connections;
    process_usage_read(&u);
    p->connections = process_connections(&u, wanted);
    if (p->connections < MIN_OF(wanted, LIMIT_LEAST_CONNECTIONS))
        return err_set(reterr, ERR_LIMIT,
                       "the process may open %" PRId64 " descriptors (RLIMIT_NOFILE), and needs "
                       "%" PRIu64 " for %d connections",
                       u.max_fds, process_descriptors_for(&u, LIMIT_LEAST_CONNECTIONS),
                       LIMIT_LEAST_CONNECTIONS);
    if (p->connections < wanted)
        log_warn("max-connections is lowered: the process may open too few descriptors",
                 kv_uint("max_connections", wanted), kv_uint("connections", p->connections),
                 kv_int("descriptors", u.max_fds),
                 kv_uint("needed", process_descriptors_for(&u, wanted)));
    return OK;
}

static enum errc main_open_daemon(struct program *p, struct err *reterr)
{
    (void)gethostname(p->host, sizeof(p->host) - 1);
    struct daemon_settings settings = {
        .loop = p->loop,
        .config = &p->config,
        .argc = p->argc,
        .argv = p->argv,
        .env = p->env,
        .notify = &p->notify,
        .host = str_of(p->host),
        .service_host = str_of(getenv("KUBERNETES_SERVICE_HOST")),
        .service_port = str_of(getenv("KUBERNETES_SERVICE_PORT")),
        .home = str_of(getenv("HOME")),
        .connections = p->connections,
    };
    return daemon_open(&p->daemon, &settings, reterr);
}

/* A sandboxing step that fails is logged; cardpack starts nevertheless. */
static void main_confine(void)
{
    unsigned missing = confine_process();
    if (geteuid() == 0)
        log_warn("running as root: any user that may read cardpack's files is enough");
    if (missing != 0)
        log_warn("some sandboxing steps failed; the debug log names them",
                 kv_uint("steps", (unsigned)__builtin_popcount(missing)));
}

static enum errc main_open_all(struct program *p, struct err *reterr)
{
    struct notify_environment e = {.socket = str_of(getenv("NOTIFY_SOCKET")),
                                   .watchdog_usec = str_of(getenv("WATCHDOG_USEC")),
                                   .watchdog_pid = str_of(getenv("WATCHDOG_PID"))};
    enum errc code = main_fit_connections(p, reterr);
    if (code == OK)
        code = loop_new(&p->loop, reterr);
    if (code == OK)
        code = notify_open_environment(&p->notify, p->loop, &e, reterr);
    return code == OK ? main_open_daemon(p, reterr) : code;
}

static void main_close_all(struct program *p)
{
    daemon_close(&p->daemon);
    notify_close(&p->notify);
    if (p->loop != NULL)
        p->loop = loop_free(p->loop);
}

static int main_run(struct program *p)
{
    struct err e = ERR_INIT;
    (void)signal(SIGPIPE, SIG_IGN);
    main_confine();
    enum errc code = main_open_all(p, &e);
    if (code == OK) {
        (void)confine_capabilities();
        notify_send(&p->notify, STR("READY=1"));
        code = loop_run(p->loop, &e);
    }
    if (code != OK)
        log_error("cardpack can't go on", kv_cstr("error", e.text));
    main_close_all(p);
    log_info("stopped");
    return code == OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
    struct program p = {.notify = NOTIFY_INIT};
    struct err e = ERR_INIT;
    struct buf text;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    reload_block();
    struct config_env env = {.port = str_of(getenv("PORT")),
                             .log_level = str_of(getenv("LOG_LEVEL")),
                             .kubeconfig = str_of(getenv("KUBECONFIG")),
                             .pod_name = str_of(getenv("POD_NAME")),
                             .pod_namespace = str_of(getenv("POD_NAMESPACE")),
                             .pod_uid = str_of(getenv("POD_UID"))};
    if (config_parse(argc, argv, &env, config_read_file, NULL, &p.config, &e) != OK) {
        (void)fprintf(stderr, "cardpack: %s\n", e.text);
        return 2;
    }
    buf_init(&text, LIMIT_FILE_BYTES);
    int status = EXIT_FAILURE;
    switch (p.config.action) {
    case CONFIG_HELP:
        config_usage(&text);
        break;
    case CONFIG_VERSION:
        buf_put(&text, STR("cardpack " CARDPACK_VERSION "\n"));
        break;
    case CONFIG_CHECK:
        config_print(&p.config, &text);
        break;
    case CONFIG_RUN:
        reload_set_log(&p.config);
        p.argc = argc;
        p.argv = argv;
        p.env = env;
        status = main_run(&p);
        break;
    }
    if (p.config.action != CONFIG_RUN && file_print(&text))
        status = EXIT_SUCCESS;
    buf_done(&text);
    config_done(&p.config);
    return status;
}
