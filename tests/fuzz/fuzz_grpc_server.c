/*
 * The input is what a client writes to the gRPC server, behind HTTP/2's preface; then it closes.
 * The server's answer must be whole frames, and gone() must be called once for each call that was
 * kept and not ended.
 */
#include "grpc/grpc_server.h"
#include "wired.h"

#define PREFACE STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
#define MANY    1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct owner {
    struct grpc_call *kept[MANY];
    size_t n;
};

static void echo(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    grpc_call_reply(c, message);
}

static void fail(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    grpc_call_fail(c, GRPC_NOT_FOUND, message);
}

static void keep(void *ctx, struct grpc_call *c, struct str message)
{
    struct owner *o = ctx;
    check(o->n < MANY, "a limited number of calls");
    o->kept[o->n++] = c;
    grpc_call_send(c, message);
}

static void gone(void *ctx, struct grpc_call *c)
{
    struct owner *o = ctx;
    for (size_t i = 0; i < o->n; i++) {
        if (o->kept[i] == c) {
            o->kept[i] = o->kept[--o->n];
            return;
        }
    }
    check(false, "gone is called once, for a call that was kept");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct grpc_method methods[] = {{"/e", echo}, {"/f", fail}, {"/k", keep}};
    static struct owner o;
    struct wired w;
    struct sockaddr_un a;
    struct grpc_server *server = NULL;
    o.n = 0;
    wired_make(&w);
    struct grpc_server_settings s = {.socket = w.path,
                                     .methods = methods,
                                     .n_methods = COUNT_OF(methods),
                                     .ctx = &o,
                                     .max_message = 1000,
                                     .max_unsent = 2000,
                                     .gone = gone};
    check(grpc_server_new(w.loop, &s, &server, NULL) == OK, "a server");
    int fd = wired_socket(&w, &a);
    check(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "a connection");
    wired_write(fd, PREFACE);
    wired_write(fd, (struct str){(const char *)data, size});
    wired_turns(&w, 6);
    for (size_t i = 0; i < o.n; i++)
        grpc_call_send(o.kept[i], STR("more"));
    if (o.n > 0)
        grpc_call_end(o.kept[--o.n]);
    wired_turns(&w, 3);
    wired_read(fd, 0);
    (void)close(fd);
    wired_turns(&w, 4);
    check(o.n == 0, "each kept call ends with its connection");
    server = grpc_server_free(server);
    wired_done(&w);
    return 0;
}
