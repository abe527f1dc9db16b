/*
 * The device plugin of cardpack-node with two cards, for the Go peer of this folder.
 *
 *   plugin_peer DIR DEVICES      the kubelet's folder, how many devices on both cards together
 *
 * Whenever it is registered it offers its lists thrice in one turn, with the first card unhealthy
 * in the last of them. It prefers devices of card 1, and keeps Allocate of more than two devices
 * for ever.
 */
#include "node/kubelet/answer.h"
#include "node/kubelet/plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_BYTES (64 * MIB)

struct peer {
    struct loop *loop;
    struct plugin *plugin;
    int64_t devices;
};

static void offer(struct peer *p, bool healthy)
{
    struct card_offer cards[] = {
        {.index = 0, .units = p->devices / 2, .healthy = healthy, .numa = 0},
        {.index = 1, .units = p->devices - p->devices / 2, .healthy = true, .numa = 1},
    };
    plugin_offer(p->plugin, cards, COUNT_OF(cards));
}

static void on_allocate(void *ctx, struct grpc_call *c, const struct allocate_request *q)
{
    static const struct gpu_card card = {.index = 1, .uuid = {"GPU-peer", 8}, .seen = true};
    static const struct gpu_card *const cards[] = {&card};
    static const int64_t total = 80;
    struct answer_settings s = {.unit = {1 << 30}};
    struct err e = ERR_INIT;
    struct buf out;
    (void)ctx;
    if (q->n_containers == 1 && q->containers[0].n_ids > 2)
        return;
    buf_init(&out, MIB);
    for (size_t i = 0; i < q->n_containers; i++) {
        int64_t n = (int64_t)q->containers[i].n_ids;
        struct answer_want w = {.cards = cards,
                                .n_cards = 1,
                                .dev_total = &total,
                                .container_units = n,
                                .pod_units = n};
        if (answer_write(&out, &s, &w, &e) != OK)
            (void)printf("no answer: %s\n", e.text);
    }
    grpc_call_reply(c, buf_str(&out));
    buf_done(&out);
}

static void on_pre_start(void *ctx, struct grpc_call *c, const struct allocate_container *ids)
{
    (void)ctx;
    (void)printf("start %zu\n", ids->n_ids);
    grpc_call_reply(c, STR(""));
}

static void on_preferred(void *ctx, struct grpc_call *c, const struct preferred_request *q)
{
    struct arena a;
    struct buf out;
    (void)ctx;
    arena_init(&a, ARENA_BYTES);
    buf_init(&out, 4 * MIB);
    for (size_t i = 0; i < q->n_containers; i++) {
        struct device_wish wish = {.card = 1, .units = q->containers[i].size};
        struct allocate_container ids = {.n_ids = 0};
        if (devices_prefer(&q->containers[i], &wish, 1, &a, &ids) == OK)
            preferred_response_write(&out, &ids, 1);
    }
    grpc_call_reply(c, buf_str(&out));
    buf_done(&out);
    arena_done(&a);
}

static void on_gone(void *ctx, struct grpc_call *c)
{
    (void)ctx;
    (void)printf("gone %s\n", grpc_call_path(c));
}

static void on_registered(void *ctx, bool restarted)
{
    struct peer *p = ctx;
    (void)printf("registered, restarted: %s\n", restarted ? "yes" : "no");
    offer(p, false);
    offer(p, true);
    offer(p, false);
}

static void on_signal(void *ctx, int signo)
{
    const struct peer *p = ctx;
    (void)signo;
    loop_stop(p->loop);
}

int main(int argc, char **argv)
{
    static const struct plugin_ops ops = {.allocate = on_allocate,
                                          .pre_start = on_pre_start,
                                          .preferred = on_preferred,
                                          .gone = on_gone,
                                          .registered = on_registered};
    struct peer p = {.loop = NULL};
    struct err e = ERR_INIT;
    uint64_t devices = 0;
    if (argc != 3 || !str_to_u64(str_of(argv[2]), 1000000, &devices))
        return EXIT_FAILURE;
    p.devices = (int64_t)devices;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    enum errc code = loop_new(&p.loop, &e);
    struct plugin_settings s = {.loop = p.loop,
                                .dir = argv[1],
                                .resource = STR("aliyun.com/gpu-mem"),
                                .ops = &ops,
                                .ctx = &p};
    if (code == OK)
        code = loop_signal(p.loop, SIGTERM, on_signal, &p, &e);
    if (code == OK)
        code = plugin_new(&s, &p.plugin, &e);
    if (code == OK) {
        offer(&p, true);
        code = loop_run(p.loop, &e);
    }
    if (code != OK)
        (void)fprintf(stderr, "%s\n", e.text);
    p.plugin = plugin_free(p.plugin);
    p.loop = loop_free(p.loop);
    return code == OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
