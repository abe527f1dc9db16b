/*
 * Watches the kubelet's folder of device plugins, through inotify on the loop: whether the kubelet
 * has created its socket, and whether sockets may be gone.
 */
#pragma once

#include "io/loop.h"

#define KUBELET_DIR_SOCKET "kubelet.sock"

struct kubelet_dir {
    struct loop_fd inotify; /* private */

    /*
     * Set by the owner. kubelet: its socket was created. gone: the folder is not there any more,
     * and the watch is closed. Neither: something else in it has changed. May call any function
     * here.
     */
    void (*changed)(struct kubelet_dir *d, bool kubelet, bool gone);
};

/* ERR_NOTFOUND: no such folder. ERR_UNAVAILABLE: it can't be watched. */
enum errc kubelet_dir_open(struct kubelet_dir *d, struct loop *l, const char *path,
                           struct err *reterr) _must_use_;
bool kubelet_dir_is_open(const struct kubelet_dir *d);
void kubelet_dir_close(struct kubelet_dir *d); /* allowed if not open, or all zero */
