/*
 * Reads the quota configuration in one pass over the JSON; all results are in the arena. The limits
 * of a namespace always come in this order: the total, the pools, the models. A quota check looks
 * for the reason of a refusal in the same order.
 */
#include "objects/quota_config.h"

#include "core/limit.h"
#include "objects/limit.h"
#include "json/jread.h"
#include "json/jtoken.h"
#include "json/yaml.h"

#include <stdlib.h>

/* No model name is longer. */
#define PATTERN_BYTES 128

struct limits {
    struct quota_limit *items;
    size_t n;
    size_t cap;
};

struct names {
    struct str *items;
    size_t n;
    size_t cap;
};

struct entries {
    struct quota_entry *items;
    size_t n;
    size_t cap;
};

static const char *const kinds[QUOTA_KINDS] = {
    [QUOTA_MEMORY] = "memory",
    [QUOTA_CARDS] = "cards",
    [QUOTA_COMPUTE] = "compute",
};

/* Upper limits; no cluster has more. */
static const int64_t most[QUOTA_KINDS] = {
    [QUOTA_MEMORY] = INT64_C(1) << 40, /* one EiB in MiB */
    [QUOTA_CARDS] = 10000000,
    [QUOTA_COMPUTE] = 1000000000,
};

enum field {
    FIELD_LIMITS,
    FIELD_POOLS,
    FIELD_MODELS,
    FIELD_PER_POOL,
    FIELD_PER_MODEL,
    FIELD_COUNT
};

static const char *const fields[FIELD_COUNT] = {
    [FIELD_LIMITS] = "limits",    [FIELD_POOLS] = "pools",        [FIELD_MODELS] = "models",
    [FIELD_PER_POOL] = "perPool", [FIELD_PER_MODEL] = "perModel",
};

static bool quota_config_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A DNS label, like the name of a namespace; or "*" for all other namespaces. */
static bool quota_config_is_namespace(struct str s)
{
    bool good = s.n > 0 && s.n <= 63 && s.p[0] != '-' && s.p[s.n - 1] != '-';
    for (size_t i = 0; good && i < s.n; i++)
        good =
            s.p[i] == '-' || (quota_config_is_alnum(s.p[i]) && !(s.p[i] >= 'A' && s.p[i] <= 'Z'));
    return good || str_eq(s, STR("*"));
}

/* A label value. */
static bool quota_config_is_pool(struct str s)
{
    if (s.n == 0)
        return true;
    bool good = s.n <= 63 && quota_config_is_alnum(s.p[0]) && quota_config_is_alnum(s.p[s.n - 1]);
    for (size_t i = 0; good && i < s.n; i++)
        good = quota_config_is_alnum(s.p[i]) || s.p[i] == '-' || s.p[i] == '_' || s.p[i] == '.';
    return good;
}

static bool quota_config_is_pattern(struct str s)
{
    bool good = s.n <= PATTERN_BYTES && str_trim(s).n == s.n;
    for (size_t i = 0; good && i < s.n; i++)
        good = (unsigned char)s.p[i] >= 0x20 && s.p[i] != 0x7f;
    return good;
}

/* How pools and models are named; the names of models ignore case. */
struct naming {
    enum quota_scope scope;
    bool (*is_good)(struct str name);
    bool (*is_same)(struct str a, struct str b);
    const char *what;
};

static const struct naming pool_naming = {QUOTA_POOL, quota_config_is_pool, str_eq,
                                          "the name of a pool"};
static const struct naming model_naming = {QUOTA_MODEL, quota_config_is_pattern, str_eq_nocase,
                                           "a pattern of models"};

/* The part of a value that an error quotes. */
static struct str quota_config_shown(struct str s)
{
    s.n = MIN_OF(s.n, (size_t)40);
    return s;
}

/* Null is never accepted: a field without a value is probably an unfinished edit. */
static bool quota_config_expect(struct jread *r, enum jtype type, const char *what)
{
    if (jread_type(r) == type)
        return true;
    struct str raw = jread_raw(r);
    jread_fail(r, ERR_SYNTAX, "%.*s is not %s", STR_ARG(quota_config_shown(raw)), what);
    return false;
}

/* The index of the key in names. n after a failure: an unknown or repeated key. */
static size_t quota_config_field_of(struct jread *r, struct str key, const char *const *names,
                                    size_t n, unsigned *seen)
{
    size_t i = 0;
    while (i < n && !str_eq(key, str_of(names[i])))
        i++;
    if (i < n && (*seen >> i & 1) == 0) {
        *seen |= 1U << i;
        return i;
    }
    jread_skip(r);
    jread_fail(r, ERR_SYNTAX, i < n ? "is there twice" : "is not known");
    return n;
}

