/* The program cardpack-sim: runs one command and exits. */
#include "base/file.h"
#include "report/table.h"
#include "sim/replays.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STATUS_USAGE 2

static void main_say(const char *text)
{
    char bytes[2048];
    struct buf shown = BUF_ON(bytes);
    text_put_printable(&shown, str_of(text));
    (void)fprintf(stderr, "cardpack-sim: %.*s\n", STR_ARG(buf_str(&shown)));
}

static enum errc main_replay(const struct sim_args *a, struct arena *arena, struct buf *out,
                             struct err *e)
{
    struct source s;
    struct replays r;
    enum errc code = source_open(&s, a, e);
    if (code == OK)
        code = replays_run(&s, a, arena, isatty(STDERR_FILENO) == 1, &r, e);
    for (size_t i = 0; code == OK && i < r.n; i++)
        buf_printf(out, "%.*s %.*s %.2f %.2f\n", STR_ARG(r.rows[i].workload), STR_ARG(r.rows[i].policy), r.rows[i].at_full,
                   r.rows[i].at_fill);
    source_done(&s);
    return code;
}

static enum errc main_run(const struct sim_args *a, struct arena *arena, struct buf *out,
                          struct err *e)
{
    switch (a->command) {
    case SIM_REPLAY:
        return main_replay(a, arena, out, e);
    case SIM_VERSION:
        buf_put(out, STR("cardpack-sim " CARDPACK_VERSION "\n"));
        return OK;
    case SIM_CHURN:
    case SIM_FIT:
    case SIM_GROW:
    case SIM_HELP:
    case SIM_COMMANDS:
        break;
    }
    sim_usage(out, a->subject);
    return OK;
}

static int main_print(const struct buf *out)
{
    (void)signal(SIGPIPE, SIG_DFL);
    if (fwrite(out->p, 1, out->n, stdout) == out->n && fflush(stdout) == 0)
        return EXIT_SUCCESS;
    main_say("standard output: it can't be written");
    return EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
    struct sim_args args;
    struct arena arena;
    struct buf out;
    struct err e = ERR_INIT;
    int status = EXIT_FAILURE;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    if (sim_args_parse(argc, argv, &args, &e) != OK) {
        main_say(e.text);
        return STATUS_USAGE;
    }
    arena_init(&arena, LIMIT_SIM_BYTES);
    buf_init(&out, LIMIT_SIM_BYTES);
    enum errc code = main_run(&args, &arena, &out, &e);
    if (code == OK && (buf_failed(&out) || arena_failed(&arena)))
        code = err_set(&e, ERR_NOMEM, "out of memory");
    if (code != OK)
        main_say(e.text);
    else
        status = main_print(&out);
    buf_done(&out);
    arena_done(&arena);
    return status;
}
