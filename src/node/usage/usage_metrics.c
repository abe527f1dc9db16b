/* What is not known has no sample. The tally bounds the number of cards and pods. */
#include "node/usage/usage_metrics.h"

#include <stdio.h>

#define INDEX_BYTES 12

static struct expo_label usage_metrics_index(uint32_t card, char text[static INDEX_BYTES])
{
    int n = snprintf(text, INDEX_BYTES, "%u", card);
    return (struct expo_label){"card", {text, (size_t)n}};
}

static void usage_metrics_cards(struct expo *x, const struct usage_tally *t)
{
    char text[INDEX_BYTES];
    expo_family(x, EXPO_GAUGE, "cardpack_node_card_used_bytes",
                "Memory of the card in use, by all processes and the driver.");
    for (size_t i = 0; i < t->n_cards; i++) {
        const struct usage_tally_card *c = &t->cards[i];
        const struct expo_label l[] = {usage_metrics_index(c->index, text),
                                       {"uuid", str_of(c->uuid)}};
        if (c->known)
            expo_u64(x, l, 2, c->used);
    }
    expo_family(x, EXPO_GAUGE, "cardpack_node_card_busy_percent",
                "Share of the time in which the card computed.");
    for (size_t i = 0; i < t->n_cards; i++) {
        const struct expo_label l = usage_metrics_index(t->cards[i].index, text);
        if (t->cards[i].busy_percent != USAGE_BUSY_UNKNOWN)
            expo_u64(x, &l, 1, t->cards[i].busy_percent);
    }
    expo_family(x, EXPO_GAUGE, "cardpack_node_other_used_bytes",
                "Memory of the card in use by no pod: by the driver and by other processes.");
    for (size_t i = 0; i < t->n_cards; i++) {
        const struct expo_label l = usage_metrics_index(t->cards[i].index, text);
        if (t->cards[i].other_known)
            expo_u64(x, &l, 1, t->cards[i].other);
    }
}

static void usage_metrics_pods(struct expo *x, const struct usage_tally *t, bool promised)
{
    char text[INDEX_BYTES];
    for (size_t i = 0; i < t->n_uses; i++) {
        const struct usage_use *u = t->uses[i];
        const struct expo_label l[] = {{"namespace", u->pod.namespace},
                                       {"pod", u->pod.name},
                                       usage_metrics_index(u->card, text)};
        if (u->there && (promised ? u->promises : u->known))
            expo_u64(x, l, 3, promised ? u->promised : u->bytes);
    }
}

static void usage_metrics_one(struct expo *x, enum expo_type type, const char *name,
                              const char *help, uint64_t v)
{
    expo_family(x, type, name, help);
    expo_u64(x, NULL, 0, v);
}

void usage_metrics_write(struct expo *x, const struct usage_meter *m)
{
    const struct usage_tally *t = usage_meter_tally(m);
    const struct usage_meter_counts c = usage_meter_counts(m);
    const struct usage_post_counts p = usage_meter_posted(m);
    usage_metrics_cards(x, t);
    expo_family(x, EXPO_GAUGE, "cardpack_node_pod_used_bytes",
                "Memory of the card that the pod's processes use.");
    usage_metrics_pods(x, t, false);
    expo_family(x, EXPO_GAUGE, "cardpack_node_pod_promised_bytes",
                "Memory of the card that the pod has been promised.");
    usage_metrics_pods(x, t, true);
    usage_metrics_one(x, EXPO_GAUGE, "cardpack_node_pods_over_share",
                      "Pods that use more of a card than they have been promised.",
                      usage_tally_over(t));
    usage_metrics_one(x, EXPO_GAUGE, "cardpack_node_usage_blind",
                      "1 while cards have processes and none of them is in /proc.", c.blind);
    usage_metrics_one(x, EXPO_COUNTER, "cardpack_node_usage_rounds_total",
                      "How often all cards were measured.", c.rounds);
    usage_metrics_one(x, EXPO_COUNTER, "cardpack_node_usage_failures_total",
                      "Measurements of a card that failed.", c.failures);
    usage_metrics_one(x, EXPO_COUNTER, "cardpack_node_usage_left_out_total",
                      "Pods that were not measured because there were too many.", t->left_out);
    usage_metrics_one(x, EXPO_COUNTER, "cardpack_node_usage_written_total",
                      "Writes of the ConfigMap with what pods use.", p.written);
    usage_metrics_one(x, EXPO_COUNTER, "cardpack_node_usage_write_failures_total",
                      "Writes of that ConfigMap that failed.", p.failures);
}
