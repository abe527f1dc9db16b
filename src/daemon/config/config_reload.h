/*
 * Compares a new configuration with the one in force: which changed settings may take effect, and
 * what the merged configuration is.
 */
#pragma once

#include "daemon/config/config.h"

enum config_verdict {
    CONFIG_SAME,
    CONFIG_CHANGES,
    CONFIG_WAITS, /* changed, but needs a restart */
};

struct config_merge {
    enum config_verdict verdicts[CONFIG_ROW_COUNT];
    struct config_value asked[CONFIG_ROW_COUNT];  /* values of `fresh` before; borrowed from it */
    enum config_source sources[CONFIG_ROW_COUNT]; /* of those that wait */
    unsigned changes;
    unsigned waits;
};

/*
 * Makes `fresh` the configuration that follows `running`: a setting that needs a restart gets the
 * value of `running`. ret->asked keeps what `fresh` had before.
 */
enum errc config_merge(const struct config *running, struct config *fresh, struct config_merge *ret,
                       struct err *reterr) _must_use_;
