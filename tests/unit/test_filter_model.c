/*
 * Random histories of a cluster of some dozens of nodes. After each event filter is asked twice
 * about a pod of a few shapes: with what earlier requests of the history have left in memory, and
 * with nothing. Both answers must be the same, byte for byte. A failure prints its seed and step:
 *
 * FILTER_MODEL_SEED=17 FILTER_MODEL_HISTORIES=1 test_filter_model
 */
#include "evaluate_world.h"

#include "base/log.h"
#include "daemon/service.h"
#include "fail_alloc.h"

#include <fcntl.h>

enum {
    STEPS = 60,
    FARM = 48, /* nodes beside those of the world */
    LISTS = 6,
    NAMES = FARM + 16, /* at most, in one list */
};

/* Names as in the request, with quotes. */
struct names {
    char text[NAMES][24];
    size_t n;
};

struct history {
    struct service service;
    struct world world;
    struct names lists[LISTS];
    struct arena arena;
    struct buf body;
    struct buf answer;  /* with memory */
    struct buf without; /* the true one */
    uint64_t steps;     /* of the true one */
    unsigned saved;     /* answers that took fewer steps */
    unsigned asked;
};

void __wrap_http_request_respond(struct http_request *r, unsigned status, const char *content_type);

void __wrap_http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    (void)r;
    (void)content_type;
    ck_assert_uint_eq(status, 200);
}

static bool is_ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    *ret_missing = STR("");
    return true;
}

static void was_asked(struct backend *b)
{
    (void)b;
}

/* ---- the cluster ---- */

/* Most are alike, so that many are refused for the same reason. */
static void set_farm_node(struct world *w, uint32_t i, bool usual)
{
    static const char *const sizes[] = {"8", "8", "16", "32", "64", NULL, "none"};
    static const char *const pools[] = {NULL, NULL, "gold", "silver"};
    char name[24];
    (void)snprintf(name, sizeof(name), "farm-%02u", i);
    struct node_view v = {.name = str_of(name),
                          .mem = str_of("8"),
                          .count = STR("2"),
                          .cpu = STR("32"),
                          .pool = str_of(i % 3 == 0 ? "gold" : NULL),
                          .model = str_of(i % 5 == 0 ? "T4" : "A100")};
    if (!usual) {
        v.mem = ONE_OF(w, sizes);
        v.pool = ONE_OF(w, pools);
        v.model = ONE_OF(w, w_models);
        v.has_cards = once_in(w, 6);
        v.cards_fault = v.has_cards ? "the table is no \"JSON\"" : NULL;
    }
    apply(w, "farm node", &(struct cache_event){.type = CACHE_NODE_SET, .node = v});
}

static void reserve_on_farm(struct world *w)
{
    struct w_pod p;
    struct request r;
    struct err e;
    char name[24];
    some_pod(w, &p);
    (void)snprintf(name, sizeof(name), "farm-%02u", draw(w, FARM));
    if (request_read(&p.view, &r, &e) != OK || !request_wants(&r))
        return;
    apply(w, "reserve on the farm",
          &(struct cache_event){.type = CACHE_RESERVE,
                                .reserve = {.uid = p.view.uid,
                                            .namespace = p.view.namespace,
                                            .name = p.view.name,
                                            .node = str_of(name),
                                            .request = &r}});
}

static void some_event(struct world *w)
{
    uint32_t dice = draw(w, 20);
    if (dice < 8)
        world_step(w);
    else if (dice < 13)
        reserve_on_farm(w);
    else if (dice < 15)
        event_quota(w);
    else if (dice < 18)
        set_farm_node(w, draw(w, FARM), once_in(w, 3));
    else if (dice == 18 && once_in(w, 6))
        for (uint32_t i = 0; i < FARM; i++)
            set_farm_node(w, i, once_in(w, 3));
}

/* ---- the questions ---- */

