/* The quota's text: reading, refusals, and the examples in docs/quota.md. */
#include "objects/quota_config.h"

#include "core/limit.h"
#include "fail_alloc.h"
#include "objects/limit.h"
#include "unit.h"

#include <stdio.h>

static void put_amounts(struct buf *to, const int64_t *most)
{
    for (unsigned k = 0; k < QUOTA_KINDS; k++) {
        if (most[k] == QUOTA_UNLIMITED)
            buf_put(to, STR(" -"));
        else
            buf_printf(to, " %lld", (long long)most[k]);
    }
}

static void put_names(struct buf *to, const char *what, const struct str *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s\"%.*s\"", i == 0 ? what : ",", STR_ARG(names[i]));
}

/* Writes the view on one line: memory, cards and compute of each limit. */
static void put_view(struct buf *to, const struct quota_view *v)
{
    static const char *const scopes[] = {"total", "pool", "model"};
    for (size_t i = 0; i < v->n; i++) {
        const struct quota_entry *e = &v->entries[i];
        buf_printf(to, "%s%.*s:", i == 0 ? "" : "; ", STR_ARG(e->namespace));
        for (size_t l = 0; l < e->n_limits; l++) {
            buf_printf(to, " %s", scopes[e->limits[l].scope]);
            if (e->limits[l].scope != QUOTA_TOTAL)
                buf_printf(to, " \"%.*s\"", STR_ARG(e->limits[l].name));
            put_amounts(to, e->limits[l].most);
        }
        put_names(to, " pools ", e->pools, e->n_pools);
        put_names(to, " models ", e->models, e->n_models);
    }
}

static const struct {
    const char *text, *expected;
} good[] = {
    {"namespaces: {}", ""},
    {"namespaces: {a: {}}", "a:"},
    {"namespaces: {a: {limits: {}}}", "a: total - - -"},
    {"{\"namespaces\":{\"a\":{\"limits\":{\"memory\":64}}}}", "a: total 64 - -"},
    {"namespaces:\n"
     "  team-a:\n"
     "    limits: {memory: 64, cards: 4, compute: 400}\n"
     "    pools: [gold, silver]\n"
     "    perPool: {gold: {memory: 32}}\n"
     "    perModel: {NVIDIA-A100*: {cards: 2}}\n"
     "  \"*\": {limits: {cards: 0}}\n",
     "team-a: total 64 4 400 pool \"gold\" 32 - - model \"NVIDIA-A100*\" - 2 - "
     "pools \"gold\",\"silver\"; *: total - 0 -"},
    /* The limits are sorted, whatever their order in the text. */
    {"namespaces: {a: {perModel: {m: {}, n: {}}, perPool: {p: {}}, limits: {}}}",
     "a: total - - - pool \"p\" - - - model \"m\" - - - model \"n\" - - -"},
    {"namespaces: {a: {models: ['*A10', \"\", 'T4 (16 GB)']}}",
     "a: models \"*A10\",\"\",\"T4 (16 GB)\""},
    /* "" means nodes without a pool. */
    {"namespaces: {a: {pools: ['', 'A_b.c-1'], perPool: {'': {cards: 1}}}}",
     "a: pool \"\" - 1 - pools \"\",\"A_b.c-1\""},
    /* Pools are labels, so case counts; a pool and a model may have the same name. */
    {"namespaces: {a: {perPool: {x: {}, X: {}}, perModel: {x: {}}}}",
     "a: pool \"x\" - - - pool \"X\" - - - model \"x\" - - -"},
    {"namespaces:\n  a: &all {limits: {cards: 1}}\n  b: *all\n", "a: total - 1 -; b: total - 1 -"},
    {"namespaces: {a: {limits: {memory: 1099511627776, cards: 10000000, compute: 1000000000}}}",
     "a: total 1099511627776 10000000 1000000000"},
    {"namespaces: {a: {limits: {memory: 0x10}}}", "a: total 16 - -"},
    {"{\"namespaces\":{\"a\":{\"pools\":[\"\\u0067old\"]}}}", "a: pools \"gold\""},
    {"namespaces: {0a-b: {}}", "0a-b:"},
};

