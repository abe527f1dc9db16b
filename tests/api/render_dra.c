/* Writes ResourceSlices, ResourceClaims and DeviceClasses as NVIDIA's driver and kube-scheduler
 * fill them, with fields that cardpack does not use. */
#include "api/store.h"

static void device_name(struct text *t, uint8_t card, bool mig)
{
    text_f(t, "\"%sgpu-%u\"", mig ? "part-of-" : "", MAX_CARDS - 1U - card);
}

static void begin(struct text *t, const struct name *name, const struct name *ns,
                  const struct name *uid, uint64_t rv)
{
    text_z(t, "\"metadata\":{\"name\":");
    text_quoted(t, name_str(name));
    if (ns != NULL) {
        text_z(t, ",\"namespace\":");
        text_quoted(t, name_str(ns));
    }
    if (uid != NULL) {
        text_z(t, ",\"uid\":");
        text_quoted(t, name_str(uid));
    }
    text_f(t, ",\"resourceVersion\":\"%llu\"},\"spec\":{", (unsigned long long)rv);
}

static void device(struct text *t, const struct device_object *x)
{
    text_z(t, "{\"name\":");
    device_name(t, x->card, x->mig);
    text_f(t, ",\"attributes\":{\"type\":{\"string\":\"%s\"},\"minor\":{\"int\":%u}",
           x->mig ? "mig" : "gpu", x->card);
    if (x->uuid && x->mig)
        text_f(t, ",\"uuid\":{\"string\":\"MIG-%u\"},\"parentUUID\":{\"string\":\"GPU-%u\"}",
               x->card, x->card);
    else if (x->uuid)
        text_f(t, ",\"gpu.nvidia.com/uuid\":{\"string\":\"GPU-%u\"}", x->card);
    if (x->pci > 0)
        text_f(t, ",\"resource.kubernetes.io/pciBusID\":{\"string\":\"0000:%02x:00.0\"}", x->pci);
    text_z(t, "}");
    if (x->memory > 0)
        text_f(t, ",\"capacity\":{\"memory\":{\"value\":\"%uGi\"}}", x->memory);
    text_z(t, "}");
}

void render_slice(struct text *t, const struct slice_object *s)
{
    begin(t, &s->name, NULL, NULL, s->rv);
    text_z(t, "\"driver\":\"gpu.nvidia.com\",\"pool\":{\"name\":");
    text_quoted(t, name_str(&s->node));
    text_f(t, ",\"generation\":%u,\"resourceSliceCount\":2},\"nodeName\":", s->generation);
    text_quoted(t, name_str(&s->node));
    text_z(t, ",\"devices\":[");
    for (unsigned i = 0; i < s->n_devices; i++) {
        text_z(t, i > 0 ? "," : "");
        device(t, &s->devices[i]);
    }
    text_z(t, "]}}");
}

static void result(struct text *t, const struct result_object *r)
{
    text_z(t, "{\"request\":\"card\",\"driver\":\"gpu.nvidia.com\",\"pool\":");
    text_quoted(t, name_str(&r->node));
    text_z(t, ",\"device\":");
    device_name(t, r->card, r->mig);
    if (r->admin)
        text_z(t, ",\"adminAccess\":true");
    if (r->shared)
        text_z(t, ",\"shareID\":\"a671734a-e8e5-11e4-8fde-42010af09327\"");
    if (r->memory > 0)
        text_f(t, ",\"consumedCapacity\":{\"memory\":\"%uGi\"}", r->memory);
    text_z(t, "}");
}

void render_claim(struct text *t, const struct claim_object *c)
{
    begin(t, &c->name, &c->ns, &c->uid, c->rv);
    text_z(t, "\"devices\":{\"requests\":[{\"name\":\"card\"}]}},\"status\":{");
    if (c->n_results > 0)
        text_z(t, "\"allocation\":{\"devices\":{\"results\":[");
    for (unsigned i = 0; i < c->n_results; i++) {
        text_z(t, i > 0 ? "," : "");
        result(t, &c->results[i]);
    }
    text_z(t, c->n_results > 0 ? "]}}}}" : "}}");
}

void render_class(struct text *t, const struct class_object *c)
{
    begin(t, &c->name, NULL, NULL, c->rv);
    text_z(t, "\"selectors\":[{\"cel\":{\"expression\":\"device.driver == 'gpu.nvidia.com'\"}}]");
    if (c->serves)
        text_z(t, ",\"extendedResourceName\":\"nvidia.com/gpu\"}}");
    else
        text_z(t, c->rv % 2 == 0 ? ",\"extendedResourceName\":\"example.com/gpu\"}}" : "}}");
}
