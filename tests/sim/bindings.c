/*
 * POST pods/NAME/binding (contract kubernetes 2): one transaction that sets nodeName and merges the
 * annotations, or a Status that says why not, or one that says nothing of what becomes of it.
 */
#include "oracle.h"
#include "server.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define LATE_MS   70000 /* after it was sent: see server.h */
#define ORPHAN_MS 4000  /* after the kill, with what was on its way: within start-settle */
#define AFTER_MS  7500  /* the same, after a leader's end */

/* One that its handler has not come to yet. */
struct pending {
    struct happening h;
    struct pending *next;
    struct order order;
    uint64_t incarnation;
};

static struct pending *pending;

void bindings_reset(void)
{
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

static void pending_end(struct pending *p)
{
    struct pending **at = &pending;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    unplan(&p->h);
    free(p);
}

/* ---- the transaction ---- */

static struct name text_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    const char *z = json_string_value(value);
    sim_check(z != NULL && strlen(z) < sizeof(struct name));
    return name_from(str_of(z));
}

/* An annotation that holds {"CONTAINER":{"CARD":AMOUNT}}, if it is there. */
static unsigned grants_read(json_t *notes, const char *key, struct grants_object *ret)
{
    json_error_t error;
    json_t *text = json_object_get(notes, key);
    uint64_t number = 0;
    const char *container = NULL;
    const char *card = NULL;
    json_t *cards = NULL;
    json_t *amount = NULL;
    *ret = (struct grants_object){.there = text != NULL};
    if (text == NULL)
        return 0;
    json_t *root = json_loads(json_string_value(text), 0, &error);
    trace(key, str_of(json_string_value(text)), 0, 0);
    sim_check(json_object_size(root) > 0);
    json_object_foreach(root, container, cards)
    {
        json_object_foreach(cards, card, amount)
        {
            sim_check(ret->n < MAX_GRANTS && json_is_integer(amount));
            bool good = str_to_u64(str_of(container), UINT8_MAX, &number);
            ret->at[ret->n].container = (uint8_t)number;
            good = str_to_u64(str_of(card), UINT8_MAX, &number) && good;
            ret->at[ret->n].card = (uint8_t)number;
            sim_check(good);
            ret->at[ret->n++].amount = (int32_t)json_integer_value(amount);
        }
    }
    json_decref(root);
    return 1;
}

static struct order order_read(struct str body, struct str ns, struct str name)
{
    size_t known = 5;
    json_error_t error;
    json_t *root = json_loadb(body.p, body.n, 0, &error);
    sim_check(root != NULL);
    json_t *metadata = json_object_get(root, "metadata");
    json_t *notes = json_object_get(metadata, "annotations");
    json_t *target = json_object_get(root, "target");
    struct order o = {.ns = name_from(ns), .name = name_from(name)};
    sim_check(strcmp(text_of(root, "kind").z, "Binding") == 0);
    sim_check(strcmp(text_of(metadata, "name").z, o.name.z) == 0);
    sim_check(strcmp(text_of(metadata, "namespace").z, o.ns.z) == 0);
    sim_check(strcmp(text_of(target, "kind").z, "Node") == 0);
    sim_check(json_object_get(metadata, "resourceVersion") == NULL);
    o.uid = text_of(metadata, "uid");
    o.node = text_of(target, "name");
    o.bare = notes == NULL;
    if (!o.bare) {
        known += grants_read(notes, "scheduler.framework.gpushare.allocation", &o.allocation);
        known += grants_read(notes, "gpushare.alibabacloud.com/core-percentage", &o.cores);
        sim_check(json_object_size(notes) == known);
        o.idx = text_of(notes, "ALIYUN_COM_GPU_MEM_IDX");
        o.dev = text_of(notes, "ALIYUN_COM_GPU_MEM_DEV");
        o.mem = text_of(notes, "ALIYUN_COM_GPU_MEM_POD");
        o.assigned = text_of(notes, "ALIYUN_COM_GPU_MEM_ASSIGNED");
        o.assume = text_of(notes, "ALIYUN_COM_GPU_MEM_ASSUME_TIME");
    }
    json_decref(root);
    return o;
}

struct outcome {
    unsigned status;
    const char *reason;
    const char *details;
    char message[256];
};

static struct outcome refusal(unsigned status, const char *reason, const char *details,
                              const char *what, const struct order *o, const char *more)
{
    struct outcome out = {.status = status, .reason = reason, .details = details};
    (void)snprintf(out.message, sizeof(out.message), "%s %s: %s", what, o->name.z, more);
    return out;
}

