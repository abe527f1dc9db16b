/*
 * Names of the resources and annotations of other device plugins than gpushare's, and how their
 * annotations name cards. From the plugins' own sources (volcano-sh/devices,
 * elastic-ai/elastic-gpu-agent, tkestack/gpu-manager, Project-HAMi/HAMi,
 * Project-HAMi/volcano-vgpu-device-plugin), and not from core/dialect/dialect.h: the oracle of the
 * simulation shares nothing with cardpack.
 *
 * In struct pod_object: Volcano's gpu-index is `idx`, and its times and acknowledgement are
 * `assume` and `assigned`. elastic-gpu has one annotation for each container, with a list of cards;
 * together they are `allocation`, without amounts. gpu-manager has the same, by the container's
 * index, and its node is `on`. HAMi has one list of cards by UUID, with the
 * amounts of each; it is `allocation`. The UUID of card 2 is GPU-2 on each node. A second list, of
 * what the plugin has still to hand out, is the same until `assigned` is "success", and then empty.
 * Volcano's vGPU plugin has the same under other names; its list, its table and its lock are
 * written in another way.
 */
#pragma once

#include "api/bindings.h"

#include <jansson.h>

struct plugin_names {
    const char *dialect; /* in cardpack's setting */
    const char *mem;
    const char *cores;    /* "": there is none */
    const char *count;    /* of a node; of HAMi's family also of a container */
    const char *percent;  /* of HAMi's family; NULL: there is none */
    const char *assigned; /* "": the plugin acknowledges nothing */
};

extern const struct plugin_names plugin_names[PLUGINS];

/* Writes the pod's annotations of its plugin; t ends in the object of annotations. */
void plugin_write_pod(struct text *t, const struct pod_object *p);

/* The number of parts of all cards that a plugin of HAMi's family reports; -1: none. */
int64_t plugin_parts(const struct node_object *n);

/* The same for the node's. */
void plugin_write_node(struct text *t, const struct node_object *n);

/* Reads the annotations of a Binding, if they are of another plugin than gpushare's; false: they
 * are not. */
bool plugin_read_binding(json_t *notes, struct posted *ret);

/* ---- for plugins.c and hami.c ---- */

/* A member's key, after a comma if one is needed; a member, unless the value is empty; the value of
 * an annotation that must be there. */
void plugin_key(struct text *t, const char *name);
void plugin_annotation(struct text *t, const char *name, const struct name *value);
struct name plugin_text_of(json_t *notes, const char *name);

/* ---- of HAMi's family alone: HAMi's plugin, and Volcano's for vGPUs ---- */

static inline bool plugin_has_devices(enum plugin plugin)
{
    return plugin == PLUGIN_HAMI || plugin == PLUGIN_VGPU;
}

extern const char *const hami_locks[PLUGINS]; /* the node's annotations; NULL: none */

/* Whether the Binding is one of this plugin. */
bool hami_is_binding(json_t *notes, enum plugin plugin);

void hami_write_pod(struct text *t, const struct pod_object *p);
void hami_write_node(struct text *t, const struct node_object *n);
void hami_read_binding(json_t *notes, struct posted *ret);

/* Whether the plugin still has to acknowledge the pod, by its annotations. */
bool plugin_waits(const struct pod_object *p);
