/*
 * Decides when to read the configuration again, puts a valid one in force, and logs the result.
 *
 * Checks the file by a stat of its path every five seconds. That also sees a file that an editor
 * renames, and a symbolic link two folders up that the kubelet swaps. inotify would need a watch on
 * every folder of the path, would miss network file systems, and would need one more system call in
 * the seccomp profile in manifests/.
 *
 * A reload depends on the content, not on the file's time. The file is read when its stamp has not
 * changed for two seconds: that is longer than the time resolution of file systems, and longer than
 * an editor leaves a file half written.
 *
 * Any part may hold strings of the first configuration, so its memory stays until reload_free.
 * Strings of later configurations are used by the authentication only, which copies them: only the
 * last one's memory is kept.
 */
#include "daemon/reload.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/authentication.h"
#include "daemon/config/config_reload.h"
#include "daemon/config/config_table.h"
#include "daemon/service.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_MS    5000
#define REST_MS    2000
#define SHOW_BYTES 512

enum trigger {
    BY_SIGNAL,
    BY_FILE,
};

static const char *const trigger_names[] = {[BY_SIGNAL] = "SIGHUP", [BY_FILE] = "file"};

struct reload {
    struct reload_settings s;
    struct reload_counts counts;
    struct timer look;
    struct file_stamp stamp;
    bool rests; /* the file with this stamp was read */
    bool stopped;
    uint64_t content;   /* hash of the content that was read last; 0: none */
    uint64_t logged;    /* hash of the content that was logged last */
    struct err refusal; /* of the last configuration, if counts.bad */
    struct arena first; /* memory of the configuration at the start */
    bool has_first;
};

/* ---- the log ---- */

void reload_set_log(const struct config *c)
{
    bool logfmt = c->log_format == CONFIG_LOG_FORMAT_LOGFMT ||
                  (c->log_format == CONFIG_LOG_FORMAT_AUTO && isatty(STDERR_FILENO) != 0);
    log_never_wait();
    log_setup(STDERR_FILENO, c->log_level, logfmt ? LOG_FORMAT_LOGFMT : LOG_FORMAT_JSON);
}

static struct str reload_show(enum config_row row, const struct config_value *v, struct buf *text)
{
    if (v->text.p != NULL)
        return v->text;
    config_value_print(config_table[row].type, v, text);
    return buf_str(text);
}

static void reload_tell_row(const struct reload *r, const struct config_merge *m,
                            enum config_row row, enum config_source source)
{
    char old_bytes[SHOW_BYTES];
    char new_bytes[SHOW_BYTES];
    struct buf old_text = BUF_ON(old_bytes);
    struct buf new_text = BUF_ON(new_bytes);
    struct config_value was = config_get(r->s.config, row);
    struct kv name = kv_cstr("setting", config_table[row].name);
    struct kv old = kv_str("old", reload_show(row, &was, &old_text));
    struct kv new = kv_str("new", reload_show(row, &m->asked[row], &new_text));
    struct kv from = kv_cstr("source", config_source_name(source));
    if (m->verdicts[row] == CONFIG_CHANGES)
        log_info("setting changed", name, old, new, from);
    else if (m->verdicts[row] == CONFIG_WAITS)
        log_warn("a change of this setting needs a restart; the old value stays in force", name,
                 old, new, from);
}

static void reload_tell_rows(const struct reload *r, const struct config_merge *m,
                             const struct config *fresh)
{
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        bool waits = m->verdicts[i] == CONFIG_WAITS;
        reload_tell_row(r, m, (enum config_row)i, waits ? m->sources[i] : fresh->sources[i]);
    }
}

/* Logs each content and error once; after a SIGHUP always, since its sender waits for a result. */
static void reload_refuse(struct reload *r, enum trigger by, const struct err *why)
{
    bool again =
        r->counts.bad && r->logged == r->content && strcmp(r->refusal.text, why->text) == 0;
    r->counts.bad = true;
    r->logged = r->content;
    r->refusal = *why;
    if (again && by == BY_FILE)
        return;
    r->counts.refused++;
    log_warn("the configuration cannot be used: the one before stays",
             kv_cstr("trigger", trigger_names[by]), kv_cstr("error", why->text));
}

/* ---- a configuration ---- */

static enum errc reload_read_and_note(void *ctx, struct str path, struct buf *out,
                                      struct err *reterr)
{
    struct reload *r = ctx;
    size_t begin = out->n;
    enum errc code = file_read_again(path, out, reterr);
    if (code != OK)
        return code;
    r->content = UINT64_C(14695981039346656037); /* FNV-1a: no attacker gains by a collision */
    for (size_t i = begin; i < out->n; i++)
        r->content = (r->content ^ (unsigned char)out->p[i]) * UINT64_C(1099511628211);
    return OK;
}

