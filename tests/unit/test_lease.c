/* The Lease object: reading it, and editing it without losing unknown fields. */
#include "objects/lease.h"
#include "unit.h"
#include "json/jread.h"

static struct arena arena;
static struct buf out;
static struct jwrite w;

static void set_up(void)
{
    arena_init(&arena, (size_t)65536);
    buf_init(&out, (size_t)65536);
    jwrite_init(&w, &out);
}

static void tear_down(void)
{
    arena_done(&arena);
    buf_done(&out);
}

static const struct {
    uint64_t ns;
    const char *text;
} times[] = {
    {0, "1970-01-01T00:00:00.000000Z"},
    {UINT64_C(951782399999999999), "2000-02-28T23:59:59.999999Z"},
    {UINT64_C(951782400000000000), "2000-02-29T00:00:00.000000Z"},
    {UINT64_C(951868800000001000), "2000-03-01T00:00:00.000001Z"},
    {UINT64_C(1072915199000000000), "2003-12-31T23:59:59.000000Z"},
    {UINT64_C(1072915200000000000), "2004-01-01T00:00:00.000000Z"},
    {UINT64_C(4107542400000000000), "2100-03-01T00:00:00.000000Z"},
    {UINT64_C(1795199998765432100), "2026-11-20T18:39:58.765432Z"},
    {UINT64_MAX, "2554-07-21T23:34:33.709551Z"},
};

TEST_EACH(test_micro_time, COUNT_OF(times))
{
    char text[MICRO_TIME_BYTES];
    ck_assert_str_is(micro_time_print(times[_i].ns, text), times[_i].text);
}

/* As kube-apiserver 1.36.3 returns it, shortened. */
#define HELD                                                                                      \
    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":\"c\"," \
    "\"namespace\":\"kube-system\",\"uid\":\"u1\",\"resourceVersion\":\"412\",\"annotations\":{"  \
    "\"a\":\"1\",\"cardpack.io/released-at\":\"r\",\"cardpack.io/wanted-by\":\"b_2 "              \
    "2026-01-01T00:00:00.000000Z\"},"                                                             \
    "\"managedFields\":[{\"manager\":\"x\"}]},\"spec\":{\"holderIdentity\":\"a_1\","              \
    "\"leaseDurationSeconds\":10,\"acquireTime\":\"2026-01-01T00:00:00.000001Z\","                \
    "\"renewTime\":\"2026-01-01T00:00:02.000001Z\",\"leaseTransitions\":3,"                       \
    "\"preferredHolder\":\"z\"}}"

TEST(test_read)
{
    struct lease_view v;
    struct err e = ERR_INIT;
    ck_assert_ok(lease_read(STR(HELD), &arena, &v, &e), &e);
    ck_assert_str_is(v.version, "412");
    ck_assert_str_is(v.holder, "a_1");
    ck_assert_str_is(v.acquired, "2026-01-01T00:00:00.000001Z");
    ck_assert_str_is(v.renewed, "2026-01-01T00:00:02.000001Z");
    ck_assert_str_is(v.wanted, "b_2 2026-01-01T00:00:00.000000Z");
    ck_assert_str_is(v.released, "r");
    ck_assert_int_eq(v.duration_s, 10);
    ck_assert_int_eq(v.transitions, 3);
    ck_assert(str_starts(v.spec, STR("{\"holderIdentity\"")));
}

static const struct {
    const char *json;
    enum errc code;
    const char *holder; /* NULL: absent */
    int64_t duration_s;
} reads[] = {
    {"{\"metadata\":{\"resourceVersion\":\"1\"}}", OK, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":null}", OK, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":null}}", OK, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"\"}}", OK, "", 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":null},"
     "\"spec\":{\"holderIdentity\":\"\\u0061\",\"leaseDurationSeconds\":7}}",
     OK, "a", 7},
    {"{\"spec\":{}}", ERR_SYNTAX, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"\"}}", ERR_SYNTAX, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":[]}", ERR_SYNTAX, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":1}}", ERR_SYNTAX, NULL,
     0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseDurationSeconds\":-1}}", ERR_RANGE,
     NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseTransitions\":-1}}", ERR_RANGE,
     NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"leaseDurationSeconds\":1.5}}",
     ERR_RANGE, NULL, 0},
    {"{\"metadata\":{\"resourceVersion\":\"1\"}", ERR_SYNTAX, NULL, 0},
    {"", ERR_SYNTAX, NULL, 0},
    {"<html>", ERR_SYNTAX, NULL, 0},
};

