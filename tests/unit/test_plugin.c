/* The device plugin with a kubelet: registration, lists, calls. */
#include "fail_alloc.h"
#include "node/limit.h"
#include "plugin_rig.h"

static struct rig rig;

static void set_up(void)
{
    rig_make(&rig);
}

static void tear_down(void)
{
    rig_done(&rig);
}

static void start(void)
{
    rig_start_kubelet(&rig);
    rig_offer(&rig, 2, true);
    rig_await_registered(&rig, 1);
}

/* The list that the kubelet got: a new socket of the kubelet makes the plugin end the stream. */
static struct str end_watch(void)
{
    rig.kubelet = grpc_server_free(rig.kubelet);
    rig_start_kubelet(&rig);
    rig.never_watches = true; /* the next stream would replace this one */
    run_while(rig.loop, !rig.watch.done);
    ck_assert_ok(rig.watch.request.result, &rig.watch.request.err);
    return buf_str(&rig.watch.request.reply);
}

static size_t count_devices(struct str list, size_t *ret_unhealthy)
{
    struct err e = ERR_INIT;
    struct pb_field f;
    size_t n = 0;
    *ret_unhealthy = 0;
    for (struct pb_reader r = pb_read(list, &e); pb_next(&r, &f); n++) {
        struct pb_field d;
        struct pb_reader device = pb_inner(&r, &f);
        while (pb_next(&device, &d))
            *ret_unhealthy += d.number == 2 && str_eq(d.bytes, STR("Unhealthy"));
    }
    ck_assert_ok(e.code, &e);
    return n;
}

TEST(test_registers)
{
    struct buf expected;
    size_t unhealthy;
    start();
    ck_assert(rig.restarted); /* not known */
    ck_assert_uint_eq(rig.registers, 1);
    buf_init(&expected, KIB);
    register_request_write(&expected,
                           &(struct register_request){.endpoint = STR("cardpack.sock"),
                                                      .resource = STR("aliyun.com/gpu-mem"),
                                                      .options = {true, true}});
    ck_assert(str_eq((struct str){rig.request, rig.request_n}, buf_str(&expected)));
    buf_done(&expected);
    ck_assert_uint_eq(count_devices(end_watch(), &unhealthy), 4);
    ck_assert_uint_eq(unhealthy, 0);
}

TEST(test_nothing_before_the_offer)
{
    struct stat st;
    rig_start_kubelet(&rig);
    run_turns(rig.loop, 5);
    ck_assert_uint_eq(rig.registers, 0);
    ck_assert_int_ne(lstat(rig.ours, &st), 0);
}

TEST(test_most_devices)
{
    size_t unhealthy;
    rig_start_kubelet(&rig);
    rig_offer(&rig, LIMIT_DEVICES / 2, false);
    rig_await_registered(&rig, 1);
    rig_offer(&rig, LIMIT_DEVICES / 2 + 1, true); /* refused: the list stays */
    run_turns(rig.loop, 5);
    ck_assert_uint_eq(count_devices(end_watch(), &unhealthy), LIMIT_DEVICES);
    ck_assert_uint_eq(unhealthy, LIMIT_DEVICES / 2);
}

TEST(test_too_many_devices)
{
    struct stat st;
    rig_start_kubelet(&rig);
    rig_offer(&rig, LIMIT_DEVICES, true);
    run_turns(rig.loop, 5);
    ck_assert_int_ne(lstat(rig.ours, &st), 0);
    rig_offer(&rig, 1, true);
    rig_await_registered(&rig, 1);
}

TEST(test_stream_is_gone)
{
    start();
    rig_unwatch(&rig);
    run_while(rig.loop, plugin_is_registered(rig.plugin));
    rig_await_registered(&rig, 2);
    ck_assert(!rig.restarted);
}

/* As a kubelet starts: it removes the sockets, and then creates its own. */
TEST(test_kubelet_restarts)
{
    start();
    rig_stop_kubelet(&rig);
    run_while(rig.loop, plugin_is_registered(rig.plugin));
    ck_assert_int_eq(unlink(rig.ours), 0);
    rig_start_kubelet(&rig);
    rig_await_registered(&rig, 2);
    ck_assert(rig.restarted);
}

TEST(test_kubelet_comes_late)
{
    rig_offer(&rig, 2, true);
    run_turns(rig.loop, 5);
    rig_start_kubelet(&rig);
    rig_await_registered(&rig, 1);
    ck_assert(rig.restarted);
}

TEST(test_own_socket_is_removed)
{
    struct stat st;
    start();
    ck_assert_int_eq(unlink(rig.ours), 0);
    rig_await_registered(&rig, 2);
    ck_assert(!rig.restarted);
    ck_assert_int_eq(lstat(rig.ours, &st), 0);
}

