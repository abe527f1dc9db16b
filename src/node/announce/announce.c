/*
 * Two lanes, the ConfigMap and the node, each with its own call, timer and step machine: a node
 * that can't be written must not delay the ConfigMap. The bodies are written when a call starts, so
 * each call has the newest wish.
 */
#include "node/announce/announce.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/dialect/gpushare.h"
#include "gpu/limit.h"
#include "kube/write_step.h"

#define CALL_TIMEOUT_MS  10000
#define NEEDS_RESET      0x10U            /* beside a level */
#define MAP_CHECK_MS     UINT64_C(300000) /* nothing watches the ConfigMap */
#define TABLE_MAX        (1 * MIB)
#define PATH_MAX_BYTES   (4 * KIB)
#define EVENT_TEXT_BYTES 512

struct lane {
    struct announce *owner;
    const char *what; /* for the log */
    struct write_state state;
    struct kube_call call;
    struct buf body;
    struct timer again;
    struct deferred unsent; /* no memory for the request */
    struct err last;        /* why the last call failed; OK: it did not */
    bool logged;            /* the log has a failure, and no call has succeeded since */
    bool done;              /* a call has succeeded since the start */
};

struct announce {
    struct announce_settings s;
    struct announce_counts counts;
    struct lane map;
    struct lane node;
    struct arena arena; /* for an answer */
    struct buf name;    /* of the node */
    struct buf path;    /* for the start of a call */

    bool wished;        /* announce_cards was called */
    struct buf cards;   /* the wish: the annotation */
    struct buf ill;     /* the wish: data.gpus */
    struct buf scratch; /* for the next wish */
    size_t n_cards;     /* in the annotation */
    enum isolation isolation;
    bool binds_late;

    struct buf sent;   /* data.gpus of the call under way */
    struct buf listed; /* data.gpus as last confirmed */
    bool listed_known;
    struct timer late;
    bool overdue; /* the ConfigMap could not be written in time */

    uint64_t written; /* version of the node in the answer to the last PATCH */
    bool differs;     /* the newest node of the watch is not as it was announced */
    uint64_t seen;    /* its version */

    /* Of the last wish, for events: 1 + enum gpu_level, and NEEDS_RESET; 0: none. */
    uint8_t health[LIMIT_GPU_CARDS];
};

static void announce_perform(struct lane *l, struct write_action a);

/* ---- what the kubelet may get ---- */

static bool announce_in_list(struct str list, uint32_t index)
{
    uint64_t n = 0;
    for (struct str word, rest = list; rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (str_to_u64(word, UINT32_MAX, &n) && n == index)
            return true;
    }
    return false;
}

bool announce_has_written(const struct announce *a, uint32_t index)
{
    return a->overdue || (a->listed_known && announce_in_list(buf_str(&a->listed), index));
}

/* Whether the ConfigMap has each card of the wish. */
static bool announce_lists_all(const struct announce *a)
{
    struct str word;
    uint64_t n = 0;
    for (struct str rest = buf_str(&a->ill); rest.p != NULL;) {
        (void)str_cut(rest, ',', &word, &rest);
        if (str_to_u64(word, UINT32_MAX, &n) &&
            !(a->listed_known && announce_in_list(buf_str(&a->listed), (uint32_t)n)))
            return false;
    }
    return true;
}

static void announce_weigh(struct announce *a)
{
    if (announce_lists_all(a)) {
        timer_cancel(&a->late);
        a->overdue = false;
    } else if (!a->overdue && !timer_armed(&a->late)) {
        timer_arm(a->s.loop, &a->late, a->s.tell_ms);
    }
}

static void announce_on_late(struct timer *t)
{
    struct announce *a = CONTAINER_OF(t, struct announce, late);
    log_warn("the kubelet gets the unhealthy cards before the ConfigMap has them",
             kv_str("cards", buf_str(&a->ill)), kv_cstr("error", a->map.last.text));
    a->overdue = true;
    a->s.written(a->s.ctx);
}

static void announce_confirm(struct announce *a, struct str ill)
{
    buf_clear(&a->listed, SIZE_MAX);
    buf_put(&a->listed, ill);
    a->listed_known = !buf_failed(&a->listed);
    announce_weigh(a);
    a->s.written(a->s.ctx);
}

/* ---- the node ---- */

static bool announce_count_is(struct str text, uint64_t want)
{
    uint64_t n = 0;
    if (text.p == NULL)
        return want == 0;
    return str_to_u64(text, UINT64_MAX, &n) && n == want;
}

