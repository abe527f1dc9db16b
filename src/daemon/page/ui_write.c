/*
 * Leaves out what is 0 or unknown: most cards are alike, and a page that opens may read 40,000 of
 * them.
 */
#include "daemon/page/ui_write.h"

#include "daemon/limit.h"
#include "daemon/page/ui_least.h"
#include "objects/stamp.h"
#include "report/held.h"
#include "report/reason.h"

/* The longest text about a request or a reason; a longer one is left out. */
#define TEXT_BYTES 512

static void ui_write_put_str(struct jwrite *w, struct str key, struct str value)
{
    if (value.n == 0)
        return;
    jwrite_str_at(w, key, value);
}

static void ui_write_put_some(struct jwrite *w, struct str key, int64_t value)
{
    if (value != 0)
        jwrite_i64_at(w, key, value);
}

static void ui_write_put_true(struct jwrite *w, struct str key, bool value)
{
    if (!value)
        return;
    jwrite_bool_at(w, key, true);
}

static void ui_write_held(struct jwrite *w, const struct held *h)
{
    jwrite_object_begin(w);
    ui_write_put_str(w, STR("namespace"), h->pod->namespace);
    ui_write_put_str(w, STR("name"), h->pod->name);
    jwrite_i64_at(w, STR("mem"), h->mem);
    ui_write_put_some(w, STR("cores"), h->cores);
    ui_write_put_true(w, STR("reserved"), h->pod->state == POD_RESERVED);
    if (h->known)
        jwrite_i64_at(w, STR("usedMiB"), h->used_mib);
    ui_write_put_true(w, STR("exceeds"), h->exceeds);
    jwrite_object_end(w);
}

/* Writes the pods on that card; -1: the pods without a valid card, as in inspect. */
static void ui_write_pods(struct jwrite *w, struct held_walk *x, int64_t card)
{
    struct held h;
    jwrite_array_at(w, STR("pods"));
    while (held_next(x, card, &h))
        ui_write_held(w, &h);
    jwrite_array_end(w);
}

static struct str ui_write_state_of(const struct card *c)
{
    if (c->aside)
        return STR("exclusive");
    if (c->unhealthy)
        return STR("unhealthy");
    if (c->cordoned)
        return STR("cordoned");
    return c->given || c->claimed ? STR("dra") : STR("");
}

static void ui_write_card(struct jwrite *w, struct held_walk *x, uint32_t i)
{
    const struct node *n = x->node;
    const struct card *c = &n->cards[i];
    const struct measured_card *m = measured_card_of(x->measured, i);
    int32_t numa = node_card_numa(n, i);
    struct uuid_room room _uninitialized_;
    jwrite_object_begin(w);
    jwrite_i64_at(w, STR("id"), i);
    jwrite_i64_at(w, STR("total"), c->total);
    jwrite_i64_at(w, STR("used"), c->used);
    ui_write_put_some(w, STR("cores"), c->cores);
    ui_write_put_str(w, STR("model"), node_card_model(n, i));
    ui_write_put_str(w, STR("uuid"), node_card_uuid(n, i, &room));
    if (numa >= 0)
        jwrite_i64_at(w, STR("numa"), numa);
    ui_write_put_str(w, STR("state"), ui_write_state_of(c));
    if (m != NULL) {
        jwrite_i64_at(w, STR("usedMiB"), m->used_mib);
        jwrite_i64_at(w, STR("sizeMiB"), m->total_mib);
    }
    if (m != NULL && m->busy_percent != MEASURED_BUSY_UNKNOWN)
        jwrite_i64_at(w, STR("busy"), m->busy_percent);
    ui_write_pods(w, x, i);
    jwrite_object_end(w);
}

void ui_write_node(struct jwrite *w, const struct measured *m, const struct node *n)
{
    struct held_walk x _uninitialized_;
    if (!held_begin(&x, n, m)) {
        w->out->failed = true;
        return;
    }
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("name"), n->name);
    jwrite_i64_at(w, STR("total"), n->total);
    jwrite_i64_at(w, STR("used"), n->used);
    if (n->limit < n->total)
        jwrite_i64_at(w, STR("limit"), n->limit);
    if (node_left(n) != n->total - n->used)
        jwrite_i64_at(w, STR("left"), node_left(n));
    if (n->sizes != NULL) {
        ui_write_put_str(w, STR("policy"), str_of(policy_name(n->sizes->placement)));
        ui_write_put_str(w, STR("pool"), n->sizes->pool);
        ui_write_put_str(w, STR("isolation"), str_of(isolation_name(n->sizes->isolation)));
    }
    jwrite_array_at(w, STR("cards"));
    for (uint32_t i = 0; i < n->n_cards; i++) {
        if (!n->cards[i].absent)
            ui_write_card(w, &x, i);
    }
    if (n->unplaced > 0) {
        jwrite_object_begin(w);
        jwrite_i64_at(w, STR("id"), -1);
        jwrite_i64_at(w, STR("total"), 0);
        jwrite_i64_at(w, STR("used"), n->unplaced);
        ui_write_pods(w, &x, -1);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
    jwrite_object_end(w);
    held_end(&x);
}

