/* What node_program.c does for the enforcement of shares: finds out what the node can enforce,
 * keeps watch over it, and marks the cards on which it fails. */
#include "base/log.h"
#include "node/containers/cgroup.h"
#include "node/isolation/limit_step.h"
#include "node/node_program.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MPS_CONNECT_MS UINT64_C(2000)

/* ---- opening ---- */

static bool node_enforce_is_cgroup2(struct str root)
{
    struct stat st;
    char bytes[PATH_MAX];
    struct buf path = BUF_ON(bytes);
    buf_printf(&path, "%.*s/cgroup.controllers", STR_ARG(root));
    const char *z = buf_cstr(&path);
    return z != NULL && stat(z, &st) == 0;
}

const char *node_enforce_cgroup(struct node_program *n)
{
    const struct settings *s = n->s.settings;
    n->cgroup2 = node_enforce_is_cgroup2(s->cgroup_root);
    if (!n->cgroup2 || (s->isolation != SETTINGS_ISOLATION_AUTO &&
                        s->isolation != SETTINGS_ISOLATION_DRIVER_LIMITS))
        return NULL;
    buf_clear(&n->cgroup, CGROUP_PATH_BYTES);
    if (!cgroup_own(s->cgroup_root, STR("/proc"), (uint32_t)getpid(), &n->cgroup)) {
        buf_clear(&n->cgroup, CGROUP_PATH_BYTES);
        buf_put(&n->cgroup, s->cgroup_root);
    }
    log_debug("the cgroup that the driver is asked for", kv_str("folder", buf_str(&n->cgroup)));
    return buf_cstr(&n->cgroup);
}

static bool node_enforce_share(void *ctx, const struct container *c, struct card_share *ret)
{
    const struct node_program *n = ctx;
    return allot_share(n->allot, c->pod->uid, c->name, ret);
}

static bool node_enforce_overrides(void *ctx, struct str uid)
{
    const struct node_program *n = ctx;
    const struct override *o = map_get(&n->overrides.pods, uid);
    /* With late binding the container gets the spec's value, and not the pod's. */
    return o != NULL && o->memory && !n->late;
}

enum errc node_enforce_open(struct node_program *n, void (*changed)(void *ctx), struct err *reterr)
{
    const struct limits_settings limits = {.loop = n->s.loop,
                                           .gpu = n->gpu,
                                           .containers = &n->containers,
                                           .events = n->events,
                                           .cgroup_root = n->s.settings->cgroup_root,
                                           .unit_bytes = n->s.settings->unit_bytes,
                                           .share = node_enforce_share,
                                           .overrides = node_enforce_overrides,
                                           .changed = changed,
                                           .ctx = n};
    n->enforce = (struct enforce){.means = ISOLATION_NONE, .label = ISOLATION_NONE};
    const struct mps_settings mps = {.loop = n->s.loop,
                                     .gpu = n->gpu,
                                     .containers = &n->containers,
                                     .events = n->events,
                                     .proc = STR("/proc"),
                                     .changed = changed,
                                     .ctx = n};
    n->overrides.events = n->events;
    enum errc code = limits_new(&limits, &n->limits, reterr);
    return code == OK ? mps_new(&mps, &n->mps, reterr) : code;
}

/* ---- turns ---- */

/* Not at each change of the node: each look is a connection to each daemon. */
static void node_enforce_ask_mps(struct node_program *n, const struct gpu_card *cards,
                                 size_t n_cards)
{
    const struct settings *s = n->s.settings;
    uint64_t now_ms = loop_now_ms(n->s.loop);
    bool asked = s->isolation == SETTINGS_ISOLATION_MPS ||
                 (s->isolation == SETTINGS_ISOLATION_AUTO && n->mps_label);
    if (!asked || (n->mps_at_ms != 0 && now_ms - n->mps_at_ms < MPS_CONNECT_MS))
        return;
    n->mps_at_ms = now_ms;
    for (size_t i = 0; i < n_cards; i++) {
        uint32_t index = cards[i].index;
        n->mps_serves[index] = mps_daemon_serves(s->mps_dir, &cards[i], n->mps_why[index]);
    }
}

static bool node_enforce_mps_serves(void *ctx, const struct gpu_card *c)
{
    const struct node_program *n = ctx;
    return n->mps_serves[c->index];
}

static void node_enforce_log(const struct enforce *was, const struct enforce *now)
{
    bool lacks = now->lack != NULL && (was->lack == NULL || strcmp(was->lack, now->lack) != 0);
    if (was->label != now->label)
        log_info("what the node enforces has changed",
                 kv_cstr("isolation", isolation_name(now->label)),
                 kv_cstr("before", isolation_name(was->label)));
    if (lacks)
        log_warn("the node can't enforce what was asked for", kv_cstr("why", now->lack));
}

/* Whether the node has the driver's limits without a setting that requires them. If a limit is
 * missing there, the node's cards get pods like those of a node whose driver has no limits. */
static bool node_enforce_is_offered(const struct node_program *n, const struct enforce *e)
{
    return n->s.settings->isolation == SETTINGS_ISOLATION_AUTO &&
           e->means == ISOLATION_DRIVER_LIMITS;
}

/* Whether the limits of all containers that ran at the start have been checked: an answer may be
 * LIMIT_GRACE_MS late. */
