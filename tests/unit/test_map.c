/* The hash map, its hash function, and long random histories. */
#include "base/map.h"

#include "fail_alloc.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>

/*
 * The expected hashes do not come from cardpack: those of the zero key are from Rust's
 * DefaultHasher, which CPython 3.11 confirms (hash() of bytes with PYTHONHASHSEED=0); the others
 * are CPython's with PYTHONHASHSEED=42 and 4294967295, which derive their keys from the seed. The
 * text is the bytes 0, 1, 2, ... n-1.
 */
static const struct {
    struct map_seed seed;
    size_t n;
    uint64_t hash;
} vectors[] = {
    {{0, 0}, 0, 0xd1fba762150c532c},
    {{0, 0}, 1, 0x68a914128e01e473},
    {{0, 0}, 7, 0x2f098ab0c751325a},
    {{0, 0}, 8, 0xead411e67ebe2eea},
    {{0, 0}, 9, 0x75927f9d95124362},
    {{0, 0}, 15, 0xf30eb725bb91c9ea},
    {{0, 0}, 16, 0x8972188433a5c5b7},
    {{0, 0}, 63, 0x385d3e39e5f37359},
    {{0xdc504fd368cd90af, 0xb920bb9ffe99e9c1}, 1, 0xce880c366bcf3489},
    {{0xdc504fd368cd90af, 0xb920bb9ffe99e9c1}, 7, 0xce280fabc397fbda},
    {{0xdc504fd368cd90af, 0xb920bb9ffe99e9c1}, 8, 0x60866c3c108c6afb},
    {{0xdc504fd368cd90af, 0xb920bb9ffe99e9c1}, 15, 0x94ace24d68c18cf8},
    {{0xdc504fd368cd90af, 0xb920bb9ffe99e9c1}, 63, 0x06e24d6f0d014c37},
    {{0x8d85be4c852e2b23, 0x778977fb98719852}, 9, 0xc47cecadc9a03ff5},
    {{0x8d85be4c852e2b23, 0x778977fb98719852}, 16, 0x82d48377687ed73e},
};

TEST_EACH(hashes_as_others_do, COUNT_OF(vectors))
{
    char text[65];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i == 0 ? 0x7f : i - 1); /* shifted by one byte: not aligned */
    struct str s = {text + 1, vectors[_i].n};
    ck_assert_uint_eq(siphash13(vectors[_i].seed, s), vectors[_i].hash);
}

enum {
    KEYS = 400
};

struct item {
    int other;
    struct str key; /* points into text */
    char text[16];
};

static struct item items[KEYS];

static void name_items(void)
{
    for (size_t i = 0; i < KEYS; i++) {
        int n = snprintf(items[i].text, sizeof(items[i].text), "node-%zu", i);
        items[i].key = (struct str){items[i].text, (size_t)n};
    }
}

/* Random numbers, the same on every machine. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33);
}

/* Finds every key by look-up, and visits every object once. */
static bool agrees(const struct map *m, const bool there[KEYS])
{
    bool seen[KEYS] = {false};
    size_t n = 0;
    size_t cursor = 0;
    for (size_t i = 0; i < KEYS; i++) {
        if (map_get(m, items[i].key) != (there[i] ? &items[i] : NULL))
            return false;
        n += there[i] ? 1 : 0;
    }
    if (m->n != n)
        return false;
    for (struct item *it = map_next(m, &cursor); it != NULL; it = map_next(m, &cursor)) {
        if (!there[it - items] || seen[it - items])
            return false;
        seen[it - items] = true;
        n--;
    }
    return n == 0 && map_next(m, &cursor) == NULL;
}

/*
 * A long history of puts and deletes, compared with an array of flags. Its bias changes, so that
 * the table fills, empties and wraps around its end.
 */
TEST_EACH(behaves_as_a_naive_array, 8)
{
    struct map m;
    bool there[KEYS] = {false};
    uint64_t state = (uint64_t)_i + 1;
    name_items();
    map_init(&m, offsetof(struct item, key), (struct map_seed){next_random(&state), (uint64_t)_i});
    for (int step = 0; step < 20000; step++) {
        size_t i = next_random(&state) % (_i % 2 == 0 ? KEYS : 13);
        bool add = next_random(&state) % 8 < (step / 1000 % 2 == 0 ? 6U : 2U);
        if (add && !there[i]) {
            ck_assert_int_eq(map_put(&m, &items[i]), OK);
            there[i] = true;
        } else if (!add) {
            ck_assert_ptr_eq(map_del(&m, items[i].key), there[i] ? &items[i] : NULL);
            there[i] = false;
        }
        if (step % 97 == 0)
            ck_assert(agrees(&m, there));
    }
    ck_assert(agrees(&m, there));
    map_done(&m);
}

TEST(empty_has_nothing)
{
    struct map m;
    size_t cursor = 0;
    map_init(&m, offsetof(struct item, key), (struct map_seed){1, 2});
    ck_assert_ptr_null(map_get(&m, STR("node-1")));
    ck_assert_ptr_null(map_del(&m, STR("node-1")));
    ck_assert_ptr_null(map_next(&m, &cursor));
    map_done(&m);
}

TEST(any_bytes_are_a_key)
{
    struct item odd[] = {
        {.key = STR("")},     {.key = STR("\0")}, {.key = STR("\0\0")},
        {.key = STR("a\0b")}, {.key = STR("a")},
    };
    struct map m;
    map_init(&m, offsetof(struct item, key), (struct map_seed){0, 0});
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        ck_assert_int_eq(map_put(&m, &odd[i]), OK);
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        ck_assert_ptr_eq(map_get(&m, odd[i].key), &odd[i]);
    ck_assert_ptr_eq(map_get(&m, STR_NULL), &odd[0]);
    ck_assert_ptr_null(map_get(&m, STR("a\0c")));
    map_done(&m);
}

