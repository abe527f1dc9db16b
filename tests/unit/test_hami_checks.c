/*
 * What HAMi's scheduler checks of a card: Project-HAMi/HAMi, pkg/device/nvidia/fit_checks.go.
 * cardpack gives no container a card that HAMi's would refuse, and refuses none that HAMi's gives,
 * except more compute than 100 percent (deviceCoreScaling).
 */
#include "dialect_rig.h"

struct card_said {
    bool health;
    int64_t count;
    int64_t used; /* containers */
    int64_t total_mem;
    int64_t used_mem;
    int64_t total_cores;
    int64_t used_cores;
};

/* Why HAMi's scheduler does not give the card to one container; NULL: it does. Its other checks are
 * of annotations (checkCardUUID, checkCardMutex), of a ResourceQuota (checkCardQuota) and of MIG
 * (checkCardCustomRule). */
static const char *hami_refuses(const struct card_said *c, int64_t mem, int64_t cores)
{
    if (!c->health)
        return "checkCardHealth";
    if (c->count <= c->used)
        return "checkCardTimeSlicing";
    if (c->total_mem - c->used_mem < mem)
        return "checkCardMemory";
    if (c->total_cores - c->used_cores < cores)
        return "checkCardCore";
    if (c->total_cores == 100 && cores == 100 && c->used > 0)
        return "checkCardExclusive";
    if (c->total_cores != 0 && c->used_cores == c->total_cores && cores == 0)
        return "checkCardComputeExhausted";
    return NULL;
}

static void put_node(struct rig *r, const struct card_said *c, bool lines)
{
    char table[512];
    struct object o;
    (void)snprintf(table, sizeof(table),
                   lines ? HAMI_TABLE("GPU-a,%lld,%lld,%lld,NVIDIA-A10,0,%s:")
                         : HAMI_TABLE("[{\\\"id\\\":\\\"GPU-a\\\",\\\"count\\\":%lld,"
                                      "\\\"devmem\\\":%lld,\\\"devcore\\\":%lld,"
                                      "\\\"health\\\":%s}]"),
                   (long long)c->count, (long long)c->total_mem, (long long)c->total_cores,
                   c->health ? "true" : "false");
    object_node(&o, "n", table, "\"nvidia.com/gpu\":\"10\"", "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* A container's limits; cores 0: none. */
static const char *limits(int64_t mem, int64_t cores)
{
    static char text[256];
    int n = snprintf(text, sizeof(text),
                     "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
                     "{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"%lld\"",
                     (long long)mem);
    if (cores > 0)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ",\"nvidia.com/gpucores\":\"%lld\"",
                      (long long)cores);
    (void)snprintf(text + n, sizeof(text) - (size_t)n, "}}}]");
    return text;
}

static void put_pod(struct rig *r, const struct card_said *c)
{
    char notes[256];
    (void)snprintf(notes, sizeof(notes),
                   "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,%lld,%lld:;\","
                   "\"hami.io/bind-phase\":\"success\"",
                   (long long)c->used_mem, (long long)c->used_cores);
    if (c->used > 0)
        set_pod(r, "b", limits(c->used_mem, c->used_cores), notes);
}

static void compare(struct rig *r, const struct card_said *c)
{
    static const int64_t mems[] = {1, 12, 13};
    static const int64_t cores[] = {0, 1, 10, 50, 51, 99, 100};
    for (size_t m = 0; m < COUNT_OF(mems); m++) {
        for (size_t k = 0; k < COUNT_OF(cores); k++) {
            struct placement there;
            const char *refusal = hami_refuses(c, mems[m], cores[k]);
            enum verdict v = fit_of(r, limits(mems[m], cores[k]), "n", &there);
            bool fits = v == VERDICT_FITS;
            ck_assert_msg(fits ? refusal == NULL : refusal != NULL || c->total_cores > 100,
                          "devcore %lld, %lld used, %lld asked: %s here, %s there",
                          (long long)c->total_cores, (long long)c->used_cores, (long long)cores[k],
                          verdict_name(v), refusal == NULL ? "fits" : refusal);
        }
    }
}

static const int64_t devcores[] = {0, 1, 10, 49, 50, 51, 99, 100, 101, 150, 200};

TEST_EACH(no_card_is_given_that_hami_refuses, COUNT_OF(devcores))
{
    static const int64_t used_cores[] = {0, 1, 10, 50, 100};
    static const int64_t counts[] = {1, 2, 10};
    all_dialects();
    for (size_t i = 0; i < COUNT_OF(used_cores) * COUNT_OF(counts) * 8; i++) {
        struct card_said c = {.health = (i & 1) == 0,
                              .used = (int64_t)(i >> 1 & 1),
                              .count = counts[(i >> 3) % COUNT_OF(counts)],
                              .total_mem = 16,
                              .total_cores = devcores[_i]};
        c.used_mem = c.used > 0 ? 4 : 0;
        c.used_cores = c.used > 0 ? used_cores[(i >> 3) / COUNT_OF(counts)] : 0;
        struct rig r;
        rig_init(&r);
        put_node(&r, &c, (i >> 2 & 1) != 0);
        put_pod(&r, &c);
        compare(&r, &c);
        rig_done(&r);
    }
}

/* The plugin writes the table again, as with another deviceCoreScaling. */
TEST(another_devcore_counts_at_once)
{
    struct card_said c = {.health = true, .count = 10, .total_mem = 16};
    struct rig r;
    all_dialects();
    rig_init(&r);
    for (size_t i = 0; i < COUNT_OF(devcores); i++) {
        c.total_cores = devcores[COUNT_OF(devcores) - 1 - i];
        put_node(&r, &c, false);
        compare(&r, &c);
    }
    rig_done(&r);
}
