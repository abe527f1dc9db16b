/*
 * Writes nodes and cards, with the numbers that filter uses. The samples of one family must be
 * adjacent, so each family loops over the nodes once; that costs less than the bytes that it
 * writes.
 *
 * The unit of memory is that of the device plugin, GiB or MiB. No object of the API server says
 * which one, so the names say "units".
 */
#include "daemon/metrics/metrics.h"
#include "daemon/service.h"
#include "report/inspect_write.h"

#define PERCENT_DECIMALS 2

struct shown {
    const struct node **nodes;
    size_t n;
};

enum card_state {
    CARD_USABLE,
    CARD_UNHEALTHY,
    CARD_CORDONED,
    CARD_ASIDE,
    CARD_DRA,
    CARD_STATES
};

static const char *const card_states[CARD_STATES] = {"usable", "unhealthy", "cordoned", "set_aside",
                                                     "dra"};

static enum card_state metrics_cards_state_of(const struct card *c)
{
    if (c->unhealthy)
        return CARD_UNHEALTHY;
    if (c->cordoned)
        return CARD_CORDONED;
    if (c->aside)
        return CARD_ASIDE;
    return c->given || c->claimed ? CARD_DRA : CARD_USABLE;
}

/* ---- totals ---- */

struct totals {
    uint64_t faults[NODE_BAD_CARDS + 1];
    uint64_t cards[CARD_STATES];
    uint64_t overcommitted;
    uint64_t twice; /* claimed, and shared by pods */
    int64_t memory;
    int64_t allocated;
    int64_t unplaced;
    uint64_t unreadable;
    uint64_t pods[POD_BOUND + 1];
    uint64_t locks[2]; /* held, ignored */
};

static void metrics_cards_add_node(struct totals *t, const struct node *n, uint64_t now_s)
{
    t->locks[0] += n->locked ? 1 : 0;
    t->locks[1] += n->lock != NULL && lock_is_odd(n->lock, now_s) ? 1 : 0;
    t->faults[n->fault]++;
    t->memory += n->total;
    t->allocated += n->used;
    t->unplaced += n->unplaced;
    t->unreadable += n->n_unreadable;
    for (uint32_t i = 0; i < n->n_cards; i++) {
        const struct card *c = &n->cards[i];
        if (c->absent)
            continue;
        t->cards[metrics_cards_state_of(c)]++;
        t->overcommitted += c->used > c->total ? 1 : 0;
        t->twice += c->claimed && c->pods > 0 ? 1 : 0;
    }
}

static void metrics_cards_add_all(struct totals *t, const struct cache *cache, uint64_t now_s)
{
    size_t cursor = 0;
    for (const struct node *n = cache_next_node(cache, &cursor); n != NULL;
         n = cache_next_node(cache, &cursor))
        metrics_cards_add_node(t, n, now_s);
    cursor = 0;
    for (const struct pod *p = cache_next_pod(cache, &cursor); p != NULL;
         p = cache_next_pod(cache, &cursor))
        t->pods[p->state]++;
}

static void metrics_cards_write_words(struct metrics_writer *w, const char *name, const char *help,
                                      const char *const *words, const uint64_t *values, size_t n)
{
    expo_family(&w->expo, EXPO_GAUGE, name, help);
    for (size_t i = 0; i < n; i++) {
        const struct expo_label label = {"state", str_of(words[i])};
        expo_u64(&w->expo, &label, 1, values[i]);
    }
}

static void metrics_cards_write_one(struct metrics_writer *w, const char *name, const char *help,
                                    int64_t v)
{
    expo_family(&w->expo, EXPO_GAUGE, name, help);
    expo_i64(&w->expo, NULL, 0, v);
}

static void metrics_cards_write_dra(struct metrics_writer *w, const struct totals *t)
{
    static const char *const joined[DRA_JOINED_COUNT] = {
        [DRA_UNKNOWN] = "unknown", [DRA_NO_CARD] = "no_card", [DRA_CARD] = "card"};
    uint64_t devices[DRA_JOINED_COUNT];
    dra_count(&w->service->cache.dra, devices);
    metrics_cards_write_words(
        w, "cardpack_dra_devices",
        "Devices that ResourceClaims hold: a card of a known node, no such card, or unknown, "
        "because no ResourceSlice names the device.",
        joined, devices, COUNT_OF(joined));
    metrics_cards_write_one(
        w, "cardpack_dra_cards_used_twice",
        "Cards that a ResourceClaim holds whole while pods share them: only a partition prevents "
        "that.",
        (int64_t)t->twice);
}

