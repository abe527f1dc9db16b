/* One call at a time; its body is written when it starts, so each has the newest figures. */
#include "node/usage/usage_post.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "kube/write_step.h"
#include "objects/limit.h"
#include "objects/stamp.h"
#include "json/jwrite.h"

#define CALL_TIMEOUT_MS 10000
#define PATH_MAX_BYTES  (4 * KIB)
#define NS_PER_SECOND   UINT64_C(1000000000)

struct usage_post {
    struct usage_post_settings s;
    struct usage_post_counts counts;
    struct write_state state;
    struct kube_call call;
    struct arena arena; /* for the view */
    struct buf name;    /* of the ConfigMap */
    struct buf path;
    struct buf text;
    struct buf body;
    struct timer again;
    struct deferred unsent; /* no memory for the request */
    bool urged;             /* usage_post_urge was called since the last write */
    bool begun;             /* a write was begun, at began_ms */
    uint64_t began_ms;
    bool logged; /* the log has a failure, and no write has succeeded since */
};

static void usage_post_perform(struct usage_post *p, struct write_action a);

static void usage_post_react(struct usage_post *p, enum write_event event)
{
    const struct write_input in = {
        .event = event, .now_ms = loop_now_ms(p->s.loop), .random = loop_random(p->s.loop)};
    usage_post_perform(p, write_step(&p->state, &in));
}

/* ---- the end of a call ---- */

static void usage_post_fail(struct usage_post *p, const char *why)
{
    p->counts.failures++;
    if (p->logged)
        log_debug("what pods use can't be written", kv_cstr("error", why));
    else
        log_warn("what pods use can't be written", kv_cstr("error", why));
    p->logged = true;
}

static enum write_event usage_post_failure(struct usage_post *p, const char *why)
{
    const struct http_call *h = &p->call.http;
    bool answered = h->outcome == HTTP_ANSWERED;
    if (answered && h->status == 401)
        kube_api_refresh(p->s.api);
    if (answered && h->status == 404 && p->state.call == WRITE_PATCH)
        return WRITE_ON_ABSENT;
    if (answered && h->status == 409 && p->state.call == WRITE_CREATE)
        return WRITE_ON_EXISTS;
    usage_post_fail(p, why);
    return WRITE_ON_FAILED;
}

static void usage_post_on_done(struct http_call *http)
{
    struct usage_post *p = CONTAINER_OF(http, struct usage_post, call.http);
    struct err e = ERR_INIT;
    enum write_event event = WRITE_ON_DONE;
    if (kube_call_result(&p->call, &e) != OK)
        event = usage_post_failure(p, e.text);
    kube_call_done(&p->call);
    if (event == WRITE_ON_DONE) {
        p->counts.written++;
        if (p->logged)
            log_info("what pods use can be written again");
        p->logged = false;
    }
    usage_post_react(p, event);
}

static void usage_post_on_unsent(struct deferred *d)
{
    struct usage_post *p = CONTAINER_OF(d, struct usage_post, unsent);
    usage_post_fail(p, "no memory for the request");
    usage_post_react(p, WRITE_ON_FAILED);
}

static void usage_post_on_again(struct timer *t)
{
    usage_post_react(CONTAINER_OF(t, struct usage_post, again), WRITE_ON_TIMER);
}

/* ---- the start of a call ---- */

static void usage_post_put_body(struct usage_post *p, bool create)
{
    struct jwrite w;
    jwrite_init(&w, &p->body);
    jwrite_object_begin(&w);
    if (create) {
        jwrite_str_at(&w, STR("apiVersion"), STR("v1"));
        jwrite_str_at(&w, STR("kind"), STR("ConfigMap"));
        jwrite_object_at(&w, STR("metadata"));
        jwrite_str_at(&w, STR("name"), buf_str(&p->name));
        jwrite_str_at(&w, STR("namespace"), GPUSHARE_UNHEALTHY_NAMESPACE);
        jwrite_object_end(&w);
    }
    jwrite_object_at(&w, STR("data"));
    jwrite_str_at(&w, STR(USAGE_KEY), buf_str(&p->text));
    jwrite_object_end(&w);
    jwrite_object_end(&w);
}

