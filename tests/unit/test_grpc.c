/* The gRPC client and the gRPC server with each other. */
#include "grpc_rig.h"

#include <sys/socket.h>
#include <sys/un.h>

static struct rig rig;

static void set_up(void)
{
    rig_make(&rig);
}

static void tear_down(void)
{
    rig_done(&rig);
}

#define assert_answer(a, text)                                \
    do {                                                      \
        ck_assert_ok((a)->request.result, &(a)->request.err); \
        ck_assert((a)->request.answered);                     \
        ck_assert_str_is(buf_str(&(a)->request.reply), text); \
        grpc_request_done(&(a)->request);                     \
    } while (0)

#define assert_failed(a, code, part)                                                        \
    do {                                                                                    \
        ck_assert_msg((a)->request.result == (code), "%s", (a)->request.err.text);          \
        ck_assert_msg(strstr((a)->request.err.text, part) != NULL, "\"%s\" without \"%s\"", \
                      (a)->request.err.text, part);                                         \
        grpc_request_done(&(a)->request);                                                   \
    } while (0)

TEST(test_echo)
{
    struct ask a;
    ask_now(&rig, &a, "/t/Echo", STR("hello"));
    assert_answer(&a, "hello");
    ask_now(&rig, &a, "/t/Echo", STR(""));
    assert_answer(&a, "");
    ck_assert_uint_eq(rig.handled, 2);
}

/* Longer than a frame, than the windows, and than a socket holds. */
TEST(test_large)
{
    static const size_t sizes[] = {16379, 16384, 65530, 1 << 20, 12 << 20};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct ask a;
        char *bytes = malloc(sizes[i]);
        ck_assert_ptr_nonnull(bytes);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 31 + (k >> 8));
        ask_now(&rig, &a, "/t/Echo", (struct str){bytes, sizes[i]});
        ck_assert_ok(a.request.result, &a.request.err);
        ck_assert(str_eq(buf_str(&a.request.reply), (struct str){bytes, sizes[i]}));
        grpc_request_done(&a.request);
        free(bytes);
    }
}

TEST(test_errors)
{
    struct ask a;
    char text[2000];
    ask_now(&rig, &a, "/t/Fail", STR("50 % of \"\xc3\xa4\"\n"));
    ck_assert_int_eq(a.request.status, GRPC_FAILED_PRECONDITION);
    assert_failed(&a, ERR_CONFLICT, "grpc.sock: failed precondition: 50 % of \"\xc3\xa4\"\n");
    ask_now(&rig, &a, "/t/Fail", STR(""));
    assert_failed(&a, ERR_CONFLICT, "failed precondition");
    memset(text, 'x', sizeof(text));
    ask_now(&rig, &a, "/t/Fail", (struct str){text, sizeof(text)});
    assert_failed(&a, ERR_CONFLICT, "failed precondition: xxx");
    ask_now(&rig, &a, "/t/None", STR(""));
    ck_assert_msg(a.request.status == GRPC_UNIMPLEMENTED, "%s", a.request.err.text);
    assert_failed(&a, ERR_NOTFOUND, "/t/None on ");
    ask_now(&rig, &a, "/t/Twice", STR("ab"));
    ck_assert(!a.request.answered);
    assert_failed(&a, ERR_SYNTAX, "more than one message");
    ask_now(&rig, &a, "/t/Nothing", STR("ab"));
    assert_failed(&a, ERR_SYNTAX, "no message");
}

TEST(test_parallel)
{
    struct ask asks[2 * LIMIT_GRPC_CALLS]; /* more than the server allows at the same time */
    for (size_t i = 0; i < COUNT_OF(asks); i++)
        ask_start(&rig, &asks[i], "/t/Echo", STR("parallel"));
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        run_while(rig.loop, !asks[i].done);
        assert_answer(&asks[i], "parallel");
    }
}

