/* Reads traces: each row becomes the view of a node or a pod, as the API server's objects do. */
#include "sim/trace.h"

#include "base/mem.h"
#include "base/sort.h"
#include "core/dialect/gpushare.h"
#include "core/limit.h"
#include "sim/csv.h"

/* A million cores; what the core charges at most, in MiB. */
#define CPU_MAX    UINT64_C(1000000000)
#define MEMORY_MAX ((uint64_t)HOST_MEMORY_MAX / MIB)
#define CARD_UNITS UINT64_C(1000)

/* ---- nodes ---- */

struct node_columns {
    size_t name;
    size_t cpu;
    size_t memory;
    size_t cards;
    size_t model;
};

static enum errc trace_find_node_columns(const struct csv *c, struct node_columns *ret,
                                         struct err *e)
{
    enum errc code = csv_column(c, "sn", &ret->name, e);
    if (code == OK)
        code = csv_column(c, "cpu_milli", &ret->cpu, e);
    if (code == OK)
        code = csv_column(c, "memory_mib", &ret->memory, e);
    if (code == OK)
        code = csv_column(c, "gpu", &ret->cards, e);
    return code == OK ? csv_column(c, "model", &ret->model, e) : code;
}

static struct str trace_number(struct arena *a, uint64_t n, const char *suffix)
{
    char text[24];
    struct buf b = BUF_ON(text);
    buf_printf(&b, "%llu%s", (unsigned long long)n, suffix);
    return arena_dup(a, buf_str(&b));
}

static enum errc trace_full(const struct csv *c, const struct arena *a, struct err *e)
{
    return err_set(e, arena_failed(a) ? arena_fault(a) : ERR_LIMIT,
                   "%.*s: too much for the memory of a simulation", STR_ARG(c->path));
}

static enum errc trace_read_node(const struct csv *c, const struct node_columns *at,
                                 struct arena *a, struct sim_node *ret, struct err *e)
{
    uint64_t cpu = 0;
    uint64_t memory = 0;
    uint64_t cards = 0;
    enum errc code = OK;
    *ret = (struct sim_node){.view = {.name = STR_NULL}};
    if (c->fields[at->name].n == 0)
        return csv_refuse(c, at->name, "is no name", e);
    code = csv_u64(c, at->cpu, CPU_MAX, &cpu, e);
    if (code == OK)
        code = csv_u64(c, at->memory, MEMORY_MAX, &memory, e);
    if (code == OK)
        code = csv_u64(c, at->cards, LIMIT_CARDS, &cards, e);
    if (code != OK)
        return code;
    ret->view.name = arena_dup(a, c->fields[at->name]);
    ret->view.cpu = trace_number(a, cpu, "m");
    ret->view.memory = trace_number(a, memory, "Mi");
    if (cards > 0) {
        ret->view.mem = trace_number(a, cards * CARD_UNITS, "");
        ret->view.mem_allocatable = ret->view.mem;
        ret->view.count = trace_number(a, cards, "");
        ret->view.model = arena_dup(a, c->fields[at->model]);
    }
    return OK;
}

enum errc trace_read_nodes(struct str path, struct str text, struct arena *a,
                           struct sim_workload *ret, struct err *reterr)
{
    struct csv c;
    struct node_columns at;
    struct map index;
    struct sim_node *nodes = NULL;
    size_t n = 0;
    size_t cap = 0;
    bool more = true;
    enum errc code = csv_open(&c, path, text, reterr);
    if (code == OK)
        code = trace_find_node_columns(&c, &at, reterr);
    while (code == OK && more) {
        struct sim_node node;
        code = csv_next(&c, &more, reterr);
        if (code != OK || !more)
            break;
        code = trace_read_node(&c, &at, a, &node, reterr);
        nodes = n == LIMIT_SIM_NODES ? NULL : arena_grow(a, nodes, n, &cap, sizeof(*nodes));
        if (code == OK && (nodes == NULL || arena_failed(a)))
            return trace_full(&c, a, reterr);
        if (code == OK)
            nodes[n++] = node;
    }
    if (code == OK && n == 0)
        code = err_set(reterr, ERR_SYNTAX, "%.*s: it has no nodes", STR_ARG(path));
    if (code != OK)
        return code;
    code = sim_nodes_index(&index, nodes, (uint32_t)n, reterr);
    map_done(&index);
    if (code != OK)
        return err_wrap(reterr, "%.*s", STR_ARG(path));
    ret->nodes = nodes;
    ret->n_nodes = (uint32_t)n;
    return code;
}

/* ---- pods ---- */

struct pod_columns {
    size_t name;
    size_t cpu;
    size_t memory;
    size_t cards;
    size_t milli;
    size_t models; /* SIZE_MAX: the file has no such column */
};

struct pod_row {
    struct str name; /* views the file */
    uint32_t shape;
};

static enum errc trace_find_pod_columns(const struct csv *c, struct pod_columns *ret, struct err *e)
{
    enum errc code = csv_column(c, "name", &ret->name, e);
    if (code == OK)
        code = csv_column(c, "cpu_milli", &ret->cpu, e);
    if (code == OK)
        code = csv_column(c, "memory_mib", &ret->memory, e);
    if (code == OK)
        code = csv_column(c, "num_gpu", &ret->cards, e);
    if (code == OK)
        code = csv_column(c, "gpu_milli", &ret->milli, e);
    ret->models = csv_column_if(c, "gpu_spec");
    return code;
}

/* "A|B" becomes "A,B", the annotation's form. */
static enum errc trace_read_models(const struct csv *c, size_t at, struct buf *ret, struct err *e)
{
    struct str text = at == SIZE_MAX ? STR_NULL : c->fields[at];
    if (text.n > LIMIT_WISH_BYTES)
        return csv_refuse(c, at, "is too long", e);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '!' || text.p[i] == '*')
            return csv_refuse(c, at, "must be names of models with | between them", e);
        buf_put(ret, text.p[i] == '|' ? STR(",") : (struct str){text.p + i, 1});
    }
    return OK;
}

