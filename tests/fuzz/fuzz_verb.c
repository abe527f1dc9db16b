/*
 * The bind verb with an API server whose faults the input chooses. An operation is three bytes:
 * what, which, how.
 *
 * b: a request to bind pod A to node B
 * w: a watch shows pod A as it is
 * p: the oldest call gets its answer, in way A
 * l: the pods are listed
 * t: time passes
 * c: late Bindings commit
 * d: pod A is deleted
 *
 * In every history: no card is over-committed, a success is reported only for a bound pod, and when
 * the API server works again every request gets one answer and the cache equals the API server's
 * objects.
 */
#include "daemon/bind/bind.h"
#include "rules.h"
#include "spoken.h"
#include "still.h"

#define PODS     6
#define NODES    2
#define CARDS    2
#define CARD_MEM 10
#define ASKED    48

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum fate {
    FATE_FINE,
    FATE_NOT_SENT,
    FATE_DONE_UNHEARD,
    FATE_NEVER,
    FATE_LATE,
    FATE_THROTTLED,
    FATE_UNAUTHORIZED,
    FATES
};

struct checkpoint_file {
    int node; /* -1: not bound */
    int card;
    bool gone;
    /* A Binding that is under way at the API server. */
    bool late;
    uint64_t late_ms; /* since when it is late */
    int late_node;
    int late_card;
};

struct pending {
    struct backend_call *call; /* NULL: free */
    bool post;
    int pod;
    int node;
    int card;
};

static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "n0", "n1"};
static const int sizes[PODS] = {4, 6, 7, 10, 3, 5};
static const char *const size_texts[PODS] = {"4", "6", "7", "10", "3", "5"};

struct stage {
    struct backend backend;
    struct loop *loop;
    struct cache cache;
    struct binder *binder;
    struct checkpoint_file pods[PODS];
    struct pending pending[16];
    struct container_view containers[PODS];
    struct spoken asked[ASKED];
    int asked_pod[ASKED];
    int asked_node[ASKED];
    size_t n_asked;
};

static int index_of(struct str name, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (str_eq(name, str_of(names[i])))
            return i - from;
    }
    check(false, "a name that we gave");
    return 0;
}

/* ---- the API server ---- */

static void check_cards(const struct stage *s)
{
    for (int node = 0; node < NODES; node++) {
        for (int card = 0; card < CARDS; card++) {
            int used = 0;
            for (int i = 0; i < PODS; i++) {
                if (!s->pods[i].gone && s->pods[i].node == node && s->pods[i].card == card)
                    used += sizes[i];
            }
            check(used <= CARD_MEM, "no card holds more than its size");
        }
    }
}

static void commit(struct stage *s, int pod, int node, int card)
{
    if (s->pods[pod].gone || s->pods[pod].node >= 0)
        return;
    s->pods[pod].node = node;
    s->pods[pod].card = card;
    check_cards(s);
}

/* Commits the Bindings that were sent before this time. */
static void commit_late(struct stage *s, uint64_t before_ms)
{
    for (int i = 0; i < PODS; i++) {
        if (!s->pods[i].late || s->pods[i].late_ms > before_ms)
            continue;
        s->pods[i].late = false;
        commit(s, i, s->pods[i].late_node, s->pods[i].late_card);
    }
}

static struct pending *oldest(struct stage *s)
{
    return s->pending[0].call == NULL ? NULL : &s->pending[0];
}

static struct pending take(struct stage *s, size_t i)
{
    struct pending p = s->pending[i];
    memmove(&s->pending[i], &s->pending[i + 1], sizeof(p) * (COUNT_OF(s->pending) - i - 1));
    s->pending[COUNT_OF(s->pending) - 1].call = NULL;
    return p;
}

static void add(struct stage *s, struct pending p)
{
    size_t i = 0;
    while (i < COUNT_OF(s->pending) && s->pending[i].call != NULL)
        i++;
    check(i < COUNT_OF(s->pending) - 1, "no more calls than pods");
    s->pending[i] = p;
}

static struct pod_view view_of(const struct stage *s, int i)
{
    static const char *const idx[] = {"0", "1"};
    const struct checkpoint_file *t = &s->pods[i];
    struct pod_view v = {.uid = str_of(names[i]),
                         .namespace = STR("ns"),
                         .name = str_of(names[i]),
                         .phase = STR("Pending"),
                         .containers = &s->containers[i],
                         .n_containers = 1};
    if (t->node >= 0) {
        v.node = str_of(names[PODS + t->node]);
        v.idx = str_of(idx[t->card]);
        v.assigned = STR("false");
        v.assume_time = STR("1");
    }
    return v;
}

