/* Reads parts of any object, of a pod that can't be read as a whole what can be, and a ConfigMap:
 * of unhealthy cards, of quotas, of what is used. */
#include "core/dialect/gpushare.h"
#include "objects/kube.h"
#include "objects/usage.h"

struct str kube_read_of(struct jread *r, struct str part, struct str wanted)
{
    struct str value = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, part))
            value = jread_member(r, wanted);
        else
            jread_skip(r);
    }
    return value;
}

static struct str kube_configmap_find(struct str json, struct arena *a, struct str part,
                                      struct str wanted)
{
    struct jread r;
    jread_init(&r, json, a);
    return kube_read_of(&r, part, wanted);
}

void kube_read_pod_anyway(struct str json, struct arena *a, struct str why, struct pod_view *ret)
{
    *ret = (struct pod_view){
        .uid = kube_configmap_find(json, a, STR("metadata"), STR("uid")),
        .name = kube_configmap_find(json, a, STR("metadata"), STR("name")),
        .namespace = kube_configmap_find(json, a, STR("metadata"), STR("namespace")),
        .node = kube_configmap_find(json, a, STR("spec"), STR("nodeName")),
        .phase = kube_configmap_find(json, a, STR("status"), STR("phase")),
        .deleting = kube_configmap_find(json, a, STR("metadata"), STR("deletionTimestamp")).n > 0,
        .fault = why,
    };
}

void kube_read_place(struct jread *r, struct str *ret_namespace, struct str *ret_name)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            *ret_name = jread_str(r);
        else if (str_eq(key, STR("namespace")))
            *ret_namespace = jread_str(r);
        else
            jread_skip(r);
    }
}

static void kube_configmap_read_data(struct jread *r, struct configmap_view *ret)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, GPUSHARE_UNHEALTHY_KEY))
            ret->gpus = jread_text(r);
        else if (str_eq(key, CARDPACK_QUOTA_KEY))
            ret->quota = jread_text(r);
        else if (str_eq(key, STR(USAGE_KEY)))
            ret->usage = jread_text(r);
        else
            jread_skip(r);
    }
}

void kube_read_configmap(struct jread *r, struct configmap_view *ret)
{
    struct str key;
    *ret = (struct configmap_view){.name = STR_NULL};
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            kube_read_place(r, &ret->namespace, &ret->name);
        else if (str_eq(key, STR("data")))
            kube_configmap_read_data(r, ret);
        else
            jread_skip(r);
    }
}
