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

TEST_EACH(is_written, COUNT_OF(cases))
{
    struct buf out;
    struct jwrite w;
    buf_init(&out, 4096);
    jwrite_init(&w, &out);
    eviction_write(&w, &cases[_i].e);
    ck_assert_str_is(buf_str(&out), cases[_i].json);
    buf_done(&out);
}
