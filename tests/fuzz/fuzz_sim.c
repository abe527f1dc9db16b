/*
 * Reads a cluster (a text that begins with '{'), or a trace: the nodes, a line "---", and the pods.
 * What is read and not large is replayed, with every invariant of the cache asserted after each
 * event.
 */
#include "rules.h"
#include "sim/dump.h"
#include "sim/replay.h"
#include "sim/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum errc read_trace(struct str text, struct arena *a, struct sim_workload *ret,
                            struct err *e)
{
    const char *cut = memmem(text.p, text.n, "---\n", 4);
    size_t n = cut == NULL ? text.n : (size_t)(cut - text.p);
    enum errc code = trace_read_nodes(STR("nodes"), (struct str){text.p, n}, a, ret, e);
    if (code == OK)
        code = trace_read_pods(STR("pods"), str_skip(text, n + 4), a, ret, e);
    return code;
}

/* Cards that the invariants would take long to check. */
static bool is_large(const struct sim_workload *w)
{
    uint64_t cards = 0;
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        uint64_t n = 0;
        if (w->nodes[i].view.count.n > 0 && str_to_u64(w->nodes[i].view.count, 64, &n))
            cards += n;
        else
            cards += w->nodes[i].view.count.n > 0 ? 1000 : w->nodes[i].view.n_cards;
    }
    return w->n_nodes > 8 || w->n_pods > 16 || cards > 64;
}

static void play(const struct sim_workload *w, const char *policy)
{
    struct replay_result r;
    struct err e = ERR_INIT;
    struct sim_policy p;
    check(sim_policy_parse(str_of(policy), &p), "it is a policy");
    struct replay_settings s = {.world = {.workload = w,
                                          .policy = &p,
                                          .held = w->n_held > 0 ? SIM_HELD_OTHERS : SIM_HELD_NONE,
                                          .seed = 1,
                                          .checked = true},
                                .fill = 100,
                                .once = true};
    enum errc code = replay_run(&s, &r, &e);
    check(code == OK || code == ERR_RANGE, "a run ends");
    if (code != OK)
        return;
    check(r.arrived == w->n_pods && r.rejected <= r.arrived, "each pod arrives once");
    check(r.allocated_percent >= 0 && r.allocated_percent <= 100.0 + 1e-9,
          "no more is allocated than there is");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct sim_workload w = {.n_nodes = 0};
    struct str text = {(const char *)data, size};
    arena_init(&a, 64 * MIB);
    enum errc code = str_starts(text, STR("{")) ? dump_read(STR("dump"), text, &a, &w, &e)
                                                : read_trace(text, &a, &w, &e);
    check((code == OK) == (e.code == OK), "an error says why");
    if (code == OK && sim_workload_measure(&w, &e) == OK && !is_large(&w)) {
        play(&w, "binpack");
        play(&w, "spread");
    }
    arena_done(&a);
    return 0;
}
