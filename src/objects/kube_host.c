/* The rules of the API server's defaults (pkg/apis/core/v1/defaults.go) and of the scheduler's sum.
 * All amounts are cut at HOST_CPU_MAX and HOST_MEMORY_MAX, so that no sum overflows. */
#include "kube_host.h"

#include "core/quantity.h"

struct str kube_host_read(struct jread *r)
{
    enum jtype type = jread_type(r);
    if (type == JTYPE_STRING || type == JTYPE_NUMBER)
        return jread_text(r);
    jread_skip(r);
    return STR_NULL;
}

static int64_t kube_host_cpu(struct str text)
{
    struct quantity q;
    if (text.p == NULL || quantity_parse_milli(str_trim(text), &q) != OK)
        return 0;
    return MIN_OF(MAX_OF(q.value, (int64_t)0), HOST_CPU_MAX);
}

static int64_t kube_host_memory(struct str text)
{
    struct quantity q;
    if (text.p == NULL || quantity_parse(str_trim(text), &q) != OK)
        return 0;
    return MIN_OF(MAX_OF(q.value, (int64_t)0), HOST_MEMORY_MAX);
}

void kube_host_add(struct host_tally *t, struct host_texts request, enum container_kind kind)
{
    t->names_cpu = t->names_cpu || request.cpu.p != NULL;
    t->names_memory = t->names_memory || request.memory.p != NULL;
    tally_add(&t->cpu, kube_host_cpu(request.cpu), kind, HOST_CPU_MAX);
    tally_add(&t->memory, kube_host_memory(request.memory), kind, HOST_MEMORY_MAX);
}

/* What decides instead of the containers; absent: nothing. */
static struct str kube_host_own(struct str request, struct str limit, bool named)
{
    return request.p == NULL && !named ? limit : request;
}

static int64_t kube_host_peak(const struct tally *inits, const struct tally *mains, int64_t cap)
{
    return MAX_OF(tally_sum(inits->sum, mains->sum, cap), inits->most);
}

struct host kube_host_of(const struct host_tally *inits, const struct host_tally *mains,
                         struct host_texts limit, struct host_texts request,
                         struct host_texts overhead)
{
    struct str cpu = kube_host_own(request.cpu, limit.cpu, inits->names_cpu || mains->names_cpu);
    struct str memory =
        kube_host_own(request.memory, limit.memory, inits->names_memory || mains->names_memory);
    struct host h = {kube_host_cpu(cpu), kube_host_memory(memory)};
    if (cpu.p == NULL)
        h.cpu = kube_host_peak(&inits->cpu, &mains->cpu, HOST_CPU_MAX);
    if (memory.p == NULL)
        h.memory = kube_host_peak(&inits->memory, &mains->memory, HOST_MEMORY_MAX);
    struct host more = {kube_host_cpu(overhead.cpu), kube_host_memory(overhead.memory)};
    return host_clamp(host_add(h, more));
}
