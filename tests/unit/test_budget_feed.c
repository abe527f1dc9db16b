/* Each case is an exchange with an API server and the budgets known after it. */
#include "daemon/backend/budget_feed.h"

#include "base/log.h"
#include "fail_alloc.h"
#include "on_loop.h"
#include "script_server.h"

#include <stdlib.h>
#include <sys/mman.h>

#define V1       "GET /base/apis/policy/v1/poddisruptionbudgets?limit=2 "
#define BETA     "GET /base/apis/policy/v1beta1/poddisruptionbudgets?limit=2 "
#define WATCH    "/poddisruptionbudgets?watch=true&"
#define V1_WATCH "/policy/v1" WATCH

#define BUDGET(name, selector, allowed)                                                     \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"resourceVersion\":\"5\"}," \
    "\"spec\":{\"selector\":" selector "},\"status\":{\"disruptionsAllowed\":" #allowed "}}"
#define KIND                "{\"kind\":\"PodDisruptionBudgetList\","
#define LIST(items)         KIND "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" items "]}\n"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define STATUS(code, reason)                                                              \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":" #code ",\"reason\":\"" reason \
    "\",\"message\":\"because\"}"
#define ABSENT(path)                                         \
    {                                                        \
        path, SCRIPT_BODY, "404 page not found\n", 404, NULL \
    }
#define FORBIDDEN(path)                                        \
    {                                                          \
        path, SCRIPT_BODY, STATUS(403, "Forbidden"), 403, NULL \
    }
#define LISTED(path, items)                     \
    {                                           \
        path, SCRIPT_BODY, LIST(items), 0, NULL \
    }
#define WATCHED(events)                       \
    {                                         \
        WATCH, SCRIPT_STREAM, events, 0, NULL \
    }
#define EXPIRED WATCHED(EVENT("ADDED", BUDGET("x", "{}", 9)) EVENT("ERROR", STATUS(410, "Expired")))
#define STEPS(...) \
    (const struct script_step[]){__VA_ARGS__}, COUNT_OF(((const struct script_step[]){__VA_ARGS__}))

enum patience {
    RETRY_PATH,    /* the reflector retries at once; the other path is much later */
    EXCHANGE_PATH, /* the other way round */
    ALL_AT_ONCE,
};

