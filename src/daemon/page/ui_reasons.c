/* Finds a pod by the hash of its UID, in a linear search over the table. */
#include "daemon/page/ui_reasons.h"

#include "base/str.h"
#include "daemon/limit.h"
#include "report/reason.h"

#include <string.h>

#define NOWHERE SIZE_MAX

void ui_reasons_init(struct ui_reasons *r, struct map_seed seed)
{
    memset(r, 0, sizeof(*r));
    r->seed = seed;
}

static uint64_t ui_reasons_hash_of(const struct ui_reasons *r, struct str uid)
{
    return map_hash(r->seed, uid) | 1;
}

static size_t ui_reasons_find(const struct ui_reasons *r, struct str uid, uint64_t hash)
{
    for (size_t i = 0; r->n > 0 && i < LIMIT_UI_REASONS; i++) {
        const struct ui_reason *one = &r->all[i];
        if (r->hashes[i] == hash && str_eq((struct str){one->uid, one->uid_n}, uid))
            return i;
    }
    return NOWHERE;
}

void ui_reasons_forget(struct ui_reasons *r, struct str uid)
{
    size_t i = r->n == 0 ? NOWHERE : ui_reasons_find(r, uid, ui_reasons_hash_of(r, uid));
    if (i == NOWHERE)
        return;
    r->hashes[i] = 0;
    r->n--;
    r->version++;
}

/* Returns an unused entry, or that of the pod which was refused the longest ago. */
static size_t ui_reasons_make_room(struct ui_reasons *r)
{
    size_t oldest = 0;
    for (size_t i = 0; i < LIMIT_UI_REASONS; i++) {
        if (r->hashes[i] == 0) {
            r->n++;
            return i;
        }
        if (r->all[i].noted < r->all[oldest].noted)
            oldest = i;
    }
    return oldest;
}

/* Where some cards are feasible, but fewer than the pod asks for, the sum has the figures of the
 * others: these are not the most that there is on a card. */
static struct ui_figures ui_reasons_figures(const struct shortfall *sums)
{
    struct ui_figures ret = {.largest = 0};
    if (sums == NULL)
        return ret;
    const struct shortfall *free = &sums[VERDICT_NO_CARD_FREE];
    const struct shortfall *cores = &sums[VERDICT_NO_CORES];
    ret.largest = sums[VERDICT_TOO_LARGE].largest;
    ret.free = free->fit > 0 ? -1 : free->free;
    ret.left = sums[VERDICT_NODE_FULL].left;
    ret.cores = cores->fit > 0 ? -1 : (int64_t)cores->cores;
    return ret;
}

/* Returns whether the note has changed. */
static bool ui_reasons_write(struct ui_reason *one, const struct candidates *j)
{
    struct ui_figures most = ui_reasons_figures(j->shortfalls);
    char bytes[UI_REASON_QUOTA_BYTES];
    struct buf scratch = BUF_ON(bytes);
    struct str quota = STR("");
    if (j->denied != NULL) {
        most.denial = j->denial;
        quota = reason_node(&scratch, j->denied->name, j->denied, &j->evaluation, j->denial);
        if (buf_failed(&scratch) || quota.n > UI_REASON_QUOTA_BYTES)
            quota = STR("");
    }
    bool same = memcmp(one->counts, j->counts, sizeof(one->counts)) == 0 &&
                memcmp(&one->most, &most, sizeof(most)) == 0 &&
                str_eq((struct str){one->quota, one->quota_n}, quota);
    memcpy(one->counts, j->counts, sizeof(one->counts));
    one->most = most;
    one->quota_n = quota.n;
    memcpy(one->quota, quota.p, quota.n);
    return !same;
}

void ui_reasons_note(struct ui_reasons *r, struct str uid, const struct candidates *j)
{
    if (uid.n == 0 || uid.n > UI_REASON_UID_BYTES)
        return;
    uint64_t hash = ui_reasons_hash_of(r, uid);
    size_t i = ui_reasons_find(r, uid, hash);
    bool known = i != NOWHERE;
    struct ui_reason *one = &r->all[known ? i : ui_reasons_make_room(r)];
    if (!known) {
        r->hashes[one - r->all] = hash;
        one->uid_n = uid.n;
        memcpy(one->uid, uid.p, uid.n);
    }
    bool changed = ui_reasons_write(one, j);
    if (!known || changed)
        r->version++;
    one->noted = ++r->noted;
}

void ui_reasons_filtered(struct ui_reasons *r, struct str uid, const struct candidates *j)
{
    if (r == NULL)
        return;
    if (j->counts[VERDICT_FITS] > 0)
        ui_reasons_forget(r, uid);
    else
        ui_reasons_note(r, uid, j);
}

const struct ui_reason *ui_reasons_get(const struct ui_reasons *r, struct str uid)
{
    size_t i = ui_reasons_find(r, uid, ui_reasons_hash_of(r, uid));
    return i == NOWHERE ? NULL : &r->all[i];
}
