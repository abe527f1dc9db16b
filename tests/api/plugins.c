/* Reads and writes the annotations of other device plugins; see plugins.h. */
#include "api/plugins.h"

const struct plugin_names plugin_names[PLUGINS] = {
    [PLUGIN_GPUSHARE] = {.dialect = "gpushare",
                         .mem = "aliyun.com/gpu-mem",
                         .cores = "aliyun.com/gpu-core.percentage",
                         .count = "aliyun.com/gpu-count",
                         .assigned = "ALIYUN_COM_GPU_MEM_ASSIGNED"},
    [PLUGIN_VOLCANO] = {.dialect = "volcano",
                        .mem = "volcano.sh/gpu-memory",
                        .cores = "",
                        .count = "volcano.sh/gpu-number",
                        .assigned = "volcano.sh/gpu-assigned"},
    [PLUGIN_ELASTIC] = {.dialect = "elastic",
                        .mem = "elasticgpu.io/gpu-memory",
                        .cores = "elasticgpu.io/gpu-core",
                        .count = "elasticgpu.io/gpu-core",
                        .assigned = ""},
    [PLUGIN_TENCENT] = {.dialect = "tencent",
                        .mem = "tencent.com/vcuda-memory",
                        .cores = "tencent.com/vcuda-core",
                        .count = "tencent.com/vcuda-core",
                        .assigned = "tencent.com/gpu-assigned"},
    [PLUGIN_HAMI] = {.dialect = "hami",
                     .mem = "nvidia.com/gpumem",
                     .cores = "nvidia.com/gpucores",
                     .count = "nvidia.com/gpu",
                     .percent = "nvidia.com/gpumem-percentage",
                     .assigned = "hami.io/bind-phase"},
    [PLUGIN_VGPU] = {.dialect = "volcano-vgpu",
                     .mem = "volcano.sh/vgpu-memory",
                     .cores = "volcano.sh/vgpu-cores",
                     .count = "volcano.sh/vgpu-number",
                     .percent = "volcano.sh/vgpu-memory-percentage",
                     .assigned = "volcano.sh/bind-phase"},
};

#define ELASTIC_SEAT "elasticgpu.io/container-c"
#define TENCENT_SEAT "tencent.com/predicate-gpu-idx-"

void plugin_key(struct text *t, const char *name)
{
    text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
    text_quoted(t, str_of(name));
    text_z(t, ":");
}

void plugin_annotation(struct text *t, const char *name, const struct name *value)
{
    if (value->z[0] == '\0')
        return;
    plugin_key(t, name);
    text_quoted(t, name_str(value));
}

struct name plugin_text_of(json_t *notes, const char *name)
{
    const char *z = json_string_value(json_object_get(notes, name));
    api_check(z != NULL && strlen(z) < sizeof(struct name));
    return name_from(str_of(z));
}

/* ---- elastic-gpu and gpu-manager: a list of cards for each container ---- */

static void write_seats(struct text *t, const char *seat, const struct grants_object *g)
{
    for (unsigned i = 0; i < g->n; i++) {
        if (i > 0 && g->at[i].container == g->at[i - 1].container) {
            text_f(t, ",%u", g->at[i].card);
            continue;
        }
        text_z(t, i > 0 ? "\"" : "");
        text_z(t, t->p[t->n - 1] == '{' ? "" : ",");
        text_f(t, "\"%s%u\":\"%u", seat, g->at[i].container, g->at[i].card);
    }
    text_z(t, g->n > 0 ? "\"" : "");
}

static void read_seat(const char *container, struct str cards, struct grants_object *ret)
{
    uint64_t number = 0;
    uint64_t card = 0;
    struct str one;
    api_check(str_to_u64(str_of(container), UINT8_MAX, &number) && cards.n > 0);
    while (cards.n > 0) {
        (void)str_cut(cards, ',', &one, &cards);
        api_check(ret->n < MAX_GRANTS && str_to_u64(one, UINT8_MAX, &card));
        ret->at[ret->n].container = (uint8_t)number;
        ret->at[ret->n++].card = (uint8_t)card;
    }
}

