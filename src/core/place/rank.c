/* A heap of bounded size whose root is the worst entry that is kept: most candidates are refused by
 * one comparison with it. Sorting all would need n log n comparisons of names. */
#include "core/place/rank.h"

static bool rank_worse(const struct rank_entry *a, const struct rank_entry *b)
{
    if (a->score != b->score)
        return a->score < b->score;
    int order = str_cmp(a->name, b->name);
    return order != 0 ? order > 0 : a->i > b->i;
}

static void rank_swap(struct rank_entry *a, struct rank_entry *b)
{
    struct rank_entry t = *a;
    *a = *b;
    *b = t;
}

static void rank_sift_up(struct rank_entry *e, size_t i)
{
    for (size_t parent = (i - 1) / 2; i > 0 && rank_worse(&e[i], &e[parent]);
         parent = (i - 1) / 2) {
        rank_swap(&e[i], &e[parent]);
        i = parent;
    }
}

static void rank_sift_down(struct rank_entry *e, size_t n)
{
    for (size_t i = 0;;) {
        size_t worst = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++) {
            if (child < n && rank_worse(&e[child], &e[worst]))
                worst = child;
        }
        if (worst == i)
            return;
        rank_swap(&e[i], &e[worst]);
        i = worst;
    }
}

void rank_offer(struct rank *r, struct rank_entry e)
{
    assert(r->max > 0);
    assert(r->n <= r->max);
    if (r->n < r->max) {
        r->entries[r->n++] = e;
        rank_sift_up(r->entries, r->n - 1);
    } else if (rank_worse(&r->entries[0], &e)) {
        r->entries[0] = e;
        rank_sift_down(r->entries, r->n);
    }
}

void rank_levels_insert(struct rank_levels *l, uint64_t score, unsigned above)
{
    assert(l->n <= RANK_LEVELS && above <= l->n && above < RANK_LEVELS);
    unsigned kept = MIN_OF(l->n, RANK_LEVELS - 1U);
    memmove(&l->scores[above + 1], &l->scores[above], (kept - above) * sizeof(score));
    l->scores[above] = score;
    l->n = kept + 1;
}
