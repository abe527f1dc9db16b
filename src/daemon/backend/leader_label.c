/*
 * Performs the actions of leader_label_step: one call at a time and one timer. Another timer asks
 * twice a second whether this replica leads, because the clock alone can end that.
 */
#include "daemon/backend/leader_label.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/backend/leader_label_step.h"
#include "daemon/backend/proof.h"
#include "json/jcut.h"
#include "json/jread.h"
#include "json/jwrite.h"

#define LOOK_MS         500
#define CALL_TIMEOUT_MS 5000
#define NAME_MAX_BYTES  ((size_t)4 * KIB) /* of each name */
#define PATH_MAX_BYTES  ((size_t)32 * KIB)
/* Of a list: one pod has the label, or two while the leader changes. */
#define PODS_MAX "20"

/* What is read of a pod. */
struct labelled_pod {
    struct str name;
    struct str uid;
    struct str value; /* of the label; absent: the pod has none */
};

struct leader_label {
    struct loop *loop;
    struct kube_api *api;
    bool (*leads)(void *ctx);
    void *ctx;
    struct leader_label_state state;
    struct timer again; /* the wait that the step machine ordered */
    struct timer look;  /* see LOOK_MS */
    struct deferred look_now;
    struct deferred unsent; /* reports a call that was not sent: no memory for it */
    struct kube_call call;
    struct jcut cut;                  /* of a list */
    struct leader_label_input listed; /* what it has so far */
    struct err unread;                /* why an object of it can't be read; OK: each can */
    struct arena arena;               /* of the answer, or of one object of a list */
    struct buf path;
    struct buf body;
    struct buf namespace;
    struct buf pod;
    struct buf uid;
    struct buf lease;
    struct buf other_pod; /* which the last list found */
    struct buf other_uid;
    bool logged;     /* the log has a failure, and no round has succeeded since */
    struct err last; /* why the last call failed; OK: it did not */
};

static void leader_label_perform(struct leader_label *l, struct leader_label_action a);

/* ---- what the API server answers ---- */

static void leader_label_read_metadata(struct jread *r, struct labelled_pod *v)
{
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("name")))
            v->name = jread_str(r);
        else if (str_eq(key, STR("uid")))
            v->uid = jread_str(r);
        else if (str_eq(key, STR("labels")))
            v->value = jread_member(r, STR(LEADER_LABEL_KEY));
        else
            jread_skip(r);
    }
}

static struct labelled_pod leader_label_read_pod(struct jread *r)
{
    struct labelled_pod v = {.name = STR_NULL, .uid = STR_NULL, .value = STR_NULL};
    struct str key;
    jread_object (r, key) {
        if (str_eq(key, STR("metadata")))
            leader_label_read_metadata(r, &v);
        else
            jread_skip(r);
    }
    return v;
}

static void leader_label_sort_in(struct leader_label *l, const struct labelled_pod *v,
                                 struct leader_label_input *in)
{
    if (str_eq(v->uid, buf_str(&l->uid))) {
        in->own = true;
    } else if (!in->other && v->name.n > 0 && v->uid.n > 0) {
        in->other = true;
        buf_put(&l->other_pod, v->name);
        buf_put(&l->other_uid, v->uid);
    }
}

/* One that can't be read must not hide the others. */
static enum errc leader_label_on_piece(void *ctx, enum jcut_piece kind, struct str piece,
                                       struct err *reterr)
{
    struct leader_label *l = ctx;
    struct jread r;
    (void)reterr;
    if (kind != JCUT_ITEM)
        return OK;
    arena_reset(&l->arena);
    jread_init(&r, piece, &l->arena);
    struct labelled_pod v = leader_label_read_pod(&r);
    if (jread_finish(&r, &l->unread) == OK)
        leader_label_sort_in(l, &v, &l->listed);
    else
        (void)err_wrap(&l->unread, "pod %.*s", STR_ARG(v.name));
    return OK;
}

static enum errc leader_label_on_chunk(struct http_call *http, struct str chunk, struct err *reterr)
{
    return jcut_push(&CONTAINER_OF(http, struct leader_label, call.http)->cut, chunk, reterr);
}

/* Reads the end of the list. That one pod can't be read counts as a failure only when no other pod
 * has the label: the others lose it first. */