/* Returns how many containers have cards. */
static size_t read_seats(json_t *notes, const char *seat, struct posted *ret)
{
    const char *name = NULL;
    json_t *value = NULL;
    size_t seats = 0;
    json_object_foreach(notes, name, value)
    {
        if (strncmp(name, seat, strlen(seat)) != 0)
            continue;
        read_seat(name + strlen(seat), str_of(json_string_value(value)), &ret->allocation);
        seats++;
    }
    api_check(seats > 0);
    ret->allocation.there = true;
    return seats;
}

static void read_elastic(json_t *notes, struct posted *ret)
{
    size_t seats = read_seats(notes, ELASTIC_SEAT, ret);
    const char *assumed = json_string_value(json_object_get(notes, "elasticgpu.io/assumed"));
    api_check(assumed != NULL && strcmp(assumed, "true") == 0);
    api_check(json_object_size(notes) == seats + 1);
}

static void read_tencent(json_t *notes, struct posted *ret)
{
    size_t seats = read_seats(notes, TENCENT_SEAT, ret);
    ret->assume = plugin_text_of(notes, "tencent.com/predicate-time");
    ret->assigned = plugin_text_of(notes, "tencent.com/gpu-assigned");
    ret->on = plugin_text_of(notes, "tencent.com/predicate-node");
    api_check(strcmp(ret->on.z, ret->node.z) == 0 && json_object_size(notes) == seats + 3);
}

/* ---- all ---- */

void plugin_write_pod(struct text *t, const struct pod_object *p)
{
    if (p->plugin == PLUGIN_ELASTIC) {
        write_seats(t, ELASTIC_SEAT, &p->allocation);
        return;
    }
    if (p->plugin == PLUGIN_TENCENT) {
        write_seats(t, TENCENT_SEAT, &p->allocation);
        plugin_annotation(t, "tencent.com/predicate-time", &p->assume);
        plugin_annotation(t, "tencent.com/predicate-node", &p->on);
        plugin_annotation(t, plugin_names[p->plugin].assigned, &p->assigned);
        return;
    }
    if (plugin_has_devices(p->plugin)) {
        hami_write_pod(t, p);
        return;
    }
    plugin_annotation(t, "volcano.sh/gpu-index", &p->idx);
    plugin_annotation(t, "volcano.sh/predicate-time", &p->assume);
    plugin_annotation(t, plugin_names[p->plugin].assigned, &p->assigned);
}

void plugin_write_node(struct text *t, const struct node_object *n)
{
    if (n->plugin == PLUGIN_VOLCANO)
        plugin_annotation(t, "volcano.sh/gpu-unhealthy-ids", &n->ill);
    hami_write_node(t, n);
}

bool plugin_read_binding(json_t *notes, struct posted *ret)
{
    for (unsigned i = 0; i < PLUGINS; i++) {
        if (!plugin_has_devices((enum plugin)i) || !hami_is_binding(notes, (enum plugin)i))
            continue;
        ret->plugin = (enum plugin)i;
        hami_read_binding(notes, ret);
        return true;
    }
    if (json_object_get(notes, "elasticgpu.io/assumed") != NULL) {
        ret->plugin = PLUGIN_ELASTIC;
        read_elastic(notes, ret);
        return true;
    }
    if (json_object_get(notes, "tencent.com/predicate-time") != NULL) {
        ret->plugin = PLUGIN_TENCENT;
        read_tencent(notes, ret);
        return true;
    }
    if (json_object_get(notes, "volcano.sh/gpu-index") == NULL)
        return false;
    ret->plugin = PLUGIN_VOLCANO;
    ret->idx = plugin_text_of(notes, "volcano.sh/gpu-index");
    ret->assume = plugin_text_of(notes, "volcano.sh/predicate-time");
    ret->assigned = plugin_text_of(notes, "volcano.sh/gpu-assigned");
    api_check(json_object_size(notes) == 3);
    return true;
}

/* Other schedulers may leave the annotation to the plugin. */
bool plugin_waits(const struct pod_object *p)
{
    if (p->plugin == PLUGIN_ELASTIC)
        return false;
    if (plugin_has_devices(p->plugin))
        return strcmp(p->assigned.z, "success") != 0;
    return p->plugin == PLUGIN_GPUSHARE ? strcmp(p->assigned.z, "false") == 0
                                        : strcmp(p->assigned.z, "true") != 0;
}