static const struct {
    const char *name;
    enum patience patience;
    const struct script_step *steps;
    size_t n_steps;
    unsigned told;       /* how often the log says that budgets are not available */
    const char *budgets; /* "name allowed", with '-' in front if it selects no pod; sorted */
} cases[] = {
    {"a list", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1) "," BUDGET("b", "null", 2)), WATCHED("")), 0,
     "a 1,-b 2"},
    {"a list in pages", RETRY_PATH,
     STEPS({V1, SCRIPT_BODY,
            KIND "\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"c\"},\"items\":[" BUDGET(
                "a", "{}", 1) "]}",
            0, NULL},
           LISTED("/policy/v1/poddisruptionbudgets?limit=2&continue=c ", BUDGET("b", "{}", 2)),
           WATCHED("")),
     0, "a 1,b 2"},
    {"events", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1)),
           WATCHED(EVENT("ADDED", BUDGET("b", "{}", 2)) EVENT("MODIFIED", BUDGET("a", "{}", 0))
                       EVENT("ADDED", BUDGET("c", "{}", 3))
                           EVENT("DELETED", BUDGET("b", "{}", 2)))),
     0, "a 0,c 3"},
    {"a list takes what it lacks", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1)), EXPIRED, LISTED(V1, BUDGET("b", "{}", 2)),
           WATCHED("")),
     0, "b 2"},
    {"v1beta1 where there is no v1", RETRY_PATH,
     STEPS(ABSENT(V1),
           LISTED(BETA, BUDGET("a", "{}", 1) "," BUDGET("b",
                                                        "{\"matchLabels\":{"
                                                        "\"a\":\"1\"}}",
                                                        2)),
           {"/policy/v1beta1" WATCH, SCRIPT_STREAM, "", 0, NULL}),
     0, "-a 1,b 2"},
    {"neither for a while", EXCHANGE_PATH,
     STEPS(ABSENT(V1), ABSENT(BETA), ABSENT(V1), ABSENT(BETA), LISTED(V1, BUDGET("a", "{}", 1)),
           WATCHED("")),
     1, "a 1"},
    {"the path in turn comes back", RETRY_PATH,
     STEPS(ABSENT(V1), ABSENT(BETA), ABSENT(BETA), LISTED(BETA, BUDGET("a", "{}", 1)), WATCHED("")),
     1, "-a 1"},
    {"v1beta1 is no more", RETRY_PATH,
     STEPS(ABSENT(V1), LISTED(BETA, BUDGET("a", "{}", 1)), EXPIRED, ABSENT(BETA),
           LISTED(V1, BUDGET("b", "{}", 2)), {V1_WATCH, SCRIPT_STREAM, "", 0, NULL}),
     0, "b 2"},
    {"a 404 of a load balancer's", EXCHANGE_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1)), EXPIRED, ABSENT(V1), ABSENT(BETA),
           LISTED(V1, BUDGET("b", "{}", 2)), WATCHED("")),
     1, "b 2"},
    {"not ours until it is", RETRY_PATH,
     STEPS(FORBIDDEN(V1), FORBIDDEN(V1), LISTED(V1, BUDGET("a", "{}", 1)), WATCHED("")), 1, "a 1"},
    {"not ours any more, for a while", RETRY_PATH,
     STEPS(FORBIDDEN(V1), LISTED(V1, BUDGET("a", "{}", 1)), EXPIRED, FORBIDDEN(V1), FORBIDDEN(V1),
           LISTED(V1, BUDGET("b", "{}", 2)), WATCHED("")),
     2, "b 2"},
    {"an older API server that forbids", RETRY_PATH,
     STEPS(ABSENT(V1), FORBIDDEN(BETA), LISTED(BETA, BUDGET("a", "{}", 1)), WATCHED("")), 1,
     "-a 1"},
    {"not well", RETRY_PATH,
     STEPS({V1, SCRIPT_BODY, STATUS(500, "InternalError"), 500, NULL},
           {V1, SCRIPT_CLOSE, NULL, 0, NULL}, LISTED(V1, BUDGET("a", "{}", 1)), WATCHED("")),
     0, "a 1"},
    {"an object that can't be read", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1)), EXPIRED,
           LISTED(V1, BUDGET("b", "{}", 2) ",{\"spec\":[]}"), WATCHED("")),
     0, "a 1,b 2,x 9"},
    {"a budget that can't be read", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}", 1)), EXPIRED,
           LISTED(V1, BUDGET("b", "{\"matchLabels\":[]}", 2)),
           WATCHED(EVENT("MODIFIED", BUDGET("b", "[]", 3)) EVENT("ADDED", BUDGET("c", "[]", 3))
                       EVENT("DELETED", BUDGET("c", "[]", 3)))),
     0, "b 0"},
    {"an object without a name", RETRY_PATH,
     STEPS(LISTED(V1, BUDGET("a", "{}",
                             1) ",{\"metadata\":{\"namespace\":\"ns\"}}," BUDGET("b", "{}", 2)),
           WATCHED("")),
     0, "a 1,b 2"},
};

static struct rig {
    struct loop *loop;
    struct kube_api *api;
    struct script_server server;
    struct budgets budgets;
    struct budget_feed_settings settings;
    struct budget_feed *feed;
    size_t n_requests;
    const char *expected;
    char path[64];
    int log;
} rig;

static void set_up(void)
{
    rig = (struct rig){.path = "/tmp/cardpack-test-budget-feed-XXXXXX"};
    int fd = mkstemp(rig.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    rig.log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(rig.log, 0);
    log_setup(rig.log, LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    rig.loop = loop_make();
    budgets_init(&rig.budgets, (struct map_seed){1, 2});
}

static void start(enum patience patience, const struct script_step *steps, size_t n)
{
    struct err e = ERR_INIT;
    script_start(&rig.server, rig.loop, steps, n);
    script_kubeconfig(&rig.server, rig.path);
    struct kube_api_settings api = {.kubeconfig = str_of(rig.path), .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(rig.loop, &api, &rig.api, &e), &e);
    rig.settings = (struct budget_feed_settings){.loop = rig.loop,
                                                 .api = rig.api,
                                                 .budgets = &rig.budgets,
                                                 .page_size = 2,
                                                 .backoff = {.min_ms = 1, .max_ms = 2},
                                                 .again_ms = 3600000};
    if (patience == EXCHANGE_PATH) {
        rig.settings.backoff = (struct reflector_backoff){.min_ms = 3600000, .max_ms = 3600000};
    }
    if (patience != RETRY_PATH)
        rig.settings.again_ms = 1;
    ck_assert_ok(budget_feed_new(&rig.settings, &rig.feed, &e), &e);
}

static void tear_down(void)
{
    fail_alloc_disarm();
    rig.feed = budget_feed_free(rig.feed);
    rig.api = kube_api_free(rig.api);
    if (rig.server.loop != NULL)
        script_stop(&rig.server);
    rig.loop = loop_free(rig.loop);
    budgets_done(&rig.budgets);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)close(rig.log);
    (void)unlink(rig.path);
}

static int by_name(const void *a, const void *b)
{
    const struct budget *const *x = a;
    const struct budget *const *y = b;
    return str_cmp((*x)->is.name, (*y)->is.name);
}

static void describe(struct buf *out)
{
    const struct budget *all[16];
    size_t cursor = 0;
    size_t n = 0;
    for (const struct budget *d = map_next(&rig.budgets.all, &cursor); d != NULL;
         d = map_next(&rig.budgets.all, &cursor)) {
        ck_assert_uint_lt(n, COUNT_OF(all));
        ck_assert_str_is(d->is.namespace, "ns");
        all[n++] = d;
    }
    if (n > 0)
        qsort((void *)all, n, sizeof(struct budget *), by_name);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s%.*s %lld", i == 0 ? "" : ",", all[i]->is.selects ? "" : "-",
                   STR_ARG(all[i]->is.name), (long long)all[i]->is.allowed);
}

