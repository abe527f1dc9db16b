/*
 * Reads the JSON of filter, prioritize and bind. Names and objects are read into two lists, and the
 * choice between them is made at the end: keys may come in any order, may be repeated, and null may
 * take back an earlier value. A repeated key replaces its list.
 */
#include "extender/extender.h"

#include "extender/limit.h"
#include "objects/kube.h"

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
    c->plain = jread_array_begin(r);
    if (!c->plain)
        return;
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
        struct str name = kube_read_of(r, STR("metadata"), STR("name"));
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