static bool announce_matches(const struct announce *a, const struct own_node_view *v)
{
    bool any = a->cards.n > 0;
    struct str isolation = any ? str_of(isolation_name(a->isolation)) : STR_NULL;
    return (v->cards.p != NULL) == any && str_eq(v->cards, any ? buf_str(&a->cards) : STR_NULL) &&
           str_eq(v->isolation, isolation) &&
           str_eq(v->late, any && a->binds_late ? STR("true") : STR_NULL) &&
           announce_count_is(v->count, a->n_cards) &&
           announce_count_is(v->count_allocatable, a->n_cards);
}

/* The API server must have stored what was sent, unless another wish came meanwhile. */
static enum errc announce_check_node(struct announce *a, struct err *e)
{
    struct own_node_view v;
    arena_reset(&a->arena);
    enum errc code = own_node_read(buf_str(&a->node.call.http.reply), &a->arena, &v, e);
    if (code == OK && !a->node.state.due && !announce_matches(a, &v))
        code = err_set(e, ERR_CONFLICT, "the API server answers with a node without what was sent");
    if (code == OK)
        a->written = v.version;
    return code;
}

/* ---- the end of a call ---- */

static void announce_log_failure(struct lane *l)
{
    l->owner->counts.failures++;
    if (l->logged)
        log_debug("the cards can't be announced", kv_cstr("of", l->what),
                  kv_cstr("error", l->last.text));
    else
        log_warn("the cards can't be announced", kv_cstr("of", l->what),
                 kv_cstr("error", l->last.text));
    l->logged = true;
}

static void announce_react(struct lane *l, enum write_event event)
{
    struct announce *a = l->owner;
    const struct write_input in = {.event = event,
                                   .empty = a->ill.n == 0,
                                   .now_ms = loop_now_ms(a->s.loop),
                                   .random = loop_random(a->s.loop)};
    announce_perform(l, write_step(&l->state, &in));
}

static void announce_succeed(struct lane *l, bool absent)
{
    struct announce *a = l->owner;
    if (l->logged)
        log_info("the cards can be announced again", kv_cstr("of", l->what));
    l->logged = false;
    l->done = true;
    l->last = (struct err)ERR_INIT;
    if (l == &a->node)
        a->counts.nodes++;
    else if (!absent)
        a->counts.maps++;
}

static enum write_event announce_failure(struct lane *l)
{
    const struct http_call *h = &l->call.http;
    bool answered = h->outcome == HTTP_ANSWERED;
    bool map = l == &l->owner->map;
    if (answered && h->status == 401)
        kube_api_refresh(l->owner->s.api);
    if (answered && map && h->status == 404 && l->state.call == WRITE_PATCH)
        return WRITE_ON_ABSENT;
    if (answered && map && h->status == 409 && l->state.call == WRITE_CREATE)
        return WRITE_ON_EXISTS;
    return WRITE_ON_FAILED;
}

/* The node was changed again while the PATCH that has just ended was under way. */
static bool announce_missed(const struct announce *a)
{
    return a->differs && a->seen > a->written;
}

static void announce_drift(struct announce *a)
{
    if (a->node.state.call == WRITE_REST && !a->node.state.due) {
        a->counts.drifts++;
        log_info("the node is not as it was announced: announcing it again");
    }
    announce_react(&a->node, WRITE_ON_DRIFT);
}

static void announce_on_done(struct http_call *http)
{
    struct lane *l = CONTAINER_OF(http, struct lane, call.http);
    struct announce *a = l->owner;
    struct err e = ERR_INIT;
    enum write_event event = WRITE_ON_DONE;
    if (kube_call_result(&l->call, &e) != OK)
        event = announce_failure(l);
    else if (l == &a->node && announce_check_node(a, &e) != OK)
        event = WRITE_ON_FAILED;
    kube_call_done(&l->call);
    bool absent = event == WRITE_ON_ABSENT && a->ill.n == 0;
    if (event == WRITE_ON_FAILED) {
        l->last = e;
        announce_log_failure(l);
    } else if (event == WRITE_ON_DONE || absent) {
        announce_succeed(l, absent);
    }
    if (l == &a->map && (event == WRITE_ON_DONE || absent))
        announce_confirm(a, absent ? STR("") : buf_str(&a->sent));
    announce_react(l, event);
    if (l == &a->node && event == WRITE_ON_DONE && announce_missed(a))
        announce_drift(a);
}

static void announce_on_unsent(struct deferred *d)
{
    struct lane *l = CONTAINER_OF(d, struct lane, unsent);
    (void)err_set(&l->last, ERR_NOMEM, "no memory for the request");
    announce_log_failure(l);
    announce_react(l, WRITE_ON_FAILED);
}

static void announce_on_again(struct timer *t)
{
    announce_react(CONTAINER_OF(t, struct lane, again), WRITE_ON_TIMER);
}

/* ---- the start of a call ---- */

