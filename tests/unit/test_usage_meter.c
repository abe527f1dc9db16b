/* What pods use, from the double of NVIDIA's library, a /proc of our own and the pods' statuses. */
#include "node/usage/usage_meter.h"

#include "base/log.h"

#define REAL_CLOCK
#include "on_loop.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEX63         "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID(c)         c HEX63
#define CARD0         "card uuid=GPU-0 name=A100 bus=1 minor=0 mib=40960 used=9000\n"
#define CARD1         "card uuid=GPU-1 name=A100 bus=2 minor=1 mib=40960 used=500\n"
#define NODE(pid, id) put(pid, "0::/kubepods/pod1/" id "\n")

static struct {
    char root[64];
    struct loop *loop;
    struct kubeconfig config;
    struct kube_api *api;
    struct events *events;
    struct gpu_watch *gpu;
    struct containers containers;
    struct usage_meter *meter;
} t;

static void put(const char *name, const char *content)
{
    char path[256];
    char fresh[256];
    (void)snprintf(path, sizeof(path), "%s/%s", t.root, name);
    (void)snprintf(fresh, sizeof(fresh), "%s/new", t.root);
    if (strcmp(name, "world") != 0) {
        (void)mkdir(path, 0700);
        (void)snprintf(path, sizeof(path), "%s/%s/cgroup", t.root, name);
    }
    FILE *f = fopen(fresh, "we");
    ck_assert_ptr_nonnull(f);
    (void)fputs(content, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(rename(fresh, path), 0);
}

static void promises(void *ctx, uint32_t card, usage_promise_fn *each, void *each_ctx)
{
    const struct usage_owner one = {STR("u1"), STR("ns"), STR("one")};
    const struct usage_owner two = {STR("u2"), STR("ns"), STR("two")};
    const struct usage_owner idle = {STR("u3"), STR("ns"), STR("idle")};
    ck_assert_ptr_eq(ctx, &t);
    if (card == 0)
        each(each_ctx, &one, UINT64_C(4000) << 20);
    if (card == 1)
        each(each_ctx, &idle, UINT64_C(100) << 20);
    each(each_ctx, &two, card == 0 ? UINT64_C(2000) << 20 : 0);
}

static void add_pod(const char *uid, const char *name, const char *id)
{
    char json[512];
    (void)snprintf(json, sizeof(json),
                   "{\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":"
                   "\"containerd://%s\",\"state\":{\"running\":{}}}]}}",
                   id);
    const struct pod_view v = {.uid = str_of(uid), .namespace = STR("ns"), .name = str_of(name)};
    containers_set(&t.containers, &v, str_of(json));
}

static void open_with(const char *world, uint64_t late_ms, uint64_t wait_ms)
{
    struct err e = ERR_INIT;
    char path[128];
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)snprintf(t.root, sizeof(t.root), "/tmp/cardpack-test-usage-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t.root));
    (void)snprintf(path, sizeof(path), "%s/world", t.root);
    ck_assert_int_eq(setenv("CARDPACK_NVML_WORLD", path, 1), 0);
    put("world", world);
    t.loop = loop_make();
    /* nothing listens there: the ConfigMap is not what is tested here */
    t.config = (struct kubeconfig){.server = STR("http://127.0.0.1:1"), .token = STR("x")};
    struct kube_api_settings api = {.config = &t.config, .user_agent = STR("test")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
    const struct events_settings events = {.loop = t.loop, .api = t.api, .retry_ms = 60000};
    ck_assert_ok(events_new(&events, &t.events, &e), &e);
    containers_init(&t.containers, (struct map_seed){1, 2});
    add_pod("u1", "one", ID("1"));
    add_pod("u2", "two", ID("2"));
    struct gpu_watch_settings gpu = {
        .library = NVML_DOUBLE, .poll_ms = 5 * wait_ms, .wait_ms = wait_ms, .probe_ms = 50};
    ck_assert_ok(gpu_watch_new(t.loop, &gpu, &t.gpu, &e), &e);
    const struct usage_meter_settings s = {.loop = t.loop,
                                           .api = t.api,
                                           .events = t.events,
                                           .node = STR("gpu-7"),
                                           .gpu = t.gpu,
                                           .containers = &t.containers,
                                           .proc = t.root,
                                           .interval_ms = 20,
                                           .write_ms = 60000,
                                           .late_ms = late_ms,
                                           .promises = promises,
                                           .ctx = &t};
    ck_assert_ok(usage_meter_new(&s, &t.meter, &e), &e);
}

static void set_up(void)
{
    open_with(CARD0 CARD1, 0, 10);
}

static void set_up_late(void)
{
    open_with(CARD0 CARD1, 100, 10);
}

static void set_up_patient(void)
{
    char world[4096];
    size_t n = 0;
    for (unsigned i = 0; i < 32; i++)
        n += (size_t)snprintf(world + n, sizeof(world) - n,
                              "card uuid=GPU-%u name=A100 bus=%u minor=%u mib=40960 used=500\n", i,
                              i + 1, i);
    open_with(world, 0, 200);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void tear_down(void)
{
    t.meter = usage_meter_free(t.meter);
    t.gpu = gpu_watch_free(t.gpu, 5000);
    containers_done(&t.containers);
    t.events = events_free(t.events);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
    ck_assert_int_eq(nftw(t.root, drop, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Waits for two whole rounds: the first may have begun before a change. */
static void rounds(void)
{
    uint64_t n = usage_meter_counts(t.meter).rounds;
    run_while(t.loop, usage_meter_counts(t.meter).rounds < n + 2);
}

/* MiB; -1: not known; -2: the pod is not on the card */
static long uses(const char *uid, uint32_t card)
{
    const struct usage_tally *l = usage_meter_tally(t.meter);
    for (size_t i = 0; i < l->n_uses; i++) {
        const struct usage_use *u = l->uses[i];
        if (u->there && u->card == card && str_eq(u->pod.uid, str_of(uid)))
            return u->known ? (long)(u->bytes >> 20) : -1;
    }
    return -2;
}

START_TEST(pods_and_others)
{
    NODE("101", ID("1"));
    NODE("102", ID("2"));
    NODE("103", ID("1"));
    NODE("104", ID("9"));           /* a container of no pod */
    put("105", "0::/user.slice\n"); /* none */
    put("world", CARD0 "process pid=101 mib=3000\nprocess pid=102 mib=1000\n"
                       "process pid=103 mib=1100\nprocess pid=104 mib=50\n"
                       "process pid=105 mib=60\n" CARD1 "process pid=102 mib=300\n");
    rounds();
    const struct usage_tally *l = usage_meter_tally(t.meter);
    ck_assert_int_eq(uses("u1", 0), 4100);
    ck_assert_int_eq(uses("u2", 0), 1000);
    ck_assert_int_eq(uses("u2", 1), 300);
    ck_assert_int_eq(uses("u3", 1), 0);
    ck_assert_int_eq(uses("u1", 1), -2);
    ck_assert_uint_eq(l->n_cards, 2);
    ck_assert_uint_eq(l->cards[0].used >> 20, 9000);
    ck_assert(l->cards[0].other_known);
    ck_assert_uint_eq(l->cards[0].other >> 20, 9000 - 5100);
    ck_assert_str_eq(l->cards[1].uuid, "GPU-1");
    ck_assert_uint_eq(usage_tally_over(l), 2); /* 4,100 of 4,000; 300 of 0 on card 1 */
    ck_assert(!usage_meter_counts(t.meter).blind);
    usage_meter_gone(t.meter, STR("u1"));
    ck_assert_int_eq(uses("u1", 0), -2);
}

/* The container of the process may be any pod's, as long as no status has its ID: no pod without a
 * process uses 0 then. */
START_TEST(a_container_that_is_not_known_yet)
{
    NODE("101", ID("1"));
    NODE("104", ID("9"));
    put("world", CARD0 "process pid=101 mib=3000\nprocess pid=104 mib=50\n" CARD1);
    rounds();
    ck_assert_int_eq(uses("u1", 0), 3000);
    ck_assert_int_eq(uses("u2", 0), -1);
    ck_assert_int_eq(uses("u3", 1), 0); /* there is no such process on that card */
    ck_assert(!usage_meter_counts(t.meter).blind);
    add_pod("u2", "two", ID("9"));
    rounds();
    ck_assert_int_eq(uses("u2", 0), 50);
}

/* The process of a container that no status has may be the pod's: then its figure is the least. */
START_TEST(an_event_says_what_is_known)
{
    static const struct {
        const char *world;
        const char *text;
    } cases[] = {
        {CARD0 "process pid=101 mib=4100\n" CARD1,
         "\"uses 4,100 MiB of card 0, its share is 4,000 MiB\""},
        {CARD0 "process pid=101 mib=4100\nprocess pid=104 mib=50\n" CARD1,
         "\"uses at least 4,100 MiB of card 0, its share is 4,000 MiB\""},
    };

    static char text[65536];
    int log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(log, 0);
    log_setup(log, LOG_LEVEL_DEBUG, LOG_FORMAT_LOGFMT);
    NODE("101", ID("1"));
    NODE("104", ID("9"));
    put("world", cases[_i].world);
    run_while(t.loop, pread(log, text, sizeof(text) - 1, 0) <= 0 ||
                          strstr(text, "reason=GPUMemoryOverShare") == NULL);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    ck_assert_int_eq(close(log), 0);
    ck_assert_msg(strstr(text, cases[_i].text) != NULL, "%s", text);
}

/* Clients of MPS are in a list of their own; a process may be in both. */
START_TEST(clients_of_mps)
{
    NODE("101", ID("1"));
    NODE("102", ID("2"));
    put("world",
        CARD0 "process pid=102 mib=1000\nmps pid=101 mib=3000\nmps pid=102 mib=1000\n" CARD1);
    rounds();
    ck_assert_int_eq(uses("u1", 0), 3000);
    ck_assert_int_eq(uses("u2", 0), 1000);
    ck_assert_uint_eq(usage_meter_tally(t.meter)->cards[0].other >> 20, 5000);
}

/* The program is not in the host's PID namespace. */
START_TEST(blind)
{
    put("world", CARD0 "process pid=101 mib=3000\n" CARD1);
    rounds();
    ck_assert(usage_meter_counts(t.meter).blind);
    ck_assert_int_eq(uses("u1", 0), -1);
    ck_assert_int_eq(uses("u3", 1), 0); /* no process at all there */
    NODE("101", ID("1"));
    rounds();
    ck_assert(!usage_meter_counts(t.meter).blind);
    ck_assert_int_eq(uses("u1", 0), 3000);
    put("world", CARD0 "process pid=109 mib=3000\n" CARD1);
    rounds();
    ck_assert(usage_meter_counts(t.meter).blind);
    put("world", CARD0 CARD1); /* without processes nothing can be told */
    rounds();
    ck_assert(!usage_meter_counts(t.meter).blind);
    ck_assert_int_eq(uses("u1", 0), 0);
}

/* More than are read in one turn of the loop. */
START_TEST(many_processes)
{
    static char world[65536];
    size_t n = (size_t)snprintf(world, sizeof(world), "%s", CARD1 CARD0);
    for (unsigned pid = 1000; pid < 1500; pid++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%u", pid);
        if (pid % 2 == 0)
            NODE(name, ID("1"));
        else
            NODE(name, ID("2"));
        n += (size_t)snprintf(world + n, sizeof(world) - n, "process pid=%u mib=2\n", pid);
    }
    put("world", world);
    run_while(t.loop, uses("u2", 0) < 0);
    rounds();
    ck_assert_int_eq(uses("u1", 0), 500);
    ck_assert_int_eq(uses("u2", 0), 500);
}

START_TEST(a_lost_card)
{
    NODE("101", ID("1"));
    put("world", CARD0 "process pid=101 mib=3000\n" CARD1);
    rounds();
    ck_assert_int_eq(uses("u1", 0), 3000);
    put("world", "card uuid=GPU-0 name=A100 bus=1 minor=0 mib=40960 error=15\n" CARD1);
    run_while(t.loop, uses("u1", 0) >= 0);
    rounds();
    const struct usage_tally *l = usage_meter_tally(t.meter);
    for (size_t i = 0; i < l->n_cards; i++)
        ck_assert(l->cards[i].index == 1 || !l->cards[i].known);
}

START_TEST(a_driver_that_hangs)
{
    NODE("101", ID("1"));
    put("world", CARD0 "process pid=101 mib=3000\n" CARD1);
    run_while(t.loop, uses("u1", 0) != 3000);
    put("world", CARD0 CARD1 "hang\n");
    run_while(t.loop, uses("u1", 0) != -1);
    ck_assert(!usage_meter_tally(t.meter)->cards[0].known);
    put("world", CARD0 "process pid=101 mib=2000\n" CARD1);
    run_while(t.loop, uses("u1", 0) != 2000);
}

/* The thread waits for events between two requests, as long as it likes: 200 ms here, a second as a
 * rule. A round is one such wait, and not one for each card. */
START_TEST(a_round_of_many_cards_waits_once)
{
    run_while(t.loop, usage_meter_tally(t.meter)->n_cards < 32);
    uint64_t first = usage_meter_counts(t.meter).rounds;
    run_while(t.loop, usage_meter_counts(t.meter).rounds == first);
    uint64_t began_ms = loop_now_ms(t.loop);
    run_while(t.loop, usage_meter_counts(t.meter).rounds == first + 1);
    ck_assert_uint_lt(loop_now_ms(t.loop) - began_ms, 32 * 200 / 2);
    ck_assert_uint_eq(usage_meter_counts(t.meter).failures, 0);
}

int main(void)
{
    TCase *c = unit_case("usage_meter");
    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, pods_and_others);
    tcase_add_test(c, a_container_that_is_not_known_yet);
    tcase_add_loop_test(c, an_event_says_what_is_known, 0, 2);
    tcase_add_test(c, clients_of_mps);
    tcase_add_test(c, blind);
    tcase_add_test(c, many_processes);
    tcase_add_test(c, a_lost_card);
    c = unit_case("hangs");
    tcase_add_checked_fixture(c, set_up_late, tear_down);
    tcase_add_test(c, a_driver_that_hangs);
    c = unit_case("patient");
    tcase_add_checked_fixture(c, set_up_patient, tear_down);
    tcase_add_test(c, a_round_of_many_cards_waits_once);
    return unit_run();
}
