/* That packed devices say what their views said. */
#include "unit.h"

#include "core/dra/dra_pack.h"
#include "fail_alloc.h"

#include <stdlib.h>

#define UUID "5a1f0c77-09ab-4cde-8f01-23456789abcd"

static char long_text[400];

static const struct {
    struct dra_device_view view;
    size_t uuids; /* bytes */
} table[] = {
    {{.name = STR("gpu-0"), .uuid = STR("GPU-" UUID), .memory = INT64_C(80) << 30}, 16},
    {{.name = STR("gpu-0-mig-1g"),
      .uuid = STR("MIG-" UUID),
      .parent = STR("GPU-" UUID),
      .memory = 1},
     32},
    {{.name = STR(""), .uuid = STR("")}, 0},
    {{.name = STR("x"), .uuid = STR("GPU-1"), .parent = STR("MIG-")}, 0},
    {{.name = STR("upper case"), .uuid = STR("GPU-5A1F0C77-09ab-4cde-8f01-23456789abcd")}, 0},
    {{.name = STR("a dash too far"), .uuid = STR("GPU-5a1f0c7-709ab-4cde-8f01-23456789abcd")}, 0},
    {{.name = STR("longer"), .uuid = STR("GPU-" UUID "0"), .parent = STR("GPU-" UUID)}, 16},
    {{.name = STR("no prefix"), .uuid = STR(UUID)}, 0},
    {{.name = STR("zeros"), .memory = INT64_C(1) << 62}, 0},
    {{.name = STR("a zero byte within"), .memory = 0x1234005600}, 0},
    {{.name = STR("most"), .uuid = STR("GPU-" UUID), .memory = INT64_MAX}, 16},
};

static const struct str addresses[] = {STR_NULL, STR("0000:00:00.0"), STR("ffffffff:ff:1f.7"),
                                       STR("00000000:3B:00.0")};

static unsigned char *uuids_of(const struct dra_device_view *views, size_t n)
{
    size_t size = dra_pack_uuids_size(views, n);
    unsigned char *bytes = malloc(size + 1); /* one that must not change */
    ck_assert_ptr_nonnull(bytes);
    bytes[size] = 0xa5;
    ck_assert_ptr_eq(dra_pack_uuids(bytes, views, n), bytes + size);
    ck_assert_uint_eq(bytes[size], 0xa5);
    return bytes;
}

static void check(const struct dra_shape *s, const unsigned char *uuids,
                  const struct dra_device_view *v, uint32_t index)
{
    struct dra_facts facts;
    uint32_t i = UINT32_MAX;
    ck_assert(dra_shape_find(s, uuids, v->name, &i, &facts));
    ck_assert_uint_eq(i, index);
    ck_assert(str_eq(facts.uuid, v->uuid) && str_eq(facts.parent, v->parent));
    ck_assert(facts.pci == v->pci && facts.memory == v->memory);
}

TEST_EACH(a_device_is_as_its_view, COUNT_OF(table))
{
    struct dra_device_view v = table[_i].view;
    struct intern_table shapes;
    intern_init(&shapes, (struct map_seed){1, 2});
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        v.pci = addresses[i].n == 0 ? 0 : dra_pci(addresses[i]);
        struct dra_shape *s = dra_shape_take(&shapes, &v, 1);
        ck_assert_uint_eq(dra_pack_uuids_size(&v, 1), table[_i].uuids);
        unsigned char *uuids = uuids_of(&v, 1);
        check(s, uuids, &v, 0);
        uint32_t index = 7;
        ck_assert(!dra_shape_find(s, uuids, STR("none"), &index, NULL));
        free(uuids);
        dra_shape_give(&shapes, s);
    }
    intern_done(&shapes);
}

