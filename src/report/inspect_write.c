/*
 * gpushare's inspect (its pkg/scheduler/gpushare-inspect.go), from the usage that filter and bind
 * use. Memory that is charged to a node but to none of its cards is shown as a device with id -1.
 * Pods under deletion are shown: they still hold their card.
 */
#include "report/inspect_write.h"

#include "objects/stamp.h"
#include "report/held.h"
#include "json/jwrite.h"

#include <stdlib.h>

/* What a node's part of the answer is written from. */
struct inspect_node {
    enum inspect_form form;
    struct held_walk held;
};

static void inspect_write_pod(struct jwrite *w, const struct inspect_node *x, const struct held *h)
{
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("name"), h->pod->name);
    jwrite_str_at(w, STR("namespace"), h->pod->namespace);
    jwrite_i64_at(w, STR("usedGPU"), h->mem);
    if (x->form == INSPECT_CARDS && h->cores > 0)
        jwrite_i64_at(w, STR("compute"), h->cores);
    if (h->known)
        jwrite_i64_at(w, STR("usedMiB"), h->used_mib);
    if (h->exceeds)
        jwrite_bool_at(w, STR("exceeds"), true);
    jwrite_object_end(w);
}

/* A pod is shown on each of its cards; without a valid one, on card -1. */
static void inspect_write_pods(struct jwrite *w, struct inspect_node *x, int64_t card)
{
    struct held h;
    jwrite_array_at(w, STR("pods"));
    while (held_next(&x->held, card, &h))
        inspect_write_pod(w, x, &h);
    jwrite_array_end(w);
}

/* The first reason that applies why the card takes no new pods. */
static struct str inspect_write_state_of(const struct card *c)
{
    return c->unhealthy             ? STR("unhealthy")
           : c->cordoned            ? STR("cordoned")
           : c->aside               ? STR("aside")
           : c->given || c->claimed ? STR("dra")
                                    : STR("ok");
}

static void inspect_write_more(struct jwrite *w, const struct node *n, uint32_t card)
{
    const struct card *c = &n->cards[card];
    const struct card_info *infos = n->sizes == NULL ? NULL : n->sizes->infos;
    struct uuid_room room _uninitialized_;
    const struct str uuid = node_card_uuid(n, card, &room);
    const struct str profile = infos == NULL ? STR_NULL : infos[card].profile;
    jwrite_i64_at(w, STR("freeGPU"), card_free(c));
    jwrite_i64_at(w, STR("compute"), c->cores);
    jwrite_str_at(w, STR("state"), inspect_write_state_of(c));
    if (node_card_model(n, card).n > 0)
        jwrite_str_at(w, STR("model"), node_card_model(n, card));
    if (uuid.n > 0)
        jwrite_str_at(w, STR("uuid"), uuid);
    if (profile.n > 0)
        jwrite_str_at(w, STR("profile"), profile);
    if (node_card_numa(n, card) >= 0)
        jwrite_i64_at(w, STR("numa"), node_card_numa(n, card));
}

static void inspect_write_card_measured(struct jwrite *w, const struct measured_card *c)
{
    if (c == NULL)
        return;
    jwrite_i64_at(w, STR("usedMiB"), c->used_mib);
    jwrite_i64_at(w, STR("sizeMiB"), c->total_mib);
    if (c->busy_percent != MEASURED_BUSY_UNKNOWN)
        jwrite_i64_at(w, STR("busyPercent"), c->busy_percent);
}

static void inspect_write_card(struct jwrite *w, struct inspect_node *x, int64_t id, int64_t total,
                               int64_t used)
{
    jwrite_object_begin(w);
    jwrite_i64_at(w, STR("id"), id);
    jwrite_i64_at(w, STR("totalGPU"), total);
    jwrite_i64_at(w, STR("usedGPU"), used);
    if (x->form == INSPECT_CARDS && id >= 0)
        inspect_write_more(w, x->held.node, (uint32_t)id);
    if (id >= 0)
        inspect_write_card_measured(w, measured_card_of(x->held.measured, (uint32_t)id));
    inspect_write_pods(w, x, id);
    jwrite_object_end(w);
}

