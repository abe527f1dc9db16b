/* For all accepted ExtenderArgs that are valid JSON, filter and prioritize answer in valid JSON
 * that names every candidate. */
#include "extender/extender.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs of feasible nodes, and other results between them. */
static const unsigned char pattern[] = {OFFER_FITS,    OFFER_FITS,    OFFER_FITS,
                                        OFFER_REFUSED, OFFER_REFUSED, OFFER_UNRESOLVABLE,
                                        OFFER_FITS,    OFFER_LEFT_OUT};

static struct str say_why(void *ctx, size_t i, bool *ret_common)
{
    (void)ctx;
    *ret_common = i % 3 != 0;
    return STR("why \xff, 5% of %d");
}

static unsigned char *offer_all(size_t n)
{
    unsigned char *offers = malloc(n + 1);
    if (offers == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        offers[i] = pattern[i % sizeof(pattern)];
    return offers;
}

/* Each name has its score, in the order of the request. */
static void check_priorities(const struct filter_args *args)
{
    json_error_t error;
    struct buf out;
    unsigned char *scores = malloc(args->n + 1);
    if (scores == NULL)
        abort();
    for (size_t i = 0; i < args->n; i++)
        scores[i] = (unsigned char)(i % 11);
    buf_init(&out, 16 * MIB);
    extender_write_priorities(&out, args, scores);
    json_t *answer = json_loadb(out.p, out.n, JSON_ALLOW_NUL, &error);
    if (answer == NULL || json_array_size(answer) != args->n)
        abort();
    for (size_t i = 0; i < args->n; i++) {
        const json_t *one = json_array_get(answer, i);
        const json_t *host = json_object_get(one, "Host");
        if (!str_eq(args->names[i],
                    (struct str){json_string_value(host), json_string_length(host)}) ||
            json_integer_value(json_object_get(one, "Score")) != (json_int_t)(i % 11) ||
            json_object_size(one) != 2)
            abort();
    }
    json_decref(answer);
    free(scores);
    buf_done(&out);
}

/* The reason must not have a percent sign: kube-scheduler uses it as a format. */
static bool is_named(const json_t *answer, const char *map, struct str name)
{
    char *key = malloc(name.n + 1);
    if (key == NULL)
        abort();
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    const char *why = json_string_value(json_object_get(json_object_get(answer, map), key));
    bool named = why != NULL && strchr(why, '%') == NULL;
    free(key);
    return named;
}

static void check_one(const json_t *answer, unsigned char offer, struct str name)
{
    bool refused = offer == OFFER_REFUSED || offer == OFFER_UNRESOLVABLE;
    if (refused && !is_named(answer, "FailedNodes", name))
        abort();
    if (offer == OFFER_UNRESOLVABLE && !is_named(answer, "FailedAndUnresolvableNodes", name))
        abort();
}

static void check_answer(const struct filter_args *args, const unsigned char *offers,
                         struct str text)
{
    json_error_t error;
    json_t *answer = json_loadb(text.p, text.n, JSON_ALLOW_NUL, &error);
    /* jansson accepts no key with a NUL in it, and names of nodes that are not feasible become
     * keys. */
    if (answer == NULL && json_error_code(&error) == json_error_null_byte_in_key)
        return;
    const json_t *names = json_object_get(answer, "NodeNames");
    const json_t *items = json_object_get(json_object_get(answer, "Nodes"), "items");
    size_t fitting = 0;
    if (answer == NULL || json_object_size(answer) != 5)
        abort();
    for (size_t i = 0; i < args->n; i++) {
        const json_t *same = json_array_get(names, fitting);
        check_one(answer, offers[i], args->names[i]);
        if (offers[i] != OFFER_FITS)
            continue;
        if (args->by_name && !str_eq(args->names[i], (struct str){json_string_value(same),
                                                                  json_string_length(same)}))
            abort();
        fitting++;
    }
    if (args->by_name ? json_array_size(names) != fitting || items != NULL
                      : json_array_size(items) != fitting || !json_is_null(names))
        abort();
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
        unsigned char *offers = offer_all(args.n);
        extender_write_filter(&out, &args, offers, offers, say_why, NULL);
        if (buf_failed(&out))
            abort();
        if (is_json(
                (struct str){(const char *)data, size})) /* else nodes stand in it as they came */
            check_answer(&args, offers, buf_str(&out));
        check_priorities(&args);
        free(offers);
    } else if (!str_starts(str_of(err.text), STR("ExtenderArgs: "))) {
        abort();
    }
    buf_done(&out);
    arena_done(&arena);
    return 0;
}
