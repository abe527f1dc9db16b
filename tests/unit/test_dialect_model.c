/* Random pods of all dialects: an agent that reads our annotations by its own rules gives the card
 * that the cache charged, and no card is over its size. */
#include "core/state/vgpu.h"
#include "dialect_draw.h"

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
    for (uint32_t i = 0; i < p->allocation->n_shares; i++)
        buf_printf(&index, "%s%u", i == 0 ? "" : ",", p->allocation->shares[i].card);
    b.idx = buf_str(&index);
    if (dialect_has_uuids(b.dialect)) {
        vgpu_write_pod(pod_list(p), p->request, view, &texts);
        b.idx = buf_str(&texts);
    }
    if (dialect_facts(b.dialect)->seat.p != NULL) {
        b.n_seats = seats_write(p->allocation, p->request, view, &texts, seats);
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

/* The cards in the order of the node's table, by the letters of their UUIDs. HAMi's says how much
 * compute each has. */
static void set_order(struct rig *r, enum dialect d, const char order[static 4],
                      const uint32_t compute[static 4])
{
    char table[512];
    struct buf text = BUF_ON(table);
    struct object o;
    buf_printf(&text, ",\"annotations\":{\"%.*s\":\"", STR_ARG(dialect_facts(d)->table));
    for (unsigned i = 0; i < 4; i++) {
        if (d == DIALECT_HAMI)
            buf_printf(&text, "GPU-%c,10,16,%u,NVIDIA-A10,0,true,%u,hami-core:", order[i],
                       compute[order[i] - 'a'], i);
        else
            buf_printf(&text, "GPU-%c,10,16,NVIDIA-A10,true,hami-core:", order[i]);
    }
    buf_printf(&text, "\"}%c", 0);
    ck_assert(!buf_failed(&text));
    object_node(&o, "n", table, capacities[d], "");
    struct cache_event e = {.type = CACHE_NODE_SET, .node = o.node};
    ck_assert_int_eq(rig_apply(r, &e), OK);
    object_end(&o);
}

/* What the plugin gives to one container. */
struct gift {
    uint32_t n;
    char letters[4]; /* of the UUIDs */
    int64_t mem[4];
    uint32_t cores[4];
};

static void read_devices(struct str devices, struct gift *ret)
{
    *ret = (struct gift){.n = 0};
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
        ck_assert_uint_lt(ret->n, 4);
        for (uint32_t i = 0; i < ret->n; i++)
            ck_assert_int_ne(ret->letters[i], f[0].p[4]);
        ret->letters[ret->n] = f[0].p[4];
        ret->mem[ret->n] = (int64_t)mem;
        ret->cores[ret->n++] = (uint32_t)cores;
    }
}

/* Reads the list as Volcano's plugin does, in util.go: DecodePodDevices and GetNextDeviceRequest,
 * and HAMi's: DecodePodDevices in devices.go and popNextContainerDevices. The kubelet asks for the
 * containers in their order; each call gets the first part that is not empty, which must have as
 * many devices as the call. The plugin takes it for the container at that place. */
static void read_as_plugin(struct str list, const struct drawn *x,
                           struct gift ret[static ASKED_MAX])
{
    struct str rest = list;
    uint32_t n = 0;
    for (uint32_t part = 0; rest.n > 0; part++) {
        struct str devices;
        (void)str_cut(rest, ';', &devices, &rest);
        if (devices.n == 0)
            continue;
        ck_assert_uint_lt(n, x->n);
        ck_assert_msg(part == x->asked[n].part, "%.*s", STR_ARG(list));
        read_devices(devices, &ret[n]);
        ck_assert_uint_eq(ret[n].n, x->asked[n].cards);
        n++;
    }
    ck_assert_msg(n == x->n, "%.*s", STR_ARG(list));
}

/* What a pod holds of each card, by the letter of its UUID. */
struct account {
    int64_t mem[4];
    uint32_t cores[4];
    uint32_t takers[4];
    bool whole[4];
};

/* Adds what a container has while it runs. A card of which it has all compute has no other
 * container meanwhile, and counts as full. */
static void account_add(const struct asked *a, const struct gift *g, struct account *now)
{
    for (uint32_t k = 0; k < g->n; k++) {
        unsigned letter = (unsigned)(g->letters[k] - 'a');
        int64_t mem = a->mem > 0 ? a->mem : MAX_OF(16 * (int64_t)a->percent / 100, (int64_t)1);
        ck_assert_uint_lt(letter, 4);
        ck_assert_int_eq(g->mem[k], mem);
        ck_assert_uint_eq(g->cores[k], a->cores);
        now->mem[letter] += mem;
        now->cores[letter] += a->cores;
        now->takers[letter]++;
        now->whole[letter] = now->whole[letter] || a->cores == 100;
    }
}

