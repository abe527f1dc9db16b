/*
 * Bearer tokens that admit to the main port, from a file: one a line, and any of them does, so that
 * a token is replaced without a gap. The text of a token is in no error and in no log.
 */
#pragma once

#include "buf.h"
#include "file.h"

struct tokens {
    struct str file; /* borrowed */
    struct buf text; /* owned */
    struct file_stamp stamp;
    struct file_stamp refused;
    bool again; /* others wait while it is read: only a regular file is */
};

/* again: others wait already. A pipe may be read otherwise, once. */
enum errc tokens_open(struct tokens *t, struct str file, bool again, struct err *reterr) _must_use_;
void tokens_done(struct tokens *t);

enum tokens_news {
    TOKENS_SAME,
    TOKENS_TAKEN,
    TOKENS_REFUSED, /* the file is no good: told once; what was in it before still admits */
};

/* Whether the file has changed. */
enum tokens_news tokens_refresh(struct tokens *t, struct err *reterr);

/* Whether the header "Authorization" (absent: there is none) carries one of them. */
bool tokens_admit(const struct tokens *t, struct str authorization);
