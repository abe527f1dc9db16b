/*
 * Leases (contract kubernetes 6): GET, POST, and PUT with a resourceVersion as its precondition. A
 * write may commit late.
 */
#include "server.h"

#include <jansson.h>
#include <stdlib.h>

#define MAX_LEASES 4
#define LATE_MS    60000

struct lease {
    struct name ns;
    struct name name;
    uint64_t rv;
    json_t *object; /* NULL: deleted */
};

/* A POST, which has an empty `name`, or a PUT. */
struct lease_write {
    struct happening h; /* fires a late write */
    struct lease_write *next;
    struct name ns;
    struct name name;
    json_t *object;
    unsigned sender;
    uint64_t sent_ms;
};

static struct lease leases[MAX_LEASES];
static size_t n_leases;
static struct lease_write *late;
static uint64_t renewed_ms[MAX_REPLICAS];
static bool denied[MAX_REPLICAS];

void leases_reset(void)
{
    while (n_leases > 0)
        json_decref(leases[--n_leases].object);
    while (late != NULL) {
        struct lease_write *w = late;
        late = w->next;
        unplan(&w->h);
        json_decref(w->object);
        free(w);
    }
    memset(renewed_ms, 0, sizeof(renewed_ms));
    for (unsigned i = 0; i < MAX_REPLICAS; i++)
        denied[i] = draw(3) == 0 && world.set.permille[FAULT_DENIED] > 0;
}

void leases_deny(unsigned sender)
{
    denied[sender] = !denied[sender];
    trace("right to leases", STR(""), sender, !denied[sender]);
}

uint64_t leases_renewed_ms(unsigned sender)
{
    return renewed_ms[sender];
}

void leases_delete(void)
{
    for (size_t i = 0; i < n_leases; i++) {
        json_decref(leases[i].object);
        leases[i].object = NULL;
        trace("lease is deleted", STR(""), 0, 0);
    }
}

static struct lease *lease_find(struct str ns, struct str name)
{
    for (size_t i = 0; i < n_leases; i++) {
        if (str_eq(name_str(&leases[i].ns), ns) && str_eq(name_str(&leases[i].name), name))
            return &leases[i];
    }
    return NULL;
}

static const char *text_at(json_t *object, const char *part, const char *key)
{
    const char *z = json_string_value(json_object_get(json_object_get(object, part), key));
    return z == NULL ? "" : z;
}

/* Stores the object with a new version and a UID. */
static void lease_store(struct lease *l, const struct lease_write *w)
{
    struct name rv = name_of("", ++store.rv);
    json_t *metadata = json_object_get(w->object, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(rv.z));
    json_object_set_new(metadata, "uid", json_string("lease-uid"));
    json_decref(l->object);
    l->object = json_incref(w->object);
    l->rv = store.rv;
    const char *holder = text_at(l->object, "spec", "holderIdentity");
    struct name writer = proc_identity(&procs[w->sender]);
    if (strcmp(holder, writer.z) == 0)
        renewed_ms[w->sender] = MAX_OF(renewed_ms[w->sender], w->sent_ms);
    trace("lease", str_of(holder), (int64_t)l->rv, w->sender);
}

enum written {
    WRITTEN,
    WRITE_EXISTS,
    WRITE_CONFLICTS,
    WRITE_ABSENT,
};

static enum written lease_write(const struct lease_write *w, struct lease **ret)
{
    bool creates = w->name.z[0] == '\0';
    struct str name = creates ? str_of(text_at(w->object, "metadata", "name")) : name_str(&w->name);
    struct lease *l = lease_find(name_str(&w->ns), name);
    if (creates && l == NULL) {
        sim_check(n_leases < MAX_LEASES && name.n > 0);
        l = &leases[n_leases++];
        *l = (struct lease){.ns = w->ns, .name = name_from(name)};
    }
    *ret = l;
    if (creates && l->object != NULL)
        return WRITE_EXISTS;
    if (!creates && (l == NULL || l->object == NULL))
        return WRITE_ABSENT;
    const char *rv = text_at(w->object, "metadata", "resourceVersion");
    struct name current = name_of("", l->rv);
    if (!creates && rv[0] != '\0' && strcmp(rv, current.z) != 0)
        return WRITE_CONFLICTS;
    lease_store(l, w);
    return WRITTEN;
}

static void reply_lease(struct flight *f, unsigned status, const struct lease *l)
{
    char *dump = json_dumps(l->object, JSON_COMPACT);
    sim_check(dump != NULL);
    f->reply.n = 0;
    f->status = status;
    text_z(&f->reply, dump);
    free(dump);
}

static void reply_absent(struct flight *f)
{
    reply_status(f, 404, "NotFound", "leases not found", ",\"details\":{\"kind\":\"leases\"}");
}

static void on_late(struct happening *h)
{
    struct lease_write *w = CONTAINER_OF(h, struct lease_write, h);
    struct lease_write **at = &late;
    struct lease *l = NULL;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    enum written outcome = lease_write(w, &l);
    trace("late lease", STR(""), outcome, w->sender);
    json_decref(w->object);
    free(w);
}

static void write_later(const struct lease_write *w)
{
    struct lease_write *copy = sim_alloc(sizeof(*copy));
    *copy = *w;
    json_incref(copy->object);
    copy->h = (struct happening){.fire = on_late};
    copy->next = late;
    late = copy;
    plan(&copy->h, draw(2) == 0 ? draw(LATE_MS) : draw(3000));
}

static void write_in_doubt(struct flight *f, const struct lease_write *w)
{
    struct lease *l = NULL;
    if (draw(2) == 0)
        write_later(w);
    else if (draw(2) == 0)
        (void)lease_write(w, &l);
    f->status = 0;
    if (draw(2) == 0)
        reply_status(f, 504, "Timeout", "request did not complete within requested timeout", "");
}

static void serve_write(struct flight *f, const struct lease_write *w)
{
    struct lease *l = NULL;
    switch (lease_write(w, &l)) {
    case WRITTEN:
        reply_lease(f, w->name.z[0] == '\0' ? 201 : 200, l);
        return;
    case WRITE_EXISTS:
        reply_status(f, 409, "AlreadyExists", "leases already exists",
                     ",\"details\":{\"kind\":\"leases\"}");
        return;
    case WRITE_CONFLICTS:
        reply_status(f, 409, "Conflict", "the object has been modified",
                     ",\"details\":{\"kind\":\"leases\"}");
        return;
    case WRITE_ABSENT:
        reply_absent(f);
        return;
    }
}

void serve_lease(struct flight *f, struct str path)
{
    struct str ns;
    struct str rest;
    json_error_t error;
    (void)str_cut(path, '/', &ns, &rest);
    sim_check(str_starts(rest, STR("leases")));
    struct str name = str_skip(rest, 7);
    if (denied[f->sender] && !world.quiet) {
        reply_status(f, 403, "Forbidden", "leases are forbidden", "");
        return;
    }
    if (strcmp(f->method, "GET") == 0) {
        const struct lease *l = lease_find(ns, name);
        if (l == NULL || l->object == NULL)
            reply_absent(f);
        else
            reply_lease(f, 200, l);
        return;
    }
    struct lease_write w = {.ns = name_from(ns),
                            .name = name_from(name),
                            .object = json_loadb(f->body.p, f->body.n, 0, &error),
                            .sender = f->sender,
                            .sent_ms = f->sent_ms};
    sim_check(w.object != NULL && json_object_get(w.object, "metadata") != NULL);
    if (fault(FAULT_LATE_COMMIT))
        write_in_doubt(f, &w);
    else
        serve_write(f, &w);
    json_decref(w.object);
}
