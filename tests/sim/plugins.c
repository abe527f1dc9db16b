/* Nodes and pods of other device plugins; see plugins.h. */
#include "plugins.h"

#include "kinds.h"

void plugins_put_setting(struct text *t)
{
    const char *between = "dialects: ";
    for (unsigned i = 0; i < PLUGINS; i++) {
        if ((world.set.plugins >> i & 1) == 0)
            continue;
        text_z(t, between);
        text_z(t, plugin_names[i].dialect);
        between = ",";
    }
    text_z(t, world.set.plugins == 0 ? "" : "\n");
}

/* One of the seed's; gpushare's for some. */
static enum plugin some_plugin(void)
{
    unsigned n = 0;
    enum plugin found = PLUGIN_GPUSHARE;
    if (world.set.locks != PLUGIN_GPUSHARE && draw(8) > 0)
        return world.set.locks;
    if (draw(4) == 0)
        return found;
    for (unsigned i = PLUGIN_GPUSHARE + 1; i < PLUGINS; i++) {
        if ((world.set.plugins >> i & 1) != 0 && draw(++n) == 0)
            found = (enum plugin)i;
    }
    return found;
}

/* ---- pods ---- */

static void keep_main_containers(struct pod_object *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        if (p->containers[i].kind == CONTAINER_MAIN)
            p->containers[n++] = p->containers[i];
    }
    p->n_containers = p->n_mains = n;
}

/* The labels and annotations of gpushare's pods mean nothing, or are refused. */
static void forget_shape(struct pod_object *p)
{
    p->count = 0;
    p->percent = 0;
    p->whole = false;
    for (unsigned i = 0; i < p->n_containers; i++) {
        struct container_object *c = &p->containers[i];
        c->named = c->named && c->mem > 0;
        c->cores = c->named ? c->cores : 0;
        c->exclusive = 0;
    }
}

/* Volcano's plugin acknowledges the pod with its first container, so a second one is refused. */
static void make_volcano(struct pod_object *p)
{
    unsigned asks = 0;
    unsigned most = draw(12) == 0 ? 2 : 1;
    for (unsigned i = 0; i < p->n_containers; i++) {
        struct container_object *c = &p->containers[i];
        c->cores = 0;
        asks += c->named ? 1 : 0;
        if (c->named && asks > most) {
            c->named = false;
            c->mem = 0;
        }
    }
}

static void give_cores(struct container_object *c)
{
    if (c->mem > 0 && c->cores == 0 && draw(30) > 0)
        c->cores = 10 + 10 * (int64_t)draw(6);
}

/* 100 and more of compute are whole cards. gpu-manager gives no memory without compute. */
static void make_by_cores(struct pod_object *p)
{
    struct container_object *c = &p->containers[0];
    bool whole = (kind(KIND_WHOLE) || p->plugin == PLUGIN_TENCENT) && draw(3) == 0;
    for (unsigned i = 0; i < p->n_containers; i++)
        p->containers[i].cores = MIN_OF(p->containers[i].cores, 70);
    for (unsigned i = 0; p->plugin == PLUGIN_TENCENT && i < p->n_containers; i++)
        give_cores(&p->containers[i]);
    if (!whole || !c->named)
        return;
    p->beside = p->plugin == PLUGIN_TENCENT && draw(2) == 0;
    for (unsigned i = 1; i < p->n_containers; i++) {
        p->containers[i].named = false;
        p->containers[i].mem = p->containers[i].cores = 0;
    }
    p->whole = true;
    p->count = 1 + draw(2);
    c->mem = 0;
    c->cores = 100 * (int64_t)p->count;
}

/* HAMi's family: of each card so much. 100 of compute are all of it, and no memory is all memory.
 */
static void make_hami(struct pod_object *p)
{
    struct container_object *c = NULL;
    unsigned asks = 0;
    for (unsigned i = 0; i < p->n_containers; i++) {
        struct container_object *its = &p->containers[i];
        /* Volcano's plugin serves one; several with a quota are not counted here. */
        if (its->named && asks > 0 &&
            (kind(KIND_QUOTAS) || (p->plugin == PLUGIN_VGPU && draw(12) > 0))) {
            its->named = false;
            its->mem = its->cores = 0;
        }
        asks += its->named ? 1 : 0;
        c = its->named ? its : c;
        its->cores = MIN_OF(its->cores, 70);
    }
    if (asks != 1 || c == NULL)
        return;
    p->count = 1 + (kind(KIND_COUNT) && draw(2) == 0 ? draw(3) : 0);
    if (kind(KIND_PERCENT) && draw(3) == 0) {
        p->percent = 10 * (1 + draw(10));
        c->mem = 0;
    }
    p->whole = kind(KIND_WHOLE) && draw(3) == 0;
    c->cores = p->whole ? 100 : c->cores;
    c->mem *= p->count;
    c->cores *= p->count;
    p->renamed = draw(24) == 0; /* of NVIDIA's plugin, beside it */
    c->exclusive = p->renamed ? 2 : 0;
}

void plugins_make_pod(struct pod_object *p)
{
    struct pod_object q = *p;
    if (world.set.plugins == 0)
        return;
    q.plugin = some_plugin();
    keep_main_containers(&q);
    forget_shape(&q);
    if (q.plugin == PLUGIN_GPUSHARE || pod_object_mem(&q) == 0)
        return;
    if (q.plugin == PLUGIN_VOLCANO)
        make_volcano(&q);
    else if (q.plugin == PLUGIN_ELASTIC || q.plugin == PLUGIN_TENCENT)
        make_by_cores(&q);
    else
        make_hami(&q);
    *p = q;
}