/* Allocates nothing: the test may make the next allocation fail. */
static bool as_expected(void *ctx)
{
    char bytes[256];
    struct buf text = BUF_ON(bytes);
    (void)ctx;
    describe(&text);
    bool same = str_eq(buf_str(&text), str_of(rig.expected));
    return same && rig.server.n_requests >= rig.n_requests;
}

static void run_to(const char *expected, size_t n_requests)
{
    rig.expected = expected;
    rig.n_requests = n_requests;
    run_until(rig.loop, as_expected, NULL);
    ck_assert_uint_eq(rig.server.n_requests, n_requests);
    budgets_check(&rig.budgets);
}

static unsigned times_logged(const char *text)
{
    static char log[65536];
    unsigned n = 0;
    ssize_t size = pread(rig.log, log, sizeof(log) - 1, 0);
    ck_assert(size > 0 && size < (ssize_t)sizeof(log) - 1);
    log[size] = '\0';
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        n++;
    return n;
}

TEST_EACH(follows_the_api_server, COUNT_OF(cases))
{
    start(cases[_i].patience, cases[_i].steps, cases[_i].n_steps);
    run_to(cases[_i].budgets, cases[_i].n_steps);
    ck_assert_uint_eq(times_logged("can't read PodDisruptionBudgets: "), cases[_i].told);
}

static bool asked(void *ctx)
{
    return rig.server.n_requests >= *(const size_t *)ctx;
}

/* In each state: a call under way, a change of path due, or one due later. */
TEST_EACH(is_freed_in_every_state, 9)
{
    static const struct script_step steps[] = {ABSENT(V1), ABSENT(BETA)};
    size_t n = (size_t)_i / 3;
    start(RETRY_PATH, steps, COUNT_OF(steps));
    run_until(rig.loop, asked, &n);
    run_turns(rig.loop, _i % 3);
}

struct shortage {
    size_t nth;
    bool armed;
    bool hit;
};

/* Runs from the first answer until the budgets are known: the server is in this process, too. */
static bool known_at_last(void *ctx)
{
    struct shortage *s = ctx;
    if (!s->armed && rig.server.n_requests > 0) {
        fail_alloc_arm(FAIL_ONCE, s->nth);
        s->armed = true;
    }
    if (!as_expected(NULL))
        return false;
    s->hit = fail_alloc_hit();
    fail_alloc_disarm();
    return true;
}

/* One allocation during a list fails: in the end the same budgets are known. */
TEST(a_lack_of_memory_is_made_up_for)
{
    struct script_step steps[12];
    struct shortage s = {.hit = true};
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        steps[i] = (struct script_step)LISTED("/poddisruptionbudgets?",
                                              BUDGET("a", "{\"matchLabels\":{\"k\":\"1\"}}", 1));
    tear_down();
    while (s.hit) {
        s = (struct shortage){.nth = s.nth + 1};
        set_up();
        start(ALL_AT_ONCE, steps, COUNT_OF(steps));
        rig.expected = "a 1";
        rig.n_requests = 1;
        run_until(rig.loop, known_at_last, &s);
        tear_down();
    }
    set_up();
    ck_assert_uint_gt(s.nth, 3);
}

static enum errc make_and_free(void *ctx)
{
    struct budget_feed *f = NULL;
    struct err e = ERR_INIT;
    (void)ctx;
    enum errc code = budget_feed_new(&rig.settings, &f, &e);
    ck_assert_int_eq(code == OK, f != NULL);
    f = budget_feed_free(f);
    return code;
}

TEST(is_made_whole_or_not_at_all)
{
    start(RETRY_PATH, NULL, 0);
    ck_assert_uint_gt(fail_alloc_each(make_and_free, NULL), 3);
}

int main(void)
{
    TCase *tc = unit_case("budget_feed");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
