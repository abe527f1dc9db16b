/*
 * Files in a folder that others use as well. Each call opens the folder anew, because it may have
 * been made again; all else is relative to that descriptor and follows no symbolic link. Blocks:
 * the folder is in memory, and the files are small.
 */
#include "node/kubelet/specs.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "kubelet/cdi.h"
#include "node/kubelet/answer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX      "cardpack.io-alloc_"
#define SUFFIX      ".json"
#define FRESH       ".new" /* while it is written */
#define NAME_BYTES  (sizeof(PREFIX) + SPECS_ID_BYTES + sizeof(SUFFIX))
#define SPEC_BYTES  MIB
#define ARENA_BYTES (4 * MIB)

#define FOLDER_MODE (S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH)
#define FILE_MODE   (S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH)

static_assert(SPECS_ID_BYTES <= ANSWER_ID_MAX, "an answer can name it");

struct spec {
    char id[SPECS_ID_BYTES + 1];
    bool kept; /* see specs_mark */
    struct card_list cards;
};

void specs_init(struct specs *s, struct str dir)
{
    *s = (struct specs){.dir = dir};
}

void specs_done(struct specs *s)
{
    mem_free(s->items);
}

void specs_make_id(uint64_t a, uint64_t b, char ret[static SPECS_ID_BYTES + 1])
{
    (void)snprintf(ret, SPECS_ID_BYTES + 1, "a%016" PRIx64 "%016" PRIx64, a, b);
}

static bool specs_is_id(struct str id)
{
    for (size_t i = 1; i < id.n; i++) {
        if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
            return false;
    }
    return id.n == SPECS_ID_BYTES && id.p[0] == 'a';
}

static void specs_name(struct str id, const char *suffix, char ret[static NAME_BYTES])
{
    (void)snprintf(ret, NAME_BYTES, PREFIX "%.*s%s", STR_ARG(id), suffix);
}

/* The ID in a name of ours; absent: another name. */
static struct str specs_id_of(struct str name, struct str suffix)
{
    if (!str_starts(name, STR(PREFIX)) || !str_ends(name, suffix))
        return STR_NULL;
    struct str id = str_skip(name, sizeof(PREFIX) - 1);
    id.n -= MIN_OF(id.n, suffix.n);
    return specs_is_id(id) ? id : STR_NULL;
}

static enum errc specs_fail(const struct specs *s, const char *name, int error, struct err *reterr)
{
    enum errc code =
        error == EACCES || error == EPERM || error == EROFS ? ERR_DENIED : ERR_UNAVAILABLE;
    return err_set(reterr, code, "%s%s%s: %s", s->dir.p, name[0] == '\0' ? "" : "/", name,
                   strerror(error));
}

/* A descriptor of the folder, or -1: then errno says why. */
static int specs_open_dir(const struct specs *s, bool make)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    int dir = open(s->dir.p, flags);
    if (dir >= 0 || errno != ENOENT || !make)
        return dir;
    if (mkdir(s->dir.p, FOLDER_MODE) != 0 && errno != EEXIST)
        return -1;
    dir = open(s->dir.p, flags);
    if (dir >= 0)
        (void)fchmod(dir, FOLDER_MODE); /* the umask may have hidden it from other programs */
    return dir;
}