TEST(test_deadline)
{
    struct ask a = {
        .request = {.path = "/t/Keep", .message = STR("x"), .timeout_ms = 20, .on_done = ask_done}};
    grpc_request_start(rig.client, &a.request);
    run_while(rig.loop, !a.done || rig.gone < 1);
    ck_assert(a.request.result == ERR_TIMEOUT);
    ck_assert_uint_eq(rig.n_kept, 0);
    grpc_request_done(&a.request);
}

TEST(test_cancel)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Keep", STR("x")); /* not even sent */
    grpc_request_cancel(&a.request);
    grpc_request_cancel(&a.request);
    ask_now(&rig, &a, "/t/Echo", STR("x"));
    assert_answer(&a, "x");
    ck_assert_uint_eq(rig.n_kept, 0);
    ask_start(&rig, &a, "/t/Keep", STR("x"));
    run_while(rig.loop, rig.n_kept == 0);
    grpc_request_cancel(&a.request);
    run_while(rig.loop, rig.gone == 0);
    ck_assert(!a.done);
    grpc_request_done(&a.request);
    /* One that has failed and waits for on_done. */
    struct grpc_client *other = NULL;
    struct err e = ERR_INIT;
    ck_assert_ok(grpc_client_new(rig.loop, "missing/socket", &other, &e), &e);
    grpc_request_start(other, &a.request);
    grpc_request_cancel(&a.request);
    run_turns(rig.loop, 3);
    ck_assert(!a.done);
    other = grpc_client_free(other);
}

TEST(test_kept)
{
    struct ask a[3];
    for (size_t i = 0; i < COUNT_OF(a); i++)
        ask_start(&rig, &a[i], "/t/Keep", STR("x"));
    run_while(rig.loop, rig.n_kept < 3);
    ck_assert_str_eq(grpc_call_path(rig.kept[0]), "/t/Keep");
    grpc_call_reply(rig.kept[0], STR("one"));
    grpc_call_send(rig.kept[1], STR("two"));
    ck_assert_uint_gt(grpc_call_unsent(rig.kept[1]), 0);
    run_turns(rig.loop, 3);
    ck_assert_uint_eq(grpc_call_unsent(rig.kept[1]), 0);
    grpc_call_end(rig.kept[1]);
    grpc_call_fail(rig.kept[2], GRPC_UNAVAILABLE, STR("three"));
    rig.n_kept = 0;
    for (size_t i = 0; i < COUNT_OF(a); i++)
        run_while(rig.loop, !a[i].done);
    assert_answer(&a[0], "one");
    assert_answer(&a[1], "two");
    assert_failed(&a[2], ERR_UNAVAILABLE, "unavailable: three");
    ck_assert_uint_eq(rig.gone, 0);
}

/* An error behind messages of a stream comes in its trailers. */
TEST(test_fail_behind_messages)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Keep", STR("x"));
    run_while(rig.loop, rig.n_kept < 1);
    grpc_call_send(rig.kept[0], STR("part"));
    grpc_call_fail(rig.kept[0], GRPC_DATA_LOSS, STR("no more"));
    rig.n_kept = 0;
    run_while(rig.loop, !a.done);
    ck_assert_int_eq(a.request.status, GRPC_DATA_LOSS);
    assert_failed(&a, ERR_INTERNAL, "data loss: no more");
}

