/* What a new configuration may change, and a running program that gets one. */
#include "daemon/config/config_reload.h"
#include "daemon/config/config_table.h"
#include "fail_alloc.h"
#include "reload_rig.h"

/* ---- settings that need a restart ---- */

static const char *const live[] = {"log-level"};
static const char *const files[] = {
    "tls-cert-file", "tls-key-file", "client-ca-file", "client-names", "token-file",
};
/* docs/reload.md has the reason for each. */
static const char *const restart[] = {
    "listen-address", "port",       "allow-plain-http", "probe-address",
    "probe-port",     "kubeconfig", "cluster",          "max-connections",
    "leader-elect",   "log-format", "shortlist",
};

static void all_are(const char *const *names, size_t n, enum config_change change)
{
    for (size_t i = 0; i < n; i++) {
        enum config_row row = CONFIG_ROW_COUNT;
        ck_assert_msg(config_find(str_of(names[i]), &row), "no %s", names[i]);
        ck_assert_msg(config_change_of(row) == change, "%s: %s", names[i],
                      config_change_name(config_change_of(row)));
    }
}

TEST(what_may_change)
{
    size_t n_live = 0;
    size_t n_files = 0;
    all_are(live, COUNT_OF(live), CONFIG_LIVE);
    all_are(files, COUNT_OF(files), CONFIG_FILE);
    all_are(restart, COUNT_OF(restart), CONFIG_RESTART);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        n_live += config_change_of((enum config_row)i) == CONFIG_LIVE ? 1 : 0;
        n_files += config_change_of((enum config_row)i) == CONFIG_FILE ? 1 : 0;
    }
    ck_assert_uint_eq(n_live, COUNT_OF(live));
    ck_assert_uint_eq(n_files, COUNT_OF(files));
}

/* docs/reload.md has a row for each setting, which must say the same. */
TEST(the_document_is_the_table)
{
    const char *root = getenv("CARDPACK_SOURCE");
    struct err err = ERR_INIT;
    struct buf text;
    char path[4096];
    ck_assert_msg(root != NULL, "CARDPACK_SOURCE is not set: run it through meson test");
    (void)snprintf(path, sizeof(path), "%s/docs/reload.md", root);
    buf_init(&text, LIMIT_FILE_BYTES);
    ck_assert_ok(config_read_file(NULL, str_of(path), &text, &err), &err);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        char row[128];
        (void)snprintf(row, sizeof(row), "\n| `%s` | %s |", config_table[i].name,
                       config_change_name(config_change_of((enum config_row)i)));
        ck_assert_msg(strstr(buf_cstr(&text), row) != NULL, "docs/reload.md has no%s", row);
    }
    buf_done(&text);
}

/* ---- two configurations ---- */

struct source {
    const char *text; /* NULL: the file does not exist */
};

static enum errc read_source(void *ctx, struct str path, struct buf *out, struct err *reterr)
{
    const struct source *s = ctx;
    if (s->text == NULL)
        return err_set(reterr, ERR_NOTFOUND, "%.*s: No such file or directory", STR_ARG(path));
    buf_put(out, str_of(s->text));
    return buf_failed(out) ? err_set(reterr, ERR_NOMEM, "out of memory") : OK;
}

static const struct config_env no_env;

static enum errc parse(const char *text, struct config *ret, struct err *e)
{
    char name[] = "cardpack";
    char flag[] = "--config=f";
    char *argv[] = {name, flag};
    struct source source = {text};
    return config_parse(2, argv, &no_env, read_source, &source, ret, e);
}

#define TLS_LINES "tls-cert-file: /c\ntls-key-file: /k\n"