static void announce_put_map(struct announce *a, bool create)
{
    struct buf name;
    buf_init(&name, PATH_MAX_BYTES);
    buf_put(&name, GPUSHARE_UNHEALTHY_PREFIX);
    buf_put(&name, buf_str(&a->name));
    buf_put(&a->path, STR("/api/v1/namespaces/"));
    buf_put(&a->path, GPUSHARE_UNHEALTHY_NAMESPACE);
    buf_put(&a->path, STR("/configmaps"));
    if (!create) {
        buf_putc(&a->path, '/');
        kube_put_segment(&a->path, buf_str(&name));
    }
    buf_clear(&a->sent, SIZE_MAX);
    buf_put(&a->sent, buf_str(&a->ill));
    announce_write_map(&a->map.body, create ? buf_str(&name) : STR(""), buf_str(&a->sent));
    a->path.failed = a->path.failed || buf_failed(&name) || buf_failed(&a->sent);
    buf_done(&name);
}

static void announce_put_node(struct announce *a)
{
    const struct announce_node n = {.cards = buf_str(&a->cards),
                                    .count = a->n_cards,
                                    .isolation = a->isolation,
                                    .late = a->binds_late};
    buf_put(&a->path, STR("/api/v1/nodes/"));
    kube_put_segment(&a->path, buf_str(&a->name));
    buf_put(&a->path, STR("/status"));
    announce_write_node(&a->node.body, &n);
}

static void announce_send(struct lane *l, bool create)
{
    struct announce *a = l->owner;
    timer_cancel(&l->again);
    buf_clear(&a->path, SIZE_MAX);
    buf_clear(&l->body, SIZE_MAX);
    if (l == &a->map)
        announce_put_map(a, create);
    else
        announce_put_node(a);
    if (buf_failed(&a->path) || buf_failed(&l->body)) {
        loop_defer(a->s.loop, &l->unsent);
        return;
    }
    l->call.http = (struct http_call){
        .timeout_ms = CALL_TIMEOUT_MS,
        .body = buf_str(&l->body),
        .content_type = create ? STR_NULL : STR("application/merge-patch+json"),
        .on_done = announce_on_done,
    };
    kube_call_start(a->s.api, &l->call, create ? "POST" : "PATCH", buf_str(&a->path));
}

static void announce_perform(struct lane *l, struct write_action a)
{
    switch (a.what) {
    case WRITE_REST:
        break;
    case WRITE_WAIT:
        timer_arm(l->owner->s.loop, &l->again, a.delay_ms);
        break;
    case WRITE_PATCH:
    case WRITE_CREATE:
        announce_send(l, a.what == WRITE_CREATE);
        break;
    }
}

/* ---- events ---- */

static void announce_post(struct announce *a, const struct announce_card *c, const char *says,
                          enum event_level level, struct str reason)
{
    char bytes[EVENT_TEXT_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct event_subject node = {STR_NULL, buf_str(&a->name), buf_str(&a->name)};
    buf_printf(&text, "card %u (%.*s%s%.*s) %s", c->index, STR_ARG(c->uuid),
               c->model.n > 0 ? ", " : "", STR_ARG(c->model), says);
    if (c->reason.n > 0)
        buf_printf(&text, ": %.*s", STR_ARG(c->reason));
    if (a->s.events != NULL)
        events_post(a->s.events, &node, level, reason, buf_str(&text));
}

static void announce_post_card(struct announce *a, const struct announce_card *c, uint8_t was)
{
    const struct kv card = kv_uint("card", c->index);
    const struct kv uuid = kv_str("uuid", c->uuid);
    switch (c->health) {
    case GPU_UNHEALTHY:
        log_warn("a card is unhealthy", card, uuid, kv_str("reason", c->reason));
        announce_post(a, c, "is unhealthy and gets no new pods", EVENT_WARNING,
                      STR("CardUnhealthy"));
        break;
    case GPU_WARNED:
        log_warn("a card needs a reset soon", card, uuid, kv_str("reason", c->reason));
        announce_post(a, c, "still works; drain the node and reset the card", EVENT_WARNING,
                      STR("CardNeedsReset"));
        break;
    case GPU_HEALTHY:
        if (was == 0)
            break;
        log_info("a card is healthy again", card, uuid);
        announce_post(a, c, "is healthy again", EVENT_NORMAL, STR("CardRecovered"));
        break;
    }
}

static void announce_compare(struct announce *a, const struct announce_card *cards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *was = &a->health[cards[i].index];
        unsigned now = 1U + cards[i].health + (cards[i].needs_reset ? NEEDS_RESET : 0);
        if ((now & ~NEEDS_RESET) != (*was & ~NEEDS_RESET) || now > *was)
            announce_post_card(a, &cards[i], *was);
        *was = (uint8_t)now;
    }
}

