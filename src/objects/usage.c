/*
 * Writes and reads what a node's cards and pods use. Every node's ConfigMap is written by the
 * program on that node, so the reader trusts no figure: each has a range, and each list a limit.
 */
#include "objects/usage.h"

#include "core/limit.h"
#include "objects/limit.h"
#include "objects/stamp.h"
#include "json/jread.h"
#include "json/jwrite.h"

static void usage_write_card(struct jwrite *w, const struct usage_card *c)
{
    jwrite_object_begin(w);
    jwrite_u64_at(w, STR("index"), c->index);
    jwrite_u64_at(w, STR("usedMiB"), c->used_mib);
    jwrite_u64_at(w, STR("totalMiB"), c->total_mib);
    if (c->busy_percent != USAGE_BUSY_UNKNOWN)
        jwrite_u64_at(w, STR("busyPercent"), c->busy_percent);
    jwrite_object_end(w);
}

static void usage_write_pod(struct jwrite *w, const struct usage_pod *p)
{
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("uid"), p->uid);
    jwrite_str_at(w, STR("namespace"), p->namespace);
    jwrite_str_at(w, STR("name"), p->name);
    jwrite_u64_at(w, STR("card"), p->card);
    jwrite_u64_at(w, STR("usedMiB"), p->used_mib);
    jwrite_object_end(w);
}

static const struct str usage_kinds[USAGE_DIFFERS_KINDS] = {
    [USAGE_DIFFERS_CARDS] = STR("cards"),
    [USAGE_DIFFERS_OWNER] = STR("owner"),
    [USAGE_DIFFERS_NONE] = STR("none"),
};

static void usage_write_differences(struct jwrite *w, const struct usage_view *u)
{
    jwrite_u64_at(w, STR("compared"), u->compared);
    jwrite_array_at(w, STR("differences"));
    for (size_t i = 0; i < MIN_OF(u->n_differences, LIMIT_USAGE_DIFFERENCES); i++) {
        const struct usage_difference *d = &u->differences[i];
        jwrite_object_begin(w);
        jwrite_str_at(w, STR("namespace"), d->namespace);
        jwrite_str_at(w, STR("name"), d->name);
        jwrite_str_at(w, STR("container"), d->container);
        jwrite_str_at(w, STR("kind"), usage_kinds[d->kind]);
        jwrite_str_at(w, STR("annotated"), d->annotated);
        jwrite_str_at(w, STR("given"), d->given);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

void usage_write(struct buf *out, const struct usage_view *u)
{
    struct jwrite w;
    size_t start = out->n;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("seen"), u->seen);
    jwrite_array_at(&w, STR("cards"));
    for (size_t i = 0; i < u->n_cards; i++)
        usage_write_card(&w, &u->cards[i]);
    jwrite_array_end(&w);
    if (u->asked) /* before the pods, which are cut if there are too many */
        usage_write_differences(&w, u);
    jwrite_array_at(&w, STR("pods"));
    for (size_t i = 0; i < MIN_OF(u->n_pods, LIMIT_MEASURED_PODS); i++) {
        size_t before = out->n;
        usage_write_pod(&w, &u->pods[i]);
        if (out->n - start + strlen("]}") > LIMIT_USAGE_TEXT) {
            out->n = before;
            break;
        }
    }
    jwrite_array_end(&w);
    jwrite_object_end(&w);
}

struct usage_cards {
    struct usage_card *items;
    size_t n;
    size_t cap;
    uint64_t seen[LIMIT_CARDS / 64]; /* the indices so far */
};

struct usage_pods {
    struct usage_pod *items;
    size_t n;
    size_t cap;
};

struct usage_differences {
    struct usage_difference *items;
    size_t n;
    size_t cap;
};

static uint64_t usage_read_u64(struct jread *r, uint64_t max)
{
    int64_t value = jread_i64(r);
    if (value >= 0 && (uint64_t)value <= max)
        return (uint64_t)value;
    jread_fail(r, ERR_RANGE, "%lld must be 0 to %llu", (long long)value, (unsigned long long)max);
    return 0;
}

static struct str usage_read_name(struct jread *r)
{
    struct str name = jread_str(r);
    if (jread_failed(r) || (name.n > 0 && name.n <= LIMIT_USAGE_NAME))
        return name;
    if (name.n == 0)
        jread_fail(r, ERR_RANGE, "\"\" is no name");
    else
        jread_fail(r, ERR_RANGE, "\"%.*s...\" has %zu bytes: %zu at most", 64, name.p, name.n,
                   LIMIT_USAGE_NAME);
    return STR_NULL;
}

static struct str usage_read_seen(struct jread *r)
{
    uint32_t seconds = 0;
    struct str seen = jread_str(r);
    if (jread_failed(r) || stamp_read(seen, &seconds))
        return seen;
    struct str head = str_head(seen, 64);
    jread_fail(r, ERR_SYNTAX, "\"%.*s\" is no time", STR_ARG(head));
    return STR_NULL;
}

/* The fields that an object must have, as bits, and the message if one is missing. */
static void usage_need(struct jread *r, unsigned there, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if ((there & (1U << i)) == 0)
            jread_fail(r, ERR_SYNTAX, "%s is missing", names[i]);
    }
}

