/* Reads the kubelet's checkpoint, and the cards in our own answers that it keeps. */
#include "node/kubelet/checkpoint_file.h"

#include "base/limit.h"
#include "core/dialect/gpushare.h"
#include "kubelet/device_plugin.h"
#include "node/kubelet/answer.h"
#include "json/base64.h"

/* 100,000 devices, each named once, and as many answers. */
#define CHECKPOINT_FILE_BYTES_MAX ((size_t)(16 * MIB))

/* No random numbers: only the kubelet and our own plugin choose the keys. */
static const struct map_seed checkpoint_file_seed = {UINT64_C(0x6b7562656c6574), 0};

void checkpoint_file_init(struct checkpoint_file *t, struct str path, struct str resource,
                          const struct specs *specs)
{
    *t = (struct checkpoint_file){.path = path, .resource = resource, .specs = specs};
    buf_init(&t->text, CHECKPOINT_FILE_BYTES_MAX);
    arena_init(&t->arena, 4 * CHECKPOINT_FILE_BYTES_MAX);
    map_init(&t->devices, offsetof(struct checkpoint_file_device, id), checkpoint_file_seed);
}

void checkpoint_file_done(struct checkpoint_file *t)
{
    buf_done(&t->text);
    arena_done(&t->arena);
    map_done(&t->devices);
}

/* The cards that our answer named, in the variable that has the annotation's name, or the spec that
 * it named; neither if it is another plugin's answer without cards. */
static void checkpoint_file_answer(struct checkpoint_file *t, const struct checkpoint_entry *e,
                                   struct card_list *ret, struct str *ret_id)
{
    struct str bytes;
    struct str indices;
    ret->n = 0;
    *ret_id = STR_NULL;
    if (e->answer.p == NULL || base64_decode(e->answer, &t->arena, &bytes) != OK ||
        allocate_answer_cdi(bytes, STR(ANSWER_CDI_KIND "="), ret_id, NULL) != OK ||
        allocate_answer_env(bytes, GPUSHARE_ANNOTATION_IDX, &indices, NULL) != OK)
        return;
    card_list_read(indices, ret);
}

/* A container may have many thousands of devices, and each is looked up. */
static bool checkpoint_file_index(struct checkpoint_file *t, const struct checkpoint *read)
{
    for (size_t i = 0; i < read->n_entries; i++) {
        const struct checkpoint_entry *e = &read->entries[i];
        size_t n = str_eq(e->resource, t->resource) ? e->n_ids : 0;
        struct checkpoint_file_device *d = arena_array(&t->arena, n, sizeof(*d));
        for (size_t k = 0; d != NULL && k < n; k++) { /* the arena keeps its failure */
            d[k] = (struct checkpoint_file_device){e->ids[k], e};
            if (map_get(&t->devices, d[k].id) == NULL && map_put(&t->devices, &d[k]) != OK)
                return false;
        }
    }
    return true;
}

static enum errc checkpoint_file_parse(struct checkpoint_file *t, struct err *reterr)
{
    struct checkpoint read = {.n_entries = 0};
    arena_reset(&t->arena);
    t->now = (struct checkpoint){.n_entries = 0};
    map_done(&t->devices);
    enum errc code = checkpoint_read(buf_str(&t->text), &t->arena, &read, reterr);
    if (code != OK)
        return code;
    t->cards = arena_array(&t->arena, read.n_entries + 1, sizeof(t->cards[0]));
    t->ids = arena_array(&t->arena, read.n_entries + 1, sizeof(t->ids[0]));
    for (size_t i = 0; i < read.n_entries && t->cards != NULL && t->ids != NULL; i++) {
        if (str_eq(read.entries[i].resource, t->resource))
            checkpoint_file_answer(t, &read.entries[i], &t->cards[i], &t->ids[i]);
    }
    bool indexed = checkpoint_file_index(t, &read);
    if (arena_failed(&t->arena) || !indexed) {
        map_done(&t->devices);
        return err_set(reterr, indexed ? arena_fault(&t->arena) : ERR_NOMEM, "no room for it");
    }
    t->now = read;
    return OK;
}

enum errc checkpoint_file_load(struct checkpoint_file *t, struct err *reterr)
{
    struct file_stamp none = {.size = 0};
    struct file_stamp stamp = file_stamp(t->path);
    if (t->loaded && file_stamp_eq(stamp, t->stamp))
        return OK;
    t->loaded = false;
    t->now = (struct checkpoint){.n_entries = 0}; /* views of the text */
    map_done(&t->devices);
    buf_clear(&t->text, MIB);
    struct err why = ERR_INIT;
    enum errc code = file_read_again(t->path, &t->text, &why);
    if (code == OK)
        code = checkpoint_file_parse(t, &why);
    bool missing = code == ERR_NOTFOUND && file_stamp_eq(stamp, none);
    if (code != OK && !missing) {
        *reterr = why;
        return err_wrap(reterr, "the kubelet's checkpoint");
    }
    t->stamp = stamp;
    t->there = !missing;
    t->loaded = true;
    return OK;
}

static bool checkpoint_file_is_gone(const struct checkpoint_file *t, struct str uid)
{
    uint64_t hash = map_hash(checkpoint_file_seed, uid);
    for (size_t i = 0; i < MIN_OF(t->n_gone, (size_t)CHECKPOINT_FILE_GONE_MAX); i++) {
        if (t->gone[i] == hash)
            return true;
    }
    return false;
}

static bool checkpoint_file_apply_one(const struct checkpoint_file *t, struct roster *r, size_t at)
{
    static const struct card_list none = {.n = 0};
    const struct checkpoint_entry *e = &t->now.entries[at];
    if (t->ids[at].p == NULL)
        return roster_truth(r, e->pod_uid, e->container, &t->cards[at], false);
    const struct card_list *has = specs_find(t->specs, t->ids[at]);
    return roster_truth(r, e->pod_uid, e->container, has == NULL ? &none : has, true);
}

bool checkpoint_file_apply(struct checkpoint_file *t, struct roster *r, bool after_allocate)
{
    bool all = true;
    roster_truth_begin(r);
    for (size_t i = 0; i < t->now.n_entries; i++) {
        const struct checkpoint_entry *e = &t->now.entries[i];
        /* A pod that was forgotten too early may be in the roster after all: then its entry counts.
         */
        if (!str_eq(e->resource, t->resource) ||
            (checkpoint_file_is_gone(t, e->pod_uid) && roster_find(r, e->pod_uid) == NULL))
            continue;
        all = checkpoint_file_apply_one(t, r, i) && all;
    }
    roster_truth_end(r, after_allocate);
    return all;
}

void checkpoint_file_forget_pod(struct checkpoint_file *t, struct str uid)
{
    if (!checkpoint_file_is_gone(t, uid))
        t->gone[t->n_gone++ % CHECKPOINT_FILE_GONE_MAX] = map_hash(checkpoint_file_seed, uid);
}

void checkpoint_file_forget(struct checkpoint_file *t, const struct roster *r)
{
    for (size_t i = 0; i < t->now.n_entries; i++) {
        const struct checkpoint_entry *e = &t->now.entries[i];
        if (str_eq(e->resource, t->resource) && roster_find(r, e->pod_uid) == NULL)
            checkpoint_file_forget_pod(t, e->pod_uid);
    }
}

const struct checkpoint_entry *checkpoint_file_owner(const struct checkpoint_file *t,
                                                     struct str device)
{
    const struct checkpoint_file_device *d = map_get(&t->devices, device);
    return d == NULL ? NULL : d->owner;
}
