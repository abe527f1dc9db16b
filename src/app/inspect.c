/*
 * gpushare's inspect (its pkg/scheduler/gpushare-inspect.go), from the same figures that decide.
 * What is charged to a node but to no card of it is shown as a device with id -1. Pods that are
 * being deleted are shown: they still hold their card.
 */
#include "jwrite.h"
#include "service.h"

#include <stdlib.h>

static void write_pods(struct jwrite *w, const struct node *n, int64_t card)
{
    jwrite_key(w, STR("pods"));
    jwrite_array_begin(w);
    for (const struct pod *p = n->pods; p != NULL; p = p->next) {
        bool valid = p->card >= 0 && (uint32_t)p->card < n->n_cards;
        if ((valid ? p->card : -1) != card)
            continue;
        jwrite_object_begin(w);
        jwrite_key(w, STR("name"));
        jwrite_str(w, p->name);
        jwrite_key(w, STR("namespace"));
        jwrite_str(w, p->namespace);
        jwrite_key(w, STR("usedGPU"));
        jwrite_i64(w, p->mem);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

static void write_card(struct jwrite *w, const struct node *n, int64_t id, int64_t total,
                       int64_t used)
{
    jwrite_object_begin(w);
    jwrite_key(w, STR("id"));
    jwrite_i64(w, id);
    jwrite_key(w, STR("totalGPU"));
    jwrite_i64(w, total);
    jwrite_key(w, STR("usedGPU"));
    jwrite_i64(w, used);
    write_pods(w, n, id);
    jwrite_object_end(w);
}

static void write_node(struct jwrite *w, const struct node *n)
{
    jwrite_object_begin(w);
    jwrite_key(w, STR("name"));
    jwrite_str(w, n->name);
    jwrite_key(w, STR("totalGPU"));
    jwrite_i64(w, n->total);
    jwrite_key(w, STR("usedGPU"));
    jwrite_i64(w, n->used);
    jwrite_key(w, STR("devs"));
    jwrite_array_begin(w);
    for (uint32_t i = 0; i < n->n_cards; i++)
        write_card(w, n, i, n->cards[i].total, n->cards[i].used);
    if (n->unplaced > 0)
        write_card(w, n, -1, 0, n->unplaced);
    jwrite_array_end(w);
    jwrite_object_end(w);
}

static int by_name(const void *a, const void *b)
{
    const struct node *const *x = a;
    const struct node *const *y = b;
    return str_cmp((*x)->name, (*y)->name);
}

/* Nodes with gpu-mem, or with pods that hold some; in the order of their names. */
static const struct node **collect(const struct service *s, struct arena *a, size_t *ret_n)
{
    const struct node **nodes = arena_array(a, s->cache.nodes.n, sizeof(struct node *));
    size_t cursor = 0;
    *ret_n = 0;
    if (nodes == NULL)
        return NULL;
    for (const struct node *n = cache_next_node(&s->cache, &cursor); n != NULL;
         n = cache_next_node(&s->cache, &cursor)) {
        if (n->total > 0 || n->pods != NULL)
            nodes[(*ret_n)++] = n;
    }
    if (*ret_n > 1)
        qsort((void *)nodes, *ret_n, sizeof(struct node *), by_name);
    return nodes;
}

static void write_error(struct jwrite *w, struct str node)
{
    char bytes[512];
    struct buf text = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    buf_printf(&text, "node \"%.*s\" not found", STR_ARG(node));
    jwrite_key(w, STR("error"));
    jwrite_str(w, buf_str(&text));
}

void inspect_handle(struct service *s, struct http_request *r, struct str node)
{
    struct jwrite w;
    size_t n = 0;
    jwrite_init(&w, r->answer);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("nodes"));
    jwrite_array_begin(&w);
    if (node.p == NULL) {
        const struct node **nodes = collect(s, r->arena, &n);
        for (size_t i = 0; i < n; i++)
            write_node(&w, nodes[i]);
        jwrite_array_end(&w);
        if (nodes == NULL)
            r->answer->failed = true;
    } else {
        const struct node *one = cache_node(&s->cache, node);
        if (one != NULL)
            write_node(&w, one);
        jwrite_array_end(&w);
        if (one == NULL)
            write_error(&w, node);
    }
    jwrite_object_end(&w);
    http_request_respond(r, 200, "application/json");
}
