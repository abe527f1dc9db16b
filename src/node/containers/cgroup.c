/*
 * Reads names, the files of /proc and the folders of /sys/fs/cgroup, which are the kernel's memory:
 * none of these reads waits for a device. The walk follows no symbolic link.
 */
#include "node/containers/cgroup.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

/* ---- names ---- */

bool cgroup_is_id(struct str text)
{
    size_t n = 0;
    while (n < text.n &&
           ((text.p[n] >= '0' && text.p[n] <= '9') || (text.p[n] >= 'a' && text.p[n] <= 'f')))
        n++;
    return n == CGROUP_ID_LEN && n == text.n;
}

/* Without the prefix and the suffix; absent if one is missing. */
static struct str cgroup_strip(struct str name, const char *prefix, const char *suffix)
{
    size_t n = strlen(prefix) + strlen(suffix);
    if (name.n < n || !str_starts(name, str_of(prefix)) || !str_ends(name, str_of(suffix)))
        return STR_NULL;
    return (struct str){name.p + strlen(prefix), name.n - n};
}

struct str cgroup_name_id(struct str name)
{
    static const struct {
        const char *prefix;
        const char *suffix;
    } forms[] = {{"", ""},
                 {"cri-containerd-", ".scope"},
                 {"crio-", ".scope"},
                 {"docker-", ".scope"},
                 {"crio-", ""}};

    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct str id = cgroup_strip(name, forms[i].prefix, forms[i].suffix);
        if (cgroup_is_id(id))
            return id;
    }
    static const char joint[] = ":cri-containerd:";
    size_t tail = sizeof(joint) - 1 + CGROUP_ID_LEN;
    if (name.n < tail)
        return STR_NULL;
    struct str id = cgroup_strip(str_skip(name, name.n - tail), joint, "");
    return cgroup_is_id(id) ? id : STR_NULL;
}

/* The outermost name of a path that has an ID. */
static struct str cgroup_path_id(struct str path)
{
    for (struct str name, rest = path; rest.p != NULL;) {
        (void)str_cut(rest, '/', &name, &rest);
        struct str id = cgroup_name_id(name);
        if (id.p != NULL)
            return id;
    }
    return STR_NULL;
}

struct str cgroup_text_id(struct str text)
{
    struct str found = STR_NULL;
    for (struct str line, rest = text; rest.p != NULL;) {
        struct str number;
        struct str names;
        struct str path;
        (void)str_cut(rest, '\n', &line, &rest);
        if (!str_cut(line, ':', &number, &path) || !str_cut(path, ':', &names, &path) ||
            !str_starts(path, STR("/")))
            continue;
        struct str id = cgroup_path_id(path);
        if (id.p != NULL && found.p != NULL && !str_eq(id, found))
            return STR_NULL;
        found = id.p != NULL ? id : found;
    }
    return found;
}

/* PROC/PID/cgroup into the scratch. */
static enum errc cgroup_read(struct str proc, uint32_t pid, struct buf *scratch, struct err *reterr)
{
    char bytes[CGROUP_PATH_BYTES];
    struct buf path = BUF_ON(bytes);
    buf_printf(&path, "%.*s/%u/cgroup", STR_ARG(proc), pid);
    if (buf_failed(&path))
        return err_set(reterr, ERR_RANGE, "the path of /proc is too long");
    buf_clear(scratch, SIZE_MAX);
    return file_read_again(buf_str(&path), scratch, reterr);
}

enum errc cgroup_process_id(struct str proc, uint32_t pid, struct buf *scratch, struct str *ret_id,
                            struct err *reterr)
{
    enum errc code = cgroup_read(proc, pid, scratch, reterr);
    if (code == OK)
        *ret_id = cgroup_text_id(buf_str(scratch));
    return code;
}

/* ---- the walk ---- */

static bool cgroup_has_file(struct buf *path, const char *name)
{
    size_t n = path->n;
    buf_printf(path, "/%s", name);
    const char *z = buf_cstr(path);
    struct stat st;
    bool there = z != NULL && stat(z, &st) == 0;
    path->n = n;
    return there;
}

/* Opens the folder at the path. One that has just been removed, or is too deep, is skipped. */
static enum cgroup_step cgroup_open(struct cgroup_walk *w)
{
    const char *z = buf_cstr(&w->path);
    DIR *dir = NULL;
    errno = 0;
    if (z != NULL && w->depth < CGROUP_DEPTH_MAX)
        dir = opendir(z);
    if (dir == NULL)
        return errno == EMFILE || errno == ENFILE ? CGROUP_TOO_MANY : CGROUP_MORE;
    w->dirs[w->depth] = dir;
    w->lengths[w->depth++] = w->path.n;
    return CGROUP_MORE;
}

/* One entry of the folder that is open. What is below a container's cgroup has names of that
 * container's choice, and is skipped. */
