/*
 * Reads the victims and writes the answer. Both forms are read into two lists, and the choice is
 * made at the end, as in extender.c: keys may come in any order, may be repeated, and null may take
 * back an earlier value. All UIDs of one form share a growing array. A node's pointer into that
 * array is set at the end, because the array may move until then.
 *
 * Go writes a map in the order of its keys, so kube-scheduler's nodes need no sort. Nodes from
 * another sender are sorted here. Of repeated names the last counts, as in Go's map. Sorting finds
 * them without a quadratic search.
 */
#include "extender/extender_preempt.h"

#include "extender/limit.h"
#include "objects/kube.h"

struct victim_list {
    struct node_victims *nodes;
    size_t n_nodes;
    size_t cap_nodes;
    struct str *uids;
    size_t n_uids;
    size_t cap_uids;
    bool given; /* present and not null */
    bool ordered;
};

/* Reads one victim and returns its UID. */
typedef struct str victim_fn(struct jread *r);

static struct str extender_preempt_read_meta_victim(struct jread *r)
{
    struct str uid = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq_nocase(key, STR("UID")))
            uid = jread_str(r);
        else
            jread_skip(r);
    }
    if (uid.n == 0)
        jread_fail(r, ERR_SYNTAX, "a victim without UID");
    return uid;
}

static struct str extender_preempt_read_whole_victim(struct jread *r)
{
    struct str uid = kube_read_of(r, STR("metadata"), STR("uid"));
    if (uid.n == 0)
        jread_fail(r, ERR_SYNTAX, "a victim without metadata.uid");
    return uid;
}

static void extender_preempt_uid_add(struct jread *r, struct arena *a, struct victim_list *list,
                                     struct str uid)
{
    if (list->n_uids == LIMIT_CANDIDATES)
        jread_fail(r, ERR_RANGE, "more than %zu victims", LIMIT_CANDIDATES);
    struct str *grown = arena_grow(a, list->uids, list->n_uids, &list->cap_uids, sizeof(uid));
    if (grown == NULL) {
        jread_fail(r, arena_fault(a), "no room for the victims of one request");
        return;
    }
    list->uids = grown;
    list->uids[list->n_uids++] = uid;
}

static void extender_preempt_node_add(struct jread *r, struct arena *a, struct victim_list *list,
                                      struct node_victims node)
{
    if (list->n_nodes == LIMIT_CANDIDATES)
        jread_fail(r, ERR_RANGE, "more than %zu nodes", LIMIT_CANDIDATES);
    struct node_victims *grown =
        arena_grow(a, list->nodes, list->n_nodes, &list->cap_nodes, sizeof(node));
    if (grown == NULL) {
        jread_fail(r, arena_fault(a), "no room for the nodes of one request");
        return;
    }
    list->nodes = grown;
    if (list->n_nodes > 0 && str_cmp(grown[list->n_nodes - 1].node, node.node) >= 0)
        list->ordered = false;
    grown[list->n_nodes++] = node;
}

static void extender_preempt_read_node(struct jread *r, struct arena *a, victim_fn *read_victim,
                                       struct victim_list *list, struct str name)
{
    struct node_victims node = {.node = name};
    size_t first = list->n_uids;
    struct str key;
    jread_object (r, key) {
        if (str_eq_nocase(key, STR("Pods"))) {
            list->n_uids = first;
            jread_array (r)
                extender_preempt_uid_add(r, a, list, read_victim(r));
        } else if (str_eq_nocase(key, STR("NumPDBViolations"))) {
            node.num_pdb_violations = jread_i64(r);
        } else {
            jread_skip(r);
        }
    }
    node.n = list->n_uids - first;
    if (name.n == 0)
        jread_fail(r, ERR_SYNTAX, "victims of a node without a name");
    extender_preempt_node_add(r, a, list, node);
}

static void extender_preempt_read_victims(struct jread *r, struct arena *a, victim_fn *read_victim,
                                          struct victim_list *list)
{
    struct str name;
    list->given = jread_type(r) != JTYPE_NULL;
    list->ordered = true;
    list->n_nodes = list->n_uids = 0;
    jread_object (r, name)
        extender_preempt_read_node(r, a, read_victim, list, name);
}

