/* ExtenderBindingArgs are accepted only with all four fields, which must equal those that jansson
 * reads. */
#include "extender/extender.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of all keys that equal the field's name in any case the last counts; jansson keeps their
 * order. */
static void same_field(json_t *json, const char *field, struct str value)
{
    const char *key = NULL;
    json_t *member = NULL;
    const json_t *last = NULL;
    json_object_foreach(json, key, member)
    {
        if (str_eq_nocase(str_of(key), str_of(field)))
            last = member;
    }
    if (!str_eq(value, (struct str){json_string_value(last), json_string_length(last)}))
        abort();
}

static void check_error(struct str error)
{
    struct buf out;
    buf_init(&out, MIB);
    extender_write_bind(&out, error);
    json_t *json = json_loadb(out.p, out.n, JSON_ALLOW_NUL, NULL);
    if (json_object_size(json) != 1 || !json_is_string(json_object_get(json, "Error")) ||
        memchr(out.p, '%', out.n) != NULL)
        abort();
    json_decref(json);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bind_args args;
    struct arena arena;
    struct err err = ERR_INIT;
    struct str body = {(const char *)data, size};
    arena_init(&arena, MIB);
    check_error(body);
    if (extender_read_bind(body, &arena, &args, &err) == OK) {
        json_t *json =
            json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (args.name.n == 0 || args.namespace.n == 0 || args.uid.n == 0 || args.node.n == 0)
            abort();
        if (json != NULL) {
            same_field(json, "PodName", args.name);
            same_field(json, "PodNamespace", args.namespace);
            same_field(json, "PodUID", args.uid);
            same_field(json, "Node", args.node);
        }
        json_decref(json);
    } else if (!str_starts(str_of(err.text), STR("ExtenderBindingArgs: "))) {
        abort();
    }
    arena_done(&arena);
    return 0;
}