static enum cgroup_step cgroup_visit(struct cgroup_walk *w, const struct dirent *d, unsigned *most,
                                     struct str *ret_id)
{
    struct stat st;
    if (d->d_name[0] == '.' || (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN))
        return CGROUP_MORE;
    buf_printf(&w->path, "/%s", d->d_name);
    const char *z = buf_cstr(&w->path);
    if (z == NULL || ++w->folders > CGROUP_WALK_MAX)
        return CGROUP_TOO_MANY;
    if (d->d_type == DT_UNKNOWN && (lstat(z, &st) != 0 || !S_ISDIR(st.st_mode)))
        return CGROUP_MORE;
    --*most;
    *ret_id = cgroup_name_id(str_skip(buf_str(&w->path), w->lengths[w->depth - 1] + 1));
    return ret_id->p != NULL ? CGROUP_CONTAINER : cgroup_open(w);
}

enum errc cgroup_walk_begin(struct cgroup_walk *w, struct str root, struct err *reterr)
{
    *w = (struct cgroup_walk){.depth = 0};
    w->path = (struct buf)BUF_ON(w->bytes);
    buf_put(&w->path, root);
    bool there = cgroup_has_file(&w->path, "cgroup.controllers");
    if (!there) {
        buf_put(&w->path, STR("/unified"));
        there = cgroup_has_file(&w->path, "cgroup.controllers");
    }
    if (buf_failed(&w->path) || !there)
        return err_set(reterr, ERR_UNAVAILABLE, "%.*s has no cgroups of version 2", STR_ARG(root));
    (void)cgroup_open(w);
    return OK;
}

enum cgroup_step cgroup_walk_next(struct cgroup_walk *w, unsigned *most, struct str *ret_id)
{
    enum cgroup_step step = CGROUP_MORE;
    while (step == CGROUP_MORE && w->depth > 0) {
        if (*most == 0)
            return CGROUP_MORE;
        w->path.n = w->lengths[w->depth - 1];
        const struct dirent *d = readdir(w->dirs[w->depth - 1]);
        if (d != NULL)
            step = cgroup_visit(w, d, most, ret_id);
        else
            (void)closedir(w->dirs[--w->depth]);
    }
    return step == CGROUP_MORE ? CGROUP_END : step;
}

void cgroup_walk_end(struct cgroup_walk *w)
{
    while (w->depth > 0)
        (void)closedir(w->dirs[--w->depth]);
}

/* ---- our own ---- */

/* By PROC/PID/cgroup; false: no hierarchy of version 2, or "/". */
static bool cgroup_own_path(struct str proc, uint32_t pid, struct buf *scratch, struct buf *out)
{
    struct str line;
    if (cgroup_read(proc, pid, scratch, NULL) != OK)
        return false;
    for (struct str rest = buf_str(scratch); rest.p != NULL;) {
        (void)str_cut(rest, '\n', &line, &rest);
        if (!str_starts(line, STR("0::/")) || line.n == strlen("0::/"))
            continue;
        size_t n = out->n;
        struct stat st;
        buf_put(out, str_skip(line, strlen("0::")));
        const char *z = buf_cstr(out);
        if (z != NULL && stat(z, &st) == 0 && S_ISDIR(st.st_mode))
            return true;
        out->n = n;
    }
    return false;
}

/* Whether cgroup.procs of the folder has the process, by its number in our namespace of processes:
 * of processes outside it the file has a 0. */
static bool cgroup_has_process(const struct buf *folder, uint32_t pid, struct buf *scratch)
{
    struct str line;
    char bytes[CGROUP_PATH_BYTES];
    struct buf path = BUF_ON(bytes);
    buf_printf(&path, "%.*s/cgroup.procs", STR_ARG(buf_str(folder)));
    buf_clear(scratch, CGROUP_TEXT_MAX);
    if (buf_failed(&path) || file_read_again(buf_str(&path), scratch, NULL) != OK)
        return false;
    for (struct str rest = buf_str(scratch); rest.p != NULL;) {
        uint64_t number = 0;
        (void)str_cut(rest, '\n', &line, &rest);
        if (str_to_u64(line, UINT32_MAX, &number) && number == pid)
            return true;
    }
    return false;
}

static bool cgroup_own_container(struct str root, uint32_t pid, struct buf *scratch,
                                 struct buf *out)
{
    struct cgroup_walk w;
    struct str id = STR_NULL;
    unsigned most = UINT_MAX;
    bool found = false;
    enum errc code = cgroup_walk_begin(&w, root, NULL);
    while (code == OK && !found && cgroup_walk_next(&w, &most, &id) == CGROUP_CONTAINER)
        found = cgroup_has_process(&w.path, pid, scratch);
    if (found)
        buf_put(out, buf_str(&w.path));
    cgroup_walk_end(&w);
    return found && !buf_failed(out);
}

bool cgroup_own(struct str root, struct str proc, uint32_t pid, struct buf *out)
{
    struct buf scratch;
    buf_init(&scratch, CGROUP_TEXT_MAX);
    size_t n = out->n;
    buf_put(out, root);
    bool found = cgroup_own_path(proc, pid, &scratch, out);
    if (!found) {
        out->n = n;
        found = cgroup_own_container(root, pid, &scratch, out);
    }
    buf_done(&scratch);
    return found;
}