TEST(test_limits)
{
    struct ask a;
    char text[1001];
    memset(text, 'x', sizeof(text));
    rig.server = grpc_server_free(rig.server);
    rig.max_message = 1000;
    rig.max_unsent = 500;
    struct err e = ERR_INIT;
    ck_assert_ok(rig_serve(&rig, &e), &e);
    ask_now(&rig, &a, "/t/Echo", (struct str){text, 1001});
    ck_assert_int_eq(a.request.status, GRPC_RESOURCE_EXHAUSTED);
    assert_failed(&a, ERR_LIMIT, "a message of 1001 bytes, at most 1000 are allowed");
    ask_now(&rig, &a, "/t/Echo", (struct str){text, 1000});
    assert_failed(&a, ERR_LIMIT, "the reply is too large");
    ask_now(&rig, &a, "/t/Echo", (struct str){text, 495});
    ck_assert_ok(a.request.result, &a.request.err);
    grpc_request_done(&a.request);
    a = (struct ask){
        .request = {
            .path = "/t/Echo", .message = {text, 100}, .max_reply = 99, .on_done = ask_done}};
    grpc_request_start(rig.client, &a.request);
    run_while(rig.loop, !a.done);
    assert_failed(&a, ERR_LIMIT, "a message of 100 bytes, at most 99 are allowed");
    /* A stream whose messages do not fit is reset, and its owner told. */
    ask_start(&rig, &a, "/t/Keep", STR(""));
    run_while(rig.loop, rig.n_kept < 1);
    struct grpc_call *c = rig.kept[0];
    grpc_call_send(c, (struct str){text, 495});
    grpc_call_send(c, (struct str){text, 1});
    grpc_call_send(c, (struct str){text, 1});
    ck_assert_uint_eq(rig.gone, 0);
    run_while(rig.loop, !a.done || rig.gone == 0);
    assert_failed(&a, ERR_UNAVAILABLE, "the server reset the request (ENHANCE_YOUR_CALM)");
}

TEST(test_server_ends)
{
    struct ask a;
    struct err e = ERR_INIT;
    ask_start(&rig, &a, "/t/Keep", STR("x"));
    run_while(rig.loop, rig.n_kept == 0);
    rig.server = grpc_server_free(rig.server);
    run_while(rig.loop, !a.done);
    ck_assert_uint_eq(rig.gone, 0);
    assert_failed(&a, ERR_UNAVAILABLE, "the connection was lost: ");
    ask_now(&rig, &a, "/t/Echo", STR("x"));
    assert_failed(&a, ERR_UNAVAILABLE, "cannot connect to ");
    rig.n_kept = 0;
    ck_assert_ok(rig_serve(&rig, &e), &e); /* the next request connects again */
    ask_now(&rig, &a, "/t/Echo", STR("x"));
    assert_answer(&a, "x");
}

TEST(test_client_ends)
{
    struct ask a;
    ask_start(&rig, &a, "/t/Keep", STR("x"));
    run_while(rig.loop, rig.n_kept == 0);
    rig.client = grpc_client_free(rig.client);
    run_while(rig.loop, rig.gone == 0);
    ck_assert(!a.done);
}

