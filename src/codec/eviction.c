/* Writes an Eviction with the pod's UID as a precondition. */
#include "codec/eviction.h"

void eviction_write(struct jwrite *w, const struct eviction *e)
{
    jwrite_object_begin(w);
    jwrite_key(w, STR("apiVersion"));
    jwrite_str(w, e->beta ? STR("policy/v1beta1") : STR("policy/v1"));
    jwrite_key(w, STR("kind"));
    jwrite_str(w, STR("Eviction"));
    jwrite_key(w, STR("metadata"));
    jwrite_object_begin(w);
    jwrite_key(w, STR("name"));
    jwrite_str(w, e->name);
    jwrite_key(w, STR("namespace"));
    jwrite_str(w, e->namespace);
    jwrite_object_end(w);
    jwrite_key(w, STR("deleteOptions"));
    jwrite_object_begin(w);
    jwrite_key(w, STR("preconditions"));
    jwrite_object_begin(w);
    jwrite_key(w, STR("uid"));
    jwrite_str(w, e->uid);
    jwrite_object_end(w);
    jwrite_object_end(w);
    jwrite_object_end(w);
}
