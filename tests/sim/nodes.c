/* Random nodes: their sizes, their tables of cards, and changes to them. */
#include "claims.h"
#include "kinds.h"
#include "plugins.h"

static const int64_t sizes[] = {8, 16, 16, 16, 24};

static int64_t some_size(void)
{
    return sizes[draw(COUNT_OF(sizes))];
}

/* A table with gaps in the indices and cards of different sizes. */
static void make_table(struct node_object *n)
{
    unsigned index = draw(3) == 0 ? 1 : 0;
    n->has_table = true;
    n->bad_table = draw(20) == 0;
    n->n_table = 0;
    n->mem = 0;
    for (int64_t i = 0; i < n->count && index < MAX_CARDS; i++) {
        struct card_object *c = &n->table[n->n_table++];
        *c = (struct card_object){.index = (uint8_t)index, .mem = some_size()};
        c->ill = draw(10) == 0;
        c->uuid = draw(2) == 0;
        c->model = (int8_t)draw(3);
        c->numa = (int8_t)((int)draw(NUMA_NODES + 1) - 1);
        if (kind(KIND_CLAIMS))
            claims_name_card(n, c);
        n->mem += c->mem;
        index += draw(4) == 0 ? 2 : 1;
    }
    if (draw(8) == 0)
        n->count = -1;
    if (draw(8) == 0)
        n->mem -= 4;
}

void node_size(struct node_object *n)
{
    n->count = 1 + (int64_t)draw(world.set.max_cards);
    n->mem = n->count * some_size();
    n->has_table = false;
    if (world.set.alike) {
        n->count = world.set.max_cards;
        n->mem = n->count * 16;
    } else if (draw(12) == 0) {
        n->mem = 1000 * n->count;
    } else if (draw(12) == 0) {
        n->mem++; /* not divisible by the number of cards */
    }
    if (n->plugin == PLUGIN_GPUSHARE && kind(KIND_TABLES) && draw(world.set.alike ? 12 : 2) == 0)
        make_table(n);
    plugins_make_table(n);
    n->allocatable = n->mem;
    n->memory = n->count % 2 == 0 ? n->mem * ((int64_t)1 << 30) : 0;
    n->exclusive = kind(KIND_EXCLUSIVE) ? 4 : -1;
    if (kind(KIND_CLASSES) && draw(3) > 0)
        n->exclusive = (int64_t)draw(2) - 1; /* 0, or absent: no plugin has cards of this name */
    if (kind(KIND_SELECTS) || kind(KIND_QUOTAS))
        n->model = (int8_t)draw(MODELS);
    if (kind(KIND_SELECTS))
        n->isolation = (uint8_t)draw(ISOLATIONS);
    if (kind(KIND_QUOTAS))
        n->pool = (uint8_t)draw(POOLS);
}

static struct name some_list(void)
{
    static const char *const lists[] = {"", "0", "1", "0, 1", "2", "x,3"};
    return name_from(str_of(lists[draw(COUNT_OF(lists))]));
}

static void mark(struct node_object *n)
{
    static const char *const most[] = {"", "1", "2", "3", "many"};
    switch (draw(3)) {
    case 0:
        n->cordoned = some_list();
        break;
    case 1:
        n->max_pods = name_from(str_of(most[draw(COUNT_OF(most))]));
        break;
    default:
        n->placement = name_from(draw(2) == 0 ? STR("spread") : STR(""));
        break;
    }
}

void node_label(struct node_object *n)
{
    if (kind(KIND_SELECTS) && draw(2) == 0)
        n->isolation = (uint8_t)draw(ISOLATIONS);
    else if (draw(2) == 0)
        n->pool = (uint8_t)draw(POOLS);
    else
        n->model = (int8_t)draw(MODELS);
}

/* The administrator edits the node's table of cards. */
static void edit_table(struct node_object *n)
{
    struct card_object *c = &n->table[draw(n->n_table)];
    switch (draw(6)) {
    case 0:
        c->ill = !c->ill;
        break;
    case 1:
        n->mem -= c->mem;
        c->mem = some_size();
        n->mem += c->mem;
        n->allocatable = n->mem;
        break;
    case 2:
        c->model = (int8_t)draw(3);
        break;
    case 3:
        c->uuid = !c->uuid;
        break;
    case 4:
        n->bad_table = !n->bad_table;
        break;
    default:
        if (n->n_table > 1)
            n->n_table--;
        break;
    }
}

void node_change(struct node_object *n)
{
    if (plugins_change_node(n))
        return;
    if (kind(KIND_MARKS) && draw(3) == 0) {
        mark(n);
        return;
    }
    if (kind(KIND_EXCLUSIVE) && draw(3) == 0) {
        n->aside = some_list();
        return;
    }
    if (kind(KIND_CLAIMS) && !world.set.partition && draw(6) == 0) {
        claims_give(n);
        return;
    }
    if (kind(KIND_QUOTAS) && draw(3) == 0) {
        node_label(n);
        return;
    }
    if (n->has_table && n->n_table > 0 && draw(2) == 0) {
        edit_table(n);
        return;
    }
    switch (draw(8)) {
    case 0:
    case 1:
        n->exists = !n->exists;
        break;
    case 2:
        n->allocatable = draw(2) == 0 ? 0 : n->mem; /* the kubelet restarts */
        break;
    case 3:
        n->count = draw(2) == 0 ? -1 : 1 + (int64_t)draw(world.set.max_cards);
        break;
    case 4:
        n->mem = draw(2) == 0 ? -1 : 0;
        break;
    default:
        node_size(n);
        break;
    }
}
