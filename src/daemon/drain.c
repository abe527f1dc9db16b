/* Ends the process in order: requests, Bindings in doubt, the Lease, events. */
#include "daemon/drain.h"

#include "base/log.h"
#include "daemon/backend/kube_backend.h"
#include "daemon/evict/evictor.h"
#include "daemon/query/query.h"
#include "daemon/service.h"
#include "kube/events.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define DOUBT_CHECK_MS 100

/* Time beyond shutdown-grace to release the Lease and to send events. */
#define STOP_SLACK_MS 5000

static void drain_events_sent(void *ctx)
{
    struct drain *d = ctx;
    loop_stop(d->s.service->loop);
}

/* The next leader can begin now; the events need not delay it. */
static void drain_resigned(void *ctx)
{
    struct drain *d = ctx;
    events_drain(d->s.service->events, drain_events_sent, d);
}

/*
 * Keeps the Lease while a Binding is in doubt: only this process can resolve it. Releases the Lease
 * when none is left, so that the next leader need not wait for its expiry.
 */
static void drain_stop_when_certain(struct timer *t)
{
    struct drain *d = CONTAINER_OF(t, struct drain, doubt);
    assert(d->s.service->draining);
    if (bind_active(d->s.service->binder) > 0)
        timer_arm(d->s.service->loop, t, DOUBT_CHECK_MS);
    else if (d->s.parts->kube != NULL)
        kube_backend_resign(d->s.parts->kube, drain_resigned, d);
    else
        loop_stop(d->s.service->loop);
}

static void drain_drained(void *ctx)
{
    struct drain *d = ctx;
    drain_stop_when_certain(&d->doubt);
}

static void drain_grace_over(struct timer *t)
{
    struct drain *d = CONTAINER_OF(t, struct drain, grace);
    log_warn("shutdown-grace is over: requests or binds are unfinished",
             kv_uint("requests", http_server_active(d->s.parts->server)),
             kv_uint("binds", bind_active(d->s.service->binder)));
    loop_stop(d->s.service->loop);
}

/*
 * Asks systemd for more time, so that it does not take a long grace for a hang and kill the
 * process.
 */
static void drain_tell_stopping(struct drain *d)
{
    char text[sizeof("STOPPING=1\nEXTEND_TIMEOUT_USEC=") + 20];
    int n = snprintf(
        text, sizeof(text), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
        (d->s.config->shutdown_delay_ms + d->s.config->shutdown_grace_ms + STOP_SLACK_MS) * 1000);
    notify_send(d->s.notify, (struct str){text, (size_t)n});
}

static void drain_begin_drain(struct timer *t)
{
    struct drain *d = CONTAINER_OF(t, struct drain, delay);
    assert(d->s.service->draining && !timer_armed(&d->grace));
    query_end(d->s.service); /* loses nothing: a client can ask again */
    timer_arm(d->s.service->loop, &d->grace, d->s.config->shutdown_grace_ms);
    http_server_drain(d->s.parts->server, drain_drained, d);
}

/*
 * On the first signal: serves new requests for shutdown-delay, because a Service may still route
 * some to this pod, and then lets open requests end. On the second: stops the loop.
 */
static void drain_on_signal(void *ctx, int signo)
{
    struct drain *d = ctx;
    log_info("shutting down", kv_cstr("signal", strsignal(signo)),
             kv_uint("requests", http_server_active(d->s.parts->server)),
             kv_uint("delay_ms", d->s.service->draining ? 0 : d->s.config->shutdown_delay_ms));
    if (d->s.service->draining) {
        loop_stop(d->s.service->loop);
        return;
    }
    d->s.service->draining = true;
    leader_label_look(d->s.service->label);
    drain_tell_stopping(d);
    reload_stop(d->s.reload);
    d->s.service->evictor = evictor_free(d->s.service->evictor);
    if (d->s.config->shutdown_delay_ms > 0)
        timer_arm(d->s.service->loop, &d->delay, d->s.config->shutdown_delay_ms);
    else
        drain_begin_drain(&d->delay);
}

enum errc drain_open(struct drain *d, const struct drain_settings *s, struct err *reterr)
{
    struct loop *l = s->service->loop;
    *d = (struct drain){.s = *s,
                        .delay = {.fire = drain_begin_drain},
                        .grace = {.fire = drain_grace_over},
                        .doubt = {.fire = drain_stop_when_certain}};
    enum errc code = loop_signal(l, SIGTERM, drain_on_signal, d, reterr);
    return code == OK ? loop_signal(l, SIGINT, drain_on_signal, d, reterr) : code;
}

void drain_close(struct drain *d)
{
    timer_cancel(&d->delay);
    timer_cancel(&d->grace);
    timer_cancel(&d->doubt);
}
