/*
 * The file is strict: a damaged one is refused, because an index that is guessed anew would send
 * pods to cards of other pods. "end" with the number of cards shows that no line is lost.
 */
#include "gpu/gpu_identity.h"

#include "base/file.h"
#include "base/mem.h"

#define HEADER "cardpack-cards 1"
#define FIELDS 5

void gpu_identity_done(struct gpu_identity *id)
{
    mem_free(id->items);
    *id = (struct gpu_identity){.n = 0};
}

struct gpu_record *gpu_identity_find(const struct gpu_identity *id, const char *uuid)
{
    for (size_t i = 0; i < id->n; i++)
        if (strcmp(id->items[i].uuid, uuid) == 0)
            return &id->items[i];
    return NULL;
}

static const struct gpu_record *gpu_identity_at(const struct gpu_identity *id, uint32_t index)
{
    for (size_t i = 0; i < id->n; i++)
        if (id->items[i].index == index)
            return &id->items[i];
    return NULL;
}

static bool gpu_identity_reserve(struct gpu_identity *id, size_t n)
{
    if (n <= id->cap)
        return true;
    size_t cap = MAX_OF(n, id->cap * 2);
    struct gpu_record *grown = mem_resize(id->items, cap * sizeof(*grown));
    if (grown == NULL)
        return false;
    id->items = grown;
    id->cap = cap;
    return true;
}

/* There must be room. */
static void gpu_identity_insert(struct gpu_identity *id, const struct gpu_record *r)
{
    size_t at = id->n;
    assert(id->n < id->cap);
    for (; at > 0 && id->items[at - 1].index > r->index; at--)
        id->items[at] = id->items[at - 1];
    id->items[at] = *r;
    id->n++;
}

static void gpu_identity_remove(struct gpu_identity *id, size_t at)
{
    assert(at < id->n);
    memmove(&id->items[at], &id->items[at + 1], (id->n - at - 1) * sizeof(id->items[0]));
    id->n--;
}

/* A word of printable characters that fits, as a NUL-terminated string. */
static bool gpu_identity_word(struct str s, char *ret, size_t size)
{
    if (s.n == 0 || s.n >= size)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    memcpy(ret, s.p, s.n);
    ret[s.n] = '\0';
    return true;
}

/* What is wrong with the line; NULL: nothing. */
static const char *gpu_identity_parse(struct str line, struct gpu_record *ret)
{
    struct str fields[FIELDS];
    struct str rest = line;
    uint64_t index = 0;
    for (size_t i = 0; i < FIELDS; i++)
        if (str_cut(rest, ' ', &fields[i], &rest) != (i < FIELDS - 1))
            return "must be INDEX UUID PCI PARENT BYTES";
    *ret = (struct gpu_record){.missing = true};
    if (!str_to_u64(fields[0], LIMIT_GPU_CARDS - 1, &index))
        return "the index is no number below 1024";
    ret->index = (uint32_t)index;
    if (!gpu_identity_word(fields[1], ret->uuid, sizeof(ret->uuid)))
        return "the UUID is empty or too long, or has other characters than a UUID";
    if (!gpu_identity_word(fields[2], ret->pci, sizeof(ret->pci)))
        return "the PCI address is empty or too long, or has other characters than an address";
    if (!gpu_identity_word(fields[3], ret->parent, sizeof(ret->parent)))
        return "the parent is neither - nor a UUID";
    if (str_eq(fields[3], STR("-")))
        ret->parent[0] = '\0';
    if (!str_to_u64(fields[4], UINT64_MAX, &ret->memory_bytes) || ret->memory_bytes == 0)
        return "the memory is no positive number";
    return NULL;
}

static enum errc gpu_identity_take(struct gpu_identity *id, struct str line, size_t number,
                                   struct err *reterr)
{
    struct gpu_record r;
    const char *fault = gpu_identity_parse(line, &r);
    if (fault != NULL)
        return err_set(reterr, ERR_SYNTAX, "line %zu: %s", number, fault);
    if (gpu_identity_at(id, r.index) != NULL || gpu_identity_find(id, r.uuid) != NULL)
        return err_set(reterr, ERR_CONFLICT, "line %zu: this index or this UUID is there twice",
                       number);
    if (!gpu_identity_reserve(id, id->n + 1))
        return err_set(reterr, ERR_NOMEM, "out of memory");
    gpu_identity_insert(id, &r);
    return OK;
}

static enum errc gpu_identity_lines(struct str text, struct gpu_identity *id, struct err *reterr)
{
    struct str line;
    struct str rest = text;
    uint64_t n = 0;
    bool ended = str_cut(rest, '\n', &line, &rest);
    if (!ended || !str_eq(line, STR(HEADER)))
        return err_set(reterr, ERR_SYNTAX, "line 1: must be \"" HEADER "\"");
    for (size_t number = 2;; number++) {
        if (!str_cut(rest, '\n', &line, &rest))
            return err_set(reterr, ERR_SYNTAX, "line %zu: the file ends without \"end\"", number);
        if (str_starts(line, STR("end "))) {
            if (!str_to_u64(str_skip(line, 4), LIMIT_GPU_CARDS, &n) || n != id->n || rest.n > 0)
                return err_set(reterr, ERR_SYNTAX,
                               "line %zu: must be \"end %zu\", as the last line", number, id->n);
            return OK;
        }
        enum errc code = gpu_identity_take(id, line, number, reterr);
        if (code != OK)
            return code;
    }
}

