/* The watch on the double of NVIDIA's library: the thread, an XID, and a library that is not there.
 */
#include "gpu/gpu_watch.h"
#include "on_loop.h"

#include <stdio.h>
#include <unistd.h>

static char world[] = "/tmp/gpu_watch.XXXXXX";

static void write_world(const char *text)
{
    char fresh[64];
    (void)snprintf(fresh, sizeof(fresh), "%s.new", world);
    FILE *f = fopen(fresh, "we");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(rename(fresh, world), 0);
}

START_TEST(an_xid_reaches_the_list)
{
    struct err e = ERR_INIT;
    struct gpu_watch *w = NULL;
    struct loop *l = loop_make();
    size_t n = 0;
    ck_assert_int_ge(mkstemp(world), 0);
    ck_assert_int_eq(setenv("CARDPACK_NVML_WORLD", world, 1), 0);
    write_world("card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n");
    struct gpu_watch_settings s = {.library = NVML_DOUBLE, .poll_ms = 50, .wait_ms = 20};
    ck_assert_ok(gpu_watch_new(l, &s, &w, &e), &e);
    run_while(l, gpu_watch_state(w).phase == GPU_WATCH_STARTING);
    const struct gpu_card *c = gpu_watch_cards(w, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_is(c->uuid, "GPU-1");
    ck_assert_uint_eq(c->memory_bytes, UINT64_C(40960) << 20);
    ck_assert_int_eq(c->health, GPU_HEALTHY);
    write_world("card uuid=GPU-1 name=A100 bus=1 minor=0 mib=40960\n"
                "event number=1 uuid=GPU-1 xid=79\n");
    run_while(l, gpu_watch_find(w, 0)->health != GPU_UNHEALTHY);
    ck_assert_uint_eq(gpu_watch_state(w).last_xid, 79);
    (void)gpu_watch_free(w, 5000);
    (void)loop_free(l);
    (void)unlink(world);
}

END_TEST

START_TEST(a_missing_library_is_a_state)
{
    struct err e = ERR_INIT;
    struct gpu_watch *w = NULL;
    struct loop *l = loop_make();
    struct gpu_watch_settings s = {.library = "/nonexistent/libnvidia-ml.so.1"};
    ck_assert_ok(gpu_watch_new(l, &s, &w, &e), &e);
    run_while(l, gpu_watch_state(w).phase == GPU_WATCH_STARTING);
    ck_assert_int_eq(gpu_watch_state(w).phase, GPU_WATCH_NO_LIBRARY);
    (void)gpu_watch_free(w, 5000);
    (void)loop_free(l);
}

END_TEST

int main(void)
{
    Suite *s = suite_create("gpu_watch");
    TCase *c = tcase_create("gpu_watch");
    tcase_add_test(c, an_xid_reaches_the_list);
    tcase_add_test(c, a_missing_library_is_a_state);
    suite_add_tcase(s, c);
    return unit_main(s);
}
