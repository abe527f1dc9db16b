/*
 * Finds the pod in a file's documents by their raw JSON members. The pod is passed on unchanged
 * except for its namespace: its content is decoded by kube_read_pod, here or in the daemon.
 */
#include "kubectl/pod_file.h"

#include "base/buf.h"
#include "core/limit.h"
#include "json/jread.h"
#include "json/jwrite.h"
#include "json/yaml.h"

#include <stdlib.h>

static const struct maker {
    const char *kind;
    const char *path[4]; /* to the pod template; empty: the object is a pod */
    const char *replicas;
} makers[] = {
    {"Pod", {NULL}, NULL},
    {"Deployment", {"spec", "template"}, "replicas"},
    {"StatefulSet", {"spec", "template"}, "replicas"},
    {"ReplicaSet", {"spec", "template"}, "replicas"},
    {"ReplicationController", {"spec", "template"}, "replicas"},
    {"DaemonSet", {"spec", "template"}, NULL},
    {"Job", {"spec", "template"}, "parallelism"},
    {"CronJob", {"spec", "jobTemplate", "spec", "template"}, "parallelism"},
    {"PodTemplate", {"template"}, NULL},
};

struct object {
    struct str json;
    struct str kind;
    struct str name;
    struct str namespace;
    struct str items;          /* of a list: its raw array; absent: no list */
    const struct maker *maker; /* NULL: its kind makes no pods */
};

struct search {
    struct arena *arena;
    struct err *err;
    struct object found;
    unsigned makes_pods; /* number of objects that make pods */
    unsigned documents;
    char seen[160]; /* kinds and names of the objects, for errors */
    struct buf list;
};

static void pod_file_read_metadata(struct jread *r, struct object *o)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            o->name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            o->namespace = jread_str(r);
        else
            jread_skip(r);
    }
}

/* `kind` is for an object that does not name its own. */
static enum errc pod_file_read_one_object(struct search *s, struct str json, struct str kind,
                                          struct object *ret)
{
    struct object o = {.json = json};
    struct jread r;
    struct str key;
    jread_init(&r, json, s->arena);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "must be an object");
    jread_object (&r, key) {
        if (str_eq(key, STR("kind")))
            o.kind = jread_str(&r);
        else if (str_eq(key, STR("metadata")))
            pod_file_read_metadata(&r, &o);
        else if (str_eq(key, STR("items")) && jread_type(&r) == JTYPE_ARRAY)
            o.items = jread_raw(&r);
        else
            jread_skip(&r);
    }
    o.kind = o.kind.n == 0 ? kind : o.kind;
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        if (str_eq(o.kind, str_of(makers[i].kind)))
            o.maker = &makers[i];
    }
    *ret = o;
    return jread_finish(&r, s->err);
}

static void pod_file_count_object(struct search *s, const struct object *o)
{
    s->documents++;
    buf_printf(&s->list, "%s%.*s \"%.*s\"", s->list.n == 0 ? "" : ", ", STR_ARG(o->kind),
               STR_ARG(o->name.p == NULL ? STR("") : o->name));
    if (o->maker == NULL)
        return;
    s->makes_pods++;
    s->found = *o;
}

/* The objects of kind List, or of a kind such as DeploymentList, whose items have no kind. A list
 * in a list counts as an object that makes no pods. */
static enum errc pod_file_take_list(struct search *s, const struct object *list)
{
    struct str kind = str_head(list->kind, list->kind.n - STR("List").n);
    struct jread r;
    enum errc code = OK;
    jread_init(&r, list->items, s->arena);
    jread_array (&r) {
        struct object o;
        struct str json = jread_raw(&r);
        if (code != OK || jread_failed(&r))
            continue;
        code = pod_file_read_one_object(s, json, kind.n == 0 ? STR("Pod") : kind, &o);
        if (code == OK)
            pod_file_count_object(s, &o);
    }
    return code == OK ? jread_finish(&r, s->err) : code;
}

