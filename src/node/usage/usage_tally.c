/* Adds up samples. Each pair of pod and card is one small block of memory. */
#include "node/usage/usage_tally.h"

#include "base/mem.h"
#include "base/sort.h"
#include "gpu/nvml.h"

#define MIB_SHIFT 20

void usage_tally_init(struct usage_tally *t)
{
    *t = (struct usage_tally){.n_cards = 0};
}

void usage_tally_done(struct usage_tally *t)
{
    for (size_t i = 0; i < t->n_uses; i++)
        mem_free(t->uses[i]);
    mem_free(t->cards);
    usage_tally_init(t);
}

/* ---- cards ---- */

static struct usage_tally_card *usage_tally_find_card(struct usage_tally *t, uint32_t index)
{
    size_t i = 0;
    while (i < t->n_cards && t->cards[i].index != index)
        i++;
    return i == t->n_cards ? NULL : &t->cards[i];
}

static enum errc usage_tally_grow(struct usage_tally *t)
{
    if (t->n_cards < t->cap_cards)
        return OK;
    if (t->n_cards >= LIMIT_GPU_CARDS)
        return ERR_LIMIT;
    size_t cap = t->cap_cards == 0 ? 8 : t->cap_cards * 2;
    struct usage_tally_card *cards = mem_resize(t->cards, cap * sizeof(*cards));
    if (cards == NULL)
        return ERR_NOMEM;
    t->cards = cards;
    t->cap_cards = cap;
    return OK;
}

/* The card, which this round has; a new one is put where its index belongs. */
static enum errc usage_tally_have_card(struct usage_tally *t, uint32_t index, struct str uuid)
{
    struct usage_tally_card *c = usage_tally_find_card(t, index);
    if (c == NULL) {
        enum errc code = usage_tally_grow(t);
        if (code != OK)
            return code;
        size_t at = t->n_cards++;
        for (; at > 0 && t->cards[at - 1].index > index; at--)
            t->cards[at] = t->cards[at - 1];
        c = &t->cards[at];
        *c = (struct usage_tally_card){.index = index, .busy_percent = USAGE_BUSY_UNKNOWN};
    }
    struct buf text = BUF_ON(c->uuid);
    buf_put(&text, uuid);
    (void)buf_cstr(&text);
    c->round = t->round;
    return OK;
}

static void usage_tally_read_card(struct usage_tally_card *c, const struct usage_reading *r)
{
    c->known =
        r != NULL && r->used_bytes != NVML_BYTES_UNKNOWN && r->total_bytes != NVML_BYTES_UNKNOWN;
    c->used = c->known ? r->used_bytes : 0;
    c->total = c->known ? r->total_bytes : 0;
    c->busy_percent = r == NULL || r->busy_percent > 100 ? USAGE_BUSY_UNKNOWN : r->busy_percent;
    c->other_known = false;
}

/* ---- pods ---- */

static struct usage_use *usage_tally_new(const struct usage_owner *pod, uint32_t card)
{
    struct usage_use *u = mem_alloc(sizeof(*u) + pod->uid.n + pod->namespace.n + pod->name.n);
    if (u == NULL)
        return NULL;
    char *at = (char *)(u + 1);
    u->pod = (struct usage_owner){.uid = str_store(&at, pod->uid),
                                  .namespace = str_store(&at, pod->namespace),
                                  .name = str_store(&at, pod->name)};
    u->card = card;
    return u;
}

static void usage_tally_drop(struct usage_tally *t, size_t i)
{
    t->went = t->went || t->uses[i]->written;
    mem_free(t->uses[i]);
    t->uses[i] = t->uses[--t->n_uses];
}

