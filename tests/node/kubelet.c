/*
 * A double of the kubelet's device manager, for tests of the whole cardpack-node: it serves
 * Registration, asks for the options and the list as the kubelet does, and calls the plugin as its
 * standard input says.
 *
 *     kubelet DIR                      DIR: the folder of device plugins
 *
 *     NUMBER allocate DEVICES          answers "NUMBER 0 NANOSECONDS REPLY" with the reply in hex,
 *     NUMBER start DEVICES             or "NUMBER STATUS NANOSECONDS TEXT" of the error
 *     NUMBER prefer SIZE DEVICES       among these devices
 *
 * DEVICES are "CARD:FROM+N", with commas between them: N devices of a card. It prints "registered"
 * when the plugin has called Register. Calls run beside each other; it ends with its input.
 */
#include "base/limit.h"
#include "base/mem.h"
#include "grpc/grpc_client.h"
#include "grpc/grpc_server.h"
#include "kubelet/device_plugin.h"
#include "node/kubelet/devices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LINE_BYTES    (64 * KIB)
#define SOCKET_BYTES  128
#define CALL_MS       UINT64_C(60000)
#define WATCH_MS      UINT64_C(86400000)
#define MESSAGE_BYTES (8 * MIB)

struct call {
    struct grpc_request request;
    struct loop *loop;
    uint64_t number;
    uint64_t since_ns;
};

struct kubelet {
    struct loop *loop;
    struct grpc_server *server;
    struct grpc_client *plugin;
    struct grpc_call *registering;
    struct grpc_request options;
    struct grpc_request watch;
    struct loop_fd in;
    struct buf line;
    char ours[SOCKET_BYTES];
    char theirs[SOCKET_BYTES];
};

