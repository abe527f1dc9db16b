/* Reads the metadata of any object, and a ConfigMap: of unhealthy cards, of quotas, of what is
 * used. */
#include "codec/kube.h"
#include "codec/usage.h"
#include "core/gpushare.h"

struct str kube_read_of_metadata(struct jread *r, struct str wanted)
{
    struct str value = STR_NULL;
    struct str key;
    struct str field;
    jread_object (r, key) {
        if (!str_eq(key, STR("metadata"))) {
            jread_skip(r);
            continue;
        }
        jread_object (r, field) {
            if (str_eq(field, wanted))
                value = jread_str(r);
            else
                jread_skip(r);
        }
    }
    return value;
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
