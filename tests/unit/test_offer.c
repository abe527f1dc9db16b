/* What is offered of each card: units, the setting `cards`, and the order of health and ConfigMap.
 */
#include "node/announce/offer.h"

#include "unit.h"

#include <stdio.h>

#define GB ((uint64_t)1 << 30)
#define MB ((uint64_t)1 << 20)

static const struct {
    uint64_t memory;
    uint64_t unit;
    uint64_t reserve;
    int64_t units;
} sizes[] = {
    {80 * GB, GB, 0, 80},
    {80 * GB - 1, GB, 0, 79},
    {80 * GB, GB, 512 * MB, 79},
    {80 * GB, 256 * MB, 512 * MB, 318},
    {GB, GB, GB, 0},
    {GB, GB, 2 * GB, 0},
    {0, GB, 0, 0},
    {UINT64_C(40536) * MB, MB, 0, 40536},
};

TEST_EACH(units, COUNT_OF(sizes))
{
    const struct settings s = {.unit_bytes = sizes[_i].unit, .reserve_bytes = sizes[_i].reserve};
    ck_assert_int_eq(offer_units(sizes[_i].memory, &s), sizes[_i].units);
}

static const struct gpu_card node[] = {
    {.index = 0, .uuid = STR("GPU-a"), .memory_bytes = 8 * GB, .numa = 1},
    {.index = 1, .uuid = STR("MIG-b"), .parent = STR("GPU-p"), .memory_bytes = GB, .mig = true},
    {.index = 2, .uuid = STR("MIG-c"), .parent = STR("GPU-p"), .memory_bytes = GB, .mig = true},
    {.index = 5, .uuid = STR("GPU-d"), .memory_bytes = GB / 2},
};

static const struct {
    const char *cards;
    const char *indices;
} selections[] = {
    {"all", "0 1 2 5 "}, {"0", "0 "},           {"2,5", "2 5 "}, {"MIG-c", "2 "},
    {"GPU-p", "1 2 "},   {"GPU-p,0", "0 1 2 "}, {"GPU-x,7", ""},
};

TEST_EACH(the_setting_cards, COUNT_OF(selections))
{
    char is[64] = "";
    struct announce_card got[COUNT_OF(node)];
    const struct settings s = {.unit_bytes = GB, .cards = str_of(selections[_i].cards)};
    size_t n = offer_select(node, COUNT_OF(node), &s, got);
    for (size_t i = 0; i < n; i++)
        (void)snprintf(is + strlen(is), sizeof(is) - strlen(is), "%u ", got[i].index);
    ck_assert_str_eq(is, selections[_i].indices);
}

static bool told;

static bool has_written(void *ctx, uint32_t index)
{
    ck_assert_ptr_eq(ctx, &told);
    ck_assert_uint_lt(index, 2);
    return told;
}

static struct offer offer;

static bool update(enum gpu_level first, enum gpu_level second)
{
    const struct announce_card cards[] = {
        {.index = 0, .units = 8, .numa = -1, .health = first},
        {.index = 1, .units = 8, .numa = -1, .health = second},
        {.index = 9, .units = 0, .numa = -1, .health = GPU_HEALTHY}, /* too small: not offered */
    };
    return offer_update(&offer, cards, COUNT_OF(cards), has_written, &told);
}

static void offered(bool first, bool second)
{
    ck_assert_uint_eq(offer.n, 2);
    ck_assert(offer.items[0].healthy == first && offer.items[1].healthy == second);
}

TEST(health_waits_for_the_config_map)
{
    offer.n = 0;
    told = false;
    ck_assert(update(GPU_HEALTHY, GPU_UNHEALTHY)); /* never offered before: at once */
    offered(true, false);
    ck_assert(!update(GPU_UNHEALTHY, GPU_UNHEALTHY));
    offered(true, false);
    told = true;
    ck_assert(update(GPU_UNHEALTHY, GPU_UNHEALTHY));
    offered(false, false);
    told = false;
    ck_assert(!update(GPU_UNHEALTHY, GPU_UNHEALTHY)); /* what the kubelet knows is not taken back */
    offered(false, false);
    ck_assert(update(GPU_HEALTHY, GPU_WARNED)); /* a recovery does not wait */
    offered(true, true);
    ck_assert(!update(GPU_WARNED, GPU_HEALTHY));
}

TEST(cards_come_and_go)
{
    const struct announce_card one = {.index = 0, .units = 4, .numa = 1};
    offer.n = 0;
    ck_assert(update(GPU_HEALTHY, GPU_HEALTHY));
    ck_assert(offer_update(&offer, &one, 1, has_written, &told));
    ck_assert(offer.n == 1 && offer.items[0].units == 4 && offer.items[0].numa == 1);
    ck_assert(offer_update(&offer, NULL, 0, has_written, &told));
    ck_assert(!offer_update(&offer, NULL, 0, has_written, &told));
}
