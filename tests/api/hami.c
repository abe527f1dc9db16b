/* The annotations of HAMi's family: lists of cards by UUID, the table of a node's cards, the lock.
 */
#include "api/plugins.h"

/* Beside those of struct plugin_names. */
static const struct {
    const char *listed;
    const char *todo;
    const char *on;
    const char *time;
    const char *bound;
} names[PLUGINS] = {
    [PLUGIN_HAMI] = {.listed = "hami.io/vgpu-devices-allocated",
                     .todo = "hami.io/vgpu-devices-to-allocate",
                     .on = "hami.io/vgpu-node",
                     .time = "hami.io/vgpu-time",
                     .bound = "hami.io/bind-time"},
    [PLUGIN_VGPU] = {.listed = "volcano.sh/vgpu-ids-new",
                     .todo = "volcano.sh/devices-to-allocate",
                     .on = "volcano.sh/vgpu-node",
                     .time = "volcano.sh/vgpu-time",
                     .bound = "volcano.sh/bind-time"},
};

const char *const hami_locks[PLUGINS] = {
    [PLUGIN_HAMI] = "hami.io/mutex.lock", [PLUGIN_VGPU] = "hamivgpu"};

/* ---- pods ---- */

/* A part for each container, which may be empty: "GPU-0,NVIDIA,4,30:GPU-1,NVIDIA,4,30:;;" In
 * Volcano's list a semicolon is between two parts, in HAMi's behind each. */
static void write_devices(struct text *t, const struct pod_object *p)
{
    const struct grants_object *g = &p->allocation;
    unsigned parts = p->n_containers;
    for (unsigned k = 0; k < g->n; k++)
        parts = MAX_OF(parts, g->at[k].container + 1U);
    text_z(t, "\"");
    for (unsigned i = 0; i < parts; i++) {
        text_z(t, i > 0 && p->plugin == PLUGIN_VGPU ? ";" : "");
        for (unsigned k = 0; k < g->n; k++) {
            if (g->at[k].container == i)
                text_f(t, "GPU-%u,NVIDIA,%d,%u:", g->at[k].card, g->at[k].amount, g->at[k].cores);
        }
        text_z(t, p->plugin == PLUGIN_HAMI ? ";" : "");
    }
    text_z(t, "\"");
}

void hami_write_pod(struct text *t, const struct pod_object *p)
{
    if (p->allocation.there) {
        plugin_key(t, names[p->plugin].listed);
        write_devices(t, p);
        plugin_key(t, names[p->plugin].todo);
        if (plugin_waits(p))
            write_devices(t, p);
        else
            text_z(t, p->plugin == PLUGIN_HAMI ? "\";\"" : "\"\"");
    }
    plugin_annotation(t, names[p->plugin].on, &p->on);
    plugin_annotation(t, names[p->plugin].time, &p->assume);
    plugin_annotation(t, names[p->plugin].bound, &p->assume);
    plugin_annotation(t, plugin_names[p->plugin].assigned, &p->assigned);
}

/* ---- Bindings ---- */

static uint64_t number_of(struct str text)
{
    uint64_t number = UINT64_MAX;
    api_check(str_to_u64(text, INT32_MAX, &number));
    return number;
}

/* "GPU-0,NVIDIA,4,30" */
static void read_device(struct str one, unsigned container, struct grants_object *ret)
{
    struct str uuid;
    struct str type;
    struct str mem;
    struct str cores;
    api_check(ret->n < MAX_GRANTS);
    api_check(str_cut(one, ',', &uuid, &one) && str_starts(uuid, STR("GPU-")));
    api_check(str_cut(one, ',', &type, &one) && str_eq(type, STR("NVIDIA")));
    api_check(str_cut(one, ',', &mem, &cores));
    ret->at[ret->n].container = (uint8_t)container;
    ret->at[ret->n].card = (uint8_t)number_of(str_skip(uuid, 4));
    ret->at[ret->n].amount = (int32_t)number_of(mem);
    ret->at[ret->n++].cores = (uint8_t)number_of(cores);
}

static void read_devices(struct str list, bool closed, struct grants_object *ret)
{
    struct str part;
    struct str one;
    api_check(str_ends(list, STR(";")) == closed);
    for (unsigned i = 0; list.n > 0; i++) {
        api_check(str_cut(list, ';', &part, &list) || !closed);
        while (part.n > 0) {
            api_check(str_cut(part, ':', &one, &part));
            read_device(one, i, ret);
        }
    }
    ret->there = true;
}

