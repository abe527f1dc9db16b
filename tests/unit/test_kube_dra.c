/* The decoders of resource.k8s.io/v1. */
#include "objects/kube_dra.h"

#include "base/buf.h"
#include "fail_alloc.h"
#include "unit.h"

static void describe_slice(struct buf *out, const struct dra_slice_view *v)
{
    buf_printf(out, "%.*s %.*s/%.*s@%lld %.*s:", STR_ARG(v->name), STR_ARG(v->driver),
               STR_ARG(v->pool), (long long)v->generation, STR_ARG(v->node));
    for (size_t i = 0; i < v->n_devices; i++) {
        const struct dra_device_view *x = &v->devices[i];
        buf_printf(out, " %.*s(%.*s,%.*s,%.*s,%llx,%lld)", STR_ARG(x->name), STR_ARG(x->node),
                   STR_ARG(x->uuid), STR_ARG(x->parent),
                   (unsigned long long)(x->pci & 0xffffffffffff), (long long)x->memory);
    }
}

static void describe_claim(struct buf *out, const struct dra_claim_view *v)
{
    buf_printf(out, "%.*s/%.*s %.*s:", STR_ARG(v->namespace), STR_ARG(v->name), STR_ARG(v->uid));
    for (size_t i = 0; i < v->n_results; i++) {
        const struct dra_result_view *x = &v->results[i];
        buf_printf(out, " %.*s/%.*s/%.*s", STR_ARG(x->driver), STR_ARG(x->pool),
                   STR_ARG(x->device));
        if (x->shared)
            buf_printf(out, "=%lld", (long long)x->memory);
    }
}

#define META "\"metadata\":{\"name\":\"n\",\"namespace\":\"ns\",\"uid\":\"u\"}"
#define SLICE(d)                                                                        \
    "{" META ",\"spec\":{\"driver\":\"gpu\",\"pool\":{\"name\":\"p\",\"generation\":7," \
    "\"resourceSliceCount\":1},\"nodeName\":\"n1\",\"devices\":" d "}}"
#define FREE(d)  "{" META ",\"spec\":{\"driver\":\"gpu\",\"devices\":" d "}}"
#define CLAIM(d) "{" META ",\"status\":{\"allocation\":{\"devices\":{\"results\":" d "}}}}"

static const struct {
    char what; /* slice, claim, class */
    const char *json;
    const char *then; /* of an error: what it contains */
} table[] = {
    {'s', "{}", " /@0 :"},
    {'s', SLICE("null"), "n gpu/p@7 n1:"},
    {'s',
     SLICE("[{\"name\":\"gpu-0\",\"attributes\":{\"uuid\":{\"string\":\"GPU-1\"},\"type\":{"
           "\"string\":\"gpu\"},\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:3b:00.0\"},"
           "\"numa\":{\"int\":1}},\"capacity\":{\"memory\":{\"value\":\"40Gi\"},\"x\":{\"value\":"
           "\"1\"}}}]"),
     "n gpu/p@7 n1: gpu-0(,GPU-1,,3b00,42949672960)"},
    {'s',
     SLICE("[{\"name\":\"m\",\"attributes\":{\"gpu.nvidia.com/uuid\":{\"string\":\"MIG-1\"},"
           "\"parentUUID\":{\"string\":\"GPU-1\"}},\"capacity\":{\"gpu/memory\":{\"value\":5}}}]"),
     "n gpu/p@7 n1: m(,MIG-1,GPU-1,0,5)"},
    /* nothing to join it by; an attribute of another type; a bad address */
    {'s', SLICE("[{\"name\":\"a\"},{\"name\":\"b\",\"attributes\":{\"uuid\":{\"int\":1}}}]"),
     "n gpu/p@7 n1:"},
    {'s', SLICE("[{\"name\":\"a\",\"attributes\":{\"pciBusID\":{\"string\":\"x\"}}}]"),
     "n gpu/p@7 n1:"},
    /* each device names its node, or none does */
    {'s',
     FREE("[{\"name\":\"a\",\"nodeName\":\"n2\",\"attributes\":{\"uuid\":{\"string\":\"U\"}}},"
          "{\"name\":\"b\",\"attributes\":{\"uuid\":{\"string\":\"V\"}}}]"),
     "n gpu/@0 : a(n2,U,,0,0)"},
    {'s', SLICE("[{\"attributes\":{\"uuid\":\"GPU-1\"}}]"), "!devices[0].attributes.uuid"},
    {'s', "[]", "!expected an object"},

    {'c', "{" META "}", "ns/n u:"},
    {'c', "{" META ",\"status\":{}}", "ns/n u:"},
    {'c', "{" META ",\"status\":{\"allocation\":null}}", "ns/n u:"},
    {'c', CLAIM("[{\"request\":\"r\",\"driver\":\"gpu\",\"pool\":\"p\",\"device\":\"d\"}]"),
     "ns/n u: gpu/p/d"},
    {'c',
     CLAIM("[{\"driver\":\"gpu\",\"pool\":\"p\",\"device\":\"d\",\"shareID\":\"1\","
           "\"consumedCapacity\":{\"memory\":\"4Gi\",\"cores\":\"10\"}}]"),
     "ns/n u: gpu/p/d=4294967296"},
    {'c', CLAIM("[{\"device\":\"d\",\"shareID\":\"1\"},{\"device\":\"e\",\"shareID\":\"\"}]"),
     "ns/n u: //d=-1 //e"},
    {'c',
     CLAIM("[{\"device\":\"d\",\"shareID\":\"1\",\"consumedCapacity\":{\"g/memory\":\"many\"}}]"),
     "ns/n u: //d=-1"},
    {'c',
     CLAIM("[{\"device\":\"a\",\"adminAccess\":true},{\"device\":\"b\",\"adminAccess\":null}]"),
     "ns/n u: //b"},
    {'c', CLAIM("[{\"device\":1}]"), "!status.allocation.devices.results[0].device"},

    {'k', "{" META ",\"spec\":{\"selectors\":[]}}", "n "},
    {'k', "{" META ",\"spec\":{\"extendedResourceName\":\"nvidia.com/gpu\"}}", "n nvidia.com/gpu"},
};

