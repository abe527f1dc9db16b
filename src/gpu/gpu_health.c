/*
 * What XIDs and polls mean. The numbers and their meaning are NVIDIA's ("XID errors" of the
 * driver's documents); which of them an application causes is the list of NVIDIA's device plugin.
 */
#include "gpu/gpu_health.h"

#include <stdio.h>

#define BAD_POLLS 3

static const struct gpu_xid {
    uint16_t xid;
    enum gpu_xid_class class;
    const char *text;
} gpu_health_xids[] = {
    {13, GPU_XID_IGNORED, "graphics engine exception"},
    {31, GPU_XID_IGNORED, "GPU memory page fault"},
    {43, GPU_XID_IGNORED, "GPU stopped processing"},
    {45, GPU_XID_IGNORED, "preemptive cleanup"},
    {48, GPU_XID_NEEDS_RESET, "double-bit memory error"},
    {62, GPU_XID_UNHEALTHY, "internal micro-controller halt"},
    {63, GPU_XID_WARN, "a memory row or page will be replaced at the next reset"},
    {64, GPU_XID_NEEDS_RESET, "a memory row or page could not be replaced"},
    {68, GPU_XID_IGNORED, "video processor exception"},
    {74, GPU_XID_NEEDS_RESET, "NVLink error"},
    {79, GPU_XID_NEEDS_RESET, "GPU has fallen off the bus"},
    {92, GPU_XID_WARN, "high rate of single-bit memory errors"},
    {94, GPU_XID_WARN, "contained memory error"},
    {95, GPU_XID_NEEDS_RESET, "uncontained memory error"},
    {109, GPU_XID_IGNORED, "context switch timeout"},
    {119, GPU_XID_NEEDS_RESET, "GPU system processor timeout"},
    {120, GPU_XID_NEEDS_RESET, "GPU system processor error"},
};

static const struct gpu_xid *gpu_health_known(uint64_t xid)
{
    for (size_t i = 0; i < COUNT_OF(gpu_health_xids); i++)
        if (gpu_health_xids[i].xid == xid)
            return &gpu_health_xids[i];
    return NULL;
}