TEST(test_socket)
{
    struct err e = ERR_INIT;
    struct stat st;
    struct grpc_server *first = rig.server;
    ck_assert_int_eq(stat(rig.socket, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert(grpc_server_is_reachable(first));
    ck_assert_int_eq(rig_serve(&rig, &e), ERR_CONFLICT);
    ck_assert(strstr(e.text, "another process listens on") != NULL);
    /* The kubelet removes the sockets of its folder at its start. */
    ck_assert_int_eq(unlink(rig.socket), 0);
    ck_assert(!grpc_server_is_reachable(first));
    mode_t mask = umask(0);
    ck_assert_ok(rig_serve(&rig, &e), &e);
    (void)umask(mask);
    ck_assert_int_eq(stat(rig.socket, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    (void)grpc_server_free(first); /* leaves the file of the second alone */
    ck_assert(grpc_server_is_reachable(rig.server));
    rig.server = grpc_server_free(rig.server);
    ck_assert_int_ne(stat(rig.socket, &st), 0);
    /* A file that is no socket stays; an unused socket is replaced. */
    FILE *f = fopen(rig.socket, "we");
    ck_assert_ptr_nonnull(f);
    (void)fclose(f);
    ck_assert_int_eq(rig_serve(&rig, &e), ERR_CONFLICT);
    ck_assert_int_eq(unlink(rig.socket), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig.socket);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_ok(rig_serve(&rig, &e), &e);
}

TEST(test_paths)
{
    char path[200];
    struct err e = ERR_INIT;
    struct grpc_server *s = NULL;
    struct grpc_client *c = NULL;
    memset(path, 'p', sizeof(path));
    path[108] = '\0';
    struct grpc_server_settings settings = {.socket = path};
    ck_assert_int_eq(grpc_server_new(rig.loop, &settings, &s, &e), ERR_RANGE);
    ck_assert_int_eq(grpc_client_new(rig.loop, path, &c, &e), ERR_RANGE);
    ck_assert_int_eq(grpc_client_new(rig.loop, "", &c, &e), ERR_RANGE);
    settings.socket = "missing/socket";
    ck_assert_int_eq(grpc_server_new(rig.loop, &settings, &s, &e), ERR_UNAVAILABLE);
    ck_assert_str_eq(e.text, "cannot listen on missing/socket: No such file or directory");
}

/* Each allocation of a server, a client and a call fails once: an error, and no leak. */
static enum errc one_call(void *ctx)
{
    struct rig r = {.loop = rig.loop};
    struct ask a;
    (void)ctx;
    (void)snprintf(r.socket, sizeof(r.socket), "%s/x.sock", rig.folder);
    enum errc code = rig_serve(&r, NULL);
    if (code == OK)
        code = grpc_client_new(r.loop, r.socket, &r.client, NULL);
    if (code == OK) {
        ask_start(&r, &a, "/t/Echo", STR("text"));
        run_while(r.loop, !a.done);
        /* The peer can only say that the connection ended, or that it has no memory. */
        code = a.request.result == OK ? OK : ERR_NOMEM;
        grpc_request_done(&a.request);
    }
    bool hit = fail_alloc_hit();
    r.client = grpc_client_free(r.client);
    r.server = grpc_server_free(r.server);
    return hit ? ERR_NOMEM : code;
}

TEST(test_no_memory)
{
    ck_assert_uint_gt(fail_alloc_each(one_call, NULL), 10);
}

/* A stream of three messages, and its end by the client. */
static enum errc one_stream(void *ctx)
{
    struct rig r = {.loop = rig.loop};
    struct ask a;
    (void)ctx;
    (void)snprintf(r.socket, sizeof(r.socket), "%s/x.sock", rig.folder);
    enum errc code = rig_serve(&r, NULL);
    if (code == OK)
        code = grpc_client_new(r.loop, r.socket, &r.client, NULL);
    if (code == OK) {
        ask_start(&r, &a, "/t/Keep", STR("text"));
        run_while(r.loop, !a.done && r.n_kept == 0);
        for (unsigned i = 0; i < 3 && r.n_kept > 0 && !a.done; i++) {
            grpc_call_send(r.kept[0], STR("")); /* after a failure gone() comes */
            run_turns(r.loop, 3);
        }
        grpc_request_cancel(&a.request);
        /* The RST_STREAM ends the call; without memory for it the connection does. */
        run_while(r.loop, r.n_kept > 0);
        ck_assert_uint_eq(r.gone, r.handled);
        grpc_request_done(&a.request);
    }
    bool hit = fail_alloc_hit();
    r.client = grpc_client_free(r.client);
    r.server = grpc_server_free(r.server);
    return hit ? ERR_NOMEM : code;
}

TEST(test_stream_without_memory)
{
    ck_assert_uint_gt(fail_alloc_each(one_stream, NULL), 10);
}

/* A server without memory for one call goes on with the next. */
static enum errc call_after_call(void *ctx)
{
    struct ask a;
    (void)ctx;
    ask_now(&rig, &a, "/t/Echo", STR("text"));
    enum errc code = fail_alloc_hit() ? ERR_NOMEM : a.request.result;
    fail_alloc_disarm();
    grpc_request_done(&a.request);
    ask_now(&rig, &a, "/t/Echo", STR("text"));
    ck_assert_ok(a.request.result, &a.request.err);
    ck_assert_str_is(buf_str(&a.request.reply), "text");
    grpc_request_done(&a.request);
    return code;
}

TEST(test_recovers_from_no_memory)
{
    struct ask a;
    ask_now(&rig, &a, "/t/Echo", STR("text"));
    grpc_request_done(&a.request);
    ck_assert_uint_gt(fail_alloc_each(call_after_call, NULL), 5);
}

int main(void)
{
    TCase *t = unit_case("grpc");
    tcase_add_checked_fixture(t, set_up, tear_down);
    return unit_run();
}
