/*
 * The names, other than GPUSHARE_RESOURCE_EXCLUSIVE, by which another device plugin gives out the
 * cards of a node or parts of them. NVIDIA's plugin has nvidia.com/gpu.shared (renameByDefault) and
 * nvidia.com/mig-1g.5gb; an operator may choose further names, and has to say them.
 */
#pragma once

#include "base/str.h"

/*
 * The names that this process reads in objects beside NVIDIA's: "example.com/gpu,nvidia.com/a10*",
 * a list that card_resources_check accepts and that stays for the life of the process. Call it
 * before any object is read. Empty at first.
 */
void card_resources_use(struct str list);

/* False: *ret_bad is the first part of the list that can't be such a name: it has no domain, or '*'
 * before its end, or it is a resource of a dialect. */
bool card_resources_check(struct str list, struct str *ret_bad);

/* What to write in place of a bad one; it completes "must be". */
#define CARD_RESOURCES_EXPECTED                                                        \
    "a resource with a domain that is of none of the dialects, as example.com/gpu or " \
    "example.com/mig-*"

bool card_resources_has(struct str resource);

/* Whether a resource that neither card_resources_use nor a dialect has may be cards, by its name.
 * NVIDIA has others for networks; AMD's and Intel's cards are not those that are shared. */
enum card_guess {
    CARD_GUESS_NO,
    CARD_GUESS_PERHAPS,
    CARD_GUESS_YES,
};

enum card_guess card_resources_guess(struct str resource);
