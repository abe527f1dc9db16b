/*
 * What an API server stores, and a reader may fail on: no object blinds cardpack, and what can't be
 * read is not free. The inputs were stored by 1.20.2 and 1.36.3 for an author with nothing but
 * `create pods`, except for those of another type, which an API server does not store.
 */
#include "asked.h"
#include "core/place/fit.h"
#include "kube/ingest.h"
#include "on_loop.h"

#include <stdio.h>

struct stage {
    struct rig rig;
    struct ingest in;
    struct loop *loop;
    struct buf text;
};

static void stage_open(struct stage *s)
{
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    rig_init(&s->rig);
    s->loop = loop_make();
    ingest_init(&s->in, s->loop, &s->rig.cache);
    buf_init(&s->text, LIMIT_OBJECT_BYTES);
    set_node(&s->rig, (struct node_view){.name = STR("n"), .mem = STR("32"), .count = STR("2")});
}

static void stage_close(struct stage *s)
{
    cache_check(&s->rig.cache);
    buf_done(&s->text);
    ingest_done(&s->in);
    (void)loop_free(s->loop);
    rig_done(&s->rig);
}

/* A bound pod of 10 on card 0; `extra` are further members of its metadata, `containers` further
 * elements of its list, `after` further members of the object. */
static struct str pod_json(struct stage *s, const char *extra, const char *containers,
                           const char *after)
{
    buf_clear(&s->text, SIZE_MAX);
    buf_printf(&s->text,
               "{\"metadata\":{%s\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":"
               "{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":["
               "%s{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"10\"}}}]},"
               "\"status\":{\"phase\":\"Running\"}%s}",
               extra, containers, after);
    ck_assert(!buf_failed(&s->text));
    return buf_str(&s->text);
}

static bool holds_card(const struct stage *s)
{
    const struct pod *p = cache_pod(&s->rig.cache, STR("u"));
    return p != NULL && p->state == POD_BOUND && p->request->mem == 10 && p->card == 0 &&
           !p->unreadable;
}

static enum verdict verdict_of(const struct stage *s, const char *mem)
{
    struct request r;
    struct evaluation e =
        asked(&s->rig,
              (struct pod_view){.uid = STR("new"),
                                .containers =
                                    &(struct container_view){.name = STR("c"), .mem = str_of(mem)},
                                .n_containers = 1,
                                .n_mains = 1},
              &r);
    return fit_node(cache_node(&s->rig.cache, STR("n")), &e);
}

static void list_pod(struct stage *s, struct str json)
{
    ingest_list_begin(&s->in, CACHE_PODS);
    ingest_pod(&s->in, json, false);
    (void)ingest_list_end(&s->in, CACHE_PODS);
}

TEST(any_depth_below_a_managed_field)
{
    const size_t depth = 10000;
    struct buf fields;
    struct stage s;
    stage_open(&s);
    buf_init(&fields, MIB);
    buf_put(&fields, STR("\"managedFields\":[{\"fieldsV1\":"));
    for (size_t i = 0; i < depth; i++)
        buf_put(&fields, STR("{\"f:a\":"));
    buf_put(&fields, STR("{}"));
    for (size_t i = 0; i < depth; i++)
        buf_putc(&fields, '}');
    buf_put(&fields, (struct str){"}],", sizeof("}],")}); /* with its NUL */
    list_pod(&s, pod_json(&s, fields.p, "", ""));
    ck_assert(holds_card(&s) && s.in.n_unreadable == 0);
    buf_done(&fields);
    stage_close(&s);
}

TEST(any_bytes_in_a_managed_field)
{
    struct stage s;
    stage_open(&s);
    list_pod(&s,
             pod_json(&s, "\"managedFields\":[{\"fieldsV1\":{\"f:\xff\xfe\x01\":{}}}],", "", ""));
    ck_assert(holds_card(&s) && s.in.n_unreadable == 0);
    stage_close(&s);
}

/* etcd's limit lets some 10,000 containers through, an API server's own 30,000. */
TEST(any_number_of_containers)
{
    const size_t count = 30000;
    struct buf list;
    struct stage s;
    stage_open(&s);
    buf_init(&list, LIMIT_OBJECT_BYTES);
    for (size_t i = 0; i < count; i++)
        buf_printf(&list,
                   "{\"name\":\"c%zu\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\"}}},", i);
    buf_putc(&list, '\0');
    ck_assert(!buf_failed(&list));
    struct str json = pod_json(&s, "", list.p, "");
    list_pod(&s, json);
    ck_assert(holds_card(&s) && s.in.n_unreadable == 0);
    buf_done(&list);
    stage_close(&s);
}

static void put_containers(struct buf *out, const char *list, size_t n, const char *amounts)
{
    buf_printf(out, "\"%s\":[", list);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s{\"name\":\"%c%zu\",\"resources\":{\"limits\":{%s}}}", i == 0 ? "" : ",",
                   list[0], i, amounts);
    buf_printf(out, "]");
}

/* As many of both kinds, in the order of an API server. */
TEST(any_number_of_containers_of_both_kinds)
{
    struct stage s;
    stage_open(&s);
    buf_clear(&s.text, SIZE_MAX);
    buf_printf(&s.text, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\","
                        "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{");
    put_containers(&s.text, "initContainers", 32000, "\"aliyun.com/gpu-mem\":\"7\"");
    buf_printf(&s.text, ",");
    put_containers(&s.text, "containers", 32000, "\"nvidia.com/gpu\":\"1\"");
    buf_printf(&s.text, ",\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\"}}");
    ck_assert(!buf_failed(&s.text));
    list_pod(&s, buf_str(&s.text));
    ck_assert_uint_eq(s.in.n_unreadable, 0);
    const struct pod *p = cache_pod(&s.rig.cache, STR("u"));
    ck_assert(p != NULL && p->request->mem == 7 && p->request->exclusive == 32000);
    stage_close(&s);
}

/* Not stored by any API server: a field that is needed has another type. */
static struct str broken_pod(struct stage *s, const char *phase, const char *node)
{
    buf_clear(&s->text, SIZE_MAX);
    buf_printf(
        &s->text,
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":[]},"
        "\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"%s\"}}",
        node, phase);
    return buf_str(&s->text);
}

TEST(a_bound_pod_that_is_not_read_closes_its_node)
{
    struct stage s;
    stage_open(&s);
    list_pod(&s, broken_pod(&s, "Running", "n"));
    ck_assert_uint_eq(s.in.n_unreadable, 1);
    ck_assert(!s.in.torn[CACHE_PODS]);
    ck_assert_int_eq(verdict_of(&s, "1"), VERDICT_UNREADABLE);
    ingest_pod(&s.in, pod_json(&s, "", "", ""), false);
    ck_assert(holds_card(&s));
    ck_assert_int_eq(verdict_of(&s, "16"), VERDICT_FITS);
    stage_close(&s);
}

TEST(what_it_held_stays_charged)
{
    struct stage s;
    stage_open(&s);
    list_pod(&s, pod_json(&s, "", "", ""));
    ingest_pod(&s.in, broken_pod(&s, "Running", "n"), false);
    const struct pod *p = cache_pod(&s.rig.cache, STR("u"));
    ck_assert(p != NULL && p->unreadable && p->card == 0 && p->request->mem == 10);
    ck_assert_int_eq(verdict_of(&s, "1"), VERDICT_UNREADABLE);
    list_pod(&s, broken_pod(&s, "Running", "n")); /* a list does not take it for deleted */
    ck_assert_ptr_nonnull(cache_pod(&s.rig.cache, STR("u")));
    stage_close(&s);
}

static void expect_released(struct stage *s)
{
    ck_assert_ptr_null(cache_pod(&s->rig.cache, STR("u")));
    ck_assert_int_eq(verdict_of(s, "16"), VERDICT_FITS);
}

TEST(it_is_released_when_it_ends_or_goes)
{
    struct stage s;
    stage_open(&s);
    ingest_pod(&s.in, broken_pod(&s, "Running", "n"), false);
    ingest_pod(&s.in, broken_pod(&s, "Failed", "n"), false);
    expect_released(&s);
    ingest_pod(&s.in, broken_pod(&s, "Running", "n"), false);
    ingest_pod(&s.in, broken_pod(&s, "Running", "n"), true);
    expect_released(&s);
    ingest_pod(&s.in, broken_pod(&s, "Running", "n"), false);
    ingest_list_begin(&s.in, CACHE_PODS);
    (void)ingest_list_end(&s.in, CACHE_PODS);
    expect_released(&s);
    stage_close(&s);
}

TEST(a_pending_pod_that_is_not_read_closes_nothing)
{
    struct stage s;
    stage_open(&s);
    list_pod(&s, broken_pod(&s, "Pending", ""));
    ck_assert_int_eq(verdict_of(&s, "16"), VERDICT_FITS);
    stage_close(&s);
}

TEST(a_pod_without_a_uid_tears_the_list)
{
    struct stage s;
    stage_open(&s);
    list_pod(&s, pod_json(&s, "", "", ""));
    list_pod(&s, STR("{\"metadata\":{\"name\":\"q\",\"namespace\":\"ns\"}}"));
    ck_assert(s.in.torn[CACHE_PODS] && holds_card(&s));
    stage_close(&s);
}

TEST(a_node_that_is_not_read_has_no_cards)
{
    struct stage s;
    stage_open(&s);
    ingest_node(&s.in, STR("{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":[]}}"), false);
    ck_assert(!s.in.torn[CACHE_NODES] && s.in.n_unreadable == 1);
    ck_assert_int_eq(verdict_of(&s, "1"), VERDICT_NOT_SHARED);
    ingest_node(&s.in, STR("{\"metadata\":{\"name\":[]}}"), false);
    ck_assert(s.in.torn[CACHE_NODES]);
    stage_close(&s);
}

/* Its devices are not known, so nothing may be decided. */
TEST(a_claim_that_is_not_read_tears_the_list)
{
    struct stage s;
    stage_open(&s);
    ingest_list_begin(&s.in, CACHE_CLAIMS);
    ingest_claim(&s.in, STR("{\"metadata\":{\"uid\":\"c\"},\"status\":{\"allocation\":7}}"), false);
    (void)ingest_list_end(&s.in, CACHE_CLAIMS);
    ck_assert(s.in.torn[CACHE_CLAIMS]);
    stage_close(&s);
}
