/* What a node's cards and pods use: writing, reading, what is refused, and lack of memory. */
#include "objects/usage.h"

#include "core/limit.h"
#include "fail_alloc.h"
#include "objects/limit.h"
#include "unit.h"

#include <stdio.h>

static const char example[] =
    "{\"seen\":\"2026-11-25T19:20:00Z\","
    "\"cards\":[{\"index\":0,\"usedMiB\":9000,\"totalMiB\":81920,\"busyPercent\":37},"
    "{\"index\":3,\"usedMiB\":0,\"totalMiB\":81920}],"
    "\"pods\":[{\"uid\":\"1-2\",\"namespace\":\"ns\",\"name\":\"pod\",\"card\":0,\"usedMiB\":4100},"
    "{\"uid\":\"1-2\",\"namespace\":\"ns\",\"name\":\"pod\",\"card\":3,\"usedMiB\":0}]}";

static const char differing[] =
    "{\"seen\":\"2026-11-25T19:20:00Z\",\"cards\":[],\"compared\":12,\"differences\":["
    "{\"namespace\":\"ns\",\"name\":\"p\",\"container\":\"c\",\"kind\":\"cards\",\"annotated\":\"0,"
    "2\","
    "\"given\":\"1\"},"
    "{\"namespace\":\"ns\",\"name\":\"q\",\"container\":\"c\",\"kind\":\"none\",\"annotated\":"
    "\"0\","
    "\"given\":\"\"}],\"pods\":[]}";

/* What the kubelet's list of devices says, if it was asked. */
TEST(differences_are_written_and_read)
{
    struct arena a;
    struct buf out;
    struct err e = ERR_INIT;
    struct usage_view v;
    arena_init(&a, MIB);
    buf_init(&out, MIB);
    ck_assert_ok(usage_read(str_of(example), &a, &v, &e), &e);
    ck_assert(!v.asked);
    ck_assert_ok(usage_read(str_of(differing), &a, &v, &e), &e);
    ck_assert(v.asked);
    ck_assert_uint_eq(v.compared, 12);
    ck_assert_uint_eq(v.n_differences, 2);
    ck_assert_int_eq((int)v.differences[0].kind, USAGE_DIFFERS_CARDS);
    ck_assert_str_is(v.differences[0].annotated, "0,2");
    ck_assert_str_is(v.differences[0].given, "1");
    ck_assert_int_eq((int)v.differences[1].kind, USAGE_DIFFERS_NONE);
    ck_assert_str_is(v.differences[1].name, "q");
    usage_write(&out, &v);
    ck_assert_str_is(buf_str(&out), differing);
    buf_done(&out);
    arena_done(&a);
}

TEST(what_it_writes_it_reads)
{
    struct arena a;
    struct buf out;
    struct err e = ERR_INIT;
    struct usage_view v;
    arena_init(&a, MIB);
    buf_init(&out, MIB);
    ck_assert_ok(usage_read(str_of(example), &a, &v, &e), &e);
    ck_assert_str_is(v.seen, "2026-11-25T19:20:00Z");
    ck_assert_uint_eq(v.n_cards, 2);
    ck_assert_uint_eq(v.cards[0].index, 0);
    ck_assert_uint_eq(v.cards[0].used_mib, 9000);
    ck_assert_uint_eq(v.cards[0].total_mib, 81920);
    ck_assert_uint_eq(v.cards[0].busy_percent, 37);
    ck_assert_uint_eq(v.cards[1].index, 3);
    ck_assert_uint_eq(v.cards[1].busy_percent, USAGE_BUSY_UNKNOWN);
    ck_assert_uint_eq(v.n_pods, 2);
    ck_assert_str_is(v.pods[0].uid, "1-2");
    ck_assert_str_is(v.pods[0].namespace, "ns");
    ck_assert_str_is(v.pods[0].name, "pod");
    ck_assert_uint_eq(v.pods[0].card, 0);
    ck_assert_uint_eq(v.pods[0].used_mib, 4100);
    ck_assert_uint_eq(v.pods[1].card, 3);
    usage_write(&out, &v);
    ck_assert_str_is(buf_str(&out), example);
    buf_done(&out);
    arena_done(&a);
}

#define SEEN "\"seen\":\"2026-11-25T19:20:00Z\""
#define CARD "{\"index\":0,\"usedMiB\":1,\"totalMiB\":2"
#define POD  "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"p\",\"card\":0,\"usedMiB\":1"
#define DIFFERENCE                                                                              \
    "{\"namespace\":\"n\",\"name\":\"p\",\"container\":\"c\",\"kind\":\"owner\",\"annotated\":" \
    "\"0\","                                                                                    \
    "\"given\":\"\""
#define CARDS  "{" SEEN ",\"cards\":["
#define PODS   "{" SEEN ",\"pods\":["
#define BIGGER "4294967296"