/* Some are left out, named twice, or unknown; a name with an escape is never remembered. */
static void make_list(struct world *w, struct names *l)
{
    uint32_t strangers = draw(w, 8);
    bool escapes = once_in(w, 8);
    l->n = 0;
    for (uint32_t i = 0; i < FARM; i++) {
        if (!once_in(w, 16))
            (void)snprintf(l->text[l->n++], sizeof(l->text[0]), "\"farm-%02u\"",
                           once_in(w, 30) ? draw(w, FARM) : i);
    }
    for (uint32_t i = 0; i < COUNT_OF(w_nodes); i++)
        (void)snprintf(l->text[l->n++], sizeof(l->text[0]), "\"%s\"", w_nodes[i]);
    for (uint32_t i = 0; i < strangers; i++)
        (void)snprintf(l->text[l->n++], sizeof(l->text[0]), "\"%s%u\"",
                       escapes ? "str\\u0041nge\\\"" : "stranger", i);
}

static void put_pair(struct buf *out, const char *key, struct str value)
{
    if (value.p != NULL)
        buf_printf(out, "%s\"%s\":\"%.*s\"", out->p[out->n - 1] == '{' ? "" : ",", key,
                   STR_ARG(value));
}

static void put_pod(struct buf *out, const struct pod_view *v)
{
    buf_printf(out, "\"Pod\":{\"metadata\":{");
    put_pair(out, "name", v->name);
    put_pair(out, "namespace", v->namespace);
    put_pair(out, "uid", v->uid);
    buf_printf(out, ",\"labels\":{");
    put_pair(out, "aliyun.com/gpu-count", v->count_label);
    put_pair(out, "ack.gpushare.placement", v->whole_label);
    buf_printf(out, "},\"annotations\":{");
    put_pair(out, "cardpack.io/gpu-mem-percent", v->percent);
    put_pair(out, "cardpack.io/card-model", v->card_model);
    put_pair(out, "cardpack.io/card-uuid", v->card_uuid);
    put_pair(out, "cardpack.io/card-affinity-group", v->affinity);
    put_pair(out, "cardpack.io/card-anti-affinity-group", v->anti_affinity);
    put_pair(out, "cardpack.io/node-policy", v->node_policy);
    put_pair(out, "cardpack.io/card-policy", v->card_policy);
    put_pair(out, "cardpack.io/require-isolation", v->require_isolation);
    buf_printf(out, "}},\"spec\":{\"priority\":%d,\"containers\":[", v->priority);
    for (size_t i = 0; i < v->n_containers; i++) {
        buf_printf(out, "%s{\"name\":\"c\",\"resources\":{\"limits\":{", i == 0 ? "" : ",");
        put_pair(out, "aliyun.com/gpu-mem", v->containers[i].mem);
        put_pair(out, "aliyun.com/gpu-core.percentage", v->containers[i].cores);
        put_pair(out, "nvidia.com/gpu", v->containers[i].exclusive);
        buf_printf(out, "}}}");
    }
    buf_printf(out, "]}}");
}

static void make_body(struct history *h, const struct w_pod *pod, const struct names *l)
{
    buf_clear(&h->body, SIZE_MAX);
    buf_printf(&h->body, "{");
    put_pod(&h->body, &pod->view);
    buf_printf(&h->body, ",\"NodeNames\":[");
    for (size_t i = 0; i < l->n; i++)
        buf_printf(&h->body, "%s%s", i == 0 ? "" : ",", l->text[i]);
    buf_printf(&h->body, "]}");
    ck_assert(!buf_failed(&h->body));
}

static void filter(struct history *h, struct buf *answer)
{
    arena_reset(&h->arena);
    struct http_request r = {.body = buf_str(&h->body), .arena = &h->arena, .answer = answer};
    filter_handle(&h->service, &r);
}

/* The answer of a service that has just started. */
static void filter_anew(struct history *h)
{
    struct evaluation_memo kept = h->service.evaluation_memo;
    h->service.evaluation_memo = (struct evaluation_memo){.n_rows = 0};
    buf_clear(&h->without, SIZE_MAX);
    filter(h, &h->without);
    ck_assert(!buf_failed(&h->without));
    h->steps = h->service.work.steps;
    evaluation_memo_done(&h->service.evaluation_memo);
    h->service.evaluation_memo = kept;
}