/* A user who may write to the folder can give a container any device of the host. */
static bool specs_is_roots(int dir)
{
    struct stat st;
    return fstat(dir, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static struct spec *specs_at(const struct specs *s, struct str id)
{
    for (size_t i = 0; i < s->n; i++) {
        if (str_eq(id, (struct str){s->items[i].id, SPECS_ID_BYTES}))
            return &s->items[i];
    }
    return NULL;
}

const struct card_list *specs_find(const struct specs *s, struct str id)
{
    const struct spec *found = specs_at(s, id);
    return found == NULL ? NULL : &found->cards;
}

static enum errc specs_add(struct specs *s, struct str id, const struct card_list *cards,
                           struct err *reterr)
{
    if (s->n == SPECS_MAX)
        return err_set(reterr, ERR_LIMIT, "%s: more than %d specs", s->dir.p, SPECS_MAX);
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 16 : 2 * s->cap;
        struct spec *grown = mem_resize(s->items, cap * sizeof(*grown));
        if (grown == NULL)
            return err_set(reterr, ERR_NOMEM, "no memory for a CDI spec");
        s->items = grown;
        s->cap = cap;
    }
    struct spec *fresh = &s->items[s->n++];
    *fresh = (struct spec){.kept = true, .cards = *cards};
    memcpy(fresh->id, id.p, SPECS_ID_BYTES);
    return OK;
}

/* ---- reading ---- */

/* An empty text: it is no regular file, or too large, and so not ours. ERR_UNAVAILABLE: it may be
 * ours, and can't be read now. */
static enum errc specs_read(int dir, const char *name, struct buf *text)
{
    struct stat st;
    enum errc code = OK;
    buf_clear(text, SPEC_BYTES);
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENOENT || errno == ENXIO ? OK : ERR_UNAVAILABLE;
    if (fstat(fd, &st) != 0) {
        code = ERR_UNAVAILABLE;
    } else if (S_ISREG(st.st_mode) && st.st_size <= (off_t)SPEC_BYTES) {
        if (!buf_reserve(text, (size_t)st.st_size))
            code = ERR_NOMEM;
        else if (read(fd, text->p, (size_t)st.st_size) != (ssize_t)st.st_size)
            code = ERR_UNAVAILABLE;
        else
            text->n = (size_t)st.st_size;
    }
    (void)close(fd);
    return code;
}

/* The cards that the file names; n 0: it is not a spec of ours. On failure that is not known. */
static enum errc specs_read_cards(int dir, const char *name, struct str id, struct buf *text,
                                  struct card_list *ret)
{
    struct arena a;
    struct str indices = STR_NULL;
    ret->n = 0;
    arena_init(&a, ARENA_BYTES);
    enum errc code = specs_read(dir, name, text);
    if (code == OK)
        code = cdi_read_env(buf_str(text), &a, id, GPUSHARE_ANNOTATION_IDX, &indices, NULL);
    if (code == OK && indices.p != NULL)
        card_list_read(indices, ret);
    arena_done(&a);
    return code == ERR_NOMEM || code == ERR_UNAVAILABLE ? code : OK;
}

static enum errc specs_take(struct specs *s, int dir, const char *name, struct buf *text,
                            struct err *reterr)
{
    struct card_list cards;
    struct str id = specs_id_of(str_of(name), STR(SUFFIX));
    if (specs_id_of(str_of(name), STR(FRESH)).p != NULL) {
        (void)unlinkat(dir, name, 0);
        return OK;
    }
    if (id.p == NULL || specs_at(s, id) != NULL)
        return OK;
    enum errc code = specs_read_cards(dir, name, id, text, &cards);
    if (code != OK)
        return err_set(reterr, code, "the CDI spec %.*s/%s can't be read now", STR_ARG(s->dir),
                       name);
    if (cards.n > 0)
        return specs_add(s, id, &cards, reterr);
    log_warn("a CDI spec can't be read, and is removed", kv_str("folder", s->dir),
             kv_cstr("file", name));
    (void)unlinkat(dir, name, 0);
    return OK;
}

enum errc specs_load(struct specs *s, struct err *reterr)
{
    struct buf text;
    if (s->loaded)
        return OK;
    int fd = specs_open_dir(s, false);
    if (fd < 0 && errno == ENOENT) {
        s->loaded = true;
        return OK;
    }
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        enum errc code = specs_fail(s, "", errno, reterr);
        if (fd >= 0)
            (void)close(fd);
        return code;
    }
    buf_init(&text, SPEC_BYTES);
    enum errc code = OK;
    for (const struct dirent *d = readdir(dir); d != NULL && code == OK; d = readdir(dir))
        code = specs_take(s, fd, d->d_name, &text, reterr);
    s->more = code == ERR_LIMIT;
    s->loaded = code == OK || s->more;
    buf_done(&text);
    (void)closedir(dir);
    return s->loaded ? OK : code;
}

/* ---- writing ---- */

static bool specs_write_all(int fd, struct str text)
{
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return false;
        }
        at += (size_t)n;
    }
    return true;
}