static enum errc pod_file_take_document(struct search *s, struct str json)
{
    struct object o;
    enum errc code = pod_file_read_one_object(s, json, STR("Pod"), &o);
    if (code == OK && o.items.p != NULL && str_ends(o.kind, STR("List")))
        return pod_file_take_list(s, &o);
    if (code == OK)
        pod_file_count_object(s, &o);
    return code;
}

/* Finds the object that makes pods; fails if there is none or more than one. */
static enum errc pod_file_find_object(struct search *s, struct str lines)
{
    s->list = BUF_ON(s->seen);
    for (struct str line; lines.n > 0;) {
        (void)str_cut(lines, '\n', &line, &lines);
        enum errc code = line.n == 0 ? OK : pod_file_take_document(s, line);
        if (code != OK)
            return code;
    }
    if (s->makes_pods == 1)
        return OK;
    if (s->documents == 0)
        return err_set(s->err, ERR_SYNTAX, "it is empty");
    return err_set(s->err, ERR_SYNTAX, "%s: %.*s%s",
                   s->makes_pods == 0 ? "nothing in it is a Pod or makes pods"
                                      : "more than one object makes pods",
                   STR_ARG(buf_str(&s->list)), buf_failed(&s->list) ? ", ..." : "");
}

/* The raw JSON of a member; absent: no such member, or null. */
static struct str pod_file_member(struct str json, struct str name, struct arena *a)
{
    struct jread r;
    struct str key;
    struct str raw = STR_NULL;
    jread_init(&r, json, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        return STR_NULL;
    jread_object (&r, key) {
        bool is = str_eq(key, name) && jread_type(&r) != JTYPE_NULL;
        struct str value = jread_raw(&r);
        raw = is ? value : raw;
    }
    return raw;
}

/* The field beside the template, such as spec.replicas. Without it *ret is not changed; a value
 * other than 1 to LIMIT_WHATIF_REPLICAS is an error. */
static enum errc pod_file_read_replicas(struct search *s, struct str holder, uint32_t *ret)
{
    uint64_t n = 0;
    const char *field = s->found.maker->replicas;
    struct str raw = field == NULL ? STR_NULL : pod_file_member(holder, str_of(field), s->arena);
    if (raw.p == NULL)
        return OK;
    if (!str_to_u64(raw, LIMIT_WHATIF_REPLICAS, &n) || n == 0)
        return err_set(s->err, ERR_RANGE, "%.*s \"%.*s\": spec.%s: %.*s must be 1 to %d",
                       STR_ARG(s->found.kind), STR_ARG(s->found.name), field,
                       (int)MIN_OF(raw.n, (size_t)40), raw.p, LIMIT_WHATIF_REPLICAS);
    *ret = (uint32_t)n;
    return OK;
}

static enum errc pod_file_find_template(struct search *s, struct str *ret_pod,
                                        uint32_t *ret_replicas)
{
    const struct maker *m = s->found.maker;
    struct str at = s->found.json;
    struct str holder = STR_NULL;
    char path[64];
    struct buf b = BUF_ON(path);
    assert(m != NULL);
    for (size_t i = 0; i < COUNT_OF(m->path) && m->path[i] != NULL; i++) {
        buf_printf(&b, "%s%s", i == 0 ? "" : ".", m->path[i]);
        holder = at;
        at = pod_file_member(at, str_of(m->path[i]), s->arena);
        if (at.p == NULL || at.p[0] != '{')
            return err_set(s->err, ERR_SYNTAX, "%.*s \"%.*s\": %.*s %s", STR_ARG(s->found.kind),
                           STR_ARG(s->found.name), STR_ARG(buf_str(&b)),
                           at.p == NULL ? "is missing" : "must be an object");
    }
    *ret_pod = at;
    return holder.p == NULL ? OK : pod_file_read_replicas(s, holder, ret_replicas);
}

static void pod_file_write_metadata(struct jwrite *w, struct jread *r, struct str namespace)
{
    struct str key;
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("namespace"), namespace);
    if (jread_type(r) == JTYPE_NULL) {
        jread_skip(r);
    } else {
        jread_object (r, key) {
            struct str raw = jread_raw(r);
            if (str_eq(key, STR("namespace")))
                continue;
            jwrite_raw_at(w, key, raw);
        }
    }
    jwrite_object_end(w);
}

