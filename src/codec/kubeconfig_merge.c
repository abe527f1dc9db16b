/*
 * Merges kubeconfigs. Entries are copied unchanged, except for their paths to files and programs.
 * Only the structure of the files is checked here; kubeconfig_read_merged checks the entries that
 * are used. If one file has two entries with the same name, both are kept, so that
 * kubeconfig_read_merged reports them as ambiguous, as kubeconfig_read does for a single file.
 */
#include "codec/kubeconfig_merge.h"

#include "codec/jread.h"
#include "codec/jwrite.h"
#include "codec/yaml.h"

enum section {
    CLUSTERS,
    CONTEXTS,
    USERS,
    SECTIONS,
};

static const struct {
    const char *list;
    const char *what;
} sections[SECTIONS] = {
    [CLUSTERS] = {"clusters", "cluster"},
    [CONTEXTS] = {"contexts", "context"},
    [USERS] = {"users", "user"},
};

static const char *const path_members[] = {"certificate-authority", "client-certificate",
                                           "client-key", "tokenFile"};

struct entry {
    struct str name;
    struct str raw; /* the whole entry */
    size_t file;
    struct str directory; /* of its file; ends in a slash */
};

struct merge {
    struct arena *arena;
    struct entry *entries[SECTIONS];
    size_t n[SECTIONS];
    size_t cap[SECTIONS];
    struct str current;
    size_t file; /* number of the file that is being read */
    struct str directory;
};

static struct str directory_of(struct str path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return (struct str){path.p, n};
}

/* Reads only the name; the rest is read when the entry is written. */
static struct str name_of(struct jread *r, struct str raw)
{
    struct jread one;
    struct str key;
    struct str name = STR("");
    jread_init(&one, raw, r->arena);
    jread_object (&one, key) {
        if (str_eq(key, STR("name")))
            name = jread_str(&one);
        else
            jread_skip(&one);
    }
    if (one.err.code != OK)
        jread_fail(r, one.err.code, "%s", one.err.text);
    return name;
}

static bool is_earlier(const struct merge *m, enum section s, struct str name)
{
    for (size_t i = 0; i < m->n[s]; i++) {
        const struct entry *e = &m->entries[s][i];
        if (e->file != m->file && str_eq(e->name, name))
            return true;
    }
    return false;
}

static void take_entry(struct merge *m, struct jread *r, enum section s)
{
    struct entry e = {.raw = jread_raw(r), .file = m->file, .directory = m->directory};
    if (jread_failed(r))
        return;
    e.name = name_of(r, e.raw);
    if (jread_failed(r) || is_earlier(m, s, e.name))
        return;
    struct entry *items = arena_grow(m->arena, m->entries[s], m->n[s], &m->cap[s], sizeof(*items));
    if (items == NULL) {
        jread_fail(r, ERR_LIMIT, "too many");
        return;
    }
    m->entries[s] = items;
    items[m->n[s]++] = e;
}

static bool read_section(struct merge *m, struct jread *r, struct str key)
{
    for (size_t s = 0; s < SECTIONS; s++) {
        if (!str_eq(key, str_of(sections[s].list)))
            continue;
        jread_array (r) {
            take_entry(m, r, (enum section)s);
        }
        return true;
    }
    return false;
}

static enum errc read_json(struct merge *m, struct str json, struct err *reterr)
{
    struct jread r;
    struct str key;
    jread_init(&r, json, m->arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("current-context"))) {
            struct str current = jread_str(&r);
            m->current = m->current.n > 0 ? m->current : current;
        } else if (!read_section(m, &r, key)) {
            jread_skip(&r);
        }
    }
    return jread_finish(&r, reterr);
}

static enum errc read_file(struct merge *m, const struct kubeconfig_file *file, struct err *reterr)
{
    struct buf json;
    struct err why = ERR_INIT;
    buf_init(&json, 2 * LIMIT_FILE_BYTES);
    m->directory = directory_of(file->path);
    enum errc code = yaml_to_json(file->text, &json, &why);
    struct str copy = code == OK ? arena_dup(m->arena, buf_str(&json)) : STR_NULL;
    buf_done(&json);
    if (code == OK && copy.p == NULL)
        code = err_set(&why, arena_fault(m->arena), "too large");
    if (code == OK)
        code = read_json(m, copy, &why);
    return code == OK
               ? OK
               : err_set(reterr, code, "kubeconfig \"%.*s\": %s", STR_ARG(file->path), why.text);
}

