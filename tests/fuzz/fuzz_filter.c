/* Whatever ExtenderArgs are accepted are answered in valid JSON that names every candidate. */
#include "extender.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct filter_answer every_third(void *ctx, size_t i)
{
    (void)ctx;
    return (struct filter_answer){
        .fits = i % 3 == 0, .unresolvable = i % 3 == 2, .reason = STR("why \xff")};
}

static bool is_named(const json_t *answer, const char *map, struct str name)
{
    char *key = malloc(name.n + 1);
    if (key == NULL)
        abort();
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    bool named = json_object_get(json_object_get(answer, map), key) != NULL;
    free(key);
    return named;
}

static void check_answer(const struct filter_args *args, struct str text)
{
    json_error_t error;
    json_t *answer = json_loadb(text.p, text.n, JSON_ALLOW_NUL, &error);
    /* jansson reads no key with a NUL inside, and a name that does not fit becomes one. */
    if (answer == NULL && json_error_code(&error) == json_error_null_byte_in_key)
        return;
    const json_t *names = json_object_get(answer, "NodeNames");
    const json_t *items = json_object_get(json_object_get(answer, "Nodes"), "items");
    size_t fitting = (args->n + 2) / 3;
    if (answer == NULL || json_object_size(answer) != 5)
        abort();
    if (args->by_name ? json_array_size(names) != fitting || items != NULL
                      : json_array_size(items) != fitting || !json_is_null(names))
        abort();
    for (size_t i = 0; i < args->n; i++) {
        struct str name = args->candidates[i].name;
        const json_t *same = json_array_get(names, i / 3);
        if (i % 3 == 0 && args->by_name &&
            !str_eq(name, (struct str){json_string_value(same), json_string_length(same)}))
            abort();
        if (i % 3 != 0 && !is_named(answer, "FailedNodes", name))
            abort();
        if (i % 3 == 2 && !is_named(answer, "FailedAndUnresolvableNodes", name))
            abort();
    }
    json_decref(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct filter_args args;
    struct arena arena;
    struct buf out;
    struct err err = ERR_INIT;
    arena_init(&arena, MIB);
    buf_init(&out, 16 * MIB);
    enum errc code =
        extender_read_filter((struct str){(const char *)data, size}, &arena, &args, &err);
    if (code == OK) {
        extender_write_filter(&out, &args, every_third, NULL);
        if (buf_failed(&out))
            abort();
        check_answer(&args, buf_str(&out));
    } else if (!str_starts(str_of(err.text), STR("ExtenderArgs: "))) {
        abort();
    }
    buf_done(&out);
    arena_done(&arena);
    return 0;
}