TEST_EACH(reads, COUNT_OF(good))
{
    char line[1024];
    struct buf to = BUF_ON(line);
    struct arena arena;
    struct quota_view view;
    struct err e = ERR_INIT;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    char *text = strdup(good[_i].text);
    ck_assert_ok(quota_config_read(str_of(text), &arena, &view, &e), &e);
    memset(text, '?', strlen(text)); /* the view has no pointers into it */
    put_view(&to, &view);
    ck_assert_str_eq(buf_cstr(&to), good[_i].expected);
    free(text);
    arena_done(&arena);
}

#define NINES "99999999999999999999"

static const struct {
    const char *text, *error;
    enum errc code;
} bad[] = {
    {"", "null is not a mapping", ERR_SYNTAX},
    {"[]", "[] is not a mapping", ERR_SYNTAX},
    {"{}", "namespaces is missing", ERR_SYNTAX},
    {"namespaces:", "namespaces: null is not a mapping", ERR_SYNTAX},
    {"namespace: {}", "namespace: is not known", ERR_SYNTAX},
    {"namespaces: {a: }", "namespaces.a: null is not a mapping", ERR_SYNTAX},
    {"namespaces: {a: 1}", "namespaces.a: 1 is not a mapping", ERR_SYNTAX},
    {"namespaces: {a: {limit: {}}}", "namespaces.a.limit: is not known", ERR_SYNTAX},
    {"namespaces: {a: {Limits: {}}}", "namespaces.a.Limits: is not known", ERR_SYNTAX},
    {"namespaces: {a: {limits: }}", "namespaces.a.limits: null is not a mapping", ERR_SYNTAX},
    {"namespaces: {a: {limits: {gpus: 1}}}", "namespaces.a.limits.gpus: is not known", ERR_SYNTAX},
    {"namespaces: {a: {limits: {memory: }}}",
     "namespaces.a.limits.memory: null is not a whole number from 0 to 1099511627776", ERR_RANGE},
    {"namespaces: {a: {limits: {memory: 64Gi}}}",
     "namespaces.a.limits.memory: \"64Gi\" is not a whole number from 0 to 1099511627776",
     ERR_RANGE},
    {"namespaces: {a: {limits: {cards: '1'}}}",
     "namespaces.a.limits.cards: \"1\" is not a whole number from 0 to 10000000", ERR_RANGE},
    {"namespaces: {a: {limits: {cards: -1}}}",
     "namespaces.a.limits.cards: -1 is not a whole number from 0 to 10000000", ERR_RANGE},
    {"namespaces: {a: {limits: {cards: 1.5}}}",
     "namespaces.a.limits.cards: 1.5 is not a whole number from 0 to 10000000", ERR_RANGE},
    {"{\"namespaces\":{\"a\":{\"limits\":{\"cards\":010}}}}", /* 8 or 10 */
     "namespaces.a.limits.cards: 010 is not a whole number from 0 to 10000000", ERR_RANGE},
    {"namespaces: {a: {limits: {cards: 10000001}}}",
     "namespaces.a.limits.cards: 10000001 is not a whole number from 0 to 10000000", ERR_RANGE},
    {"namespaces: {a: {limits: {compute: " NINES "}}}",
     "namespaces.a.limits.compute: " NINES " is not a whole number from 0 to 1000000000",
     ERR_RANGE},
    {"namespaces: {a: {limits: {compute: [1]}}}",
     "namespaces.a.limits.compute: [1] is not a whole number from 0 to 1000000000", ERR_RANGE},
    {"namespaces: {\"*\": {perPool: {gold: {memory: -5}}}}",
     "namespaces[*].perPool.gold.memory: -5 is not a whole number from 0 to 1099511627776",
     ERR_RANGE},
    {"namespaces: {a: {perModel: {A100*: 2}}}", "namespaces.a.perModel[A100*]: 2 is not a mapping",
     ERR_SYNTAX},
    {"namespaces: {a: {perModel: [A100]}}", "namespaces.a.perModel: [\"A100\"] is not a mapping",
     ERR_SYNTAX},
    {"namespaces: {a: {perModel: {' A': {}}}}",
     "namespaces.a.perModel[ A]: is not a pattern of models", ERR_SYNTAX},
    {"namespaces: {a: {perPool: {go ld: {}}}}",
     "namespaces.a.perPool[go ld]: is not the name of a pool", ERR_SYNTAX},
    {"namespaces: {a: {perPool: {-a: {}}}}", "namespaces.a.perPool.-a: is not the name of a pool",
     ERR_SYNTAX},
    {"namespaces: {a: {pools: gold}}", "namespaces.a.pools: \"gold\" is not a list", ERR_SYNTAX},
    {"namespaces: {a: {pools: []}}",
     "namespaces.a.pools: is empty: leave it out to allow every one", ERR_SYNTAX},
    {"namespaces: {a: {pools: }}", "namespaces.a.pools: null is not a list", ERR_SYNTAX},
    {"namespaces: {a: {pools: [gold, null]}}",
     "namespaces.a.pools[1]: null is not the name of a pool", ERR_SYNTAX},
    {"namespaces: {a: {pools: [gold, 1]}}", "namespaces.a.pools[1]: 1 is not the name of a pool",
     ERR_SYNTAX},
    {"namespaces: {a: {pools: [go/ld]}}",
     "namespaces.a.pools[0]: \"go/ld\" is not the name of a pool", ERR_SYNTAX},
    {"namespaces: {a: {pools: [gold, gold]}}", "namespaces.a.pools[1]: \"gold\" is there twice",
     ERR_SYNTAX},
    {"namespaces: {a: {models: [T4, t4]}}", "namespaces.a.models[1]: \"t4\" is there twice",
     ERR_SYNTAX},
    {"namespaces: {a: {perModel: {T4: {}, t4: {}}}}", "namespaces.a.perModel.t4: is there twice",
     ERR_SYNTAX},
    {"namespaces: {a: {pools: [gold], perPool: {golden: {}}}}",
     "namespaces.a: perPool names \"golden\", which pools does not", ERR_CONFLICT},
    {"namespaces: {a: {perPool: {'': {}}, pools: [gold]}}",
     "namespaces.a: perPool names \"\", which pools does not", ERR_CONFLICT},
    {"namespaces: {Team-A: {}}", "namespaces.Team-A: is neither the name of a namespace nor \"*\"",
     ERR_SYNTAX},
    {"namespaces: {team-*: {}}", "namespaces[team-*]: is neither the name of a namespace nor \"*\"",
     ERR_SYNTAX},
    {"namespaces: {'': {}}", "namespaces[]: is neither the name of a namespace nor \"*\"",
     ERR_SYNTAX},
    {"namespaces: {a-: {}}", "namespaces.a-: is neither the name of a namespace nor \"*\"",
     ERR_SYNTAX},
    /* JSON, which libyaml has not checked. */
    {"{\"namespaces\":{\"a\":{},\"b\":{},\"a\":{}}}", "namespaces: \"a\" is there twice",
     ERR_SYNTAX},
    {"{\"namespaces\":{},\"namespaces\":{}}", "namespaces: is there twice", ERR_SYNTAX},
    {"{\"namespaces\":{\"a\":{\"limits\":{},\"limits\":{}}}}",
     "namespaces.a.limits: is there twice", ERR_SYNTAX},
    {"{\"namespaces\":{\"a\":{\"limits\":{\"cards\":9,\"cards\":1}}}}",
     "namespaces.a.limits.cards: is there twice", ERR_SYNTAX},
    {"{\"namespaces\":{\"a\":{\"perPool\":{\"p\":{},\"p\":{}}}}}",
     "namespaces.a.perPool.p: is there twice", ERR_SYNTAX},
    {"namespaces: {a: {}, a: {}}", NULL, ERR_SYNTAX},
    {"namespaces: {", NULL, ERR_SYNTAX},
    {"{\"namespaces\":{}} x", NULL, ERR_SYNTAX},
};

