/* One request at a time. What was reported is in blocks of its own: the roster's pods may go. */
#include "node/kubelet/lister.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"
#include "grpc/grpc_client.h"
#include "grpc/limit.h"
#include "objects/limit.h"

/* The list of 100,000 devices: views of 16 bytes, in arrays that double. */
#define ARENA_BYTES   (16 * MIB)
#define TIMEOUT_MS    5000
#define FAILURES_TOLD 2 /* in a row; a kubelet that restarts fails once */
#define TEXT_BYTES    1024

static_assert(COMPARE_MAX == LIMIT_USAGE_DIFFERENCES, "all of them are written");

/* One container that differs; its strings are behind it. */
struct lister_item {
    struct usage_difference view;
    struct str uid;
    bool reported; /* two answers have it */
    bool seen;     /* the last answer has it */
};

struct lister {
    struct lister_settings s;
    struct lister_counts counts;
    struct grpc_client *client;
    struct grpc_request request;
    struct timer timer;
    bool asking;
    uint64_t due_ms; /* when the timer fires */
    unsigned failed; /* in a row */
    bool silent;     /* the log says that the kubelet does not answer */
    bool altered;    /* what lister_view says, since `changed` was called */
    struct comparison now;
    struct lister_item *items[COMPARE_MAX]; /* owned */
    size_t n;
    struct usage_difference reported[COMPARE_MAX]; /* for lister_view */
};

/* ---- what was found ---- */

static void lister_put_cards(struct buf *out, const struct card_list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        buf_printf(out, "%s%u", i == 0 ? "" : ",", l->cards[i]);
}

static struct lister_item *lister_item_new(const struct difference *d)
{
    char annotated[LIMIT_USAGE_CARD_LIST];
    char given[LIMIT_USAGE_CARD_LIST];
    struct buf said = BUF_ON(annotated);
    struct buf has = BUF_ON(given);
    lister_put_cards(&said, &d->annotated);
    lister_put_cards(&has, &d->given);
    size_t n = d->uid.n + d->namespace.n + d->name.n + d->container.n + said.n + has.n;
    struct lister_item *x = mem_alloc(sizeof(*x) + n);
    if (x == NULL)
        return NULL;
    char *at = (char *)(x + 1);
    *x = (struct lister_item){.view = {.kind = d->kind}};
    x->uid = str_store(&at, d->uid);
    x->view.namespace = str_store(&at, d->namespace);
    x->view.name = str_store(&at, d->name);
    x->view.container = str_store(&at, d->container);
    x->view.annotated = str_store(&at, buf_str(&said));
    x->view.given = str_store(&at, buf_str(&has));
    return x;
}

static bool lister_item_is(const struct lister_item *x, const struct difference *d)
{
    char text[LIMIT_USAGE_CARD_LIST];
    struct buf cards = BUF_ON(text);
    if (x->view.kind != d->kind || !str_eq(x->uid, d->uid) ||
        !str_eq(x->view.container, d->container))
        return false;
    lister_put_cards(&cards, &d->annotated);
    if (!str_eq(buf_str(&cards), x->view.annotated))
        return false;
    cards.n = 0;
    lister_put_cards(&cards, &d->given);
    return str_eq(buf_str(&cards), x->view.given);
}

/* "card 0", "cards 0,2" or "no card". */
static void lister_put_names(struct buf *out, struct str cards)
{
    if (cards.n == 0)
        buf_put(out, STR("no card"));
    else
        buf_printf(out, "%s %.*s", memchr(cards.p, ',', cards.n) != NULL ? "cards" : "card",
                   STR_ARG(cards));
}