static void metrics_cards_write_totals(struct metrics_writer *w)
{
    static const char *const faults[] = {[NODE_OK] = "sharing",
                                         [NODE_ABSENT] = "absent",
                                         [NODE_NOT_SHARED] = "not_shared",
                                         [NODE_NO_CARDS] = "no_cards",
                                         [NODE_BAD_QUANTITY] = "bad_quantity",
                                         [NODE_BAD_CARDS] = "bad_cards"};
    static const char *const pods[] = {[POD_PENDING] = "pending",
                                       [POD_RESERVED] = "reserved",
                                       [POD_CONFIRMED] = "confirmed",
                                       [POD_BOUND] = "bound"};
    static const char *const locks[] = {"held", "ignored"};
    struct totals t = {.memory = 0};
    metrics_cards_add_all(&t, &w->service->cache, loop_wall_ns(w->service->loop) / 1000000000);
    metrics_cards_write_words(
        w, "cardpack_nodes",
        "Nodes that are known: those that share cards, and those that can't, by why.", faults,
        t.faults, COUNT_OF(faults));
    metrics_cards_write_words(
        w, "cardpack_node_locks",
        "Nodes with a lock of HAMi's family that keeps pods away (held), or that can't be true and "
        "is not obeyed (ignored).",
        locks, t.locks, COUNT_OF(locks));
    metrics_cards_write_words(w, "cardpack_cards",
                              "Cards of all nodes, by whether pods may be placed on them.",
                              card_states, t.cards, CARD_STATES);
    metrics_cards_write_one(
        w, "cardpack_cards_overcommitted",
        "Cards that hold more than their size: after a resize, or because another client "
        "bound a pod.",
        (int64_t)t.overcommitted);
    metrics_cards_write_one(w, "cardpack_memory_units",
                            "Memory of all cards, in the device plugin's unit (GiB or MiB).",
                            t.memory);
    metrics_cards_write_one(w, "cardpack_memory_allocated_units",
                            "Of that, what pods hold, in the device plugin's unit.", t.allocated);
    metrics_cards_write_one(
        w, "cardpack_memory_unplaced_units",
        "Of that, what is held by pods without a valid card, in the device plugin's unit.",
        t.unplaced);
    metrics_cards_write_words(
        w, "cardpack_pods",
        "Pods that want or hold a card: pending, reserved (a Binding is under way or in "
        "doubt), confirmed (bound, and the watch has yet to show it), bound.",
        pods, t.pods, COUNT_OF(pods));
    metrics_cards_write_one(w, "cardpack_pods_unreadable",
                            "Of the bound ones, those that cannot be read: their nodes get no new "
                            "pods.",
                            (int64_t)t.unreadable);
    metrics_cards_write_dra(w, &t);
}

/* ---- nodes ---- */

static void metrics_cards_write_each_node(struct metrics_writer *w, const struct shown *s)
{
    static const char *const series[][2] = {
        {"cardpack_node_memory_units",
         "Memory of the node's cards, in the device plugin's unit (GiB or MiB)."},
        {"cardpack_node_memory_allocated_units",
         "Of that, what pods hold, with a valid card or without."},
        {"cardpack_node_memory_unplaced_units",
         "Of that, what is held by pods without a valid card."},
        {"cardpack_node_memory_most_free_units",
         "What the freest usable card has left: a pod that requests more of one card does not "
         "fit."},
        {"cardpack_node_pods", "Pods that hold something of the node's cards."},
    };
    for (size_t i = 0; i < COUNT_OF(series); i++) {
        expo_family(&w->expo, EXPO_GAUGE, series[i][0], series[i][1]);
        for (size_t k = 0; k < s->n; k++) {
            const struct node *n = s->nodes[k];
            const int64_t of[] = {n->total, n->used, n->unplaced, n->most_free, n->n_pods};
            const struct expo_label label = {"node", n->name};
            expo_i64(&w->expo, &label, 1, of[i]);
        }
    }
}

/* ---- cards ---- */

/* A card's index as text. */
struct digits {
    char bytes[16];
};