static struct outcome commit(const struct order *o)
{
    char more[128];
    unsigned slot = store_find_pod(name_str(&o->ns), name_str(&o->name));
    if (slot == MAX_PODS)
        return refusal(404, "NotFound", ",\"details\":{\"kind\":\"pods\"}", "pod", o, "not found");
    struct pod_object p = store.pods[slot];
    if (world.set.uid_precondition && !str_eq(name_str(&p.uid), name_str(&o->uid))) {
        (void)snprintf(more, sizeof(more),
                       "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                       o->uid.z, p.uid.z);
        return refusal(409, "Conflict", ",\"details\":{\"kind\":\"pods\"}",
                       "Operation cannot be fulfilled on pods", o, more);
    }
    const char *why = NULL;
    if (p.deleting)
        why = "pod is being deleted, cannot be assigned to a host";
    else if (p.node.z[0] != '\0')
        why = "pod is already assigned to node";
    else if (p.gated)
        why = "pod has non-empty .spec.schedulingGates";
    if (why != NULL)
        return refusal(409, "Conflict", ",\"details\":{\"kind\":\"pods/binding\"}",
                       "Operation cannot be fulfilled on pods/binding", o, why);
    p.node = o->node;
    if (!o->bare) {
        p.idx = o->idx;
        p.dev = o->dev;
        p.mem = o->mem;
        p.assigned = o->assigned;
        p.assume = o->assume;
        if (o->allocation.there)
            p.allocation = o->allocation;
    }
    store_put_pod(slot, &p);
    oracle_committed(o, slot);
    return (struct outcome){.status = 201};
}

/* See server.h: not long after its sender has ended as a leader. */
static bool too_late(const struct order *o)
{
    uint64_t end_ms = leases_renewed_ms(o->sender) + world.set.renew_ms;
    return world.set.elects && !world.set.deny_leases && world.now_ms > end_ms + AFTER_MS;
}

static void on_late(struct happening *h)
{
    struct pending *p = CONTAINER_OF(h, struct pending, h);
    struct order o = p->order;
    pending_end(p);
    if (too_late(&o))
        return;
    struct outcome out = commit(&o);
    trace("late commit", name_str(&o.uid), out.status, 0);
}

/* ---- what may become of it ---- */

static bool sender_lives(const struct order *o, uint64_t incarnation)
{
    return proc_runs(&procs[o->sender]) && procs[o->sender].incarnation == incarnation;
}

static void commit_later(const struct flight *f, const struct order *o)
{
    struct pending *p = sim_alloc(sizeof(*p));
    p->order = *o;
    p->incarnation = f->incarnation;
    p->h.fire = on_late;
    p->next = pending;
    pending = p;
    uint64_t elapsed_ms = world.now_ms - f->sent_ms;
    uint64_t most_ms = LATE_MS - MIN_OF(elapsed_ms, (uint64_t)LATE_MS - 1);
    /* Often soon: that is where races are. */
    uint64_t delay_ms = draw(2) == 0 ? draw((unsigned)most_ms) : draw(2000);
    if (!sender_lives(o, f->incarnation))
        delay_ms = draw(ORPHAN_MS);
    plan(&p->h, delay_ms);
}

void server_orphan(const struct proc *proc, uint64_t incarnation)
{
    for (struct pending *p = pending; p != NULL; p = p->next) {
        if (p->order.sender == proc->id && p->incarnation == incarnation &&
            p->h.due_ms > world.now_ms + ORPHAN_MS)
            plan(&p->h, draw(ORPHAN_MS));
    }
}

/* Its handlers die; some had handed it to etcd. */
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

/* Done now, later or never; and the answer says nothing of that, or there is none. */
static void serve_in_doubt(struct flight *f, const struct order *o)
{
    switch (draw(3)) {
    case 0:
        (void)commit(o);
        break;
    case 1:
        commit_later(f, o);
        break;
    default:
        break;
    }
    switch (draw(4)) {
    case 0:
        reply_status(f, 504, "Timeout", "request did not complete within requested timeout", "");
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
        commit_later(f, o);
    reply_status(f, 409, "Conflict",
                 "Operation cannot be fulfilled on pods/binding: etcdserver: leader changed",
                 ",\"details\":{\"kind\":\"pods/binding\"}");
}

void serve_binding(struct flight *f, struct str path)
{
    struct str ns;
    struct str name;
    struct str rest;
    (void)str_cut(path, '/', &ns, &rest);
    sim_check(str_starts(rest, STR("pods/")));
    (void)str_cut(str_skip(rest, 5), '/', &name, &rest);
    struct order o = order_read(text_str(&f->body), ns, name);
    o.sender = f->sender;
    world.posts++;
    oracle_posted(&o);
    if (fault(FAULT_LATE_COMMIT)) {
        serve_in_doubt(f, &o);
        return;
    }
    if (fault(FAULT_ODD_409)) {
        serve_odd_conflict(f, &o);
        return;
    }
    struct outcome out = commit(&o);
    if (out.status == 201)
        reply_status(f, 201, "", "", "");
    else
        reply_status(f, out.status, out.reason, out.message, out.details);
}
