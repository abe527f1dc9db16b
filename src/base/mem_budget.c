/* Accounts and their budget: only bytes beyond an account's free part are added to the budget's
 * sum. */
#include "base/mem_budget.h"

static size_t counted(const struct mem_account *a, size_t used)
{
    return used > a->free ? used - a->free : 0;
}

bool mem_account_join(struct mem_account *a, struct mem_budget *b, size_t free)
{
    assert(a->budget == NULL);
    a->free = free;
    a->refused = false;
    if (b != NULL && counted(a, a->used) > b->max - MIN_OF(b->used, b->max))
        return false;
    a->budget = b;
    if (b != NULL)
        b->used += counted(a, a->used);
    return true;
}

void mem_account_leave(struct mem_account *a)
{
    if (a->budget == NULL)
        return;
    assert(a->budget->used >= counted(a, a->used));
    a->budget->used -= counted(a, a->used);
    a->budget = NULL;
}

/* How many of the next n bytes the budget would count. */
static size_t takes(const struct mem_account *a, size_t n)
{
    return counted(a, a->used + n) - counted(a, a->used);
}

bool mem_account_fits(const struct mem_account *a, size_t n)
{
    if (a == NULL)
        return true;
    if (n > SIZE_MAX - a->used)
        return false;
    /* max may be below used: it can be lowered at run time. */
    const struct mem_budget *b = a->budget;
    return b == NULL || takes(a, n) <= b->max - MIN_OF(b->used, b->max);
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
        a->budget->used += takes(a, n);
    a->used += n;
    return true;
}

void mem_account_give(struct mem_account *a, size_t n)
{
    if (a == NULL)
        return;
    assert(n <= a->used);
    if (a->budget != NULL)
        a->budget->used -= counted(a, a->used) - counted(a, a->used - n);
    a->used -= n;
}
