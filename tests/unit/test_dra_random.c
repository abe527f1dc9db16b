/*
 * Random histories of ResourceSlices and ResourceClaims against a model that keeps each device as
 * it came: slices with many devices, whose nodes are those of the slice or of each device, in
 * several pools, while claims hold them; objects come, change, go, and are missing in lists; now
 * and then an allocation fails.
 */
#include "core/dra/dra.h"
#include "fail_alloc.h"
#include "seeded.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NAMES = 5, /* of slices */
    POOLS = 3,
    DEVICES = 6, /* names of them */
    NODES = 4,   /* 0: none */
    CLAIMS = 6,
    RESULTS = 3,
    VERSIONS = 64, /* of slices, those that are gone included */
    STEPS = 600
};

/* As an agent writes them, or nearly so. */
static const char *const texts[] = {
    NULL,
    "GPU-5a1f0c77-09ab-4cde-8f01-23456789abcd",
    "GPU-00000000-0000-0000-0000-000000000000",
    "MIG-5a1f0c77-09ab-4cde-8f01-23456789abcd",
    "GPU-5A1F0C77-09ab-4cde-8f01-23456789abcd",
    "GPU-",
    "something else that is longer than any UUID of a card",
};

struct model_device {
    char name[32];
    const char *uuid;
    const char *parent;
    uint64_t pci;
    int64_t memory;
    uint32_t node;
};

/* One version of a slice. */
struct version {
    bool there;
    bool retired;
    uint32_t name;
    uint32_t pool;
    int64_t generation;
    uint32_t epoch;
    uint32_t n;
    uint32_t node; /* of all; 0: each has its own */
    struct model_device devices[DEVICES];
};

struct model_use {
    uint32_t pool;
    uint32_t device;
    const struct model_device *found;
    struct version *in;
};

struct model_claim {
    bool there;
    uint32_t epoch;
    uint32_t n;
    struct model_use uses[RESULTS];
};

static struct {
    struct dra dra;
    struct version versions[VERSIONS]; /* in the order in which they came */
    size_t n;
    struct model_claim claims[CLAIMS];
    uint32_t slice_epoch;
    uint32_t claim_epoch;
    uint64_t rng;
} t;

static uint32_t draw(uint32_t below)
{
    return seeded_draw(&t.rng, below);
}

static const char *label(char to[32], const char *what, uint32_t i)
{
    (void)snprintf(to, 32, "%s%u", what, i);
    return to;
}

/* ---- the model ---- */

static const struct model_device *device_in(const struct version *v, uint32_t device)
{
    char name[32];
    (void)label(name, "d", device);
    for (uint32_t i = 0; i < v->n; i++) {
        if (strcmp(v->devices[i].name, name) == 0)
            return &v->devices[i];
    }
    return NULL;
}

static void resolve(struct model_use *u)
{
    struct version *best = NULL;
    for (size_t i = 0; i < t.n; i++) {
        struct version *v = &t.versions[i];
        if (!v->there || v->pool != u->pool || device_in(v, u->device) == NULL)
            continue;
        if (best == NULL || (best->retired && !v->retired) ||
            (best->retired == v->retired && v->generation > best->generation))
            best = v;
    }
    u->in = best;
    u->found = best == NULL ? NULL : device_in(best, u->device);
}

static bool is_used(const struct version *v)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        for (uint32_t k = 0; t.claims[i].there && k < t.claims[i].n; k++) {
            if (t.claims[i].uses[k].in == v)
                return true;
        }
    }
    return false;
}

static void settle(void)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        for (uint32_t k = 0; t.claims[i].there && k < t.claims[i].n; k++)
            resolve(&t.claims[i].uses[k]);
    }
    for (size_t i = 0; i < t.n; i++)
        t.versions[i].there =
            t.versions[i].there && (!t.versions[i].retired || is_used(&t.versions[i]));
}

static void retire(uint32_t name)
{
    for (size_t i = 0; i < t.n; i++) {
        if (t.versions[i].name == name)
            t.versions[i].retired = true;
    }
}

/* Room for one more; those that are there keep their order. */
static struct version *new_version(void)
{
    static struct version old[VERSIONS];
    size_t n = 0;
    memcpy(old, t.versions, sizeof(old));
    for (size_t i = 0; i < t.n; i++) {
        if (old[i].there)
            t.versions[n++] = old[i];
    }
    t.n = n;
    ck_assert_uint_lt(n, VERSIONS);
    t.versions[n] = (struct version){.there = false};
    return &t.versions[n];
}

