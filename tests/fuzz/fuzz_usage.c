/* Compares what cards and pods use with jansson's tree. What was read is written and read again. */
#include "objects/usage.h"

#include "core/limit.h"
#include "objects/limit.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_number(uint64_t ours, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    check(json_is_null(value)
              ? ours == 0
              : json_is_integer(value) && (uint64_t)json_integer_value(value) == ours,
          "the same number as jansson's");
}

static void compare(const struct usage_view *v, const json_t *json)
{
    const json_t *cards = json_object_get(json, "cards");
    const json_t *pods = json_object_get(json, "pods");
    check(json_array_size(cards) == v->n_cards, "as many cards");
    check(json_array_size(pods) == v->n_pods, "as many pods");
    same_text(v->seen, json_object_get(json, "seen"));
    for (size_t i = 0; i < v->n_cards; i++) {
        const json_t *card = json_array_get(cards, i);
        const json_t *busy = json_object_get(card, "busyPercent");
        same_number(v->cards[i].index, card, "index");
        same_number(v->cards[i].used_mib, card, "usedMiB");
        same_number(v->cards[i].total_mib, card, "totalMiB");
        if (json_is_integer(busy))
            same_number(v->cards[i].busy_percent, card, "busyPercent");
        else
            check(v->cards[i].busy_percent == USAGE_BUSY_UNKNOWN, "or unknown");
    }
    for (size_t i = 0; i < v->n_pods; i++) {
        const json_t *pod = json_array_get(pods, i);
        same_text(v->pods[i].uid, json_object_get(pod, "uid"));
        same_text(v->pods[i].namespace, json_object_get(pod, "namespace"));
        same_text(v->pods[i].name, json_object_get(pod, "name"));
        same_number(v->pods[i].card, pod, "card");
        same_number(v->pods[i].used_mib, pod, "usedMiB");
    }
}

static void check_figures(const struct usage_view *v)
{
    check(v->seen.n > 0 && v->n_cards <= LIMIT_CARDS && v->n_pods <= LIMIT_MEASURED_PODS,
          "lists end");
    for (size_t i = 0; i < v->n_cards; i++) {
        const struct usage_card *c = &v->cards[i];
        check(c->index < LIMIT_CARDS && c->used_mib <= LIMIT_USAGE_MIB &&
                  c->total_mib <= LIMIT_USAGE_MIB &&
                  (c->busy_percent <= 100 || c->busy_percent == USAGE_BUSY_UNKNOWN),
              "a card's figures are in their range");
    }
    for (size_t i = 0; i < v->n_pods; i++) {
        const struct usage_pod *p = &v->pods[i];
        check(p->card < LIMIT_CARDS && p->used_mib <= LIMIT_USAGE_MIB && p->uid.n > 0 &&
                  p->uid.n <= LIMIT_USAGE_NAME && p->name.n > 0 && p->namespace.n > 0,
              "a pod's figures are in their range");
    }
}

static void write_again(const struct usage_view *v, struct arena *arena)
{
    struct usage_view again;
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, 8 * MIB);
    usage_write(&out, v);
    check(!buf_failed(&out) && usage_read(buf_str(&out), arena, &again, &err) == OK,
          "what is written can be read");
    json_t *json = jansson_reads(buf_str(&out));
    check(json != NULL && again.n_pods <= v->n_pods, "by jansson, too");
    compare(&again, json);
    json_decref(json);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct usage_view v = {.seen = STR_NULL};
    struct err err = ERR_INIT;
    struct arena arena;
    arena_init(&arena, 4 * MIB);
    enum errc code = usage_read(text, &arena, &v, &err);
    check((code == OK) == (err.text[0] == '\0') && err.code == code, "an error says why");
    if (code == OK) {
        check_figures(&v);
        json_t *json = jansson_reads(text);
        if (json != NULL)
            compare(&v, json);
        json_decref(json);
        write_again(&v, &arena);
    }
    arena_done(&arena);
    return 0;
}