TEST(test_folder_comes_late)
{
    ck_assert_int_eq(rmdir(rig.dir), 0);
    rig_offer(&rig, 2, true);
    run_turns(rig.loop, 5);
    rig_make_dir(&rig);
    rig_start_kubelet(&rig);
    rig_await_registered(&rig, 1);
}

TEST(test_folder_is_replaced)
{
    start();
    rig_stop_kubelet(&rig);
    (void)unlink(rig.ours);
    ck_assert_int_eq(rmdir(rig.dir), 0);
    run_while(rig.loop, plugin_is_registered(rig.plugin));
    rig_make_dir(&rig);
    rig_start_kubelet(&rig);
    rig_await_registered(&rig, 2);
    ck_assert(rig.restarted);
}

/* ---- calls ---- */

static void ask(struct call *c, const char *path, struct str message)
{
    rig_call(&rig, c, path, message, rig_call_done);
    run_while(rig.loop, !c->done);
}

/* One container with the devices 0.1 and 1.0; for Allocate and for GetPreferredAllocation. */
#define TWO_DEVICES                  \
    ((struct str){"\x0a\x0a\x0a\x03" \
                  "0.1\x0a\x03"      \
                  "1.0",             \
                  12})

TEST(test_calls)
{
    struct call c;
    start();
    ask(&c, DEVICE_PLUGIN_ALLOCATE, TWO_DEVICES);
    ck_assert_ok(c.request.result, &c.request.err);
    ck_assert_str_is(buf_str(&c.request.reply), "answer");
    ck_assert_str_eq(rig.said, "0.1 1.0 ");
    grpc_request_done(&c.request);
    ask(&c, DEVICE_PLUGIN_PREFERRED, (struct str){"\x0a\x02\x18\x07", 4});
    ck_assert_str_is(buf_str(&c.request.reply), "preferred");
    ck_assert_str_eq(rig.said, "prefer 7");
    grpc_request_done(&c.request);
    ask(&c, DEVICE_PLUGIN_PRE_START,
        (struct str){"\x0a\x03"
                     "0.1",
                     5});
    ck_assert_uint_eq(c.request.status, GRPC_FAILED_PRECONDITION);
    ck_assert_str_eq(rig.said, "start 1");
    grpc_request_done(&c.request);
}

TEST(test_bad_messages)
{
    static const char *const paths[] = {DEVICE_PLUGIN_ALLOCATE, DEVICE_PLUGIN_PREFERRED,
                                        DEVICE_PLUGIN_PRE_START};
    start();
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct call c;
        ask(&c, paths[i], STR("\x0a"));
        ck_assert_uint_eq(c.request.status, GRPC_INVALID_ARGUMENT);
        grpc_request_done(&c.request);
    }
    ck_assert_str_eq(rig.said, "");
}

/* A call that the owner holds is gone with the socket, and with the plugin. */
TEST(test_held_calls)
{
    struct call c;
    start();
    rig.keeps = true;
    rig_call(&rig, &c, DEVICE_PLUGIN_ALLOCATE, TWO_DEVICES, rig_call_done);
    run_while(rig.loop, rig.kept == NULL);
    ck_assert_int_eq(unlink(rig.ours), 0);
    run_while(rig.loop, !c.done);
    ck_assert_int_eq(c.request.result, ERR_UNAVAILABLE);
    ck_assert_uint_eq(rig.gone, 1);
    grpc_request_done(&c.request);
    rig_await_registered(&rig, 2);
    rig_call(&rig, &c, DEVICE_PLUGIN_ALLOCATE, TWO_DEVICES, rig_call_done);
    run_while(rig.loop, rig.kept == NULL);
    rig.plugin = plugin_free(rig.plugin);
    ck_assert_uint_eq(rig.gone, 2);
    run_while(rig.loop, !c.done);
    grpc_request_done(&c.request);
}

TEST(test_long_folder)
{
    char dir[256];
    struct err e = ERR_INIT;
    struct plugin *p = NULL;
    struct plugin_settings s = {.loop = rig.loop, .dir = dir, .ops = &rig_ops};
    memset(dir, 'd', sizeof(dir));
    dir[LIMIT_KUBELET_DIR + 1] = 0;
    ck_assert_int_eq(plugin_new(&s, &p, &e), ERR_RANGE);
    dir[LIMIT_KUBELET_DIR] = 0;
    ck_assert_ok(plugin_new(&s, &p, &e), &e);
    ck_assert_ptr_null(plugin_free(p));
}

/* The present list is kept if there is no memory for the next one. */
TEST(test_without_memory)
{
    size_t unhealthy;
    start();
    fail_alloc_arm(FAIL_FROM_THEN_ON, 1);
    rig_offer(&rig, 50, true);
    fail_alloc_disarm();
    ck_assert(fail_alloc_hit());
    ck_assert_uint_eq(count_devices(end_watch(), &unhealthy), 4);
}

int main(void)
{
    TCase *t = unit_case("plugin");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