TEST(each_device_of_a_slice_is_found)
{
    struct dra_device_view views[COUNT_OF(table)];
    struct intern_table shapes;
    intern_init(&shapes, (struct map_seed){1, 2});
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        views[i] = table[i].view;
        views[i].pci = dra_pci(addresses[i % COUNT_OF(addresses)]);
    }
    struct dra_shape *s = dra_shape_take(&shapes, views, COUNT_OF(views));
    unsigned char *uuids = uuids_of(views, COUNT_OF(views));
    for (uint32_t i = 0; i < COUNT_OF(views); i++)
        check(s, uuids, &views[i], i);
    free(uuids);
    dra_shape_give(&shapes, s);
    intern_done(&shapes);
}

/* Each differs from the first in one thing. */
static const struct {
    struct dra_device_view view;
    bool shared;
} others[] = {
    {{.name = STR("a"), .uuid = STR("GPU-" UUID), .pci = 7, .memory = 9}, true},
    {{.name = STR("a"),
      .uuid = STR("GPU-00000000-09ab-4cde-8f01-23456789abcd"),
      .pci = 7,
      .memory = 9},
     true},
    {{.name = STR("b"), .uuid = STR("GPU-" UUID), .pci = 7, .memory = 9}, false},
    {{.name = STR("a"), .uuid = STR("MIG-" UUID), .pci = 7, .memory = 9}, false},
    {{.name = STR("a"), .uuid = STR("GPU-1"), .pci = 7, .memory = 9}, false},
    {{.name = STR("a"), .uuid = STR("GPU-" UUID), .pci = 8, .memory = 9}, false},
    {{.name = STR("a"), .uuid = STR("GPU-" UUID), .pci = 7, .memory = 10}, false},
    {{.name = STR("a"),
      .uuid = STR("GPU-" UUID),
      .parent = STR("GPU-" UUID),
      .pci = 7,
      .memory = 9},
     false},
};

TEST_EACH(slices_share_all_but_the_uuids, COUNT_OF(others))
{
    struct intern_table shapes;
    intern_init(&shapes, (struct map_seed){1, 2});
    struct dra_shape *first = dra_shape_take(&shapes, &others[0].view, 1);
    struct dra_shape *other = dra_shape_take(&shapes, &others[_i].view, 1);
    unsigned char *uuids = uuids_of(&others[_i].view, 1);
    ck_assert((first == other) == others[_i].shared);
    dra_shape_give(&shapes, first);
    check(other, uuids, &others[_i].view, 0);
    dra_shape_give(&shapes, other);
    dra_shape_give(&shapes, NULL);
    free(uuids);
    intern_done(&shapes);
}

/* It stays a text, so that a node without a table has no free card. */
TEST(a_text_longer_than_any_uuid_is_cut)
{
    struct dra_facts facts;
    struct intern_table shapes;
    uint32_t index;
    memset(long_text, 'x', sizeof(long_text));
    struct dra_device_view v = {.name = STR("n"), .uuid = {long_text, sizeof(long_text)}};
    intern_init(&shapes, (struct map_seed){1, 2});
    struct dra_shape *s = dra_shape_take(&shapes, &v, 1);
    unsigned char *uuids = uuids_of(&v, 1);
    ck_assert(dra_shape_find(s, uuids, v.name, &index, &facts));
    ck_assert_uint_eq(facts.uuid.n, 255);
    free(uuids);
    dra_shape_give(&shapes, s);
    intern_done(&shapes);
}

static enum errc take_two(void *ctx)
{
    struct intern_table shapes;
    (void)ctx;
    intern_init(&shapes, (struct map_seed){1, 2});
    struct dra_shape *first = dra_shape_take(&shapes, &table[0].view, 1);
    struct dra_shape *second = dra_shape_take(&shapes, &table[1].view, 1);
    bool failed = first == NULL || second == NULL;
    dra_shape_give(&shapes, first);
    dra_shape_give(&shapes, second);
    intern_done(&shapes);
    return failed ? ERR_NOMEM : OK;
}

TEST(survives_lack_of_memory)
{
    ck_assert_uint_eq(fail_alloc_each(take_two, NULL), 3);
}
