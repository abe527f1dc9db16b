/*
 * A spec of the Container Device Interface (CDI): a file that says to a container runtime what to
 * add to a container that names its device. A variable of it replaces one of the same name that the
 * pod or the image sets.
 */
#pragma once

#include "kubelet/device_plugin.h"
#include "json/jwrite.h"

/* One device of the kind "vendor.com/class". The name begins with a letter, and has letters,
 * digits, '-', '_', '.' and ':'. */
struct cdi_device {
    struct str kind;
    struct str name;
    const struct str *envs; /* "NAME=value" */
    size_t n_envs;
    const struct plugin_node *nodes; /* with the same path on the host and in the container */
    size_t n_nodes;
    const struct plugin_mount *mounts;
    size_t n_mounts;
};

/* The version is 0.3.0, the oldest that runtimes read: no field needs a newer one. */
void cdi_write(struct buf *out, const struct cdi_device *d);

/* The value of a variable of the only device, which must have this name. Absent: no such variable.
 * A view of the text, or of the arena. */
enum errc cdi_read_env(struct str json, struct arena *a, struct str device, struct str variable,
                       struct str *ret, struct err *reterr) _must_use_;
