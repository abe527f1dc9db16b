/* The nearest name by Levenshtein distance: letters to insert, delete or replace. */
#include "base/near.h"

static size_t near_distance(struct str a, struct str b)
{
    size_t row[NEAR_BYTES + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t replaced = diagonal + (a.p[i - 1] == b.p[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = MIN_OF(replaced, MIN_OF(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.n];
}

struct near near_to(struct str name)
{
    return (struct near){.name = name, .best = MAX_OF(name.n / 3, (size_t)2) + 1};
}

void near_offer(struct near *n, struct str candidate)
{
    if (n->name.n > NEAR_BYTES || candidate.n > NEAR_BYTES)
        return;
    size_t d = near_distance(n->name, candidate);
    if (d >= n->best)
        return;
    n->best = d;
    n->found = candidate;
}
