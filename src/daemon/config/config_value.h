/*
 * The types of settings: how their text is parsed, checked and printed. Printed text parses to the
 * same value.
 */
#pragma once

#include "base/buf.h"

enum config_type {
    CONFIG_ADDRESS,    /* an IPv4 or IPv6 address, not a host name */
    CONFIG_PORT,       /* a number */
    CONFIG_PATH,       /* any text, "" for none */
    CONFIG_NAME,       /* a Kubernetes object's name; min and max bound its length */
    CONFIG_NAMES,      /* "a,b", "" for none */
    CONFIG_RESOURCES,  /* of core/dialect/card_resources.h: "a.com/gpu,b.com/mig-*", "" for none */
    CONFIG_DURATION,   /* "30s", "1m30s", "500ms", "0"; kept in ms */
    CONFIG_SIZE,       /* "32MiB", "64KiB", "1GiB", "4096"; kept in bytes */
    CONFIG_COUNT,      /* a number */
    CONFIG_BOOL,       /* "true", "false" */
    CONFIG_LOG_LEVEL,  /* of enum log_level */
    CONFIG_LOG_FORMAT, /* of enum config_log_format */
    CONFIG_POLICY,     /* of enum policy: the names in core/request/policy.h */
    CONFIG_SWAP_GUARD, /* of enum swap_guard: "off", "prefer", "require" */
    CONFIG_DIALECTS,   /* "gpushare,volcano"; kept as a set of enum dialect */
    CONFIG_DRA,        /* of enum config_dra */
};

enum config_log_format {
    CONFIG_LOG_FORMAT_AUTO, /* logfmt on a terminal, else JSON */
    CONFIG_LOG_FORMAT_LOGFMT,
    CONFIG_LOG_FORMAT_JSON,
};

enum config_dra {
    CONFIG_DRA_OFF,
    CONFIG_DRA_AUTO,
    CONFIG_DRA_ON,
};

struct config_value {
    struct str text; /* of text types (address, path, name, names, resources); borrowed */
    uint64_t number; /* of all others: number, ms, bytes, 0 or 1, enum */
};

/*
 * min and max bound a number, port, duration (ms) and size (bytes). An error quotes the text:
 * "\"99999\": must be 0 to 65535".
 */
enum errc config_value_parse(enum config_type type, struct str text, uint64_t min, uint64_t max,
                             struct config_value *ret, struct err *reterr) _must_use_;

/* Prints the value as a YAML scalar. */
void config_value_print(enum config_type type, const struct config_value *v, struct buf *out);

/* The placeholder for a value in the usage: "ADDRESS", "DURATION", "debug|info|warn|error". */
const char *config_type_name(enum config_type type);