TEST_EACH(test_reads, COUNT_OF(reads))
{
    struct lease_view v;
    struct err e = ERR_INIT;
    enum errc code = lease_read(str_of(reads[_i].json), &arena, &v, &e);
    ck_assert_msg((code == OK) == (reads[_i].code == OK), "%s: %s", reads[_i].json, e.text);
    if (code != OK)
        return;
    ck_assert(str_eq(v.holder, str_of(reads[_i].holder)));
    ck_assert_int_eq(v.duration_s, reads[_i].duration_s);
}

static const struct lease_edit edit = {
    .holder = STR("b_2"),
    .acquired = STR("2026-01-01T00:00:09.000000Z"),
    .renewed = STR("2026-01-01T00:00:09.000000Z"),
    .duration_s = 12,
    .transitions = 4,
};

#define EDITED                                                \
    "\"holderIdentity\":\"b_2\",\"leaseDurationSeconds\":12," \
    "\"acquireTime\":\"2026-01-01T00:00:09.000000Z\","        \
    "\"renewTime\":\"2026-01-01T00:00:09.000000Z\",\"leaseTransitions\":4}}"

TEST(test_new)
{
    lease_write_new(&w, STR("kube-system"), STR("cardpack"), &edit);
    ck_assert_str_is(buf_str(&out),
                     "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
                     "\"name\":\"cardpack\",\"namespace\":\"kube-system\"},\"spec\":{" EDITED);
}

/* Unknown fields, the version and the annotations are copied unchanged. */
TEST(test_edited)
{
    lease_write_edited(&w, STR(HELD), &arena, &edit, (struct lease_note){.key = STR_NULL});
    struct str head = STR(HELD);
    head.n = (size_t)(strstr(HELD, "\"holderIdentity\"") - HELD);
    ck_assert(str_starts(buf_str(&out), head));
    ck_assert_str_is(str_skip(buf_str(&out), head.n), "\"preferredHolder\":\"z\"," EDITED);
}

TEST(test_edited_without_spec)
{
    lease_write_edited(&w, STR("{\"metadata\":{\"resourceVersion\":\"1\"}}"), &arena, &edit,
                       (struct lease_note){.key = STR_NULL});
    ck_assert_str_is(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{" EDITED);
}

TEST(test_wanted)
{
    struct lease_view before;
    struct lease_view after;
    struct arena other;
    struct err e = ERR_INIT;
    arena_init(&other, (size_t)65536);
    lease_write_edited(&w, STR(HELD), &arena, NULL,
                       (struct lease_note){STR(LEASE_WANTED_BY), STR("c_3 now")});
    ck_assert_ok(lease_read(STR(HELD), &arena, &before, &e), &e);
    ck_assert_ok(lease_read(buf_str(&out), &other, &after, &e), &e);
    ck_assert_str_is(after.wanted, "c_3 now");
    ck_assert(str_eq(after.spec, before.spec));
    ck_assert(str_eq(after.version, before.version));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&out), "\"a\":\"1\""));
    ck_assert_ptr_null(strstr(buf_cstr(&out), "b_2 2026"));
    arena_done(&other);
}

TEST(test_wanted_first)
{
    lease_write_edited(&w, STR("{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{}}"), &arena,
                       NULL, (struct lease_note){STR(LEASE_WANTED_BY), STR("c")});
    ck_assert_str_is(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{"
                                    "\"cardpack.io/wanted-by\":\"c\"}},\"spec\":{}}");
}

/* The spec and the annotation in one write. */
TEST(test_released)
{
    lease_write_edited(&w, STR("{\"metadata\":{\"resourceVersion\":\"1\"}}"), &arena, &edit,
                       (struct lease_note){STR(LEASE_RELEASED_AT), STR("r")});
    ck_assert_str_is(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{"
                                    "\"cardpack.io/released-at\":\"r\"}},\"spec\":{" EDITED);
}

int main(void)
{
    TCase *tc = unit_case("all");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
