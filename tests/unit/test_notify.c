/* The supervisor's end is a real datagram socket: by path, and in the abstract namespace. */
#include "io/notify.h"
#include "on_loop.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct ear {
    char folder[32];
    char address[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    struct loop *loop;
    struct loop_fd in;
    int heard;
    int wanted;
    bool done;
    char text[256];
};

static void ear_hear(struct loop_fd *f, uint32_t events)
{
    struct ear *e = CONTAINER_OF(f, struct ear, in);
    (void)events;
    ssize_t n = recv(f->fd, e->text, sizeof(e->text) - 1, 0);
    ck_assert_int_gt(n, 0);
    e->text[n] = '\0';
    e->done = ++e->heard >= e->wanted;
}

/* Listens at a path in the folder or, if abstract, at a name that no other test has. */
static void ear_open(struct ear *e, bool abstract)
{
    struct err why = ERR_INIT;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *e = (struct ear){.folder = "/tmp/notify.XXXXXX", .in = {.fd = -1, .ready = ear_hear}};
    ck_assert_ptr_nonnull(mkdtemp(e->folder));
    int n = snprintf(e->address, sizeof(e->address), "%s%s/ear", abstract ? "@" : "", e->folder);
    memcpy(at.sun_path, e->address, (size_t)n);
    if (abstract)
        at.sun_path[0] = '\0';
    e->loop = loop_make();
    e->in.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    e->in.events = 1; /* EPOLLIN */
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n);
    ck_assert_int_eq(bind(e->in.fd, (struct sockaddr *)&at, bytes), 0);
    ck_assert_ok(loop_fd_add(e->loop, &e->in, &why), &why);
}

static void ear_close(struct ear *e)
{
    loop_fd_del(&e->in);
    (void)close(e->in.fd);
    e->loop = loop_free(e->loop);
    if (e->address[0] == '/')
        (void)unlink(e->address);
    (void)rmdir(e->folder);
}

static void ear_wait(struct ear *e, int wanted)
{
    e->wanted = e->heard + wanted;
    e->done = false;
    run_until(e->loop, until_flag, &e->done);
}

TEST_EACH(what_is_sent_is_heard, 2)
{
    struct ear e;
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    ear_open(&e, _i == 1);
    ck_assert_ok(notify_open(&n, e.loop, str_of(e.address), &why), &why);
    notify_send(&n, STR("READY=1\nSTATUS=listening"));
    ear_wait(&e, 1);
    ck_assert_str_eq(e.text, "READY=1\nSTATUS=listening");
    ck_assert_int_eq(e.heard, 1);
    notify_close(&n);
    ear_close(&e);
}

TEST(watchdog_beats_until_closed)
{
    struct ear e;
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    ear_open(&e, false);
    ck_assert_ok(notify_open(&n, e.loop, str_of(e.address), &why), &why);
    uint64_t began = loop_clock_ms(e.loop);
    notify_watchdog(&n, 40);
    ck_assert_uint_eq(n.beat_ms, 20);
    ear_wait(&e, 3);
    ck_assert_str_eq(e.text, "WATCHDOG=1");
    ck_assert_uint_ge(loop_clock_ms(e.loop) - began,
                      UINT64_C(40)); /* since the start of the turn */
    notify_watchdog(&n, 0);
    ck_assert(!timer_armed(&n.beat));
    notify_watchdog(&n, 1);
    ck_assert(timer_armed(&n.beat));
    notify_close(&n);
    ck_assert(!timer_armed(&n.beat));
    ear_close(&e);
}

TEST_EACH(nobody_is_told_nothing, 2)
{
    struct loop *l = loop_make();
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    notify_close(&n);
    ck_assert_ok(notify_open(&n, l, _i == 0 ? STR_NULL : STR(""), &why), &why);
    ck_assert_int_eq(n.fd, -1);
    notify_send(&n, STR("READY=1"));
    notify_watchdog(&n, 40);
    ck_assert(!timer_armed(&n.beat));
    notify_close(&n);
    ck_assert_ptr_null(loop_free(l));
}

/* If the supervisor no longer listens, the process neither ends nor waits. */
TEST(deaf_ear_is_no_failure)
{
    struct ear e;
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    ear_open(&e, false);
    ck_assert_ok(notify_open(&n, e.loop, str_of(e.address), &why), &why);
    for (int i = 0; i < 5000; i++) /* more than a socket's queue holds */
        notify_send(&n, STR("WATCHDOG=1"));
    (void)unlink(e.address);
    notify_send(&n, STR("STOPPING=1"));
    notify_close(&n);
    ear_close(&e);
}

TEST_EACH(address_that_is_none, 3)
{
    char longest[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1] = "/";
    const char *wrong[] = {"run/notify", "vsock:2:1234", longest};
    struct loop *l = loop_make();
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    memset(longest + 1, 'a', sizeof(longest) - 2);
    ck_assert_int_eq(notify_open(&n, l, str_of(wrong[_i]), &why), ERR_SYNTAX);
    ck_assert_ptr_nonnull(strstr(why.text, wrong[_i]));
    ck_assert_int_eq(n.fd, -1);
    longest[sizeof(longest) - 2] = '\0'; /* one byte shorter is valid */
    if (_i == 2)
        ck_assert_ok(notify_open(&n, l, str_of(longest), &why), &why);
    notify_close(&n);
    ck_assert_ptr_null(loop_free(l));
}

/* WATCHDOG_PID names another process, is absent, or names this one; a period that is no number. */
TEST(environment)
{
    struct ear e;
    struct notify n = NOTIFY_INIT;
    struct err why = ERR_INIT;
    char own[32];
    ear_open(&e, false);
    (void)snprintf(own, sizeof(own), "%d", (int)getpid());

    const struct {
        struct str usec;
        struct str pid;
        uint64_t beat_ms;
    } cases[] = {{STR("80000"), STR("1"), 0},
                 {STR("80000"), STR_NULL, 40},
                 {STR("80000"), str_of(own), 40},
                 {STR_NULL, STR_NULL, 0},
                 {STR("soon"), STR_NULL, 0}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct notify_environment v = {.socket = str_of(e.address),
                                       .watchdog_usec = cases[i].usec,
                                       .watchdog_pid = cases[i].pid};
        ck_assert_ok(notify_open_environment(&n, e.loop, &v, &why), &why);
        ck_assert_uint_eq(n.beat_ms, cases[i].beat_ms);
        notify_close(&n);
    }
    struct notify_environment wrong = {.socket = STR("relative")};
    ck_assert_int_eq(notify_open_environment(&n, e.loop, &wrong, &why), ERR_SYNTAX);
    ck_assert_ptr_nonnull(strstr(why.text, "NOTIFY_SOCKET"));
    ear_close(&e);
}
