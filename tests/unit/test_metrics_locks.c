/* What GET /metrics says of the locks of nodes. */
#include "metrics_rig.h"

TEST(shows_the_locks_of_nodes)
{
    struct office o;
    office_open(&o);
    dialects_use(DIALECT_BIT(DIALECT_VGPU));
    uint32_t now_s = (uint32_t)(loop_wall_ns(o.service.loop) / 1000000000);
    const uint32_t since_s[] = {0, UINT32_MAX, now_s /* not yet */, now_s - 60, now_s - 3600};
    struct card_view card = {.mem = 16, .numa = -1, .uuid = STR("GPU-a")};
    struct capacity_view of = {.count = STR("10"), .has_cards = true, .cards = &card, .n_cards = 1};
    struct cache_event e = {.type = CACHE_NODE_SET, .node.of[DIALECT_VGPU] = of};
    struct effect fx;
    for (size_t i = 0; i < COUNT_OF(since_s); i++) {
        e.node.name = (struct str){&"abcde"[i], 1};
        e.node.of[DIALECT_VGPU].lock = (struct lock_view){.text = STR(""), .since_s = since_s[i]};
        ck_assert_int_eq(cache_apply(&o.service.cache, &e, now_s * UINT64_C(1000000000), &fx), OK);
    }
    ask(&o, "/metrics",
        "cardpack_node_locks{state=\"held\"} 1\n"
        "cardpack_node_locks{state=\"ignored\"} 2\n");
    office_close(&o);
}
