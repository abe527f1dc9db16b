/*
 * The device plugin. register_step decides about the registration; plugin_feed gives it what
 * happens, and performs its actions. What concerns devices of pods goes to the owner.
 */
#include "node/kubelet/plugin.h"

#include "base/log.h"
#include "base/mem.h"
#include "grpc/grpc_client.h"
#include "grpc/limit.h"
#include "node/kubelet/kubelet_dir.h"
#include "node/kubelet/register_step.h"
#include "node/limit.h"

#include <limits.h>
#include <stdio.h>

#define REGISTER_TIMEOUT_MS 20000 /* in Register the kubelet dials us, for 10 s at most */
#define BEHIND_MS           100   /* how often a stream that lags behind is looked at */
#define ARENA_BYTES         (64 * MIB)
#define SMALL_BYTES         (4 * KIB)

static const struct plugin_options plugin_options = {.pre_start_required = true,
                                                     .preferred_allocation = true};

struct plugin_stream {
    struct grpc_call *call;
    bool behind; /* it has not got the present list */
    struct list_link link;
};

struct plugin {
    struct plugin_settings s;
    char dir[PATH_MAX];
    char socket[PATH_MAX + sizeof(PLUGIN_SOCKET)];
    char kubelet[PATH_MAX + sizeof(KUBELET_DIR_SOCKET)];
    struct kubelet_dir watch;
    bool watched; /* ever */
    struct grpc_server *server;
    struct grpc_client *client; /* of the last Register */
    struct grpc_request request;
    bool asking;
    struct register_state state;
    struct timer timer;
    struct timer behind;
    struct list streams;
    struct buf list; /* the list of devices as a message */
    bool offered;    /* `list` is one */
    struct log_limit failures;
};

static void plugin_feed(struct plugin *p, enum register_event event);

static bool plugin_may_warn(struct plugin *p, const char *message)
{
    return log_limit_allows(&p->failures, loop_now_ms(p->s.loop), message);
}

static void plugin_warn(struct plugin *p, const char *message, const char *why)
{
    if (plugin_may_warn(p, message))
        log_warn(message, kv_str("resource", p->s.resource), kv_cstr("error", why));
}

/* The kubelet did what it should not do: the plugin registers again. */
static void plugin_warn_again(struct plugin *p, const char *message)
{
    if (plugin_may_warn(p, message))
        log_warn(message, kv_str("resource", p->s.resource));
}

/* ---- streams of the list ---- */

static void plugin_send(struct plugin *p, struct plugin_stream *s)
{
    s->behind = grpc_call_unsent(s->call) > 0;
    if (s->behind)
        timer_arm(p->s.loop, &p->behind, BEHIND_MS);
    else
        grpc_call_send(s->call, buf_str(&p->list));
}

static void plugin_send_behind(struct timer *t)
{
    struct plugin *p = CONTAINER_OF(t, struct plugin, behind);
    LIST_FOR_EACH (struct plugin_stream, s, &p->streams, link) {
        if (s->behind)
            plugin_send(p, s);
    }
}

static void plugin_drop_stream(struct plugin_stream *s)
{
    list_remove(&s->link);
    mem_free(s);
}

/* end: the calls end too. */
static void plugin_drop_streams(struct plugin *p, bool end)
{
    LIST_FOR_EACH (struct plugin_stream, s, &p->streams, link) {
        if (end)
            grpc_call_end(s->call);
        plugin_drop_stream(s);
    }
}

static void plugin_on_watch(void *ctx, struct grpc_call *call, struct str message)
{
    struct plugin *p = ctx;
    struct plugin_stream *s = mem_alloc(sizeof(*s));
    (void)message;
    if (s == NULL) {
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, STR("no memory for a stream"));
        return;
    }
    s->call = call;
    grpc_call_set_data(call, s);
    list_push_back(&p->streams, &s->link);
    plugin_send(p, s);
    plugin_feed(p, REGISTER_ON_STREAM);
}

static struct plugin_stream *plugin_stream_of(const struct plugin *p, const struct grpc_call *call)
{
    LIST_FOR_EACH (struct plugin_stream, s, &p->streams, link) {
        if (s->call == call)
            return s;
    }
    return NULL;
}

static void plugin_on_gone(void *ctx, struct grpc_call *call)
{
    struct plugin *p = ctx;
    if (!str_eq(str_of(grpc_call_path(call)), STR(DEVICE_PLUGIN_WATCH))) {
        p->s.ops->gone(p->s.ctx, call);
        return;
    }
    struct plugin_stream *s = plugin_stream_of(p, call);
    if (s == NULL)
        return; /* dropped with the socket */
    plugin_drop_stream(s);
    plugin_warn_again(p, "the kubelet has ended the stream of devices: registering again");
    plugin_feed(p, REGISTER_ON_STREAM_GONE);
}

/* ---- the other methods ---- */

static void plugin_on_options(void *ctx, struct grpc_call *call, struct str message)
{
    char bytes[16];
    struct buf out = BUF_ON(bytes);
    (void)ctx;
    (void)message;
    options_write(&out, plugin_options);
    grpc_call_reply(call, buf_str(&out));
}

