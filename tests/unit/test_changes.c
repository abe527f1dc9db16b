/* A reader that looks from time to time, compared with a simple list of all changes. */
#include "core/state/changes.h"
#include "seeded.h"
#include "unit.h"

#include <stdio.h>

#define THINGS 40

struct thing {
    struct change_link change;
    char name[4];
    bool there;
    unsigned value;
};

struct world {
    struct changes changes;
    struct thing things[THINGS];
};

/* A reader's view of the objects. */
struct reader {
    uint64_t version;
    uint64_t gone; /* it knows all removals up to this version */
    unsigned values[THINGS];
    bool there[THINGS];
    unsigned resets;
};

static uint64_t next(uint64_t *state)
{
    uint64_t high = seeded_draw(state, UINT32_MAX);
    return high << 32 | seeded_draw(state, UINT32_MAX);
}

static void do_one(struct world *w, uint64_t random)
{
    struct thing *t = &w->things[random % THINGS];
    if (t->there && random / THINGS % 4 == 0) {
        change_end(&t->change, str_of(t->name));
        t->there = false;
        return;
    }
    if (!t->there)
        t->change = (struct change_link){.list = &w->changes};
    t->there = true;
    t->value = (unsigned)(random >> 32);
    change_touch(&t->change);
}

static struct thing *thing_of(struct world *w, const struct change_link *x)
{
    for (size_t i = 0; i < THINGS; i++) {
        if (&w->things[i].change == x)
            return &w->things[i];
    }
    ck_abort_msg("no such thing");
}

/* Reads at most max changes: a slow reader comes again. */
static void look(struct world *w, struct reader *r, unsigned max)
{
    uint64_t cursor = 0;
    uint64_t now = changes_see(&w->changes);
    if (r->gone < w->changes.lost)
        *r = (struct reader){.gone = now, .resets = r->resets + 1};
    const struct change_gone *g;
    while ((g = changes_gone(&w->changes, r->gone, &cursor)) != NULL) {
        for (size_t i = 0; i < THINGS; i++) {
            if (str_eq(str_of(w->things[i].name), (struct str){g->name, g->n}))
                r->there[i] = w->things[i].there && r->there[i];
        }
    }
    const struct change_link *x = changes_after(&w->changes, r->version);
    uint64_t last = r->version;
    for (; x != NULL && max > 0; x = changes_next(&w->changes, x), max--) {
        const struct thing *t = thing_of(w, x);
        ck_assert_uint_gt(x->version, last);
        last = x->version;
        r->there[t - w->things] = true;
        r->values[t - w->things] = t->value;
    }
    r->gone = now;
    r->version = x == NULL ? now : last;
}

static void check_equal(const struct world *w, const struct reader *r)
{
    for (size_t i = 0; i < THINGS; i++) {
        ck_assert_int_eq(w->things[i].there, r->there[i]);
        ck_assert(!r->there[i] || r->values[i] == w->things[i].value);
    }
}

TEST_EACH(readers_come_to_know_all, 50)
{
    struct world w;
    struct reader r[3] = {{.version = 0}};
    unsigned most[] = {UINT32_MAX, 7, 3};
    uint64_t state = (uint64_t)_i + 1;
    changes_init(&w.changes);
    for (size_t i = 0; i < THINGS; i++) {
        w.things[i] = (struct thing){.there = false};
        (void)snprintf(w.things[i].name, sizeof(w.things[i].name), "%zu", i);
    }
    for (int round = 0; round < 300; round++) {
        uint64_t n = next(&state) % (round % 50 == 0 ? 2000 : 20);
        while (n-- > 0)
            do_one(&w, next(&state));
        for (size_t i = 0; i < COUNT_OF(r); i++) {
            if (next(&state) % 3 == 0)
                look(&w, &r[i], most[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        for (int k = 0; k < THINGS; k++)
            look(&w, &r[i], most[i]);
        check_equal(&w, &r[i]);
    }
    ck_assert_uint_gt(r[2].resets, 0);
}

/* An object that changes all the time moves in the list only once per look. */
TEST(what_nobody_looks_at_stays)
{
    struct changes c;
    changes_init(&c);
    struct change_link a = {.list = &c};
    struct change_link b = {.list = &c};
    change_touch(&a);
    change_touch(&b);
    for (int i = 0; i < 100; i++)
        change_touch(&a);
    ck_assert_uint_eq(c.version, 2);
    ck_assert_ptr_eq(changes_after(&c, 0), &a);
    ck_assert_uint_eq(changes_see(&c), 2);
    change_touch(&a);
    change_touch(&a);
    ck_assert_uint_eq(c.version, 3);
    ck_assert_ptr_eq(changes_after(&c, 0), &b);
    ck_assert_ptr_eq(changes_after(&c, 2), &a);
    ck_assert_ptr_null(changes_after(&c, 3));
    struct change_link unknown = {.list = NULL};
    change_touch(&unknown);
    change_end(&unknown, STR("x"));
    ck_assert_uint_eq(c.version, 3);
}