static void metrics_cards_label_card(const struct node *n, uint32_t card, struct digits *room,
                                     struct expo_label labels[static 2])
{
    struct buf text = BUF_ON(room->bytes);
    buf_put_u64(&text, card);
    labels[0] = (struct expo_label){"node", n->name};
    labels[1] = (struct expo_label){"card", buf_str(&text)};
}

struct card_series {
    const char *name;
    const char *help;
    unsigned decimals;
};

static void metrics_cards_write_cards(struct metrics_writer *w, const struct shown *s)
{
    static const struct card_series series[] = {
        {"cardpack_card_memory_units",
         "Memory of the card, in the device plugin's unit (GiB or MiB).", 0},
        {"cardpack_card_memory_allocated_units", "Of that, what pods hold.", 0},
        {"cardpack_card_compute_allocated_ratio",
         "Of the card's compute, what pods hold that ask for a share of it; 1 is all.",
         PERCENT_DECIMALS},
        {"cardpack_card_pods", "Pods that hold something of the card.", 0},
    };
    struct digits digits;
    struct expo_label labels[2];
    for (size_t i = 0; i < COUNT_OF(series); i++) {
        expo_family(&w->expo, EXPO_GAUGE, series[i].name, series[i].help);
        for (size_t at = 0; at < s->n; at++) {
            const struct node *n = s->nodes[at];
            for (uint32_t k = 0; k < n->n_cards; k++) {
                const struct card *c = &n->cards[k];
                const int64_t of[] = {c->total, c->used, c->cores, c->pods};
                if (c->absent)
                    continue;
                metrics_cards_label_card(n, k, &digits, labels);
                expo_fixed(&w->expo, labels, COUNT_OF(labels), of[i], series[i].decimals);
            }
        }
    }
}

/* Writes unusable cards only: most cards never are. */
static void metrics_cards_write_unusable(struct metrics_writer *w, const struct shown *s)
{
    struct digits digits;
    struct expo_label labels[3];
    expo_family(
        &w->expo, EXPO_GAUGE, "cardpack_card_unusable",
        "1 for a card where no pod is placed, by why: unhealthy, cordoned, set aside for another "
        "plugin, or given out by DRA. Without a series the card is usable.");
    for (size_t i = 0; i < s->n; i++) {
        const struct node *n = s->nodes[i];
        for (uint32_t k = 0; k < n->n_cards; k++) {
            if (n->cards[k].absent || card_usable(&n->cards[k]))
                continue;
            metrics_cards_label_card(n, k, &digits, labels);
            labels[2] = (struct expo_label){
                "reason", str_of(card_states[metrics_cards_state_of(&n->cards[k])])};
            expo_u64(&w->expo, labels, COUNT_OF(labels), 1);
        }
    }
}

/* Writes only cards with a known property. */
static void metrics_cards_write_infos(struct metrics_writer *w, const struct shown *s)
{
    struct digits digits;
    struct uuid_room room _uninitialized_;
    struct expo_label labels[4];
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_card_info",
                "What is known of a card; without a series: nothing.");
    for (size_t i = 0; i < s->n; i++) {
        const struct node *n = s->nodes[i];
        for (uint32_t k = 0; k < n->n_cards; k++) {
            struct str model = node_card_model(n, k);
            struct str uuid = node_card_uuid(n, k, &room);
            if (n->cards[k].absent || (model.n == 0 && uuid.n == 0))
                continue;
            metrics_cards_label_card(n, k, &digits, labels);
            labels[2] = (struct expo_label){"model", model};
            labels[3] = (struct expo_label){"uuid", uuid};
            expo_u64(&w->expo, labels, COUNT_OF(labels), 1);
        }
    }
}

/* ---- what is really used ---- */

