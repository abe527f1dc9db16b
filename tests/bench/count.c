/* Counts cardpack's allocations; see count.h. */
#include "count.h"

static size_t allocations;

void *__wrap_mem_alloc(size_t size);
void *__wrap_mem_resize(void *p, size_t size);
void *__real_mem_alloc(size_t size);
void *__real_mem_resize(void *p, size_t size);

void *__wrap_mem_alloc(size_t size)
{
    allocations++;
    return __real_mem_alloc(size);
}

void *__wrap_mem_resize(void *p, size_t size)
{
    allocations++;
    return __real_mem_resize(p, size);
}

size_t count_allocations(void)
{
    return allocations;
}
