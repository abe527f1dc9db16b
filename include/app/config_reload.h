/*
 * A configuration that is read while another one is in force: which of its settings may take
 * effect, and what both are together.
 */
#pragma once

#include "config.h"

enum config_change {
    CONFIG_RESTART, /* with the next start: what no table names is one of these */
    CONFIG_FILE, /* at once, from one file to another; from none, or to none, with the next start */
    CONFIG_LIVE, /* at once */
};

enum config_change config_change_of(enum config_row row);

/* "restart", "file", "live": for logs and --help. */
const char *config_change_name(enum config_change change);

enum config_verdict {
    CONFIG_SAME,
    CONFIG_CHANGES,
    CONFIG_WAITS, /* for a restart */
};

struct config_merge {
    enum config_verdict verdicts[CONFIG_ROW_COUNT];
    struct config_value asked[CONFIG_ROW_COUNT];  /* what fresh said; borrowed of it */
    enum config_source sources[CONFIG_ROW_COUNT]; /* and from where, of those that wait */
    unsigned changes;
    unsigned waits;
};

/*
 * Makes of `fresh` what is to be in force after `running`: its own value where that may change, and
 * that of `running` where not. ret->asked is what fresh said before that.
 */
enum errc config_merge(const struct config *running, struct config *fresh, struct config_merge *ret,
                       struct err *reterr) _must_use_;