/* A pod of the same name and another UID is the one before: metrics name a pod once. */
static void usage_tally_replace(struct usage_tally *t, const struct usage_owner *pod)
{
    for (size_t i = t->n_uses; i > 0; i--) {
        const struct usage_use *u = t->uses[i - 1];
        if (str_eq(u->pod.name, pod->name) && str_eq(u->pod.namespace, pod->namespace) &&
            !str_eq(u->pod.uid, pod->uid))
            usage_tally_drop(t, i - 1);
    }
}

/* The pod on the card of the sample under way; NULL: it is not kept. */
static struct usage_use *usage_tally_find(const struct usage_tally *t, struct str uid)
{
    size_t i = 0;
    while (i < t->n_uses && (t->uses[i]->card != t->at || !str_eq(t->uses[i]->pod.uid, uid)))
        i++;
    return i == t->n_uses ? NULL : t->uses[i];
}

/* As usage_tally_find, but adds the pod if it is missing, and notes that this sample has it. NULL:
 * there is no room. */
static struct usage_use *usage_tally_have(struct usage_tally *t, const struct usage_owner *pod)
{
    struct usage_use *u = usage_tally_find(t, pod->uid);
    if (u == NULL) {
        usage_tally_replace(t, pod);
        u = t->n_uses == COUNT_OF(t->uses) ? NULL : usage_tally_new(pod, t->at);
        if (u == NULL) {
            t->left_out++;
            return NULL;
        }
        t->uses[t->n_uses++] = u;
    }
    if (u->sample != t->sample) {
        u->sum_known = u->sum_partial = false;
        u->sum = u->sum_promised = 0;
    }
    u->sample = t->sample;
    return u;
}

/* ---- a sample ---- */

void usage_tally_round_begin(struct usage_tally *t)
{
    t->round++;
}

void usage_tally_round_end(struct usage_tally *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n_cards; i++) {
        if (t->cards[i].round == t->round)
            t->cards[kept++] = t->cards[i];
        else
            t->went = t->went || t->cards[i].written;
    }
    t->n_cards = kept;
    for (size_t i = t->n_uses; i > 0; i--) {
        if (usage_tally_find_card(t, t->uses[i - 1]->card) == NULL)
            usage_tally_drop(t, i - 1);
    }
}

enum errc usage_tally_begin(struct usage_tally *t, uint32_t index, struct str uuid)
{
    enum errc code = usage_tally_have_card(t, index, uuid);
    if (code != OK)
        return code;
    t->sample++;
    t->at = index;
    t->missed = 0;
    return OK;
}

void usage_tally_process(struct usage_tally *t, const struct usage_owner *pod, uint64_t bytes)
{
    struct usage_use *u = usage_tally_have(t, pod);
    if (u == NULL)
        return;
    u->process_sample = t->sample;
    uint64_t sum = 0;
    if (bytes == NVML_BYTES_UNKNOWN || __builtin_add_overflow(u->sum, bytes, &sum)) {
        u->sum_partial = true;
        return;
    }
    u->sum_known = true;
    u->sum = sum;
}

void usage_tally_miss(struct usage_tally *t)
{
    t->missed++;
}

void usage_tally_promise(struct usage_tally *t, const struct usage_owner *pod, uint64_t bytes)
{
    const struct usage_use *there = usage_tally_find(t, pod->uid);
    if (bytes == 0 && (there == NULL || there->process_sample != t->sample))
        return;
    struct usage_use *u = usage_tally_have(t, pod);
    if (u == NULL)
        return;
    u->promise_sample = t->sample;
    u->sum_promised = bytes;
}

static uint64_t usage_tally_mib_up(uint64_t bytes)
{
    return (bytes >> MIB_SHIFT) + ((bytes & ((UINT64_C(1) << MIB_SHIFT) - 1)) != 0 ? 1 : 0);
}