static int64_t quota_config_read_number(struct jread *r, int64_t max)
{
    int64_t n = -1;
    struct str raw = jread_raw(r);
    bool is_number = raw.n > 0 && jtoken_number(raw.p, raw.p + raw.n) == raw.n; /* not "010" */
    if (!is_number || !str_to_i64(raw, &n) || n < 0 || n > max)
        jread_fail(r, ERR_RANGE, "%.*s is not a whole number from 0 to %lld",
                   STR_ARG(quota_config_shown(raw)), (long long)max);
    return n;
}

static void quota_config_no_room(struct jread *r)
{
    jread_fail(r, arena_fault(r->arena), "no room for it");
}

/* {memory: 64, cards: 4, compute: 400}; each is optional. */
static void quota_config_read_limit(struct jread *r, struct quota_limit limit, struct limits *list)
{
    unsigned seen = 0;
    struct str key;
    for (size_t i = 0; i < QUOTA_KINDS; i++)
        limit.most[i] = QUOTA_UNLIMITED;
    if (!quota_config_expect(r, JTYPE_OBJECT, "a mapping"))
        return;
    jread_object (r, key) {
        size_t kind = quota_config_field_of(r, key, kinds, QUOTA_KINDS, &seen);
        if (kind < QUOTA_KINDS)
            limit.most[kind] = quota_config_read_number(r, most[kind]);
    }
    if (list->n == LIMIT_QUOTA_SCOPES)
        jread_fail(r, ERR_LIMIT, "is one limit too many: at most %d", LIMIT_QUOTA_SCOPES);
    struct quota_limit *grown =
        arena_grow(r->arena, list->items, list->n, &list->cap, sizeof(limit));
    if (grown == NULL) {
        quota_config_no_room(r);
        return;
    }
    list->items = grown;
    list->items[list->n++] = limit;
}

static bool quota_config_has_limit(const struct limits *list, const struct naming *naming,
                                   struct str name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].scope == naming->scope && naming->is_same(list->items[i].name, name))
            return true;
    }
    return false;
}

/* {gold: {memory: 32}, ...} */
static void quota_config_read_limits(struct jread *r, const struct naming *naming,
                                     struct limits *list)
{
    struct str key;
    if (!quota_config_expect(r, JTYPE_OBJECT, "a mapping"))
        return;
    jread_object (r, key) {
        bool doubled = quota_config_has_limit(list, naming, key);
        quota_config_read_limit(r, (struct quota_limit){.scope = naming->scope, .name = key}, list);
        if (!naming->is_good(key))
            jread_fail(r, ERR_SYNTAX, "is not %s", naming->what);
        else if (doubled)
            jread_fail(r, ERR_SYNTAX, "is there twice");
    }
}

static bool quota_config_has_name(const struct names *list, const struct naming *naming,
                                  struct str name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (naming->is_same(list->items[i], name))
            return true;
    }
    return false;
}

/* [gold, silver]. An empty list is refused, because it could mean all or none. */
static void quota_config_read_names(struct jread *r, const struct naming *naming,
                                    struct names *list)
{
    if (!quota_config_expect(r, JTYPE_ARRAY, "a list"))
        return;
    jread_array (r) {
        if (!quota_config_expect(r, JTYPE_STRING, naming->what))
            continue;
        struct str name = jread_str(r);
        if (!naming->is_good(name))
            jread_fail(r, ERR_SYNTAX, "\"%.*s\" is not %s", STR_ARG(quota_config_shown(name)),
                       naming->what);
        else if (quota_config_has_name(list, naming, name))
            jread_fail(r, ERR_SYNTAX, "\"%.*s\" is there twice", STR_ARG(quota_config_shown(name)));
        else if (list->n == LIMIT_QUOTA_SCOPES)
            jread_fail(r, ERR_LIMIT, "is one too many: at most %d", LIMIT_QUOTA_SCOPES);
        struct str *grown = arena_grow(r->arena, list->items, list->n, &list->cap, sizeof(name));
        if (grown == NULL) {
            quota_config_no_room(r);
            continue;
        }
        list->items = grown;
        list->items[list->n++] = name;
    }
    if (list->n == 0)
        jread_fail(r, ERR_SYNTAX, "is empty: leave it out to allow every one");
}

/* Copies the limits into the entry, ordered by scope. */
static void quota_config_take_limits(struct jread *r, const struct limits *list,
                                     struct quota_entry *ret)
{
    struct quota_limit *sorted = arena_array(r->arena, list->n, sizeof(*sorted));
    size_t n = 0;
    if (sorted == NULL) {
        quota_config_no_room(r);
        return;
    }
    for (unsigned scope = QUOTA_TOTAL; scope <= QUOTA_MODEL; scope++) {
        for (size_t i = 0; i < list->n; i++) {
            if (list->items[i].scope == scope)
                sorted[n++] = list->items[i];
        }
    }
    ret->limits = sorted;
    ret->n_limits = n;
}

