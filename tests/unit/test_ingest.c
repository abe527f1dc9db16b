/* An object that found no memory is read again, and no object is taken for deleted because of
 * it. */
#include "kube/ingest.h"

#include "base/log.h"
#include "fail_alloc.h"
#include "on_loop.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct str bound_pod =
    STR("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
        "\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}]},\"status\":{\"phase\":"
        "\"Running\"}}");

/* A list that names the pod, while the nth allocation of its ingestion fails. Returns whether one
 * failed. */
static bool list(struct cache *c, size_t nth)
{
    struct ingest in;
    struct loop *l = loop_make();
    ingest_init(&in, l, c);
    fail_alloc_arm(nth == 0 ? FAIL_NEVER : FAIL_ONCE, nth);
    ingest_list_begin(&in, CACHE_PODS);
    ingest_pod(&in, bound_pod, false);
    (void)ingest_list_end(&in, CACHE_PODS);
    bool hit = fail_alloc_hit();
    fail_alloc_disarm();
    ck_assert_msg(in.lost == hit, "allocation %zu failed, and that is %s", nth,
                  in.lost ? "told" : "not told");
    ingest_done(&in);
    (void)loop_free(l);
    cache_check(c);
    return hit;
}

static bool knows(const struct cache *c)
{
    const struct pod *p = cache_pod(c, STR("u"));
    return p != NULL && p->state == POD_BOUND && p->request->mem == 8 && p->card == 0;
}

TEST(a_pod_without_memory_for_it_is_lost_not_bad)
{
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (size_t nth = 1;; nth++) {
        struct cache c;
        cache_init(&c, (struct map_seed){1, 2});
        bool hit = list(&c, nth);
        ck_assert(hit || knows(&c));
        cache_done(&c);
        if (!hit)
            break;
    }
}

TEST(a_pod_that_is_known_is_not_swept_for_that)
{
    bool hit = true;
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (size_t nth = 1; hit; nth++) {
        struct cache c;
        cache_init(&c, (struct map_seed){1, 2});
        ck_assert(!list(&c, 0));
        hit = list(&c, nth);
        ck_assert(knows(&c));
        cache_done(&c);
    }
}

#define QUOTA_OF(text)                                                               \
    STR("{\"metadata\":{\"name\":\"cardpack-quota\",\"namespace\":\"kube-system\"}," \
        "\"data\":{" text "}}")

static const struct str good_quota =
    QUOTA_OF("\"quota.yaml\":\"namespaces: {ns: {limits: {memory: 8}}}\"");

/* The memory that a namespace may use; -1: no limits. */
static int64_t limit_in(const struct cache *c)
{
    struct quota_account a = quota_account(&c->quota, STR("ns"));
    return a.entry == NULL ? -1 : a.entry->limits[0].most[QUOTA_MEMORY];
}

/* A ConfigMap that can't be read, or that is not cardpack's, changes nothing, and no list takes the
 * quota for deleted. */
TEST(the_last_good_quota_stays)
{
    static const struct str others[] = {
        QUOTA_OF("\"quota.yaml\":\"namespaces: {ns: {limits: {memory: 9Gi}}}\""),
        QUOTA_OF("\"quota.yaml\":\"namespaces: {ns: {limit: {memory: 9}}}\""),
        QUOTA_OF("\"quota.yaml\":\"\""),
        QUOTA_OF("\"quota.yaml\":\"a: [\""),
        QUOTA_OF("\"quota.yml\":\"namespaces: {}\""),
    };
    struct ingest in;
    struct cache c;
    struct loop *l = loop_make();
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    ingest_configmap(&in, others[0], false);
    ck_assert_int_eq(limit_in(&c), -1);
    ingest_configmap(&in, good_quota, false);
    ck_assert_int_eq(limit_in(&c), 8);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        ingest_configmap(&in, others[i], false);
        ck_assert_int_eq(limit_in(&c), 8);
        ingest_list_begin(&in, CACHE_HEALTH);
        ingest_configmap(&in, others[i], false);
        ck_assert_uint_eq(ingest_list_end(&in, CACHE_HEALTH), 0);
        ck_assert_int_eq(limit_in(&c), 8);
        ck_assert(!in.lost && !in.torn[CACHE_HEALTH]);
    }
    ingest_configmap(&in,
                     STR("{\"metadata\":{\"name\":\"cardpack-quota\",\"namespace\":\"ns\"},"
                         "\"data\":{\"quota.yaml\":\"namespaces: {}\"}}"),
                     false);
    ck_assert_int_eq(limit_in(&c), 8);
    ingest_configmap(&in, others[0], true); /* deleted, whatever its content */
    ck_assert_int_eq(limit_in(&c), -1);
    ingest_configmap(&in, good_quota, false);
    ingest_list_begin(&in, CACHE_HEALTH);
    ck_assert_uint_eq(ingest_list_end(&in, CACHE_HEALTH), 0);
    ck_assert_int_eq(limit_in(&c), -1);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}

