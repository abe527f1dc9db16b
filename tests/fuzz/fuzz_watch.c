/*
 * Compares the content of a list, a watch and a failure with jansson's tree. The first byte
 * chooses: 'e' a line of a watch, 'm' a list's metadata, any other a Status.
 */
#include "base/limit.h"
#include "objects/watch.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_status(const struct kube_status *s, const json_t *json)
{
    const json_t *code = json_object_get(json, "code");
    json_int_t number = json_integer_value(code);
    same_text(s->reason, json_object_get(json, "reason"));
    same_text(s->message, json_object_get(json, "message"));
    same_text(s->details_kind, json_object_get(json_object_get(json, "details"), "kind"));
    if (code == NULL || json_is_integer(code))
        check(s->code == (number >= 100 && number <= 999 ? (unsigned)number : 0), "the same code");
}

static void same_event(const struct watch_event *ev, const json_t *json)
{
    json_t *theirs = json_object_get(json, "object");
    same_text(ev->type, json_object_get(json, "type"));
    if (ev->kind == WATCH_UNKNOWN)
        return;
    json_t *ours = json_loadb(ev->object.p, ev->object.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    check(json_equal(ours, theirs) == 1, "the object as it came");
    json_decref(ours);
    if (ev->kind == WATCH_ERROR)
        same_status(&ev->status, theirs);
    else
        same_text(ev->resource_version,
                  json_object_get(json_object_get(theirs, "metadata"), "resourceVersion"));
}

static void try_event(struct str text, struct arena *arena, const json_t *json)
{
    struct watch_event ev;
    struct err err = ERR_INIT;
    enum errc code = watch_event_read(text, arena, &ev, &err);
    check((code == OK) == (err.text[0] == '\0'), "an error says why");
    if (code != OK)
        return;
    check((ev.resource_version.n > 0) == (ev.kind != WATCH_ERROR && ev.kind != WATCH_UNKNOWN),
          "what is followed has a version");
    if (json != NULL)
        same_event(&ev, json);
}

static void try_meta(struct str text, struct arena *arena, const json_t *json)
{
    struct list_meta meta;
    if (list_meta_read(text, arena, &meta, NULL) != OK)
        return;
    check(meta.resource_version.n > 0, "a list has a version");
    if (json == NULL)
        return;
    same_text(meta.resource_version, json_object_get(json, "resourceVersion"));
    same_text(meta.next, json_object_get(json, "continue"));
}

static void try_status(struct str text, struct arena *arena, const json_t *json)
{
    struct kube_status status;
    if (kube_status_read(text, arena, &status, NULL) == OK && json != NULL)
        same_status(&status, json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    if (size == 0)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    json_t *json = jansson_reads(text);
    arena_init(&arena, MIB);
    if (data[0] == 'e')
        try_event(text, &arena, json);
    else if (data[0] == 'm')
        try_meta(text, &arena, json);
    else
        try_status(text, &arena, json);
    arena_done(&arena);
    json_decref(json);
    return 0;
}
