/* Writes an Eviction with the pod's UID as a precondition. */
#include "objects/eviction.h"

void eviction_write(struct jwrite *w, const struct eviction *e)
{
    jwrite_object_begin(w);
    jwrite_str_at(w, STR("apiVersion"), e->beta ? STR("policy/v1beta1") : STR("policy/v1"));
    jwrite_str_at(w, STR("kind"), STR("Eviction"));
    jwrite_object_at(w, STR("metadata"));
    jwrite_str_at(w, STR("name"), e->name);
    jwrite_str_at(w, STR("namespace"), e->namespace);
    jwrite_object_end(w);
    jwrite_object_at(w, STR("deleteOptions"));
    jwrite_object_at(w, STR("preconditions"));
    jwrite_str_at(w, STR("uid"), e->uid);
    jwrite_object_end(w);
    jwrite_object_end(w);
    jwrite_object_end(w);
}
