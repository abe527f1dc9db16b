/* That the block of a node's UUIDs has the same texts. */
#include "unit.h"

#include "core/state/uuids.h"

#include <stdlib.h>

#define UUID "5a1f0c77-09ab-4cde-8f01-23456789abcd"
#define GPU  "GPU-" UUID
#define MIG  "MIG-" UUID
#define MOST 5

/* The longest that a table of cards may have. */
static char long_text[256];

static const struct {
    const char *texts[MOST];
    size_t bytes;
} lists[] = {
    {{GPU}, 17},
    {{GPU, "GPU-00000000-0000-0000-0000-00000000000a", GPU}, 49},
    {{MIG, MIG}, 33},
    {{GPU, MIG}, 43}, /* 1, 2 * 4, 2 * 17 */
    {{GPU, ""}, 27},
    {{"", GPU, ""}, 32},
    {{"GPU-1"}, 11},
    {{"GPU-1", "GPU-5A1F0C77-09AB-4CDE-8F01-23456789ABCD", "", GPU, MIG}, 103},
    {{long_text, GPU, long_text}, 1 + 12 + 17 + 2 * 257},
    {{"", ""}, 0},
    {{""}, 0},
};

TEST_EACH(a_block_has_the_texts, COUNT_OF(lists))
{
    struct str texts[MOST];
    struct uuid_room room;
    uint32_t n = 0;
    memset(long_text, 'x', sizeof(long_text));
    for (; n < MOST && lists[_i].texts[n] != NULL; n++) {
        const char *text = lists[_i].texts[n];
        texts[n] = text == long_text ? (struct str){text, sizeof(long_text)} : str_of(text);
    }
    ck_assert_uint_eq(uuids_size(texts, n), lists[_i].bytes);
    if (lists[_i].bytes == 0)
        return;
    unsigned char *block = malloc(lists[_i].bytes); /* so that a byte too many is found */
    ck_assert_ptr_nonnull(block);
    uuids_pack(texts, n, block);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = 0;
        while (!str_eq(texts[first], texts[i]))
            first++;
        ck_assert(str_eq(uuids_get(block, n, i, &room), texts[i]));
        ck_assert_uint_eq(uuids_find(block, n, texts[i]), texts[i].n == 0 ? n : first);
    }
    static const char *const strange[] = {"", "GPU-", "GPU-2", UUID,
                                          "GPU-5a1f0c77-09ab-4cde-8f01-23456789abce"};
    for (size_t i = 0; i < COUNT_OF(strange); i++)
        ck_assert_uint_eq(uuids_find(block, n, str_of(strange[i])), n);
    free(block);
}

/* A MIG device is no GPU, though its bytes may be those of one. */
TEST(the_kind_counts)
{
    struct str gpus[] = {STR(GPU), STR(GPU)};
    unsigned char block[1 + 2 * UUID_BYTES];
    uuids_pack(gpus, 2, block);
    ck_assert_uint_eq(uuids_find(block, 2, STR(MIG)), 2);
    ck_assert_uint_eq(uuids_find(block, 2, STR(GPU)), 0);
}
