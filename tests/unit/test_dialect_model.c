/* Random pods of all dialects: an agent that reads our annotations by its own rules gives the card
 * that the cache charged, and no card is over its size. */
#include "core/vgpu.h"
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

/* One container with cards among others, in a dialect whose pods name their cards by UUID. *ret_at:
 * its index at the plugin. */
static void draw_devices(uint64_t *dice, enum dialect d, char *out, size_t size, uint32_t *ret_at)
{
    const struct dialect_facts *f = dialect_facts(d);
    uint32_t before = seeded_draw(dice, 3);
    uint32_t behind = seeded_draw(dice, 2);
    uint32_t inits = seeded_draw(dice, 2);
    uint32_t kind = seeded_draw(dice, 4);
    struct buf text;
    buf_init(&text, size);
    if (inits > 0)
        buf_put(&text, STR("\"initContainers\":[{\"name\":\"i\"}],"));
    buf_put(&text, STR("\"containers\":["));
    for (uint32_t i = 0; i < before; i++)
        buf_printf(&text, "{\"name\":\"b%u\"},", i);
    buf_printf(&text, "{\"name\":\"c\",\"resources\":{\"limits\":{\"%.*s\":\"%u\"",
               STR_ARG(f->count), 1 + seeded_draw(dice, 2));
    if (kind < 2)
        buf_printf(&text, ",\"%.*s\":\"%u\"", STR_ARG(f->mem), 1 + seeded_draw(dice, 8));
    else if (kind == 2)
        buf_printf(&text, ",\"%.*s\":\"%u\"", STR_ARG(f->percent), 5 + seeded_draw(dice, 50));
    if (seeded_draw(dice, 2) == 0)
        buf_printf(&text, ",\"%.*s\":\"%u\"", STR_ARG(f->cores), 10 * (1 + seeded_draw(dice, 10)));
    buf_put(&text, STR("}}}"));
    for (uint32_t i = 0; i < behind; i++)
        buf_printf(&text, ",{\"name\":\"a%u\"}", i);
    buf_put(&text, STR("]"));
    ck_assert_uint_lt(text.n, size);
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    buf_done(&text);
    *ret_at = before + (f->inits_first ? inits : 0);
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
    if (dialect_has_uuids(b.dialect)) {
        vgpu_write_pod(pod_list(p), p->request, view, &texts);
        b.idx = buf_str(&texts);
    }
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

/* The cards in the order of the node's table, by the letters of their UUIDs. */
static void set_order(struct rig *r, enum dialect d, const char order[static 4])
{
    char table[512];
    struct buf text = BUF_ON(table);
    struct object o;
    buf_printf(&text, ",\"annotations\":{\"%.*s\":\"", STR_ARG(dialect_facts(d)->table));
    for (unsigned i = 0; i < 4; i++)
        buf_printf(&text, "GPU-%c,10,16,NVIDIA-A10,true,hami-core:", order[i]);
    buf_printf(&text, "\"}%c", 0);
    ck_assert(!buf_failed(&text));
    object_node(&o, "n", table, capacities[d], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* Reads the list as Volcano's plugin does, in util.go: DecodePodDevices and GetNextDeviceRequest,
 * and HAMi's: DecodePodDevices in devices.go. Returns how many devices the container `at` gets, and
 * what of each card; the pod has no others. */
static unsigned read_as_plugin(struct str list, uint32_t at, struct share ret[static 4],
                               const char order[static 4])
{
    struct str rest = list;
    unsigned n = 0;
    for (uint32_t part = 0; rest.n > 0; part++) {
        struct str devices;
        (void)str_cut(rest, ';', &devices, &rest);
        ck_assert_msg(devices.n == 0 || part == at, "%.*s", STR_ARG(list));
        while (devices.n > 0) {
            struct str f[4];
            struct str one;
            uint64_t mem = 0;
            uint64_t cores = 0;
            (void)str_cut(devices, ':', &one, &devices);
            for (unsigned i = 0; i < 4; i++)
                (void)str_cut(one, ',', &f[i], &one);
            ck_assert(f[0].n == 5 && str_starts(f[0], STR("GPU-")));
            ck_assert_str_is(f[1], "NVIDIA");
            ck_assert(str_to_u64(f[2], 16, &mem) && str_to_u64(f[3], 100, &cores) && one.n == 0);
            const char *found = memchr(order, f[0].p[4], 4);
            ck_assert_ptr_nonnull(found);
            ck_assert_uint_lt(n, 4);
            ret[n++] = (struct share){
                .mem = (int64_t)mem, .card = (uint32_t)(found - order), .cores = (uint32_t)cores};
        }
    }
    return n;
}

struct history {
    struct rig rig;
    char order[4];
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

static void show(struct rig *r, const char *uid, const char *containers, const char *annotations)
{
    struct object o;
    object_pod(&o, uid, containers, annotations, "n");
    struct cache_event e = {.type = CACHE_POD_SET, .pod = o.pod};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

static void check_cards(const struct rig *r, const int64_t used[static 4])
{
    for (uint32_t card = 0; card < 4; card++) {
        ck_assert_int_eq(card_used(r, "n", card), used[card]);
        ck_assert_int_le(used[card], 16);
        ck_assert_uint_le(node_of(r, "n")->cards[card].cores, 100);
    }
}

/* The pod has been placed: checks its annotations, and has the plugin acknowledge it. */
static void serve_devices(struct history *h, const char *uid, const char *containers,
                          const struct object *o, uint32_t at)
{
    char annotations[1024];
    char served[1024];
    struct share shares[4];
    int64_t used[4];
    struct object after;
    struct placement there;
    const struct pod *p = pod_of(&h->rig, uid);
    ck_assert_int_eq(renew(&h->rig, uid), OK);
    for (uint32_t card = 0; card < 4; card++)
        used[card] = card_used(&h->rig, "n", card);
    write_annotations(p, &o->pod, annotations, sizeof(annotations));
    object_pod(&after, uid, containers, annotations, "n");
    unsigned n = read_as_plugin(after.pod.said[h->dialect].idx, at, shares, h->order);
    ck_assert_uint_eq(n, request_cards(&o->request));
    ck_assert_uint_eq(n, p->holding->n_shares);
    for (unsigned i = 0; i < n; i++) {
        bool found = false;
        for (unsigned k = 0; k < n; k++) {
            const struct share *s = &p->holding->shares[k];
            found = found || (s->card == shares[i].card && s->cores == shares[i].cores &&
                              s->mem == shares[i].mem);
        }
        ck_assert_msg(found, "%s: %s", containers, annotations);
    }
    object_end(&after);
    show(&h->rig, uid, containers, annotations);
    check_cards(&h->rig, used);
    ck_assert_int_eq(fit_of(&h->rig, plain[h->dialect], "n", &there) == VERDICT_FITS, 0);
    const char *waits = memmem(annotations, strlen(annotations), "allocating", 10);
    ck_assert_ptr_nonnull(waits);
    (void)snprintf(served, sizeof(served), "%.*ssuccess%s", (int)(waits - annotations), annotations,
                   waits + 10);
    show(&h->rig, uid, containers, served);
    check_cards(&h->rig, used);
}

static void bind_devices(struct history *h, unsigned step)
{
    char containers[1024];
    char uid[8];
    uint32_t at = 0;
    struct object o;
    (void)snprintf(uid, sizeof(uid), "p%u", step);
    draw_devices(&h->dice, h->dialect, containers, sizeof(containers), &at);
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
    ck_assert_int_eq(rig_apply(&h->rig, &e) == OK, v == VERDICT_FITS);
    if (v == VERDICT_FITS) {
        serve_devices(h, uid, containers, &o, at);
        memcpy(h->uids[h->n++], uid, sizeof(uid));
        h->bound++;
    }
    object_end(&o);
}

/* Two cards change places in the table: each keeps what it holds. */
static void move_cards(struct history *h)
{
    unsigned a = seeded_draw(&h->dice, 4);
    unsigned b = seeded_draw(&h->dice, 4);
    int64_t used[4];
    for (uint32_t card = 0; card < 4; card++)
        used[card] = card_used(&h->rig, "n", card);
    char letter = h->order[a];
    int64_t mem = used[a];
    h->order[a] = h->order[b];
    h->order[b] = letter;
    used[a] = used[b];
    used[b] = mem;
    set_order(&h->rig, h->dialect, h->order);
    check_cards(&h->rig, used);
}

START_TEST(the_plugin_reads_the_cards_that_we_charged)
{
    uint64_t seeds = seeded_setting("DIALECT_SEEDS", 20);
    all_dialects();
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct history h = {
            .dice = seed, .dialect = (enum dialect)_i, .order = {'a', 'b', 'c', 'd'}};
        rig_init(&h.rig);
        set_order(&h.rig, h.dialect, h.order);
        for (unsigned step = 0; step < 60; step++) {
            if (h.n > 0 && seeded_draw(&h.dice, 3) == 0) {
                unsigned at = seeded_draw(&h.dice, h.n);
                pod_gone(&h.rig, h.uids[at]);
                memcpy(h.uids[at], h.uids[--h.n], sizeof(h.uids[0]));
            } else if (seeded_draw(&h.dice, 3) == 0) {
                move_cards(&h);
            } else {
                bind_devices(&h, step);
            }
        }
        ck_assert_uint_gt(h.bound, 5);
        rig_done(&h.rig);
    }
}

END_TEST

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
                        DIALECT_VGPU);
    tcase_add_loop_test(t, the_plugin_reads_the_cards_that_we_charged, DIALECT_VGPU, DIALECT_COUNT);
    suite_add_tcase(s, t);
    return unit_main(s);
}
