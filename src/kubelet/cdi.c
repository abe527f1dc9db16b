/* Writes a CDI spec, and reads a variable of it back. */
#include "kubelet/cdi.h"

#include "json/jread.h"

#define CDI_VERSION STR("0.3.0")

static void cdi_put_envs(struct jwrite *w, const struct cdi_device *d)
{
    jwrite_array_at(w, STR("env"));
    for (size_t i = 0; i < d->n_envs; i++)
        jwrite_str(w, d->envs[i]);
    jwrite_array_end(w);
}

static void cdi_put_nodes(struct jwrite *w, const struct cdi_device *d)
{
    jwrite_array_at(w, STR("deviceNodes"));
    for (size_t i = 0; i < d->n_nodes; i++) {
        assert(str_eq(d->nodes[i].container_path, d->nodes[i].host_path));
        jwrite_object_begin(w);
        jwrite_str_at(w, STR("path"), d->nodes[i].container_path);
        jwrite_str_at(w, STR("permissions"), d->nodes[i].permissions);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

/* Without a type, which needs version 0.4.0: "bind" says what it is. */
static void cdi_put_mounts(struct jwrite *w, const struct cdi_device *d)
{
    jwrite_array_at(w, STR("mounts"));
    for (size_t i = 0; i < d->n_mounts; i++) {
        jwrite_object_begin(w);
        jwrite_str_at(w, STR("hostPath"), d->mounts[i].host_path);
        jwrite_str_at(w, STR("containerPath"), d->mounts[i].container_path);
        jwrite_array_at(w, STR("options"));
        jwrite_str(w, d->mounts[i].read_only ? STR("ro") : STR("rw"));
        jwrite_str(w, STR("nosuid"));
        jwrite_str(w, STR("nodev"));
        jwrite_str(w, STR("bind"));
        jwrite_array_end(w);
        jwrite_object_end(w);
    }
    jwrite_array_end(w);
}

void cdi_write(struct buf *out, const struct cdi_device *d)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("cdiVersion"), CDI_VERSION);
    jwrite_str_at(&w, STR("kind"), d->kind);
    jwrite_array_at(&w, STR("devices"));
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("name"), d->name);
    jwrite_object_at(&w, STR("containerEdits"));
    cdi_put_envs(&w, d);
    if (d->n_nodes > 0)
        cdi_put_nodes(&w, d);
    if (d->n_mounts > 0)
        cdi_put_mounts(&w, d);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    jwrite_array_end(&w);
    jwrite_object_end(&w);
}

static struct str cdi_read_edits(struct jread *r, struct str variable)
{
    struct str found = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (!str_eq(key, STR("env"))) {
            jread_skip(r);
            continue;
        }
        jread_array (r) {
            struct str name;
            struct str value;
            if (str_cut(jread_str(r), '=', &name, &value) && str_eq(name, variable))
                found = value;
        }
    }
    return found;
}

static struct str cdi_read_device(struct jread *r, struct str variable, struct str *ret_name)
{
    struct str found = STR_NULL;
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            *ret_name = jread_str(r);
        else if (str_eq(key, STR("containerEdits")))
            found = cdi_read_edits(r, variable);
        else
            jread_skip(r);
    }
    return found;
}

enum errc cdi_read_env(struct str json, struct arena *a, struct str device, struct str variable,
                       struct str *ret, struct err *reterr)
{
    struct jread r;
    struct str key;
    struct str found = STR_NULL;
    struct str name = STR_NULL;
    size_t n = 0;
    jread_init(&r, json, a);
    jread_object (&r, key) {
        if (!str_eq(key, STR("devices"))) {
            jread_skip(&r);
            continue;
        }
        jread_array (&r) {
            found = cdi_read_device(&r, variable, &name);
            n++;
        }
    }
    if (n != 1 || !str_eq(name, device))
        jread_fail(&r, ERR_SYNTAX, "not a spec of the device %.*s alone", STR_ARG(device));
    enum errc code = jread_finish(&r, reterr);
    if (code == OK)
        *ret = found;
    return code;
}