/* ---- what happens ---- */

static bool sabotaged(void)
{
    bool it = draw(8) == 0;
    if (it)
        fail_alloc_arm(draw(2) == 0 ? FAIL_ONCE : FAIL_FROM_THEN_ON, 1 + draw(6));
    return it;
}

/* Whether it was taken. */
static bool taken(enum errc code, bool broken)
{
    bool hit = broken && fail_alloc_hit();
    fail_alloc_disarm();
    ck_assert_int_eq(code, hit ? ERR_NOMEM : OK);
    return code == OK;
}

static void fill(struct version *v)
{
    static const uint64_t addresses[] = {0, UINT64_C(1) << 63, UINT64_C(1) << 63 | 0x3b00,
                                         UINT64_MAX};
    static const int64_t sizes[] = {0, 1, INT64_C(80) << 30, INT64_MAX};
    v->node = draw(NODES);
    v->n = draw(4) == 0 ? 0 : 1 + draw(DEVICES);
    v->pool = draw(POOLS);
    v->generation = draw(3);
    for (uint32_t i = 0; i < v->n; i++) {
        struct model_device *x = &v->devices[i];
        (void)label(x->name, "d", draw(DEVICES)); /* some twice: the first counts */
        x->uuid = texts[draw(COUNT_OF(texts))];
        x->parent = texts[draw(COUNT_OF(texts))];
        x->pci = addresses[draw(COUNT_OF(addresses))];
        x->memory = sizes[draw(COUNT_OF(sizes))];
        x->node = v->node != 0 ? v->node : draw(NODES);
    }
}

static void set_slice(void)
{
    struct dra_device_view devices[DEVICES] = {{.memory = 0}};
    char names[3][32];
    char nodes[DEVICES][32];
    struct version *v = new_version();
    v->name = draw(NAMES);
    v->epoch = t.slice_epoch;
    fill(v);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct model_device *x = &v->devices[i];
        devices[i] = (struct dra_device_view){.name = str_of(x->name),
                                              .uuid = str_of(x->uuid),
                                              .parent = str_of(x->parent),
                                              .pci = x->pci,
                                              .memory = x->memory};
        if (v->node == 0 && x->node != 0)
            devices[i].node = str_of(label(nodes[i], "n", x->node));
    }
    const struct dra_slice_view view = {
        .name = str_of(label(names[0], "s", v->name)),
        .driver = STR("gpu"),
        .pool = str_of(label(names[1], "p", v->pool)),
        .node = v->node == 0 ? STR_NULL : str_of(label(names[2], "n", v->node)),
        .generation = v->generation,
        .devices = devices,
        .n_devices = v->n};
    bool broken = sabotaged();
    if (!taken(dra_set_slice(&t.dra, &view, t.slice_epoch), broken))
        return;
    retire(v->name);
    if (v->n > 0) {
        v->there = true;
        t.n++;
    }
}

static void set_claim(uint32_t i)
{
    struct dra_result_view results[RESULTS];
    char names[RESULTS][2][32];
    char uid[32];
    struct model_claim c = {.there = true, .epoch = t.claim_epoch, .n = draw(RESULTS + 1)};
    for (uint32_t k = 0; k < c.n; k++) {
        c.uses[k] = (struct model_use){.pool = draw(POOLS), .device = draw(DEVICES)};
        results[k] =
            (struct dra_result_view){.driver = STR("gpu"),
                                     .pool = str_of(label(names[k][0], "p", c.uses[k].pool)),
                                     .device = str_of(label(names[k][1], "d", c.uses[k].device)),
                                     .memory = -1};
    }
    const struct dra_claim_view view = {
        .uid = str_of(label(uid, "c", i)), .results = results, .n_results = c.n};
    bool broken = sabotaged();
    if (!taken(dra_set_claim(&t.dra, &view, t.claim_epoch), broken))
        return;
    c.there = c.n > 0;
    for (uint32_t k = 0; k < c.n; k++) /* a retired slice counts, if the old claim kept it */
        resolve(&c.uses[k]);
    t.claims[i] = c;
}

