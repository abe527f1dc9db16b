/* An object for which there was no memory is not forgotten, and nothing is taken for gone by it. */
#include "ingest.h"

#include "fail_alloc.h"
#include "log.h"
#include "on_loop.h"

static const struct str bound_pod =
    STR("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
        "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
        "\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}]},\"status\":{\"phase\":"
        "\"Running\"}}");

/* A list that names the pod, with the nth allocation of its ingestion failing; whether one did. */
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
    return p != NULL && p->state == POD_BOUND && p->mem == 8 && p->card == 0;
}

START_TEST(a_pod_without_memory_for_it_is_lost_not_bad)
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

END_TEST

START_TEST(a_pod_that_is_known_is_not_swept_for_that)
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

END_TEST

#define QUOTA_OF(text)                                                               \
    STR("{\"metadata\":{\"name\":\"cardpack-quota\",\"namespace\":\"kube-system\"}," \
        "\"data\":{" text "}}")

static const struct str good_quota =
    QUOTA_OF("\"quota.yaml\":\"namespaces: {ns: {limits: {memory: 8}}}\"");

/* What may be used of memory by a namespace; -1: no limits. */
static int64_t limit_in(const struct cache *c)
{
    struct quota_account a = quota_account(&c->quota, STR("ns"));
    return a.entry == NULL ? -1 : a.entry->limits[0].most[QUOTA_MEMORY];
}

/* One that can't be read, or that is another's, changes nothing, and no list takes it for gone. */
START_TEST(the_last_good_quota_stays)
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
    ingest_configmap(&in, others[0], true); /* deleted, whatever it says */
    ck_assert_int_eq(limit_in(&c), -1);
    ingest_configmap(&in, good_quota, false);
    ingest_list_begin(&in, CACHE_HEALTH);
    ck_assert_uint_eq(ingest_list_end(&in, CACHE_HEALTH), 0);
    ck_assert_int_eq(limit_in(&c), -1);
    ingest_done(&in);
    (void)loop_free(l);
    cache_done(&c);
}

END_TEST

START_TEST(a_quota_without_memory_for_it_is_lost_not_bad)
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

END_TEST

int main(void)
{
    Suite *suite = suite_create("ingest");
    TCase *tc = tcase_create("ingest");
    tcase_add_test(tc, a_pod_without_memory_for_it_is_lost_not_bad);
    tcase_add_test(tc, a_pod_that_is_known_is_not_swept_for_that);
    tcase_add_test(tc, the_last_good_quota_stays);
    tcase_add_test(tc, a_quota_without_memory_for_it_is_lost_not_bad);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
