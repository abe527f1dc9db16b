/*
 * Reads and writes the JSON of filter, prioritize and bind. Names and objects are read into two
 * lists, and the choice between them is made at the end: keys may come in any order, may be
 * repeated, and null may take back an earlier value. A repeated key replaces its list.
 */
#include "codec/extender.h"

#include "codec/kube.h"
#include "codec/limit.h"

/* Reasons of one answer that are not made again. */
#define WRITTEN_TEXTS 64

/* What an entry of a HostPriorityList has beside its name. */
#define PRIORITY_BYTES (sizeof("{\"Host\":,\"Score\":255}"))

struct str_list {
    struct str *items;
    size_t n;
    size_t cap;
};

/* The candidates in one of the two forms: NodeNames or Nodes. */
struct candidates {
    struct str_list names;
    struct str_list objects;
    bool plain; /* see filter_args.plain */
    bool given; /* present and not null */
};

/* Makes room for at least one more entry; otherwise the reader has failed. */
static bool extender_str_list_grow(struct jread *r, struct arena *a, struct str_list *list)
{
    if (list->n > LIMIT_CANDIDATES) {
        jread_fail(r, ERR_RANGE, "more than %zu nodes", LIMIT_CANDIDATES);
        return false;
    }
    struct str *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(*grown));
    if (grown == NULL)
        jread_fail(r, arena_fault(a), "no room for the nodes of one request");
    else
        list->items = grown;
    return grown != NULL;
}

static void extender_str_list_add(struct jread *r, struct arena *a, struct str_list *list,
                                  struct str s)
{
    if (extender_str_list_grow(r, a, list))
        list->items[list->n++] = s;
}

/* Most names are plain and are read in runs. A name that is not plain ends a run. */
static void extender_read_names(struct jread *r, struct arena *a, struct candidates *c)
{
    struct str_list *list = &c->names;
    c->given = jread_type(r) != JTYPE_NULL;
    list->n = 0;
    c->plain = false;
    if (!jread_array_begin(r))
        return;
    c->plain = true;
    while (extender_str_list_grow(r, a, list)) {
        list->n += jread_str_run(r, list->items + list->n, list->cap - list->n);
        if (list->n == list->cap)
            continue;
        if (!jread_array_next(r))
            return;
        c->plain = false;
        struct str name = jread_str(r);
        list->items[list->n++] = name.p == NULL ? STR("") : name;
    }
}

/* After jread_type, r->at is at the value's first byte; after the read it is behind the last. */
static void extender_read_items(struct jread *r, struct arena *a, struct candidates *c)
{
    c->names.n = 0;
    c->objects.n = 0;
    jread_array (r) {
        (void)jread_type(r);
        const char *begin = r->at;
        struct str name = kube_read_name(r);
        if (!jread_failed(r) && name.n == 0)
            jread_fail(r, ERR_SYNTAX, "a Node without metadata.name");
        extender_str_list_add(r, a, &c->names, name);
        extender_str_list_add(r, a, &c->objects, (struct str){begin, (size_t)(r->at - begin)});
    }
}

static void extender_read_nodes(struct jread *r, struct arena *a, struct candidates *c)
{
    struct str key;
    c->given = jread_type(r) != JTYPE_NULL;
    if (!c->given)
        c->names.n = 0;
    jread_object (r, key) {
        if (str_eq_nocase(key, STR("items")))
            extender_read_items(r, a, c);
        else
            jread_skip(r);
    }
}