static enum post_result serve_post(struct stage *s, const struct pending *p)
{
    if (s->pods[p->pod].gone)
        return POST_REFUSED;
    if (s->pods[p->pod].node >= 0)
        return POST_ASSIGNED;
    commit(s, p->pod, p->node, p->card);
    return POST_CREATED;
}

static enum post_result post_by(struct stage *s, const struct pending *p, enum fate fate)
{
    switch (fate) {
    case FATE_FINE:
        return serve_post(s, p);
    case FATE_NOT_SENT:
        return POST_NOT_SENT;
    case FATE_DONE_UNHEARD:
        (void)serve_post(s, p);
        return POST_UNKNOWN;
    case FATE_LATE:
        commit_late(s, UINT64_MAX);
        s->pods[p->pod].late = true;
        s->pods[p->pod].late_ms = loop_now_ms(s->loop);
        s->pods[p->pod].late_node = p->node;
        s->pods[p->pod].late_card = p->card;
        return POST_UNKNOWN;
    case FATE_THROTTLED:
        return POST_THROTTLED;
    case FATE_UNAUTHORIZED:
        return POST_UNAUTHORIZED;
    case FATE_NEVER:
    case FATES:
        break;
    }
    return POST_UNKNOWN;
}

static void complete(struct stage *s, struct pending p, enum fate fate)
{
    struct backend_call *c = p.call;
    c->err = (struct err)ERR_INIT;
    c->retry_after_ms = 0;
    if (p.post) {
        c->post = post_by(s, &p, fate);
        if (c->post != POST_CREATED)
            (void)err_set(&c->err, ERR_UNAVAILABLE, "fate %d", (int)fate);
    } else if (fate != FATE_FINE) {
        c->get = GET_FAILED;
        (void)err_set(&c->err, ERR_UNAVAILABLE, "fate %d", (int)fate);
    } else {
        c->get = s->pods[p.pod].gone ? GET_GONE : GET_FOUND;
        c->pod = view_of(s, p.pod);
    }
    c->done(c);
}

/* ---- the backend ---- */

static void post(struct backend *b, struct backend_call *c, const struct binding *binding)
{
    struct stage *s = CONTAINER_OF(b, struct stage, backend);
    uint64_t card = 0;
    bool valid = str_to_u64(binding->idx, CARDS - 1, &card);
    check(valid && binding->mem > 0, "a card of the node");
    add(s, (struct pending){.call = c,
                            .post = true,
                            .pod = index_of(binding->name, 0, PODS),
                            .node = index_of(binding->node, PODS, PODS + NODES),
                            .card = (int)card});
}

static void get(struct backend *b, struct backend_call *c, struct str namespace, struct str name)
{
    struct stage *s = CONTAINER_OF(b, struct stage, backend);
    (void)namespace;
    add(s, (struct pending){.call = c, .pod = index_of(name, 0, PODS)});
}

/* The request may have been sent. */
static void cancel(struct backend_call *c)
{
    struct stage *s = CONTAINER_OF(c->backend, struct stage, backend);
    for (size_t i = 0; i < COUNT_OF(s->pending); i++) {
        if (s->pending[i].call != c)
            continue;
        struct pending p = take(s, i);
        if (p.post)
            (void)post_by(s, &p, FATE_LATE);
        return;
    }
}

static bool ready(struct backend *b, struct str *ret_missing)
{
    (void)b;
    *ret_missing = STR("");
    return true;
}

static uint64_t term(struct backend *b)
{
    (void)b;
    return 1;
}

static void nothing(struct backend *b)
{
    (void)b;
}

/* ---- events ---- */

static void apply(struct stage *s, const struct cache_event *e)
{
    struct effect effect;
    check(cache_apply(&s->cache, e, 0, &effect) == OK, "it is taken in");
    cache_check(&s->cache);
}

static void watch(struct stage *s, int pod)
{
    struct cache_event e = {.type = s->pods[pod].gone ? CACHE_POD_GONE : CACHE_POD_SET,
                            .pod = view_of(s, pod)};
    apply(s, &e);
}

static void list(struct stage *s)
{
    apply(s, &(struct cache_event){.type = CACHE_LIST_BEGIN, .list = CACHE_PODS});
    for (int i = 0; i < PODS; i++) {
        if (!s->pods[i].gone)
            watch(s, i);
    }
    apply(s, &(struct cache_event){.type = CACHE_LIST_END, .list = CACHE_PODS});
}

static void ask(struct stage *s, int pod, int node)
{
    char text[160];
    if (s->n_asked == ASKED)
        return;
    size_t i = s->n_asked++;
    struct spoken *r = &s->asked[i];
    s->asked_pod[i] = pod;
    s->asked_node[i] = node;
    spoken_init(r, STR("POST"), STR("/"), STR(""));
    int n =
        snprintf(text, sizeof(text),
                 "{\"PodName\":\"%s\",\"PodNamespace\":\"ns\",\"PodUID\":\"%s\",\"Node\":\"%s\"}",
                 names[pod], names[pod], names[PODS + node]);
    r->request.body = arena_dup(&r->arena, (struct str){text, (size_t)n});
    bind_handle(s->binder, &r->request);
}

