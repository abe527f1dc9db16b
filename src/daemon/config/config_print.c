/* Prints the configuration and the help text from the table. */
#include "daemon/config/config.h"
#include "daemon/config/config_table.h"

#define WRAP_AT ((size_t)80)

/* Writes a YAML comment that lists the settings of that kind of change. */
static void config_print_put_changes(struct buf *out, enum config_change change, struct str what)
{
    buf_printf(out, "# %s (%.*s):", config_change_name(change), STR_ARG(what));
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        if (config_change_of((enum config_row)i) == change)
            buf_printf(out, " %s", config_table[i].name);
    }
    buf_putc(out, '\n');
}

void config_print(const struct config *c, struct buf *out)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        struct config_value v = config_get(c, (enum config_row)i);
        buf_printf(out, "%s: ", config_table[i].name);
        config_value_print(config_table[i].type, &v, out);
        if (c->sources[i] != CONFIG_FROM_DEFAULT)
            buf_printf(out, " # %s", config_source_name(c->sources[i]));
        buf_putc(out, '\n');
    }
    config_print_put_changes(out, CONFIG_LIVE, STR("a change takes effect at once"));
    config_print_put_changes(
        out, CONFIG_FILE,
        STR("another value takes effect at once; to add or remove one needs a restart"));
    config_print_put_changes(out, CONFIG_RESTART, STR("a change needs a restart"));
}

/* Writes text as indented lines, broken at spaces. */
static void config_print_put_wrapped(struct buf *out, struct str text)
{
    size_t column = 0;
    for (struct str word, rest = text; rest.p != NULL;) {
        (void)str_cut(rest, ' ', &word, &rest);
        if (column == 0 || column + 1 + word.n > WRAP_AT) {
            buf_put(out, column == 0 ? STR("      ") : STR("\n      "));
            column = 6;
        } else {
            buf_putc(out, ' ');
            column++;
        }
        buf_put(out, word);
        column += word.n;
    }
    buf_putc(out, '\n');
}

static void config_print_put_row(struct buf *out, enum config_row row)
{
    const struct config_spec *spec = &config_table[row];
    struct buf text;
    buf_init(&text, LIMIT_FILE_BYTES);
    buf_printf(&text, "%s (default %s", spec->help, spec->text[0] == '\0' ? "none" : spec->text);
    if (spec->environment != NULL)
        buf_printf(&text, "; environment %s", spec->environment);
    buf_printf(&text, "; %s)", config_change_name(config_change_of(row)));
    buf_printf(out, "  --%s %s\n", spec->name, config_type_name(spec->type));
    config_print_put_wrapped(out, buf_str(&text));
    buf_done(&text);
}

void config_usage(struct buf *out)
{
    buf_put(out,
            STR("Usage: cardpack [--FLAG VALUE | --FLAG=VALUE]...\n"
                "\n"
                "A Kubernetes scheduler extender that packs pods onto GPU cards.\n"
                "\n"
                "A flag overrides the environment, the environment overrides the file, and the\n"
                "file overrides the default.\n"
                "\n"
                "cardpack reads the file again on SIGHUP, and when the file changes. A setting\n"
                "marked \"live\" takes effect at once. So does a setting marked \"file\", but it\n"
                "can't be added or removed. A setting marked \"restart\" keeps its value until\n"
                "cardpack is restarted.\n"
                "\n"
                "  --config FILE\n"
                "      YAML or JSON; its keys are the names below\n"
                "  --check-config\n"
                "      print the effective configuration as such a file, and exit\n"
                "  --version\n"
                "  --help, -h\n"
                "\n"));
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++)
        config_print_put_row(out, (enum config_row)i);
}
