/* That a packed UUID is read back as the same text. */
#include "unit.h"

#include "core/uuid.h"

#define UUID "5a1f0c77-09ab-4cde-8f01-23456789abcd"
#define GPU  "GPU-" UUID
#define MIG  "MIG-" UUID

static const struct {
    const char *text;
    enum uuid_kind kind;
} kinds[] = {
    {"", UUID_NONE},
    {GPU, UUID_GPU},
    {"GPU-00000000-0000-0000-0000-000000000000", UUID_GPU},
    {"GPU-ffffffff-ffff-ffff-ffff-ffffffffffff", UUID_GPU},
    {MIG, UUID_MIG},
    {UUID, UUID_TEXT},
    {"GPU-1", UUID_TEXT},
    {"GPU-", UUID_TEXT},
    {"gpu-" UUID, UUID_TEXT},
    {"GPU-5A1F0C77-09AB-4CDE-8F01-23456789ABCD", UUID_TEXT},
    {"GPU-5a1f0c77-09ab-4cde-8f01-23456789abcD", UUID_TEXT},
    {"GPU-5a1f0c77-09ab-4cde-8f01-23456789abcg", UUID_TEXT},
    {"GPU-5a1f0c77-09ab-4cde-8f01-23456789abc", UUID_TEXT},
    {GPU "0", UUID_TEXT},
    {"GPU-5a1f0c7-709ab-4cde-8f01-23456789abcd", UUID_TEXT},
    {"GPU-5a1f0c77009ab-4cde-8f01-23456789abcd", UUID_TEXT},
    {"GPU-5a1f0c77-09ab-4cde-8f01-2345-789abcd", UUID_TEXT},
    {"MIG-GPU-" UUID "/1/0", UUID_TEXT},
    {GPU "[1-0]", UUID_TEXT},
};

TEST_EACH(a_text_has_a_kind, COUNT_OF(kinds))
{
    struct str text = str_of(kinds[_i].text);
    unsigned char bytes[UUID_BYTES];
    struct uuid_room room;
    ck_assert_int_eq(uuid_kind_of(text), kinds[_i].kind);
    if (kinds[_i].kind < UUID_GPU)
        return;
    uuid_pack(text, bytes);
    ck_assert_str_is(uuid_unpack(kinds[_i].kind, bytes, &room), kinds[_i].text);
}
