/* The body of an Eviction. */
#include "objects/eviction.h"

#include "unit.h"

static const struct {
    struct eviction e;
    const char *json;
} cases[] = {
    {{STR("ns"), STR("p"), STR("u-1"), false},
     "{\"apiVersion\":\"policy/"
     "v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\",\"namespace\":"
     "\"ns\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"u-1\"}}}"},
    {{STR("ns"), STR("\"p"), STR("u-1"), true},
     "{\"apiVersion\":\"policy/v1beta1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"\\\"p\","
     "\"namespace\":\"ns\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"u-1\"}}}"},
};

START_TEST(is_written)
{
    struct buf out;
    struct jwrite w;
    buf_init(&out, 4096);
    jwrite_init(&w, &out);
    eviction_write(&w, &cases[_i].e);
    ck_assert_str_is(buf_str(&out), cases[_i].json);
    buf_done(&out);
}

int main(void)
{
    Suite *suite = suite_create("eviction");
    TCase *tc = tcase_create("eviction");
    tcase_add_loop_test(tc, is_written, 0, COUNT_OF(cases));
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