static enum errc reload_read_config(struct reload *r, struct config *ret, struct config_merge *m,
                                    struct authentication **ret_authentication, struct err *why)
{
    r->content = 0;
    enum errc code =
        config_parse(r->s.argc, r->s.argv, &r->s.env, reload_read_and_note, r, ret, why);
    if (code != OK)
        return code;
    code = config_merge(r->s.config, ret, m, why);
    if (code == OK)
        code = authentication_draft(r->s.parts->authentication, ret, ret_authentication, why);
    if (code != OK)
        config_done(ret);
    return code;
}

/* Moves *fresh into the configuration in force, and the draft of the authentication into the
 * authentication. */
static void reload_put_in_force(struct reload *r, struct config *fresh,
                                struct authentication *authentication)
{
    struct config *c = r->s.config;
    if (!r->has_first)
        r->first = c->arena;
    else
        arena_done(&c->arena);
    r->has_first = true;
    *c = *fresh;
    authentication_become(r->s.parts->authentication, authentication);
}

static void reload_take(struct reload *r, enum trigger by, struct config *fresh,
                        const struct config_merge *m, struct authentication *authentication)
{
    bool other = r->logged != r->content && (r->logged != 0 || m->changes + m->waits > 0);
    bool news = by == BY_SIGNAL || r->counts.bad || other;
    struct kv trigger = kv_cstr("trigger", trigger_names[by]);
    struct kv waiting = kv_uint("waiting", m->waits);
    /* Logs the changes at the lower of the old and the new log level. */
    if (fresh->log_level < r->s.config->log_level)
        reload_set_log(fresh);
    if (news)
        reload_tell_rows(r, m, fresh);
    reload_put_in_force(r, fresh, authentication);
    if (m->changes > 0)
        log_info("the configuration is reloaded", trigger, kv_uint("changed", m->changes), waiting);
    else if (news)
        log_info("the configuration was read again: nothing to change", trigger, waiting);
    reload_set_log(r->s.config);
    r->logged = r->content;
    r->counts.bad = false;
    r->counts.waiting = m->waits;
    r->counts.taken_ns = loop_wall_ns(r->s.parts->service->loop);
    if (m->changes > 0)
        r->counts.taken++;
    else if (news)
        r->counts.unchanged++;
}

static void reload_consider(struct reload *r, enum trigger by)
{
    struct err why = ERR_INIT;
    struct config fresh;
    struct config_merge merge;
    struct authentication *authentication;
    if (reload_read_config(r, &fresh, &merge, &authentication, &why) == OK)
        reload_take(r, by, &fresh, &merge, authentication);
    else
        reload_refuse(r, by, &why);
}

/* ---- when ---- */

static void reload_on_hangup(void *ctx, int signo)
{
    struct reload *r = ctx;
    (void)signo;
    if (r->stopped) {
        log_info("SIGHUP is ignored: shutting down");
        return;
    }
    reload_consider(r, BY_SIGNAL);
    authentication_refresh(r->s.parts->authentication);
    if (r->s.parts->api != NULL)
        kube_api_refresh(r->s.parts->api);
}

static void reload_looks(struct timer *t)
{
    struct reload *r = CONTAINER_OF(t, struct reload, look);
    struct file_stamp now = file_stamp(r->s.config->file);
    bool moved = !file_stamp_eq(now, r->stamp);
    if (moved) {
        r->stamp = now;
        r->rests = false;
    } else if (!r->rests || r->counts.bad) {
        r->rests = true;
        reload_consider(r, BY_FILE);
    }
    timer_arm(r->s.parts->service->loop, t, r->rests ? r->s.look_ms : r->s.rest_ms);
}

/* ---- life ---- */

void reload_block(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

enum errc reload_new(const struct reload_settings *s, struct reload **ret, struct err *reterr)
{
    struct loop *l = s->parts->service->loop;
    struct reload *r = mem_alloc(sizeof(*r));
    if (r == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    r->s = *s;
    r->s.look_ms = s->look_ms == 0 ? LOOK_MS : s->look_ms;
    r->s.rest_ms = s->rest_ms == 0 ? REST_MS : s->rest_ms;
    r->look.fire = reload_looks;
    enum errc code = loop_signal(l, SIGHUP, reload_on_hangup, r, reterr);
    if (code != OK) {
        mem_free(r);
        return code;
    }
    if (s->config->file.p != NULL && file_stamp(s->config->file).regular)
        timer_arm(l, &r->look, r->s.look_ms);
    *ret = r;
    return OK;
}

void reload_stop(struct reload *r)
{
    if (r == NULL)
        return;
    r->stopped = true;
    timer_cancel(&r->look);
}

struct reload *reload_free(struct reload *r)
{
    if (r == NULL)
        return NULL;
    if (r->has_first)
        arena_done(&r->first);
    mem_free(r);
    return NULL;
}

const struct reload_counts *reload_counts(const struct reload *r)
{
    return &r->counts;
}