/* The texts of a pod's view, on the stack until its shape is stored. */
struct pod_texts {
    char mem[24];
    char count[24];
    char models[LIMIT_WISH_BYTES + 1];
};

static struct str trace_print(char *bytes, size_t size, uint64_t n)
{
    struct buf b = buf_on(bytes, size);
    buf_put_u64(&b, n);
    return buf_str(&b);
}

static enum errc trace_read_cards(const struct csv *c, const struct pod_columns *at,
                                  uint64_t *ret_cards, uint64_t *ret_milli, struct err *e)
{
    enum errc code = csv_u64(c, at->cards, REQUEST_CARDS_MAX, ret_cards, e);
    if (code == OK)
        code = csv_u64(c, at->milli, CARD_UNITS, ret_milli, e);
    if (code != OK)
        return code;
    if (*ret_cards > 0 && *ret_milli == 0)
        return csv_refuse(c, at->milli, "is no part of a card, but num_gpu asks for cards", e);
    if (*ret_cards > 1 && *ret_milli != CARD_UNITS)
        return csv_refuse(c, at->milli, "must be 1000 if num_gpu is above 1", e);
    return OK;
}

static enum errc trace_read_pod(const struct csv *c, const struct pod_columns *at,
                                struct sim_shapes *shapes, uint32_t *ret, struct err *e)
{
    struct pod_texts texts;
    struct buf models = BUF_ON(texts.models);
    struct container_view container = {.name = STR("main"), .kind = CONTAINER_MAIN};
    struct pod_view view = {.namespace = STR("trace"), .n_mains = 1};
    uint64_t cpu = 0;
    uint64_t memory = 0;
    uint64_t cards = 0;
    uint64_t milli = 0;
    enum errc code = csv_u64(c, at->cpu, CPU_MAX, &cpu, e);
    if (code == OK)
        code = csv_u64(c, at->memory, MEMORY_MAX, &memory, e);
    if (code == OK)
        code = trace_read_cards(c, at, &cards, &milli, e);
    if (code == OK)
        code = trace_read_models(c, at->models, &models, e);
    if (code != OK)
        return code;
    if (cards > 0) {
        container.mem = trace_print(texts.mem, sizeof(texts.mem), cards * milli);
        view.containers = &container;
        view.n_containers = 1;
        if (models.n > 0)
            view.card_model = buf_str(&models);
    }
    if (cards > 1)
        view.count_label = trace_print(texts.count, sizeof(texts.count), cards);
    view.host = (struct host){.cpu = (int64_t)cpu, .memory = (int64_t)(memory * MIB)};
    code = sim_shapes_add(shapes, &view, ret, e);
    return code == OK ? OK : err_wrap(e, "%.*s:%lu", STR_ARG(c->path), c->line);
}

static bool trace_comes_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct pod_row *rows = ctx;
    int order = str_cmp(rows[a].name, rows[b].name);
    return order != 0 ? order < 0 : a < b;
}

static enum errc trace_sort(const struct pod_row *rows, size_t n, struct arena *a,
                            struct sim_workload *ret, struct err *e)
{
    uint32_t *order = arena_array(a, n, sizeof(*order));
    uint32_t *in_file = arena_array(a, n, sizeof(*in_file));
    if (order == NULL || in_file == NULL)
        return err_set(e, arena_fault(a), "out of memory");
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        in_file[i] = rows[i].shape;
    }
    sort_by(order, (uint32_t)n, trace_comes_before, rows);
    for (uint32_t i = 0; i < n; i++)
        order[i] = rows[order[i]].shape;
    ret->pods = order;
    ret->in_file = in_file;
    ret->n_pods = (uint32_t)n;
    return OK;
}

/* The rows, in an array of their own: it is freed when the pods are sorted. */
static enum errc trace_read_rows(struct csv *c, struct sim_shapes *shapes, struct arena *rows,
                                 struct pod_row **ret, size_t *ret_n, struct err *e)
{
    struct pod_columns at;
    size_t cap = 0;
    bool more = true;
    enum errc code = trace_find_pod_columns(c, &at, e);
    while (code == OK) {
        code = csv_next(c, &more, e);
        if (code != OK || !more)
            break;
        *ret =
            *ret_n == LIMIT_SIM_PODS ? NULL : arena_grow(rows, *ret, *ret_n, &cap, sizeof(**ret));
        if (*ret == NULL)
            return trace_full(c, rows, e);
        (*ret)[*ret_n].name = c->fields[at.name];
        code = trace_read_pod(c, &at, shapes, &(*ret)[*ret_n].shape, e);
        *ret_n += 1;
    }
    return code;
}

enum errc trace_read_pods(struct str path, struct str text, struct arena *a,
                          struct sim_workload *ret, struct err *reterr)
{
    struct csv c;
    struct sim_shapes shapes = {.arena = a};
    struct arena rows;
    struct pod_row *all = NULL;
    size_t n = 0;
    arena_init(&rows, LIMIT_SIM_BYTES);
    enum errc code = csv_open(&c, path, text, reterr);
    if (code == OK)
        code = trace_read_rows(&c, &shapes, &rows, &all, &n, reterr);
    if (code == OK && n == 0)
        code = err_set(reterr, ERR_SYNTAX, "%.*s: it has no pods", STR_ARG(path));
    if (code == OK)
        code = trace_sort(all, n, a, ret, reterr);
    arena_done(&rows);
    ret->shapes = shapes.all;
    ret->n_shapes = (uint32_t)shapes.n;
    return code;
}