enum errc extender_read_filter(struct str body, struct arena *a, struct filter_args *ret,
                               struct err *reterr)
{
    struct jread r;
    struct str key;
    struct candidates names = {.given = false};
    struct candidates nodes = {.given = false};
    *ret = (struct filter_args){.has_pod = false};
    jread_init(&r, body, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be a JSON object");
    jread_object (&r, key) {
        if (str_eq_nocase(key, STR("Pod"))) {
            ret->has_pod = jread_type(&r) == JTYPE_OBJECT;
            kube_read_pod(&r, a, &ret->pod);
        } else if (str_eq_nocase(key, STR("NodeNames"))) {
            extender_read_names(&r, a, &names);
        } else if (str_eq_nocase(key, STR("Nodes"))) {
            extender_read_nodes(&r, a, &nodes);
        } else {
            jread_skip(&r);
        }
    }
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return err_wrap(reterr, "ExtenderArgs");
    if (!ret->has_pod)
        return err_set(reterr, ERR_SYNTAX, "ExtenderArgs: arg or pod is nil");
    if (!names.given && !nodes.given)
        return err_set(reterr, ERR_SYNTAX,
                       "ExtenderArgs: cannot get node names: Nodes and NodeNames "
                       "are both absent");
    const struct candidates *given = names.given ? &names : &nodes;
    if (given->names.n > LIMIT_CANDIDATES)
        return err_set(reterr, ERR_RANGE, "ExtenderArgs: %s has %zu nodes: %zu at most",
                       names.given ? "NodeNames" : "Nodes", given->names.n, LIMIT_CANDIDATES);
    ret->by_name = names.given;
    ret->plain = given->plain;
    ret->names = given->names.items;
    ret->objects = given->objects.items;
    ret->n = given->names.n;
    return OK;
}

enum errc extender_read_bind(struct str body, struct arena *a, struct bind_args *ret,
                             struct err *reterr)
{
    struct jread r;
    struct str key;
    *ret = (struct bind_args){.name = STR_NULL};
    jread_init(&r, body, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be a JSON object");
    jread_object (&r, key) {
        if (str_eq_nocase(key, STR("PodName")))
            ret->name = jread_str(&r);
        else if (str_eq_nocase(key, STR("PodNamespace")))
            ret->namespace = jread_str(&r);
        else if (str_eq_nocase(key, STR("PodUID")))
            ret->uid = jread_str(&r);
        else if (str_eq_nocase(key, STR("Node")))
            ret->node = jread_str(&r);
        else
            jread_skip(&r);
    }
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return err_wrap(reterr, "ExtenderBindingArgs");

    const struct {
        const char *field;
        struct str value;
    } required[] = {
        {"PodName", ret->name},
        {"PodNamespace", ret->namespace},
        {"PodUID", ret->uid},
        {"Node", ret->node},
    };

    for (size_t i = 0; i < COUNT_OF(required); i++) {
        if (required[i].value.n == 0)
            return err_set(reterr, ERR_SYNTAX, "ExtenderBindingArgs: %s is empty",
                           required[i].field);
    }
    return OK;
}

/*
 * Writes a text that kube-scheduler shows to users. It uses the text as a format without arguments:
 * up to 1.36 at least for the event (EventRecorder.Eventf), and 1.20 also when it makes an error of
 * the text (fmt.Errorf). A reason that quotes the annotation "25%" would reach the user as
 * 25%!"(MISSING). "%%" does not help: the pod's condition shows the text without formatting.
 */
static void extender_write_reason(struct jwrite *w, struct str text)
{
    if (text.n == 0 || memchr(text.p, '%', text.n) == NULL)
        jwrite_str(w, text);
    else
        jwrite_str_replacing(w, text, '%', STR(" percent"));
}

void extender_write_filter_error(struct buf *out, struct str error)
{
    static const char *const empty[] = {"Nodes", "NodeNames", "FailedNodes",
                                        "FailedAndUnresolvableNodes"};
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        jwrite_key(&w, str_of(empty[i]));
        jwrite_null(&w);
    }
    jwrite_key(&w, STR("Error"));
    extender_write_reason(&w, error);
    jwrite_object_end(&w);
}

/* A plain name with its quotes, which are in the body around it. */
static struct str extender_quoted(struct str name)
{
    return (struct str){name.p - 1, name.n + 2};
}

static void extender_write_key(struct jwrite *w, const struct filter_args *args, size_t i)
{
    if (!args->plain)
        jwrite_key(w, args->names[i]);
    else
        jwrite_raw_key(w, extender_quoted(args->names[i]));
}

/* A reason that was written already. */
struct written {
    unsigned same; /* its number; 0: none */
    size_t at;     /* where its JSON is in the answer */
    size_t n;
};

static void extender_write_refusal(struct jwrite *w, const struct filter_args *args, size_t i,
                                   struct str text, struct written *before)
{
    extender_write_key(w, args, i);
    before->at = w->out->n;
    extender_write_reason(w, text);
    before->n = w->out->n - before->at;
}

static void extender_write_refused(struct jwrite *w, const struct filter_args *args,
                                   const unsigned char *offers, enum offer from,
                                   filter_reason_fn *reason, void *ctx)
{
    struct written texts[WRITTEN_TEXTS] = {{.same = 0}};
    unsigned char most = 0;
    jwrite_object_begin(w);
    for (size_t i = 0; i < args->n; i++)
        most = MAX_OF(most, offers[i]);
    for (size_t i = 0; most >= from && i < args->n; i++) {
        unsigned same = 0;
        if (offers[i] < from)
            continue;
        struct str text = reason(ctx, i, &same);
        struct written *before = &texts[same % WRITTEN_TEXTS];
        if (same > 0 && before->same == same && args->plain) {
            jwrite_raw_key_again(w, extender_quoted(args->names[i]), before->at, before->n);
        } else {
            extender_write_refusal(w, args, i, text, before);
            before->same = same;
        }
    }
    jwrite_object_end(w);
}

/*
 * Adjacent offered names are copied at once. Often all candidates are offered; then this is one
 * copy of the received list.
 */
static void extender_write_names(struct jwrite *w, const struct filter_args *args,
                                 const unsigned char *offers)
{
    for (size_t i = 0; i < args->n; i++) {
        if (offers[i] != OFFER_FITS)
            continue;
        const struct str *first = &args->names[i];
        if (!args->plain) {
            jwrite_str(w, *first);
            continue;
        }
        while (i + 1 < args->n && offers[i + 1] == OFFER_FITS)
            i++;
        const char *end = args->names[i].p + args->names[i].n + 1;
        jwrite_raw(w, (struct str){first->p - 1, (size_t)(end - (first->p - 1))});
    }
}

static void extender_write_objects(struct jwrite *w, const struct filter_args *args,
                                   const unsigned char *offers)
{
    for (size_t i = 0; i < args->n; i++) {
        if (offers[i] == OFFER_FITS)
            jwrite_raw(w, args->objects[i]);
    }
}

void extender_write_filter(struct buf *out, const struct filter_args *args,
                           const unsigned char *offers, filter_reason_fn *reason, void *ctx)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Nodes"));
    if (args->by_name) {
        jwrite_null(&w);
        jwrite_key(&w, STR("NodeNames"));
        jwrite_array_begin(&w);
        extender_write_names(&w, args, offers);
        jwrite_array_end(&w);
    } else {
        jwrite_object_begin(&w);
        jwrite_key(&w, STR("metadata"));
        jwrite_raw(&w, STR("{}"));
        jwrite_key(&w, STR("items"));
        jwrite_array_begin(&w);
        extender_write_objects(&w, args, offers);
        jwrite_array_end(&w);
        jwrite_object_end(&w);
        jwrite_key(&w, STR("NodeNames"));
        jwrite_null(&w);
    }
    jwrite_key(&w, STR("FailedNodes"));
    extender_write_refused(&w, args, offers, OFFER_REFUSED, reason, ctx);
    jwrite_key(&w, STR("FailedAndUnresolvableNodes"));
    extender_write_refused(&w, args, offers, OFFER_UNRESOLVABLE, reason, ctx);
    jwrite_key(&w, STR("Error"));
    jwrite_str(&w, STR(""));
    jwrite_object_end(&w);
}