static enum errc leader_label_read_list(struct leader_label *l, struct leader_label_input *in,
                                        struct err *reterr)
{
    enum errc code = jcut_finish(&l->cut, reterr);
    if (code == OK && (buf_failed(&l->other_pod) || buf_failed(&l->other_uid)))
        code = err_set(reterr, ERR_NOMEM, "no memory for a list of pods");
    if (code == OK && !l->listed.other && l->unread.code != OK) {
        *reterr = l->unread;
        code = l->unread.code;
    }
    if (code == OK)
        *in = l->listed;
    return code;
}

/* The API server must have stored the label: pods/status might not take labels in a later one. */
static enum errc leader_label_read_added(struct leader_label *l, struct err *reterr)
{
    struct jread r;
    jread_init(&r, buf_str(&l->call.http.reply), &l->arena);
    struct labelled_pod v = leader_label_read_pod(&r);
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && !str_eq(v.value, buf_str(&l->lease)))
        code = err_set(reterr, ERR_SYNTAX, "the API server answers with a pod without the label");
    return code;
}

/* Puts the missing right before the API server's message, whose end may be cut off. */
static void leader_label_name_right(const struct leader_label *l, struct err *err)
{
    bool lists = l->state.call == LEADER_LABEL_LIST;
    (void)err_wrap(err, "no right to %s in namespace \"%.*s\"",
                   lists ? "list pods" : "patch pods/status", STR_ARG(buf_str(&l->namespace)));
}

static bool leader_label_says(struct str message, const char *part)
{
    return message.n > 0 && memmem(message.p, message.n, part, strlen(part)) != NULL;
}

/* Whether there is no pod of this name and UID. The API server refuses another UID with 409 or 422.
 */
static bool leader_label_is_gone(const struct kube_status *s)
{
    bool replaced = (s->code == 409 || s->code == 422) &&
                    (leader_label_says(s->message, "uid") || leader_label_says(s->message, "UID"));
    return replaced || proof_status_no_pod(s);
}

static enum leader_label_event leader_label_failure(struct leader_label *l, struct err *err)
{
    const struct http_call *h = &l->call.http;
    struct kube_status s;
    if (h->outcome != HTTP_ANSWERED)
        return LEADER_LABEL_ON_FAILED;
    if (h->status == 401)
        kube_api_refresh(l->api);
    if (!proof_refused(h, &l->arena, &s))
        return LEADER_LABEL_ON_FAILED;
    if (s.code == 403 && str_eq(s.reason, STR("Forbidden")))
        leader_label_name_right(l, err);
    return leader_label_is_gone(&s) ? LEADER_LABEL_ON_GONE : LEADER_LABEL_ON_FAILED;
}

/* ---- the log ---- */

static void leader_label_tell_done(struct leader_label *l, enum leader_label_action_type call,
                                   bool was_present)
{
    if (call == LEADER_LABEL_ADD)
        log_info("this pod has the leader's label", kv_str("pod", buf_str(&l->pod)));
    else if (call == LEADER_LABEL_REMOVE && was_present)
        log_info("this pod has the leader's label no more", kv_str("pod", buf_str(&l->pod)));
    else if (call == LEADER_LABEL_REMOVE_OTHER)
        log_info("the leader's label is removed from another pod",
                 kv_str("pod", buf_str(&l->other_pod)));
}

static void leader_label_tell_failure(struct leader_label *l)
{
    if (l->logged)
        log_debug("the leader's label can't be written", kv_cstr("error", l->last.text));
    else
        log_warn("the leader's label can't be written", kv_cstr("error", l->last.text));
    l->logged = true;
}

static void leader_label_tell_end(struct leader_label *l)
{
    if (l->logged)
        log_info("the leader's label can be written again");
    l->logged = false;
}

/* ---- calls ---- */

static void leader_label_react(struct leader_label *l, const struct leader_label_input *in)
{
    enum leader_label_action_type call = l->state.call;
    bool was_present = l->state.own == LEADER_LABEL_PRESENT;
    struct leader_label_action a = leader_label_step(&l->state, in, loop_random(l->loop));
    bool removed = call == LEADER_LABEL_REMOVE && l->state.own == LEADER_LABEL_ABSENT;
    if (in->event == LEADER_LABEL_ON_DONE || removed)
        leader_label_tell_done(l, call, was_present);
    else if (in->event == LEADER_LABEL_ON_FAILED ||
             (in->event == LEADER_LABEL_ON_GONE && call == LEADER_LABEL_ADD))
        leader_label_tell_failure(l);
    if (removed || (call == LEADER_LABEL_LIST && in->own && !in->other))
        leader_label_tell_end(l);
    leader_label_perform(l, a);
}