enum errc gpu_identity_read(struct str text, struct gpu_identity *ret, struct err *reterr)
{
    assert(ret->n == 0);
    enum errc code = gpu_identity_lines(text, ret, reterr);
    if (code != OK)
        gpu_identity_done(ret);
    return code;
}

void gpu_identity_write(const struct gpu_identity *id, struct buf *out)
{
    buf_put(out, STR(HEADER "\n"));
    for (size_t i = 0; i < id->n; i++) {
        const struct gpu_record *r = &id->items[i];
        buf_printf(out, "%u %s %s %s %llu\n", r->index, r->uuid, r->pci,
                   r->parent[0] == '\0' ? "-" : r->parent, (unsigned long long)r->memory_bytes);
    }
    buf_printf(out, "end %zu\n", id->n);
}

enum errc gpu_identity_load(const char *path, struct gpu_identity *ret, struct err *reterr)
{
    struct buf text;
    struct err why = ERR_INIT;
    buf_init(&text, LIMIT_GPU_STATE_BYTES);
    enum errc code = file_read_again(str_of(path), &text, &why);
    if (code == ERR_NOTFOUND) {
        buf_done(&text);
        return OK;
    }
    if (code == OK) {
        code = gpu_identity_read(buf_str(&text), ret, &why);
        if (code != OK)
            (void)err_wrap(&why, "%s", path);
    }
    buf_done(&text);
    return code == OK ? OK : err_set(reterr, code, "%s", why.text);
}

enum errc gpu_identity_save(const char *path, const struct gpu_identity *id, struct err *reterr)
{
    struct buf text;
    buf_init(&text, LIMIT_GPU_STATE_BYTES);
    gpu_identity_write(id, &text);
    enum errc code = buf_failed(&text)
                         ? err_set(reterr, buf_fault(&text), "%s: no room for the text", path)
                         : file_replace(str_of(path), buf_str(&text), reterr);
    buf_done(&text);
    return code;
}

struct gpu_matching {
    struct gpu_identity next;
    const struct gpu_scan *scan;
    bool (*in_use)(void *ctx, uint32_t index);
    void *ctx;
    bool first; /* no card was known before */
    bool changed;
    uint32_t left_out;
};

static bool gpu_identity_used(const struct gpu_matching *m, uint32_t index)
{
    return m->in_use == NULL || m->in_use(m->ctx, index);
}

static const struct gpu_found *gpu_identity_found(const struct gpu_scan *scan, const char *uuid)
{
    for (size_t i = 0; i < scan->n; i++)
        if (strcmp(scan->items[i].uuid, uuid) == 0)
            return &scan->items[i];
    return NULL;
}

/* Whether a record's card was reconfigured: a slice whose card answers has been removed, and a card
 * that has slices is in MIG mode. A lost card is neither. Nor is one that NVML counts and can't
 * describe: its record keeps the index and the fault. */
static bool gpu_identity_reconfigured(const struct gpu_scan *scan, const struct gpu_record *r)
{
    const char *whole = r->parent[0] == '\0' ? r->uuid : r->parent;
    const struct gpu_left *left = gpu_scan_left(scan, r->uuid, whole);
    if (left != NULL && left->uuid[0] != '\0' && !left->shared)
        return false;
    for (size_t i = 0; i < scan->n; i++) {
        const struct gpu_found *f = &scan->items[i];
        if (strcmp(f->mig ? f->parent : f->uuid, whole) == 0)
            return true;
    }
    return false;
}

static void gpu_identity_known(struct gpu_matching *m)
{
    for (size_t i = 0; i < m->next.n; i++) {
        struct gpu_record *r = &m->next.items[i];
        const struct gpu_found *f = gpu_identity_found(m->scan, r->uuid);
        r->missing = f == NULL;
        if (f == NULL) {
            if (gpu_identity_reconfigured(m->scan, r) && !gpu_identity_used(m, r->index)) {
                gpu_identity_remove(&m->next, i--);
                m->changed = true;
            }
        } else if (strcmp(r->pci, f->pci) != 0 || strcmp(r->parent, f->parent) != 0 ||
                   r->memory_bytes != f->memory_bytes) {
            memcpy(r->pci, f->pci, sizeof(r->pci));
            memcpy(r->parent, f->parent, sizeof(r->parent));
            r->memory_bytes = f->memory_bytes;
            m->changed = true;
        }
    }
}

