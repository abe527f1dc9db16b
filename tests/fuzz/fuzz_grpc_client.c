/*
 * The input is what a server writes to a gRPC client with two requests; then it closes. Each
 * request must end exactly once, an error must say why, and a third one must not hang on the old
 * connection.
 */
#include "grpc/grpc_client.h"
#include "wired.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct question {
    struct grpc_request request;
    unsigned times;
};

static void answered(struct grpc_request *r)
{
    CONTAINER_OF(r, struct question, request)->times++;
    check((r->result == OK) == (r->err.text[0] == '\0'), "an error says why");
    check(r->result != OK || (r->answered && r->status == GRPC_OK), "only status 0 is success");
}

static void start(struct grpc_client *c, struct question *q)
{
    *q = (struct question){
        .request = {.path = "/e", .message = STR("hi"), .max_reply = 1000, .on_done = answered}};
    grpc_request_start(c, &q->request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wired w;
    struct sockaddr_un a;
    struct sockaddr from;
    socklen_t from_n = sizeof(from);
    struct grpc_client *client = NULL;
    struct question q[3];
    wired_make(&w);
    int listener = wired_socket(&w, &a);
    (void)unlink(w.path);
    check(bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(listener, 4) == 0,
          "a listening socket");
    check(grpc_client_new(w.loop, w.path, &client, NULL) == OK, "a client");
    start(client, &q[0]);
    start(client, &q[1]);
    int fd = accept4(listener, &from, &from_n, SOCK_CLOEXEC);
    check(fd >= 0, "a connection");
    (void)close(listener); /* no second connection */
    wired_turns(&w, 3);
    wired_write(fd, (struct str){(const char *)data, size});
    wired_turns(&w, 6);
    wired_read(fd, sizeof("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") - 1);
    (void)close(fd);
    wired_turns(&w, 4);
    start(client, &q[2]);
    wired_turns(&w, 4);
    for (size_t i = 0; i < COUNT_OF(q); i++) {
        check(q[i].times == 1, "a request ends once");
        grpc_request_done(&q[i].request);
    }
    client = grpc_client_free(client);
    (void)unlink(w.path);
    wired_done(&w);
    return 0;
}