static void plugin_refuse(struct grpc_call *call, enum errc code, const struct err *e)
{
    enum grpc_status status = code == ERR_NOMEM ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT;
    grpc_call_fail(call, status, str_of(e->text));
}

static void plugin_on_allocate(void *ctx, struct grpc_call *call, struct str message)
{
    struct plugin *p = ctx;
    struct arena a;
    struct err e = ERR_INIT;
    struct allocate_request q;
    arena_init(&a, ARENA_BYTES);
    enum errc code = allocate_request_read(message, &a, &q, &e);
    if (code == OK)
        p->s.ops->allocate(p->s.ctx, call, &q);
    else
        plugin_refuse(call, code, &e);
    arena_done(&a);
}

static void plugin_on_pre_start(void *ctx, struct grpc_call *call, struct str message)
{
    struct plugin *p = ctx;
    struct arena a;
    struct err e = ERR_INIT;
    struct allocate_container ids;
    arena_init(&a, ARENA_BYTES);
    enum errc code = pre_start_request_read(message, &a, &ids, &e);
    if (code == OK)
        p->s.ops->pre_start(p->s.ctx, call, &ids);
    else
        plugin_refuse(call, code, &e);
    arena_done(&a);
}

static void plugin_on_preferred(void *ctx, struct grpc_call *call, struct str message)
{
    struct plugin *p = ctx;
    struct arena a;
    struct err e = ERR_INIT;
    struct preferred_request q;
    arena_init(&a, ARENA_BYTES);
    enum errc code = preferred_request_read(message, &a, &q, &e);
    if (code == OK)
        p->s.ops->preferred(p->s.ctx, call, &q);
    else
        plugin_refuse(call, code, &e);
    arena_done(&a);
}

/* ---- the actions of register_step ---- */

static void plugin_cancel(struct plugin *p)
{
    timer_cancel(&p->timer);
    if (p->asking)
        grpc_request_cancel(&p->request);
    if (p->asking)
        grpc_request_done(&p->request);
    p->asking = false;
}

static void plugin_hang_up(struct plugin *p)
{
    plugin_drop_streams(p, false);
    if (p->server != NULL)
        grpc_server_hang_up(p->server);
    p->server = grpc_server_free(p->server);
}

static enum errc plugin_listen(struct plugin *p, struct err *e)
{
    static const struct grpc_method methods[] = {
        {DEVICE_PLUGIN_OPTIONS, plugin_on_options},
        {DEVICE_PLUGIN_WATCH, plugin_on_watch},
        {DEVICE_PLUGIN_PREFERRED, plugin_on_preferred},
        {DEVICE_PLUGIN_ALLOCATE, plugin_on_allocate},
        {DEVICE_PLUGIN_PRE_START, plugin_on_pre_start},
    };
    struct grpc_server_settings s = {.socket = p->socket,
                                     .methods = methods,
                                     .n_methods = COUNT_OF(methods),
                                     .ctx = p,
                                     .gone = plugin_on_gone};
    return grpc_server_new(p->s.loop, &s, &p->server, e);
}

static void plugin_serve(struct plugin *p)
{
    struct err e = ERR_INIT;
    enum errc code = OK;
    bool anew = false;
    plugin_hang_up(p);
    /* The watch first: what happens to the socket from then on is seen. */
    if (!kubelet_dir_is_open(&p->watch)) {
        anew = p->watched;
        code = kubelet_dir_open(&p->watch, p->s.loop, p->dir, &e);
    }
    p->watched = p->watched || code == OK;
    if (code == OK)
        code = plugin_listen(p, &e);
    if (code != OK) {
        plugin_warn(p, "cannot serve the device plugin", e.text);
        plugin_feed(p, REGISTER_ON_NOT_SERVED);
        return;
    }
    log_info("serving the device plugin", kv_cstr("socket", p->socket));
    plugin_feed(p, REGISTER_ON_SERVED);
    /* The folder is a new one: the kubelet may have created its socket before the watch. */
    if (anew)
        plugin_feed(p, REGISTER_ON_KUBELET);
}

static void plugin_on_answer(struct grpc_request *r)
{
    struct plugin *p = CONTAINER_OF(r, struct plugin, request);
    bool done = r->result == OK;
    p->asking = false;
    if (!done)
        plugin_warn(p, "cannot register with the kubelet", r->err.text);
    grpc_request_done(r);
    plugin_feed(p, done ? REGISTER_ON_DONE : REGISTER_ON_FAILED);
}

/* Fails on the loop's next turn: the answer to ASK may not come before ASK returns. */
static void plugin_on_timer(struct timer *t)
{
    struct plugin *p = CONTAINER_OF(t, struct plugin, timer);
    if (p->state.phase == REGISTER_AWAITING)
        plugin_warn_again(p, "the kubelet does not ask for the devices: registering again");
    bool not_sent = p->state.phase == REGISTER_ASKING;
    plugin_feed(p, not_sent ? REGISTER_ON_FAILED : REGISTER_ON_TIMER);
}

