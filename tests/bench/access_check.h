/*
 * Detects whose memory a function touches. Each of cardpack's allocations gets its own pages and an
 * owner, and the pages of an owner can be made inaccessible. A touch is then a fault, which tells
 * the owner. The linker's --wrap redirects mem_alloc, mem_resize and mem_free here.
 */
#pragma once

#include "base/macro.h"

/* The owner of later allocations; 0 at the start: shared by all. */
void access_own(unsigned owner);

/* Makes the block with p (may be NULL) shared by all, whatever its owner was. */
void access_share(const void *p);

/* Calls run without access to the memory of owners that `open` does not allow; restores access
 * afterwards. Returns the owner whose memory was touched (run was then aborted); 0: none. */
unsigned access_run(bool (*open)(unsigned owner), void (*run)(void *ctx), void *ctx);