static const struct {
    const char *text;
    const char *fault; /* NULL: valid */
} texts[] = {
    {"{" SEEN "}", NULL},
    {"{" SEEN ",\"cards\":null,\"pods\":null,\"later\":[{}]}", NULL},
    {CARDS CARD "},{\"totalMiB\":0,\"usedMiB\":4294967295,\"index\":1023,\"busyPercent\":null}]}",
     NULL},
    {CARDS CARD ",\"busyPercent\":100,\"later\":1}]}", NULL},
    {PODS POD ",\"later\":1}," POD "}]}", NULL},
    {"", ""},
    {"x", ""},
    {"[]", "expected an object"},
    {"null", "seen is missing"},
    {"{}", "seen is missing"},
    {"{\"seen\":null}", "seen: \"\" is no time"},
    {"{\"seen\":1}", "seen: "},
    {"{\"seen\":\"today\"}", "seen: \"today\" is no time"},
    {"{" SEEN ",\"cards\":{}}", "cards: "},
    {CARDS "1]}", "cards[0]: "},
    {CARDS "{\"usedMiB\":1,\"totalMiB\":2}]}", "cards[0]: index is missing"},
    {CARDS "{\"index\":1,\"totalMiB\":2}]}", "cards[0]: usedMiB is missing"},
    {CARDS "{\"index\":1,\"usedMiB\":2}]}", "cards[0]: totalMiB is missing"},
    {CARDS CARD "}," CARD "}]}", "cards[1]: index 0 is there twice"},
    {CARDS "{\"index\":1024}]}", "cards[0].index: 1024 must be 0 to 1023"},
    {CARDS "{\"index\":-1}]}", "cards[0].index: -1 must be 0 to 1023"},
    {CARDS "{\"index\":0.5}]}", "cards[0].index"},
    {CARDS "{\"usedMiB\":" BIGGER "}]}", "cards[0].usedMiB: 4294967296 must be 0 to 4294967295"},
    {CARDS "{\"totalMiB\":-1}]}", "cards[0].totalMiB: -1 must be 0 to 4294967295"},
    {CARDS CARD ",\"busyPercent\":101}]}", "cards[0].busyPercent: 101 must be 0 to 100"},
    {CARDS CARD ",\"busyPercent\":\"1\"}]}", "cards[0].busyPercent"},
    {PODS "{\"namespace\":\"n\",\"name\":\"p\",\"card\":0,\"usedMiB\":1}]}",
     "pods[0]: uid is missing"},
    {PODS "{\"uid\":\"u\",\"name\":\"p\",\"card\":0,\"usedMiB\":1}]}",
     "pods[0]: namespace is missing"},
    {PODS "{\"uid\":\"u\",\"namespace\":\"n\",\"card\":0,\"usedMiB\":1}]}",
     "pods[0]: name is missing"},
    {PODS "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"p\",\"usedMiB\":1}]}",
     "pods[0]: card is missing"},
    {PODS "{\"uid\":\"u\",\"namespace\":\"n\",\"name\":\"p\",\"card\":0}]}",
     "pods[0]: usedMiB is missing"},
    {PODS POD "},{\"uid\":\"\"}]}", "pods[1].uid: \"\" is no name"},
    {PODS "{\"name\":null}]}", "pods[0].name: \"\" is no name"},
    {PODS "{\"card\":1024}]}", "pods[0].card: 1024 must be 0 to 1023"},
    {PODS "{\"usedMiB\":" BIGGER "}]}", "pods[0].usedMiB: 4294967296 must be 0 to 4294967295"},
    {"{" SEEN ",\"compared\":-1}", "compared: -1 must be 0 to 4294967295"},
    {"{" SEEN ",\"differences\":[" DIFFERENCE "}]}", NULL},
    {"{" SEEN ",\"differences\":[" DIFFERENCE ",\"kind\":\"x\"}]}",
     "differences[0].kind: \"x\" must be cards, owner or none"},
    {"{" SEEN ",\"differences\":[" DIFFERENCE ",\"given\":\"1\\u001b\"}]}", "is no list of cards"},
    {"{" SEEN ",\"differences\":[{\"namespace\":\"n\"}]}", "differences[0]: name is missing"},
    {"{" SEEN "} x", ""},
};

TEST_EACH(reads_a_text_or_says_what_is_wrong, COUNT_OF(texts))
{
    struct arena a;
    struct err e = ERR_INIT;
    struct usage_view v;
    arena_init(&a, MIB);
    enum errc code = usage_read(str_of(texts[_i].text), &a, &v, &e);
    if (texts[_i].fault == NULL) {
        ck_assert_ok(code, &e);
    } else {
        ck_assert_int_ne(code, OK);
        ck_assert_int_eq(code, e.code);
        ck_assert_msg(strstr(e.text, texts[_i].fault) != NULL, "it says %s", e.text);
    }
    arena_done(&a);
}