static bool is_path(struct str key)
{
    for (size_t i = 0; i < COUNT_OF(path_members); i++) {
        if (str_eq(key, str_of(path_members[i])))
            return true;
    }
    return false;
}

static void write_path(struct jwrite *w, const struct merge *m, struct str directory,
                       struct str path)
{
    if (path.n == 0 || path.p[0] == '/' || directory.n == 0) {
        jwrite_str(w, path);
        return;
    }
    char *joined = arena_alloc(m->arena, directory.n + path.n);
    if (joined != NULL) {
        memcpy(joined, directory.p, directory.n);
        memcpy(joined + directory.n, path.p, path.n);
    }
    jwrite_str(w, (struct str){joined, joined == NULL ? 0 : directory.n + path.n});
}

/* A user's exec. A command with a slash is a path; any other is looked up in PATH. */
static void write_exec(struct jwrite *w, const struct merge *m, struct str directory,
                       struct jread *r)
{
    struct str key;
    jwrite_object_begin(w);
    jread_object (r, key) {
        jwrite_key(w, key);
        if (!str_eq(key, STR("command")) || jread_type(r) != JTYPE_STRING) {
            jwrite_raw(w, jread_raw(r));
            continue;
        }
        struct str command = jread_str(r);
        if (command.n > 0 && memchr(command.p, '/', command.n) != NULL)
            write_path(w, m, directory, command);
        else
            jwrite_str(w, command);
    }
    jwrite_object_end(w);
}

/*
 * Writes the object inside an entry. Another type is copied, so that kubeconfig_read_merged refuses
 * it.
 */
static void write_body(struct jwrite *w, const struct merge *m, struct str directory,
                       struct jread *r)
{
    struct str key;
    if (jread_type(r) != JTYPE_OBJECT) {
        jwrite_raw(w, jread_raw(r));
        return;
    }
    jwrite_object_begin(w);
    jread_object (r, key) {
        jwrite_key(w, key);
        if (is_path(key) && jread_type(r) == JTYPE_STRING)
            write_path(w, m, directory, jread_str(r));
        else if (str_eq(key, STR("exec")) && jread_type(r) == JTYPE_OBJECT)
            write_exec(w, m, directory, r);
        else
            jwrite_raw(w, jread_raw(r));
    }
    jwrite_object_end(w);
}

static void write_entry(struct jwrite *w, const struct merge *m, const struct entry *e,
                        struct str what)
{
    struct jread r;
    struct str key;
    jread_init(&r, e->raw, m->arena);
    jwrite_object_begin(w);
    jread_object (&r, key) {
        jwrite_key(w, key);
        if (str_eq(key, what))
            write_body(w, m, e->directory, &r);
        else
            jwrite_raw(w, jread_raw(&r));
    }
    jwrite_object_end(w);
}

enum errc kubeconfig_merge(const struct kubeconfig_file *files, size_t n, struct str context,
                           struct arena *arena, struct buf *out, struct err *reterr)
{
    struct merge m = {.arena = arena, .current = context};
    struct jwrite w;
    for (m.file = 0; m.file < n; m.file++) {
        enum errc code = read_file(&m, &files[m.file], reterr);
        if (code != OK)
            return code;
    }
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("current-context"));
    jwrite_str(&w, m.current.p == NULL ? STR("") : m.current);
    for (size_t s = 0; s < SECTIONS; s++) {
        jwrite_key(&w, str_of(sections[s].list));
        jwrite_array_begin(&w);
        for (size_t i = 0; i < m.n[s]; i++)
            write_entry(&w, &m, &m.entries[s][i], str_of(sections[s].what));
        jwrite_array_end(&w);
    }
    jwrite_object_end(&w);
    if (arena_failed(arena) || buf_failed(out))
        return err_set(reterr, arena_failed(arena) ? arena_fault(arena) : buf_fault(out),
                       "the kubeconfig files are too large");
    return OK;
}
