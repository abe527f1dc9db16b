/*
 * Compares the kubelet's own list of devices (podresources) with the roster: whether each container
 * has the cards that its pod's annotations name. Pure, as the roster.
 *
 * The list has neither our answer to Allocate nor a pod's UID. It says which container has which
 * devices; which cards those are, the checkpoint says, or with late binding the spec. The card in a
 * device's ID is only the one that was preferred: the kubelet takes other devices if that card has
 * too few, and an exchange moves the annotations and not the devices. So it proves nothing.
 */
#pragma once

#include "core/state/measured.h"
#include "kubelet/pod_resources.h"
#include "node/kubelet/checkpoint_file.h"
#include "node/roster/roster.h"

/* As many as the ConfigMap has: LIMIT_USAGE_DIFFERENCES. */
#define COMPARE_MAX 64

struct difference {
    enum usage_difference_kind kind;
    struct str uid; /* views of the roster, as all four */
    struct str namespace;
    struct str name;
    struct str container;
    struct card_list annotated;
    struct card_list given;
};

struct comparison {
    uint32_t compared; /* containers with devices of our resource, of pods of the roster */
    size_t n;
    size_t left_out;
    struct difference items[COMPARE_MAX];
};

/* t: loaded, and applied to the roster; else all is compared that needs no owner of a device. */
void compare(const struct pod_resources *list, const struct checkpoint_file *t,
             const struct roster *r, struct comparison *ret);