static void gpu_health_set(struct gpu_health_rules *rules, uint64_t xid, bool ignored)
{
    uint64_t bit = MIN_OF(xid, (uint64_t)GPU_XID_MAX);
    if (ignored)
        rules->ignored[bit / 64] |= UINT64_C(1) << (bit % 64);
    else
        rules->ignored[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static void gpu_health_words(struct gpu_health_rules *rules, struct str words, bool ignored,
                             struct str *ret_bad)
{
    struct str rest = words;
    while (rest.p != NULL) {
        struct str word;
        uint64_t xid = 0;
        (void)str_cut(rest, ',', &word, &rest);
        word = str_trim(word);
        bool all = str_eq_nocase(word, STR("all"));
        if (all || str_eq_nocase(word, STR("xids"))) {
            memset(rules->ignored, ignored ? 0xff : 0, sizeof(rules->ignored));
            if (all)
                rules->no_polls = ignored;
        } else if (str_to_u64(word, UINT64_MAX, &xid)) {
            gpu_health_set(rules, xid, ignored);
        } else if (word.n > 0 && ret_bad->p == NULL) {
            *ret_bad = word;
        }
    }
}

struct gpu_health_rules gpu_health_rules(struct str disable, struct str enable,
                                         uint64_t cooldown_ms, struct str *ret_bad)
{
    struct gpu_health_rules rules = {.cooldown_ms = cooldown_ms, .bad_polls = BAD_POLLS};
    *ret_bad = STR_NULL;
    for (size_t i = 0; i < COUNT_OF(gpu_health_xids); i++)
        if (gpu_health_xids[i].class == GPU_XID_IGNORED)
            gpu_health_set(&rules, gpu_health_xids[i].xid, true);
    gpu_health_words(&rules, disable, true, ret_bad);
    gpu_health_words(&rules, enable, false, ret_bad);
    return rules;
}

enum gpu_xid_class gpu_health_xid_class(const struct gpu_health_rules *rules, uint64_t xid)
{
    uint64_t bit = MIN_OF(xid, (uint64_t)GPU_XID_MAX);
    if ((rules->ignored[bit / 64] >> (bit % 64) & 1) != 0)
        return GPU_XID_IGNORED;
    const struct gpu_xid *known = gpu_health_known(xid);
    /* An XID that is ignored by itself and was enabled. */
    return known == NULL || known->class == GPU_XID_IGNORED ? GPU_XID_UNHEALTHY : known->class;
}

/* Whether level or reason has changed. */
_printf_(3, 4) static bool gpu_health_become(struct gpu_health *h, enum gpu_level level,
                                             const char *fmt, ...)
{
    char reason[GPU_REASON_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    if (h->level == level && strcmp(h->reason, reason) == 0)
        return false;
    h->level = level;
    memcpy(h->reason, reason, sizeof(reason));
    return true;
}

static const char *gpu_health_xid_text(uint64_t xid)
{
    const struct gpu_xid *known = gpu_health_known(xid);
    return known == NULL ? "an error of the GPU or its driver" : known->text;
}

/* Because of an XID; more: what was found beside it, or empty. */
static bool gpu_health_by_xid(struct gpu_health *h, const char *more)
{
    return gpu_health_become(h, GPU_UNHEALTHY, "XID %llu (%s)%s%s", (unsigned long long)h->xid,
                             gpu_health_xid_text(h->xid), more[0] == '\0' ? "" : ": ", more);
}

bool gpu_health_xid(struct gpu_health *h, const struct gpu_health_rules *rules, uint64_t xid,
                    uint64_t now_ms)
{
    enum gpu_xid_class class = gpu_health_xid_class(rules, xid);
    assert(now_ms > 0);
    if (class == GPU_XID_IGNORED)
        return false;
    h->good_since = 0;
    if (class == GPU_XID_WARN) {
        h->warned_xid = xid;
        return h->level != GPU_UNHEALTHY &&
               gpu_health_become(h, GPU_WARNED, "XID %llu (%s)", (unsigned long long)xid,
                                 gpu_health_xid_text(xid));
    }
    /* A second XID often follows from the first, so the first stays, unless only the second calls
     * for a reset. */
    bool needs_reset = class == GPU_XID_NEEDS_RESET;
    if (h->xid == 0 || (needs_reset && !h->needs_reset) || h->was_away)
        h->xid = xid;
    h->needs_reset = h->needs_reset || needs_reset;
    h->was_away = false;
    /* What the driver asks for says the next poll. */
    return gpu_health_by_xid(h, h->needs_reset && !h->recovery_known ? "it needs a reset" : "");
}

static bool gpu_health_bad(struct gpu_health *h, const char *why)
{
    h->good_since = 0;
    return h->xid != 0 ? gpu_health_by_xid(h, why) : gpu_health_become(h, GPU_UNHEALTHY, "%s", why);
}

/* A call failed. */
static bool gpu_health_error(struct gpu_health *h, const struct gpu_health_rules *rules,
                             const struct gpu_sample *s)
{
    char why[GPU_REASON_BYTES / 2];
    h->bad++;
    h->good_since = 0;
    h->reset_required = s->error == NVML_RESET_REQUIRED;
    if (nvml_is_away(s->error))
        h->away = h->was_away = true;
    else if (h->bad < rules->bad_polls)
        return false;
    (void)snprintf(why, sizeof(why), "NVML error %d (%s)", s->error, s->error_text);
    return gpu_health_bad(h, why);
}

/* What a poll found wrong with a card that answers; empty: nothing. */
static void gpu_health_fault(const struct gpu_sample *s, char *ret, size_t size)
{
    static const char *const recovery[] = {
        [NVML_RECOVERY_RESET] = "it needs a reset",
        [NVML_RECOVERY_REBOOT] = "the node needs a reboot",
        [NVML_RECOVERY_DRAIN_P2P] = "its peer-to-peer traffic must be drained",
        [NVML_RECOVERY_DRAIN_AND_RESET] = "it must be drained and reset",
        [NVML_RECOVERY_IMEX_DOMAIN] = "its IMEX domain must recover",
        [NVML_RECOVERY_BUS_RESET] = "its PCIe bus needs a reset",
        [NVML_RECOVERY_SYSTEM_REBOOT] = "the system needs a reboot",
    };
    ret[0] = '\0';
    if (s->recovery_known && s->recovery >= COUNT_OF(recovery))
        (void)snprintf(ret, size, "by the driver it needs recovery action %u", s->recovery);
    else if (s->recovery_known && s->recovery != NVML_RECOVERY_NONE)
        (void)snprintf(ret, size, "by the driver %s", recovery[s->recovery]);
    else if (s->rows_known && s->rows_failure)
        (void)snprintf(ret, size, "a defective memory row can't be remapped, no spare row is left");
    else if (!s->rows_known && s->ecc_known && s->uncorrected > 0)
        (void)snprintf(ret, size, "%llu uncorrected memory errors since the last reset",
                       (unsigned long long)s->uncorrected);
}

/* The level of a card without a fault. */
static bool gpu_health_good(struct gpu_health *h, const struct gpu_sample *s)
{
    if (s->rows_known && s->rows_pending)
        return gpu_health_become(h, GPU_WARNED,
                                 "a memory row is remapped at the next reset: drain and reset it");
    if (s->pages_pending)
        return gpu_health_become(h, GPU_WARNED,
                                 "a memory page is retired at the next reset: drain and reset it");
    if (h->warned_xid != 0)
        return gpu_health_become(h, GPU_WARNED, "XID %llu (%s)", (unsigned long long)h->warned_xid,
                                 gpu_health_xid_text(h->warned_xid));
    if (s->ecc_known && s->uncorrected > 0)
        return gpu_health_become(h, GPU_WARNED,
                                 "%llu uncorrected memory errors since the last reset",
                                 (unsigned long long)s->uncorrected);
    return gpu_health_become(h, GPU_HEALTHY, "%s", "");
}

bool gpu_health_poll(struct gpu_health *h, const struct gpu_health_rules *rules,
                     const struct gpu_sample *sample, uint64_t now_ms)
{
    static const struct gpu_sample nothing;
    const struct gpu_sample *s = rules->no_polls ? &nothing : sample;
    char why[GPU_REASON_BYTES / 2];
    assert(now_ms > 0);
    if (s->error != NVML_OK)
        return gpu_health_error(h, rules, s);
    h->bad = 0;
    h->away = h->reset_required = false;
    if (s->ecc_known) {
        /* A count of errors since the last reset can only fall by a reset. */
        h->was_away = h->was_away || s->uncorrected < h->uncorrected;
        h->uncorrected = s->uncorrected;
    }
    h->recovery_known = s->recovery_known;
    h->recovery = s->recovery_known ? s->recovery : NVML_RECOVERY_NONE;
    if (s->recovery_known)
        h->needs_reset = s->recovery != NVML_RECOVERY_NONE;
    gpu_health_fault(s, why, sizeof(why));
    if (why[0] != '\0')
        return gpu_health_bad(h, why);
    if (h->good_since == 0)
        h->good_since = now_ms;
    bool long_good = now_ms - h->good_since >= rules->cooldown_ms;
    if (long_good)
        h->warned_xid = 0;
    if (h->level != GPU_UNHEALTHY)
        return gpu_health_good(h, s);
    if (h->needs_reset && !h->was_away)
        return gpu_health_by_xid(h, "it needs a reset");
    if (!long_good)
        return h->xid != 0 ? gpu_health_by_xid(h, "it answers again, and is watched for a while")
                           : gpu_health_become(h, GPU_UNHEALTHY,
                                               "it answers again, and is watched for a while");
    h->xid = 0;
    h->needs_reset = h->was_away = false;
    return gpu_health_good(h, s);
}

bool gpu_health_awaits_reset(const struct gpu_health *h)
{
    return h->reset_required || h->recovery == NVML_RECOVERY_RESET ||
           h->recovery == NVML_RECOVERY_DRAIN_AND_RESET || h->recovery == NVML_RECOVERY_BUS_RESET;
}

bool gpu_health_needs_reset(const struct gpu_health *h)
{
    return h->reset_required || h->recovery != NVML_RECOVERY_NONE ||
           (h->needs_reset && !h->recovery_known && !h->was_away);
}

bool gpu_health_missing(struct gpu_health *h, const struct gpu_left *left)
{
    char why[GPU_REASON_BYTES] = "NVML does not list the card";
    h->away = true;
    h->was_away = h->was_away || left == NULL || nvml_is_away(left->code);
    if (left != NULL && left->code != NVML_OK) {
        h->reset_required = left->code == NVML_RESET_REQUIRED;
        (void)snprintf(why, sizeof(why), "%sNVML error %d (%s)",
                       left->uuid[0] == '\0' ? "NVML reports no UUID of a card, maybe this one: "
                                             : "",
                       left->code, left->text);
    } else if (left != NULL) {
        (void)snprintf(why, sizeof(why), "%s", left->why);
    }
    return gpu_health_bad(h, why);
}
