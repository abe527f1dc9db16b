/* The table as data, access to the fields by row, and suggestions for misspelled names. */
#include "daemon/config/config_table.h"

const struct config_spec config_table[CONFIG_ROW_COUNT] = {
#define CONFIG_X(type, field, name, text, min, max, environment, help) \
    {CONFIG_##type, name, text, min, max, environment, help, offsetof(struct config, field)},
    CONFIG_ROWS(CONFIG_X)
#undef CONFIG_X
};

/* Flags that are not settings. */
static const char *const other_flags[] = {"config", "check-config", "help", "version"};

#define NAME_MAX_BYTES ((size_t)40)

struct config_value config_get(const struct config *c, enum config_row row)
{
    const void *field = (const char *)c + config_table[row].offset;
    struct config_value v = {.text = STR_NULL};
    switch (config_table[row].type) {
    case CONFIG_ADDRESS:
    case CONFIG_PATH:
    case CONFIG_NAME:
    case CONFIG_NAMES:
        v.text = *(const struct str *)field;
        break;
    case CONFIG_PORT:
        v.number = *(const uint16_t *)field;
        break;
    case CONFIG_DURATION:
        v.number = *(const uint64_t *)field;
        break;
    case CONFIG_SIZE:
        v.number = *(const size_t *)field;
        break;
    case CONFIG_COUNT:
        v.number = *(const unsigned *)field;
        break;
    case CONFIG_BOOL:
        v.number = *(const bool *)field ? 1 : 0;
        break;
    case CONFIG_LOG_LEVEL:
        v.number = *(const enum log_level *)field;
        break;
    case CONFIG_LOG_FORMAT:
        v.number = *(const enum config_log_format *)field;
        break;
    case CONFIG_PACK:
        v.number = *(const enum pack *)field;
        break;
    case CONFIG_SWAP_GUARD:
        v.number = *(const enum swap_guard *)field;
        break;
    }
    return v;
}

void config_put(struct config *c, enum config_row row, const struct config_value *v)
{
    void *field = (char *)c + config_table[row].offset;
    switch (config_table[row].type) {
    case CONFIG_ADDRESS:
    case CONFIG_PATH:
    case CONFIG_NAME:
    case CONFIG_NAMES:
        *(struct str *)field = v->text;
        break;
    case CONFIG_PORT:
        *(uint16_t *)field = (uint16_t)v->number;
        break;
    case CONFIG_DURATION:
        *(uint64_t *)field = v->number;
        break;
    case CONFIG_SIZE:
        *(size_t *)field = (size_t)v->number;
        break;
    case CONFIG_COUNT:
        *(unsigned *)field = (unsigned)v->number;
        break;
    case CONFIG_BOOL:
        *(bool *)field = v->number != 0;
        break;
    case CONFIG_LOG_LEVEL:
        *(enum log_level *)field = (enum log_level)v->number;
        break;
    case CONFIG_LOG_FORMAT:
        *(enum config_log_format *)field = (enum config_log_format)v->number;
        break;
    case CONFIG_PACK:
        *(enum pack *)field = (enum pack)v->number;
        break;
    case CONFIG_SWAP_GUARD:
        *(enum swap_guard *)field = (enum swap_guard)v->number;
        break;
    }
}

bool config_find(struct str name, enum config_row *ret)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        if (str_eq(name, str_of(config_table[i].name))) {
            *ret = (enum config_row)i;
            return true;
        }
    }
    return false;
}

/* Levenshtein distance: letters to insert, delete or replace. Both at most NAME_MAX_BYTES long. */
static size_t config_table_distance(struct str a, struct str b)
{
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t replaced = diagonal + (a.p[i - 1] == b.p[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = MIN_OF(replaced, MIN_OF(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.n];
}

static void config_table_nearer(struct str name, const char *candidate, size_t *best,
                                const char **ret)
{
    struct str c = str_of(candidate);
    assert(c.n <= NAME_MAX_BYTES);
    size_t d = config_table_distance(name, c);
    if (d < *best) {
        *best = d;
        *ret = candidate;
    }
}

const char *config_nearest(struct str name, bool flags)
{
    const char *found = NULL;
    if (name.n > NAME_MAX_BYTES)
        return NULL;
    /* At most a third of the letters may differ, or two of a short name: more would be a guess. */
    size_t best = MAX_OF(name.n / 3, (size_t)2) + 1;
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++)
        config_table_nearer(name, config_table[i].name, &best, &found);
    for (size_t i = 0; flags && i < COUNT_OF(other_flags); i++)
        config_table_nearer(name, other_flags[i], &best, &found);
    return found;
}

static const enum config_change changes[CONFIG_ROW_COUNT] = {
    [CONFIG_ROW_tls_cert_file] = CONFIG_FILE,  [CONFIG_ROW_tls_key_file] = CONFIG_FILE,
    [CONFIG_ROW_client_ca_file] = CONFIG_FILE, [CONFIG_ROW_client_names] = CONFIG_FILE,
    [CONFIG_ROW_token_file] = CONFIG_FILE,     [CONFIG_ROW_log_level] = CONFIG_LIVE,
};

enum config_change config_change_of(enum config_row row)
{
    return changes[row];
}

const char *config_change_name(enum config_change change)
{
    switch (change) {
    case CONFIG_RESTART:
        return "restart";
    case CONFIG_FILE:
        return "file";
    case CONFIG_LIVE:
        return "live";
    }
    return "";
}

const char *config_source_name(enum config_source source)
{
    switch (source) {
    case CONFIG_FROM_DEFAULT:
        return "default";
    case CONFIG_FROM_FILE:
        return "file";
    case CONFIG_FROM_ENVIRONMENT:
        return "environment";
    case CONFIG_FROM_FLAG:
        return "flag";
    }
    return "";
}
