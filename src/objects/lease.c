/*
 * Reads and edits Leases. An edit copies the object in one pass. It leaves the old values out and
 * writes the new ones at the end of their parent. The API server ignores the order of members.
 */
#include "objects/lease.h"

#include "json/jread.h"

#include <stdio.h>

static void lease_read_metadata(struct jread *r, struct lease_view *ret)
{
    struct str key;
    struct str annotation;
    jread_object (r, key) {
        if (str_eq(key, STR("resourceVersion"))) {
            ret->version = jread_str(r);
        } else if (str_eq(key, STR("annotations"))) {
            jread_object (r, annotation) {
                if (str_eq(annotation, STR(LEASE_WANTED_BY)))
                    ret->wanted = jread_str(r);
                else if (str_eq(annotation, STR(LEASE_RELEASED_AT)))
                    ret->released = jread_str(r);
                else
                    jread_skip(r);
            }
        } else {
            jread_skip(r);
        }
    }
}

/* Reads spec twice: as raw JSON, and field by field. */
static void lease_read_spec(struct jread *outer, struct lease_view *ret)
{
    struct jread inner;
    struct jread *r = &inner;
    struct str key;
    ret->spec = jread_raw(outer);
    jread_init(r, ret->spec, outer->arena);
    jread_object (r, key) {
        if (str_eq(key, STR("holderIdentity")))
            ret->holder = jread_str(r);
        else if (str_eq(key, STR("acquireTime")))
            ret->acquired = jread_str(r);
        else if (str_eq(key, STR("renewTime")))
            ret->renewed = jread_str(r);
        else if (str_eq(key, STR("leaseDurationSeconds")))
            ret->duration_s = jread_i64(r);
        else if (str_eq(key, STR("leaseTransitions")))
            ret->transitions = jread_i64(r);
        else
            jread_skip(r);
    }
    struct err e = ERR_INIT;
    if (!jread_failed(outer) && jread_finish(r, &e) != OK)
        jread_fail(outer, e.code, "%s", e.text);
}

enum errc lease_read(struct str json, struct arena *arena, struct lease_view *ret,
                     struct err *reterr)
{
    struct jread r;
    struct str key;
    *ret = (struct lease_view){.duration_s = 0};
    jread_init(&r, json, arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("metadata")))
            lease_read_metadata(&r, ret);
        else if (str_eq(key, STR("spec")))
            lease_read_spec(&r, ret);
        else
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && ret->version.n == 0)
        code = err_set(reterr, ERR_SYNTAX, "a Lease without metadata.resourceVersion");
    if (code == OK && (ret->duration_s < 0 || ret->transitions < 0))
        code = err_set(reterr, ERR_RANGE,
                       "a Lease with leaseDurationSeconds %lld and "
                       "leaseTransitions %lld",
                       (long long)ret->duration_s, (long long)ret->transitions);
    return code;
}

static void lease_put_spec(struct jwrite *w, const struct lease_edit *e)
{
    jwrite_str_at(w, STR("holderIdentity"), e->holder);
    jwrite_i64_at(w, STR("leaseDurationSeconds"), e->duration_s);
    jwrite_str_at(w, STR("acquireTime"), e->acquired);
    jwrite_str_at(w, STR("renewTime"), e->renewed);
    jwrite_i64_at(w, STR("leaseTransitions"), e->transitions);
}

static bool lease_is_edited(struct str key)
{
    static const char *const names[] = {"holderIdentity", "leaseDurationSeconds", "acquireTime",
                                        "renewTime", "leaseTransitions"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(key, str_of(names[i])))
            return true;
    return false;
}

static void lease_put_kind(struct jwrite *w)
{
    jwrite_str_at(w, STR("apiVersion"), STR("coordination.k8s.io/v1"));
    jwrite_str_at(w, STR("kind"), STR("Lease"));
}