/* Position of a missing record whose index the new card may take; n: none. */
static size_t gpu_identity_vacant(const struct gpu_matching *m, const struct gpu_found *f)
{
    size_t any = m->next.n;
    for (size_t i = 0; i < m->next.n; i++) {
        const struct gpu_record *r = &m->next.items[i];
        if (!r->missing || (r->parent[0] != '\0') != f->mig || gpu_identity_used(m, r->index))
            continue;
        if (strcmp(r->pci, f->pci) == 0)
            return i;
        any = MIN_OF(any, i);
    }
    return any;
}

static bool gpu_identity_free(const struct gpu_matching *m, uint32_t index)
{
    return index < LIMIT_GPU_CARDS && gpu_identity_at(&m->next, index) == NULL &&
           (m->first || !gpu_identity_used(m, index));
}

/* LIMIT_GPU_CARDS: none is left. */
static uint32_t gpu_identity_new_index(const struct gpu_matching *m, const struct gpu_found *f)
{
    if (!f->mig && gpu_identity_free(m, f->minor))
        return f->minor;
    for (uint32_t i = 0; i < LIMIT_GPU_CARDS; i++)
        if (gpu_identity_free(m, i))
            return i;
    return LIMIT_GPU_CARDS;
}

/* False: no index is left, and none for any other card of its kind. */
static bool gpu_identity_new(struct gpu_matching *m, const struct gpu_found *f)
{
    struct gpu_record r = {.memory_bytes = f->memory_bytes};
    memcpy(r.uuid, f->uuid, sizeof(r.uuid));
    memcpy(r.pci, f->pci, sizeof(r.pci));
    memcpy(r.parent, f->parent, sizeof(r.parent));
    size_t vacant = gpu_identity_vacant(m, f);
    if (vacant < m->next.n) {
        r.index = m->next.items[vacant].index;
        m->next.items[vacant] = r;
    } else {
        r.index = gpu_identity_new_index(m, f);
        if (r.index == LIMIT_GPU_CARDS)
            return false;
        gpu_identity_insert(&m->next, &r);
    }
    m->changed = true;
    return true;
}

/* The next card of this kind without a record, and how many there are. In the order of their PCI
 * addresses, so that the result does not depend on NVML's order. */
static const struct gpu_found *gpu_identity_next(const struct gpu_matching *m, bool mig,
                                                 uint32_t *ret_n)
{
    const struct gpu_found *best = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < m->scan->n; i++) {
        const struct gpu_found *f = &m->scan->items[i];
        if (f->mig != mig || gpu_identity_find(&m->next, f->uuid) != NULL)
            continue;
        ++*ret_n;
        int order = best == NULL ? -1 : strcmp(f->pci, best->pci);
        if (order < 0 || (order == 0 && f->gpu_instance < best->gpu_instance))
            best = f;
    }
    return best;
}

/* Whole cards first, because they have a number of their own; then slices. */
static void gpu_identity_add(struct gpu_matching *m, bool mig)
{
    uint32_t left = 0;
    for (;;) {
        const struct gpu_found *f = gpu_identity_next(m, mig, &left);
        if (f == NULL)
            return;
        if (!gpu_identity_new(m, f)) {
            m->left_out += left;
            return;
        }
    }
}

/* A card that is missing, and whose slot another card has, does not come back. */
static void gpu_identity_forget_replaced(struct gpu_matching *m)
{
    for (size_t i = 0; i < m->next.n; i++) {
        const struct gpu_record *r = &m->next.items[i];
        const char *whole = r->parent[0] == '\0' ? r->uuid : r->parent;
        bool replaced = false;
        for (size_t k = 0; r->missing && k < m->scan->n; k++) {
            const struct gpu_found *f = &m->scan->items[k];
            bool here = strcmp(f->pci, r->pci) == 0;
            replaced = replaced || (here && strcmp(f->mig ? f->parent : f->uuid, whole) != 0);
        }
        if (replaced && !gpu_identity_used(m, r->index)) {
            gpu_identity_remove(&m->next, i--);
            m->changed = true;
        }
    }
}

enum errc gpu_identity_match(struct gpu_identity *id, const struct gpu_scan *scan,
                             bool (*in_use)(void *ctx, uint32_t index), void *ctx,
                             bool *ret_changed, uint32_t *ret_left_out)
{
    struct gpu_matching m = {.scan = scan, .in_use = in_use, .ctx = ctx, .first = id->n == 0};
    if (!gpu_identity_reserve(&m.next, id->n + scan->n + 1))
        return ERR_NOMEM;
    assert(m.next.items != NULL);
    if (id->n > 0)
        memcpy(m.next.items, id->items, id->n * sizeof(id->items[0]));
    m.next.n = id->n;
    gpu_identity_known(&m);
    gpu_identity_add(&m, false);
    gpu_identity_add(&m, true);
    gpu_identity_forget_replaced(&m);
    gpu_identity_done(id);
    *id = m.next;
    *ret_changed = m.changed;
    *ret_left_out = m.left_out;
    return OK;
}
