/* Reads the files of a simulation. */
#include "sim/source.h"

#include "base/file.h"
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
    enum errc code =
        file_read(str_eq(path, STR("-")) ? STR("/dev/stdin") : path, &text, e);
    if (code == OK)
        code = read(path, buf_str(&text), a, ret, e);
    buf_done(&text);
    return code;
}

enum errc source_open(struct source *s, const struct sim_args *a, struct err *reterr)
{
    struct sim_workload nodes = {.n_nodes = 0};
    s->n = 0;
    arena_init(&s->arena, LIMIT_SIM_BYTES);
    enum errc code = source_read_file(a->nodes, trace_read_nodes, &s->arena, &nodes, reterr);
    if (code == OK)
        code = sim_workload_measure(&nodes, reterr);
    for (size_t i = 0; i < a->n_pods && code == OK; i++) {
        s->workloads[i] = nodes;
        s->workloads[i].name = source_name_of(a->pods[i]);
        code = source_read_file(a->pods[i], trace_read_pods, &s->arena, &s->workloads[i], reterr);
        s->n++;
    }
    return code;
}

void source_done(struct source *s)
{
    arena_done(&s->arena);
}
