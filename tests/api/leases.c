/* Leases of a double of the API server; see leases.h. */
#include "api/leases.h"

#include <stdlib.h>

#define MAX_LEASES 4
#define OF_LEASES  ",\"details\":{\"kind\":\"leases\"}"

static struct lease leases[MAX_LEASES];
static size_t n_leases;

unsigned leases_delete(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < n_leases; i++) {
        n += leases[i].object != NULL;
        json_decref(leases[i].object);
        leases[i].object = NULL;
    }
    return n;
}

bool leases_forge(void)
{
    bool any = false;
    for (size_t i = 0; i < n_leases; i++) {
        json_t *spec = json_object_get(leases[i].object, "spec");
        if (spec == NULL)
            continue;
        json_object_set_new(spec, "holderIdentity", json_string(""));
        json_object_set_new(spec, "leaseDurationSeconds", json_integer(1));
        lease_bump(&leases[i]);
        any = true;
    }
    return any;
}

void leases_reset(void)
{
    (void)leases_delete();
    n_leases = 0;
}

struct lease *lease_find(struct str ns, struct str name)
{
    for (size_t i = 0; i < n_leases; i++) {
        if (str_eq(name_str(&leases[i].ns), ns) && str_eq(name_str(&leases[i].name), name))
            return &leases[i];
    }
    return NULL;
}

static const char *text_at(const json_t *object, const char *part, const char *key)
{
    const char *z = json_string_value(json_object_get(json_object_get(object, part), key));
    return z == NULL ? "" : z;
}

const char *lease_text(const struct lease *l, const char *part, const char *key)
{
    return text_at(l->object, part, key);
}

void lease_bump(struct lease *l)
{
    l->rv = ++store.rv;
    struct name rv = name_of("", l->rv);
    json_t *metadata = json_object_get(l->object, "metadata");
    json_object_set_new(metadata, "resourceVersion", json_string(rv.z));
    json_object_set_new(metadata, "uid", json_string("lease-uid"));
}

struct lease *lease_write(struct str ns, struct str name, json_t *object, unsigned *ret_status)
{
    bool creates = name.n == 0;
    if (creates)
        name = str_of(text_at(object, "metadata", "name"));
    struct lease *l = lease_find(ns, name);
    if (creates && l == NULL) {
        api_check(n_leases < MAX_LEASES && name.n > 0);
        l = &leases[n_leases++];
        *l = (struct lease){.ns = name_from(ns), .name = name_from(name)};
    }
    bool there = l != NULL && l->object != NULL;
    if (!creates && !there) {
        *ret_status = 404;
        return l;
    }
    struct name current = name_of("", l->rv);
    const char *rv = text_at(object, "metadata", "resourceVersion");
    if (creates ? there : rv[0] != '\0' && strcmp(rv, current.z) != 0) {
        *ret_status = 409;
        return l;
    }
    json_decref(l->object);
    l->object = json_incref(object);
    lease_bump(l);
    *ret_status = creates ? 201 : 200;
    return l;
}

void lease_answer(struct text *t, const struct lease *l, unsigned status, bool creates)
{
    if (status == 404) {
        status_write(t, 404, "NotFound", "leases not found", OF_LEASES);
        return;
    }
    if (status == 409) {
        status_write(t, 409, creates ? "AlreadyExists" : "Conflict",
                     creates ? "leases already exists" : "the object has been modified", OF_LEASES);
        return;
    }
    char *dump = json_dumps(l->object, JSON_COMPACT);
    api_check(dump != NULL);
    t->n = 0;
    text_z(t, dump);
    free(dump);
}

unsigned lease_serve(struct text *t, const struct api_request *r, struct str body)
{
    unsigned status = 0;
    struct lease *l = NULL;
    if (str_eq(r->method, STR("GET"))) {
        l = lease_find(r->ns, r->name);
        status = l == NULL || l->object == NULL ? 404 : 200;
    } else {
        json_error_t error;
        json_t *object = json_loadb(body.p, body.n, 0, &error);
        api_check(object != NULL && json_object_get(object, "metadata") != NULL);
        l = lease_write(r->ns, r->name, object, &status);
        json_decref(object);
    }
    lease_answer(t, l, status, r->name.n == 0);
    return status;
}