TEST(a_quota_without_memory_for_it_is_lost_not_bad)
{
    bool hit = true;
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (size_t nth = 1; hit; nth++) {
        struct ingest in;
        struct cache c;
        struct loop *l = loop_make();
        cache_init(&c, (struct map_seed){1, 2});
        ingest_init(&in, l, &c);
        fail_alloc_arm(FAIL_ONCE, nth);
        ingest_configmap(&in, good_quota, false);
        hit = fail_alloc_hit();
        fail_alloc_disarm();
        ck_assert(in.lost == hit);
        ck_assert_int_eq(limit_in(&c), hit ? -1 : 8);
        ingest_done(&in);
        (void)loop_free(l);
        cache_done(&c);
    }
}

static const struct str node_of_two_cards =
    STR("{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"32\","
        "\"aliyun.com/gpu-count\":\"2\"},\"allocatable\":{\"aliyun.com/gpu-mem\":\"32\"}}}");

static bool knows_node(const struct cache *c)
{
    const struct node *n = cache_node(c, STR("n"));
    return n != NULL && n->fault == NODE_OK;
}

/* An object that can't be read keeps the objects that its own list lacks. The next list is
 * complete. */
TEST(the_list_after_a_torn_one_sweeps)
{
    struct ingest in;
    struct cache c;
    struct loop *l = loop_make();
    log_setup(memfd_create("log", MFD_CLOEXEC), LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    ingest_list_begin(&in, CACHE_NODES);
    ingest_node(&in, node_of_two_cards, false);
    (void)ingest_list_end(&in, CACHE_NODES);
    ck_assert(knows_node(&c));
    ingest_list_begin(&in, CACHE_NODES);
    ingest_node(&in, STR("{\"metadata\":[]}"), false);
    (void)ingest_list_end(&in, CACHE_NODES);
    ck_assert(knows_node(&c));
    ingest_list_begin(&in, CACHE_NODES);
    (void)ingest_list_end(&in, CACHE_NODES);
    ck_assert(!knows_node(&c));
    cache_check(&c);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}

/* A DELETED event holds the cards that the ConfigMap last named: they become healthy. */
TEST(cards_are_healthy_again_without_their_configmap)
{
    static const struct str unhealthy =
        STR("{\"metadata\":{\"name\":\"unhealthy-gpu-n\",\"namespace\":\"kube-system\"},"
            "\"data\":{\"gpus\":\"1\"}}");
    struct ingest in;
    struct cache c;
    struct loop *l = loop_make();
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    ingest_node(&in, node_of_two_cards, false);
    ingest_configmap(&in, unhealthy, false);
    const struct node *n = cache_node(&c, STR("n"));
    ck_assert(card_usable(&n->cards[0]) && !card_usable(&n->cards[1]));
    ingest_configmap(&in, unhealthy, true);
    n = cache_node(&c, STR("n"));
    ck_assert(card_usable(&n->cards[0]) && card_usable(&n->cards[1]));
    cache_check(&c);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}

/* The log names the missing key; it does not say that an empty text is no quota. */
TEST(a_quota_without_its_key_is_named)
{
    char text[1024] = "";
    struct ingest in;
    struct cache c;
    struct loop *l = loop_make();
    int log = memfd_create("log", MFD_CLOEXEC);
    log_setup(log, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    ingest_configmap(&in, QUOTA_OF("\"quota.yml\":\"namespaces: {}\""), false);
    ck_assert_int_gt(pread(log, text, sizeof(text) - 1, 0), 0);
    ck_assert_msg(strstr(text, "error=\"it has no quota.yaml\"") != NULL, "%s", text);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}

/* Whatever else is said at that time. */
TEST(a_lock_that_cannot_be_true_is_said)
{
    char text[8192] = "";
    char pod[512];
    struct ingest in;
    struct cache c;
    struct loop *l = loop_make();
    int log = memfd_create("log", MFD_CLOEXEC);
    log_setup(log, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    dialects_use(DIALECT_BIT(DIALECT_GPUSHARE) | DIALECT_BIT(DIALECT_VGPU));
    cache_init(&c, (struct map_seed){1, 2});
    ingest_init(&in, l, &c);
    ingest_node(&in, node_of_two_cards, false);
    for (unsigned i = 0; i <= LOG_LIMIT_LINES; i++) {
        (void)snprintf(pod, sizeof(pod),
                       "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"%u\","
                       "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{"
                       "\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"resources\":{"
                       "\"limits\":{\"aliyun.com/gpu-mem\":\"20\"}}}]}}",
                       i);
        ingest_pod(&in, str_of(pod), false);
    }
    ingest_node(&in,
                STR("{\"metadata\":{\"name\":\"m\",\"annotations\":{\"hamivgpu\":\"x\","
                    "\"volcano.sh/node-vgpu-register\":\"GPU-a,10,16,A,true,hami-core:\"}},"
                    "\"status\":{\"capacity\":{\"volcano.sh/vgpu-number\":\"10\"}}}"),
                false);
    ck_assert_int_gt(pread(log, text, sizeof(text) - 1, 0), 0);
    ck_assert_msg(strstr(text, "a card holds more than its size") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "a node's lock is not obeyed") != NULL, "%s", text);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}
