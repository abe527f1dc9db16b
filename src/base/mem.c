/* No wrapper ends the process when memory is out: callers have a request to refuse instead. */
#include "mem.h"

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
