/* The route /healthz of cardpack-node, on the double of NVIDIA's library and a clock that the test
 * sets: when the kubelet is to start a new container. */
#include "gpu_rig.h"
#include "node/node_program.h"
#include "raw_conn.h"

#include <time.h>

#define CARD(n)  "card uuid=GPU-" n " name=A100 bus=" n " minor=" n " mib=40960 "
#define PROBE_MS UINT64_C(10)

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);

static time_t ahead_s; /* of the loop's clock */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = __real_clock_gettime(clock, ret);
    if (clock == CLOCK_BOOTTIME)
        ret->tv_sec += ahead_s;
    return rc;
}

static struct gpu_rig rig;
static struct node_program node;

static void open_node(const char *world, const char *library, uint64_t probe_ms)
{
    struct err e = ERR_INIT;
    gpu_rig_open(&rig, world);
    rig.s.library = library;
    rig.s.probe_ms = probe_ms;
    rig.s.hang_ms = 24 * HOUR_MS;
    gpu_rig_start(&rig);
    node.gpu = rig.watch;
    const struct http_server_settings http = {.address = STR("127.0.0.1"),
                                              .max_body = KIB,
                                              .max_connections = 2,
                                              .request_timeout_ms = HOUR_MS,
                                              .idle_seconds = 3600,
                                              .stall_ms = HOUR_MS,
                                              .handle = node_http_handle,
                                              .too_large = node_http_too_large,
                                              .ctx = &node};
    ck_assert_ok(http_server_new(rig.loop, &http, &node.server, &e), &e);
}

static void close_node(void)
{
    node.server = http_server_free(node.server);
    gpu_rig_close(&rig);
}

static void healthz_is(const char *status, const char *body)
{
    struct raw_conn c;
    raw_conn_connect(&c, rig.loop, http_server_port(node.server));
    raw_conn_send(&c, STR("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
    run_while(rig.loop, raw_conn_count(&c, "\n\r\n") == 0 || c.in.p[c.in.n - 1] != '\n');
    buf_putc(&c.in, '\0');
    ck_assert_ptr_nonnull(strstr(c.in.p, status));
    ck_assert_msg(strstr(c.in.p, body) != NULL, "%s", c.in.p);
    raw_conn_close(&c);
}

/* Five minutes without the driver. */
static void restarts_after_a_while(const char *why)
{
    run_while(rig.loop, gpu_watch_state(rig.watch).shut_ms == 0);
    healthz_is("200", "ok");
    ahead_s += 200;
    healthz_is("200", "ok");
    ahead_s += 100;
    for (int i = 0; i < 5 && gpu_watch_state(rig.watch).phase == GPU_WATCH_RUNNING; i++)
        gpu_rig_poll(&rig); /* whatever NVML says next */
    healthz_is("503", why);
}

/* Each with NVML opened again all the time, as a card is missing or lost, and never. */
TEST_EACH(a_driver_that_is_away_for_five_minutes, 16)
{
    static const struct {
        const char *world;
        const char *why;
    } cases[] = {
        {CARD("1") "\ninit error=9\n", "nvmlInit: NVML error 9"},   /* unloaded */
        {CARD("1") "\ninit error=18\n", "nvmlInit: NVML error 18"}, /* exchanged */
        {CARD("1") "\ninit error=999\n", "nvmlInit: NVML error 999"},
        {CARD("1") "error=4\n" CARD("2") "error=4\n", "answers for no card"}, /* no device nodes */
        {CARD("1") "error=999\n" CARD("2") "error=999\n", "answers for no card"},
        {CARD("1") "memory=4\n" CARD("2") "error=999\n", "answers for no card"},
        /* beside one that needs a reset, or is lost until NVML is opened again */
        {CARD("1") "error=16\n" CARD("2") "error=4\n", "answers for no card"},
        {CARD("1") "error=4\n" CARD("2") "error=15\n", "answers for no card"},
    };

    size_t n = (size_t)_i / 2;
    open_node(CARD("1") "\n" CARD("2") "\n", NVML_DOUBLE, _i % 2 == 0 ? PROBE_MS : HOUR_MS);
    gpu_rig_until(&rig, "1=GPU-1 2=GPU-2");
    ahead_s += 600;
    healthz_is("200", "ok");
    world_write(&rig.world, cases[n].world);
    restarts_after_a_while(cases[n].why);
    world_write(&rig.world, CARD("1") "\n" CARD("2") "\n");
    run_while(rig.loop, gpu_watch_state(rig.watch).shut_ms != 0);
    healthz_is("200", "ok");
    close_node();
}

/* A new container may have it. */
TEST(a_library_that_is_missing_from_the_start)
{
    open_node("", "/nonexistent/libnvidia-ml.so.1", PROBE_MS);
    restarts_after_a_while("/nonexistent/libnvidia-ml.so.1: cannot open");
    close_node();
}

/* A new container does not help: one card answers, there is none, a call hangs, or a card is lost.
 */
TEST_EACH(what_a_new_container_does_not_mend, 4)
{
    static const char *const worlds[] = {
        CARD("1") "error=4\n" CARD("2") "\n",
        "",
        CARD("1") "error=15\n" CARD("2") "error=15\n",
        CARD("1") "error=16\n" CARD("2") "error=16\n",
    };
    open_node(CARD("1") "\n" CARD("2") "\n", NVML_DOUBLE, PROBE_MS);
    gpu_rig_until(&rig, "1=GPU-1 2=GPU-2");
    world_write(&rig.world, worlds[_i]);
    run_while(rig.loop, gpu_watch_find(rig.watch, 1)->health != GPU_UNHEALTHY);
    for (int i = 0; i < 10; i++) {
        gpu_rig_poll(&rig);
        ahead_s += 300;
    }
    healthz_is("200", "ok");
    close_node();
}
