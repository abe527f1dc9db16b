/* Random pods of all dialects: an agent that reads our annotations by its own rules gives the card
 * that the cache charged, and no card is over its size. */
#include "dialect_rig.h"

static void draw_containers(uint64_t *dice, enum dialect d, char *out, size_t size)
{
    uint32_t n = d == DIALECT_VOLCANO ? 1 : 1 + seeded_draw(dice, 3);
    bool whole = d != DIALECT_VOLCANO && seeded_draw(dice, 5) == 0;
    struct buf text;
    const struct dialect_facts *f = dialect_facts(d);
    buf_init(&text, size);
    buf_put(&text, STR("\"containers\":["));
    for (uint32_t i = 0; i < (whole ? 1 : n); i++) {
        buf_printf(&text, "%s{\"name\":\"c%u\",\"resources\":{\"limits\":{", i == 0 ? "" : ",", i);
        if (whole)
            buf_printf(&text, "\"%.*s\":\"%u\"", STR_ARG(f->cores),
                       100 * (1 + seeded_draw(dice, 2)));
        else if (d == DIALECT_VOLCANO)
            buf_printf(&text, "\"%.*s\":\"%u\"", STR_ARG(f->mem), 1 + seeded_draw(dice, 12));
        else
            buf_printf(&text, "\"%.*s\":\"%u\",\"%.*s\":\"%u\"", STR_ARG(f->mem),
                       1 + seeded_draw(dice, 8), STR_ARG(f->cores), 5 * (1 + seeded_draw(dice, 9)));
        buf_put(&text, STR("}}}"));
    }
    buf_put(&text, STR("]"));
    ck_assert_uint_lt(text.n, size);
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    buf_done(&text);
}

/* The members of the annotations of the Binding for the pod. */
static void write_annotations(const struct pod *p, const struct pod_view *view, char *out,
                              size_t size)
{
    struct binding_seat seats[REQUEST_DEMANDS_MAX];
    struct binding b = {.namespace = p->namespace,
                        .name = p->name,
                        .uid = p->uid,
                        .node = p->node->name,
                        .dialect = p->request->dialect,
                        .assume_ns = p->assume_ns};
    struct buf texts;
    struct buf json;
    struct jwrite w;
    char idx[64];
    struct buf index = BUF_ON(idx);
    buf_init(&texts, SIZE_MAX);
    buf_init(&json, SIZE_MAX);
    for (uint32_t i = 0; i < p->holding->n_shares; i++)
        buf_printf(&index, "%s%u", i == 0 ? "" : ",", p->holding->shares[i].card);
    b.idx = buf_str(&index);
    if (dialect_facts(b.dialect)->seat.p != NULL) {
        b.n_seats = seats_write(p->holding, p->request, view, &texts, seats);
        b.seats = seats;
        ck_assert_uint_gt(b.n_seats, 0);
    }
    jwrite_init(&w, &json);
    kube_write_binding(&w, &b);
    struct str all = buf_str(&json);
    const char *begin = memmem(all.p, all.n, "\"annotations\":{", 15);
    ck_assert_ptr_nonnull(begin);
    begin += 15;
    const char *end = memchr(begin, '}', all.n - (size_t)(begin - all.p));
    ck_assert_ptr_nonnull(end);
    ck_assert_uint_lt((size_t)(end - begin), size);
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = '\0';
    buf_done(&texts);
    buf_done(&json);
}

struct history {
    struct rig rig;
    uint64_t dice;
    enum dialect dialect;
    unsigned bound;
    char uids[64][8];
    unsigned n;
};

static void bind_one(struct history *h, unsigned step)
{
    char containers[1024];
    char annotations[1024];
    char uid[8];
    struct object o;
    struct object after;
    (void)snprintf(uid, sizeof(uid), "p%u", step);
    draw_containers(&h->dice, h->dialect, containers, sizeof(containers));
    object_pod(&o, uid, containers, "", "");
    ck_assert_msg(o.readable == OK, "%s: %s", containers, o.err.text);
    struct cache_event e = {.type = CACHE_RESERVE,
                            .reserve = {.uid = str_of(uid),
                                        .namespace = STR("ns"),
                                        .name = str_of(uid),
                                        .node = STR("n"),
                                        .request = &o.request}};
    cache_resolve(&h->rig.cache, STR(""), &o.request);
    enum verdict v = fit_node(node_of(&h->rig, "n"), &o.request);
    ck_assert_msg((rig_apply(&h->rig, &e) == OK) == (v == VERDICT_FITS), "%s: %s, then %s",
                  containers, verdict_name(v), verdict_name(h->rig.fx.verdict));
    if (v == VERDICT_FITS) {
        const struct pod *p = pod_of(&h->rig, uid);
        ck_assert_int_eq(renew(&h->rig, uid), OK);
        write_annotations(p, &o.pod, annotations, sizeof(annotations));
        struct placement there;
        object_pod(&after, uid, containers, annotations, "n");
        placement_read(&after.pod, &after.request, &there);
        ck_assert_msg(holding_has(p->holding, &there), "%s: %s", containers, annotations);
        int64_t used[4];
        for (uint32_t card = 0; card < 4; card++)
            used[card] = card_used(&h->rig, "n", card);
        struct cache_event shown = {.type = CACHE_POD_SET, .pod = after.pod};
        ck_assert_int_eq(rig_apply(&h->rig, &shown), OK);
        for (uint32_t card = 0; card < 4; card++) {
            ck_assert_int_eq(card_used(&h->rig, "n", card), used[card]);
            ck_assert_int_le(used[card], 16);
            ck_assert_uint_le(node_of(&h->rig, "n")->cards[card].cores, 100);
        }
        object_end(&after);
        memcpy(h->uids[h->n++], uid, sizeof(uid));
        h->bound++;
    }
    object_end(&o);
}

START_TEST(what_we_write_is_what_the_cache_charged)
{
    uint64_t seeds = seeded_setting("DIALECT_SEEDS", 20);
    all_dialects();
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct history h = {.dice = seed, .dialect = (enum dialect)_i};
        rig_init(&h.rig);
        set_node(&h.rig, "n", h.dialect);
        for (unsigned step = 0; step < 60; step++) {
            if (h.n > 0 && seeded_draw(&h.dice, 3) == 0) {
                unsigned at = seeded_draw(&h.dice, h.n);
                pod_gone(&h.rig, h.uids[at]);
                memcpy(h.uids[at], h.uids[--h.n], sizeof(h.uids[0]));
            } else {
                bind_one(&h, step);
            }
        }
        ck_assert_uint_gt(h.bound, 8);
        rig_done(&h.rig);
    }
}

END_TEST

int main(void)
{
    Suite *s = suite_create("dialect_model");
    TCase *t = tcase_create("dialect_model");
    tcase_add_loop_test(t, what_we_write_is_what_the_cache_charged, DIALECT_GPUSHARE + 1,
                        DIALECT_COUNT);
    suite_add_tcase(s, t);
    return unit_main(s);
}
