/*
 * Leases: GET, POST, and PUT with a resourceVersion as its precondition, as for each object of the
 * API (Kubernetes' documentation: API Concepts, "Resource versions").
 */
#pragma once

#include "api/store.h"

#include <jansson.h>

struct lease {
    struct name ns;
    struct name name;
    uint64_t rv;
    json_t *object; /* NULL: deleted */
};

void leases_reset(void);

/* Returns how many there were. */
unsigned leases_delete(void);

/* Leaves each without a holder, as a release does, but with all else as it was. Returns whether
 * there was one. */
bool leases_forge(void);

struct lease *lease_find(struct str ns, struct str name); /* NULL: never there */

/* A POST (name "") or a PUT of this object. *ret_status: 201 or 200 if the Lease returned now holds
 * it, else 404 or 409. */
struct lease *lease_write(struct str ns, struct str name, json_t *object, unsigned *ret_status);

/* Gives the object, which a test has changed in place, a new version. */
void lease_bump(struct lease *l);

/* The text at object[part][key]; "": absent. */
const char *lease_text(const struct lease *l, const char *part, const char *key);

/* Replaces the text by the answer with this status, to a POST (creates) or another request. */
void lease_answer(struct text *t, const struct lease *l, unsigned status, bool creates);

/* Does what the request says. Writes the answer, and returns its status. */
unsigned lease_serve(struct text *t, const struct api_request *r, struct str body);
