/*
 * Who touches what: each allocation of ours gets pages of its own and an owner, and the pages of
 * owners can be taken away. A touch then is a fault, which tells whose they were. mem_alloc,
 * mem_resize and mem_free are led here by the linker's --wrap.
 */
#pragma once

#include "macro.h"

/* Whom what is allocated from now on is for; 0 at the start: everybody. */
void fence_own(unsigned owner);

/* p, which may be NULL, is in a block that is everybody's, whoever it was made for. */
void fence_share(const void *p);

/* Runs it without the memory of those owners that `open` does not allow; with it again after that.
 * Returns whose memory was touched; it has not ended then. 0: nobody's. */
unsigned fence_run(bool (*open)(unsigned owner), void (*run)(void *ctx), void *ctx);