/* Whether an event about it is due. */
static bool usage_tally_judge(struct usage_use *u, uint64_t now_ms)
{
    bool judged = u->there && u->known && u->promises;
    bool over = judged && usage_tally_mib_up(u->bytes) > u->promised >> MIB_SHIFT;
    u->overs = over ? MIN_OF(u->overs + 1, USAGE_OVER_SAMPLES) : 0;
    u->below = u->below || !u->there || (judged && !over);
    if (u->overs < USAGE_OVER_SAMPLES ||
        (u->warned && (!u->below || now_ms - u->warned_ms < USAGE_OVER_PAUSE_MS)))
        return false;
    u->warned = true;
    u->warned_ms = now_ms;
    u->below = false;
    return true;
}

/* The figures of the sample become those of the use. */
static void usage_tally_take(const struct usage_tally *t, struct usage_use *u)
{
    bool runs = u->process_sample == t->sample;
    u->there = u->sample == t->sample;
    u->promises = u->there && u->promise_sample == t->sample;
    u->promised = u->promises ? u->sum_promised : 0;
    /* No process of it was found: it uses nothing, unless one that was missed is its. */
    u->known = u->there && (runs ? u->sum_known : t->missed == 0);
    u->partial = u->known && runs && (u->sum_partial || t->missed > 0);
    u->bytes = u->known && runs ? u->sum : 0;
}

static void usage_tally_rest(const struct usage_tally *t, struct usage_tally_card *c)
{
    uint64_t sum = 0;
    bool known = c->known;
    for (size_t i = 0; i < t->n_uses; i++) {
        const struct usage_use *u = t->uses[i];
        if (u->card != c->index || !u->there)
            continue;
        known = known && u->known && !u->sum_partial;
        sum += u->bytes;
    }
    c->other_known = known;
    c->other = known && sum < c->used ? c->used - sum : 0;
}

void usage_tally_end(struct usage_tally *t, const struct usage_reading *r, uint64_t now_ms,
                     void (*over)(void *ctx, const struct usage_use *u), void *ctx)
{
    struct usage_tally_card *c = usage_tally_find_card(t, t->at);
    assert(c != NULL);
    usage_tally_read_card(c, r);
    for (size_t i = t->n_uses; i > 0; i--) {
        struct usage_use *u = t->uses[i - 1];
        if (u->card != t->at)
            continue;
        usage_tally_take(t, u);
        if (usage_tally_judge(u, now_ms))
            over(ctx, u);
        if (u->there)
            continue;
        t->went = t->went || u->written;
        u->written = false;
        if (!u->warned || now_ms - u->warned_ms >= USAGE_OVER_PAUSE_MS)
            usage_tally_drop(t, i - 1);
    }
    usage_tally_rest(t, c);
}

void usage_tally_fail(struct usage_tally *t, uint32_t index, struct str uuid,
                      const struct usage_reading *r)
{
    if (usage_tally_have_card(t, index, uuid) == OK)
        usage_tally_read_card(usage_tally_find_card(t, index), r);
    for (size_t i = 0; i < t->n_uses; i++) {
        if (t->uses[i]->card != index)
            continue;
        t->uses[i]->known = false;
        t->uses[i]->overs = 0;
    }
}

void usage_tally_forget(struct usage_tally *t)
{
    for (size_t i = 0; i < t->n_cards; i++)
        usage_tally_read_card(&t->cards[i], NULL);
    for (size_t i = 0; i < t->n_uses; i++) {
        t->uses[i]->known = false;
        t->uses[i]->overs = 0;
    }
}

void usage_tally_gone(struct usage_tally *t, struct str uid)
{
    for (size_t i = t->n_uses; i > 0; i--) {
        if (str_eq(t->uses[i - 1]->pod.uid, uid))
            usage_tally_drop(t, i - 1);
    }
}

/* ---- the text ---- */

static bool usage_tally_is_shown(const struct usage_use *u)
{
    return u->there && u->known;
}

static bool usage_tally_differs(bool shown, uint64_t bytes, bool written, uint64_t written_bytes,
                                uint64_t total)
{
    uint64_t step = MAX_OF(USAGE_CHANGE_BYTES, total / USAGE_CHANGE_PARTS);
    if (shown != written)
        return true;
    uint64_t change = bytes > written_bytes ? bytes - written_bytes : written_bytes - bytes;
    return shown && change >= step;
}