static void account_raise(struct account *most, const struct account *now)
{
    for (unsigned letter = 0; letter < 4; letter++) {
        ck_assert(!now->whole[letter] || now->takers[letter] == 1);
        most->mem[letter] = MAX_OF(most->mem[letter], now->whole[letter] ? 16 : now->mem[letter]);
        most->cores[letter] = MAX_OF(most->cores[letter], now->cores[letter]);
        most->takers[letter] = MAX_OF(most->takers[letter], now->takers[letter]);
        most->whole[letter] = most->whole[letter] || now->whole[letter];
    }
}

/* Plays the life of the pod: each init container runs beside the sidecars that have started, then
 * all sidecars and containers run at once. The most of each moment counts. */
static void account_for(const struct drawn *x, const struct gift *gifts, struct account *ret)
{
    struct account lasting = {.mem = {0}};
    memset(ret, 0, sizeof(*ret));
    for (uint32_t i = 0; i < x->n; i++) {
        struct account now = lasting;
        account_add(&x->asked[i], &gifts[i], &now);
        if (x->asked[i].kind != CONTAINER_INIT)
            lasting = now;
        account_raise(ret, &now);
    }
}

struct history {
    struct rig rig;
    char order[4];
    uint32_t compute[4]; /* of the cards, by their letters */
    uint64_t dice;
    enum dialect dialect;
    unsigned bound;
    char uids[64][8];
    struct account accounts[64]; /* of HAMi's family */
    unsigned n;
    unsigned several; /* pods with cards in several containers */
    unsigned shared;  /* those of them with one card for two containers */
    unsigned inits;   /* pods with cards in init containers */
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
    cache_evaluation(&h->rig.cache, STR(""), &o.request, &o.evaluation);
    enum verdict v = fit_node(node_of(&h->rig, "n"), &o.evaluation);
    ck_assert_msg((object_reserve(&h->rig, &o) == OK) == (v == VERDICT_FITS), "%s: %s, then %s",
                  containers, verdict_name(v), verdict_name(h->rig.fx.verdict));
    if (v == VERDICT_FITS) {
        const struct pod *p = pod_of(&h->rig, uid);
        ck_assert_int_eq(renew(&h->rig, uid), OK);
        write_annotations(p, &o.pod, annotations, sizeof(annotations));
        struct placement there;
        object_pod(&after, uid, containers, annotations, "n");
        placement_read(&after.pod, &after.request, &there);
        ck_assert_msg(pod_allocation_has(p->allocation, &there), "%s: %s", containers, annotations);
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
    object_show(r, &o);
}

/* The cards are charged what the pods' containers have. */
static void check_cards(const struct history *h)
{
    for (uint32_t card = 0; card < 4; card++) {
        const struct card *c = &node_of(&h->rig, "n")->cards[card];
        unsigned letter = (unsigned)(h->order[card] - 'a');
        struct account sum = {.mem = {0}};
        for (unsigned i = 0; i < h->n; i++) {
            const struct account *a = &h->accounts[i];
            ck_assert(!sum.whole[0] || a->takers[letter] == 0);
            sum.mem[0] += a->mem[letter];
            sum.cores[0] += a->cores[letter];
            sum.takers[0] += a->takers[letter];
            sum.whole[0] = sum.whole[0] || a->whole[letter];
        }
        ck_assert_int_eq(c->used, sum.mem[0]);
        ck_assert_int_le(c->used, 16);
        ck_assert_uint_eq(c->cores, sum.cores[0]);
        ck_assert_uint_le(c->cores, h->compute[letter]);
        ck_assert_uint_eq(card_takers(c), sum.takers[0]);
        ck_assert_uint_le(card_takers(c), 10);
        ck_assert_uint_eq(c->wholes, sum.whole[0] ? 1 : 0);
    }
}

/* The pod has been placed: checks its annotations, and has the plugin acknowledge it. */
static void serve_devices(struct history *h, const char *uid, const struct drawn *x,
                          const struct object *o)
{
    char annotations[4096];
    char served[4096];
    struct gift gifts[ASKED_MAX];
    struct object after;
    struct placement there;
    const struct pod *p = pod_of(&h->rig, uid);
    ck_assert_int_eq(renew(&h->rig, uid), OK);
    write_annotations(p, &o->pod, annotations, sizeof(annotations));
    object_pod(&after, uid, x->containers, annotations, "n");
    read_as_plugin(after.pod.said[h->dialect].idx, x, gifts);
    object_end(&after);
    account_for(x, gifts, &h->accounts[h->n]);
    for (unsigned letter = 0; letter < 4; letter++)
        h->shared += h->accounts[h->n].takers[letter] > 1 ? 1 : 0;
    h->several += x->n > 1 ? 1 : 0;
    h->inits += x->n_inits > 0 ? 1 : 0;
    memcpy(h->uids[h->n++], uid, sizeof(h->uids[0]));
    check_cards(h);
    show(&h->rig, uid, x->containers, annotations);
    check_cards(h);
    ck_assert_int_eq(fit_of(&h->rig, plain[h->dialect], "n", &there) == VERDICT_FITS, 0);
    const char *waits = memmem(annotations, strlen(annotations), "allocating", 10);
    ck_assert_ptr_nonnull(waits);
    (void)snprintf(served, sizeof(served), "%.*ssuccess%s", (int)(waits - annotations), annotations,
                   waits + 10);
    show(&h->rig, uid, x->containers, served);
    check_cards(h);
}

/* Whether the card has room for what runs on it at one moment, beside the other pods. */
static bool has_room(const struct card *c, const struct account *now, unsigned letter,
                     uint32_t compute)
{
    bool alone = now->takers[letter] == 1 && c->pods == 0;
    if (now->takers[letter] == 0)
        return true;
    return c->wholes == 0 && (!now->whole[letter] || alone) && now->mem[letter] + c->used <= 16 &&
           now->cores[letter] + c->cores <= compute && now->takers[letter] + card_takers(c) <= 10;
}

/* Tries all sets of cards for container i, and for those after it. `lasting`: what the containers
 * before it leave. */
static bool any_place(const struct history *h, const struct drawn *x, uint32_t i,
                      const struct account *lasting)
{
    if (i == x->n || i == ASKED_MAX) /* x->n is not more; gcc can't know that */
        return true;
    const struct asked *a = &x->asked[i];
    for (unsigned set = 1; set < 16; set++) {
        struct account now = *lasting;
        bool room = (uint32_t)__builtin_popcount(set) == a->cards;
        for (unsigned letter = 0; letter < 4 && room; letter++) {
            struct gift one = {.n = 1, .letters = {(char)('a' + letter)}, .cores = {a->cores}};
            const char *at = memchr(h->order, 'a' + (int)letter, 4);
            one.mem[0] = a->mem > 0 ? a->mem : MAX_OF(16 * (int64_t)a->percent / 100, (int64_t)1);
            const struct card *c = &node_of(&h->rig, "n")->cards[at - h->order];
            if ((set >> letter & 1) == 0)
                continue;
            /* calcScore and Fit: no core=0 job on a full GPU, but on one that has no compute. */
            uint32_t compute = h->compute[letter];
            room = a->cores > 0 || compute == 0 || lasting->cores[letter] + c->cores < compute;
            account_add(a, &one, &now);
            room = room && has_room(c, &now, letter, compute);
        }
        if (room && any_place(h, x, i + 1, a->kind == CONTAINER_INIT ? lasting : &now))
            return true;
    }
    return false;
}

static void bind_devices(struct history *h, unsigned step)
{
    struct drawn x;
    char uid[8];
    struct object o;
    (void)snprintf(uid, sizeof(uid), "p%u", step);
    draw_devices(&h->dice, h->dialect, &x);
    object_pod(&o, uid, x.containers, "", "");
    ck_assert_msg(o.readable == OK, "%s: %s", x.containers, o.err.text);
    cache_evaluation(&h->rig.cache, STR(""), &o.request, &o.evaluation);
    enum verdict v = fit_node(node_of(&h->rig, "n"), &o.evaluation);
    struct account none = {.mem = {0}};
    if (x.n <= 4 && any_place(h, &x, 0, &none) != (v == VERDICT_FITS))
        ck_abort_msg("%s: %s", x.containers, verdict_name(v));
    ck_assert_int_eq(object_reserve(&h->rig, &o) == OK, v == VERDICT_FITS);
    if (v == VERDICT_FITS) {
        serve_devices(h, uid, &x, &o);
        h->bound++;
    }
    object_end(&o);
}

/* Two cards change places in the table: each keeps what it holds. */
static void move_cards(struct history *h)
{
    unsigned a = seeded_draw(&h->dice, 4);
    unsigned b = seeded_draw(&h->dice, 4);
    char letter = h->order[a];
    h->order[a] = h->order[b];
    h->order[b] = letter;
    set_order(&h->rig, h->dialect, h->order, h->compute);
    check_cards(h);
}

/* Volcano's table says nothing of it. */
static void draw_compute(struct history *h)
{
    static const uint32_t some[] = {0, 30, 70, 100, 100, 100};
    for (unsigned i = 0; i < 4; i++)
        h->compute[i] =
            h->dialect == DIALECT_HAMI ? some[seeded_draw(&h->dice, COUNT_OF(some))] : 100;
}

START_TEST(the_plugin_reads_the_cards_that_we_charged)
{
    uint64_t seeds = seeded_setting("DIALECT_SEEDS", 20);
    unsigned several = 0;
    unsigned shared = 0;
    unsigned inits = 0;
    all_dialects();
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct history h = {
            .dice = seed, .dialect = (enum dialect)_i, .order = {'a', 'b', 'c', 'd'}};
        rig_init(&h.rig);
        draw_compute(&h);
        set_order(&h.rig, h.dialect, h.order, h.compute);
        for (unsigned step = 0; step < 60; step++) {
            if (h.n > 0 && seeded_draw(&h.dice, 3) == 0) {
                unsigned at = seeded_draw(&h.dice, h.n);
                pod_gone(&h.rig, h.uids[at]);
                memcpy(h.uids[at], h.uids[--h.n], sizeof(h.uids[0]));
                h.accounts[at] = h.accounts[h.n];
                check_cards(&h);
            } else if (seeded_draw(&h.dice, 3) == 0) {
                move_cards(&h);
            } else {
                bind_devices(&h, step);
            }
        }
        ck_assert_uint_gt(h.bound, 5);
        several += h.several;
        shared += h.shared;
        inits += h.inits;
        rig_done(&h.rig);
    }
    ck_assert_int_eq(several > 0, _i == DIALECT_HAMI);
    ck_assert_int_eq(shared > 0, _i == DIALECT_HAMI);
    ck_assert_int_eq(inits > 0, _i == DIALECT_HAMI);
}

