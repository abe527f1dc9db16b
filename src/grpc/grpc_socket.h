/* Private to grpc: Unix sockets. */
#pragma once

#include "base/err.h"

#include <sys/un.h>

/* The file of a listening socket, to recognize it. */
struct grpc_socket_file {
    struct sockaddr_un address;
    uint64_t device;
    uint64_t inode;
};

/* ERR_RANGE: empty or too long. */
enum errc grpc_socket_address(const char *path, struct sockaddr_un *ret, struct err *reterr)
    _must_use_;

/* Listens, and fills ret_file; see grpc_server_new. The caller closes the descriptor. */
enum errc grpc_socket_listen(const char *path, struct grpc_socket_file *ret_file, int *ret_fd,
                             struct err *reterr) _must_use_;

/* Whether the path still has the file that was created. */
bool grpc_socket_is_there(const struct grpc_socket_file *f);

/* Removes the file if it is still that one. */
void grpc_socket_remove(const struct grpc_socket_file *f);

/* Never blocks. ERR_UNAVAILABLE: no process listens, or too many clients wait. */
enum errc grpc_socket_connect(const struct sockaddr_un *a, int *ret_fd, struct err *reterr)
    _must_use_;
