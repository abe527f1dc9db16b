/* Converts a YAML or JSON body to JSON and reads it as a Pod. */
#include "report/pod_read.h"

#include "base/limit.h"
#include "json/yaml.h"

struct str pod_read_json(struct str body, struct arena *a, struct err *reterr)
{
    struct buf json;
    buf_init(&json, LIMIT_OBJECT_BYTES);
    enum errc code = yaml_to_json(body, &json, reterr);
    struct str text = code == OK ? arena_dup(a, buf_str(&json)) : STR_NULL;
    buf_done(&json);
    if (code == OK && text.p == NULL)
        (void)err_set(reterr, arena_fault(a), "no memory for the pod");
    return text;
}

/* A Deployment, read as a Pod, would request no card and seem feasible on every node. */
static void pod_read_refuse_other_kinds(struct jread *r)
{
    struct jread look = *r;
    struct str key;
    struct str kind = STR_NULL;
    if (jread_type(&look) != JTYPE_OBJECT)
        return;
    jread_object (&look, key) {
        if (str_eq(key, STR("kind")) && jread_type(&look) == JTYPE_STRING)
            kind = jread_str(&look);
        else
            jread_skip(&look);
    }
    if (!jread_failed(&look) && kind.n > 0 && !str_eq(kind, STR("Pod")))
        jread_fail(r, ERR_SYNTAX, "\"%.*s\" is no Pod; what makes pods has one in spec.template",
                   STR_ARG(kind));
}

void pod_read_object(struct jread *r, struct arena *a, struct pod_view *ret)
{
    pod_read_refuse_other_kinds(r);
    kube_read_pod(r, a, ret);
}

enum errc pod_read(struct str body, struct arena *a, struct pod_view *ret, struct err *reterr)
{
    struct jread r;
    struct str json = pod_read_json(body, a, reterr);
    if (json.p == NULL)
        return reterr->code;
    jread_init(&r, json, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "a Pod must be an object");
    pod_read_object(&r, a, ret);
    return jread_finish(&r, reterr);
}