static void drop_slice(uint32_t i)
{
    char name[32];
    dra_drop_slice(&t.dra, str_of(label(name, "s", i)));
    retire(i);
    settle();
}

/* A sweep drops slices in the order of a map, and which one a claim keeps depends on the order. So
 * all but one are dropped before. */
static void sweep_slices(void)
{
    uint32_t kept = NAMES;
    for (size_t i = 0; i < t.n; i++) {
        const struct version *v = &t.versions[i];
        if (!v->there || v->retired || v->epoch == t.slice_epoch)
            continue;
        if (kept == NAMES)
            kept = v->name;
        else
            drop_slice(v->name);
    }
    ck_assert_uint_eq(dra_sweep_slices(&t.dra, t.slice_epoch), kept < NAMES);
    if (kept < NAMES)
        retire(kept);
    t.slice_epoch++;
}

static void sweep_claims(void)
{
    (void)dra_sweep_claims(&t.dra, t.claim_epoch);
    for (size_t i = 0; i < CLAIMS; i++)
        t.claims[i].there = t.claims[i].there && t.claims[i].epoch == t.claim_epoch;
    t.claim_epoch++;
}

static void step(void)
{
    char name[32];
    uint32_t i = draw(CLAIMS);
    switch (draw(8)) {
    case 0:
    case 1:
    case 2:
        set_slice();
        break;
    case 3:
        drop_slice(draw(NAMES));
        break;
    case 4:
    case 5:
        set_claim(i);
        break;
    case 6:
        dra_drop_claim(&t.dra, str_of(label(name, "c", i)));
        t.claims[i].there = false;
        break;
    default:
        i = draw(20);
        if (i == 0)
            sweep_slices();
        else if (i == 1)
            sweep_claims();
    }
    settle();
}

/* ---- whether both agree ---- */

static bool names_node(uint32_t node)
{
    for (size_t i = 0; i < t.n; i++) {
        for (uint32_t k = 0; t.versions[i].there && k < t.versions[i].n; k++) {
            if (t.versions[i].devices[k].node == node)
                return true;
        }
    }
    return false;
}

static void compare_use(const struct dra_use *u, const struct model_use *m)
{
    struct dra_facts facts;
    char node[32];
    ck_assert((u->slice == NULL) == (m->found == NULL));
    if (m->found == NULL) {
        ck_assert_ptr_null(u->node);
        return;
    }
    dra_use_facts(u, &facts);
    ck_assert(str_eq(facts.uuid, str_of(m->found->uuid)));
    ck_assert(str_eq(facts.parent, str_of(m->found->parent)));
    ck_assert(facts.pci == m->found->pci && facts.memory == m->found->memory);
    ck_assert((u->node == NULL) == (m->found->node == 0));
    if (u->node != NULL)
        ck_assert_str_is(u->node->name, label(node, "n", m->found->node));
}

static void compare(void)
{
    char name[32];
    size_t there = 0;
    for (struct dra_node *x = dra_next_dirty(&t.dra); x != NULL; x = dra_next_dirty(&t.dra))
        dra_release_node(&t.dra, x);
    dra_check(&t.dra);
    for (uint32_t i = 0; i < CLAIMS; i++) {
        const struct dra_claim *c = map_get(&t.dra.claims, str_of(label(name, "c", i)));
        ck_assert_int_eq(c != NULL, t.claims[i].there);
        for (uint32_t k = 0; c != NULL && k < c->n_uses; k++)
            compare_use(&c->uses[k], &t.claims[i].uses[k]);
    }
    for (size_t i = 0; i < t.n; i++)
        there += t.versions[i].there && !t.versions[i].retired ? 1 : 0;
    ck_assert_uint_eq(t.dra.slices.n, there);
    for (uint32_t i = 1; i < NODES; i++)
        ck_assert((dra_node(&t.dra, str_of(label(name, "n", i))) != NULL) == names_node(i));
}

TEST_EACH(random_histories_agree_with_devices_as_they_came, 20)
{
    memset(&t, 0, sizeof(t));
    t.rng = seeded_setting("DRA_SEED", 7000) + (uint64_t)_i;
    dra_init(&t.dra, (struct map_seed){1, 2});
    for (int i = 0; i < STEPS; i++) {
        step();
        compare();
    }
    dra_done(&t.dra);
}