struct reading {
    char what;
    struct str json;
    struct buf out;
    struct err err;
};

static enum errc read_one(void *ctx)
{
    struct reading *x = ctx;
    struct arena arena;
    struct jread r;
    struct dra_slice_view slice = {.name = STR_NULL};
    struct dra_claim_view claim = {.name = STR_NULL};
    struct dra_class_view class = {.name = STR_NULL};
    arena_init(&arena, MIB);
    buf_clear(&x->out, 4096);
    jread_init(&r, x->json, &arena);
    if (x->what == 's')
        kube_read_slice(&r, &arena, &slice);
    else if (x->what == 'c')
        kube_read_claim(&r, &arena, &claim);
    else
        kube_read_class(&r, &class);
    x->err = (struct err)ERR_INIT;
    enum errc code = jread_finish(&r, &x->err);
    if (code == OK && x->what == 's')
        describe_slice(&x->out, &slice);
    else if (code == OK && x->what == 'c')
        describe_claim(&x->out, &claim);
    else if (code == OK)
        buf_printf(&x->out, "%.*s %.*s", STR_ARG(class.name), STR_ARG(class.resource));
    arena_done(&arena);
    return code;
}

TEST_EACH(objects_are_read, COUNT_OF(table))
{
    char bytes[4096];
    struct reading x = {
        .what = table[_i].what, .json = str_of(table[_i].json), .out = BUF_ON(bytes)};
    enum errc code = read_one(&x);
    if (table[_i].then[0] == '!') {
        ck_assert_int_ne(code, OK);
        ck_assert_msg(strstr(x.err.text, table[_i].then + 1) != NULL, "%s", x.err.text);
        return;
    }
    ck_assert_msg(code == OK, "%s", x.err.text);
    ck_assert_str_eq(buf_cstr(&x.out), table[_i].then);
}

TEST(names_have_a_limit)
{
    char bytes[1024];
    struct buf json;
    buf_init(&json, 4096);
    buf_put(&json, STR("{\"spec\":{\"driver\":\""));
    for (size_t i = 0; i <= DRA_NAME_MAX; i++)
        buf_putc(&json, 'a');
    buf_put(&json, STR("\"}}"));
    struct reading x = {.what = 's', .json = buf_str(&json), .out = BUF_ON(bytes)};
    ck_assert_int_eq(read_one(&x), ERR_RANGE);
    buf_done(&json);
}

TEST_EACH(each_allocation_may_fail, COUNT_OF(table))
{
    char bytes[4096];
    struct reading x = {
        .what = table[_i].what, .json = str_of(table[_i].json), .out = BUF_ON(bytes)};
    if (table[_i].then[0] != '!')
        (void)fail_alloc_each(read_one, &x);
}
