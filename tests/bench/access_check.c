/* Detects which allocations a function reads or writes; see access_check.h. */
#include "access_check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS_MAX 20000

struct block {
    char *p;
    size_t size;   /* as requested */
    size_t mapped; /* whole pages */
    unsigned owner;
};

static struct {
    struct block blocks[BLOCKS_MAX];
    size_t n;
    unsigned owner;
    sigjmp_buf back;
    volatile sig_atomic_t touched;
} heap;

void *__wrap_mem_alloc(size_t size);
void *__wrap_mem_resize(void *p, size_t size);
void __wrap_mem_free(void *p);

static struct block *find(const void *p)
{
    for (size_t i = 0; i < heap.n; i++) {
        struct block *b = &heap.blocks[i];
        if ((const char *)p >= b->p && (const char *)p < b->p + b->mapped)
            return b;
    }
    return NULL;
}

void *__wrap_mem_alloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = (size + page - 1) / page * page;
    void *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || heap.n == BLOCKS_MAX)
        abort();
    heap.blocks[heap.n++] = (struct block){p, size, mapped, heap.owner};
    return p;
}

void __wrap_mem_free(void *p)
{
    struct block *b = find(p);
    if (p == NULL)
        return;
    if (b == NULL || b->p != p || munmap(p, b->mapped) != 0)
        abort();
    *b = heap.blocks[--heap.n];
}

void *__wrap_mem_resize(void *p, size_t size)
{
    void *more = __wrap_mem_alloc(size);
    struct block *old = find(p);
    if (old != NULL)
        memcpy(more, p, MIN_OF(old->size, size));
    __wrap_mem_free(p);
    return more;
}

void access_own(unsigned owner)
{
    heap.owner = owner;
}

void access_share(const void *p)
{
    struct block *b = find(p);
    if (p == NULL)
        return;
    if (b == NULL)
        abort();
    b->owner = 0;
}

static void fault(int number, siginfo_t *info, void *context)
{
    const struct block *b = find(info->si_addr);
    (void)number;
    (void)context;
    if (b == NULL || b->owner == 0)
        abort();
    heap.touched = (sig_atomic_t)b->owner;
    siglongjmp(heap.back, 1);
}

static void protect(bool (*open)(unsigned owner), int protection)
{
    for (size_t i = 0; i < heap.n; i++) {
        const struct block *b = &heap.blocks[i];
        if (b->owner != 0 && !open(b->owner) && mprotect(b->p, b->mapped, protection) != 0)
            abort();
    }
}

unsigned access_run(bool (*open)(unsigned owner), void (*run)(void *ctx), void *ctx)
{
    struct sigaction before;
    const struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSEGV, &action, &before) != 0)
        abort();
    heap.touched = 0;
    heap.owner = 0;
    if (sigsetjmp(heap.back, 1) == 0) {
        protect(open, PROT_NONE);
        run(ctx);
    }
    protect(open, PROT_READ | PROT_WRITE);
    if (sigaction(SIGSEGV, &before, NULL) != 0)
        abort();
    return (unsigned)heap.touched;
}
