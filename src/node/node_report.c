/* What the log and the node's events say of the cards when it changes. */
#include "base/log.h"
#include "node/node_program.h"

#include <stdio.h>

static const char *node_report_phase_name(enum gpu_watch_phase phase)
{
    static const char *const names[] = {"starting", "running", "no-library", "no-driver", "hangs"};
    return names[phase];
}

static void node_report_phase(struct node_program *n, const struct gpu_watch_state *state)
{
    if (state->bad_setting.n > 0 && !n->warned)
        log_warn("a health check that is to be disabled or enabled is not known",
                 kv_str("word", state->bad_setting));
    n->warned = n->warned || state->bad_setting.n > 0;
    if (state->rests && !n->rests)
        log_info("the driver is closed, so that a card can be reset");
    else if (n->rests && !state->rests)
        log_info("the driver is open again: no card waits for a reset");
    n->rests = state->rests;
    if (state->phase == n->phase)
        return;
    n->phase = state->phase;
    if (state->phase == GPU_WATCH_RUNNING)
        log_info("the cards are known", kv_str("driver", state->driver),
                 kv_uint("left_out", state->left_out), kv_str("why", state->left_out_why));
    else
        log_warn("NVIDIA's library or driver does not answer",
                 kv_cstr("phase", node_report_phase_name(state->phase)), kv_str("why", state->why));
}

/* A card of less than one unit is announced without memory. How many; which, in *ret_small. */
static uint32_t node_report_count_small(const struct announce_card *cards, size_t n_cards,
                                        const struct announce_card **ret_small)
{
    uint32_t n = 0;
    for (size_t i = 0; i < n_cards; i++) {
        if (cards[i].units > 0)
            continue;
        *ret_small = &cards[i];
        n++;
    }
    return n;
}

static void node_report_left_out(struct node_program *n, const struct gpu_watch_state *state,
                                 const struct announce_card *cards, size_t n_cards)
{
    char bytes[EVENT_MESSAGE_BYTES];
    char reason[sizeof(n->left_out_why)];
    struct buf text = BUF_ON(bytes);
    struct buf why = BUF_ON(reason);
    const struct announce_card *small = NULL;
    const struct event_subject node = {STR_NULL, n->s.settings->node_name,
                                       n->s.settings->node_name};
    uint32_t left_out = state->left_out + node_report_count_small(cards, n_cards, &small);
    buf_put(&why, state->left_out_why);
    if (small != NULL)
        buf_printf(&why,
                   "%s%.*s: without what is held back it is smaller than one unit: set "
                   "--reserve-memory or --memory-unit",
                   why.n == 0 ? "" : "; ", STR_ARG(small->uuid));
    bool same = left_out == n->left_out && str_eq(buf_str(&why), str_of(n->left_out_why));
    (void)snprintf(n->left_out_why, sizeof(n->left_out_why), "%.*s", STR_ARG(buf_str(&why)));
    n->left_out = left_out;
    if (same || left_out == 0)
        return;
    log_warn("cards or slices are not offered", kv_uint("left_out", left_out),
             kv_str("why", buf_str(&why)));
    buf_printf(&text, "%u cards or slices are not offered: %.*s", left_out, STR_ARG(buf_str(&why)));
    events_post(n->events, &node, EVENT_WARNING, STR("GPULeftOut"), buf_str(&text));
}

static void node_report_unheard(struct node_program *n, const struct gpu_watch_state *state)
{
    if (state->unheard > n->unheard)
        log_warn("the driver reports no XIDs of some cards: their health is what the polls show",
                 kv_uint("cards", state->unheard));
    n->unheard = state->unheard;
}

void node_report(struct node_program *n, const struct gpu_watch_state *state,
                 const struct announce_card *cards, size_t n_cards)
{
    node_report_phase(n, state);
    node_report_left_out(n, state, cards, n_cards);
    node_report_unheard(n, state);
}
