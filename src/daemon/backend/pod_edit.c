/* Copies the Pod member by member as raw JSON, and replaces only the members that change. */
#include "daemon/backend/pod_edit.h"

#include "core/request/request.h"

static bool pod_edit_is_one_of(struct str key, const struct str *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(key, names[i]))
            return true;
    }
    return false;
}

/* The binding's metadata.annotations as JSON; absent where it has none. */
static struct str pod_edit_binding_annotations(const struct binding *b, struct arena *a,
                                               struct buf *scratch)
{
    struct jwrite w;
    struct jread r;
    struct str key;
    struct str field;
    struct str found = STR_NULL;
    buf_clear(scratch, SIZE_MAX);
    jwrite_init(&w, scratch);
    kube_write_binding(&w, b);
    jread_init(&r, buf_str(scratch), a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("metadata"))) {
            jread_skip(&r);
            continue;
        }
        jread_object (&r, field) {
            if (str_eq(field, STR("annotations")))
                found = jread_raw(&r);
            else
                jread_skip(&r);
        }
    }
    return found;
}

/* Writes the members of `object` that `over` does not have. */
static void pod_edit_copy_beneath(struct jwrite *w, struct arena *a, struct str object,
                                  struct str over)
{
    struct str names[REQUEST_DEMANDS_MAX + 8];
    size_t n = 0;
    struct jread r;
    struct str key;
    jread_init(&r, over, a);
    jread_object (&r, key) {
        if (n < COUNT_OF(names))
            names[n++] = key;
        jread_skip(&r);
    }
    jread_init(&r, object, a);
    jread_object (&r, key) {
        if (pod_edit_is_one_of(key, names, n)) {
            jread_skip(&r);
            continue;
        }
        jwrite_raw_at(w, key, jread_raw(&r));
    }
}

static void pod_edit_copy_members(struct jwrite *w, struct arena *a, struct str object)
{
    struct jread r;
    struct str key;
    jread_init(&r, object, a);
    jread_object (&r, key) {
        jwrite_raw_at(w, key, jread_raw(&r));
    }
}

static void pod_edit_write_annotations(struct jwrite *w, struct arena *a, struct str old,
                                       struct str added)
{
    if (old.p == NULL && added.p == NULL)
        return;
    jwrite_object_at(w, STR("annotations"));
    pod_edit_copy_beneath(w, a, old.p == NULL ? STR("{}") : old,
                          added.p == NULL ? STR("{}") : added);
    if (added.p != NULL)
        pod_edit_copy_members(w, a, added);
    jwrite_object_end(w);
}

static void pod_edit_write_metadata(struct jread *r, struct jwrite *w, const struct pod_edit *edit,
                                    struct arena *a, struct str added)
{
    struct str annotations = STR_NULL;
    struct str key;
    jwrite_object_begin(w);
    jread_object (r, key) {
        if (str_eq(key, STR("namespace")) || str_eq(key, STR("uid"))) {
            jread_skip(r);
        } else if (str_eq(key, STR("annotations"))) {
            annotations = jread_raw(r);
        } else {
            jwrite_raw_at(w, key, jread_raw(r));
        }
    }
    jwrite_str_at(w, STR("namespace"), edit->namespace);
    jwrite_str_at(w, STR("uid"), edit->uid);
    pod_edit_write_annotations(w, a, annotations, added);
    jwrite_object_end(w);
}

static void pod_edit_write_spec(struct jread *r, struct jwrite *w, const struct pod_edit *edit)
{
    struct str key;
    jwrite_object_begin(w);
    jread_object (r, key) {
        if (edit->binding != NULL && str_eq(key, STR("nodeName"))) {
            jread_skip(r);
            continue;
        }
        jwrite_raw_at(w, key, jread_raw(r));
    }
    if (edit->binding != NULL)
        jwrite_str_at(w, STR("nodeName"), edit->binding->node);
    jwrite_object_end(w);
}

enum errc pod_edit_write(struct str pod, const struct pod_edit *edit, struct arena *a,
                         struct buf *out, struct err *reterr)
{
    struct jread r;
    struct jwrite w;
    struct str key;
    struct buf scratch;
    bool has_status = false;
    struct str added = STR_NULL;
    buf_init(&scratch, 64 * KIB);
    if (edit->binding != NULL)
        added = pod_edit_binding_annotations(edit->binding, a, &scratch);
    jread_init(&r, pod, a);
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jread_object (&r, key) {
        jwrite_key(&w, key);
        has_status = has_status || str_eq(key, STR("status"));
        if (str_eq(key, STR("metadata")))
            pod_edit_write_metadata(&r, &w, edit, a, added);
        else if (str_eq(key, STR("spec")))
            pod_edit_write_spec(&r, &w, edit);
        else
            jwrite_raw(&w, jread_raw(&r));
    }
    if (!has_status)
        jwrite_raw_at(&w, STR("status"), STR("{\"phase\":\"Pending\"}"));
    jwrite_object_end(&w);
    enum errc code = jread_finish(&r, reterr);
    /*
     * A Binding that did not fit into `scratch` would have no annotations, and its pod would hold
     * no card.
     */
    bool whole = !buf_failed(&scratch) && !buf_failed(out) && !arena_failed(a);
    buf_done(&scratch);
    if (code == OK && !whole)
        code = err_set(reterr, ERR_NOMEM, "no memory for a pod of %zu bytes", pod.n);
    return code;
}