/* Creates it, with the right mode whatever the umask is. */
static int specs_create(int dir, const char *name, struct str text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0 && errno == EEXIST) { /* an interrupted write, or another program's */
        (void)unlinkat(dir, name, 0);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    }
    if (fd < 0)
        return errno;
    int error = specs_write_all(fd, text) && fchmod(fd, FILE_MODE) == 0 ? 0 : errno;
    if (close(fd) != 0 && error == 0)
        error = errno;
    return error;
}

static enum errc specs_write(const struct specs *s, int dir, struct str id, struct str text,
                             struct err *reterr)
{
    char fresh[NAME_BYTES];
    char name[NAME_BYTES];
    specs_name(id, FRESH, fresh);
    specs_name(id, SUFFIX, name);
    int error = specs_create(dir, fresh, text);
    if (error == 0 && renameat(dir, fresh, dir, name) != 0)
        error = errno;
    if (error == 0)
        return OK;
    (void)unlinkat(dir, fresh, 0);
    return specs_fail(s, name, error, reterr);
}

/* Whether the file need not be written. One that can't be read now is written. ERR_NOMEM. */
static enum errc specs_is_there(const struct specs *s, int dir, struct str id,
                                const struct card_list *cards, struct str text, bool *ret)
{
    char name[NAME_BYTES];
    struct buf old;
    const struct card_list *has = specs_find(s, id);
    *ret = false;
    if (has == NULL)
        return OK;
    specs_name(id, SUFFIX, name);
    buf_init(&old, SPEC_BYTES);
    enum errc code = specs_read(dir, name, &old);
    *ret = code == OK && old.n > 0 && (!card_list_equal(has, cards) || str_eq(buf_str(&old), text));
    buf_done(&old);
    return code == ERR_NOMEM ? code : OK;
}

enum errc specs_put(struct specs *s, struct str id, const struct card_list *cards, struct str text,
                    bool *ret_written, struct err *reterr)
{
    *ret_written = false;
    if (!specs_is_id(id))
        return err_set(reterr, ERR_RANGE, "the CDI device %.*s is not ours",
                       (int)MIN_OF(id.n, (size_t)ANSWER_ID_MAX), id.p);
    int dir = specs_open_dir(s, true);
    if (dir < 0)
        return specs_fail(s, "", errno, reterr);
    bool there = false;
    bool known = specs_at(s, id) != NULL;
    enum errc code = specs_is_there(s, dir, id, cards, text, &there);
    if (code != OK)
        (void)err_set(reterr, code, "no memory for a CDI spec");
    else if (!specs_is_roots(dir))
        code = err_set(reterr, ERR_DENIED, "%s: users other than root may write to it", s->dir.p);
    else if (!there)
        code = specs_write(s, dir, id, text, reterr);
    *ret_written = code == OK && !there;
    (void)close(dir);
    return code == OK && !known ? specs_add(s, id, cards, reterr) : code;
}

/* ---- removing ---- */

void specs_mark_begin(struct specs *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->items[i].kept = false;
}

void specs_mark(struct specs *s, struct str id)
{
    struct spec *found = specs_at(s, id);
    if (found != NULL)
        found->kept = true;
}

bool specs_mark_end(struct specs *s)
{
    unsigned removed = 0;
    int dir = -1;
    for (size_t i = s->n; i > 0 && removed < SPECS_SWEEP_MAX; i--) {
        char name[NAME_BYTES];
        struct spec *old = &s->items[i - 1];
        if (old->kept)
            continue;
        dir = dir < 0 ? specs_open_dir(s, false) : dir;
        specs_name((struct str){old->id, SPECS_ID_BYTES}, SUFFIX, name);
        if (dir >= 0 && unlinkat(dir, name, 0) != 0 && errno != ENOENT)
            log_warn("a CDI spec can't be removed", kv_str("folder", s->dir), kv_cstr("file", name),
                     kv_cstr("error", strerror(errno)));
        *old = s->items[--s->n];
        removed++;
    }
    if (dir >= 0)
        (void)close(dir);
    if (s->more && s->n < SPECS_MAX)
        s->loaded = s->more = false; /* there is room for the rest of them */
    return removed < SPECS_SWEEP_MAX && s->loaded;
}
