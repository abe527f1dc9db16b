/*
 * sum = containers and sidecars; an init container runs beside the sidecars before it, so the peak
 * is the larger of the sum and the largest "init container + sidecars so far". Without sidecars
 * this is the rule of the oldest schedulers: max(sum of containers, largest init container).
 *
 * A container that can't be read does not stop the count: the others hold their memory all the
 * same, if somebody binds the pod past us.
 */
#include "request.h"

#include "gpushare.h"
#include "quantity.h"

/* Sums stop here, one above what is allowed: no number of containers can overflow them. */
#define MEM_CAP (REQUEST_MEM_MAX + 1)

struct tally {
    int64_t sum;
    int64_t sidecars;
    int64_t peak;
    enum errc code; /* of the first failure */
    struct err *reterr;
};

static int64_t add(int64_t a, int64_t b)
{
    return MIN_OF(a + b, MEM_CAP);
}

static const char *mem_fault(enum errc code, const struct quantity *q)
{
    if (code == ERR_SYNTAX)
        return "is not a quantity";
    if (code != OK)
        return "is out of range";
    if (q->value < 0)
        return "is negative";
    if (q->value > REQUEST_MEM_MAX)
        return "is out of range: no card has so much memory";
    return q->whole ? NULL : "is not a whole number";
}

/* Where it can't be read, what it costs all the same. */
static int64_t mem_parse(struct tally *t, struct str text, const char *what, struct str name)
{
    struct quantity q = {.value = 0};
    enum errc code = quantity_parse(str_trim(text), &q);
    const char *fault = mem_fault(code, &q);
    if (fault != NULL && t->code == OK)
        t->code = err_set(t->reterr, code == ERR_SYNTAX ? ERR_SYNTAX : ERR_RANGE,
                          "%s \"%.*s\": %.*s: \"%.*s\" %s", what, STR_ARG(name),
                          STR_ARG(GPUSHARE_RESOURCE_MEM), STR_ARG(text), fault);
    return code == OK ? MIN_OF(MAX_OF(q.value, 0), REQUEST_MEM_MAX) : 0;
}

static void tally_container(struct tally *t, const struct container_view *c)
{
    const char *what = c->kind == CONTAINER_MAIN ? "container" : "init container";
    int64_t mem = mem_parse(t, c->mem, what, c->name);
    if (c->kind == CONTAINER_INIT) {
        t->peak = MAX_OF(t->peak, add(t->sidecars, mem));
        return;
    }
    t->sum = add(t->sum, mem);
    if (c->kind == CONTAINER_SIDECAR)
        t->sidecars = add(t->sidecars, mem);
}

enum errc request_read(const struct pod_view *pod, struct request *ret, struct err *reterr)
{
    struct tally t = {.code = OK, .reterr = reterr};
    for (size_t i = 0; i < pod->n_containers; i++)
        tally_container(&t, &pod->containers[i]);
    int64_t mem = MAX_OF(t.sum, t.peak);
    if (pod->mem_overhead.n > 0)
        mem = add(mem, mem_parse(&t, pod->mem_overhead, "overhead of pod", pod->name));
    if (mem > REQUEST_MEM_MAX && t.code == OK)
        t.code = err_set(reterr, ERR_RANGE, "%.*s: the containers' sum is out of range",
                         STR_ARG(GPUSHARE_RESOURCE_MEM));
    *ret = (struct request){.mem = MIN_OF(mem, REQUEST_MEM_MAX)};
    return t.code;
}
