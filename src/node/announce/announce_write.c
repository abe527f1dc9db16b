/* Writes the texts that announce.c sends. */
#include "node/announce/announce_write.h"

#include "core/dialect/gpushare.h"

static void announce_write_known(struct jwrite *w, struct str key, struct str value)
{
    if (value.n > 0)
        jwrite_str_at(w, key, value);
}

static void announce_write_card(struct jwrite *w, const struct announce_card *c)
{
    jwrite_object_begin(w);
    jwrite_u64_at(w, STR("index"), c->index);
    jwrite_i64_at(w, STR("memory"), c->units);
    if (c->model.n > 0) {
        /* With hyphens, as nvidia.com/gpu.product has it: pods select by such names. */
        jwrite_key(w, STR("model"));
        jwrite_str_replacing(w, c->model, ' ', STR("-"));
    }
    announce_write_known(w, STR("uuid"), c->uuid);
    announce_write_known(w, STR("pci"), c->pci);
    announce_write_known(w, STR("profile"), c->profile);
    if (c->numa >= 0)
        jwrite_i64_at(w, STR("numa"), c->numa);
    if (c->health == GPU_UNHEALTHY)
        jwrite_str_at(w, STR("health"), STR("Unhealthy"));
    jwrite_object_end(w);
}

void announce_write_cards(struct buf *out, const struct announce_card *cards, size_t n)
{
    struct jwrite w;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || cards[i].units > 0;
    if (!any)
        return;
    jwrite_init(&w, out);
    jwrite_array_begin(&w);
    for (size_t i = 0; i < n; i++) {
        if (cards[i].units > 0)
            announce_write_card(&w, &cards[i]);
    }
    jwrite_array_end(&w);
}

void announce_write_ill(struct buf *out, const struct announce_card *cards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (cards[i].health != GPU_UNHEALTHY)
            continue;
        if (out->n > 0)
            buf_putc(out, ',');
        buf_put_u64(out, cards[i].index);
    }
}

/* {"aliyun.com/gpu-count": "2"}; null removes it. */
static void announce_write_count(struct jwrite *w, struct str key, const struct announce_node *n)
{
    char bytes[32];
    struct buf text = BUF_ON(bytes);
    buf_put_u64(&text, n->count);
    jwrite_object_at(w, key);
    jwrite_str_at(w, GPUSHARE_RESOURCE_COUNT, n->cards.n > 0 ? buf_str(&text) : STR_NULL);
    jwrite_object_end(w);
}

void announce_write_node(struct buf *out, const struct announce_node *n)
{
    struct jwrite w;
    bool any = n->cards.n > 0;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_object_at(&w, STR("metadata"));
    jwrite_object_at(&w, STR("annotations"));
    jwrite_str_at(&w, CARDPACK_ANNOTATION_CARDS, any ? n->cards : STR_NULL);
    jwrite_str_at(&w, CARDPACK_ANNOTATION_LATE, any && n->late ? STR("true") : STR_NULL);
    jwrite_object_end(&w);
    jwrite_object_at(&w, STR("labels"));
    jwrite_str_at(&w, CARDPACK_LABEL_ISOLATION,
                  any ? str_of(isolation_name(n->isolation)) : STR_NULL);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    jwrite_object_at(&w, STR("status"));
    announce_write_count(&w, STR("capacity"), n);
    announce_write_count(&w, STR("allocatable"), n);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}

void announce_write_map(struct buf *out, struct str name, struct str ill)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    if (name.n > 0) {
        jwrite_str_at(&w, STR("apiVersion"), STR("v1"));
        jwrite_str_at(&w, STR("kind"), STR("ConfigMap"));
        jwrite_object_at(&w, STR("metadata"));
        jwrite_str_at(&w, STR("name"), name);
        jwrite_str_at(&w, STR("namespace"), GPUSHARE_UNHEALTHY_NAMESPACE);
        jwrite_object_end(&w);
    }
    jwrite_object_at(&w, STR("data"));
    jwrite_str_at(&w, GPUSHARE_UNHEALTHY_KEY, ill);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}
