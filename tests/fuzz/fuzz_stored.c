/*
 * Objects that the API server has stored are edited, and then listed or watched again. What the
 * cache makes of them is compared with a simple reading of jansson's tree:
 *
 *   - a pod that is bound holds at least what its readable containers ask for, or closes its node;
 *   - a node has no more than its object says, and a card that is unhealthy or that a claim holds
 *     gets no pod;
 *   - quotas that can't be read stay as they were;
 *   - an object that can't be read at all is not forgotten: the list is torn, and nothing decided;
 *   - bytes in a field that cardpack does not need change nothing.
 *
 * The first byte chooses: 1 a watch in place of the second list. Then edits follow, of four bytes
 * and up to 31 more: the object, with the highest bit for its field `managedFields`; the place, in
 * two bytes; how many bytes are removed there (three bits) and inserted.
 */
#include "cache_text.h"
#include "core/dialect/gpushare.h"
#include "core/place/fit.h"
#include "core/quantity.h"
#include "kube/ingest.h"
#include "objects/quota_config.h"
#include "objects/watch.h"
#include "rules.h"
#include "spoken.h"
#include "still.h"
#include "json/jcut.h"

#define JUNK   "\"managedFields\":[{\"fieldsV1\":\"@\"}],"
#define MEM(n) "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n "\"}}"
#define POD(name, extra, containers)                                                      \
    "{\"metadata\":{" JUNK "\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"u-" name \
    "\",\"resourceVersion\":\"7\"" extra "\"containers\":[" containers                    \
    "]},\"status\":{\"phase\":\"Running\"}}"
#define AT(node, idx)                                                                     \
    ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" idx                                 \
    "\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"},\"labels\":{\"app\":\"x\"}},\"spec\":{" \
    "\"nodeName\":\"" node "\",\"overhead\":{\"cpu\":\"1\"},"
#define NODE(name, table)                                                             \
    "{\"metadata\":{" JUNK "\"name\":\"" name                                         \
    "\",\"resourceVersion\":\"7\",\"annotations\":{" table                            \
    "\"cardpack.io/cordoned-cards\":\"\"}},\"status\":{\"capacity\":{"                \
    "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\"},\"allocatable\":{" \
    "\"aliyun.com/gpu-mem\":\"32\",\"cpu\":\"8\"},\"images\":[{\"names\":[\"i\"]}]}}"
#define TABLE                                                                                  \
    "\"cardpack.io/cards\":\"[{\\\"index\\\":0,\\\"memory\\\":16,\\\"uuid\\\":\\\"GPU-0\\\"}," \
    "{\\\"index\\\":1,\\\"memory\\\":16,\\\"uuid\\\":\\\"GPU-1\\\"}]\","

#define QUOTA "namespaces: {ns: {limits: {memory: 20}}}"

static const struct {
    enum cache_kind kind;
    const char *json;
} stored[] = {
    {CACHE_NODES, NODE("n", TABLE)},
    {CACHE_NODES, NODE("m", "")},
    {CACHE_HEALTH, "{\"metadata\":{" JUNK "\"name\":\"unhealthy-gpu-m\",\"namespace\":"
                   "\"kube-system\",\"resourceVersion\":\"7\"},\"data\":{\"gpus\":\"1\"}}"},
    {CACHE_SLICES,
     "{\"metadata\":{" JUNK "\"name\":\"s\",\"resourceVersion\":\"7\"},\"spec\":{\"driver\":\"g\","
     "\"pool\":{\"name\":\"p\",\"generation\":1},\"nodeName\":\"n\",\"devices\":[{\"name\":\"d\","
     "\"attributes\":{\"uuid\":{\"string\":\"GPU-1\"}}}]}}"},
    {CACHE_CLAIMS,
     "{\"metadata\":{" JUNK "\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u-c\","
     "\"resourceVersion\":\"7\"},\"status\":{\"allocation\":{\"devices\":{\"results\":[{"
     "\"request\":\"r\",\"driver\":\"g\",\"pool\":\"p\",\"device\":\"d\"}]}}}}"},
    {CACHE_PODS, POD("a", AT("n", "0"), "{\"name\":\"c\"," MEM("10") "}")},
    {CACHE_PODS,
     POD("b", AT("m", "0"),
         "{\"name\":\"c\"," MEM(
             "2") ",\"env\":[{\"name\":\"E\",\"value\":\"v\"}]},"
                  "{\"name\":\"d\",\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":3}}}")},
    {CACHE_PODS, POD("w", "},\"spec\":{", "{\"name\":\"c\"," MEM("4") "}")},
    {CACHE_HEALTH, "{\"metadata\":{" JUNK "\"name\":\"cardpack-quota\",\"namespace\":"
                   "\"kube-system\",\"resourceVersion\":\"7\"},\"data\":{\"quota.yaml\":"
                   "\"" QUOTA "\"}}"},
};

