/* Reads the files of a simulation. */
#include "sim/source.h"

#include "base/file.h"
#include "report/pod_read.h"
#include "sim/dump.h"
#include "sim/trace.h"

/* "traces/default.csv" is the workload "default". */
static struct str source_name_of(struct str path)
{
    struct str name = path;
    struct str head;
    struct str tail;
    while (str_cut(name, '/', &head, &tail) && tail.n > 0)
        name = tail;
    if (str_ends(name, STR(".csv")) && name.n > 4)
        name.n -= 4;
    return name;
}

typedef enum errc source_read_fn(struct str path, struct str text, struct arena *a,
                                 struct sim_workload *ret, struct err *reterr);

static enum errc source_read_file(struct str path, source_read_fn *read, struct arena *a,
                                  struct sim_workload *ret, struct err *e)
{
    struct buf text;
    buf_init(&text, LIMIT_SIM_FILE_BYTES);
    enum errc code = file_read(str_eq(path, STR("-")) ? STR("/dev/stdin") : path, &text, e);
    if (code == OK)
        code = read(path, buf_str(&text), a, ret, e);
    buf_done(&text);
    return code;
}

/* The trace's nodes, each time with other pods. */
static enum errc source_open_trace(struct source *s, const struct sim_args *a, struct err *e)
{
    struct sim_workload nodes = {.name = source_name_of(a->nodes)};
    enum errc code = source_read_file(a->nodes, trace_read_nodes, &s->arena, &nodes, e);
    if (code == OK)
        code = sim_workload_measure(&nodes, e);
    if (code == OK && a->n_pods == 0)
        s->workloads[s->n++] = nodes;
    for (size_t i = 0; i < a->n_pods && code == OK; i++) {
        s->workloads[i] = nodes;
        s->workloads[i].name = source_name_of(a->pods[i]);
        code = source_read_file(a->pods[i], trace_read_pods, &s->arena, &s->workloads[i], e);
        s->n++;
    }
    return code;
}

enum errc source_open(struct source *s, const struct sim_args *a, struct err *reterr)
{
    s->n = 0;
    arena_init(&s->arena, LIMIT_SIM_BYTES);
    if (a->cluster.p == NULL)
        return source_open_trace(s, a, reterr);
    enum errc code = source_read_file(a->cluster, dump_read, &s->arena, &s->workloads[0], reterr);
    s->n = 1;
    return code == OK ? sim_workload_measure(&s->workloads[0], reterr) : code;
}

static enum errc source_read_shape(struct str path, struct str text, struct arena *a,
                                   struct sim_workload *w, struct err *e)
{
    struct pod_view view;
    uint32_t shape = 0;
    enum errc code = pod_read(text, a, &view, e);
    if (code == OK)
        code = sim_workload_add(w, &view, a, &shape, e);
    return code == OK ? OK : err_wrap(e, "%.*s", STR_ARG(path));
}

enum errc source_add_pod(struct source *s, struct str path, uint32_t *ret, struct err *reterr)
{
    struct sim_workload *w = &s->workloads[0];
    enum errc code = source_read_file(path, source_read_shape, &s->arena, w, reterr);
    *ret = w->n_shapes - 1;
    if (code == OK && !request_wants(&w->shapes[*ret].request))
        code = err_set(reterr, ERR_RANGE, "%.*s: the pod asks for no card", STR_ARG(path));
    return code;
}

void source_done(struct source *s)
{
    arena_done(&s->arena);
}