static void lister_put_text(struct buf *out, const struct usage_difference *d)
{
    buf_printf(out, "container %.*s: ", STR_ARG(d->container));
    if (d->kind == USAGE_DIFFERS_OWNER) {
        buf_put(out, STR("the kubelet lists devices for it that are not its pod's by the kubelet's "
                         "checkpoint: delete the pod"));
        return;
    }
    buf_put(out, STR("the annotations name "));
    lister_put_names(out, d->annotated);
    if (d->kind == USAGE_DIFFERS_NONE) {
        buf_put(out, STR(", and the kubelet lists no device for it and may give its card to "
                         "others: delete the pod"));
        return;
    }
    buf_put(out, STR(", and the devices that the kubelet has given it are of "));
    lister_put_names(out, d->given);
    buf_put(out, STR(": delete the pod, unless the log of cardpack-node says that they are set "
                     "back"));
}

static void lister_report(struct lister *l, struct lister_item *x)
{
    char bytes[TEXT_BYTES];
    struct buf text = BUF_ON(bytes);
    const struct event_subject pod = {x->view.namespace, x->view.name, x->uid};
    x->reported = l->altered = true;
    lister_put_text(&text, &x->view);
    log_warn("the kubelet's devices of a container are not as its annotations say",
             kv_str("namespace", x->view.namespace), kv_str("pod", x->view.name),
             kv_str("container", x->view.container), kv_str("annotated", x->view.annotated),
             kv_str("given", x->view.given), kv_str("what", buf_str(&text)));
    if (l->s.events != NULL)
        events_post(l->s.events, &pod, EVENT_WARNING, STR("GPUCardsDiffer"), buf_str(&text));
}

static struct lister_item *lister_find(const struct lister *l, const struct difference *d)
{
    for (size_t i = 0; i < l->n; i++) {
        if (lister_item_is(l->items[i], d))
            return l->items[i];
    }
    return NULL;
}

/* Those that the last answer does not have go. */
static void lister_sweep(struct lister *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct lister_item *x = l->items[i];
        if (x->seen) {
            l->items[kept++] = x;
            continue;
        }
        if (x->reported) {
            l->altered = true;
            log_info("a container that differed from its annotations agrees with them, or is gone",
                     kv_str("namespace", x->view.namespace), kv_str("pod", x->view.name),
                     kv_str("container", x->view.container));
        }
        mem_free(x);
    }
    l->n = kept;
}

static uint32_t lister_count_reported(const struct lister *l)
{
    uint32_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->items[i]->reported ? 1 : 0;
    return n;
}

static void lister_take(struct lister *l)
{
    for (size_t i = 0; i < l->n; i++)
        l->items[i]->seen = false;
    for (size_t i = 0; i < l->now.n; i++) {
        struct lister_item *x = lister_find(l, &l->now.items[i]);
        if (x != NULL) {
            x->seen = true;
            if (!x->reported)
                lister_report(l, x);
        }
    }
    lister_sweep(l);
    for (size_t i = 0; i < l->now.n && l->n < COMPARE_MAX; i++) {
        struct lister_item *x =
            lister_find(l, &l->now.items[i]) == NULL ? lister_item_new(&l->now.items[i]) : NULL;
        if (x != NULL)
            l->items[l->n++] = x;
    }
    l->counts.differences = lister_count_reported(l);
    l->altered = l->altered || !l->counts.asked || l->counts.compared != l->now.compared;
    l->counts.compared = l->now.compared;
    l->counts.asked = true;
}

/* ---- requests ---- */

static bool lister_is_unsure(const struct lister *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!l->items[i]->reported)
            return true;
    }
    return false;
}

static void lister_arm(struct lister *l, uint64_t delay_ms)
{
    l->due_ms = loop_now_ms(l->s.loop) + delay_ms;
    timer_arm(l->s.loop, &l->timer, delay_ms);
}

/* What the last answer said is old. */
static void lister_forget(struct lister *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->items[i]);
    l->n = 0;
    l->altered = l->altered || l->counts.asked;
    l->counts.asked = false;
    l->counts.compared = l->counts.differences = 0;
}