bool plugins_may_bind(const struct pod_object *p, const struct node_object *n)
{
    return world.set.plugins == 0 || world.set.foreign || n == NULL || !pod_object_shares(p) ||
           p->plugin == n->plugin;
}

bool plugins_allocate(struct pod_object *p)
{
    struct grants_object *g = &p->allocation;
    if (p->plugin == PLUGIN_GPUSHARE)
        return false;
    p->idx = p->plugin == PLUGIN_VOLCANO ? name_of("", draw(3)) : name_from(STR(""));
    if (p->plugin != PLUGIN_ELASTIC) {
        bool devices = plugin_has_devices(p->plugin);
        p->assigned = name_from(devices ? STR("allocating") : STR("false"));
        p->assume = name_of("", SIM_EPOCH_NS / (devices ? 1000000000 : 1));
    }
    if (p->plugin == PLUGIN_VGPU)
        p->on = p->node.z[0] != '\0' ? p->node : store.nodes[draw(store.n_nodes)].name;
    if (p->plugin == PLUGIN_VOLCANO)
        return true;
    *g = (struct grants_object){.there = true};
    for (unsigned i = 0; i < p->n_containers; i++) {
        unsigned first = draw(3);
        if (!plugin_has_devices(p->plugin) && draw(6) == 0)
            continue; /* the annotation of this container is missing */
        for (unsigned k = 0; container_object_asks(p, i) && k < pod_object_cards(p); k++) {
            g->at[g->n].container = (uint8_t)i;
            g->at[g->n].amount = (int32_t)(1 + draw(12));
            g->at[g->n].cores = (uint8_t)(10 * draw(8));
            g->at[g->n++].card = (uint8_t)(first + k);
        }
    }
    return true;
}

/* The acknowledgement of HAMi's family stays: the plugin would wait for a second call, which does
 * not come. */
bool plugins_edit(struct pod_object *p)
{
    struct name assigned = p->assigned;
    bool times = p->plugin == PLUGIN_VOLCANO || p->plugin == PLUGIN_TENCENT;
    if (p->plugin == PLUGIN_GPUSHARE)
        return false;
    switch (draw(5)) {
    case 0:
        (void)plugins_allocate(p);
        break;
    case 1:
        p->allocation = (struct grants_object){.there = false};
        p->idx = name_from(p->plugin == PLUGIN_VOLCANO && draw(2) == 0 ? STR("-1") : STR(""));
        break;
    case 2:
        p->assigned = name_from(times ? STR("false") : STR(""));
        break;
    case 3:
        p->assume = name_from(times ? STR("soon") : STR(""));
        break;
    default:
        p->note = name_of("edited ", draw(1000));
        break;
    }
    if (plugin_has_devices(p->plugin))
        p->assigned = assigned;
    p->gated = false;
    return true;
}

/* ---- nodes ---- */

void plugins_make_table(struct node_object *n)
{
    static const int64_t sizes[] = {8, 16, 16, 24};
    unsigned index = 0;
    if (!plugin_has_devices(n->plugin))
        return;
    n->has_table = true;
    n->bad_table = draw(30) == 0;
    n->n_table = 0;
    for (int64_t i = 0; i < n->count && index < MAX_CARDS; i++) {
        struct card_object *c = &n->table[n->n_table++];
        *c = (struct card_object){.index = (uint8_t)index, .uuid = true};
        c->mem = world.set.alike ? 16 : sizes[draw(COUNT_OF(sizes))];
        c->count = (uint8_t)(draw(3) == 0 ? 1 + draw(3) : 10);
        c->model = (int8_t)draw(3);
        c->numa = (int8_t)((int)draw(NUMA_NODES + 1) - 1);
        c->ill = draw(12) == 0;
        index += draw(6) == 0 && n->plugin == PLUGIN_HAMI ? 2 : 1;
        if (n->plugin == PLUGIN_VGPU)
            c->numa = -1;
    }
    plugins_settle_node(n);
}

void plugins_settle_node(struct node_object *n)
{
    int64_t sum = 0;
    if (!n->exists)
        n->lock = n->vgpu_lock = (struct lock_object){.z = ""};
    if (!plugin_has_devices(n->plugin))
        return;
    n->has_table = true;
    for (unsigned i = 0; i < n->n_table; i++) {
        n->table[i].uuid = true;
        sum += n->table[i].mem;
    }
    n->mem = n->mem > 0 ? sum : n->mem;
    n->allocatable = n->allocatable > 0 ? n->mem : n->allocatable;
}

void plugins_make_node(struct node_object *n)
{
    if (world.set.plugins == 0)
        return;
    n->plugin = some_plugin();
    if (n->plugin == PLUGIN_GPUSHARE)
        return;
    n->has_table = n->bad_table = false;
    n->count = n->count < 0 ? 1 : n->count;
    plugins_make_table(n);
    n->allocatable = n->mem;
}

static void report_ill(struct node_object *n)
{
    static const char *const lists[] = {"", "0", "1", "0,2", "2"};
    n->ill = name_from(str_of(lists[draw(COUNT_OF(lists))]));
}

bool plugins_change_node(struct node_object *n)
{
    if (n->plugin != PLUGIN_VOLCANO || draw(4) > 0)
        return false;
    report_ill(n);
    return true;
}

void plugins_replace(struct node_object *n)
{
    n->left |= 1U << n->plugin;
    node_size(n);
    plugins_make_node(n);
}