/* A limit for a pool that is not in `pools` is a mistake in one of the two. */
static void quota_config_check_pools(struct jread *r, const struct limits *list,
                                     const struct names *pools)
{
    for (size_t i = 0; pools->n > 0 && i < list->n; i++) {
        const struct quota_limit *limit = &list->items[i];
        if (limit->scope == QUOTA_POOL && !quota_config_has_name(pools, &pool_naming, limit->name))
            jread_fail(r, ERR_CONFLICT, "perPool names \"%.*s\", which pools does not",
                       STR_ARG(limit->name));
    }
}

static void quota_config_read_entry(struct jread *r, struct quota_entry *ret)
{
    struct limits limits = {.n = 0};
    struct names pools = {.n = 0};
    struct names models = {.n = 0};
    unsigned seen = 0;
    struct str key;
    if (!quota_config_expect(r, JTYPE_OBJECT, "a mapping"))
        return;
    jread_object (r, key) {
        switch (quota_config_field_of(r, key, fields, FIELD_COUNT, &seen)) {
        case FIELD_LIMITS:
            quota_config_read_limit(r, (struct quota_limit){.scope = QUOTA_TOTAL}, &limits);
            break;
        case FIELD_POOLS:
            quota_config_read_names(r, &pool_naming, &pools);
            break;
        case FIELD_MODELS:
            quota_config_read_names(r, &model_naming, &models);
            break;
        case FIELD_PER_POOL:
            quota_config_read_limits(r, &pool_naming, &limits);
            break;
        case FIELD_PER_MODEL:
            quota_config_read_limits(r, &model_naming, &limits);
            break;
        default:
            break;
        }
    }
    quota_config_check_pools(r, &limits, &pools);
    quota_config_take_limits(r, &limits, ret);
    ret->pools = pools.items;
    ret->n_pools = pools.n;
    ret->models = models.items;
    ret->n_models = models.n;
}

/* The conversion from YAML refuses repeated keys; JSON input may still have them. */
static void quota_config_refuse_doubled(struct jread *r, struct entries *list)
{
    struct map seen;
    /*
     * A fixed seed is safe: an administrator writes the names and has no reason to make them
     * collide.
     */
    map_init(&seen, offsetof(struct quota_entry, namespace), (struct map_seed){0, 0});
    for (size_t i = 0; i < list->n && !jread_failed(r); i++) {
        struct str namespace = list->items[i].namespace;
        if (map_get(&seen, namespace) != NULL)
            jread_fail(r, ERR_SYNTAX, "\"%.*s\" is there twice", STR_ARG(namespace));
        else if (map_put(&seen, &list->items[i]) != OK)
            jread_fail(r, ERR_NOMEM, "no memory");
    }
    map_done(&seen);
}

static void quota_config_read_entries(struct jread *r, struct entries *list)
{
    struct str key;
    if (!quota_config_expect(r, JTYPE_OBJECT, "a mapping"))
        return;
    jread_object (r, key) {
        struct quota_entry e = {.namespace = key};
        quota_config_read_entry(r, &e);
        if (!quota_config_is_namespace(key))
            jread_fail(r, ERR_SYNTAX, "is neither the name of a namespace nor \"*\"");
        struct quota_entry *grown =
            arena_grow(r->arena, list->items, list->n, &list->cap, sizeof(e));
        if (grown == NULL) {
            quota_config_no_room(r);
            continue;
        }
        list->items = grown;
        list->items[list->n++] = e;
    }
    quota_config_refuse_doubled(r, list);
}

static enum errc quota_config_read_json(struct str json, struct arena *arena,
                                        struct quota_view *ret, struct err *reterr)
{
    static const char *const top[] = {"namespaces"};
    struct entries list = {.n = 0};
    unsigned seen = 0;
    struct jread r;
    struct str key;
    jread_init(&r, json, arena);
    if (quota_config_expect(&r, JTYPE_OBJECT, "a mapping")) {
        jread_object (&r, key) {
            if (quota_config_field_of(&r, key, top, COUNT_OF(top), &seen) == 0)
                quota_config_read_entries(&r, &list);
        }
        if (seen == 0)
            jread_fail(&r, ERR_SYNTAX, "namespaces is missing");
    }
    enum errc code = jread_finish(&r, reterr);
    if (code == OK)
        *ret = (struct quota_view){list.items, list.n};
    return code;
}

enum errc quota_config_read(struct str text, struct arena *arena, struct quota_view *ret,
                            struct err *reterr)
{
    struct buf json;
    if (text.n > LIMIT_QUOTA_TEXT)
        return err_set(reterr, ERR_LIMIT, "%zu bytes, at most %zu", text.n, LIMIT_QUOTA_TEXT);
    buf_init(&json, LIMIT_QUOTA_JSON);
    enum errc code = yaml_to_json(text, &json, reterr);
    struct str copy = code == OK ? arena_dup(arena, buf_str(&json)) : STR_NULL;
    buf_done(&json);
    if (code != OK)
        return code;
    if (copy.p == NULL)
        return err_set(reterr, arena_fault(arena), "no room for it");
    return quota_config_read_json(copy, arena, ret, reterr);
}
