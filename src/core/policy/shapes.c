/* A linear search over hashes: a pod is counted once, and the table is small. */
#include "core/policy/shapes.h"

#include "base/mem.h"

#include <math.h>

void shapes_done(struct shapes *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        mem_free(s->all[i].models);
    *s = (struct shapes){.n = 0};
}

struct shape shape_of(const struct request *r)
{
    struct shape x = {.cpu = r->host.cpu};
    if (!request_shares(r))
        return x;
    x.cards = request_cards(r);
    x.mem = r->mem / x.cards;
    x.cores = r->cores / x.cards;
    x.percent = r->percent;
    x.whole = r->whole;
    x.models = r->models;
    return x;
}

uint32_t shape_steps(const struct shape *x, int64_t card_total)
{
    if (x->cards == 0 || card_total <= 0 || x->mem > card_total)
        return 0;
    if (x->whole)
        return SHAPE_STEPS;
    assert(x->mem >= 0 && x->mem <= REQUEST_MEM_MAX);
    uint32_t mem = (uint32_t)((x->mem * SHAPE_STEPS + card_total - 1) / card_total);
    uint32_t most = MAX_OF(MAX_OF(mem, x->percent), x->cores);
    return most > SHAPE_STEPS ? 0 : MAX_OF(most, 1U);
}

static uint64_t shapes_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* A client that chooses shapes that collide gains nothing: shapes_same compares, too. */
static uint64_t shapes_hash(const struct shape *x)
{
    uint64_t h = shapes_mix((uint64_t)x->cpu, (uint64_t)x->mem);
    h = shapes_mix(h, (uint64_t)x->cards << 32 | x->percent);
    h = shapes_mix(h, (uint64_t)x->cores << 1 | (x->whole ? 1U : 0U));
    for (size_t i = 0; i < x->models.n; i++)
        h = shapes_mix(h, (unsigned char)x->models.p[i]);
    return h;
}

static bool shapes_same(const struct shape *a, const struct shape *b)
{
    return a->cpu == b->cpu && a->mem == b->mem && a->cards == b->cards &&
           a->percent == b->percent && a->cores == b->cores && a->whole == b->whole &&
           str_eq(a->models, b->models);
}

static struct known_shape *shapes_find(struct shapes *s, const struct shape *x, uint64_t hash)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->all[i].hash == hash && shapes_same(&s->all[i].shape, x))
            return &s->all[i];
    }
    return NULL;
}

/* The place for a new shape: the next one, or that of the shape with the least weight. */
static struct known_shape *shapes_place(struct shapes *s)
{
    if (s->n < SHAPES_MAX)
        return &s->all[s->n++];
    struct known_shape *least = &s->all[0];
    for (uint32_t i = 1; i < s->n; i++)
        least = s->all[i].weight < least->weight ? &s->all[i] : least;
    s->sum -= least->weight;
    mem_free(least->models);
    return least;
}

static struct known_shape *shapes_new(struct shapes *s, const struct shape *x, uint64_t hash)
{
    char *models = x->models.n == 0 ? NULL : mem_alloc(x->models.n);
    if (x->models.n > 0 && models == NULL)
        return NULL;
    struct known_shape *k = shapes_place(s);
    *k = (struct known_shape){.shape = *x, .models = models, .hash = hash};
    k->shape.models = (struct str){.p = models, .n = x->models.n};
    if (models != NULL)
        memcpy(models, x->models.p, x->models.n);
    return k;
}

/* The weights of all would have to be multiplied for each pod; instead the unit grows, and the
 * weights are divided by it before they lose digits. */
static void shapes_age(struct shapes *s)
{
    if (s->ageless)
        return;
    s->unit *= exp2(1.0 / SHAPES_HALF_LIFE);
    if (s->unit < 1e6)
        return;
    s->sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        s->all[i].weight /= s->unit;
        s->sum += s->all[i].weight;
    }
    s->unit = 1;
}

void shapes_add(struct shapes *s, const struct shape *x)
{
    uint64_t hash = shapes_hash(x);
    struct known_shape *k = shapes_find(s, x, hash);
    if (k == NULL && x->models.n <= SHAPE_MODELS_MAX)
        k = shapes_new(s, x, hash);
    if (k == NULL)
        return;
    if (s->unit == 0)
        s->unit = 1;
    shapes_age(s);
    k->weight += s->unit;
    s->sum += s->unit;
    s->arrivals++;
}