/* The pod as JSON with `namespace` in its metadata: a template has none. */
static enum errc pod_file_write_pod(struct search *s, struct str pod, struct str namespace,
                                    struct str *ret)
{
    struct jread r;
    struct jread none;
    struct jwrite w;
    struct str key;
    struct buf out;
    bool done = false;
    buf_init(&out, LIMIT_OBJECT_BYTES);
    jwrite_init(&w, &out);
    jread_init(&r, pod, s->arena);
    jread_init(&none, STR("null"), NULL);
    jwrite_object_begin(&w);
    jread_object (&r, key) {
        bool metadata = str_eq(key, STR("metadata"));
        jwrite_key(&w, key);
        if (metadata)
            pod_file_write_metadata(&w, &r, namespace);
        else
            jwrite_raw(&w, jread_raw(&r));
        done = done || metadata;
    }
    if (!done) {
        jwrite_key(&w, STR("metadata"));
        pod_file_write_metadata(&w, &none, namespace);
    }
    jwrite_object_end(&w);
    enum errc code = jread_finish(&r, s->err);
    if (code == OK) {
        *ret = buf_failed(&out) ? STR_NULL : arena_dup(s->arena, buf_str(&out));
        code = ret->p == NULL ? err_set(s->err, ERR_LIMIT, "it is too large") : OK;
    }
    buf_done(&out);
    return code;
}

static enum errc pod_file_choose_namespace(struct search *s, struct str asked, struct str *ret)
{
    struct str own = s->found.namespace;
    if (own.n > 0 && asked.n > 0 && !str_eq(own, asked))
        return err_set(s->err, ERR_CONFLICT,
                       "%.*s \"%.*s\": metadata.namespace is \"%.*s\", and --namespace \"%.*s\"",
                       STR_ARG(s->found.kind), STR_ARG(s->found.name), STR_ARG(own),
                       STR_ARG(asked));
    *ret = own.n > 0 ? own : asked;
    return OK;
}

static enum errc pod_file_read_lines(struct search *s, struct str text, struct str asked,
                                     struct kubectl_pod *ret)
{
    struct buf lines;
    struct str pod = STR_NULL;
    struct kubectl_pod p = {.replicas = 1};
    buf_init(&lines, LIMIT_OBJECT_BYTES);
    enum errc code = yaml_to_json_lines(text, &lines, s->err);
    struct str copy = code == OK ? arena_dup(s->arena, buf_str(&lines)) : STR_NULL;
    buf_done(&lines);
    if (code == OK && copy.p == NULL)
        code = err_set(s->err, arena_fault(s->arena), "it is too large");
    if (code == OK)
        code = pod_file_find_object(s, copy);
    if (code == OK)
        code = pod_file_find_template(s, &pod, &p.replicas);
    if (code == OK)
        code = pod_file_choose_namespace(s, asked, &p.namespace);
    if (code == OK)
        code = pod_file_write_pod(s, pod, p.namespace, &p.json);
    p.kind = s->found.kind;
    p.name = s->found.name;
    if (code == OK)
        *ret = p;
    return code;
}

enum errc kubectl_pod_read(struct str text, struct str path, struct str asked, struct arena *a,
                           struct kubectl_pod *ret, struct err *reterr)
{
    struct err why = ERR_INIT;
    struct search s = {.arena = a, .err = &why};
    enum errc code = pod_file_read_lines(&s, text, asked, ret);
    return code == OK
               ? OK
               : err_set(reterr, code, "%.*s: %s",
                         STR_ARG(str_eq(path, STR("-")) ? STR("standard input") : path), why.text);
}
