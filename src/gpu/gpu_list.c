/*
 * Keeps the entries in the order of the identity's records. A scan makes new arrays, so that a
 * failed allocation leaves the list as it was.
 */
#include "gpu/gpu_list.h"

#include "base/mem.h"

#include <stdio.h>

void gpu_list_init(struct gpu_list *l, const struct gpu_health_rules *rules)
{
    *l = (struct gpu_list){.rules = *rules};
}

void gpu_list_done(struct gpu_list *l)
{
    gpu_identity_done(&l->identity);
    mem_free(l->entries);
    mem_free(l->cards);
    *l = (struct gpu_list){.n = 0};
}

static void gpu_list_fill(const struct gpu_entry *e, const char *no_driver, struct gpu_card *ret)
{
    const struct gpu_found *f = &e->found;
    *ret = (struct gpu_card){
        .index = e->index,
        .uuid = str_of(f->uuid),
        .pci = str_of(f->pci),
        .model = str_of(f->model),
        .profile = str_of(f->profile),
        .parent = str_of(f->parent),
        .memory_bytes = f->memory_bytes,
        .minor = f->minor,
        .numa = f->numa,
        .mig = f->parent[0] != '\0',
        .gpu_instance = f->gpu_instance,
        .compute_instance = f->compute_instance,
        .gpu_cap = f->gpu_cap,
        .compute_cap = f->compute_cap,
        .seen = e->seen,
        .missing = e->missing,
        .limits = f->parent[0] == '\0' && e->seen ? f->sample.limits : GPU_NOT_ASKED,
        .compute_mode = e->seen ? f->sample.compute_mode : GPU_NOT_ASKED,
        .health = e->health.level,
        .reason = str_of(e->health.reason),
        .needs_reset = gpu_health_needs_reset(&e->health),
    };
    if (no_driver[0] != '\0') {
        ret->health = GPU_UNHEALTHY;
        ret->reason = str_of(no_driver);
    } else if (!e->seen && e->health.level != GPU_UNHEALTHY) {
        ret->health = GPU_UNHEALTHY;
        ret->reason = STR("NVML has not listed the card since the start");
    } else if (e->taken && e->health.level != GPU_UNHEALTHY) {
        ret->health = GPU_UNHEALTHY;
        ret->reason = ret->mig ? STR("a pod has the whole card, which is in MIG mode")
                               : STR("pods have MIG slices of the card, which is not in MIG mode");
    }
}

static void gpu_list_fill_all(struct gpu_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        gpu_list_fill(&l->entries[i], l->no_driver, &l->cards[i]);
}

static bool gpu_list_same(const struct gpu_card *a, const struct gpu_card *b)
{
    return a->index == b->index && str_eq(a->uuid, b->uuid) && str_eq(a->pci, b->pci) &&
           str_eq(a->model, b->model) && str_eq(a->profile, b->profile) &&
           str_eq(a->parent, b->parent) && a->memory_bytes == b->memory_bytes &&
           a->minor == b->minor && a->numa == b->numa && a->mig == b->mig &&
           a->gpu_instance == b->gpu_instance && a->compute_instance == b->compute_instance &&
           a->gpu_cap == b->gpu_cap && a->compute_cap == b->compute_cap && a->seen == b->seen &&
           a->missing == b->missing && a->limits == b->limits &&
           a->compute_mode == b->compute_mode && a->health == b->health &&
           a->needs_reset == b->needs_reset && str_eq(a->reason, b->reason);
}

static void gpu_list_from_record(const struct gpu_record *r, struct gpu_entry *ret)
{
    *ret = (struct gpu_entry){.index = r->index, .missing = true};
    ret->found.memory_bytes = r->memory_bytes;
    ret->found.numa = -1;
    ret->found.mig = r->parent[0] != '\0';
    memcpy(ret->found.uuid, r->uuid, sizeof(r->uuid));
    memcpy(ret->found.pci, r->pci, sizeof(r->pci));
    memcpy(ret->found.parent, r->parent, sizeof(r->parent));
}

