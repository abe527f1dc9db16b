/*
 * The CDI specs that late binding has written: files cardpack.io-alloc_ID.json in the folder where
 * container runtimes look for specs. A spec is the record of which cards a container has: it is
 * written before the container's first start, and read again after a restart of this program.
 * Before the container starts again it is written anew if these cards are given otherwise by then,
 * as with other device nodes. The folder is in /run: after a reboot nothing runs, and no spec is
 * there.
 *
 * A runtime watches the folder and reads each .json file. So a spec is written under a name that it
 * ignores, and then renamed: that is also the change that it notices (a file that is created it
 * overlooks).
 */
#pragma once

#include "base/buf.h"
#include "node/roster/roster.h"

/* As many containers as pods of a node can have devices for, and some that have ended. */
#define SPECS_MAX 4096

/* A letter, so that the oldest version of CDI allows it, and 128 random bits. */
#define SPECS_ID_BYTES 33

/* Files that one call removes. */
#define SPECS_SWEEP_MAX 64

struct spec;

struct specs {
    struct str dir; /* borrowed, ends in NUL */
    struct spec *items;
    size_t n;
    size_t cap;
    bool loaded; /* the folder was read */
    bool more;   /* it has more files than SPECS_MAX */
};

void specs_init(struct specs *s, struct str dir);
void specs_done(struct specs *s);

/* Writes an ID and a NUL. */
void specs_make_id(uint64_t a, uint64_t b, char ret[static SPECS_ID_BYTES + 1]);

/*
 * Reads the folder, if that was not done yet, and removes what an interrupted write has left. A
 * file that is not a spec of ours, although its name says so, is removed as well. No folder: no
 * specs.
 */
enum errc specs_load(struct specs *s, struct err *reterr) _must_use_;

/* The cards that a spec names; NULL: it was not written. */
const struct card_list *specs_find(const struct specs *s, struct str id);

/*
 * Writes the spec, unless it is there with this text, or with other cards. Makes the folder if it
 * is missing. The error names the path and the reason. ERR_DENIED also if others than root (and
 * this process) may write to the folder.
 */
enum errc specs_put(struct specs *s, struct str id, const struct card_list *cards, struct str text,
                    bool *ret_written, struct err *reterr) _must_use_;

/* Removes all specs but those that are kept: begin, one call for each, end. End removes at most
 * SPECS_SWEEP_MAX files; false: others are left, call all three again. */
void specs_mark_begin(struct specs *s);
void specs_mark(struct specs *s, struct str id);
bool specs_mark_end(struct specs *s);