static uint64_t number_of(const char *annotations, const char *key)
{
    uint64_t n = 0;
    struct str value;
    const char *at = strstr(annotations, key);
    ck_assert_ptr_nonnull(at);
    struct str rest = str_of(at + strlen(key) + 3); /* behind ":" with its quotes */
    (void)str_cut(rest, '"', &value, &rest);
    ck_assert(str_to_u64(value, UINT64_MAX, &n));
    return n;
}

/* Volcano's plugin takes the oldest pod that names its node, also one that is not on it: a copy of
 * another pod's annotations. The pod of the Binding is older than each copy, also of one of ours.
 */
START_TEST(the_pod_of_the_binding_is_the_oldest)
{
    static const uint64_t seconds[] = {1700000000, 1764000000, 2147483000, 4000000000};
    struct rig r;
    struct object o;
    uint64_t before = UINT64_MAX;
    all_dialects();
    rig_init(&r);
    set_node(&r, "n", (enum dialect)_i);
    object_pod(&o, "p", plain[_i], "", "");
    ck_assert_int_eq(object_reserve(&r, &o), OK);
    for (unsigned i = 0; i < COUNT_OF(seconds); i++) {
        char text[2048];
        struct pod p = *pod_of(&r, "p");
        p.assume_ns = seconds[i] * 1000000000;
        write_annotations(&p, &o.pod, text, sizeof(text));
        uint64_t time = number_of(text, "vgpu-time");
        ck_assert_uint_eq(number_of(text, "bind-time"), seconds[i]);
        if (_i == DIALECT_HAMI) {
            ck_assert_uint_eq(time, seconds[i]);
            continue;
        }
        ck_assert_uint_lt(time, 1000000000);
        ck_assert(time < before || time == 0);
        before = time;
    }
    object_end(&o);
    rig_done(&r);
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

int main(void)
{
    TCase *t = unit_case("dialect_model");
    tcase_add_loop_test(t, what_we_write_is_what_the_cache_charged, DIALECT_GPUSHARE + 1,
                        DIALECT_VGPU);
    tcase_add_loop_test(t, the_plugin_reads_the_cards_that_we_charged, DIALECT_VGPU, DIALECT_COUNT);
    tcase_add_loop_test(t, the_pod_of_the_binding_is_the_oldest, DIALECT_VGPU, DIALECT_COUNT);
    return unit_run();
}