/* Entries and cards with room for n. */
static bool gpu_list_arrays(size_t n, struct gpu_entry **ret_entries, struct gpu_card **ret_cards)
{
    *ret_entries = mem_alloc(MAX_OF(n, (size_t)1) * sizeof(**ret_entries));
    *ret_cards = mem_alloc(MAX_OF(n, (size_t)1) * sizeof(**ret_cards));
    if (*ret_entries != NULL && *ret_cards != NULL)
        return true;
    mem_free(*ret_entries);
    mem_free(*ret_cards);
    return false;
}

enum errc gpu_list_load(struct gpu_list *l, struct gpu_identity *id)
{
    assert(l->n == 0 && l->entries == NULL);
    if (!gpu_list_arrays(id->n, &l->entries, &l->cards)) {
        l->entries = NULL;
        l->cards = NULL;
        gpu_identity_done(id);
        return ERR_NOMEM;
    }
    l->identity = *id;
    *id = (struct gpu_identity){.n = 0};
    l->n = l->identity.n;
    for (size_t i = 0; i < l->n; i++)
        gpu_list_from_record(&l->identity.items[i], &l->entries[i]);
    gpu_list_fill_all(l);
    return OK;
}

static const struct gpu_entry *gpu_list_entry(const struct gpu_list *l, const char *uuid)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->entries[i].found.uuid, uuid) == 0)
            return &l->entries[i];
    return NULL;
}

/* The UUID of the card; of a slice: of its card. */
static const char *gpu_list_whole(const struct gpu_entry *e)
{
    return e->found.parent[0] != '\0' ? e->found.parent : e->found.uuid;
}

/* From Hopper on a card is not in MIG mode after a reboot until NVIDIA's MIG manager has made its
 * slices again. A record of what the card was before stays only while pods have that: see
 * gpu_identity_match. Until the record goes, no new pod gets the card, or the slice,
 * that NVML lists in its place. */
static bool gpu_list_is_taken(const struct gpu_list *l, const struct gpu_record *now)
{
    for (size_t i = 0; !now->missing && i < l->identity.n; i++) {
        const struct gpu_record *other = &l->identity.items[i];
        if (strcmp(other->parent, now->uuid) == 0 || strcmp(now->parent, other->uuid) == 0)
            return true;
    }
    return false;
}

/* The entry of a record after a scan. */
static void gpu_list_renew(const struct gpu_list *l, const struct gpu_record *r,
                           const struct gpu_scan *scan, uint64_t now_ms, struct gpu_entry *ret)
{
    const struct gpu_entry *old = gpu_list_entry(l, r->uuid);
    if (old != NULL)
        *ret = *old;
    else
        gpu_list_from_record(r, ret);
    ret->index = r->index;
    ret->missing = r->missing;
    ret->taken = gpu_list_is_taken(l, r);
    if (scan->session != l->session) /* an older driver may have begun to count anew */
        ret->health.uncorrected = 0;
    for (size_t i = 0; i < scan->n; i++) {
        if (strcmp(scan->items[i].uuid, r->uuid) != 0)
            continue;
        ret->found = scan->items[i];
        ret->seen = true;
        (void)gpu_health_poll(&ret->health, &l->rules, &ret->found.sample, now_ms);
    }
    if (ret->missing)
        (void)gpu_health_missing(&ret->health, gpu_scan_left(scan, r->uuid, gpu_list_whole(ret)));
}

/* What the driver reserves can change while it runs: as long as the card's total is the same, the
 * card keeps the size that it was announced with. */
static void gpu_list_restore_sizes(const struct gpu_list *l, struct gpu_scan *scan)
{
    for (size_t i = 0; i < scan->n; i++) {
        struct gpu_found *f = &scan->items[i];
        const struct gpu_entry *old = gpu_list_entry(l, f->uuid);
        if (old != NULL && old->seen && old->found.total_bytes == f->total_bytes)
            f->memory_bytes = old->found.memory_bytes;
    }
}

/* Whether what was left out may be an entry's card, or a slice of it. */
static bool gpu_list_may_be(const struct gpu_left *left, const struct gpu_entry *e)
{
    if (left->uuid[0] == '\0')
        return e->missing;
    return strcmp(left->uuid, e->found.uuid) == 0 || strcmp(left->uuid, gpu_list_whole(e)) == 0 ||
           strcmp(left->parent, gpu_list_whole(e)) == 0;
}

