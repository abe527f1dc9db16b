/*
 * Reads the configuration again on SIGHUP, and when the content of the --config file has changed.
 * SIGHUP also reads certificates, keys, CAs and tokens again, which authentication.h checks by
 * itself too.
 *
 * An invalid configuration is rejected as a whole, with one log line, and the one in force stays.
 * From a valid one the log level and the names of the files for TLS, clients and tokens take effect
 * at once, with one log line each. A setting that needs a restart is named in a warning and keeps
 * its value.
 *
 * A rejected file is tried again every few seconds, since the fault may be in a file that it names.
 * During shutdown nothing is read any more.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/parts.h"

struct reload;

struct reload_settings {
    const struct parts *parts; /* its members may be NULL now and be set before the loop runs */
    struct config *config;     /* in force; from now on only the reload writes to it */
    int argc;
    char *const *argv; /* borrowed, like the strings of env */
    struct config_env env;
    uint64_t look_ms; /* how often to check the file; 0: LOOK_MS */
    uint64_t rest_ms;
};

/* For metrics. Counts since the start. */
struct reload_counts {
    uint64_t taken;     /* valid, and at least one setting changed */
    uint64_t unchanged; /* valid, and nothing changed */
    uint64_t refused;   /* logged as invalid; retries of one file count once */
    uint64_t taken_ns;  /* Unix time of the last valid one, 0: none */
    unsigned waiting;   /* settings of the last valid one that need a restart */
    bool bad;           /* the last one was invalid */
};

/* Blocks SIGHUP. Call it first in main: a SIGHUP then stays pending until reload_new. */
void reload_block(void);

/* Installs the handler of SIGHUP. All that `parts` points to must live until reload_stop. */
enum errc reload_new(const struct reload_settings *s, struct reload **ret, struct err *reterr)
    _must_use_;
/* From now on a SIGHUP is ignored. r may be NULL. */
void reload_stop(struct reload *r);
/*
 * Call it when no part uses a string of the first configuration any more. Does not free the
 * configuration in force. Returns NULL.
 */
struct reload *reload_free(struct reload *r);

const struct reload_counts *reload_counts(const struct reload *r);

/* Sets the format and the level of the log. */
void reload_set_log(const struct config *c);
