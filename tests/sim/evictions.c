/*
 * POST pods/NAME/eviction: marks the pod as being deleted, or answers 429 because a
 * PodDisruptionBudget forbids it. A dry run answers the same and changes nothing.
 */
#include "server.h"

#include <jansson.h>

static struct name uid_of(struct str body)
{
    json_error_t error;
    json_t *root = json_loadb(body.p, body.n, 0, &error);
    json_t *options = json_object_get(root, "deleteOptions");
    const char *uid =
        json_string_value(json_object_get(json_object_get(options, "preconditions"), "uid"));
    sim_check(uid != NULL);
    struct name name = name_from(str_of(uid));
    json_decref(root);
    return name;
}

/* Whether some pod has a higher priority than the pod of this slot: the pod to evict for has. */
static bool outweighed(unsigned slot)
{
    for (unsigned i = 0; i < store.n_pods; i++) {
        if (store.pods[i].priority > store.pods[slot].priority)
            return true;
    }
    return false;
}

void serve_eviction(struct flight *f, const struct api_request *r)
{
    struct name uid = uid_of(text_str(&f->body));
    unsigned meant = store_find_uid(name_str(&uid));
    unsigned slot = store_find_pod(r->ns, r->name);
    /* Any pod of higher priority counts here. An API server that ignores a Binding's UID may have
     * bound the next pod of that name instead of the pod that is meant. */
    sim_check(meant != MAX_PODS && outweighed(meant));
    if (slot == MAX_PODS) {
        reply_status(f, 404, "NotFound", "pods not found", ",\"details\":{\"kind\":\"pods\"}");
    } else if (slot != meant) {
        reply_status(f, 409, "Conflict",
                     "Operation cannot be fulfilled: the UID in the precondition does not match",
                     "");
    } else if (draw(6) == 0) {
        reply_status(f, 429, "TooManyRequests",
                     "Cannot evict pod as it would violate the pod's disruption budget.", "");
    } else {
        struct pod_object p = store.pods[slot];
        p.deleting = true;
        if (!str_eq(r->query, STR("dryRun=All"))) {
            trace("evicted", name_str(&p.uid), f->sender, 0);
            store_put_pod(slot, &p);
            world.evictions++;
        }
        reply_status(f, 201, "", "", "");
    }
}