/* With this seed the first eight bytes make the product 0: the other bytes do not affect the
 * hash. */
TEST(keys_of_one_hash_are_told_apart)
{
    static const struct map_seed seed = {UINT64_C(0x9e3779b97f4a7c15) ^ 16, 2};
    struct item item = {.key = STR("\0\0\0\0\0\0\0\0aaaaaaaa")};
    struct str other = STR("\0\0\0\0\0\0\0\0bbbbbbbb");
    struct map m;
    map_init(&m, offsetof(struct item, key), seed);
    ck_assert_uint_eq(map_hash(seed, item.key), map_hash(seed, other));
    ck_assert_int_eq(map_put(&m, &item), OK);
    ck_assert_ptr_eq(map_get(&m, item.key), &item);
    ck_assert_ptr_null(map_get(&m, other));
    map_done(&m);
}

/* Keys like names and UIDs, which differ in a few digits, share slots as rarely as random keys:
 * 2^16 keys take 63 % of 2^16 slots, whichever bits of the hash choose the slot. */
TEST_EACH(like_keys_are_strewn, 3)
{
    static const char *const formats[] = {
        "%u",
        "node-%05u",
        "gpu-%u",
        "ip-10-0-%u.eu-west-1.compute.internal",
        "3f2c9d6e-0000-4000-8000-0000%08u",
        "%08x-77aa-4bcd-9e00-1234567890ab",
    };

    enum {
        N = 1 << 16
    };

    static bool taken[N];
    struct map_seed seed = {(uint64_t)_i * 0x12345678abcdU, (uint64_t)_i};
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        for (unsigned shift = 0; shift <= 48; shift += 12) {
            unsigned n = 0;
            memset(taken, 0, sizeof(taken));
            for (unsigned i = 0; i < N; i++) {
                char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void)snprintf(text, sizeof(text), formats[f], i);
#pragma GCC diagnostic pop
                size_t slot = (size_t)(map_hash(seed, str_of(text)) >> shift) % N;
                n += taken[slot] ? 0 : 1;
                taken[slot] = true;
            }
            ck_assert_uint_gt(n, N * 62 / 100);
        }
    }
}

/* Each byte of a key, its length and the seed affect the hash. */
TEST_EACH(every_byte_counts, 3)
{
    struct map_seed seed = {(uint64_t)_i, 7};
    char text[64] = {0};
    for (size_t n = 0; n < sizeof(text); n++) {
        uint64_t h = map_hash(seed, (struct str){text, n});
        ck_assert_uint_ne(h, map_hash(seed, (struct str){text, n + 1}));
        ck_assert_uint_ne(h, map_hash((struct map_seed){seed.k0 + 1, 7}, (struct str){text, n}));
        ck_assert_uint_ne(h, map_hash((struct map_seed){seed.k0, 8}, (struct str){text, n}));
        for (size_t i = 0; i < n; i++) {
            text[i] = 1;
            ck_assert_uint_ne(h, map_hash(seed, (struct str){text, n}));
            text[i] = 0;
        }
    }
}

/* The result equals single puts, in an empty map, a small one, and one with long runs. */
TEST_EACH(many_at_once, 4)
{
    static const size_t counts[] = {0, 1, 12, KEYS};
    struct map m;
    struct str keys[MAP_BATCH];
    void *found[MAP_BATCH];
    uint64_t state = 1;
    name_items();
    map_init(&m, offsetof(struct item, key), (struct map_seed){3, 4});
    for (size_t i = 0; i < counts[_i]; i++)
        ck_assert_int_eq(map_put(&m, &items[i]), OK);
    for (size_t n = 0; n <= MAP_BATCH; n++) {
        for (size_t i = 0; i < n; i++)
            keys[i] = items[next_random(&state) % KEYS].key;
        map_get_each(&m, keys, n, found);
        for (size_t i = 0; i < n; i++)
            ck_assert_ptr_eq(found[i], map_get(&m, keys[i]));
    }
    map_done(&m);
}

START_TEST(a_second_put_is_a_bug)
{
    struct map m;
    name_items();
    map_init(&m, offsetof(struct item, key), (struct map_seed){0, 0});
    ck_assert_int_eq(map_put(&m, &items[0]), OK);
    ck_assert_int_ne(map_put(&m, &items[0]), OK);
}

TEST(done_is_usable_again)
{
    struct map m;
    name_items();
    map_init(&m, offsetof(struct item, key), (struct map_seed){3, 4});
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 100; i++)
            ck_assert_int_eq(map_put(&m, &items[i]), OK);
        map_done(&m);
        ck_assert_ptr_null(map_get(&m, items[0].key));
    }
}

static enum errc fill(void *ctx)
{
    (void)ctx;
    struct map m;
    bool there[KEYS] = {false};
    enum errc code = OK;
    map_init(&m, offsetof(struct item, key), (struct map_seed){5, 6});
    for (size_t i = 0; i < KEYS; i++) {
        enum errc put = map_put(&m, &items[i]);
        there[i] = put == OK;
        if (put == OK)
            continue;
        code = put;
        ck_assert(agrees(&m, there)); /* unchanged */
    }
    ck_assert(agrees(&m, there));
    map_done(&m);
    return code;
}

TEST(survives_a_lack_of_memory)
{
    name_items();
    ck_assert_uint_gt(fail_alloc_each(fill, NULL), 3);
}

int main(void)
{
    TCase *tc = unit_case("map");
    tcase_add_test_raise_signal(tc, a_second_put_is_a_bug, SIGABRT);
    return unit_run();
}
