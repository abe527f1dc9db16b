/*
 * Bearer tokens that authenticate a request on the main port. The file has one token per line; each
 * of them is accepted, so that a token can be replaced without a gap. No error and no log line
 * contains a token's text.
 */
#pragma once

#include "base/buf.h"
#include "base/file.h"

struct tokens {
    struct str file; /* borrowed */
    struct buf text; /* owned */
    struct file_stamp stamp;
    struct file_stamp refused;
    bool again; /* requests wait while the file is read: accept a regular file only */
};

/*
 * again: requests wait already, so only a regular file is accepted. Otherwise the file may also be
 * a pipe, which is read once.
 */
enum errc tokens_open(struct tokens *t, struct str file, bool again, struct err *reterr) _must_use_;
void tokens_done(struct tokens *t);

enum tokens_news {
    TOKENS_SAME,
    TOKENS_TAKEN,
    TOKENS_REFUSED, /* the file is invalid: reported once; the old tokens stay valid */
};

/* Reads the file again if it has changed. */
enum tokens_news tokens_refresh(struct tokens *t, struct err *reterr);

/* Whether the value of the header "Authorization" (absent: no such header) has a valid token. */
bool tokens_admit(const struct tokens *t, struct str authorization);