enum {
    OBJECTS = COUNT_OF(stored)
};

/* The objects as they are now. */
struct world {
    struct buf json[OBJECTS];
    bool edited[OBJECTS]; /* otherwise than in managedFields */
    bool junked[OBJECTS]; /* in managedFields: nothing else of it is edited */
};

struct stage {
    struct ingest in;
    struct cache cache;
    struct arena arena;
    enum cache_kind kind;              /* of the list under way */
    size_t delivered[CACHE_ALL_KINDS]; /* its objects */
};

/* ---- edits ---- */

static void world_open(struct world *w)
{
    for (size_t i = 0; i < OBJECTS; i++) {
        buf_init(&w->json[i], MIB);
        buf_put(&w->json[i], str_of(stored[i].json));
        w->edited[i] = w->junked[i] = false;
    }
}

static void world_close(struct world *w)
{
    for (size_t i = 0; i < OBJECTS; i++)
        buf_done(&w->json[i]);
}

static void replace(struct buf *json, size_t at, size_t removed, struct str bytes)
{
    struct buf old = *json;
    struct str text = buf_str(&old);
    buf_init(json, MIB);
    buf_put(json, (struct str){text.p, at});
    buf_put(json, bytes);
    buf_put(json, str_skip(text, at + removed));
    check(!buf_failed(json), "an edit has room");
    buf_done(&old);
}

/* What may stand in a string of JSON by itself, to a reader that looks for its end alone. */
static void add_junk(struct buf *json, struct str bytes)
{
    char kept[32];
    size_t n = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        if (bytes.p[i] != '"' && bytes.p[i] != '\\' && bytes.p[i] != '\n')
            kept[n++] = bytes.p[i];
    }
    const char *at = memchr(json->p, '@', json->n);
    if (at != NULL)
        replace(json, (size_t)(at - json->p), 0, (struct str){kept, n});
}

/* junk: with the bytes in managedFields, too. */
static void world_edit(struct world *w, const uint8_t *data, size_t size, bool junk)
{
    while (size >= 4) {
        size_t i = (data[0] & 0x7fU) % OBJECTS;
        size_t n = MIN_OF((size_t)(data[3] & 31U), size - 4);
        size_t at = ((size_t)data[1] | (size_t)data[2] << 8) % (w->json[i].n + 1);
        struct str bytes = {(const char *)data + 4, n};
        if ((data[0] & 0x80U) != 0)
            w->junked[i] = w->junked[i] || !w->edited[i];
        else
            w->edited[i] = w->edited[i] || !w->junked[i];
        if (w->edited[i])
            replace(&w->json[i], at, MIN_OF((size_t)(data[3] >> 5), w->json[i].n - at), bytes);
        else if (junk)
            add_junk(&w->json[i], bytes);
        data += 4 + n;
        size -= 4 + n;
    }
}

/* ---- the cache ---- */

static void take(struct stage *s, struct str json)
{
    static void (*const takes[CACHE_ALL_KINDS])(struct ingest *, struct str, bool) = {
        [CACHE_NODES] = ingest_node,       [CACHE_PODS] = ingest_pod,
        [CACHE_HEALTH] = ingest_configmap, [CACHE_SLICES] = ingest_slice,
        [CACHE_CLAIMS] = ingest_claim,     [CACHE_CLASSES] = ingest_class};
    s->delivered[s->kind]++;
    takes[s->kind](&s->in, json, false);
    cache_check(&s->cache);
}