/* Sometimes in a buffer of exactly this size, or with allocations that fail. */
static void filter_again(struct history *h)
{
    struct world *w = &h->world;
    uint32_t dice = draw(w, 24);
    struct mem_budget budget = {.max = h->without.n + 1};
    struct mem_account account = {.used = 0};
    buf_done(&h->answer);
    buf_init(&h->answer, dice == 0 ? h->without.n : dice == 1 ? h->without.n - 1 : MIB);
    if (dice == 2 || dice == 3)
        world_assert(w, mem_account_join(&account, &budget, 0));
    budget.max -= dice == 3 ? 1 : 0;
    h->answer.account = dice == 2 || dice == 3 ? &account : NULL;
    if (dice >= 4 && dice < 8)
        fail_alloc_arm(dice < 6 ? FAIL_ONCE : FAIL_FROM_THEN_ON, draw(w, 8) + 1);
    filter(h, &h->answer);
    fail_alloc_disarm();
    bool little = dice == 1 || dice == 3;
    bool hit = dice >= 4 && dice < 8 && fail_alloc_hit();
    h->asked++;
    h->saved += h->service.work.steps < h->steps ? 1 : 0;
    struct str text = buf_str(&h->answer);
    if (hit &&
        (buf_failed(&h->answer) || str_starts(text, STR("{\"Nodes\":null,\"NodeNames\":null"))))
        return;
    world_assert(w, buf_failed(&h->answer) == little);
    if (!little && !str_eq(text, buf_str(&h->without)))
        ck_abort_msg("seed %llu step %u (%s):\n%s\nis with memory\n%s", (unsigned long long)w->seed,
                     w->step, w->what, buf_cstr(&h->without), buf_cstr(&h->answer));
    buf_done(&h->answer);
    h->answer.account = NULL;
}

/* The same question some times. */
static void ask(struct history *h)
{
    static const unsigned shortlists[] = {0, 0, 5, 100};
    struct world *w = &h->world;
    struct names *l = &h->lists[draw(w, once_in(w, 3) ? LISTS : 2)];
    struct w_pod pod = w->shapes[draw(w, W_SHAPES)];
    if (l->n == 0 || once_in(w, 40))
        make_list(w, l);
    pod.view.uid = str_of(w_pods[once_in(w, 3) ? draw(w, W_PODS) : W_PODS]);
    pod.view.containers = pod.containers;
    h->service.shortlist = shortlists[draw(w, COUNT_OF(shortlists))];
    make_body(h, &pod, l);
    for (uint32_t i = draw(w, 3); i < 3; i++) {
        filter_anew(h);
        filter_again(h);
        if (once_in(w, 3))
            some_event(w);
    }
}

/* ---- the test ---- */

static void run_history(uint64_t seed, struct history *h)
{
    static struct backend backend = {.ready = is_ready, .asked = was_asked};
    h->service = (struct service){.backend = &backend};
    memset(h->lists, 0, sizeof(h->lists));
    world_open(&h->world, &h->service.cache, seed);
    arena_init(&h->arena, MIB);
    buf_init(&h->body, MIB);
    buf_init(&h->without, MIB);
    for (uint32_t i = 0; i < FARM; i++)
        set_farm_node(&h->world, i, true);
    for (h->world.step = 0; h->world.step < STEPS; h->world.step++) {
        some_event(&h->world);
        ask(h);
    }
    arena_done(&h->arena);
    buf_done(&h->body);
    buf_done(&h->answer);
    buf_done(&h->without);
    evaluation_memo_done(&h->service.evaluation_memo);
    cache_done(&h->service.cache);
}

START_TEST(memory_changes_no_answer)
{
    static struct history h;
    uint64_t first = seeded_setting("FILTER_MODEL_SEED", 1);
    uint64_t n = seeded_setting("FILTER_MODEL_HISTORIES", 60);
    for (uint64_t i = 0; i < n; i++)
        run_history(first + i, &h);
    /* Otherwise the histories would test nothing. */
    ck_assert(n < 50 || h.saved > h.asked / 8);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("filter_model");
    TCase *tc = tcase_create("filter_model");
    log_setup(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, memory_changes_no_answer);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