static const struct {
    const char *before;
    const char *after;
    const char *changes; /* "row " for each changed setting that takes effect */
    const char *waits;
} merges[] = {
    {"port: 1", "port: 1", "", ""},
    {"", "port: 39999", "", ""}, /* the same value from another source */
    {"port: 1", "port: 2", "", "port "},
    {"log-level: warn", "", "log-level ", ""},
    {"shortlist: 3\nport: 1", "shortlist: 4\nport: 2\nlog-level: warn", "log-level ",
     "port shortlist "},
    {TLS_LINES, "tls-cert-file: /other\ntls-key-file: /k\n", "tls-cert-file ", ""},
    {TLS_LINES, "", "", "tls-cert-file tls-key-file "},
    {"", TLS_LINES, "", "tls-cert-file tls-key-file "},
    {"token-file: /t", "token-file: /u", "token-file ", ""},
    {"token-file: /t", "", "", "token-file "},
    {"", "token-file: /t", "", "token-file "},
    {TLS_LINES "client-ca-file: /a\nclient-names: x", TLS_LINES "client-ca-file: /a\n", "",
     "client-names "},
    {TLS_LINES "client-ca-file: /a\nclient-names: x",
     TLS_LINES "client-ca-file: /b\nclient-names: x,y", "client-ca-file client-names ", ""},
    /* Each is valid by itself; together the token would be sent in the clear. */
    {TLS_LINES "token-file: /t\nlisten-address: 0.0.0.0", "token-file: /t", "",
     "listen-address tls-cert-file tls-key-file "},
    {"leader-elect: false", "leader-elect-lease-duration: 20s", "",
     "leader-elect leader-elect-lease-duration "},
};

static void list(const struct config_merge *m, enum config_verdict v, struct buf *out)
{
    buf_clear(out, 4096);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        if (m->verdicts[i] == v)
            buf_printf(out, "%s ", config_table[i].name);
    }
}

TEST_EACH(merged, COUNT_OF(merges))
{
    struct err e = ERR_INIT;
    struct config running;
    struct config fresh;
    struct config asked;
    struct config_merge m;
    struct buf text;
    buf_init(&text, 4096);
    ck_assert_ok(parse(merges[_i].before, &running, &e), &e);
    ck_assert_ok(parse(merges[_i].after, &fresh, &e), &e);
    ck_assert_ok(parse(merges[_i].after, &asked, &e), &e);
    ck_assert_ok(config_merge(&running, &fresh, &m, &e), &e);
    list(&m, CONFIG_CHANGES, &text);
    ck_assert_str_is(buf_str(&text), merges[_i].changes);
    list(&m, CONFIG_WAITS, &text);
    ck_assert_str_is(buf_str(&text), merges[_i].waits);
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        enum config_row row = (enum config_row)i;
        const struct config *from = m.verdicts[i] == CONFIG_WAITS ? &running : &asked;
        struct config_value is = config_get(&fresh, row);
        struct config_value wanted = config_get(from, row);
        struct config_value said = config_get(&asked, row);
        ck_assert(is.number == wanted.number && str_eq(is.text, wanted.text));
        ck_assert(m.asked[i].number == said.number && str_eq(m.asked[i].text, said.text));
    }
    config_done(&running); /* no text of it is shared */
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        struct config_value v = config_get(&fresh, (enum config_row)i);
        config_value_print(config_table[i].type, &v, &text);
    }
    buf_done(&text);
    config_done(&fresh);
    config_done(&asked);
}

/* ---- a program ---- */

TEST(a_signal_takes_the_file)
{
    struct rig r;
    rig_open(&r, "log-level: debug\n");
    hang_up(&r);
    ck_assert_uint_eq(reload_counts(r.reload)->unchanged, 1);
    ck_assert_uint_eq(told(&r, "nothing to change"), 1);
    put(r.path, "log-level: error\nport: 1234\nshortlist: 5\n");
    hang_up(&r);
    ck_assert_uint_eq(reload_counts(r.reload)->taken, 1);
    ck_assert_uint_eq(reload_counts(r.reload)->waiting, 2);
    ck_assert_uint_eq(r.config.port, 39999);
    ck_assert_uint_eq(r.config.shortlist, 0);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_ERROR);
    ck_assert(!log_enabled(LOG_LEVEL_WARN));
    /* With the earlier level, where that logs more. */
    ck_assert_uint_eq(told(&r, "\"msg\":\"setting changed\",\"setting\":\"log-level\",\"old\":"
                               "\"debug\",\"new\":\"error\",\"source\":\"file\""),
                      1);
    ck_assert_uint_eq(told(&r, "a change of this setting needs a restart; the old value stays in "
                               "force\",\"setting\":\"port\",\"old\":"
                               "\"39999\",\"new\":\"1234\",\"source\":\"file\""),
                      1);
    ck_assert_uint_eq(told(&r, "setting changed"), 1);
    rig_close(&r);
}

