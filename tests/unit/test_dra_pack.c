/* That a packed device says what its view said. */
#include "unit.h"

#include "core/dra_pack.h"

#include <stdlib.h>

#define UUID "5a1f0c77-09ab-4cde-8f01-23456789abcd"

static char long_text[400];

static const struct {
    struct dra_device_view view;
    size_t most; /* bytes */
} table[] = {
    {{.name = STR("gpu-0"), .uuid = STR("GPU-" UUID), .memory = INT64_C(80) << 30}, 44},
    {{.name = STR("gpu-0-mig-1g"),
      .uuid = STR("MIG-" UUID),
      .parent = STR("GPU-" UUID),
      .memory = 1},
     60},
    {{.name = STR(""), .uuid = STR("")}, 20},
    {{.name = STR("x"), .uuid = STR("GPU-1"), .parent = STR("MIG-")}, 40},
    {{.name = STR("upper case"), .uuid = STR("GPU-5A1F0C77-09ab-4cde-8f01-23456789abcd")}, 80},
    {{.name = STR("a dash too far"), .uuid = STR("GPU-5a1f0c7-709ab-4cde-8f01-23456789abcd")}, 80},
    {{.name = STR("longer"), .uuid = STR("GPU-" UUID "0")}, 80},
    {{.name = STR("no prefix"), .uuid = STR(UUID)}, 80},
    {{.name = STR("zeros"), .memory = INT64_C(1) << 62}, 20},
    {{.name = STR("a zero byte within"), .memory = 0x1234005600}, 40},
    {{.name = STR("most"), .uuid = STR("GPU-" UUID), .memory = INT64_MAX}, 60},
};

static const struct str addresses[] = {STR_NULL, STR("0000:00:00.0"), STR("ffffffff:ff:1f.7"),
                                       STR("00000000:3B:00.0")};

START_TEST(a_record_says_what_the_view_said)
{
    struct dra_facts facts;
    struct dra_device_view v = table[_i].view;
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        v.pci = addresses[i].n == 0 ? 0 : dra_pci(addresses[i]);
        size_t n = dra_pack_size(&v);
        unsigned char *bytes = malloc(n); /* so that a byte too many is found */
        ck_assert_ptr_nonnull(bytes);
        ck_assert_uint_le(n, table[_i].most);
        ck_assert_ptr_eq(dra_pack(bytes, &v), bytes + n);
        ck_assert_ptr_eq(dra_pack_next(bytes), bytes + n);
        dra_unpack(bytes, &facts);
        ck_assert(str_eq(dra_pack_name(bytes), v.name) && str_eq(facts.uuid, v.uuid) &&
                  str_eq(facts.parent, v.parent));
        ck_assert(facts.pci == v.pci && facts.memory == v.memory);
        free(bytes);
    }
}

END_TEST

/* It stays a text, so that a node without a table has no free card, and is no card's. */
START_TEST(a_text_longer_than_any_uuid_is_cut)
{
    unsigned char bytes[sizeof(long_text)];
    struct dra_facts facts;
    memset(long_text, 'x', sizeof(long_text));
    struct dra_device_view v = {.name = STR("n"), .uuid = {long_text, sizeof(long_text)}};
    ck_assert_uint_le(dra_pack_size(&v), sizeof(bytes));
    ck_assert_ptr_eq(dra_pack(bytes, &v), bytes + dra_pack_size(&v));
    dra_unpack(bytes, &facts);
    ck_assert_uint_eq(facts.uuid.n, DRA_PACK_TEXT_MAX);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("dra_pack");
    TCase *tc = tcase_create("dra_pack");
    tcase_add_loop_test(tc, a_record_says_what_the_view_said, 0, (int)COUNT_OF(table));
    tcase_add_test(tc, a_text_longer_than_any_uuid_is_cut);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