/* Merges the runs [0, middle) and [middle, n) of `from` into `to`; equal names keep their order. */
static void extender_preempt_merge(const struct node_victims *from, size_t middle, size_t n,
                                   struct node_victims *to)
{
    size_t left = 0;
    size_t right = middle;
    for (size_t i = 0; i < n; i++) {
        bool take_right =
            right < n && (left == middle || str_cmp(from[right].node, from[left].node) < 0);
        to[i] = from[take_right ? right++ : left++];
    }
}

/* Sorts by name; of equal names keeps the last. False: no memory. */
static bool extender_preempt_sort_nodes(struct arena *a, struct victim_list *list)
{
    size_t n = list->n_nodes;
    struct node_victims *from = list->nodes;
    struct node_victims *to = arena_array(a, n, sizeof(*to));
    if (to == NULL)
        return false;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run)
            extender_preempt_merge(from + at, MIN_OF(run, n - at), MIN_OF(2 * run, n - at),
                                   to + at);
        struct node_victims *sorted = to;
        to = from;
        from = sorted;
    }
    list->nodes = from;
    list->n_nodes = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || !str_eq(from[i].node, from[i + 1].node))
            from[list->n_nodes++] = from[i];
    }
    return true;
}

static enum errc extender_preempt_finish(struct arena *a, struct victim_list *list,
                                         struct preempt_args *ret, struct err *reterr)
{
    /* Before the sort: in reading order, each node's UIDs follow those of the node before. */
    for (size_t i = 0, first = 0; i < list->n_nodes; i++) {
        list->nodes[i].uids = list->nodes[i].n == 0 ? NULL : list->uids + first;
        first += list->nodes[i].n;
    }
    if (!list->ordered && !extender_preempt_sort_nodes(a, list))
        return err_set(reterr, arena_fault(a),
                       "ExtenderPreemptionArgs: no room for the nodes of one request");
    ret->nodes = list->nodes;
    ret->n = list->n_nodes;
    return OK;
}

/*
 * If both forms are present, the UIDs win, as NodeNames do in a filter request: a kube-scheduler
 * that sends UIDs (nodeCacheCapable) also reads them, and every answer has them.
 */
enum errc extender_preempt_read(struct str body, struct arena *a, struct preempt_args *ret,
                                struct err *reterr)
{
    struct jread r;
    struct str key;
    struct victim_list whole = {.given = false};
    struct victim_list meta = {.given = false};
    bool has_pod = false;
    *ret = (struct preempt_args){.n = 0};
    jread_init(&r, body, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be a JSON object");
    jread_object (&r, key) {
        if (str_eq_nocase(key, STR("Pod"))) {
            has_pod = jread_type(&r) == JTYPE_OBJECT;
            kube_read_pod(&r, a, &ret->pod);
        } else if (str_eq_nocase(key, STR("NodeNameToVictims"))) {
            extender_preempt_read_victims(&r, a, extender_preempt_read_whole_victim, &whole);
        } else if (str_eq_nocase(key, STR("NodeNameToMetaVictims"))) {
            extender_preempt_read_victims(&r, a, extender_preempt_read_meta_victim, &meta);
        } else {
            jread_skip(&r);
        }
    }
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return err_wrap(reterr, "ExtenderPreemptionArgs");
    if (!has_pod)
        return err_set(reterr, ERR_SYNTAX, "ExtenderPreemptionArgs: Pod is absent");
    if (!meta.given && !whole.given)
        return err_set(reterr, ERR_SYNTAX,
                       "ExtenderPreemptionArgs: NodeNameToVictims and NodeNameToMetaVictims are "
                       "both absent");
    return extender_preempt_finish(a, meta.given ? &meta : &whole, ret, reterr);
}

static void extender_preempt_write_node(struct jwrite *w, const struct node_victims *node)
{
    jwrite_object_at(w, node->node);
    jwrite_array_at(w, STR("Pods"));
    for (size_t i = 0; i < node->n; i++) {
        assert(node->uids[i].n > 0);
        jwrite_object_begin(w);
        jwrite_str_at(w, STR("UID"), node->uids[i]);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
    jwrite_i64_at(w, STR("NumPDBViolations"), node->num_pdb_violations);
    jwrite_object_end(w);
}

void extender_preempt_write(struct buf *out, const struct node_victims *nodes, size_t n)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_object_at(&w, STR("NodeNameToMetaVictims"));
    for (size_t i = 0; i < n; i++) {
        if (nodes[i].n > 0)
            extender_preempt_write_node(&w, &nodes[i]);
    }
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}
