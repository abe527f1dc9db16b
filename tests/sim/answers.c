/* What a process answers to a scheduler must be true, and JSON. */
#include "oracle.h"

#include <jansson.h>

static void bind_answered(const struct ask *a)
{
    if (!str_eq(text_str(&a->answer), STR("{\"Error\":\"\"}")))
        return;
    unsigned slot = store_find_uid(name_str(&a->uid));
    sim_check(slot != MAX_PODS);
    const struct pod_object *p = &store.pods[slot];
    bool excepted = !world.set.preconditions && !p->exists;
    sim_check(excepted || strcmp(p->node.z, a->node.z) == 0);
}

void oracle_answered(const struct ask *a)
{
    json_error_t error;
    sim_check(a->status == 200 || a->status == 503 || a->kind == ASK_NONSENSE ||
              (a->kind == ASK_OTHER_GET && a->status == 502));
    if (a->status == 503)
        return;
    json_t *root = json_loadb(a->answer.p, a->answer.n, 0, &error);
    sim_check(root != NULL);
    json_decref(root);
    trace("answered", text_str(&a->answer), a->kind, a->status);
    if (a->kind == ASK_BIND)
        bind_answered(a);
}