static bool node_enforce_is_proven(const struct node_program *n, const struct limits_counts *c)
{
    return n->enforce.means == ISOLATION_DRIVER_LIMITS && pod_watch_synced(n->pods) &&
           !n->listing && c->checking == 0 && gpu_watch_state(n->gpu).phase == GPU_WATCH_RUNNING &&
           loop_now_ms(n->s.loop) - n->means_ms >= LIMIT_GRACE_MS;
}

void node_enforce_decide(struct node_program *n, const struct gpu_card *cards, size_t n_cards)
{
    const struct enforce_facts facts = {.cgroup2 = n->cgroup2,
                                        .mps_label = n->mps_label,
                                        .mps_serves = node_enforce_mps_serves,
                                        .ctx = n};
    node_enforce_ask_mps(n, cards, n_cards);
    struct enforce now = enforce_decide(n->s.settings, &facts, cards, n_cards);
    /* The driver's limits are not known: MPS and slices are not in question any more. */
    if (now.label == ISOLATION_UNKNOWN && n->enforce.means != ISOLATION_DRIVER_LIMITS)
        now.means = now.label = ISOLATION_NONE;
    if (now.label == ISOLATION_UNKNOWN) {
        now.means = n->enforce.means;
        now.label = n->enforce.label;
        now.lack = now.label == ISOLATION_NONE ? now.lack : n->enforce.lack;
        node_enforce_log(&n->enforce, &now);
        n->enforce = now;
        return;
    }
    const struct limits_counts limits = limits_counts(n->limits);
    if (limits.absent > 0)
        n->preset = limits.preset;
    /* Until the container runtime sets limits again: a new one was installed. */
    n->unlimited =
        limits.absent > 0 || (n->unlimited && (limits.missing > 0 || limits.preset == n->preset));
    bool begins = n->enforce.means != now.means;
    /* After MPS no container has been checked for the driver's limits. */
    n->proven = (n->proven && !(begins && n->enforce.means == ISOLATION_MPS)) ||
                node_enforce_is_proven(n, &limits);
    if ((n->unlimited || !n->proven) && node_enforce_is_offered(n, &now))
        now.label = ISOLATION_NONE;
    node_enforce_log(&n->enforce, &now);
    if (begins)
        n->means_ms = loop_now_ms(n->s.loop);
    n->enforce = now;
    /* For the pods that override variables; a list under way has had some of them. */
    n->owes_list = n->owes_list || (begins && n->listing);
    if (begins && !n->listing && pod_watch_synced(n->pods))
        pod_watch_relist(n->pods);
    allot_set_means(n->allot, now.means);
    limits_enable(n->limits, now.means == ISOLATION_DRIVER_LIMITS);
    mps_enable(n->mps, now.means == ISOLATION_MPS);
}

static bool node_enforce_is_on(void *ctx, struct str uid, uint32_t card)
{
    const struct node_program *n = ctx;
    return allot_is_on(n->allot, uid, card);
}

/* Without MPS such a card is for one process, or for none. */
static const char *node_enforce_mode(const struct gpu_card *c)
{
    if (c->compute_mode == NVML_COMPUTE_EXCLUSIVE_PROCESS)
        return "EXCLUSIVE_PROCESS";
    return c->compute_mode == NVML_COMPUTE_PROHIBITED ? "PROHIBITED" : NULL;
}

/* Whether a limit that is missing on the card leaves the card open to more pods. */
static bool node_enforce_tolerates(const struct node_program *n, uint32_t index)
{
    if (!node_enforce_is_offered(n, &n->enforce) || limits_are_required(n->limits, index))
        return false;
    /* A pod that requires isolation may come as long as the label says that there are limits. */
    return n->enforce.label == ISOLATION_NONE || !limits_are_overridden(n->limits, index);
}

/* Empty: nothing is wrong with it. */
static struct str node_enforce_fault(struct node_program *n, uint32_t index)
{
    struct str fault = limits_fault(n->limits, index);
    const struct gpu_card *c = gpu_watch_find(n->gpu, index);
    const char *mode = c == NULL || c->mig ? NULL : node_enforce_mode(c);
    if (mode != NULL && n->enforce.means != ISOLATION_MPS) {
        (void)snprintf(n->mps_why[index], GPU_REASON_BYTES,
                       "the compute mode %s keeps pods from sharing it: nvidia-smi -i %.*s -c "
                       "DEFAULT ends that",
                       mode, STR_ARG(c->uuid));
        return str_of(n->mps_why[index]);
    }
    if (node_enforce_tolerates(n, index))
        return STR("");
    if (n->enforce.means != ISOLATION_MPS || c == NULL)
        return fault;
    if (!n->mps_serves[index])
        return str_of(n->mps_why[index]);
    const struct override *o = overrides_on(&n->overrides, index, node_enforce_is_on, n);
    if (o == NULL)
        return mps_fault(n->mps, index);
    (void)snprintf(n->mps_why[index], GPU_REASON_BYTES,
                   "container %.*s of the pod with UID %.*s overrides %.*s", STR_ARG(o->container),
                   STR_ARG(o->uid), STR_ARG(o->variable));
    return str_of(n->mps_why[index]);
}

void node_enforce_mark(struct node_program *n, struct announce_card *cards, size_t n_cards)
{
    for (size_t i = 0; i < n_cards; i++) {
        struct str fault =
            cards[i].health == GPU_UNHEALTHY ? STR("") : node_enforce_fault(n, cards[i].index);
        if (fault.n == 0)
            continue;
        cards[i].health = GPU_UNHEALTHY;
        cards[i].reason = fault;
    }
}
