/* Parses and prints the values of each type of setting. */
#include "daemon/config/config_value.h"

#include "base/value.h"
#include "core/dialect/card_resources.h"
#include "core/dialect/dialect.h"
#include "core/request/policy.h"
#include "json/jwrite.h"

static enum errc config_value_must_be(struct err *e, struct str text, const char *what)
{
    return err_set(e, ERR_RANGE, "\"%.*s\": must be %s", STR_ARG(text), what);
}

/* A type with a few fixed words, which its name lists: those of an enum are in its order. */
static enum errc config_value_parse_word(enum config_type type, struct str text, uint64_t *ret,
                                         struct err *reterr)
{
    char bytes[64];
    struct buf all = BUF_ON(bytes);
    unsigned i = 0;
    if (value_read_word(text, config_type_name(type), &i)) {
        *ret = type == CONFIG_BOOL ? i == 0 : type == CONFIG_POLICY ? i + POLICY_BINPACK : i;
        return OK;
    }
    value_put_words(&all, config_type_name(type));
    return config_value_must_be(reterr, text, buf_cstr(&all));
}

static enum errc config_value_parse_dialects(struct str text, uint64_t *ret, struct err *reterr)
{
    unsigned set = 0;
    struct str bad;
    if (!dialects_parse(text, &set, &bad))
        return config_value_must_be(reterr, text,
                                    "one or more of gpushare, volcano, elastic, tencent, "
                                    "volcano-vgpu and hami, with commas");
    *ret = set;
    return OK;
}

static enum errc config_value_parse_resources(struct str text, struct config_value *ret,
                                              struct err *reterr)
{
    struct str bad;
    if (!card_resources_check(text, &bad))
        return config_value_must_be(reterr, bad, CARD_RESOURCES_EXPECTED);
    *ret = (struct config_value){.text = text};
    return OK;
}

static bool config_value_parse_names(struct str text)
{
    for (struct str name, rest = text; rest.p != NULL && text.n > 0;) {
        (void)str_cut(rest, ',', &name, &rest);
        if (str_trim(name).n == 0 || memchr(name.p, '\0', name.n) != NULL)
            return false;
    }
    return true;
}

static void config_value_print_number(enum config_type type, uint64_t number, struct buf *out);

static enum errc config_value_check_range(enum config_type type, struct str text, uint64_t number,
                                          uint64_t min, uint64_t max, struct err *reterr)
{
    if (number >= min && number <= max)
        return OK;
    struct buf range;
    buf_init(&range, 256);
    config_value_print_number(type, min, &range);
    buf_put(&range, STR(" to "));
    config_value_print_number(type, max, &range);
    const char *z = buf_cstr(&range);
    enum errc code = config_value_must_be(reterr, text, z == NULL ? "within its range" : z);
    buf_done(&range);
    return code;
}

enum errc config_value_parse(enum config_type type, struct str text, uint64_t min, uint64_t max,
                             struct config_value *ret, struct err *reterr)
{
    struct config_value v = {.text = text};
    unsigned char address[16];
    switch (type) {
    case CONFIG_ADDRESS:
        if (value_read_address(text, address) == 0)
            return config_value_must_be(reterr, text, "an IPv4 or IPv6 address");
        break;
    case CONFIG_PATH:
        if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
            return config_value_must_be(reterr, text, "a path without NUL");
        break;
    case CONFIG_NAME:
        if (text.n < min || text.n > max || (text.n > 0 && !value_is_dns_name(text)))
            return config_value_must_be(reterr, text,
                                        "a name of lower-case letters, digits, '-' and '.'");
        break;
    case CONFIG_NAMES:
        if (!config_value_parse_names(text))
            return config_value_must_be(reterr, text,
                                        "names with one comma between each two, or empty");
        break;
    case CONFIG_RESOURCES:
        return config_value_parse_resources(text, ret, reterr);
    case CONFIG_DURATION:
        if (!value_read_duration(text, &v.number))
            return config_value_must_be(reterr, text, "a duration such as 30s, 1m30s or 500ms");
        break;
    case CONFIG_SIZE:
        if (!value_read_size(text, &v.number))
            return config_value_must_be(reterr, text,
                                        "a size such as 32MiB, 64KiB or a number of bytes");
        break;
    case CONFIG_PORT:
    case CONFIG_COUNT:
        if (!str_to_u64(text, UINT64_MAX, &v.number))
            return config_value_must_be(reterr, text, "a number");
        break;
    case CONFIG_BOOL:
    case CONFIG_LOG_LEVEL:
    case CONFIG_LOG_FORMAT:
    case CONFIG_POLICY:
    case CONFIG_SWAP_GUARD:
    case CONFIG_DRA:
        if (config_value_parse_word(type, text, &v.number, reterr) != OK)
            return ERR_RANGE;
        break;
    case CONFIG_DIALECTS:
        if (config_value_parse_dialects(text, &v.number, reterr) != OK)
            return ERR_RANGE;
        break;
    }
    bool ranged = type == CONFIG_DURATION || type == CONFIG_SIZE || type == CONFIG_PORT ||
                  type == CONFIG_COUNT;
    enum errc code = ranged ? config_value_check_range(type, text, v.number, min, max, reterr) : OK;
    if (code == OK)
        *ret = v;
    return code;
}