static enum errc on_piece(void *ctx, enum jcut_piece kind, struct str piece, struct err *e)
{
    (void)e;
    if (kind == JCUT_ITEM)
        take(ctx, piece);
    return OK;
}

/* As reflector.c: a list that is no JSON does not end. */
static bool list(struct stage *s, const struct world *w, enum cache_kind kind)
{
    struct jcut cut;
    struct buf body;
    s->kind = kind;
    s->delivered[kind] = 0;
    buf_init(&body, 4 * MIB);
    buf_put(&body, STR("{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":["));
    for (size_t i = 0, n = 0; i < OBJECTS; i++) {
        if (stored[i].kind != kind)
            continue;
        buf_put(&body, n++ == 0 ? STR("") : STR(","));
        buf_put(&body, buf_str(&w->json[i]));
    }
    buf_put(&body, STR("]}\n"));
    ingest_list_begin(&s->in, kind);
    jcut_init(&cut, JCUT_LIST, LIMIT_OBJECT_BYTES, on_piece, s);
    bool whole = jcut_push(&cut, buf_str(&body), NULL) == OK && jcut_finish(&cut, NULL) == OK;
    if (whole)
        (void)ingest_list_end(&s->in, kind);
    cache_check(&s->cache);
    jcut_done(&cut);
    buf_done(&body);
    return whole;
}

/* False: the stream can't be read, and the reflector lists again. */
static bool watch(struct stage *s, const struct world *w, enum cache_kind kind)
{
    s->kind = kind;
    for (size_t i = 0; i < OBJECTS; i++) {
        struct watch_event ev;
        struct buf line;
        if (stored[i].kind != kind)
            continue;
        if (memchr(w->json[i].p, '\n', w->json[i].n) != NULL)
            return false;
        buf_init(&line, 4 * MIB);
        buf_put(&line, STR("{\"type\":\"MODIFIED\",\"object\":"));
        buf_put(&line, buf_str(&w->json[i]));
        buf_putc(&line, '}');
        arena_reset(&s->arena);
        bool good = watch_event_read(buf_str(&line), &s->arena, &ev, NULL) == OK &&
                    ev.kind == WATCH_MODIFIED;
        if (good)
            take(s, ev.object);
        buf_done(&line);
        if (!good)
            return false;
    }
    return true;
}

static const enum cache_kind order[] = {CACHE_NODES, CACHE_HEALTH, CACHE_SLICES, CACHE_CLAIMS,
                                        CACHE_PODS};

static void stage_open(struct stage *s, struct loop *l)
{
    struct world plain;
    memset(s, 0, sizeof(*s));
    cache_init(&s->cache, (struct map_seed){1, 2});
    ingest_init(&s->in, l, &s->cache);
    arena_init(&s->arena, LIMIT_OBJECT_ARENA);
    world_open(&plain);
    for (size_t k = 0; k < COUNT_OF(order); k++)
        check(list(s, &plain, order[k]), "the first list is whole");
    check(s->in.n_unreadable == 0, "what was stored first can be read");
    world_close(&plain);
}

static void stage_close(struct stage *s)
{
    arena_done(&s->arena);
    ingest_done(&s->in);
    cache_done(&s->cache);
}

/* ---- what must be there ---- */

static char shown(char c)
{
    unsigned char byte = (unsigned char)c;
    if (byte < 0x20 || byte == 0xc0 || byte == 0xc1 || byte > 0xf4)
        return '?';
    if (byte > 0x7f || c == '?')
        return '~';
    return c;
}

/* The object as jansson has it. Each byte that no string of JSON has is a question mark in it, and
 * what may be a part of a character, or was a question mark, is a tilde. NULL: no comparison is
 * possible. */
static json_t *reads(const struct buf *json)
{
    char *copy = malloc(json->n + 1);
    check(copy != NULL, "there is memory");
    for (size_t i = 0; i < json->n; i++)
        copy[i] = shown(json->p[i]);
    json_t *object = json_loadb(copy, json->n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    free(copy);
    return object;
}

/* Its brackets and quotes do not reach into its neighbours. */
static bool is_object(const struct buf *json)
{
    json_t *object = reads(json);
    json_decref(object);
    return object != NULL;
}

static struct str text_at(const json_t *object, const char *part, const char *key)
{
    return jansson_str(json_object_get(json_object_get(object, part), key));
}

/* Whether cardpack can't read it. */
static bool is_broken(struct str s)
{
    return memchr(s.n > 0 ? s.p : "", '?', s.n) != NULL;
}

/* Whether it is not known here what cardpack makes of it. */
static bool is_odd(struct str s)
{
    return s.n == 0 || is_broken(s) || memchr(s.p, '~', s.n) != NULL ||
           memchr(s.p, '\0', s.n) != NULL;
}

static int64_t amount(const json_t *value)
{
    struct quantity q;
    if (json_is_integer(value))
        return MAX_OF(json_integer_value(value), 0);
    if (!json_is_string(value) || quantity_parse(str_trim(jansson_str(value)), &q) != OK)
        return 0;
    return MAX_OF(q.value, 0);
}

static const json_t *mem_of(const json_t *container)
{
    const json_t *resources = json_object_get(container, "resources");
    const json_t *mem = json_object_get(json_object_get(resources, "limits"), "aliyun.com/gpu-mem");
    if (mem == NULL || json_is_null(mem))
        mem = json_object_get(json_object_get(resources, "requests"), "aliyun.com/gpu-mem");
    return mem;
}

/* What the containers that can be read ask for. *ret_broken: a field that is needed can't be. */
static int64_t asked(const json_t *pod, bool *ret_broken)
{
    __int128 sum = 0;
    const json_t *notes = json_object_get(json_object_get(pod, "metadata"), "annotations");
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    *ret_broken = is_broken(jansson_str(json_object_get(notes, "ALIYUN_COM_GPU_MEM_IDX")));
    for (size_t i = 0; i < json_array_size(containers); i++) {
        const json_t *one = json_array_get(containers, i);
        const json_t *mem = mem_of(one);
        *ret_broken = *ret_broken || is_broken(jansson_str(json_object_get(one, "name"))) ||
                      is_broken(jansson_str(mem));
        sum += amount(mem);
    }
    return (int64_t)MIN_OF(sum, (__int128)REQUEST_MEM_MAX);
}

static bool fits(const struct stage *s, struct str node)
{
    struct request r = {.mem = 1, .lasting_mem = 1, .n_demands = 1, .demands = {{.mem = 1}}};
    struct evaluation evaluation;
    cache_evaluation(&s->cache, STR("nobody"), &r, &evaluation);
    return fit_node(cache_node(&s->cache, node), &evaluation) == VERDICT_FITS;
}

static void check_pod(const struct stage *s, const json_t *object)
{
    struct str uid = text_at(object, "metadata", "uid");
    struct str node = text_at(object, "spec", "nodeName");
    struct str phase = text_at(object, "status", "phase");
    bool broken = false;
    int64_t mem = asked(object, &broken);
    bool over = str_eq(phase, STR("Succeeded")) || str_eq(phase, STR("Failed"));
    const struct pod *p = cache_pod(&s->cache, uid);
    if (is_odd(uid) || is_odd(node) || over || (mem == 0 && !broken) || s->in.torn[CACHE_PODS])
        return;
    check(p != NULL, "a bound pod is in the cache, or nothing is decided");
    check(p->state == POD_BOUND && str_eq(p->node->name, node), "it is on its node");
    check(p->unreadable || !broken, "what can't be read is known to be so");
    check(p->unreadable || p->request->dialect != DIALECT_GPUSHARE || p->request->mem >= mem,
          "it holds what it asks for");
    check(!p->unreadable || !fits(s, node), "one that can't be read closes its node");
}

/* A pod that cardpack knew, and that it can't recognize in the list, is not gone. */
static void check_known(const struct stage *s, size_t i, struct str uid)
{
    json_t *object = json_loads(stored[i].json, 0, NULL);
    if (is_broken(uid) || uid.n == 0)
        check(cache_pod(&s->cache, text_at(object, "metadata", "uid")) != NULL ||
                  s->in.torn[CACHE_PODS],
              "what can't be read is not forgotten");
    json_decref(object);
}

static void check_node(const struct stage *s, const json_t *object)
{
    struct str name = text_at(object, "metadata", "name");
    const json_t *capacity = json_object_get(json_object_get(object, "status"), "capacity");
    int64_t mem = amount(json_object_get(capacity, "aliyun.com/gpu-mem"));
    if (is_odd(name) || s->in.torn[CACHE_NODES])
        return;
    const struct node *n = cache_node(&s->cache, name);
    if (n == NULL || n->fault != NODE_OK || n->sizes->dialect != DIALECT_GPUSHARE)
        return;
    check(n->total <= mem, "a node has no more than it says");
}

static void check_health(const struct stage *s, const json_t *object)
{
    struct str name = text_at(object, "metadata", "name");
    struct str gpus = text_at(object, "data", "gpus");
    const struct node *m = cache_node(&s->cache, STR("m"));
    if (!str_eq(name, STR("unhealthy-gpu-m")) || !str_eq(gpus, STR("1")) ||
        !str_eq(text_at(object, "metadata", "namespace"), GPUSHARE_UNHEALTHY_NAMESPACE) ||
        m == NULL || m->n_cards < 2)
        return;
    check(m->cards[1].unhealthy || s->in.torn[CACHE_HEALTH], "an unhealthy card is known");
}

/* Whether cardpack's quotas are then those of the object, and may be others. */
static bool is_quota(struct str text)
{
    struct quota_view others;
    struct arena arena;
    bool odd = memchr(text.p, '~', text.n) != NULL || memchr(text.p, '\0', text.n) != NULL;
    arena_init(&arena, MIB);
    bool good = !is_broken(text) && !str_eq(text, STR(QUOTA)) &&
                (odd || quota_config_read(text, &arena, &others, NULL) == OK);
    arena_done(&arena);
    return good;
}

static void check_quota(const struct stage *s, const json_t *object)
{
    struct str text = text_at(object, "data", CARDPACK_QUOTA_KEY.p);
    if (!str_eq(text_at(object, "metadata", "name"), CARDPACK_QUOTA_NAME) ||
        !str_eq(text_at(object, "metadata", "namespace"), GPUSHARE_UNHEALTHY_NAMESPACE) ||
        (text.p != NULL && is_quota(text)))
        return;
    check(quota_account(&s->cache.quota, STR("ns")).entry != NULL, "a quota stays in force");
}

/* The slice and the node are as they were. */
static void check_claim(const struct stage *s, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    const json_t *devices = json_object_get(json_object_get(status, "allocation"), "devices");
    const json_t *one = json_array_get(json_object_get(devices, "results"), 0);
    const struct node *n = cache_node(&s->cache, STR("n"));
    if (is_odd(text_at(object, "metadata", "uid")) || json_object_get(one, "adminAccess") != NULL ||
        json_object_get(one, "shareID") != NULL ||
        !str_eq(jansson_str(json_object_get(one, "driver")), STR("g")) ||
        !str_eq(jansson_str(json_object_get(one, "pool")), STR("p")) ||
        !str_eq(jansson_str(json_object_get(one, "device")), STR("d")))
        return;
    check(n->cards[1].claimed || s->in.torn[CACHE_CLAIMS], "a claimed card is known");
}

/* Whether cardpack can fail to know which object this is. */
static bool is_nameless(const struct buf *json, enum cache_kind kind)
{
    bool by_uid = kind == CACHE_PODS || kind == CACHE_CLAIMS;
    json_t *object = reads(json);
    bool nameless = object == NULL || text_at(object, "metadata", by_uid ? "uid" : "name").n == 0;
    for (size_t i = 0; i < json->n; i++)
        nameless = nameless || json->p[i] < 0x20 || json->p[i] >= 0x7f;
    json_decref(object);
    return nameless;
}

/* Nothing stops all decisions without a reason. A claim, a slice and a ConfigMap have no other way
 * to be unreadable. */
static void check_torn(const struct stage *s, const struct world *w, enum cache_kind kind)
{
    bool nameless = false;
    if (kind != CACHE_PODS && kind != CACHE_NODES)
        return;
    for (size_t i = 0; i < OBJECTS; i++)
        nameless = nameless || (stored[i].kind == kind && is_nameless(&w->json[i], kind));
    check(nameless || !s->in.torn[kind], "a list is not torn without a reason");
}

/* Whether another object of the list has this text there, too: the last one counts. */
static bool is_twice(const struct world *w, size_t at, const char *key)
{
    json_t *object = reads(&w->json[at]);
    struct str mine = text_at(object, "metadata", key);
    bool twice = false;
    for (size_t i = 0; i < OBJECTS && !twice; i++) {
        json_t *other = i == at || stored[i].kind != stored[at].kind ? NULL : reads(&w->json[i]);
        struct str its = text_at(other, "metadata", key);
        twice =
            i != at && stored[i].kind == stored[at].kind && (other == NULL || str_eq(its, mine));
        json_decref(other);
    }
    json_decref(object);
    return twice;
}

static void check_object(const struct stage *s, const struct world *w, size_t i)
{
    static const size_t node_n = 0;
    static const size_t slice = 3;
    json_t *object = reads(&w->json[i]);
    if (object == NULL)
        return;
    if (stored[i].kind == CACHE_PODS)
        check_known(s, i, text_at(object, "metadata", "uid"));
    if (stored[i].kind == CACHE_PODS && !is_twice(w, i, "uid"))
        check_pod(s, object);
    else if (stored[i].kind == CACHE_NODES && !is_twice(w, i, "name"))
        check_node(s, object);
    else if (stored[i].kind == CACHE_HEALTH && !w->edited[1])
        check_health(s, object);
    if (stored[i].kind == CACHE_HEALTH && !is_twice(w, i, "name"))
        check_quota(s, object);
    if (stored[i].kind == CACHE_CLAIMS && !w->edited[node_n] && !w->edited[slice])
        check_claim(s, object);
    json_decref(object);
}

/* Of a list that is not whole, those behind the break have not come. */
static void check_kept(const struct stage *s)
{
    size_t at = 0;
    for (size_t i = 0; i < OBJECTS; i++) {
        if (stored[i].kind != CACHE_PODS || at++ < s->delivered[CACHE_PODS])
            continue;
        json_t *object = json_loads(stored[i].json, 0, NULL);
        check_pod(s, object);
        json_decref(object);
    }
}

static void run(const uint8_t *data, size_t size, bool junk, struct buf *out)
{
    struct loop *l = still_loop();
    struct stage s;
    struct world w;
    stage_open(&s, l);
    world_open(&w);
    world_edit(&w, data + 1, size - 1, junk);
    bool typed = true;
    for (size_t i = 0; i < OBJECTS; i++)
        typed = typed && is_object(&w.json[i]);
    for (size_t k = 0; k < COUNT_OF(order); k++) {
        bool watched = data[0] == 1 && watch(&s, &w, order[k]);
        bool whole = watched || list(&s, &w, order[k]);
        if (!whole && order[k] == CACHE_PODS)
            check_kept(&s);
        for (size_t i = 0; i < OBJECTS && whole; i++) {
            if (stored[i].kind == order[k])
                check_object(&s, &w, i);
        }
        if (whole)
            check_torn(&s, &w, order[k]);
    }
    if (typed)
        cache_text(&s.cache, out);
    world_close(&w);
    stage_close(&s);
    (void)loop_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf with;
    struct buf without;
    if (size == 0)
        return 0;
    quiet();
    buf_init(&with, MIB);
    buf_init(&without, MIB);
    run(data, size, true, &with);
    run(data, size, false, &without);
    check(str_eq(buf_str(&with), buf_str(&without)), "what is not needed changes nothing");
    buf_done(&with);
    buf_done(&without);
    return 0;
}