_Noreturn static void fail(const char *what)
{
    (void)fprintf(stderr, "kubelet: %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- the registration ---- */

static void on_watched(struct grpc_request *r)
{
    grpc_request_done(r);
}

static void on_options(struct grpc_request *r)
{
    struct kubelet *k = CONTAINER_OF(r, struct kubelet, options);
    bool good = r->result == OK;
    grpc_request_done(r);
    if (k->registering == NULL)
        return;
    if (good)
        grpc_call_reply(k->registering, STR(""));
    else
        grpc_call_fail(k->registering, GRPC_UNAVAILABLE, STR("no options"));
    k->registering = NULL;
    grpc_request_cancel(&k->watch);
    grpc_request_done(&k->watch);
    k->watch = (struct grpc_request){
        .path = DEVICE_PLUGIN_WATCH, .timeout_ms = WATCH_MS, .on_done = on_watched};
    grpc_request_start(k->plugin, &k->watch);
    (void)printf("registered\n");
}

static void on_register(void *ctx, struct grpc_call *call, struct str message)
{
    struct kubelet *k = ctx;
    (void)message;
    if (k->registering != NULL) {
        grpc_call_fail(call, GRPC_UNAVAILABLE, STR("one is under way"));
        return;
    }
    k->registering = call;
    k->options = (struct grpc_request){
        .path = DEVICE_PLUGIN_OPTIONS, .timeout_ms = CALL_MS, .on_done = on_options};
    grpc_request_start(k->plugin, &k->options);
}

static void on_gone(void *ctx, struct grpc_call *call)
{
    struct kubelet *k = ctx;
    if (k->registering == call)
        k->registering = NULL;
}

/* ---- calls ---- */

static void on_done(struct grpc_request *r)
{
    struct call *c = CONTAINER_OF(r, struct call, request);
    uint64_t took = loop_clock_ns(c->loop) - c->since_ns;
    int status = r->answered ? (int)r->status : (int)GRPC_UNAVAILABLE;
    (void)printf("%" PRIu64 " %d %" PRIu64 " ", c->number, r->result == OK ? 0 : status, took);
    for (size_t i = 0; r->result == OK && i < r->reply.n; i++)
        (void)printf("%02x", (unsigned char)r->reply.p[i]);
    (void)printf("%s\n", r->result == OK ? "" : r->err.text);
    grpc_request_done(r);
    mem_free(c);
}

/* A message with a nested one for the container, or without. */
static void put_bytes(struct buf *out, unsigned number, struct str bytes)
{
    buf_putc(out, (char)(number << 3 | PB_BYTES));
    size_t n = bytes.n;
    for (; n > 127; n >>= 7)
        buf_putc(out, (char)(n | 128));
    buf_putc(out, (char)n);
    buf_put(out, bytes);
}

static uint64_t number_of(struct str text)
{
    uint64_t n = 0;
    if (!str_to_u64(text, UINT32_MAX, &n))
        fail("a number is wanted");
    return n;
}

/* "CARD:FROM+N", with commas between them. */
static void put_devices(struct buf *out, struct str text)
{
    bool more = true;
    while (more) {
        struct str part;
        struct str card;
        struct str from;
        struct str n;
        more = str_cut(text, ',', &part, &text);
        if (!str_cut(part, ':', &card, &part) || !str_cut(part, '+', &from, &n))
            fail("CARD:FROM+N is wanted");
        for (uint64_t i = 0; i < number_of(n); i++) {
            char id[DEVICE_ID_BYTES];
            device_id(id, (uint32_t)number_of(card), (uint32_t)(number_of(from) + i));
            put_bytes(out, 1, str_of(id));
        }
    }
}

/* The message of each call, from the field numbers of the kubelet's API. */
static const char *put_message(struct buf *out, struct str verb, struct str devices)
{
    bool prefer = str_eq(verb, STR("prefer"));
    bool start = str_eq(verb, STR("start"));
    struct str size = STR_NULL;
    struct buf ids;
    if (prefer && !str_cut(devices, ' ', &size, &devices))
        fail("SIZE DEVICES is wanted");
    buf_init(&ids, MESSAGE_BYTES);
    put_devices(&ids, devices);
    if (prefer) {
        uint64_t n = number_of(size);
        buf_putc(&ids, 3 << 3);
        for (; n > 127; n >>= 7)
            buf_putc(&ids, (char)(n | 128));
        buf_putc(&ids, (char)n);
    }
    if (start)
        buf_put(out, buf_str(&ids));
    else
        put_bytes(out, 1, buf_str(&ids));
    if (buf_failed(&ids) || buf_failed(out))
        fail("the message is too long");
    buf_done(&ids);
    if (start)
        return DEVICE_PLUGIN_PRE_START;
    return prefer ? DEVICE_PLUGIN_PREFERRED : DEVICE_PLUGIN_ALLOCATE;
}

static void begin(struct kubelet *k, struct str line)
{
    struct str number;
    struct str verb;
    struct str rest;
    struct buf message;
    struct call *c = mem_alloc(sizeof(*c));
    if (!str_cut(line, ' ', &number, &rest) || !str_cut(rest, ' ', &verb, &rest) || c == NULL)
        fail("NUMBER VERB DEVICES is wanted");
    buf_init(&message, MESSAGE_BYTES);
    *c = (struct call){.loop = k->loop, .number = number_of(number)};
    c->request.path = put_message(&message, verb, rest);
    c->request.message = buf_str(&message);
    c->request.timeout_ms = CALL_MS;
    c->request.on_done = on_done;
    c->since_ns = loop_clock_ns(k->loop);
    grpc_request_start(k->plugin, &c->request);
    buf_done(&message);
}

static void on_input(struct loop_fd *f, uint32_t events)
{
    struct kubelet *k = CONTAINER_OF(f, struct kubelet, in);
    char bytes[4096];
    (void)events;
    ssize_t n = read(f->fd, bytes, sizeof(bytes));
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        loop_stop(k->loop);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            buf_putc(&k->line, bytes[i]);
            continue;
        }
        if (buf_failed(&k->line))
            fail("the line is too long");
        begin(k, buf_str(&k->line));
        buf_clear(&k->line, LINE_BYTES);
    }
}

int main(int argc, char **argv)
{
    static const struct grpc_method methods[] = {{DEVICE_PLUGIN_REGISTER, on_register}};
    static struct kubelet k;
    struct err e = ERR_INIT;
    if (argc != 2)
        fail("DIR is wanted");
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)snprintf(k.ours, sizeof(k.ours), "%s/kubelet.sock", argv[1]);
    (void)snprintf(k.theirs, sizeof(k.theirs), "%s/cardpack.sock", argv[1]);
    buf_init(&k.line, LINE_BYTES);
    struct grpc_server_settings s = {.socket = k.ours,
                                     .methods = methods,
                                     .n_methods = COUNT_OF(methods),
                                     .ctx = &k,
                                     .gone = on_gone};
    k.in = (struct loop_fd){.fd = STDIN_FILENO, .events = EPOLLIN, .ready = on_input};
    enum errc code = loop_new(&k.loop, &e);
    if (code == OK)
        code = grpc_client_new(k.loop, k.theirs, &k.plugin, &e);
    if (code == OK)
        code = grpc_server_new(k.loop, &s, &k.server, &e);
    if (code == OK)
        code = loop_fd_add(k.loop, &k.in, &e);
    if (code == OK)
        code = loop_run(k.loop, &e);
    if (code != OK)
        fail(e.text);
    loop_fd_del(&k.in);
    grpc_request_cancel(&k.watch);
    grpc_request_done(&k.watch);
    k.plugin = grpc_client_free(k.plugin);
    k.server = grpc_server_free(k.server);
    buf_done(&k.line);
    k.loop = loop_free(k.loop);
    return EXIT_SUCCESS;
}