static struct usage_card usage_read_card(struct jread *r)
{
    static const char *const names[] = {"index", "usedMiB", "totalMiB"};
    struct usage_card c = {.busy_percent = USAGE_BUSY_UNKNOWN};
    unsigned there = 0;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("index"))) {
            c.index = (uint32_t)usage_read_u64(r, LIMIT_CARDS - 1);
            there |= 1;
        } else if (str_eq(key, STR("usedMiB"))) {
            c.used_mib = usage_read_u64(r, LIMIT_USAGE_MIB);
            there |= 2;
        } else if (str_eq(key, STR("totalMiB"))) {
            c.total_mib = usage_read_u64(r, LIMIT_USAGE_MIB);
            there |= 4;
        } else if (str_eq(key, STR("busyPercent")) && jread_type(r) != JTYPE_NULL) {
            c.busy_percent = (uint32_t)usage_read_u64(r, 100);
        } else {
            jread_skip(r);
        }
    }
    usage_need(r, there, names, COUNT_OF(names));
    return c;
}

static struct usage_pod usage_read_pod(struct jread *r)
{
    static const char *const names[] = {"uid", "namespace", "name", "card", "usedMiB"};
    struct usage_pod p = {.uid = STR_NULL};
    unsigned there = 0;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("uid"))) {
            p.uid = usage_read_name(r);
            there |= 1;
        } else if (str_eq(key, STR("namespace"))) {
            p.namespace = usage_read_name(r);
            there |= 2;
        } else if (str_eq(key, STR("name"))) {
            p.name = usage_read_name(r);
            there |= 4;
        } else if (str_eq(key, STR("card"))) {
            p.card = (uint32_t)usage_read_u64(r, LIMIT_CARDS - 1);
            there |= 8;
        } else if (str_eq(key, STR("usedMiB"))) {
            p.used_mib = usage_read_u64(r, LIMIT_USAGE_MIB);
            there |= 16;
        } else {
            jread_skip(r);
        }
    }
    usage_need(r, there, names, COUNT_OF(names));
    return p;
}

static void usage_read_cards(struct jread *r, struct arena *a, struct usage_cards *list)
{
    *list = (struct usage_cards){.n = 0}; /* of repeated keys the last wins */
    jread_array (r) {
        struct usage_card c = usage_read_card(r);
        uint64_t bit = (uint64_t)1 << (c.index % 64);
        if (!jread_failed(r) && (list->seen[c.index / 64] & bit) != 0)
            jread_fail(r, ERR_SYNTAX, "index %u is there twice", c.index);
        list->seen[c.index / 64] |= bit;
        struct usage_card *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(c));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the cards");
            continue;
        }
        list->items = grown;
        list->items[list->n++] = c;
    }
}

static void usage_read_pods(struct jread *r, struct arena *a, struct usage_pods *list)
{
    *list = (struct usage_pods){.n = 0};
    jread_array (r) {
        struct usage_pod p = usage_read_pod(r);
        if (list->n == LIMIT_MEASURED_PODS) {
            jread_fail(r, ERR_RANGE, "more than %zu pods", LIMIT_MEASURED_PODS);
            continue;
        }
        struct usage_pod *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(p));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the pods");
            continue;
        }
        list->items = grown;
        list->items[list->n++] = p;
    }
}

