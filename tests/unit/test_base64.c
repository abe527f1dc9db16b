/* Decoding base64, and its refusals. */
#include "json/base64.h"

#include "unit.h"

static const struct {
    const char *text;
    const char *bytes; /* NULL: refused */
} cases[] = {
    {"", ""},
    {"Zg==", "f"},
    {"Zm8=", "fo"},
    {"Zm9v", "foo"},
    {"Zm9vYg==", "foob"},
    {"Zm9vYmE=", "fooba"},
    {"Zm9vYmFy", "foobar"},
    {"Zm9v\nYmFy\r\n", "foobar"},
    {" Z m 8 = ", "fo"},
    {"+/+/", "\xfb\xff\xbf"},
    {"Zg", NULL},
    {"Zg=", NULL},
    {"Zm9vY", NULL},
    {"Z===", NULL},
    {"====", NULL},
    {"Zg==Zg==", NULL},
    {"Zg=====", NULL},
    {"Zg==\n====", NULL},
    {"Z=g=", NULL},
    {"Zm9v=", NULL},
    {"-_-_", NULL},
    {"Zm9*", NULL},
};

TEST_EACH(decodes, COUNT_OF(cases))
{
    struct str out = STR_NULL;
    struct arena arena;
    arena_init(&arena, 4096);
    enum errc code = base64_decode(str_of(cases[_i].text), &arena, &out);
    if (cases[_i].bytes == NULL)
        ck_assert_int_eq(code, ERR_SYNTAX);
    else {
        ck_assert_int_eq(code, OK);
        ck_assert_str_is(out, cases[_i].bytes);
    }
    arena_done(&arena);
}

TEST(needs_room)
{
    struct str out = STR_NULL;
    struct arena arena;
    arena_init(&arena, 8);
    ck_assert_int_eq(base64_decode(STR("Zm9vYmFyZm9vYmFy"), &arena, &out), ERR_LIMIT);
    arena_done(&arena);
}
