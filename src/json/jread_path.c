/* Errors of the JSON reader. The path to the value that is wrong is built only for an error, from
 * the levels that the reader keeps anyway. */
#include "json/jread.h"

#include <stdio.h>

/* How much of the path, and of one of its keys: the message after them always fits. */
#define PATH_MAX_BYTES ((size_t)140)
#define KEY_MAX_BYTES  ((size_t)48)

struct path {
    char bytes[PATH_MAX_BYTES + 1]; /* NUL-terminated */
    size_t n;
};

static void jread_path_put(struct path *p, struct str s)
{
    size_t n = MIN_OF(s.n, PATH_MAX_BYTES - p->n);
    if (n > 0)
        memcpy(p->bytes + p->n, s.p, n);
    p->n += n;
    p->bytes[p->n] = '\0';
}

static bool jread_path_is_plain(struct str key)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && c != '_' && c != '-')
            return false;
    }
    return key.n > 0;
}

/*
 * In the form that Kubernetes uses: spec.containers[0].name,
 * metadata.annotations[cardpack.io/policy].
 */
static void jread_path_build(const struct jread *r, struct path *p)
{
    for (unsigned i = 0; i < r->depth; i++) {
        const struct jread_level *level = &r->levels[i];
        struct str key = level->key;
        if (level->array) {
            char index[24];
            int n = snprintf(index, sizeof(index), "[%lld]", (long long)level->index);
            jread_path_put(p, (struct str){index, (size_t)n});
            continue;
        }
        if (key.p == NULL)
            continue;
        bool plain = jread_path_is_plain(key);
        jread_path_put(p, plain ? (p->n == 0 ? STR("") : STR(".")) : STR("["));
        if (key.n > KEY_MAX_BYTES) {
            size_t n = KEY_MAX_BYTES;
            while (n > 0 && ((unsigned char)key.p[n] & 0xc0) == 0x80)
                n--;
            jread_path_put(p, (struct str){key.p, n});
            jread_path_put(p, STR("..."));
        } else {
            jread_path_put(p, key);
        }
        jread_path_put(p, plain ? STR("") : STR("]"));
    }
}

void jread_fail(struct jread *r, enum errc code, const char *fmt, ...)
{
    if (jread_failed(r))
        return;
    struct path path = {.n = 0};
    char what[sizeof(r->err.text)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    jread_path_build(r, &path);
    (void)err_set(&r->err, code, "%s%s%s", path.bytes, path.n == 0 ? "" : ": ", what);
}