/* ---- wishes ---- */

/* Puts the scratch into `wish` if it differs. Without memory the wish stays as it was, and the next
 * change of a card, or the next poll, brings it again. */
static bool announce_adopt(struct announce *a, struct buf *wish)
{
    if (buf_failed(&a->scratch) || (a->wished && str_eq(buf_str(wish), buf_str(&a->scratch))))
        return false;
    struct buf old = *wish;
    *wish = a->scratch;
    a->scratch = old;
    return true;
}

void announce_cards(struct announce *a, const struct announce_card *cards, size_t n,
                    enum isolation isolation, bool late)
{
    size_t offered = 0;
    for (size_t i = 0; i < n; i++) {
        assert(cards[i].index < LIMIT_GPU_CARDS);
        offered += cards[i].units > 0 ? 1 : 0;
    }
    announce_compare(a, cards, n);
    buf_clear(&a->scratch, SIZE_MAX);
    announce_write_ill(&a->scratch, cards, n);
    bool ill = announce_adopt(a, &a->ill);
    buf_clear(&a->scratch, SIZE_MAX);
    announce_write_cards(&a->scratch, cards, n);
    bool node = announce_adopt(a, &a->cards);
    node = node || a->isolation != isolation || a->binds_late != late;
    if (node) {
        a->n_cards = offered;
        a->isolation = isolation;
        a->binds_late = late;
    }
    a->wished = true;
    announce_weigh(a);
    if (ill)
        announce_react(&a->map, WRITE_ON_WISH);
    if (node)
        announce_react(&a->node, WRITE_ON_WISH);
}

void announce_see(struct announce *a, const struct own_node_view *node)
{
    /* The watch may lag behind the answer to our own PATCH. */
    if (node->version != 0 && node->version < a->written)
        return;
    a->differs = a->wished && !announce_matches(a, node);
    a->seen = node->version;
    if (a->differs)
        announce_drift(a);
}

struct str announce_trouble(const struct announce *a)
{
    if (a->map.logged || a->node.logged)
        return str_of(a->map.logged ? a->map.last.text : a->node.last.text);
    return a->map.done && a->node.done ? STR("") : STR("the cards are not announced yet");
}

const struct announce_counts *announce_counts(const struct announce *a)
{
    return &a->counts;
}

/* ---- life ---- */

static void announce_open_lane(struct announce *a, struct lane *l, const char *what)
{
    *l = (struct lane){.owner = a,
                       .what = what,
                       .again = {.fire = announce_on_again},
                       .unsent = {.run = announce_on_unsent},
                       .last = ERR_INIT};
    buf_init(&l->body, 2 * TABLE_MAX);
}

static void announce_close_lane(struct lane *l)
{
    timer_cancel(&l->again);
    deferred_cancel(&l->unsent);
    kube_call_cancel(&l->call);
    kube_call_done(&l->call);
    buf_done(&l->body);
}

enum errc announce_new(const struct announce_settings *s, struct announce **ret, struct err *reterr)
{
    struct announce *a = mem_alloc(sizeof(*a));
    if (a == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory to announce cards");
    *a = (struct announce){.s = *s, .late = {.fire = announce_on_late}};
    if (a->s.tell_ms == 0)
        a->s.tell_ms = ANNOUNCE_TELL_MS;
    announce_open_lane(a, &a->map, "ConfigMap");
    announce_open_lane(a, &a->node, "node");
    a->map.state.creates = true;
    a->map.state.check_ms = MAP_CHECK_MS;
    arena_init(&a->arena, LIMIT_OBJECT_ARENA);
    buf_init(&a->name, PATH_MAX_BYTES);
    buf_init(&a->path, PATH_MAX_BYTES);
    buf_init(&a->cards, TABLE_MAX);
    buf_init(&a->ill, TABLE_MAX);
    buf_init(&a->scratch, TABLE_MAX);
    buf_init(&a->sent, TABLE_MAX);
    buf_init(&a->listed, TABLE_MAX);
    buf_put(&a->name, s->node);
    if (buf_failed(&a->name)) {
        enum errc code = buf_fault(&a->name);
        (void)announce_free(a);
        return err_set(reterr, code, "no memory to announce cards");
    }
    *ret = a;
    return OK;
}

struct announce *announce_free(struct announce *a)
{
    if (a == NULL)
        return NULL;
    timer_cancel(&a->late);
    announce_close_lane(&a->map);
    announce_close_lane(&a->node);
    arena_done(&a->arena);
    buf_done(&a->name);
    buf_done(&a->path);
    buf_done(&a->cards);
    buf_done(&a->ill);
    buf_done(&a->scratch);
    buf_done(&a->sent);
    buf_done(&a->listed);
    mem_free(a);
    return NULL;
}
