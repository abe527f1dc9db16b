/*
 * The configuration is read anew on SIGHUP, and when the content of the --config file has changed;
 * certificates, keys, CAs and tokens are as well on SIGHUP, beside what guard.h does by itself. A
 * configuration that is no good is refused whole, with one line of the log: what was there stays.
 * Of a good one each setting that may change takes effect at once, with a line for each; those that
 * want a restart are named in a warning, and stay.
 *
 * A file that was refused is tried again every few seconds, since what is wrong may be a file that
 * it names. Once the process is on its way out nothing is read any more.
 */
#pragma once

#include "settings.h"

struct reload;

struct reload_settings {
    const struct settings *settings; /* what is not there yet may come until the loop runs */
    struct config *config; /* in force; what is new is written there, by us alone from now on */
    int argc;
    char *const *argv; /* borrowed, as what env views is */
    struct config_env env;
    uint64_t
        look_ms; /* how often the file is looked at, and how long it must have rested; 0: ours */
    uint64_t rest_ms;
};

/* For whoever counts; all since the start. */
struct reload_counts {
    uint64_t taken;     /* with at least one setting that has changed */
    uint64_t unchanged; /* good, and nothing of it new */
    uint64_t refused;   /* told in the log: a file that is tried again counts once */
    uint64_t taken_ns;  /* Unix time of the last good one, 0: none */
    unsigned waiting;   /* settings of the last good one that want a restart */
    bool bad;           /* the last one was refused */
};

/* First thing of all: a SIGHUP from then on waits until somebody can listen. */
void reload_block(void);

/* Takes the signal. All that `settings` names must live until reload_stop. */
enum errc reload_new(const struct reload_settings *s, struct reload **ret, struct err *reterr)
    _must_use_;
/* A signal that comes later is ignored. NULL: nothing */
void reload_stop(struct reload *r);
/* When nobody has a string of a configuration any more; the last one stays whole. Returns NULL. */
struct reload *reload_free(struct reload *r);

const struct reload_counts *reload_counts(const struct reload *r);
