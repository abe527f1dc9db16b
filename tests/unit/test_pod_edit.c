/* The JSON of a pod after the edits of the embedded cluster, byte by byte. */
#include "daemon/backend/pod_edit.h"

#include "fail_alloc.h"
#include "unit.h"

#define ANNOTATIONS                                                    \
    "\"annotations\":{\"own\":\"1\",\"ALIYUN_COM_GPU_MEM_IDX\":\"9\"," \
    "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}"

static const struct binding binding = {.namespace = STR("ns"),
                                       .name = STR("p"),
                                       .uid = STR("u"),
                                       .node = STR("n"),
                                       .mem = 8,
                                       .idx = STR("0"),
                                       .card_total = 16,
                                       .assume_ns = 1};

struct edited {
    struct arena arena;
    struct buf out;
};

static enum errc write(struct edited *x, const char *pod, const struct binding *b)
{
    struct err e = ERR_INIT;
    struct pod_edit edit = {.namespace = STR("ns"), .uid = STR("u"), .binding = b};
    arena_init(&x->arena, MIB);
    buf_init(&x->out, MIB);
    return pod_edit_write(str_of(pod), &edit, &x->arena, &x->out, &e);
}

static void done(struct edited *x)
{
    buf_done(&x->out);
    arena_done(&x->arena);
}

static unsigned times(struct edited *x, const char *part)
{
    unsigned n = 0;
    for (const char *at = strstr(buf_cstr(&x->out), part); at != NULL; at = strstr(at + 1, part))
        n++;
    return n;
}

TEST(without_a_binding_all_else_is_copied)
{
    struct edited x;
    ck_assert_int_eq(
        write(&x,
              "{\"kind\":\"Pod\",\"metadata\":{\"uid\":\"old\",\"name\":\"p\"," ANNOTATIONS
              "},\"spec\":{\"nodeName\":\"m\",\"x\":[1]},\"status\":{\"phase\":\"Running\"}}",
              NULL),
        OK);
    ck_assert_str_eq(buf_cstr(&x.out),
                     "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":"
                     "\"u\"," ANNOTATIONS "},\"spec\":{\"nodeName\":\"m\",\"x\":[1]},\"status\":{"
                     "\"phase\":\"Running\"}}");
    done(&x);
}

/* Each key of the Binding appears once, whatever the pod had before. */
TEST(the_binding_takes_the_place_of_what_was_there)
{
    struct edited x;
    ck_assert_int_eq(write(&x,
                           "{\"metadata\":{\"name\":\"p\"," ANNOTATIONS
                           "},\"spec\":{\"nodeName\":\"m\",\"x\":[1]}}",
                           &binding),
                     OK);
    ck_assert_uint_eq(times(&x, "\"nodeName\":"), 1);
    ck_assert_uint_eq(times(&x, "\"nodeName\":\"n\""), 1);
    ck_assert_uint_eq(times(&x, "\"ALIYUN_COM_GPU_MEM_IDX\":"), 1);
    ck_assert_uint_eq(times(&x, "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\""), 1);
    ck_assert_uint_eq(times(&x, "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":"), 1);
    ck_assert_uint_eq(times(&x, "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\""), 1);
    ck_assert_uint_eq(times(&x, "\"own\":\"1\""), 1);
    ck_assert_uint_eq(times(&x, "\"x\":[1]"), 1);
    ck_assert_uint_eq(times(&x, "\"status\":{\"phase\":\"Pending\"}"), 1);
    done(&x);
}

static enum errc scenario(void *ctx)
{
    struct edited x;
    (void)ctx;
    enum errc code = write(&x, "{\"metadata\":{" ANNOTATIONS "},\"spec\":{}}", &binding);
    done(&x);
    return code;
}

TEST(it_is_whole_or_not_at_all)
{
    ck_assert_uint_gt(fail_alloc_each(scenario, NULL), 0);
}