/* A success must be true when it is reported: the pod may be deleted directly after. */
static void check_answers(struct stage *s)
{
    for (size_t i = 0; i < s->n_asked; i++) {
        struct spoken *r = &s->asked[i];
        check(r->times <= 1, "a request is answered once");
        if (r->times == 0 || r->type == NULL)
            continue;
        r->type = NULL;
        const struct checkpoint_file *t = &s->pods[s->asked_pod[i]];
        if (str_eq(buf_str(&r->answer), STR("{\"Error\":\"\"}")))
            check(t->node == s->asked_node[i], "success is said of bound pods only");
    }
}

static void act(struct stage *s, uint8_t what, uint8_t which, uint8_t how)
{
    static const uint64_t times[] = {1, 100, 1000, 3000, 10001, 26000, 80000, 400000};
    int pod = which % PODS;
    struct pending *p = oldest(s);
    switch (what) {
    case 'b':
        ask(s, pod, how % NODES);
        break;
    case 'p':
        if (p != NULL)
            complete(s, take(s, 0), (enum fate)(which % FATES));
        break;
    case 't':
        /* A Binding is late for at most the API server's request timeout. */
        commit_late(s, loop_now_ms(s->loop) + times[which % COUNT_OF(times)] - 60000);
        still_pass(s->loop, times[which % COUNT_OF(times)]);
        break;
    case 'd':
        s->pods[pod].gone = true;
        break;
    case 'w':
        watch(s, pod);
        break;
    case 'l':
        list(s);
        break;
    case 'c':
        commit_late(s, UINT64_MAX);
        break;
    default:
        break;
    }
    still_run(s->loop);
    cache_check(&s->cache);
    check_answers(s);
}

/* The API server and its watches work again. */
static void recover(struct stage *s)
{
    for (int i = 0; i < 500 && (bind_active(s->binder) > 0 || i < 3); i++) {
        commit_late(s, UINT64_MAX);
        for (int n = 0; n < 100 && oldest(s) != NULL; n++) {
            complete(s, take(s, 0), FATE_FINE);
            still_run(s->loop);
        }
        for (int pod = 0; pod < PODS; pod++)
            watch(s, pod);
        still_pass(s->loop, 1000);
        check_answers(s);
    }
    check(bind_active(s->binder) == 0, "every bind comes to its end");
    list(s);
    for (size_t i = 0; i < s->n_asked; i++)
        check(s->asked[i].times == 1, "every request is answered");
    for (int i = 0; i < PODS; i++) {
        const struct pod *p = cache_pod(&s->cache, str_of(names[i]));
        bool bound = !s->pods[i].gone && s->pods[i].node >= 0;
        check((p != NULL && pod_holds(p)) == bound, "the cache holds what is bound");
        if (bound)
            check(p->card == s->pods[i].card &&
                      str_eq(p->node->name, str_of(names[PODS + s->pods[i].node])),
                  "where it is");
    }
}

static void stage_open(struct stage *s)
{
    *s = (struct stage){.backend = {.post = post,
                                    .get = get,
                                    .cancel = cancel,
                                    .ready = ready,
                                    .stands_by = ready,
                                    .term = term,
                                    .asked = nothing,
                                    .refresh = nothing},
                        .loop = still_loop()};
    cache_init(&s->cache, (struct map_seed){1, 2});
    for (int i = 0; i < NODES; i++) {
        struct cache_event e = {
            .type = CACHE_NODE_SET,
            .node = {.name = str_of(names[PODS + i]), .mem = STR("20"), .count = STR("2")}};
        apply(s, &e);
    }
    for (int i = 0; i < PODS; i++) {
        s->pods[i].node = -1;
        s->containers[i] = (struct container_view){.name = STR("c"), .mem = str_of(size_texts[i])};
    }
    const struct bind_settings b = {
        .loop = s->loop, .cache = &s->cache, .backend = &s->backend, .timeout_ms = 25000};
    check(bind_new(&b, &s->binder, NULL) == OK, "a binder");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stage s;
    quiet();
    stage_open(&s);
    for (size_t i = 0; i + 2 < size && i < 600; i += 3)
        act(&s, data[i], data[i + 1], data[i + 2]);
    recover(&s);
    s.binder = bind_free(s.binder);
    cache_done(&s.cache);
    s.loop = loop_free(s.loop);
    for (size_t i = 0; i < s.n_asked; i++)
        spoken_done(&s.asked[i]);
    return 0;
}