static struct str inspect_write_fault_of(const struct node *n)
{
    switch (n->fault) {
    case NODE_OK:
        return STR_NULL;
    case NODE_ABSENT:
        return STR("pods are bound to it, and there is no such node");
    case NODE_NOT_SHARED:
        return STR("it has no aliyun.com/gpu-mem");
    case NODE_NO_CARDS:
        return STR("it has aliyun.com/gpu-mem and no aliyun.com/gpu-count");
    case NODE_BAD_QUANTITY:
        return STR("its aliyun.com/gpu-mem or aliyun.com/gpu-count is not usable");
    case NODE_BAD_CARDS:
        return n->sizes->cards_fault;
    }
    return STR_NULL;
}

static void inspect_write_node_more(struct jwrite *w, const struct inspect_node *x)
{
    const struct node *n = x->held.node;
    jwrite_i64_at(w, STR("freeGPU"), node_left(n));
    if (n->fault != NODE_OK)
        jwrite_str_at(w, STR("fault"), inspect_write_fault_of(n));
    if (n->sizes != NULL && n->sizes->pool.n > 0)
        jwrite_str_at(w, STR("pool"), n->sizes->pool);
    if (n->sizes != NULL && n->sizes->isolation != ISOLATION_UNKNOWN)
        jwrite_str_at(w, STR("isolation"), str_of(isolation_name(n->sizes->isolation)));
}

static void inspect_write_when(struct jwrite *w, const struct measured_node *m)
{
    char seen[STAMP_BYTES];
    if (m != NULL)
        jwrite_str_at(w, STR("measured"), stamp_print(m->seen_s, seen));
}

static void inspect_write_node(struct jwrite *w, enum inspect_form form, const struct measured *m,
                               const struct node *n)
{
    struct inspect_node x _uninitialized_;
    x.form = form;
    if (!held_begin(&x.held, n, m)) {
        w->out->failed = true;
        return;
    }
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("name"), n->name);
    jwrite_i64_at(w, STR("totalGPU"), n->total);
    jwrite_i64_at(w, STR("usedGPU"), n->used);
    if (form == INSPECT_CARDS)
        inspect_write_node_more(w, &x);
    inspect_write_when(w, x.held.measured);
    jwrite_array_at(w, STR("devs"));
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!n->cards[i].absent)
            inspect_write_card(w, &x, i, n->cards[i].total, n->cards[i].used);
    }
    if (n->unplaced > 0)
        inspect_write_card(w, &x, -1, 0, n->unplaced);
    jwrite_array_end(w);
    jwrite_object_end(w);
    held_end(&x.held);
}

static int inspect_write_by_name(const void *a, const void *b)
{
    const struct node *const *x = a;
    const struct node *const *y = b;
    return str_cmp((*x)->name, (*y)->name);
}

const struct node **inspect_write_collect(const struct cache *c, struct arena *a, size_t *ret_n)
{
    const struct node **nodes = arena_array(a, c->nodes.n, sizeof(struct node *));
    size_t cursor = 0;
    *ret_n = 0;
    if (nodes == NULL)
        return NULL;
    for (const struct node *n = cache_next_node(c, &cursor); n != NULL;
         n = cache_next_node(c, &cursor)) {
        if (node_is_shared(n))
            nodes[(*ret_n)++] = n;
    }
    if (*ret_n > 1)
        qsort((void *)nodes, *ret_n, sizeof(struct node *), inspect_write_by_name);
    return nodes;
}

static void inspect_write_error(struct jwrite *w, struct str node)
{
    char bytes[512];
    struct buf text = BUF_ON(bytes);
    buf_printf(&text, "node \"%.*s\" not found", STR_ARG(node));
    jwrite_str_at(w, STR("error"), buf_str(&text));
}

enum errc inspect_write(const struct cache *c, const struct measured *m, struct str node,
                        enum inspect_form form, struct arena *a, struct buf *out)
{
    struct jwrite w;
    size_t n = 0;
    const struct node **nodes = node.p == NULL ? inspect_write_collect(c, a, &n) : NULL;
    const struct node *one = node.p == NULL ? NULL : cache_node(c, node);
    if (node.p == NULL && nodes == NULL)
        return arena_fault(a);
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_array_at(&w, STR("nodes"));
    for (size_t i = 0; i < n && !buf_failed(out); i++)
        inspect_write_node(&w, form, m, nodes[i]);
    if (one != NULL)
        inspect_write_node(&w, form, m, one);
    jwrite_array_end(&w);
    if (node.p != NULL && one == NULL)
        inspect_write_error(&w, node);
    jwrite_object_end(&w);
    return buf_fault(out);
}
