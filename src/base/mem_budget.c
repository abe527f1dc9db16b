/* Accounts and their budget: only bytes beyond an account's free part are added to the budget's
 * sum. */
#include "base/mem_budget.h"

static size_t mem_budget_counted(const struct mem_account *a, size_t used)
{
    return used > a->free ? used - a->free : 0;
}

bool mem_account_join(struct mem_account *a, struct mem_budget *b, size_t free)
{
    assert(a->budget == NULL);
    a->free = free;
    a->refused = false;
    if (b != NULL && mem_budget_counted(a, a->used) > b->max - b->used)
        return false;
    a->budget = b;
    if (b != NULL)
        b->used += mem_budget_counted(a, a->used);
    return true;
}

void mem_account_leave(struct mem_account *a)
{
    if (a->budget == NULL)
        return;
    assert(a->budget->used >= mem_budget_counted(a, a->used));
    a->budget->used -= mem_budget_counted(a, a->used);
    a->budget = NULL;
}

/* How many of the next n bytes the budget would count. */
static size_t mem_budget_takes(const struct mem_account *a, size_t n)
{
    return mem_budget_counted(a, a->used + n) - mem_budget_counted(a, a->used);
}

bool mem_account_fits(const struct mem_account *a, size_t n)
{
    if (a == NULL)
        return true;
    if (n > SIZE_MAX - a->used)
        return false;
    const struct mem_budget *b = a->budget;
    return b == NULL || mem_budget_takes(a, n) <= b->max - b->used;
}

bool mem_account_take(struct mem_account *a, size_t n)
{
    if (a == NULL)
        return true;
    if (!mem_account_fits(a, n)) {
        a->refused = true;
        return false;
    }
    if (a->budget != NULL)
        a->budget->used += mem_budget_takes(a, n);
    a->used += n;
    return true;
}

void mem_account_give(struct mem_account *a, size_t n)
{
    if (a == NULL)
        return;
    assert(n <= a->used);
    if (a->budget != NULL)
        a->budget->used -= mem_budget_counted(a, a->used) - mem_budget_counted(a, a->used - n);
    a->used -= n;
}
