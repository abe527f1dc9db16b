/* The table of config.h as data; for config*.c only. */
#pragma once

#include "config.h"

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

/* The row of that name. */
bool config_find(struct str name, enum config_row *ret);

/* The nearest name that is near enough to be meant: a row's, with `flags` also --help and its like;
 * NULL if none is. */
const char *config_nearest(struct str name, bool flags);

/* Whether the settings of the port go together. */
enum errc config_check_port(const struct config *c, struct err *reterr) _must_use_;