/* ---- pods that wait ---- */

static int ui_write_by_age(const void *a, const void *b)
{
    const struct pod *x = *(const struct pod *const *)a;
    const struct pod *y = *(const struct pod *const *)b;
    if (x->created_s != y->created_s)
        return x->created_s < y->created_s ? -1 : 1;
    int order = str_cmp(x->namespace, y->namespace);
    if (order == 0)
        order = str_cmp(x->name, y->name);
    return order != 0 ? order : str_cmp(x->uid, y->uid);
}

/* What is asked for, and the most that these nodes have of it. */
static void ui_write_memory(struct buf *out, const struct request *r, const char *what,
                            int64_t most)
{
    int64_t asked = request_share(r).mem;
    if (most < 0)
        return;
    if (r->percent > 0)
        buf_printf(out, "%u%% of a card asked, %s %lld", r->percent, what, (long long)most);
    else if (most < asked) /* else it is enough for one of the several cards */
        buf_printf(out, "%lld asked, %s %lld", (long long)asked, what, (long long)most);
}

/* The figure of a verdict: "60 asked, the most that is free on a card: 28". Some have none. */
static void ui_write_figure(struct buf *out, const struct request *r, const struct ui_reason *x,
                            enum verdict v)
{
    struct str wish = STR("");
    if (v == VERDICT_TOO_LARGE)
        ui_write_memory(out, r, "the largest card has", x->most.largest);
    else if (v == VERDICT_NO_CARD_FREE)
        ui_write_memory(out, r, "the most that is free on a card:", x->most.free);
    else if (v == VERDICT_NODE_FULL)
        ui_write_memory(out, r, "the most that a node has left:", x->most.left);
    else if (v == VERDICT_NO_CORES && x->most.cores >= 0)
        buf_printf(out, "%u%% of compute asked, the most that is free on a card: %lld%%",
                   request_share(r).cores, (long long)x->most.cores);
    else if (v == VERDICT_TOO_FEW)
        buf_printf(out, "%u cards asked", request_cards(r));
    else if (x->quota_n > 0 && (uint32_t)v == x->most.denial)
        wish = (struct str){x->quota, x->quota_n};
    else if (v == VERDICT_MODEL)
        wish = r->models;
    else if (v == VERDICT_UUID)
        wish = r->uuids;
    else if (v == VERDICT_AFFINITY)
        wish = r->affinity;
    else if (v == VERDICT_ANTI_AFFINITY)
        wish = r->anti_affinity;
    buf_put(out, wish);
}

static void ui_write_because(struct jwrite *w, const struct request *r,
                             const struct ui_reason *reason)
{
    if (reason == NULL)
        return;
    jwrite_object_at(w, STR("because"));
    for (size_t v = 0; v < VERDICT_COUNT; v++) {
        char bytes[TEXT_BYTES];
        struct buf text = BUF_ON(bytes);
        if (v == VERDICT_FITS || reason->counts[v] == 0)
            continue;
        ui_write_figure(&text, r, reason, (enum verdict)v);
        jwrite_object_at(w, str_of(verdict_name((enum verdict)v)));
        jwrite_i64_at(w, STR("nodes"), reason->counts[v]);
        if (!buf_failed(&text))
            ui_write_put_str(w, STR("text"), buf_str(&text));
        jwrite_object_end(w);
    }
    jwrite_object_end(w);
}

static void ui_write_waiting(struct jwrite *w, const struct pod *p, const struct ui_reason *reason)
{
    const struct request *r = p->request;
    char since[STAMP_BYTES];
    char bytes[TEXT_BYTES];
    struct buf wants = BUF_ON(bytes);
    reason_request(&wants, r, 0);
    jwrite_object_begin(w);
    ui_write_put_str(w, STR("namespace"), p->namespace);
    ui_write_put_str(w, STR("name"), p->name);
    ui_write_put_some(w, STR("mem"), r->mem);
    if (!buf_failed(&wants))
        ui_write_put_str(w, STR("wants"), buf_str(&wants));
    if (p->created_s > 0)
        ui_write_put_str(w, STR("since"), stamp_print(p->created_s, since));
    ui_write_because(w, r, reason);
    jwrite_object_end(w);
}

void ui_write_pending(struct jwrite *w, const struct cache *c, const struct ui_reasons *reasons)
{
    const void *room[LIMIT_UI_PENDING];
    struct ui_least oldest = {.items = room, .max = COUNT_OF(room), .order = ui_write_by_age};
    LIST_FOR_EACH (const struct pod, p, &c->pending, pending) {
        if (ui_waits(p))
            ui_least_add(&oldest, p);
    }
    ui_least_sort(&oldest);
    jwrite_object_begin(w);
    jwrite_array_at(w, STR("pods"));
    for (size_t i = 0; i < oldest.n; i++) {
        const struct pod *p = oldest.items[i];
        ui_write_waiting(w, p, ui_reasons_get(reasons, p->uid));
    }
    jwrite_array_end(w);
    jwrite_u64_at(w, STR("total"), oldest.total);
    jwrite_object_end(w);
}
