/* The table as data, access to the fields by row, and suggestions for misspelled names. */
#include "daemon/config/config_table.h"

#include "base/near.h"

const struct config_spec config_table[CONFIG_ROW_COUNT] = {
#define CONFIG_X(type, field, name, text, min, max, environment, help) \
    {CONFIG_##type, name, text, min, max, environment, help, offsetof(struct config, field)},
    CONFIG_ROWS(CONFIG_X)
#undef CONFIG_X
};

/* Flags that are not settings. */
static const char *const other_flags[] = {"config", "check-config", "help", "version"};

struct config_value config_get(const struct config *c, enum config_row row)
{
    const void *field = (const char *)c + config_table[row].offset;
    struct config_value v = {.text = STR_NULL};
    switch (config_table[row].type) {
    case CONFIG_ADDRESS:
    case CONFIG_PATH:
    case CONFIG_NAME:
    case CONFIG_NAMES:
    case CONFIG_RESOURCES:
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
    case CONFIG_DIALECTS:
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
    case CONFIG_POLICY:
        v.number = *(const enum policy *)field;
        break;
    case CONFIG_SWAP_GUARD:
        v.number = *(const enum swap_guard *)field;
        break;
    case CONFIG_DRA:
        v.number = *(const enum config_dra *)field;
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
    case CONFIG_RESOURCES:
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
    case CONFIG_DIALECTS:
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
    case CONFIG_POLICY:
        *(enum policy *)field = (enum policy)v->number;
        break;
    case CONFIG_SWAP_GUARD:
        *(enum swap_guard *)field = (enum swap_guard)v->number;
        break;
    case CONFIG_DRA:
        *(enum config_dra *)field = (enum config_dra)v->number;
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

const char *config_nearest(struct str name, bool flags)
{
    struct near near = near_to(name);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++)
        near_offer(&near, str_of(config_table[i].name));
    for (size_t i = 0; flags && i < COUNT_OF(other_flags); i++)
        near_offer(&near, str_of(other_flags[i]));
    return near.found.p; /* a whole literal, with its NUL */
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
