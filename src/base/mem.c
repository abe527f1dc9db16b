/* The calls of malloc. No wrapper ends the process when memory runs out: the callers refuse the
 * request instead. */
#include "base/mem.h"

#include <stdlib.h>

void *mem_alloc(size_t size)
{
    assert(size > 0);
    return calloc(1, size);
}

void *mem_resize(void *p, size_t size)
{
    assert(size > 0);
    return realloc(p, size);
}

void mem_free(void *p)
{
    free(p);
}
