/* Decides what the node enforces. A card whose answer is not known, as that of a lost card, changes
 * nothing: its pods run on, and it gets no new ones. */
#include "node/isolation/enforce.h"

#include "node/announce/offer.h"

enum enforce_answer {
    ENFORCE_NOT_KNOWN,
    ENFORCE_NO,
    ENFORCE_YES,
};

/* The first one whose answer is no makes it no; then one yes is enough. */
static enum enforce_answer enforce_add(enum enforce_answer all, enum enforce_answer one)
{
    if (all == ENFORCE_NO || one == ENFORCE_NO)
        return ENFORCE_NO;
    return all == ENFORCE_YES ? all : one;
}

/* What NVML says to the question for the limits of a cgroup. */
static enum enforce_answer enforce_limits(const struct gpu_card *c)
{
    if (c->mig)
        return ENFORCE_NO;
    if (!c->seen || c->missing)
        return ENFORCE_NOT_KNOWN;
    switch (c->limits) {
    case NVML_OK:
    case NVML_NOT_FOUND: /* the cgroup has none */
        return ENFORCE_YES;
    case GPU_NOT_ASKED:
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
    case NVML_NO_PERMISSION:
    case NVML_INVALID_ARGUMENT:
        return ENFORCE_NO;
    default:
        return ENFORCE_NOT_KNOWN;
    }
}

static struct enforce enforce_slices(bool allowed)
{
    enum isolation i = allowed ? ISOLATION_MIG : ISOLATION_NONE;
    return (struct enforce){.means = i,
                            .label = i,
                            .lack = allowed ? NULL
                                            : "all cards are MIG slices, which neither "
                                              "MPS nor the driver's limits divide"};
}

static struct enforce enforce_by_driver(const struct enforce_facts *f, enum enforce_answer cards)
{
    static const struct enforce none = {.means = ISOLATION_NONE, .label = ISOLATION_NONE};
    struct enforce r = none;
    if (!f->cgroup2)
        r.lack = "this node has no cgroups of version 2 at the setting cgroup-root";
    else if (cards == ENFORCE_NO)
        r.lack =
            "the driver of a card has no limits of memory: they need R615 or newer, and no MIG";
    else if (cards == ENFORCE_NOT_KNOWN)
        return (struct enforce){.means = ISOLATION_UNKNOWN,
                                .label = ISOLATION_UNKNOWN,
                                .lack = "no card says whether its driver has limits of memory"};
    else
        r.means = r.label = ISOLATION_DRIVER_LIMITS;
    return r;
}

/* Containers get MPS even if it does not serve their card, so that they are its clients as soon as
 * it does. Without a daemon CUDA runs as if there were no MPS (nvidia-cuda-mps-control(1)). */
static struct enforce enforce_by_mps(bool any)
{
    return (struct enforce){.means = ISOLATION_MPS,
                            .label = any ? ISOLATION_MPS : ISOLATION_NONE,
                            .lack = any ? NULL : "MPS serves none of the cards"};
}

struct enforce enforce_decide(const struct settings *s, const struct enforce_facts *f,
                              const struct gpu_card *cards, size_t n)
{
    enum enforce_answer limits = ENFORCE_NOT_KNOWN;
    bool served = false;
    size_t offered = 0;
    size_t slices = 0;
    struct enforce none = {.means = ISOLATION_NONE, .label = ISOLATION_NONE};
    for (size_t i = 0; i < n; i++) {
        if (!offer_has(&cards[i], s))
            continue;
        offered++;
        slices += cards[i].mig;
        limits = enforce_add(limits, enforce_limits(&cards[i]));
        served = served || (!cards[i].mig && f->mps_serves(f->ctx, &cards[i]));
    }
    if (offered == 0 || s->isolation == SETTINGS_ISOLATION_NONE)
        return none;
    if (slices == offered)
        return enforce_slices(s->isolation == SETTINGS_ISOLATION_AUTO);
    if (s->isolation == SETTINGS_ISOLATION_MPS ||
        (s->isolation == SETTINGS_ISOLATION_AUTO && f->mps_label)) {
        if (slices == 0)
            return enforce_by_mps(served);
        none.lack = "MPS does not serve a node of which some cards are MIG slices";
        return none;
    }
    none = enforce_by_driver(f, limits);
    if (s->isolation == SETTINGS_ISOLATION_AUTO)
        none.lack = NULL;
    return none;
}
