/* Requests about Leases at the simulated API server. A write may commit late. */
#include "api/leases.h"

#include "server.h"

#include <stdlib.h>

#define LATE_MS 60000

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

static struct lease_write *late;
static uint64_t renewed_ms[MAX_REPLICAS];
static bool denied[MAX_REPLICAS];

void lease_writes_reset(void)
{
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

/* Returns the status, and the Lease. */
static unsigned lease_commit(const struct lease_write *w, struct lease **ret)
{
    unsigned status = 0;
    struct lease *l = lease_write(name_str(&w->ns), name_str(&w->name), w->object, &status);
    *ret = l;
    if (status >= 300)
        return status;
    const char *holder = lease_text(l, "spec", "holderIdentity");
    struct name writer = proc_identity(&procs[w->sender]);
    if (strcmp(holder, writer.z) == 0)
        renewed_ms[w->sender] = MAX_OF(renewed_ms[w->sender], w->sent_ms);
    trace("lease", str_of(holder), (int64_t)l->rv, w->sender);
    return status;
}

static void on_late(struct happening *h)
{
    struct lease_write *w = CONTAINER_OF(h, struct lease_write, h);
    struct lease_write **at = &late;
    struct lease *l = NULL;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    unsigned status = lease_commit(w, &l);
    trace("late lease", STR(""), status < 300, w->sender);
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
        (void)lease_commit(w, &l);
    f->status = 0;
    if (draw(2) == 0)
        reply_status(f, 504, "Timeout", "request did not complete within requested timeout", "");
}

void serve_lease(struct flight *f, const struct api_request *r)
{
    json_error_t error;
    if (denied[f->sender] && !world.quiet) {
        reply_status(f, 403, "Forbidden", "leases are forbidden", "");
        return;
    }
    if (strcmp(f->method, "GET") == 0) {
        f->status = lease_serve(&f->reply, r, STR(""));
        return;
    }
    struct lease_write w = {.ns = name_from(r->ns),
                            .name = name_from(r->name),
                            .object = json_loadb(f->body.p, f->body.n, 0, &error),
                            .sender = f->sender,
                            .sent_ms = f->sent_ms};
    sim_check(w.object != NULL && json_object_get(w.object, "metadata") != NULL);
    if (fault(FAULT_LATE_COMMIT)) {
        write_in_doubt(f, &w);
    } else {
        struct lease *l = NULL;
        f->status = lease_commit(&w, &l);
        lease_answer(&f->reply, l, f->status, w.name.z[0] == '\0');
    }
    json_decref(w.object);
}
