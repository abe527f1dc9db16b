/*
 * Names and objects are read into lists of their own, and which of the two counts is decided at the
 * end: keys come in any order, doubled, and taken back by null. A list is read anew whenever its
 * key comes again.
 */
#include "extender.h"

#include "kube.h"

struct candidate_list {
    struct candidate *items;
    size_t n;
    size_t cap;
    bool given; /* and not as null */
};

static void candidate_add(struct jread *r, struct arena *a, struct candidate_list *list,
                          struct candidate c)
{
    struct candidate *grown = arena_grow(a, list->items, list->n, &list->cap, sizeof(c));
    if (grown == NULL) {
        jread_fail(r, arena_fault(a), "no room for the nodes of one request");
        return;
    }
    list->items = grown;
    list->items[list->n++] = c;
}

static void read_names(struct jread *r, struct arena *a, struct candidate_list *list)
{
    list->given = jread_type(r) != JTYPE_NULL;
    list->n = 0;
    jread_array (r) {
        struct str name = jread_str(r);
        candidate_add(r, a, list, (struct candidate){.name = name.p == NULL ? STR("") : name});
    }
}

/* r->at stands at the value's first byte after jread_type, and behind its last after reading it. */
static void read_items(struct jread *r, struct arena *a, struct candidate_list *list)
{
    list->n = 0;
    jread_array (r) {
        struct node_view node;
        (void)jread_type(r);
        const char *begin = r->at;
        kube_read_node(r, &node);
        struct candidate c = {.name = node.name, .object = {begin, (size_t)(r->at - begin)}};
        if (!jread_failed(r) && node.name.n == 0)
            jread_fail(r, ERR_SYNTAX, "a Node without metadata.name");
        candidate_add(r, a, list, c);
    }
}

static void read_nodes(struct jread *r, struct arena *a, struct candidate_list *list)
{
    struct str key;
    list->given = jread_type(r) != JTYPE_NULL;
    if (!list->given)
        list->n = 0;
    jread_object (r, key) {
        if (str_eq_nocase(key, STR("items")))
            read_items(r, a, list);
        else
            jread_skip(r);
    }
}

enum errc extender_read_filter(struct str body, struct arena *a, struct filter_args *ret,
                               struct err *reterr)
{
    struct jread r;
    struct str key;
    struct candidate_list names = {.n = 0};
    struct candidate_list nodes = {.n = 0};
    *ret = (struct filter_args){.has_pod = false};
    jread_init(&r, body, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be a JSON object");
    jread_object (&r, key) {
        if (str_eq_nocase(key, STR("Pod"))) {
            ret->has_pod = jread_type(&r) == JTYPE_OBJECT;
            kube_read_pod(&r, a, &ret->pod);
        } else if (str_eq_nocase(key, STR("NodeNames"))) {
            read_names(&r, a, &names);
        } else if (str_eq_nocase(key, STR("Nodes"))) {
            read_nodes(&r, a, &nodes);
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
    ret->by_name = names.given;
    ret->candidates = names.given ? names.items : nodes.items;
    ret->n = names.given ? names.n : nodes.n;
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
    jwrite_str(&w, error);
    jwrite_object_end(&w);
}

static void write_failed(struct jwrite *w, const struct filter_args *args, filter_answer_fn *answer,
                         void *ctx, bool unresolvable_only)
{
    jwrite_object_begin(w);
    for (size_t i = 0; i < args->n; i++) {
        struct filter_answer a = answer(ctx, i);
        if (a.fits || (unresolvable_only && !a.unresolvable))
            continue;
        jwrite_key(w, args->candidates[i].name);
        jwrite_str(w, a.reason);
    }
    jwrite_object_end(w);
}

static void write_fitting(struct jwrite *w, const struct filter_args *args,
                          filter_answer_fn *answer, void *ctx)
{
    jwrite_array_begin(w);
    for (size_t i = 0; i < args->n; i++) {
        if (!answer(ctx, i).fits)
            continue;
        if (args->by_name)
            jwrite_str(w, args->candidates[i].name);
        else
            jwrite_raw(w, args->candidates[i].object);
    }
    jwrite_array_end(w);
}

void extender_write_filter(struct buf *out, const struct filter_args *args,
                           filter_answer_fn *answer, void *ctx)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Nodes"));
    if (args->by_name) {
        jwrite_null(&w);
        jwrite_key(&w, STR("NodeNames"));
        write_fitting(&w, args, answer, ctx);
    } else {
        jwrite_object_begin(&w);
        jwrite_key(&w, STR("metadata"));
        jwrite_raw(&w, STR("{}"));
        jwrite_key(&w, STR("items"));
        write_fitting(&w, args, answer, ctx);
        jwrite_object_end(&w);
        jwrite_key(&w, STR("NodeNames"));
        jwrite_null(&w);
    }
    jwrite_key(&w, STR("FailedNodes"));
    write_failed(&w, args, answer, ctx, false);
    jwrite_key(&w, STR("FailedAndUnresolvableNodes"));
    write_failed(&w, args, answer, ctx, true);
    jwrite_key(&w, STR("Error"));
    jwrite_str(&w, STR(""));
    jwrite_object_end(&w);
}

void extender_write_bind(struct buf *out, struct str error)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Error"));
    jwrite_str(&w, error);
    jwrite_object_end(&w);
}