static void leader_label_on_done(struct http_call *http)
{
    struct leader_label *l = CONTAINER_OF(http, struct leader_label, call.http);
    struct leader_label_input in = {.event = LEADER_LABEL_ON_DONE};
    arena_reset(&l->arena);
    l->last = (struct err)ERR_INIT;
    enum errc code = kube_call_result(&l->call, &l->last);
    if (code != OK)
        in.event = leader_label_failure(l, &l->last);
    else if (l->state.call == LEADER_LABEL_LIST)
        code = leader_label_read_list(l, &in, &l->last);
    else if (l->state.call == LEADER_LABEL_ADD)
        code = leader_label_read_added(l, &l->last);
    if (code != OK && in.event == LEADER_LABEL_ON_DONE)
        in.event = LEADER_LABEL_ON_FAILED;
    kube_call_done(&l->call);
    leader_label_react(l, &in);
}

static void leader_label_on_unsent(struct deferred *d)
{
    struct leader_label *l = CONTAINER_OF(d, struct leader_label, unsent);
    const struct leader_label_input in = {.event = LEADER_LABEL_ON_FAILED};
    (void)err_set(&l->last, ERR_NOMEM, "no memory to write the leader's label");
    leader_label_react(l, &in);
}

static void leader_label_start(struct leader_label *l, const char *method)
{
    bool patches = l->body.n > 0;
    l->call.http = (struct http_call){
        .timeout_ms = CALL_TIMEOUT_MS,
        .on_chunk = l->state.call == LEADER_LABEL_LIST ? leader_label_on_chunk : NULL,
        .body = patches ? buf_str(&l->body) : STR_NULL,
        .content_type = patches ? STR("application/merge-patch+json") : STR_NULL,
        .on_done = leader_label_on_done,
    };
    if (buf_failed(&l->body) || buf_failed(&l->path))
        loop_defer(l->loop, &l->unsent);
    else
        kube_call_start(l->api, &l->call, method, buf_str(&l->path));
}

static void leader_label_put_pods(struct leader_label *l)
{
    buf_clear(&l->body, SIZE_MAX);
    buf_clear(&l->path, SIZE_MAX);
    buf_put(&l->path, STR("/api/v1/namespaces/"));
    kube_put_segment(&l->path, buf_str(&l->namespace));
    buf_put(&l->path, STR("/pods"));
}

static void leader_label_list(struct leader_label *l)
{
    leader_label_put_pods(l);
    buf_put(&l->path, STR("?labelSelector="));
    kube_put_escaped(&l->path, STR(LEADER_LABEL_KEY "="));
    kube_put_escaped(&l->path, buf_str(&l->lease));
    buf_put(&l->path, STR("&limit=" PODS_MAX));
    jcut_reset(&l->cut);
    l->listed = (struct leader_label_input){.event = LEADER_LABEL_ON_DONE};
    l->unread = (struct err)ERR_INIT;
    buf_clear(&l->other_pod, SIZE_MAX);
    buf_clear(&l->other_uid, SIZE_MAX);
    leader_label_start(l, "GET");
}

/* `value` absent: removes the label. */
static void leader_label_patch(struct leader_label *l, struct str pod, struct str uid,
                               struct str value)
{
    struct jwrite w;
    leader_label_put_pods(l);
    buf_putc(&l->path, '/');
    kube_put_segment(&l->path, pod);
    buf_put(&l->path, STR("/status"));
    jwrite_init(&w, &l->body);
    jwrite_object_begin(&w);
    jwrite_object_at(&w, STR("metadata"));
    jwrite_str_at(&w, STR("uid"), uid);
    jwrite_object_at(&w, STR("labels"));
    jwrite_str_at(&w, STR(LEADER_LABEL_KEY), value);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    jwrite_object_end(&w);
    leader_label_start(l, "PATCH");
}