static uint64_t usage_tally_total(const struct usage_tally *t, uint32_t card)
{
    for (size_t i = 0; i < t->n_cards; i++) {
        if (t->cards[i].index == card)
            return t->cards[i].total;
    }
    return 0;
}

bool usage_tally_changed(const struct usage_tally *t)
{
    bool changed = t->went;
    for (size_t i = 0; i < t->n_cards; i++) {
        const struct usage_tally_card *c = &t->cards[i];
        changed = changed ||
                  usage_tally_differs(c->known, c->used, c->written, c->written_bytes, c->total);
    }
    for (size_t i = 0; i < t->n_uses; i++) {
        const struct usage_use *u = t->uses[i];
        changed = changed || usage_tally_differs(usage_tally_is_shown(u), u->bytes, u->written,
                                                 u->written_bytes, usage_tally_total(t, u->card));
    }
    return changed;
}

/* The pod with most memory first. */
static bool usage_tally_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct usage_tally *t = ctx;
    const struct usage_use *x = t->uses[a];
    const struct usage_use *y = t->uses[b];
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    int order = str_cmp(x->pod.uid, y->pod.uid);
    return order != 0 ? order < 0 : x->card < y->card;
}

enum errc usage_tally_view(const struct usage_tally *t, struct arena *a, struct usage_view *ret)
{
    uint32_t order[USAGE_PODS_MAX] _uninitialized_;
    uint32_t n = 0;
    struct usage_view v = {.cards = arena_array(a, t->n_cards + 1, sizeof(*v.cards)),
                           .pods = arena_array(a, t->n_uses + 1, sizeof(*v.pods))};
    if (arena_failed(a))
        return arena_fault(a);
    for (size_t i = 0; i < t->n_cards; i++) {
        const struct usage_tally_card *c = &t->cards[i];
        if (!c->known)
            continue;
        v.cards[v.n_cards++] = (struct usage_card){.index = c->index,
                                                   .used_mib = c->used >> MIB_SHIFT,
                                                   .total_mib = c->total >> MIB_SHIFT,
                                                   .busy_percent = c->busy_percent};
    }
    for (uint32_t i = 0; i < t->n_uses; i++) {
        if (usage_tally_is_shown(t->uses[i]))
            order[n++] = i;
    }
    sort_by(order, n, usage_tally_before, t);
    for (uint32_t i = 0; i < n; i++) {
        const struct usage_use *u = t->uses[order[i]];
        v.pods[v.n_pods++] = (struct usage_pod){.uid = u->pod.uid,
                                                .namespace = u->pod.namespace,
                                                .name = u->pod.name,
                                                .card = u->card,
                                                .used_mib = u->bytes >> MIB_SHIFT};
    }
    *ret = v;
    return OK;
}

void usage_tally_written(struct usage_tally *t)
{
    t->went = false;
    for (size_t i = 0; i < t->n_cards; i++) {
        t->cards[i].written = t->cards[i].known;
        t->cards[i].written_bytes = t->cards[i].used;
    }
    for (size_t i = 0; i < t->n_uses; i++) {
        t->uses[i]->written = usage_tally_is_shown(t->uses[i]);
        t->uses[i]->written_bytes = t->uses[i]->bytes;
    }
}

size_t usage_tally_over(const struct usage_tally *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_uses; i++) {
        const struct usage_use *u = t->uses[i];
        bool first = u->overs >= USAGE_OVER_SAMPLES;
        for (size_t k = 0; k < i && first; k++)
            first =
                t->uses[k]->overs < USAGE_OVER_SAMPLES || !str_eq(t->uses[k]->pod.uid, u->pod.uid);
        n += first ? 1 : 0;
    }
    return n;
}