static bool usage_post_put(struct usage_post *p, bool create)
{
    char stamp[STAMP_BYTES];
    struct usage_view view;
    arena_reset(&p->arena);
    buf_clear(&p->text, LIMIT_KEEP_BYTES);
    buf_clear(&p->body, LIMIT_KEEP_BYTES);
    buf_clear(&p->path, SIZE_MAX);
    if (usage_tally_view(p->s.tally, &p->arena, &view) != OK)
        return false;
    if (p->s.compared != NULL)
        p->s.compared(p->s.ctx, &view);
    view.seen = stamp_print((uint32_t)(loop_wall_ns(p->s.loop) / NS_PER_SECOND), stamp);
    usage_write(&p->text, &view);
    usage_post_put_body(p, create);
    buf_put(&p->path, STR("/api/v1/namespaces/"));
    buf_put(&p->path, GPUSHARE_UNHEALTHY_NAMESPACE);
    buf_put(&p->path, STR("/configmaps"));
    if (!create) {
        buf_putc(&p->path, '/');
        kube_put_segment(&p->path, buf_str(&p->name));
    }
    return !buf_failed(&p->text) && !buf_failed(&p->body) && !buf_failed(&p->path);
}

static void usage_post_send(struct usage_post *p, bool create)
{
    timer_cancel(&p->again);
    p->begun = true;
    p->began_ms = loop_now_ms(p->s.loop);
    if (!usage_post_put(p, create)) {
        loop_defer(p->s.loop, &p->unsent);
        return;
    }
    usage_tally_written(p->s.tally);
    p->urged = false;
    p->call.http = (struct http_call){
        .timeout_ms = CALL_TIMEOUT_MS,
        .body = buf_str(&p->body),
        .content_type = create ? STR_NULL : STR("application/merge-patch+json"),
        .on_done = usage_post_on_done,
    };
    kube_call_start(p->s.api, &p->call, create ? "POST" : "PATCH", buf_str(&p->path));
}

static void usage_post_perform(struct usage_post *p, struct write_action a)
{
    switch (a.what) {
    case WRITE_REST:
        break;
    case WRITE_WAIT:
        timer_arm(p->s.loop, &p->again, a.delay_ms);
        break;
    case WRITE_PATCH:
    case WRITE_CREATE:
        usage_post_send(p, a.what == WRITE_CREATE);
        break;
    }
}

/* While a call is under way or about to be repeated, the next one has the newest figures anyway. */
void usage_post_weigh(struct usage_post *p)
{
    uint64_t now = loop_now_ms(p->s.loop);
    if (p->state.call != WRITE_REST || p->state.due)
        return;
    if (p->begun && now - p->began_ms < p->s.write_ms)
        return;
    /* The next round would be too late. */
    bool silent = !p->begun || now - p->began_ms + p->s.round_ms > USAGE_POST_ALIVE_MS;
    if (silent || p->urged || usage_tally_changed(p->s.tally))
        usage_post_react(p, WRITE_ON_WISH);
}

void usage_post_urge(struct usage_post *p)
{
    p->urged = true;
}

struct usage_post_counts usage_post_counts(const struct usage_post *p)
{
    return p->counts;
}

/* ---- life ---- */

enum errc usage_post_new(const struct usage_post_settings *s, struct usage_post **ret,
                         struct err *reterr)
{
    struct usage_post *p = mem_alloc(sizeof(*p));
    if (p == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory to write what pods use");
    *p = (struct usage_post){.s = *s,
                             .state = {.creates = true},
                             .again = {.fire = usage_post_on_again},
                             .unsent = {.run = usage_post_on_unsent}};
    arena_init(&p->arena, 1 * MIB);
    buf_init(&p->name, PATH_MAX_BYTES);
    buf_init(&p->path, PATH_MAX_BYTES);
    buf_init(&p->text, 2 * LIMIT_USAGE_TEXT);
    buf_init(&p->body, 4 * LIMIT_USAGE_TEXT); /* quotes are escaped */
    buf_put(&p->name, STR(USAGE_CONFIGMAP_PREFIX));
    buf_put(&p->name, s->node);
    if (buf_failed(&p->name)) {
        enum errc code = buf_fault(&p->name);
        (void)usage_post_free(p);
        return err_set(reterr, code, "no memory to write what pods use");
    }
    *ret = p;
    return OK;
}

struct usage_post *usage_post_free(struct usage_post *p)
{
    if (p == NULL)
        return NULL;
    timer_cancel(&p->again);
    deferred_cancel(&p->unsent);
    kube_call_cancel(&p->call);
    kube_call_done(&p->call);
    arena_done(&p->arena);
    buf_done(&p->name);
    buf_done(&p->path);
    buf_done(&p->text);
    buf_done(&p->body);
    mem_free(p);
    return NULL;
}