static enum usage_difference_kind usage_read_kind(struct jread *r)
{
    struct str kind = jread_str(r);
    for (size_t i = 0; i < COUNT_OF(usage_kinds); i++) {
        if (str_eq(kind, usage_kinds[i]))
            return (enum usage_difference_kind)i;
    }
    struct str head = str_head(kind, 64);
    jread_fail(r, ERR_RANGE, "\"%.*s\" must be cards, owner or none", STR_ARG(head));
    return USAGE_DIFFERS_CARDS;
}

/* "0,2": it is shown to users, so nothing else may be in it. */
static struct str usage_read_card_list(struct jread *r)
{
    struct str list = jread_str(r);
    bool good = list.n <= LIMIT_USAGE_CARD_LIST;
    for (size_t i = 0; good && i < list.n; i++)
        good = list.p[i] == ',' || (list.p[i] >= '0' && list.p[i] <= '9');
    struct str head = str_head(list, 64);
    if (!good)
        jread_fail(r, ERR_SYNTAX, "\"%.*s\" is no list of cards", STR_ARG(head));
    return list;
}

static struct usage_difference usage_read_difference(struct jread *r)
{
    static const char *const names[] = {"namespace", "name",      "container",
                                        "kind",      "annotated", "given"};
    struct usage_difference d = {.namespace = STR_NULL};
    unsigned there = 0;
    struct str key;
    jread_object (r, key) {
        unsigned at = 0;
        while (at < COUNT_OF(names) && !str_eq(key, str_of(names[at])))
            at++;
        there |= 1U << at;
        switch (at) {
        case 0:
            d.namespace = usage_read_name(r);
            break;
        case 1:
            d.name = usage_read_name(r);
            break;
        case 2:
            d.container = usage_read_name(r);
            break;
        case 3:
            d.kind = usage_read_kind(r);
            break;
        case 4:
            d.annotated = usage_read_card_list(r);
            break;
        case 5:
            d.given = usage_read_card_list(r);
            break;
        default:
            jread_skip(r);
        }
    }
    usage_need(r, there, names, COUNT_OF(names));
    return d;
}

static void usage_read_differences(struct jread *r, struct arena *a, struct usage_differences *list)
{
    *list = (struct usage_differences){.n = 0};
    jread_array (r) {
        struct usage_difference d = usage_read_difference(r);
        if (list->n == LIMIT_USAGE_DIFFERENCES) {
            jread_fail(r, ERR_RANGE, "more than %zu containers", LIMIT_USAGE_DIFFERENCES);
            continue;
        }
        struct usage_difference *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(d));
        if (grown == NULL) {
            jread_fail(r, arena_fault(a), "no room for the differences");
            continue;
        }
        list->items = grown;
        list->items[list->n++] = d;
    }
}

enum errc usage_read(struct str text, struct arena *a, struct usage_view *ret, struct err *reterr)
{
    struct jread r;
    struct usage_cards cards = {.n = 0};
    struct usage_pods pods = {.n = 0};
    struct usage_differences differences = {.n = 0};
    struct usage_view v = {.asked = false};
    struct str seen = STR_NULL;
    struct str key;
    if (text.n > LIMIT_USAGE_TEXT)
        return err_set(reterr, ERR_RANGE, "has %zu bytes: %zu at most", text.n, LIMIT_USAGE_TEXT);
    jread_init(&r, text, a);
    jread_object (&r, key) {
        if (str_eq(key, STR("seen"))) {
            seen = usage_read_seen(&r);
        } else if (str_eq(key, STR("cards"))) {
            usage_read_cards(&r, a, &cards);
        } else if (str_eq(key, STR("pods"))) {
            usage_read_pods(&r, a, &pods);
        } else if (str_eq(key, STR("differences"))) {
            usage_read_differences(&r, a, &differences);
        } else if (str_eq(key, STR("compared"))) {
            v.compared = (uint32_t)usage_read_u64(&r, UINT32_MAX);
            v.asked = true;
        } else {
            jread_skip(&r);
        }
    }
    if (seen.p == NULL)
        jread_fail(&r, ERR_SYNTAX, "seen is missing");
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return code;
    v.seen = seen;
    v.cards = cards.items;
    v.n_cards = cards.n;
    v.pods = pods.items;
    v.n_pods = pods.n;
    v.differences = differences.items;
    v.n_differences = differences.n;
    *ret = v;
    return OK;
}