/* A client for each Register: an old connection leads to a kubelet that may be gone. */
static void plugin_ask(struct plugin *p)
{
    struct err e = ERR_INIT;
    struct buf message;
    p->client = grpc_client_free(p->client);
    enum errc code = grpc_client_new(p->s.loop, p->kubelet, &p->client, &e);
    if (code != OK) {
        plugin_warn(p, "cannot register with the kubelet", e.text);
        timer_arm(p->s.loop, &p->timer, 0);
        return;
    }
    buf_init(&message, SMALL_BYTES);
    register_request_write(&message, &(struct register_request){.endpoint = STR(PLUGIN_SOCKET),
                                                                .resource = p->s.resource,
                                                                .options = plugin_options});
    p->request = (struct grpc_request){.path = DEVICE_PLUGIN_REGISTER,
                                       .message = buf_str(&message),
                                       .timeout_ms = REGISTER_TIMEOUT_MS,
                                       .on_done = plugin_on_answer};
    p->asking = !buf_failed(&message);
    if (p->asking)
        grpc_request_start(p->client, &p->request);
    else
        timer_arm(p->s.loop, &p->timer, 0);
    buf_done(&message);
}

static void plugin_feed(struct plugin *p, enum register_event event)
{
    struct register_action a = register_step(&p->state, event);
    if (a.type == REGISTER_STAY)
        return;
    plugin_cancel(p);
    if (a.type == REGISTER_CLOSE)
        plugin_drop_streams(p, true);
    if (a.type == REGISTER_SERVE)
        plugin_serve(p);
    else if (a.type == REGISTER_ASK)
        plugin_ask(p);
    else
        timer_arm(p->s.loop, &p->timer, a.delay_ms);
    if (a.type != REGISTER_REPORT)
        return;
    log_info("registered with the kubelet", kv_str("resource", p->s.resource),
             kv_bool("restarted", a.restarted));
    p->s.ops->registered(p->s.ctx, a.restarted);
}

static void plugin_on_change(struct kubelet_dir *d, bool kubelet, bool gone)
{
    struct plugin *p = CONTAINER_OF(d, struct plugin, watch);
    if (gone || (p->server != NULL && !grpc_server_is_reachable(p->server)))
        plugin_feed(p, REGISTER_ON_LOST);
    if (kubelet)
        plugin_feed(p, REGISTER_ON_KUBELET);
}

/* ---- the owner ---- */

enum errc plugin_new(const struct plugin_settings *s, struct plugin **ret, struct err *reterr)
{
    struct plugin *p = mem_alloc(sizeof(*p));
    if (p == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the device plugin");
    p->s = *s;
    p->s.dir = p->dir;
    list_init(&p->streams);
    buf_init(&p->list, LIMIT_DEVICE_LIST);
    p->timer.fire = plugin_on_timer;
    p->behind.fire = plugin_send_behind;
    p->watch.changed = plugin_on_change;
    int n = snprintf(p->dir, sizeof(p->dir), "%s", s->dir);
    (void)snprintf(p->socket, sizeof(p->socket), "%s/" PLUGIN_SOCKET, p->dir);
    (void)snprintf(p->kubelet, sizeof(p->kubelet), "%s/" KUBELET_DIR_SOCKET, p->dir);
    if (n < 0 || (size_t)n > LIMIT_KUBELET_DIR) {
        (void)plugin_free(p);
        return err_set(reterr, ERR_RANGE, "the path of a socket has at most %d bytes: \"%s/%s\"",
                       LIMIT_KUBELET_DIR + (int)sizeof(PLUGIN_SOCKET), s->dir, PLUGIN_SOCKET);
    }
    *ret = p;
    return OK;
}

void plugin_offer(struct plugin *p, const struct card_offer *cards, size_t n)
{
    struct err e = ERR_INIT;
    struct buf list;
    buf_init(&list, LIMIT_DEVICE_LIST);
    enum errc code = devices_check(cards, n, &e);
    if (code == OK)
        devices_list(&list, cards, n);
    if (buf_failed(&list))
        code = err_set(&e, buf_fault(&list), "no memory for the list of devices");
    if (code != OK)
        log_error("cannot offer the cards to the kubelet", kv_str("resource", p->s.resource),
                  kv_cstr("error", e.text));
    if (code != OK || (p->offered && str_eq(buf_str(&list), buf_str(&p->list)))) {
        buf_done(&list);
        return;
    }
    buf_done(&p->list);
    p->list = list;
    LIST_FOR_EACH (struct plugin_stream, s, &p->streams, link)
        plugin_send(p, s);
    if (!p->offered)
        plugin_feed(p, REGISTER_ON_START);
    p->offered = true;
}

bool plugin_is_registered(const struct plugin *p)
{
    return p->state.phase == REGISTER_DONE;
}

struct plugin *plugin_free(struct plugin *p)
{
    if (p == NULL)
        return NULL;
    plugin_cancel(p);
    timer_cancel(&p->behind);
    kubelet_dir_close(&p->watch);
    plugin_hang_up(p);
    p->client = grpc_client_free(p->client);
    buf_done(&p->list);
    mem_free(p);
    return NULL;
}