static char *extender_copy(char *to, struct str s)
{
    memcpy(to, s.p, s.n);
    return to + s.n;
}

/* An entry is written in one piece; ranks have one or two digits. */
static void extender_write_rank(struct buf *out, struct str host, unsigned char score)
{
    if (!buf_reserve(out, host.n + PRIORITY_BYTES))
        return;
    char *to = extender_copy(out->p + out->n, STR("{\"Host\":"));
    to = extender_copy(to, host);
    to = extender_copy(to, STR(",\"Score\":"));
    if (score >= 100)
        *to++ = (char)('0' + score / 100);
    if (score >= 10)
        *to++ = (char)('0' + score / 10 % 10);
    *to++ = (char)('0' + score % 10);
    *to++ = '}';
    out->n = (size_t)(to - out->p);
}

void extender_write_priorities(struct buf *out, const struct filter_args *args,
                               const unsigned char *scores)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < args->n; i++) {
        if (i > 0)
            buf_putc(out, ',');
        if (args->plain) {
            extender_write_rank(out, extender_quoted(args->names[i]), scores[i]);
            continue;
        }
        struct jwrite name;
        jwrite_init(&name, out);
        buf_put(out, STR("{\"Host\":"));
        jwrite_str(&name, args->names[i]);
        buf_put(out, STR(",\"Score\":"));
        buf_put_u64(out, scores[i]);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

void extender_write_no_priorities(struct buf *out)
{
    buf_put(out, STR("[]"));
}

void extender_write_bind(struct buf *out, struct str error)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Error"));
    extender_write_reason(&w, error);
    jwrite_object_end(&w);
}
