/* Asking the kubelet for its list of devices: when, what is told, and what a silent kubelet does.
 */
#include "node/kubelet/lister.h"

#include "base/log.h"
#include "grpc_rig.h"

#include <sys/mman.h>

static struct {
    struct loop *loop;
    struct grpc_server *server;
    struct lister *lister;
    char folder[64];
    char socket[96];
    unsigned lists;    /* that were asked for */
    unsigned compared; /* calls */
    unsigned changes;
    bool refuses;
    bool knows; /* the pods */
    struct difference difference;
    struct difference other; /* there too if n is 2, alone if `only_other` */
    bool only_other;
    size_t n;
} t;

static void answer(void *ctx, struct grpc_call *c, struct str message)
{
    (void)ctx;
    ck_assert_uint_eq(message.n, 0);
    t.lists++;
    if (t.refuses)
        grpc_call_fail(c, GRPC_UNIMPLEMENTED, STR("no such method"));
    else
        grpc_call_reply(c, STR("\x0a\x03\x0a\x01q")); /* a pod "q" */
}

static bool compare_it(void *ctx, const struct pod_resources *list, struct comparison *ret)
{
    (void)ctx;
    t.compared++;
    ck_assert_uint_eq(list->n_pods, 1);
    ret->compared = 7;
    ret->left_out = 0;
    ret->n = t.n;
    if (t.n > 0)
        ret->items[0] = t.only_other ? t.other : t.difference;
    if (t.n > 1)
        ret->items[1] = t.other;
    return t.knows;
}

static void changed(void *ctx)
{
    (void)ctx;
    t.changes++;
}

static void serve(void)
{
    static const struct grpc_method methods[] = {{POD_RESOURCES_LIST, answer}};
    struct err e = ERR_INIT;
    const struct grpc_server_settings s = {.socket = t.socket, .methods = methods, .n_methods = 1};
    ck_assert_ok(grpc_server_new(t.loop, &s, &t.server, &e), &e);
}

static void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    t.loop = loop_make();
    t.knows = true;
    t.difference = (struct difference){.kind = USAGE_DIFFERS_CARDS,
                                       .uid = STR("u"),
                                       .namespace = STR("ns"),
                                       .name = STR("p"),
                                       .container = STR("c"),
                                       .annotated = {2, {0, 2}},
                                       .given = {1, {1}}};
    (void)snprintf(t.folder, sizeof(t.folder), "lister-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t.folder));
    (void)snprintf(t.socket, sizeof(t.socket), "%s/k.sock", t.folder);
    const struct lister_settings s = {.loop = t.loop,
                                      .socket = t.socket,
                                      .every_ms = 1,
                                      .soon_ms = 1,
                                      .again_ms = 1,
                                      .compare = compare_it,
                                      .changed = changed};
    ck_assert_ok(lister_new(&s, &t.lister, &e), &e);
}

static void tear_down(void)
{
    t.lister = lister_free(t.lister);
    t.server = grpc_server_free(t.server);
    t.loop = loop_free(t.loop);
    (void)unlink(t.socket);
    ck_assert_int_eq(rmdir(t.folder), 0);
}

static struct usage_view view(void)
{
    struct usage_view v = {.seen = STR_NULL};
    lister_view(t.lister, &v);
    return v;
}