/* Whether a card that is none of the entries requires a reset. */
static bool gpu_list_unlisted_reset(const struct gpu_list *l, const struct gpu_scan *scan)
{
    for (uint32_t i = 0; i < scan->left_out; i++) {
        bool unlisted = scan->left[i].code == NVML_RESET_REQUIRED;
        for (size_t j = 0; unlisted && j < l->n; j++)
            unlisted = !gpu_list_may_be(&scan->left[i], &l->entries[j]);
        if (unlisted)
            return true;
    }
    return false;
}

enum errc gpu_list_scan(struct gpu_list *l, struct gpu_scan *scan,
                        bool (*in_use)(void *ctx, uint32_t index), void *ctx, uint64_t now_ms,
                        bool *ret_changed, bool *ret_save)
{
    struct gpu_entry *entries;
    struct gpu_card *cards;
    uint32_t no_index = 0;
    if (!gpu_list_arrays(l->identity.n + scan->n, &entries, &cards))
        return ERR_NOMEM;
    gpu_list_restore_sizes(l, scan);
    enum errc code = gpu_identity_match(&l->identity, scan, in_use, ctx, ret_save, &no_index);
    if (code != OK) {
        mem_free(entries);
        mem_free(cards);
        return code;
    }
    size_t n = l->identity.n;
    bool changed = n != l->n;
    for (size_t i = 0; i < n; i++) {
        gpu_list_renew(l, &l->identity.items[i], scan, now_ms, &entries[i]);
        gpu_list_fill(&entries[i], "", &cards[i]);
        changed = changed || !gpu_list_same(&cards[i], &l->cards[i]);
    }
    mem_free(l->entries);
    mem_free(l->cards);
    l->entries = entries;
    l->cards = cards;
    l->n = n;
    l->no_index = no_index;
    l->unlisted_reset = gpu_list_unlisted_reset(l, scan);
    l->session = scan->session;
    l->no_driver[0] = '\0';
    *ret_changed = changed;
    return OK;
}

bool gpu_list_xid(struct gpu_list *l, const char *uuid, uint64_t xid, uint32_t gpu_instance,
                  uint64_t now_ms)
{
    bool changed = false;
    for (size_t i = 0; i < l->n; i++) {
        struct gpu_entry *e = &l->entries[i];
        bool slice = e->found.parent[0] != '\0';
        if (strcmp(gpu_list_whole(e), uuid) != 0)
            continue;
        if (slice && gpu_instance != NVML_NO_INSTANCE && gpu_instance != e->found.gpu_instance)
            continue;
        changed = gpu_health_xid(&e->health, &l->rules, xid, now_ms) || changed;
    }
    if (changed)
        gpu_list_fill_all(l);
    return changed;
}

bool gpu_list_awaits_reset(const struct gpu_list *l, bool (*in_use)(void *ctx, uint32_t index),
                           void *ctx)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct gpu_entry *e = &l->entries[i];
        bool awaits = gpu_health_awaits_reset(&e->health);
        /* NVML may not list a card that it can't use before the reset. */
        awaits = awaits && (!e->missing || e->health.reset_required);
        for (size_t j = 0; awaits && j < l->n; j++)
            awaits = strcmp(gpu_list_whole(e), gpu_list_whole(&l->entries[j])) != 0 ||
                     (in_use != NULL && !in_use(ctx, l->entries[j].index));
        if (awaits)
            return true;
    }
    bool known = l->n == 0;
    for (size_t i = 0; i < l->n; i++)
        known = known || l->entries[i].health.recovery_known;
    /* A card without an index is no pod's. But of other cards an older driver says nothing besides
     * their XIDs, which are heard only while it is open. */
    return l->unlisted_reset && known;
}

bool gpu_list_no_driver(struct gpu_list *l, const char *reason, bool resets)
{
    char text[GPU_REASON_BYTES];
    (void)snprintf(text, sizeof(text), "%s", reason);
    bool changed = strcmp(text, l->no_driver) != 0;
    memcpy(l->no_driver, text, sizeof(text));
    for (size_t i = 0; i < l->n; i++)
        l->entries[i].health.was_away = l->entries[i].health.was_away || resets;
    gpu_list_fill_all(l);
    return changed && l->n > 0;
}

const struct gpu_card *gpu_list_find(const struct gpu_list *l, uint32_t index)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->cards[i].index == index)
            return &l->cards[i];
    return NULL;
}
