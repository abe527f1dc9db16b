/* The program cardpack-sim: runs one command and exits. */
#include "base/file.h"
#include "report/table.h"
#include "sim/plot.h"
#include "sim/sim_show.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STATUS_USAGE   2
#define STATUS_NO_ROOM 3

static void main_say(const char *text)
{
    char bytes[2048];
    struct buf shown = BUF_ON(bytes);
    buf_put_printable(&shown, str_of(text));
    (void)fprintf(stderr, "cardpack-sim: %.*s\n", STR_ARG(buf_str(&shown)));
}

struct program {
    struct sim_args args;
    struct source source;
    struct arena arena; /* of the answer */
    struct buf out;
    bool progress; /* standard error is a terminal */
    bool no_room;
};

/* The picture is written before the answer is printed: if it can't be, nothing is. */
static enum errc main_plot(const struct program *p, const struct replays *r, struct err *e)
{
    struct buf picture;
    buf_init(&picture, LIMIT_SIM_BYTES);
    plot_replays(r, &picture);
    enum errc code = buf_failed(&picture)
                         ? err_set(e, buf_fault(&picture), "the picture is too large")
                         : file_replace(p->args.plot, buf_str(&picture), e);
    buf_done(&picture);
    return code;
}

static enum errc main_write_places(const struct program *p, const struct buf *places, struct err *e)
{
    if (buf_failed(places))
        return err_set(e, buf_fault(places), "too many places");
    return file_replace(p->args.places, buf_str(places), e);
}

static enum errc main_replay(struct program *p, struct err *e)
{
    struct replays r;
    struct buf places = {.p = NULL};
    struct buf *wanted = p->args.places.p == NULL ? NULL : &places;
    buf_init(&places, LIMIT_SIM_BYTES);
    buf_put(&places, STR("workload,policy,pod,node\n"));
    enum errc code = replays_run(&p->source, &p->args, &p->arena, p->progress, wanted, &r, e);
    if (code == OK && wanted != NULL)
        code = main_write_places(p, &places, e);
    buf_done(&places);
    if (code == OK && p->args.plot.p != NULL)
        code = main_plot(p, &r, e);
    if (code == OK)
        sim_show_replays(&r, p->args.output, &p->arena, &p->out);
    return code;
}

static enum errc main_churn(struct program *p, struct err *e)
{
    struct churns c;
    enum errc code = churns_run(&p->source, &p->args, &p->arena, p->progress, &c, e);
    if (code == OK)
        sim_show_churns(&c, p->args.output, &p->arena, &p->out);
    return code;
}

static enum errc main_fit(struct program *p, struct err *e)
{
    struct sim_fit_answer f;
    uint32_t shape = 0;
    enum errc code = source_add_pod(&p->source, p->args.filename, &shape, e);
    if (code == OK)
        code = sim_fit_run(&p->source.workloads[0], shape, &p->args, &p->arena, &f, e);
    if (code != OK)
        return code;
    p->no_room = f.fit == 0;
    sim_show_fit(&f, p->args.output, &p->arena, &p->out);
    return OK;
}

static enum errc main_grow(struct program *p, struct err *e)
{
    struct grow_answer g;
    struct sim_node add;
    enum errc code = grow_read_node(p->args.add, &p->arena, &add, e);
    if (code == OK)
        code = grow_run(&p->source.workloads[0], &add, &p->args, &p->arena, &g, e);
    if (code != OK)
        return code;
    p->no_room = g.run < g.pending;
    sim_show_grow(&g, p->args.output, &p->out);
    return OK;
}

/* Pods that were left out, which the user must know of. */
static void main_say_unread(const struct sim_workload *w)
{
    char text[512];
    struct buf b = BUF_ON(text);
    if (w->n_unread == 0)
        return;
    buf_printf(&b,
               "pods that are left out, because their requests can't be read: %u; the first: %s",
               w->n_unread, w->unread.text);
    main_say(buf_cstr(&b));
}

static enum errc main_simulate(struct program *p, struct err *e)
{
    enum errc code = source_open(&p->source, &p->args, e);
    if (code == OK)
        main_say_unread(&p->source.workloads[0]);
    if (code == OK && p->args.command == SIM_REPLAY)
        code = main_replay(p, e);
    else if (code == OK && p->args.command == SIM_CHURN)
        code = main_churn(p, e);
    else if (code == OK && p->args.command == SIM_FIT)
        code = main_fit(p, e);
    else if (code == OK)
        code = main_grow(p, e);
    source_done(&p->source);
    return code;
}

static enum errc main_run(struct program *p, struct err *e)
{
    if (p->args.command == SIM_HELP) {
        sim_usage(&p->out, p->args.subject);
        return OK;
    }
    if (p->args.command == SIM_COMPLETION) {
        sim_completion(&p->out);
        return OK;
    }
    if (p->args.command == SIM_VERSION) {
        buf_put(&p->out, STR("cardpack-sim " CARDPACK_VERSION "\n"));
        return OK;
    }
    return main_simulate(p, e);
}

/* Restores SIGPIPE: if the reader of a pipe exits, this program ends as others do. */
static int main_print(const struct buf *out)
{
    (void)signal(SIGPIPE, SIG_DFL);
    if (file_print(out))
        return EXIT_SUCCESS;
    main_say("standard output: it can't be written");
    return EXIT_FAILURE;
}

static int main_answer(struct program *p)
{
    struct err e = ERR_INIT;
    int status = EXIT_FAILURE;
    arena_init(&p->arena, LIMIT_SIM_BYTES);
    buf_init(&p->out, LIMIT_SIM_BYTES);
    enum errc code = main_run(p, &e);
    if (code == OK && (buf_failed(&p->out) || arena_failed(&p->arena)))
        code = err_set(&e, ERR_NOMEM, "what is to be shown does not fit into memory");
    if (code != OK)
        main_say(e.text);
    else
        status = main_print(&p->out);
    buf_done(&p->out);
    arena_done(&p->arena);
    return status == EXIT_SUCCESS && p->no_room ? STATUS_NO_ROOM : status;
}

int main(int argc, char *argv[])
{
    static struct program p;
    struct err e = ERR_INIT;
    if (!file_fill_standard())
        return EXIT_FAILURE;
    if (sim_args_parse(argc, argv, &p.args, &e) != OK) {
        main_say(e.text);
        return STATUS_USAGE;
    }
    p.progress = isatty(STDERR_FILENO) == 1;
    return main_answer(&p);
}
