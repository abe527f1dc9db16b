/*
 * Compares an allocation with jansson's tree. What a pod holds by it is bounded, and is equal after
 * writing and reading again.
 */
#include "base/mem.h"
#include "objects/allocation.h"
#include "objects/limit.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_index(const char *key)
{
    uint64_t n = 0;
    bool padded = key[0] == '0' && key[1] != '\0';
    return !padded && str_to_u64(str_of(key), UINT16_MAX - 1, &n);
}

/* The number of entries; -1: not an allocation. */
static int count(json_t *json)
{
    const char *container = NULL;
    const char *card = NULL;
    json_t *cards = NULL;
    const json_t *mem = NULL;
    int n = 0;
    if (!json_is_object(json))
        return -1;
    json_object_foreach(json, container, cards)
    {
        if (!is_index(container) || !(json_is_object(cards) || json_is_null(cards)))
            return -1;
        json_object_foreach(cards, card, mem)
        {
            if (!is_index(card) || !(json_is_integer(mem) || json_is_null(mem)))
                return -1;
            n++;
        }
    }
    return n;
}

static void compare(const struct pod_view *v, json_t *json)
{
    char key[16];
    int n = count(json);
    check(v->has_allocation == (n >= 0), "an allocation for both");
    check(!v->has_allocation || v->n_grants == (size_t)n, "as many entries");
    for (size_t i = 0; v->has_allocation && i < v->n_grants; i++) {
        (void)snprintf(key, sizeof(key), "%u", v->grants[i].container);
        const json_t *cards = json_object_get(json, key);
        (void)snprintf(key, sizeof(key), "%u", v->grants[i].card);
        const json_t *mem = json_object_get(cards, key);
        check(mem != NULL && json_integer_value(mem) == v->grants[i].mem, "the same amount");
    }
}

/* Places a pod with two containers and an init container: on shared cards, or by percentage. */
static void place(const struct pod_view *v, uint32_t percent, struct arena *a)
{
    struct request r = {.percent = percent, .n_demands = 3};
    struct placement there;
    struct placement again;
    struct buf text;
    struct pod_view back = *v;
    int64_t sum = 0;
    for (uint32_t i = 0; i < r.n_demands; i++)
        r.demands[i] = (struct demand){.mem = 4 * ((int64_t)i + 1), .index = (uint16_t)i};
    r.demands[2].kind = CONTAINER_INIT;
    placement_read(v, &r, &there);
    if (there.n == 0)
        return;
    struct pod_allocation *h = pod_allocation_new(&r, &there, false);
    check(h != NULL, "there is memory");
    for (uint32_t i = 0; i < h->n_shares; i++) {
        check(h->shares[i].mem >= 0, "no share is negative");
        sum += h->shares[i].mem;
    }
    check(sum <= 4 * REQUEST_MEM_MAX, "nor more than there is");
    buf_init(&text, LIMIT_ALLOCATION_BYTES);
    allocation_write(&text, h, ALLOCATION_OF_MEM);
    check(!buf_failed(&text) && allocation_read(buf_str(&text), a, &back), "it can be written");
    placement_read(&back, &r, &again);
    check(again.n == there.n, "and read again");
    buf_done(&text);
    mem_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct pod_view v = {.uid = STR_NULL};
    struct arena arena;
    arena_init(&arena, 4 * MIB);
    check(allocation_read(text, &arena, &v), "an allocation of this length is readable");
    json_t *json = jansson_reads(text);
    if (json != NULL)
        compare(&v, json);
    json_decref(json);
    place(&v, 0, &arena);
    place(&v, 50, &arena);
    arena_done(&arena);
    return 0;
}