TEST_EACH(refuses, COUNT_OF(bad))
{
    struct arena arena;
    struct quota_view view = {NULL, 4711};
    struct err e = ERR_INIT;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    enum errc code = quota_config_read(str_of(bad[_i].text), &arena, &view, &e);
    if (bad[_i].error != NULL)
        ck_assert_str_eq(e.text, bad[_i].error);
    ck_assert_int_eq(code, bad[_i].code);
    ck_assert_int_eq(e.code, code);
    ck_assert_uint_gt(strlen(e.text), 0);
    ck_assert_uint_eq(view.n, 4711);
    arena_done(&arena);
}

static char big[LIMIT_QUOTA_TEXT + 2];

static enum errc read_big(size_t n, struct err *e)
{
    struct arena arena;
    struct quota_view view;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    enum errc code = quota_config_read((struct str){big, n}, &arena, &view, e);
    arena_done(&arena);
    return code;
}

/* As many namespaces as allowed. */
TEST(has_a_ceiling)
{
    struct err e = ERR_INIT;
    struct buf to = buf_on(big, sizeof(big) - 63);
    buf_put(&to, STR("{\"namespaces\":{\"x\":{}"));
    for (unsigned i = 0; to.n + 64 < to.max; i++)
        buf_printf(&to, ",\"%u\":{}", i);
    buf_put(&to, STR("}}"));
    ck_assert(!buf_failed(&to));
    memset(big + to.n, ' ', sizeof(big) - to.n);
    ck_assert_ok(read_big(LIMIT_QUOTA_TEXT, &e), &e);
    ck_assert_int_eq(read_big(LIMIT_QUOTA_TEXT + 1, &e), ERR_LIMIT);
    ck_assert_str_eq(e.text, "262145 bytes, at most 262144");
}