/* Writes only cards of which it is known. */
static void metrics_cards_write_measured(struct metrics_writer *w, const struct shown *s)
{
    static const struct card_series series[] = {
        {"cardpack_card_memory_used_bytes",
         "Memory of the card that is really used, as cardpack-node measures it; without a series: "
         "unknown.",
         0},
        {"cardpack_card_memory_bytes", "Memory of the card, as cardpack-node measures it.", 0},
        {"cardpack_card_busy_ratio", "Part of the time in which the card computes; 1 is always.",
         PERCENT_DECIMALS},
    };
    struct digits digits;
    struct expo_label labels[2];
    for (size_t i = 0; i < COUNT_OF(series); i++) {
        expo_family(&w->expo, EXPO_GAUGE, series[i].name, series[i].help);
        for (size_t at = 0; at < s->n; at++) {
            const struct node *n = s->nodes[at];
            const struct measured_node *m = measured_of(&w->service->measured, n->name);
            for (uint32_t k = 0; m != NULL && k < n->n_cards; k++) {
                const struct measured_card *c = measured_card_of(m, k);
                if (c == NULL || n->cards[k].absent ||
                    (i == 2 && c->busy_percent == MEASURED_BUSY_UNKNOWN))
                    continue;
                const int64_t of[] = {c->used_mib * (int64_t)MIB, c->total_mib * (int64_t)MIB,
                                      c->busy_percent};
                metrics_cards_label_card(n, k, &digits, labels);
                expo_fixed(&w->expo, labels, COUNT_OF(labels), of[i], series[i].decimals);
            }
        }
    }
}

struct exceeding {
    uint32_t of[LIMIT_CARDS];
};

/* Counts the pods on each card that use more than their share of it. */
static void metrics_cards_count_exceeding(const struct measured *all, const struct node *n,
                                          const struct measured_node *m, struct exceeding *ret)
{
    memset(ret->of, 0, n->n_cards * sizeof(ret->of[0]));
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        for (uint32_t i = 0; i < p->allocation->n_shares; i++) {
            const struct share *s = &p->allocation->shares[i];
            uint32_t mib = 0;
            if (!node_has_card(n, s->card) || !measured_pod_of(all, m, p->uid, s->card, &mib))
                continue;
            int64_t total = n->cards[s->card].total;
            ret->of[s->card] += measured_exceeds(measured_card_of(m, s->card), total,
                                                 node_charge_of(n, p->request, s), mib);
        }
    }
}

static void metrics_cards_write_exceeding(struct metrics_writer *w, const struct shown *s)
{
    struct exceeding exceeding _uninitialized_;
    struct digits digits;
    struct expo_label labels[2];
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_card_pods_exceeding",
                "Pods that use more of the card than their share; without a series: unknown.");
    for (size_t i = 0; i < s->n; i++) {
        const struct node *n = s->nodes[i];
        const struct measured_node *m = measured_of(&w->service->measured, n->name);
        if (m == NULL)
            continue;
        metrics_cards_count_exceeding(&w->service->measured, n, m, &exceeding);
        for (uint32_t k = 0; k < n->n_cards; k++) {
            if (n->cards[k].absent || measured_card_of(m, k) == NULL)
                continue;
            metrics_cards_label_card(n, k, &digits, labels);
            expo_u64(&w->expo, labels, COUNT_OF(labels), exceeding.of[k]);
        }
    }
}

static void metrics_cards_write_differing(struct metrics_writer *w, const struct shown *s)
{
    expo_family(&w->expo, EXPO_GAUGE, "cardpack_containers_differing",
                "Containers that have other cards by the kubelet's list of devices than by their "
                "annotations; without a series: unknown.");
    for (size_t i = 0; i < s->n; i++) {
        const struct measured_node *m = measured_of(&w->service->measured, s->nodes[i]->name);
        const struct expo_label label = {"node", s->nodes[i]->name};
        if (m != NULL && m->asked)
            expo_u64(&w->expo, &label, 1, m->n_differences);
    }
}

void metrics_write_cards(struct metrics_writer *w)
{
    struct shown s;
    s.nodes = inspect_write_collect(&w->service->cache, w->arena, &s.n);
    if (s.nodes == NULL) {
        w->expo.out->failed = true;
        return;
    }
    size_t left_out = s.n - MIN_OF(s.n, (size_t)w->metrics->max_nodes);
    s.n -= left_out;
    metrics_cards_write_totals(w);
    metrics_cards_write_one(
        w, "cardpack_metrics_nodes_left_out",
        "Nodes without series of their own, as there are more than metrics-nodes.",
        (int64_t)left_out);
    metrics_cards_write_each_node(w, &s);
    metrics_cards_write_cards(w, &s);
    metrics_cards_write_unusable(w, &s);
    metrics_cards_write_infos(w, &s);
    metrics_cards_write_one(w, "cardpack_nodes_measured",
                            "Nodes of which it is known what their cards and pods really use.",
                            (int64_t)w->service->measured.n_known);
    metrics_cards_write_measured(w, &s);
    metrics_cards_write_exceeding(w, &s);
    metrics_cards_write_differing(w, &s);
}
