/*
 * POST pods/NAME/binding: when the simulated API server commits it, and what it answers. The answer
 * says success, says why not, or leaves the result in doubt.
 */
#include "oracle.h"
#include "server.h"

#include <stdlib.h>

/* The rules on time are in server.h. */
#define REQUEST_MS 60000
#define ETCD_MS    1000
#define ROAD_MS    4000
#define ROGUE_MS   120000

/* A Binding that its handler has not processed yet, or a copy that a proxy still holds. */
struct pending {
    struct happening h;
    struct pending *next;
    struct order order;
    uint64_t deadline_ms; /* a commit after it breaks the rules */
    bool copied;          /* a proxy holds it */
    uint64_t refused_ms;  /* when the API server refused the other copy; 0: it did not */
};

static struct pending *pending;
static struct happening orphans[MAX_REPLICAS];

void bindings_reset(void)
{
    for (unsigned i = 0; i < MAX_REPLICAS; i++)
        unplan(&orphans[i]);
    while (pending != NULL) {
        struct pending *p = pending;
        pending = p->next;
        unplan(&p->h);
        free(p);
    }
}

size_t server_pending(void)
{
    size_t n = 0;
    for (const struct pending *p = pending; p != NULL; p = p->next)
        n++;
    return n;
}

/* Whether the Binding can still bind its pod. */
static bool may_bind(const struct order *o)
{
    unsigned slot = store_find_pod(name_str(&o->is.ns), name_str(&o->is.name));
    const struct pod_object *p = slot == MAX_PODS ? NULL : &store.pods[slot];
    return p != NULL && !p->deleting && !p->gated && p->node.z[0] == '\0' && !o->is.bare &&
           strcmp(p->uid.z, o->is.uid.z) == 0;
}

bool server_may_bind_for_others(const struct proc *p)
{
    for (const struct pending *it = pending; it != NULL; it = it->next) {
        bool own = it->order.sender == p->id && it->order.incarnation == p->incarnation;
        bool legal = it->h.due_ms <= it->deadline_ms && it->refused_ms == 0;
        if (!own && legal && may_bind(&it->order))
            return true;
    }
    return false;
}

static void pending_end(struct pending *p)
{
    struct pending **at = &pending;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    unplan(&p->h);
    free(p);
}

static struct outcome commit(const struct order *o)
{
    unsigned slot = MAX_PODS;
    struct outcome out = binding_commit(&o->is, &slot);
    if (out.status == 201)
        oracle_committed(o, slot);
    return out;
}

static void on_late(struct happening *h)
{
    struct pending *p = CONTAINER_OF(h, struct pending, h);
    struct order o = p->order;
    bool copied = p->copied;
    uint64_t deadline_ms = p->deadline_ms;
    uint64_t refused_ms = p->refused_ms;
    pending_end(p);
    if (world.now_ms > deadline_ms) {
        o.rogue = copied ? ROGUE_COPY : ROGUE_COMMIT;
        o.late_ms = world.now_ms - deadline_ms;
    } else if (refused_ms > 0) {
        o.rogue = ROGUE_TWIN;
        o.late_ms = world.now_ms - refused_ms;
    }
    struct outcome out = commit(&o);
    trace("late commit", name_str(&o.is.uid), out.status, (int64_t)o.late_ms);
}

/* ---- what may become of a Binding ---- */

static struct pending *pending_new(const struct order *o, uint64_t deadline_ms)
{
    struct pending *p = sim_alloc(sizeof(*p));
    p->order = *o;
    p->deadline_ms = deadline_ms;
    p->h.fire = on_late;
    p->next = pending;
    pending = p;
    return p;
}

/* Pauses, stops or kills the sender of a late Binding: the sender no longer follows it. */
static void on_orphan(struct happening *h)
{
    struct proc *p = &procs[h - orphans];
    switch (draw(3)) {
    case 0:
        proc_pause(p, draw(60000));
        break;
    case 1:
        proc_stop(p);
        break;
    default:
        proc_kill(p);
        break;
    }
}

void server_orphan(unsigned sender)
{
    struct happening *orphan = &orphans[sender];
    if (!fault(FAULT_ORPHAN) || orphan->at != 0)
        return;
    orphan->fire = on_orphan;
    plan(orphan, draw(2) == 0 ? draw(10) : draw(10000));
}

static void commit_later(const struct order *o)
{
    server_orphan(o->sender);
    struct pending *p = pending_new(o, o->deadline_ms + ETCD_MS);
    uint64_t most_ms = p->deadline_ms - world.now_ms;
    if (world.set.rogue && draw(2) == 0)
        plan(&p->h, most_ms + 1 + draw(ROGUE_MS));
    else /* often soon, because races happen there */
        plan(&p->h,
             draw(world.set.takeovers ? 6 : 2) > 0 ? draw((unsigned)most_ms + 1) : draw(2000));
}