static void config_value_print_number(enum config_type type, uint64_t number, struct buf *out)
{
    if (type == CONFIG_DURATION)
        value_put_duration(out, number);
    else if (type == CONFIG_SIZE)
        value_put_size(out, number);
    else
        buf_put_u64(out, number);
}

/*
 * Whether s starts with a character that YAML forbids or takes for a line break: its length in
 * bytes, with its code point in *ret; 0: another character.
 */
static size_t config_value_unprintable(struct str s, unsigned *ret)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] == 0x7f) {
        *ret = p[0];
        return 1;
    }
    if (s.n >= 2 && p[0] == 0xc2 && p[1] <= 0x9f) {
        *ret = p[1];
        return 2;
    }
    if (s.n < 3 || (p[0] != 0xe2 && p[0] != 0xef))
        return 0;
    *ret = (p[0] & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
    bool is = *ret == 0x2028 || *ret == 0x2029 || *ret == 0xfeff || *ret >= 0xfffe;
    return is ? 3 : 0;
}

/*
 * Prints text as a JSON string, which is also YAML, and escapes the characters that only JSON
 * allows unescaped.
 */
static void config_value_print_text(struct str text, struct buf *out)
{
    struct jwrite w;
    struct buf json;
    buf_init(&json, out->max);
    jwrite_init(&w, &json);
    jwrite_str(&w, text);
    for (struct str rest = buf_str(&json); rest.n > 0;) {
        unsigned c = 0;
        size_t n = config_value_unprintable(rest, &c);
        if (n > 0)
            buf_printf(out, "\\u%04x", c);
        else
            buf_putc(out, rest.p[0]);
        rest = str_skip(rest, MAX_OF(n, (size_t)1));
    }
    out->failed = out->failed || buf_failed(&json);
    buf_done(&json);
}

void config_value_print(enum config_type type, const struct config_value *v, struct buf *out)
{
    switch (type) {
    case CONFIG_ADDRESS:
    case CONFIG_PATH:
    case CONFIG_NAME:
    case CONFIG_NAMES:
    case CONFIG_RESOURCES:
        config_value_print_text(v->text, out);
        break;
    case CONFIG_DURATION:
    case CONFIG_SIZE:
    case CONFIG_PORT:
    case CONFIG_COUNT:
        config_value_print_number(type, v->number, out);
        break;
    case CONFIG_BOOL:
        buf_put(out, v->number != 0 ? STR("true") : STR("false"));
        break;
    case CONFIG_LOG_LEVEL:
    case CONFIG_LOG_FORMAT:
    case CONFIG_SWAP_GUARD:
    case CONFIG_DRA:
        buf_put(out, value_word(config_type_name(type), (unsigned)v->number));
        break;
    case CONFIG_POLICY:
        buf_put(out, str_of(policy_name((enum policy)v->number)));
        break;
    case CONFIG_DIALECTS:
        dialects_write((unsigned)v->number, out);
        break;
    }
}

const char *config_type_name(enum config_type type)
{
    switch (type) {
    case CONFIG_ADDRESS:
        return "ADDRESS";
    case CONFIG_PORT:
        return "PORT";
    case CONFIG_PATH:
        return "FILE";
    case CONFIG_NAME:
        return "NAME";
    case CONFIG_NAMES:
        return "NAME,...";
    case CONFIG_RESOURCES:
        return "RESOURCE,...";
    case CONFIG_DURATION:
        return "DURATION";
    case CONFIG_SIZE:
        return "SIZE";
    case CONFIG_COUNT:
        return "NUMBER";
    case CONFIG_BOOL:
        return "true|false";
    case CONFIG_LOG_LEVEL:
        return "debug|info|warn|error";
    case CONFIG_LOG_FORMAT:
        return "auto|logfmt|json";
    case CONFIG_POLICY:
        return POLICY_WORDS;
    case CONFIG_SWAP_GUARD:
        return "off|prefer|require";
    case CONFIG_DIALECTS:
        return "DIALECT,...";
    case CONFIG_DRA:
        return "off|auto|on";
    }
    return "";
}
