/* One ceiling (memory-budget) for the memory of many accounts, one for each request. The budget
 * does not count the first bytes of an account: a request that needs little is served even when the
 * budget is used up. The number of accounts bounds those free bytes. */
#pragma once

#include "base/macro.h"

struct mem_budget {
    size_t max; /* fixed as long as accounts are joined */
    size_t used;
};

/* All zero: an account without a budget; nothing is refused. */
struct mem_account {
    struct mem_budget *budget; /* NULL: it has not joined, or has left */
    size_t free;               /* bytes that the budget does not count */
    size_t used;
    bool refused; /* an allocation was refused since it joined */
};

/* From now on the budget counts the account's use, including what it already has. False: the budget
 * has no room for that. */
bool mem_account_join(struct mem_account *a, struct mem_budget *b, size_t free) _must_use_;
/* The account keeps its memory; the budget does not count it any more. */
void mem_account_leave(struct mem_account *a);

/* Whether there is room for n bytes now. Always true if a is NULL. */
bool mem_account_fits(const struct mem_account *a, size_t n) _must_use_;
/* False: no room for n bytes. */
bool mem_account_take(struct mem_account *a, size_t n) _must_use_;
void mem_account_give(struct mem_account *a, size_t n);

/* Whether the budget counts any byte of it. */
static inline bool mem_account_counts(const struct mem_account *a)
{
    return a->budget != NULL && a->used > a->free;
}