static const struct {
    const char *text; /* NULL: the file is gone */
    const char *error;
} bad[] = {
    {"log-level: warn\nprot: 1\n", "prot: unknown key, did you mean"},
    {"port: 1\nlog-level: loud\n", "log-level: \\\"loud\\\": must be debug"},
    {"log-level: warn\nlisten-address: 0.0.0.0\n",
     "is not loopback, and the port speaks plain HTTP"},
    {"log-level: warn\nlog-level: error\n", "the key \\\"log-level\\\" is there already"},
    {"log-level: [", "config file"},
    {NULL, "No such file or directory"},
};

TEST_EACH(a_bad_one_changes_nothing, COUNT_OF(bad))
{
    struct rig r;
    rig_open(&r, "log-level: debug\n");
    hang_up(&r);
    if (bad[_i].text == NULL)
        ck_assert_int_eq(unlink(r.path), 0);
    else
        put(r.path, bad[_i].text);
    await_total(&r, 2); /* without a signal, and once for any number of looks */
    for (int i = 0; i < 30; i++)
        turn(&r);
    ck_assert_uint_eq(total(&r), 2);
    ck_assert_uint_eq(told(&r, "cannot be used"), 1);
    ck_assert_uint_eq(told(&r, bad[_i].error), 1);
    hang_up(&r); /* a signal logs it again */
    ck_assert_uint_eq(told(&r, bad[_i].error), 2);
    ck_assert_uint_eq(reload_counts(r.reload)->refused, 2);
    ck_assert(reload_counts(r.reload)->bad);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_DEBUG);
    put(r.path, "log-level: debug\n");
    await_total(&r, 4);
    ck_assert(!reload_counts(r.reload)->bad);
    put(r.path, "log-level: error\n");
    await_total(&r, 5);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_ERROR);
    rig_close(&r);
}

/* Neither a touch nor a first look is a change; the same settings in other words are reported. */
TEST(the_content_counts)
{
    struct rig r;
    rig_open(&r, "log-level: debug\n");
    for (int i = 0; i < 30; i++)
        turn(&r);
    put(r.path, "log-level: debug\n");
    for (int i = 0; i < 30; i++)
        turn(&r);
    ck_assert_uint_eq(total(&r), 0);
    put(r.path, "log-level: debug # as it was\n");
    await_total(&r, 1);
    ck_assert_uint_eq(reload_counts(r.reload)->unchanged, 1);
    rig_close(&r);
}

TEST(on_the_way_out)
{
    struct rig r;
    rig_open(&r, "log-level: debug\n");
    put(r.path, "log-level: error\n");
    reload_stop(r.reload);
    ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
    run_while(r.http.loop, told(&r, "SIGHUP is ignored") == 0);
    ck_assert_uint_eq(total(&r), 0);
    ck_assert_int_eq(r.config.log_level, LOG_LEVEL_DEBUG);
    rig_close(&r);
}

TEST(no_memory)
{
    bool hit = true;
    struct rig r;
    rig_open(&r, "log-level: debug\n");
    for (size_t nth = 1; hit; nth++) {
        put(r.path, nth % 2 == 0 ? "log-level: warn\nport: 7\n" : "log-level: info\n");
        enum log_level before = r.config.log_level;
        uint64_t n = total(&r);
        ck_assert_int_eq(kill(getpid(), SIGHUP), 0);
        fail_alloc_arm(FAIL_FROM_THEN_ON, nth);
        run_while(r.http.loop, total(&r) == n);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        enum log_level fresh = nth % 2 == 0 ? LOG_LEVEL_WARN : LOG_LEVEL_INFO;
        ck_assert_int_eq(r.config.log_level, hit ? before : fresh);
        ck_assert(log_enabled(r.config.log_level));
    }
    rig_close(&r);
}