static void leader_label_perform(struct leader_label *l, struct leader_label_action a)
{
    timer_cancel(&l->again);
    switch (a.type) {
    case LEADER_LABEL_REST:
        break;
    case LEADER_LABEL_WAIT:
        timer_arm(l->loop, &l->again, a.delay_ms);
        break;
    case LEADER_LABEL_ADD:
        leader_label_patch(l, buf_str(&l->pod), buf_str(&l->uid), buf_str(&l->lease));
        break;
    case LEADER_LABEL_REMOVE:
        leader_label_patch(l, buf_str(&l->pod), buf_str(&l->uid), STR_NULL);
        break;
    case LEADER_LABEL_LIST:
        leader_label_list(l);
        break;
    case LEADER_LABEL_REMOVE_OTHER:
        leader_label_patch(l, buf_str(&l->other_pod), buf_str(&l->other_uid), STR_NULL);
        break;
    }
}

static void leader_label_on_again(struct timer *t)
{
    struct leader_label *l = CONTAINER_OF(t, struct leader_label, again);
    const struct leader_label_input in = {.event = LEADER_LABEL_ON_TIMER};
    leader_label_react(l, &in);
}

/* ---- whether this replica leads ---- */

static void leader_label_see(struct leader_label *l)
{
    bool leads = l->leads(l->ctx);
    timer_arm(l->loop, &l->look, LOOK_MS);
    if (leads == l->state.wanted)
        return;
    const struct leader_label_input in = {.event = LEADER_LABEL_ON_WISH, .wanted = leads};
    l->last = (struct err)ERR_INIT;
    leader_label_react(l, &in);
}

static void leader_label_on_look(struct timer *t)
{
    leader_label_see(CONTAINER_OF(t, struct leader_label, look));
}

static void leader_label_on_look_now(struct deferred *d)
{
    leader_label_see(CONTAINER_OF(d, struct leader_label, look_now));
}

void leader_label_look(struct leader_label *l)
{
    if (l != NULL)
        loop_defer(l->loop, &l->look_now);
}

struct str leader_label_trouble(const struct leader_label *l)
{
    if (l == NULL || !l->state.wanted || l->state.own == LEADER_LABEL_PRESENT)
        return STR("");
    return str_of(l->last.text);
}

/* ---- life ---- */

static bool leader_label_copy(struct buf *ret, struct str s)
{
    buf_init(ret, NAME_MAX_BYTES);
    buf_put(ret, s);
    return !buf_failed(ret);
}

enum errc leader_label_new(const struct leader_label_settings *s, struct leader_label **ret,
                           struct err *reterr)
{
    struct leader_label *l = mem_alloc(sizeof(*l));
    if (l == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the leader's label");
    *l = (struct leader_label){.loop = s->loop,
                               .api = s->api,
                               .leads = s->leads,
                               .ctx = s->ctx,
                               .again = {.fire = leader_label_on_again},
                               .look = {.fire = leader_label_on_look},
                               .look_now = {.run = leader_label_on_look_now},
                               .unsent = {.run = leader_label_on_unsent},
                               .last = ERR_INIT};
    arena_init(&l->arena, LIMIT_REPLY_BYTES);
    jcut_init(&l->cut, JCUT_LIST, LIMIT_OBJECT_BYTES, leader_label_on_piece, l);
    buf_init(&l->path, PATH_MAX_BYTES);
    buf_init(&l->body, PATH_MAX_BYTES);
    buf_init(&l->other_pod, NAME_MAX_BYTES);
    buf_init(&l->other_uid, NAME_MAX_BYTES);
    bool copied = leader_label_copy(&l->namespace, s->namespace);
    copied = leader_label_copy(&l->pod, s->pod) && copied;
    copied = leader_label_copy(&l->uid, s->uid) && copied;
    copied = leader_label_copy(&l->lease, s->lease) && copied;
    if (!copied) {
        (void)leader_label_free(l);
        return err_set(reterr, ERR_NOMEM, "no memory for the leader's label");
    }
    timer_arm(l->loop, &l->look, 0);
    timer_arm(l->loop, &l->again, 0);
    *ret = l;
    return OK;
}

struct leader_label *leader_label_free(struct leader_label *l)
{
    if (l == NULL)
        return NULL;
    timer_cancel(&l->again);
    timer_cancel(&l->look);
    deferred_cancel(&l->look_now);
    deferred_cancel(&l->unsent);
    kube_call_cancel(&l->call);
    kube_call_done(&l->call);
    jcut_done(&l->cut);
    arena_done(&l->arena);
    buf_done(&l->path);
    buf_done(&l->body);
    buf_done(&l->namespace);
    buf_done(&l->pod);
    buf_done(&l->uid);
    buf_done(&l->lease);
    buf_done(&l->other_pod);
    buf_done(&l->other_uid);
    mem_free(l);
    return NULL;
}
