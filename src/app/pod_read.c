#include "pod_read.h"

#include "limit.h"
#include "yaml.h"

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

enum errc pod_read(struct str body, struct arena *a, struct pod_view *ret, struct err *reterr)
{
    struct jread r;
    struct str json = pod_read_json(body, a, reterr);
    if (json.p == NULL)
        return reterr->code;
    jread_init(&r, json, a);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "a Pod must be an object");
    kube_read_pod(&r, a, ret);
    return jread_finish(&r, reterr);
}