void lease_write_new(struct jwrite *w, struct str namespace, struct str name,
                     const struct lease_edit *e)
{
    jwrite_object_begin(w);
    lease_put_kind(w);
    jwrite_object_at(w, STR("metadata"));
    jwrite_str_at(w, STR("name"), name);
    jwrite_str_at(w, STR("namespace"), namespace);
    jwrite_object_end(w);
    jwrite_object_at(w, STR("spec"));
    lease_put_spec(w, e);
    jwrite_object_end(w);
    jwrite_object_end(w);
}

static void lease_copy(struct jread *r, struct jwrite *w, struct str key)
{
    jwrite_raw_at(w, key, jread_raw(r));
}

static void lease_copy_spec(struct jread *r, struct jwrite *w, const struct lease_edit *e)
{
    struct str key;
    jwrite_object_begin(w);
    jread_object (r, key) {
        if (lease_is_edited(key))
            jread_skip(r);
        else
            lease_copy(r, w, key);
    }
    lease_put_spec(w, e);
    jwrite_object_end(w);
}

static void lease_copy_annotations(struct jread *r, struct jwrite *w, struct lease_note note)
{
    struct str key;
    jwrite_object_begin(w);
    jread_object (r, key) {
        if (str_eq(key, note.key))
            jread_skip(r);
        else
            lease_copy(r, w, key);
    }
    jwrite_str_at(w, note.key, note.value);
    jwrite_object_end(w);
}

static void lease_copy_metadata(struct jread *r, struct jwrite *w, struct lease_note note)
{
    struct str key;
    bool has_annotations = false;
    jwrite_object_begin(w);
    jread_object (r, key) {
        if (!str_eq(key, STR("annotations"))) {
            lease_copy(r, w, key);
            continue;
        }
        has_annotations = true;
        jwrite_key(w, key);
        lease_copy_annotations(r, w, note);
    }
    if (!has_annotations) {
        jwrite_object_at(w, STR("annotations"));
        jwrite_str_at(w, note.key, note.value);
        jwrite_object_end(w);
    }
    jwrite_object_end(w);
}

void lease_write_edited(struct jwrite *w, struct str json, struct arena *arena,
                        const struct lease_edit *e, struct lease_note note)
{
    struct jread r;
    struct str key;
    bool has_spec = e == NULL;
    jread_init(&r, json, arena);
    jwrite_object_begin(w);
    jread_object (&r, key) {
        if (note.key.n > 0 && str_eq(key, STR("metadata"))) {
            jwrite_key(w, key);
            lease_copy_metadata(&r, w, note);
        } else if (e != NULL && str_eq(key, STR("spec"))) {
            has_spec = true;
            jwrite_key(w, key);
            lease_copy_spec(&r, w, e);
        } else {
            lease_copy(&r, w, key);
        }
    }
    if (!has_spec) {
        jwrite_object_at(w, STR("spec"));
        lease_put_spec(w, e);
        jwrite_object_end(w);
    }
    jwrite_object_end(w);
}

/*
 * Converts days since 1970 to a Gregorian date, with eras of 400 years and years that begin in
 * March.
 */
static void lease_civil_date(uint64_t days, unsigned *ret_year, unsigned *ret_month,
                             unsigned *ret_day)
{
    uint64_t z = days + 719468; /* days since 0000-03-01 */
    uint64_t era = z / 146097;
    uint64_t of_era = z % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153; /* 0: March */
    *ret_day = (unsigned)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (unsigned)(month < 10 ? month + 3 : month - 9);
    *ret_year = (unsigned)(year + era * 400 + (*ret_month <= 2 ? 1 : 0));
}

struct str micro_time_print(uint64_t unix_ns, char text[MICRO_TIME_BYTES])
{
    unsigned year = 0;
    unsigned month = 0;
    unsigned day = 0;
    uint64_t us = unix_ns / 1000;
    uint64_t s = us / 1000000;
    lease_civil_date(s / 86400, &year, &month, &day);
    char line[96];
    int n = snprintf(line, sizeof(line), "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", year, month, day,
                     (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
                     (unsigned)(us % 1000000));
    assert(n == (int)MICRO_TIME_BYTES - 1); /* uint64_t nanoseconds end in the year 2554 */
    memcpy(text, line, MICRO_TIME_BYTES);
    return (struct str){text, MICRO_TIME_BYTES - 1};
}
