/* Bindings of pods to nodes; see bindings.h. */
#include "api/bindings.h"

#include "api/plugins.h"

#include <stdio.h>

static struct name text_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    const char *z = json_string_value(value);
    api_check(z != NULL && strlen(z) < sizeof(struct name));
    return name_from(str_of(z));
}

/* Reads an annotation that holds {"CONTAINER":{"CARD":AMOUNT}}, if there is one. Returns 1 if there
 * is. */
static unsigned grants_read(json_t *notes, const char *key, struct grants_object *ret)
{
    json_error_t error;
    json_t *text = json_object_get(notes, key);
    uint64_t number = 0;
    const char *container = NULL;
    const char *card = NULL;
    json_t *cards = NULL;
    json_t *amount = NULL;
    *ret = (struct grants_object){.there = text != NULL};
    if (text == NULL)
        return 0;
    json_t *root = json_loads(json_string_value(text), 0, &error);
    api_check(json_is_object(root));
    json_object_foreach(root, container, cards)
    {
        json_object_foreach(cards, card, amount)
        {
            api_check(ret->n < MAX_GRANTS && json_is_integer(amount));
            bool good = str_to_u64(str_of(container), UINT8_MAX, &number);
            ret->at[ret->n].container = (uint8_t)number;
            good = str_to_u64(str_of(card), UINT8_MAX, &number) && good;
            ret->at[ret->n].card = (uint8_t)number;
            api_check(good);
            ret->at[ret->n++].amount = (int32_t)json_integer_value(amount);
        }
    }
    json_decref(root);
    return 1;
}

struct posted binding_read(struct str body, struct str ns, struct str name)
{
    size_t known = 5;
    json_error_t error;
    json_t *root = json_loadb(body.p, body.n, 0, &error);
    api_check(root != NULL);
    json_t *metadata = json_object_get(root, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    json_t *target = json_object_get(root, "target");
    struct posted b = {.ns = name_from(ns), .name = name_from(name)};
    api_check(strcmp(text_of(root, "kind").z, "Binding") == 0);
    api_check(strcmp(text_of(metadata, "name").z, b.name.z) == 0);
    api_check(strcmp(text_of(metadata, "namespace").z, b.ns.z) == 0);
    api_check(strcmp(text_of(target, "kind").z, "Node") == 0);
    if (json_object_get(metadata, "resourceVersion") != NULL)
        b.version = text_of(metadata, "resourceVersion");
    b.uid = text_of(metadata, "uid");
    b.node = text_of(target, "name");
    b.bare = notes == NULL;
    if (!b.bare && !plugin_read_binding(notes, &b)) {
        known += grants_read(notes, "scheduler.framework.gpushare.allocation", &b.allocation);
        known += grants_read(notes, "gpushare.alibabacloud.com/core-percentage", &b.cores);
        api_check(json_object_size(notes) == known);
        b.idx = text_of(notes, "ALIYUN_COM_GPU_MEM_IDX");
        b.dev = text_of(notes, "ALIYUN_COM_GPU_MEM_DEV");
        b.mem = text_of(notes, "ALIYUN_COM_GPU_MEM_POD");
        b.assigned = text_of(notes, "ALIYUN_COM_GPU_MEM_ASSIGNED");
        b.assume = text_of(notes, "ALIYUN_COM_GPU_MEM_ASSUME_TIME");
    }
    json_decref(root);
    return b;
}

/* ---- the transaction ---- */

/* An API server that ignores UIDs may bind the next pod of the name, of another plugin. The
 * annotations then mean nothing. */
void binding_annotate(const struct posted *b, struct pod_object *p)
{
    if (b->bare || b->plugin != p->plugin)
        return;
    if (b->plugin != PLUGIN_ELASTIC) {
        p->idx = b->idx;
        p->assigned = b->assigned;
        p->assume = b->assume;
    }
    if (b->plugin == PLUGIN_GPUSHARE) {
        p->dev = b->dev;
        p->mem = b->mem;
    }
    if (plugin_has_devices(b->plugin) || b->plugin == PLUGIN_TENCENT)
        p->on = b->on;
    if (b->allocation.there)
        p->allocation = b->allocation;
}

static struct outcome refusal(unsigned status, const char *reason, const char *details,
                              const char *what, const struct posted *b, const char *more)
{
    struct outcome out = {.status = status, .reason = reason, .details = details};
    (void)snprintf(out.message, sizeof(out.message), "%s %s: %s", what, b->name.z, more);
    return out;
}

bool binding_is_outdated(const struct posted *b, const struct pod_object *p)
{
    struct name version = name_of("", p->rv);
    return !store.ignores_preconditions && b->version.z[0] != '\0' &&
           strcmp(version.z, b->version.z) != 0;
}

struct outcome binding_commit(const struct posted *b, unsigned *ret_slot)
{
    char more[160];
    unsigned slot = store_find_pod(name_str(&b->ns), name_str(&b->name));
    if (slot == MAX_PODS)
        return refusal(404, "NotFound", ",\"details\":{\"kind\":\"pods\"}", "pod", b, "not found");
    struct pod_object p = store.pods[slot];
    if (!store.ignores_preconditions && !str_eq(name_str(&p.uid), name_str(&b->uid))) {
        (void)snprintf(more, sizeof(more),
                       "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                       b->uid.z, p.uid.z);
        return refusal(409, "Conflict", ",\"details\":{\"kind\":\"pods\"}",
                       "Operation cannot be fulfilled on pods", b, more);
    }
    if (binding_is_outdated(b, &p)) {
        (void)snprintf(more, sizeof(more),
                       "Precondition failed: ResourceVersion in precondition: %.20s, "
                       "ResourceVersion in object meta: %llu",
                       b->version.z, (unsigned long long)p.rv);
        return refusal(409, "Conflict", ",\"details\":{\"kind\":\"pods\"}",
                       "Operation cannot be fulfilled on pods", b, more);
    }
    const char *why = NULL;
    if (p.deleting)
        why = "pod is being deleted, cannot be assigned to a host";
    else if (p.node.z[0] != '\0')
        why = "pod is already assigned to node";
    else if (p.gated)
        why = "pod has non-empty .spec.schedulingGates";
    if (why != NULL)
        return refusal(409, "Conflict", ",\"details\":{\"kind\":\"pods/binding\"}",
                       "Operation cannot be fulfilled on pods/binding", b, why);
    p.node = b->node;
    binding_annotate(b, &p);
    store_put_pod(slot, &p);
    *ret_slot = slot;
    return (struct outcome){.status = 201, .reason = "", .details = ""};
}

void outcome_write(struct text *t, const struct outcome *o)
{
    status_write(t, o->status, o->reason, o->message, o->details);
}
