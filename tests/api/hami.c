/* HAMi's annotations: lists of cards by UUID, the table of a node's cards, the lock. */
#include "api/plugins.h"

/* ---- pods ---- */

/* A part for each container, which may be empty: "GPU-0,NVIDIA,4,30:GPU-1,NVIDIA,4,30:;;" */
static void write_devices(struct text *t, const struct pod_object *p)
{
    const struct grants_object *g = &p->allocation;
    unsigned parts = p->n_containers;
    for (unsigned k = 0; k < g->n; k++)
        parts = MAX_OF(parts, g->at[k].container + 1U);
    text_z(t, "\"");
    for (unsigned i = 0; i < parts; i++) {
        for (unsigned k = 0; k < g->n; k++) {
            if (g->at[k].container == i)
                text_f(t, "GPU-%u,NVIDIA,%d,%u:", g->at[k].card, g->at[k].amount, g->at[k].cores);
        }
        text_z(t, ";");
    }
    text_z(t, "\"");
}

void hami_write_pod(struct text *t, const struct pod_object *p)
{
    if (p->allocation.there) {
        plugin_key(t, "hami.io/vgpu-devices-allocated");
        write_devices(t, p);
        plugin_key(t, "hami.io/vgpu-devices-to-allocate");
        if (plugin_waits(p))
            write_devices(t, p);
        else
            text_z(t, "\";\"");
    }
    plugin_annotation(t, "hami.io/vgpu-node", &p->on);
    plugin_annotation(t, "hami.io/vgpu-time", &p->assume);
    plugin_annotation(t, "hami.io/bind-time", &p->assume);
    plugin_annotation(t, "hami.io/bind-phase", &p->assigned);
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

static void read_devices(struct str list, struct grants_object *ret)
{
    struct str part;
    struct str one;
    api_check(str_ends(list, STR(";")));
    for (unsigned i = 0; list.n > 0; i++) {
        api_check(str_cut(list, ';', &part, &list));
        while (part.n > 0) {
            api_check(str_cut(part, ':', &one, &part));
            read_device(one, i, ret);
        }
    }
    ret->there = true;
}

void hami_read_binding(json_t *notes, struct posted *ret)
{
    const char *list = json_string_value(json_object_get(notes, "hami.io/vgpu-devices-allocated"));
    const char *todo =
        json_string_value(json_object_get(notes, "hami.io/vgpu-devices-to-allocate"));
    api_check(list != NULL && todo != NULL && strcmp(list, todo) == 0);
    api_check(json_object_size(notes) == 6);
    read_devices(str_of(list), &ret->allocation);
    ret->on = plugin_text_of(notes, "hami.io/vgpu-node");
    ret->assume = plugin_text_of(notes, "hami.io/vgpu-time");
    ret->assigned = plugin_text_of(notes, "hami.io/bind-phase");
    struct name time = plugin_text_of(notes, "hami.io/bind-time");
    api_check(strcmp(time.z, ret->assume.z) == 0 && strcmp(ret->on.z, ret->node.z) == 0);
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

/* The lock is left where another plugin has followed. */
void hami_write_node(struct text *t, const struct node_object *n)
{
    if (n->lock.z[0] != '\0') {
        plugin_key(t, "hami.io/mutex.lock");
        text_quoted(t, str_of(n->lock.z));
    }
    if (n->plugin != PLUGIN_HAMI)
        return;
    plugin_key(t, "hami.io/node-nvidia-register");
    write_table(t, n);
}
