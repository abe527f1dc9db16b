/*
 * The first line has flags, separated by spaces; the rest is the file that --config names. The
 * resulting configuration must be equal after writing and reading again; a failure must have an
 * error text.
 */
#include "daemon/config/config_table.h"
#include "rules.h"

#define ARGS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum errc read_text(void *ctx, struct str path, struct buf *out, struct err *reterr)
{
    (void)path;
    (void)reterr;
    buf_put(out, *(const struct str *)ctx);
    return OK;
}

/* YAML can't hold a path that is not UTF-8. */
static bool is_utf8(struct str s)
{
    json_t *text = json_stringn(s.p, s.n);
    bool good = text != NULL;
    json_decref(text);
    return good;
}

static void read_back(const struct config *c)
{
    char program[] = "cardpack";
    char flag[] = "--config=x";
    char *argv[] = {program, flag, NULL};
    struct buf text;
    struct config again;
    struct err err = ERR_INIT;
    const struct config_env none = {.port = STR_NULL};
    buf_init(&text, MIB);
    config_print(c, &text);
    struct str file = buf_str(&text);
    enum errc code = config_parse(2, argv, &none, read_text, &file, &again, &err);
    if (code != OK)
        (void)fprintf(stderr, "%s\n%.*s", err.text, STR_ARG(file));
    check(code == OK, "what is printed can be read");
    for (int row = 0; row < CONFIG_ROW_COUNT; row++) {
        struct config_value a = config_get(c, (enum config_row)row);
        struct config_value b = config_get(&again, (enum config_row)row);
        check(a.number == b.number && (str_eq(a.text, b.text) || !is_utf8(a.text)),
              "and is the same");
    }
    config_done(&again);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str flags;
    struct str file;
    struct str one;
    struct config c;
    struct err err = ERR_INIT;
    char *argv[ARGS_MAX] = {NULL};
    int argc = 1;
    const struct config_env env = {.port = STR("1"), .log_level = STR("debug")};
    (void)str_cut((struct str){(const char *)data, size}, '\n', &flags, &file);
    while (flags.n > 0 && argc < ARGS_MAX - 1) {
        (void)str_cut(flags, ' ', &one, &flags);
        argv[argc] = calloc(1, one.n + 1);
        check(argv[argc] != NULL, "there is memory");
        memcpy(argv[argc++], one.p, one.n);
    }
    enum errc code = config_parse(argc, argv, &env, read_text, &file, &c, &err);
    check((code == OK) == (err.text[0] == '\0'), "an error says why");
    if (code == OK) {
        if (c.action == CONFIG_RUN || c.action == CONFIG_CHECK)
            read_back(&c);
        config_done(&c);
    }
    for (int i = 1; i < argc; i++)
        free(argv[i]);
    return 0;
}