static void lister_fail(struct lister *l, const char *why)
{
    l->counts.failures++;
    log_debug("no list of devices", kv_cstr("error", why));
    if (++l->failed < FAILURES_TOLD || l->silent)
        return;
    l->silent = true;
    lister_forget(l);
    log_info("the kubelet does not list the devices of containers: they are not compared with "
             "annotations",
             kv_cstr("error", why));
}

static enum errc lister_read(struct lister *l, struct err *e)
{
    struct arena arena;
    struct pod_resources list = {.n_pods = 0};
    arena_init(&arena, ARENA_BYTES);
    enum errc code = pod_resources_read(buf_str(&l->request.reply), &arena, &list, e);
    bool compared = code == OK && l->s.compare(l->s.ctx, &list, &l->now);
    if (compared)
        lister_take(l);
    arena_done(&arena);
    return code;
}

static void lister_on_done(struct grpc_request *r)
{
    struct lister *l = CONTAINER_OF(r, struct lister, request);
    struct err e = r->err;
    l->asking = false;
    enum errc code = r->result == OK ? lister_read(l, &e) : r->result;
    grpc_request_done(r);
    if (code == OK) {
        l->counts.answers++;
        if (l->silent)
            log_info("the kubelet lists the devices of containers");
        l->silent = false;
        l->failed = 0;
    } else {
        lister_fail(l, e.text);
    }
    lister_arm(l, lister_is_unsure(l) ? l->s.again_ms : l->s.every_ms);
    if (!l->altered)
        return;
    l->altered = false;
    l->s.changed(l->s.ctx);
}

static void lister_on_timer(struct timer *t)
{
    struct lister *l = CONTAINER_OF(t, struct lister, timer);
    l->asking = true;
    l->request = (struct grpc_request){.path = POD_RESOURCES_LIST,
                                       .message = STR(""),
                                       .timeout_ms = TIMEOUT_MS,
                                       .max_reply = LIMIT_GRPC_REPLY,
                                       .on_done = lister_on_done};
    grpc_request_start(l->client, &l->request);
}

void lister_nudge(struct lister *l)
{
    if (l->asking || lister_is_unsure(l))
        return;
    /* A further start does not put it off. */
    if (l->due_ms > loop_now_ms(l->s.loop) + l->s.soon_ms)
        lister_arm(l, l->s.soon_ms);
}

/* ---- questions ---- */

struct lister_counts lister_counts(const struct lister *l)
{
    return l->counts;
}

void lister_view(struct lister *l, struct usage_view *v)
{
    if (l == NULL)
        return;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i]->reported)
            l->reported[n++] = l->items[i]->view;
    }
    v->asked = l->counts.asked;
    v->compared = l->counts.compared;
    v->differences = l->reported;
    v->n_differences = n;
}

/* ---- life ---- */

enum errc lister_new(const struct lister_settings *s, struct lister **ret, struct err *reterr)
{
    struct lister *l = mem_alloc(sizeof(*l));
    if (l == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the list of devices");
    *l = (struct lister){.s = *s, .timer = {.fire = lister_on_timer}};
    if (l->s.every_ms == 0)
        l->s.every_ms = LISTER_EVERY_MS;
    if (l->s.soon_ms == 0)
        l->s.soon_ms = LISTER_SOON_MS;
    if (l->s.again_ms == 0)
        l->s.again_ms = LISTER_AGAIN_MS;
    enum errc code = grpc_client_new(s->loop, s->socket, &l->client, reterr);
    if (code != OK) {
        mem_free(l);
        return code;
    }
    lister_arm(l, l->s.soon_ms);
    *ret = l;
    return OK;
}

struct lister *lister_free(struct lister *l)
{
    if (l == NULL)
        return NULL;
    timer_cancel(&l->timer);
    if (l->asking) {
        grpc_request_cancel(&l->request);
        grpc_request_done(&l->request);
    }
    l->client = grpc_client_free(l->client);
    lister_forget(l);
    mem_free(l);
    return NULL;
}
