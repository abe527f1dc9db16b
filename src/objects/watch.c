/*
 * Reads Status objects, list metadata and watch events. An event's object is read twice: first as
 * raw bytes, which validates all of it, then up to its metadata, which comes early. So the second
 * pass may stop in the middle, and it fails only if the value is not an object.
 */
#include "objects/watch.h"

#include "json/jread.h"

#define KIND_SHOWN ((size_t)64)

static void watch_cause_read(struct jread *r, struct kube_status *s)
{
    struct str key;
    jread_object (r, key) {
        if (!str_eq(key, STR("reason")))
            jread_skip(r);
        else if (str_eq(jread_str(r), STR("ResourceVersionTooLarge")))
            s->too_large = true;
    }
}

static void watch_causes_read(struct jread *r, struct kube_status *s)
{
    jread_array (r)
        watch_cause_read(r, s);
}

static void watch_details_read(struct jread *r, struct kube_status *s)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("kind")))
            s->details_kind = jread_str(r);
        else if (str_eq(key, STR("causes")))
            watch_causes_read(r, s);
        else
            jread_skip(r);
    }
}

enum errc kube_status_read(struct str json, struct arena *arena, struct kube_status *ret,
                           struct err *reterr)
{
    struct jread r;
    struct str key;
    struct str kind = STR_NULL;
    *ret = (struct kube_status){0};
    jread_init(&r, json, arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("kind"))) {
            kind = jread_str(&r);
        } else if (str_eq(key, STR("code"))) {
            int64_t code = jread_i64(&r);
            ret->code = code >= 100 && code <= 999 ? (unsigned)code : 0;
        } else if (str_eq(key, STR("status"))) {
            ret->status = jread_str(&r);
        } else if (str_eq(key, STR("reason"))) {
            ret->reason = jread_str(&r);
        } else if (str_eq(key, STR("message"))) {
            ret->message = jread_str(&r);
        } else if (str_eq(key, STR("details"))) {
            watch_details_read(&r, ret);
        } else {
            jread_skip(&r);
        }
    }
    if (!str_eq(kind, STR("Status")))
        jread_fail(&r, ERR_SYNTAX, "not a Status");
    /* API servers before 1.17 say this only in the message. */
    if (str_starts(ret->message, STR("Too large resource version")))
        ret->too_large = true;
    return jread_finish(&r, reterr);
}

bool kube_status_is_failure(const struct kube_status *s, unsigned http_status)
{
    return s->code == http_status && str_eq(s->status, STR("Failure"));
}

enum errc list_meta_read(struct str json, struct arena *arena, struct list_meta *ret,
                         struct err *reterr)
{
    struct jread r;
    struct str key;
    *ret = (struct list_meta){0};
    jread_init(&r, json, arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("resourceVersion")))
            ret->resource_version = jread_str(&r);
        else if (str_eq(key, STR("continue")))
            ret->next = jread_str(&r);
        else
            jread_skip(&r);
    }
    if (ret->resource_version.n == 0)
        jread_fail(&r, ERR_SYNTAX, "a list without resourceVersion");
    return jread_finish(&r, reterr);
}

enum errc list_kind_check(struct str json, struct str wanted, struct err *reterr)
{
    bool quoted = json.n >= 2 && json.p[0] == '"';
    if (quoted && str_eq((struct str){json.p + 1, json.n - 2}, wanted))
        return OK;
    json = str_head(json, KIND_SHOWN);
    return err_set(reterr, ERR_SYNTAX, "a list of kind %.*s, not \"%.*s\"", STR_ARG(json),
                   STR_ARG(wanted));
}

/* `object` must be valid JSON. */
static struct str watch_object_version(struct str object, struct arena *arena)
{
    struct jread r;
    struct str key;
    jread_init(&r, object, arena);
    if (!jread_object_begin(&r))
        return STR_NULL;
    while (jread_object_next(&r, &key)) {
        if (str_eq(key, STR("metadata"))) {
            struct str version = jread_member(&r, STR("resourceVersion"));
            return jread_failed(&r) ? STR_NULL : version;
        }
        jread_skip(&r);
    }
    return STR_NULL;
}

static enum watch_type watch_type_of(struct str type)
{
    static const struct {
        const char *name;
        enum watch_type kind;
    } types[] = {
        {"ADDED", WATCH_ADDED},       {"MODIFIED", WATCH_MODIFIED}, {"DELETED", WATCH_DELETED},
        {"BOOKMARK", WATCH_BOOKMARK}, {"ERROR", WATCH_ERROR},
    };

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        if (str_eq(type, str_of(types[i].name)))
            return types[i].kind;
    }
    return WATCH_UNKNOWN;
}

enum errc watch_event_read(struct str line, struct arena *arena, struct watch_event *ret,
                           struct err *reterr)
{
    struct jread r;
    struct str key;
    *ret = (struct watch_event){0};
    jread_init(&r, line, arena);
    jread_object (&r, key) {
        if (str_eq(key, STR("type")))
            ret->type = jread_str(&r);
        else if (str_eq(key, STR("object")))
            ret->object = jread_raw(&r);
        else
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return code;
    if (ret->type.n == 0)
        return err_set(reterr, ERR_SYNTAX, "a watch event without a type");
    ret->kind = watch_type_of(ret->type);
    if (ret->kind == WATCH_UNKNOWN)
        return OK;
    if (ret->kind == WATCH_ERROR)
        return kube_status_read(ret->object, arena, &ret->status, reterr);
    ret->resource_version = watch_object_version(ret->object, arena);
    if (ret->resource_version.n == 0)
        return err_set(reterr, ERR_SYNTAX, "a watch event without a resourceVersion");
    return OK;
}