static void copy_later(const struct flight *f, const struct order *o)
{
    struct pending *p = pending_new(o, f->sent_ms + ROAD_MS);
    p->copied = true;
    plan(&p->h, ROAD_MS + draw(ROGUE_MS));
}

/* The handlers die with the server. Each Binding was handed to etcd (it commits now) or is lost. */
void bindings_end_with_server(void)
{
    struct pending *next = NULL;
    for (struct pending *p = pending; p != NULL; p = next) {
        next = p->next;
        if (draw(2) == 0)
            on_late(&p->h);
        else
            pending_end(p);
    }
}

/* The Binding commits now, later or never. The answer does not say which, or there is no answer. */
static void serve_in_doubt(struct flight *f, const struct order *o)
{
    switch (draw(3)) {
    case 0:
        (void)commit(o);
        break;
    case 1:
        commit_later(o);
        break;
    default:
        break;
    }
    switch (draw(4)) {
    case 0:
        reply_status(f, 504, "Timeout", "request did not complete within requested timeout", "");
        f->delay_ms = draw(2) == 0 ? 0 : o->deadline_ms - world.now_ms;
        break;
    case 1:
        reply_status(f, 500, "InternalError", "etcdserver: request timed out", "");
        break;
    default:
        f->status = 0;
        break;
    }
}

static void serve_odd_conflict(struct flight *f, const struct order *o)
{
    if (draw(3) == 0)
        (void)commit(o);
    else if (draw(2) == 0)
        commit_later(o);
    reply_status(f, 409, "Conflict",
                 "Operation cannot be fulfilled on pods/binding: etcdserver: leader changed",
                 ",\"details\":{\"kind\":\"pods/binding\"}");
}

/* The parameter timeout, a Go duration; at most the server's own limit. */
static uint64_t allowed_ms(struct str query)
{
    struct text value = {.p = NULL};
    uint64_t ms = REQUEST_MS;
    if (query_get(query, "timeout", &value)) {
        struct str text = text_str(&value);
        bool whole = str_ends(text, STR("ms"));
        sim_check(str_ends(text, STR("s")));
        sim_check(str_to_u64((struct str){text.p, text.n - (whole ? 2 : 1)}, UINT32_MAX, &ms));
        ms *= whole ? 1 : 1000;
        sim_check(ms > 0);
    }
    text_done(&value);
    return MIN_OF(ms, (uint64_t)REQUEST_MS);
}

static struct order order_of(const struct flight *f, const struct api_request *r)
{
    struct order o = {.is = binding_read(text_str(&f->body), r->ns, r->name),
                      .sender = f->sender,
                      .incarnation = f->incarnation,
                      .deadline_ms = world.now_ms + allowed_ms(r->query)};
    struct text allocation = {.p = NULL};
    render_grants(&allocation, &o.is.allocation);
    trace("posted", text_str(&allocation), f->sender, 0);
    text_done(&allocation);
    oracle_posted(&o);
    return o;
}

struct pending *copy_binding(const struct flight *f, const struct api_request *r)
{
    struct order o = order_of(f, r);
    uint64_t allowed = o.deadline_ms - world.now_ms;
    uint64_t road_ms =
        f->sent_ms + ROAD_MS > world.now_ms ? f->sent_ms + ROAD_MS - world.now_ms : 0;
    uint64_t arrives_ms = draw((unsigned)road_ms + 1);
    o.deadline_ms += arrives_ms;
    struct pending *p = pending_new(&o, o.deadline_ms + ETCD_MS);
    plan(&p->h, arrives_ms + (draw(4) == 0 ? draw((unsigned)allowed) : 0));
    trace("copied", name_str(&o.is.uid), (int64_t)arrives_ms, (int64_t)o.deadline_ms);
    return p;
}

/* A 4xx says that the API server did nothing for this request. It says nothing about the copy. */
void copy_answered(struct pending *copy, unsigned status)
{
    if (status >= 400 && status < 500)
        copy->refused_ms = world.now_ms;
}

void serve_binding(struct flight *f, const struct api_request *r)
{
    struct order o = order_of(f, r);
    world.posts++;
    if (world.set.rogue && !world.quiet && chance(200)) {
        copy_later(f, &o);
        if (draw(2) == 0) { /* refuses the copy that has arrived */
            reply_status(f, 429, "TooManyRequests", "please try again later", "");
            return;
        }
    }
    if (fault(FAULT_LATE_COMMIT)) {
        serve_in_doubt(f, &o);
        return;
    }
    if (fault(FAULT_ODD_409)) {
        serve_odd_conflict(f, &o);
        return;
    }
    struct outcome out = commit(&o);
    outcome_write(&f->reply, &out);
    f->status = out.status;
}