/* Anchors within anchors: a short text that expands beyond any memory. */
TEST(laughs_are_bounded)
{
    struct err e = ERR_INIT;
    struct buf to = BUF_ON(big);
    buf_put(&to, STR("namespaces:\n  a: &a0 {pools: [gold]}\n"));
    for (unsigned i = 1; i < 10; i++)
        buf_printf(&to, "  a%u: &a%u [*a%u,*a%u,*a%u,*a%u,*a%u,*a%u,*a%u,*a%u]\n", i, i, i - 1,
                   i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    ck_assert_int_eq(read_big(to.n, &e), ERR_LIMIT);
}

static const struct {
    const char *head, *item, *tail, *error;
} crowds[] = {
    {"{\"namespaces\":{\"a\":{\"pools\":[\"p\"", ",\"p%u\"", "]}}}",
     "namespaces.a.pools[64]: is one too many: at most 64"},
    {"{\"namespaces\":{\"a\":{\"models\":[\"p\"", ",\"p%u\"", "]}}}",
     "namespaces.a.models[64]: is one too many: at most 64"},
    {"{\"namespaces\":{\"a\":{\"limits\":{},\"perPool\":{\"p\":{}", ",\"p%u\":{}", "}}}}",
     "namespaces.a.perPool.p62: is one limit too many: at most 64"},
    {"{\"namespaces\":{\"a\":{\"perModel\":{\"p\":{}", ",\"p%u\":{}", "}}}}",
     "namespaces.a.perModel.p63: is one limit too many: at most 64"},
};

TEST_EACH(a_namespace_has_a_ceiling, COUNT_OF(crowds))
{
    struct err e = ERR_INIT;
    for (unsigned n = 62; n <= 64; n++) {
        struct buf to = BUF_ON(big);
        const char *p = strchr(crowds[_i].item, '%');
        buf_put(&to, str_of(crowds[_i].head));
        for (unsigned i = 0; i < n; i++) {
            buf_put(&to, (struct str){crowds[_i].item, (size_t)(p - crowds[_i].item)});
            buf_printf(&to, "%u%s", i, p + 2);
        }
        buf_put(&to, str_of(crowds[_i].tail));
        enum errc code = read_big(to.n, &e);
        ck_assert(code == OK || code == ERR_LIMIT);
        ck_assert(n > 62 || code == OK || _i == 2);
        ck_assert(n < 64 || code == ERR_LIMIT);
    }
    ck_assert_str_eq(e.text, crowds[_i].error);
}

/* The nth block of this language in docs/quota.md; it must exist. */
static struct str block_of_document(const char *language, unsigned nth)
{
    const char *root = getenv("CARDPACK_SOURCE");
    char path[1024];
    char fence[32];
    ck_assert_msg(root != NULL, "CARDPACK_SOURCE is not set: run it through meson test");
    (void)snprintf(path, sizeof(path), "%s/docs/quota.md", root);
    (void)snprintf(fence, sizeof(fence), "```%s\n", language);
    FILE *f = fopen(path, "re");
    ck_assert_msg(f != NULL, "no %s", path);
    size_t n = fread(big, 1, sizeof(big) - 1, f);
    (void)fclose(f);
    big[n] = '\0';
    char *start = big;
    for (unsigned i = 0; i <= nth; i++) {
        start = strstr(start, fence);
        ck_assert_msg(start != NULL, "%s has no block %u of %s", path, nth, language);
        start += strlen(fence);
    }
    char *end = strstr(start, "```");
    ck_assert_ptr_nonnull(end);
    return (struct str){start, (size_t)(end - start)};
}

/* The content of the ConfigMap's scalar block `key: |` in the document, without its indentation. */
static struct str value_of(struct str block, const char *key, char *to)
{
    struct str line;
    size_t n = 0;
    bool inside = false;
    for (struct str rest = block; rest.n > 0;) {
        (void)str_cut(rest, '\n', &line, &rest);
        if (inside) {
            ck_assert(line.n == 0 || str_starts(line, STR("    ")));
            line = str_skip(line, 4);
            memcpy(to + n, line.p, line.n);
            n += line.n;
            to[n++] = '\n';
        }
        inside = inside || str_eq(str_trim(line), str_of(key));
    }
    ck_assert(inside);
    return (struct str){to, n};
}

static const struct {
    const char *language;
    unsigned nth;
    const char *key, *expected;
} examples[] = {
    {"yaml", 0, "quota.yaml: |",
     "team-a: total 64 4 400 pool \"gold\" 32 - - model \"NVIDIA-A100*\" - 2 - "
     "pools \"gold\",\"silver\"; research: models \"NVIDIA-A100*\",\"*-T4\"; free:; "
     "*: total 16 1 -"},
    {"json", 0, NULL, "foo: model \"M40\" - - 800 pools \"public\" models \"M40\""},
};

TEST_EACH(the_documents_examples_are_good, COUNT_OF(examples))
{
    static char value[8192];
    char line[1024];
    struct buf to = BUF_ON(line);
    struct str text = block_of_document(examples[_i].language, examples[_i].nth);
    if (examples[_i].key != NULL)
        text = value_of(text, examples[_i].key, value);
    struct arena arena;
    struct quota_view view;
    struct err e = ERR_INIT;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    ck_assert_ok(quota_config_read(text, &arena, &view, &e), &e);
    put_view(&to, &view);
    ck_assert_str_eq(buf_cstr(&to), examples[_i].expected);
    arena_done(&arena);
}

static enum errc read_once(void *ctx)
{
    struct arena arena;
    struct quota_view view;
    struct err e = ERR_INIT;
    arena_init(&arena, LIMIT_QUOTA_ARENA);
    enum errc code = quota_config_read(str_of(ctx), &arena, &view, &e);
    ck_assert_int_eq(e.code, code);
    arena_done(&arena);
    return code;
}

TEST(survives_without_memory)
{
    char text[] = "namespaces:\n"
                  "  a: {limits: {cards: 1}, perPool: {p: {}}, perModel: {m: {}}, pools: [p]}\n"
                  "  \"*\": {models: [m, n]}\n";
    char json[4096] = "{\"namespaces\":{\"a\":{}";
    for (int c = 'b'; c <= 'z'; c++)
        (void)snprintf(json + strlen(json), sizeof(json) - strlen(json),
                       ",\"%c\":{\"perPool\":{\"p\":{},\"q\":{}},\"models\":[\"\\u0041\"]}", c);
    (void)snprintf(json + strlen(json), sizeof(json) - strlen(json), "}}");
    ck_assert_uint_ge(fail_alloc_each(read_once, text), 3);
    ck_assert_uint_ge(fail_alloc_each(read_once, json), 4);
}
