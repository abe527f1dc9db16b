/* What follows from a request; compares requests, and keeps copies of them. */
#include "base/mem.h"
#include "core/request/request.h"

uint32_t request_lasting(const struct request *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_demands; i++)
        n += r->demands[i].kind == CONTAINER_INIT ? 0 : 1;
    return n;
}

bool request_may_part(const struct request *r)
{
    return request_lasting(r) > 1 && r->cards == 0 && request_fixed(r) && r->affinity.n == 0;
}

bool request_plain(const struct request *r)
{
    return r->mem > 0 && request_cards(r) == 1 && r->n_demands <= 1 && r->cores == 0 &&
           request_fixed(r);
}

bool request_simple(const struct request *r)
{
    return request_plain(r) && r->dialect == DIALECT_OWN && r->exclusive == 0 && !r->isolated &&
           r->models.n == 0 && r->uuids.n == 0 && r->anti_affinity.n == 0 && r->affinity.n == 0;
}

bool request_equal(const struct request *a, const struct request *b)
{
    return host_equal(a->host, b->host) && a->claims == b->claims && request_alike(a, b);
}

bool request_alike(const struct request *a, const struct request *b)
{
    bool figures = a->mem == b->mem && a->lasting_mem == b->lasting_mem && a->cores == b->cores &&
                   a->lasting_cores == b->lasting_cores && a->cards == b->cards &&
                   a->exclusive == b->exclusive && a->renamed == b->renamed &&
                   a->percent == b->percent && a->whole == b->whole && a->isolated == b->isolated &&
                   a->dialect == b->dialect && a->priority == b->priority &&
                   a->never_preempts == b->never_preempts && a->n_demands == b->n_demands;
    bool wishes = a->node_policy == b->node_policy && a->card_policy == b->card_policy &&
                  str_eq(a->namespace, b->namespace) && str_eq(a->models, b->models) &&
                  str_eq(a->uuids, b->uuids) && str_eq(a->affinity, b->affinity) &&
                  str_eq(a->anti_affinity, b->anti_affinity);
    for (uint32_t i = 0; figures && wishes && i < a->n_demands; i++) {
        const struct demand *x = &a->demands[i];
        const struct demand *y = &b->demands[i];
        if (x->mem != y->mem || x->cores != y->cores || x->index != y->index ||
            x->kind != y->kind || x->cards != y->cards || x->percent != y->percent)
            return false;
    }
    return figures && wishes;
}

static size_t request_copy_head_of(const struct request *r)
{
    assert(r->n_demands <= REQUEST_DEMANDS_MAX);
    return offsetof(struct request, demands) + r->n_demands * sizeof(r->demands[0]);
}

void request_load(struct request *to, const struct request *from)
{
    memcpy(to, from, request_copy_head_of(from));
}

void request_part(struct request *to, const struct request *r, uint32_t demand)
{
    const struct demand *d = &r->demands[demand];
    request_load(to, r);
    to->n_demands = 1;
    to->demands[0] = *d;
    to->mem = to->lasting_mem = d->mem;
    to->cores = to->lasting_cores = d->cores;
    if (!request_by_container(r))
        return;
    to->cards = d->cards;
    to->percent = d->percent;
    to->whole = demand_is_whole(d);
}

static size_t request_copy_size_of(const struct request *r)
{
    return request_copy_head_of(r) + r->namespace.n + r->models.n + r->uuids.n + r->affinity.n +
           r->anti_affinity.n;
}

static void request_copy_to(struct request *copy, const struct request *r)
{
    size_t head = request_copy_head_of(r);
    memcpy(copy, r, head);
    copy->classes = NULL;
    copy->n_classes = 0;
    char *at = (char *)copy + head;
    copy->namespace = str_store(&at, r->namespace);
    copy->models = str_store(&at, r->models);
    copy->uuids = str_store(&at, r->uuids);
    copy->affinity = str_store(&at, r->affinity);
    copy->anti_affinity = str_store(&at, r->anti_affinity);
    assert(at == (char *)copy + request_copy_size_of(r));
}

struct request *request_copy(const struct request *r)
{
    struct request *copy = mem_alloc(request_copy_size_of(r));
    if (copy != NULL)
        request_copy_to(copy, r);
    return copy;
}

uint64_t request_hash(struct map_seed seed, const struct request *r)
{
    static_assert(sizeof(struct demand) == 24, "its bytes are hashed: no padding");
    const struct str texts[] = {
        r->namespace,     r->models,
        r->uuids,         r->affinity,
        r->anti_affinity, {(const char *)r->demands, r->n_demands * sizeof(r->demands[0])},
    };
    uint64_t words[9 + COUNT_OF(texts)] = {
        (uint64_t)r->host.cpu,
        (uint64_t)r->host.memory,
        (uint64_t)r->mem,
        (uint64_t)r->lasting_mem,
        (uint64_t)r->cores << 32 | r->lasting_cores,
        (uint64_t)r->cards << 32 | r->exclusive,
        (uint64_t)r->renamed,
        (uint64_t)r->percent << 32 | (uint32_t)r->priority,
        (uint64_t)r->node_policy << 32 | (uint64_t)r->card_policy << 16 |
            (uint64_t)r->dialect << 8 | (r->isolated ? 4U : 0U) | (r->whole ? 2U : 0U) |
            (r->never_preempts ? 1U : 0U),
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        words[9 + i] = siphash13(seed, texts[i]);
    return siphash13(seed, (struct str){(const char *)words, sizeof(words)});
}

struct kept {
    struct interned interned;
    struct request request;
};

/* All others have the request const: only its table counts its uses, and frees it. */
static struct kept *request_copy_kept(const struct request *copy)
{
    union {
        const struct request *given;
        char *bytes;
    } at = {.given = copy};

    return CONTAINER_OF(at.bytes, struct kept, request);
}

static bool request_copy_is_like(const struct interned *thing, const void *like)
{
    const struct kept *k = (const struct kept *)(const void *)thing;
    return request_equal(&k->request, like);
}

const struct request *request_take(struct intern_table *table, const struct request *r)
{
    uint64_t hash = request_hash(table->seed, r);
    struct interned *found = intern_find(table, hash, request_copy_is_like, r);
    if (found != NULL) {
        intern_take(found);
        return &CONTAINER_OF(found, struct kept, interned)->request;
    }
    struct kept *k = mem_alloc(offsetof(struct kept, request) + request_copy_size_of(r));
    if (k == NULL)
        return NULL;
    request_copy_to(&k->request, r);
    if (intern_put(table, &k->interned, hash) == OK)
        return &k->request;
    mem_free(k);
    return NULL;
}

void request_give(struct intern_table *table, const struct request *copy)
{
    if (copy != NULL)
        intern_give(table, &request_copy_kept(copy)->interned);
}

void request_check(const struct intern_table *table, const struct request *copy)
{
    struct interned *found =
        intern_find(table, request_hash(table->seed, copy), request_copy_is_like, copy);
    assert(found != NULL && &CONTAINER_OF(found, struct kept, interned)->request == copy);
}
