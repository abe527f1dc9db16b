/* The table of config.h as data; for config*.c only. */
#pragma once

#include "daemon/config/config.h"

struct config_spec {
    enum config_type type;
    const char *name;
    const char *text; /* the default */
    uint64_t min;
    uint64_t max;
    const char *environment; /* NULL: none */
    const char *help;
    size_t offset; /* of the field in struct config */
};

extern const struct config_spec config_table[CONFIG_ROW_COUNT];

struct config_value config_get(const struct config *c, enum config_row row);
void config_put(struct config *c, enum config_row row, const struct config_value *v);

/* Finds the row of that name. */
bool config_find(struct str name, enum config_row *ret);

/*
 * The name that is most similar, if it is similar enough; NULL: none. Names are those of settings;
 * with `flags` also --help and the like.
 */
const char *config_nearest(struct str name, bool flags);

/* When a change of that setting takes effect. */
enum config_change {
    CONFIG_RESTART, /* at the next start; the default kind */
    CONFIG_FILE,    /* at once from one value to another; set or removed at the next start */
    CONFIG_LIVE,    /* at once */
};

enum config_change config_change_of(enum config_row row);

/* "restart", "file", "live": for logs and --help. */
const char *config_change_name(enum config_change change);

/* Checks that the settings of the port are consistent. */
enum errc config_check_port(const struct config *c, struct err *reterr) _must_use_;
