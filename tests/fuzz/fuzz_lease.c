/*
 * Compares the Lease decoder with jansson's tree. After an edit the fields read back as intended,
 * and all others are unchanged.
 */
#include "base/limit.h"
#include "objects/lease.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const edited[] = {"holderIdentity", "leaseDurationSeconds", "acquireTime",
                                     "renewTime", "leaseTransitions"};

static void same_number(int64_t n, const json_t *value)
{
    if (value == NULL || json_is_null(value) || json_is_integer(value))
        check(n == json_integer_value(value), "the same number as jansson's");
}

static void compare(const struct lease_view *v, const json_t *json)
{
    const json_t *metadata = json_object_get(json, "metadata");
    const json_t *spec = json_object_get(json, "spec");
    same_text(v->version, json_object_get(metadata, "resourceVersion"));
    same_text(v->wanted,
              json_object_get(json_object_get(metadata, "annotations"), LEASE_WANTED_BY));
    same_text(v->released,
              json_object_get(json_object_get(metadata, "annotations"), LEASE_RELEASED_AT));
    same_text(v->renewed, json_object_get(spec, "renewTime"));
    same_text(v->holder, json_object_get(spec, "holderIdentity"));
    same_text(v->acquired, json_object_get(spec, "acquireTime"));
    same_number(v->duration_s, json_object_get(spec, "leaseDurationSeconds"));
    same_number(v->transitions, json_object_get(spec, "leaseTransitions"));
}

/* The Lease without the fields that the editors change, and without parents that they may add. */
static json_t *rest_of(json_t *json)
{
    json_t *metadata = json_object_get(json, "metadata");
    json_t *annotations = json_object_get(metadata, "annotations");
    json_t *spec = json_object_get(json, "spec");
    for (size_t i = 0; i < COUNT_OF(edited); i++)
        json_object_del(spec, edited[i]);
    json_object_del(annotations, LEASE_WANTED_BY);
    json_object_del(annotations, LEASE_RELEASED_AT);
    if (json_object_size(annotations) == 0)
        json_object_del(metadata, "annotations");
    if (json_object_size(spec) == 0)
        json_object_del(json, "spec");
    return json;
}

static void same_rest(struct str before, struct str after)
{
    json_t *a = jansson_reads(before);
    if (a == NULL)
        return;
    json_t *b = jansson_reads(after);
    check(b != NULL && json_equal(rest_of(a), rest_of(b)) == 1, "all else is as it was");
    json_decref(a);
    json_decref(b);
}

static void edit(struct str json, const struct lease_view *was, struct arena *arena)
{
    char acquired[MICRO_TIME_BYTES];
    char renewed[MICRO_TIME_BYTES];
    struct jwrite w;
    struct buf out;
    struct lease_view now;
    const struct lease_edit e = {.holder = STR("me \"\\"),
                                 .acquired = micro_time_print(1, acquired),
                                 .renewed =
                                     micro_time_print(json.n * UINT64_C(1000000007), renewed),
                                 .duration_s = 15,
                                 .transitions = was->transitions};
    buf_init(&out, MIB);
    jwrite_init(&w, &out);
    struct lease_note note = {STR(LEASE_RELEASED_AT), e.renewed};
    lease_write_edited(&w, json, arena, &e, note);
    check(lease_read(buf_str(&out), arena, &now, NULL) == OK, "an edited Lease can be read");
    check(str_eq(now.holder, e.holder) && str_eq(now.acquired, e.acquired) &&
              str_eq(now.renewed, e.renewed) && str_eq(now.released, e.renewed) &&
              now.duration_s == e.duration_s && now.transitions == e.transitions,
          "as it was edited");
    check(str_eq(now.version, was->version), "at the version that was read");
    same_rest(json, buf_str(&out));

    buf_clear(&out, SIZE_MAX);
    jwrite_init(&w, &out);
    lease_write_edited(&w, json, arena, NULL,
                       (struct lease_note){STR(LEASE_WANTED_BY), STR("me 1")});
    check(lease_read(buf_str(&out), arena, &now, NULL) == OK && str_eq(now.wanted, STR("me 1")),
          "a wanted Lease says by whom");
    check(str_eq(now.holder, was->holder) && str_eq(now.version, was->version) &&
              str_eq(now.released, was->released),
          "and still whose it is");
    same_rest(json, buf_str(&out));
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct lease_view lease;
    struct arena arena;
    arena_init(&arena, MIB);
    if (lease_read(text, &arena, &lease, NULL) == OK) {
        json_t *json = jansson_reads(text);
        check(lease.version.n > 0 && lease.duration_s >= 0 && lease.transitions >= 0,
              "what is read makes sense");
        if (json != NULL)
            compare(&lease, json);
        json_decref(json);
        edit(text, &lease, &arena);
    }
    arena_done(&arena);
    return 0;
}