TEST(a_difference_is_told_when_two_answers_have_it)
{
    serve();
    t.n = 1;
    run_while(t.loop, t.compared < 1);
    run_while(t.loop, !lister_counts(t.lister).asked);
    ck_assert(view().asked);
    ck_assert_uint_eq(view().compared, 7);
    if (t.compared == 1)
        ck_assert_uint_eq(view().n_differences, 0);
    run_while(t.loop, lister_counts(t.lister).differences == 0);
    ck_assert_uint_ge(t.compared, 2);
    struct usage_view v = view();
    ck_assert_uint_eq(v.n_differences, 1);
    ck_assert_str_is(v.differences[0].annotated, "0,2");
    ck_assert_str_is(v.differences[0].given, "1");
    ck_assert_str_is(v.differences[0].name, "p");
    unsigned before = t.changes;
    ck_assert_uint_ge(before, 2); /* the kubelet answers; the container differs */
    t.difference.given = (struct card_list){1, {3}}; /* another one: it is not sure again */
    run_while(t.loop, t.changes == before);
    run_while(t.loop, lister_counts(t.lister).differences == 0);
    ck_assert_str_is(view().differences[0].given, "3");
    t.n = 0;
    run_while(t.loop, lister_counts(t.lister).differences > 0);
    ck_assert_uint_eq(view().n_differences, 0);
}

/* In one answer a difference is sure and another one has ended: their number is the same, and what
 * was written of them is old. */
TEST(one_difference_for_another_is_a_change)
{
    serve();
    t.other = t.difference;
    t.other.name = STR("q");
    t.other.uid = STR("u2");
    t.n = 1;
    run_while(t.loop, lister_counts(t.lister).differences == 0);
    unsigned compared = t.compared;
    t.n = 2;
    run_while(t.loop, t.compared == compared);
    t.n = 1; /* before the next answer: the other one is not sure yet */
    t.only_other = true;
    ck_assert_uint_eq(lister_counts(t.lister).differences, 1);
    unsigned changes = t.changes;
    run_while(t.loop, t.changes == changes);
    ck_assert_uint_eq(view().n_differences, 1);
    ck_assert_str_is(view().differences[0].name, "q");
}

/* The annotations name no card, as after `kubectl annotate POD ...-`. */
TEST_EACH(no_card_is_told_as_no_card, 2)
{
    char text[4096] = "";
    int file = memfd_create("log", MFD_CLOEXEC);
    log_setup(file, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    serve();
    t.n = 1;
    t.difference.annotated.n = 0;
    t.difference.kind = _i == 0 ? USAGE_DIFFERS_CARDS : USAGE_DIFFERS_NONE;
    run_while(t.loop, lister_counts(t.lister).differences == 0);
    ck_assert_int_gt(pread(file, text, sizeof(text) - 1, 0), 0);
    ck_assert_msg(strstr(text, "card ,") == NULL && strstr(text, "card  ") == NULL &&
                      strstr(text, "no card") != NULL,
                  "%s", text);
    (void)close(file);
}

/* The kubelet ends, or has no such method: what it said before does not count, and it is asked
 * again. */
TEST_EACH(a_silent_kubelet_is_asked_again, 2)
{
    if (_i == 1)
        serve();
    t.refuses = _i == 1;
    run_while(t.loop, lister_counts(t.lister).failures < 3);
    ck_assert(!view().asked);
    ck_assert_uint_eq(t.compared, 0);
    t.refuses = false;
    if (t.server == NULL)
        serve();
    t.n = 1;
    run_while(t.loop, lister_counts(t.lister).differences == 0);
    t.server = grpc_server_free(t.server);
    run_while(t.loop, lister_counts(t.lister).asked);
    ck_assert_uint_eq(view().n_differences, 0);
    ck_assert_uint_eq(view().compared, 0);
    serve();
    run_while(t.loop, lister_counts(t.lister).differences == 0);
}

TEST(pods_that_are_not_known_are_not_compared)
{
    serve();
    t.n = 1;
    t.knows = false;
    run_while(t.loop, t.compared < 3);
    ck_assert_uint_eq(view().compared, 0);
    ck_assert_uint_eq(view().n_differences, 0);
    ck_assert_msg(!view().asked, "nothing was compared: whether containers differ is not known");
    t.knows = true;
    run_while(t.loop, !lister_counts(t.lister).asked);
    ck_assert_uint_eq(view().compared, 7);
}

int main(void)
{
    TCase *tc = unit_case("lister");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    return unit_run();
}