static const char *const names[] = {"uid", "namespace", "name"};

TEST_EACH(a_name_has_a_ceiling, COUNT_OF(names))
{
    static char text[2 * LIMIT_USAGE_NAME];
    static char name[LIMIT_USAGE_NAME + 2];
    struct arena a;
    struct err e = ERR_INIT;
    struct usage_view v;
    arena_init(&a, MIB);
    memset(name, 'a', LIMIT_USAGE_NAME);
    (void)snprintf(text, sizeof(text), PODS POD ",\"%s\":\"%s\"}]}", names[_i], name);
    ck_assert_ok(usage_read(str_of(text), &a, &v, &e), &e);
    name[LIMIT_USAGE_NAME] = 'a';
    (void)snprintf(text, sizeof(text), PODS POD ",\"%s\":\"%s\"}]}", names[_i], name);
    ck_assert_int_eq(usage_read(str_of(text), &a, &v, &e), ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(e.text, names[_i]));
    ck_assert_ptr_nonnull(strstr(e.text, "aaa...\" has 254 bytes: 253 at most"));
    arena_done(&a);
}

TEST(a_text_has_a_ceiling)
{
    static char text[LIMIT_USAGE_TEXT + 1];
    struct arena a;
    struct err e = ERR_INIT;
    struct usage_view v;
    arena_init(&a, MIB);
    memset(text, ' ', sizeof(text));
    memcpy(text, example, sizeof(example) - 1);
    ck_assert_ok(usage_read((struct str){text, LIMIT_USAGE_TEXT}, &a, &v, &e), &e);
    ck_assert_int_eq(usage_read((struct str){text, LIMIT_USAGE_TEXT + 1}, &a, &v, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "has 262145 bytes: 262144 at most");
    arena_done(&a);
}

enum {
    MANY = 1001
};

/* Writes `n` pods with a name of `length` bytes, and reads the text. */
static size_t pods_there(size_t n, size_t length, struct buf *out)
{
    static struct usage_pod pods[MANY];
    static char name[LIMIT_USAGE_NAME];
    struct arena a;
    struct err e = ERR_INIT;
    struct usage_view v = {.seen = STR("2026-11-25T19:20:00Z"), .pods = pods, .n_pods = n};
    memset(name, 'a', sizeof(name));
    for (size_t i = 0; i < n; i++)
        pods[i] = (struct usage_pod){
            .uid = {name, length}, .namespace = STR("n"), .name = {name, length}, .used_mib = i};
    arena_init(&a, MIB);
    usage_write(out, &v);
    ck_assert(!buf_failed(out));
    ck_assert_ok(usage_read(buf_str(out), &a, &v, &e), &e);
    for (size_t i = 0; i < v.n_pods; i++)
        ck_assert_uint_eq(v.pods[i].used_mib, i);
    arena_done(&a);
    return v.n_pods;
}

TEST(the_last_pods_are_left_out_where_there_are_too_many)
{
    struct buf out;
    buf_init(&out, MIB);
    ck_assert_uint_eq(pods_there(MANY - 1, 10, &out), LIMIT_MEASURED_PODS);
    buf_clear(&out, 0);
    ck_assert_uint_eq(pods_there(MANY, 10, &out), LIMIT_MEASURED_PODS);
    buf_clear(&out, 0);
    size_t n = pods_there(MANY, LIMIT_USAGE_NAME, &out);
    ck_assert(n > 400 && n < 500);
    ck_assert(out.n <= LIMIT_USAGE_TEXT && out.n > LIMIT_USAGE_TEXT - 600);
    buf_done(&out);
}

TEST(a_text_with_too_many_pods_is_refused)
{
    struct arena a;
    struct buf text;
    struct err e = ERR_INIT;
    struct usage_view v;
    buf_init(&text, MIB);
    arena_init(&a, MIB);
    buf_put(&text, STR(PODS));
    for (int i = 0; i < MANY; i++)
        buf_printf(&text, "%s" POD "}", i == 0 ? "" : ",");
    buf_put(&text, STR("]}"));
    ck_assert_int_eq(usage_read(buf_str(&text), &a, &v, &e), ERR_RANGE);
    ck_assert_str_eq(e.text, "pods[1000]: more than 1000 pods");
    arena_done(&a);
    buf_done(&text);
}

static enum errc read_example(void *ctx)
{
    struct arena a;
    struct err e = ERR_INIT;
    struct usage_view v;
    (void)ctx;
    arena_init(&a, MIB);
    enum errc code = usage_read(str_of(example), &a, &v, &e);
    arena_done(&a);
    return code;
}

TEST(survives_lack_of_memory)
{
    ck_assert_uint_gt(fail_alloc_each(read_example, NULL), 0);
}