bool hami_is_binding(json_t *notes, enum plugin plugin)
{
    return json_object_get(notes, names[plugin].on) != NULL;
}

/* HAMi's plugin takes the pod that its lock names, so the two times are one. Volcano's takes the
 * pod with the smallest vgpu-time, where cardpack does not write a real one. */
void hami_read_binding(json_t *notes, struct posted *ret)
{
    enum plugin plugin = ret->plugin;
    const char *list = json_string_value(json_object_get(notes, names[plugin].listed));
    const char *todo = json_string_value(json_object_get(notes, names[plugin].todo));
    api_check(list != NULL && todo != NULL && strcmp(list, todo) == 0);
    api_check(json_object_size(notes) == 6);
    read_devices(str_of(list), plugin == PLUGIN_HAMI, &ret->allocation);
    ret->on = plugin_text_of(notes, names[plugin].on);
    ret->assume = plugin_text_of(notes, names[plugin].time);
    ret->assigned = plugin_text_of(notes, plugin_names[plugin].assigned);
    struct name time = plugin_text_of(notes, names[plugin].bound);
    (void)number_of(name_str(&time));
    (void)number_of(name_str(&ret->assume));
    api_check(plugin == PLUGIN_VGPU || strcmp(time.z, ret->assume.z) == 0);
    api_check(strcmp(ret->on.z, ret->node.z) == 0);
}

/* ---- nodes ---- */

int64_t plugin_parts(const struct node_object *n)
{
    int64_t parts = 0;
    if (n->mem <= 0)
        return n->mem;
    for (unsigned i = 0; i < n->n_table; i++)
        parts += n->table[i].count;
    return parts;
}

static void write_table(struct text *t, const struct node_object *n)
{
    struct text inner = {.p = NULL};
    text_z(&inner, "[");
    for (unsigned i = 0; i < n->n_table; i++) {
        const struct card_object *c = &n->table[i];
        text_f(&inner, "%s{\"id\":\"GPU-%u\",\"index\":%u,\"count\":%u,\"devmem\":%lld",
               i == 0 ? "" : ",", c->index, c->index, c->count, (long long)c->mem);
        text_f(&inner, ",\"devcore\":100,\"type\":\"%s\",\"mode\":\"hami-core\"",
               model_text(c->model));
        if (c->numa != 0) /* HAMi leaves out a zero, and health if it is false */
            text_f(&inner, ",\"numa\":%d", c->numa);
        text_z(&inner, c->ill ? "}" : ",\"health\":true}");
    }
    text_z(&inner, n->bad_table ? ",{}]" : "]");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

/* "GPU-0,10,16,NVIDIA-A10,true,hami-core:" for each card; a card's place is its index. */
static void write_rows(struct text *t, const struct node_object *n)
{
    struct text inner = {.p = NULL};
    for (unsigned i = 0; i < n->n_table; i++) {
        const struct card_object *c = &n->table[i];
        text_f(&inner, "GPU-%u,%u,%lld,NVIDIA-%s,%s,hami-core:", c->index, c->count,
               (long long)c->mem, model_text(c->model), c->ill ? "false" : "true");
    }
    text_z(&inner, n->bad_table ? "GPU-9,10:" : "");
    text_quoted(t, text_str(&inner));
    text_done(&inner);
}

static void write_lock(struct text *t, enum plugin plugin, const struct lock_object *lock)
{
    if (lock->z[0] == '\0')
        return;
    plugin_key(t, hami_locks[plugin]);
    text_quoted(t, str_of(lock->z));
}

/* The locks are left where another plugin has followed. */
void hami_write_node(struct text *t, const struct node_object *n)
{
    write_lock(t, PLUGIN_HAMI, &n->lock);
    write_lock(t, PLUGIN_VGPU, &n->vgpu_lock);
    if (n->plugin == PLUGIN_HAMI) {
        plugin_key(t, "hami.io/node-nvidia-register");
        write_table(t, n);
    } else if (n->plugin == PLUGIN_VGPU) {
        plugin_key(t, "volcano.sh/node-vgpu-register");
        write_rows(t, n);
    }
}
