/* settings.h: how a reloaded configuration changes the parts of a running program. */
#include "base/log.h"
#include "daemon/bind/bind_op.h"
#include "daemon/evict/evict_rescue.h"
#include "daemon/settings.h"
#include "fail_alloc.h"
#include "on_loop.h"
#include "script_server.h"
#include "site.h"

#include <sys/mman.h>

static struct bench {
    struct site site;
    struct service service;
    struct kube_api *api;
    struct settings parts;
    struct config config;
} b;

static void bench_open(void)
{
    struct err e = ERR_INIT;
    b = (struct bench){.config = {.shortlist = 3,
                                  .metrics_nodes = 10,
                                  .bind_timeout_ms = 1000,
                                  .max_body = 100,
                                  .request_timeout_ms = 60000,
                                  .evict_after_ms = 1000,
                                  .evict_keep_ms = 2000}};
    open_site(&b.site);
    b.service.loop = b.site.loop;
    cache_init(&b.service.cache, (struct map_seed){1, 2});
    struct binder_settings binder = {.loop = b.site.loop, .cache = &b.service.cache};
    ck_assert_ok(binder_new(&binder, &b.service.binder, &e), &e);
    struct kube_api_settings api = {
        .kubeconfig = STR("k"),
        .kubeconfig_text = STR("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                               "clusters: [{name: k, cluster: {server: \"https://127.0.0.1\"}}]\n"
                               "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                               "users: [{name: u, user: {token: s3cret}}]\n"),
        .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(b.site.loop, &api, &b.api, &e), &e);
    b.parts = (struct settings){.service = &b.service, .api = b.api, .server = b.site.server};
}

static void bench_close(void)
{
    b.service.evictor = evictor_free(b.service.evictor);
    b.api = kube_api_free(b.api);
    b.service.binder = binder_free(b.service.binder);
    close_site(&b.site);
    cache_done(&b.service.cache);
}

static void take(void)
{
    struct err e = ERR_INIT;
    struct settings_draft draft;
    ck_assert_ok(settings_prepare(&b.parts, &b.config, &draft, &e), &e);
    settings_commit(&b.parts, &b.config, &draft);
}

START_TEST(each_comes_into_force)
{
    bench_open();
    take();
    b.config.shortlist = 7;
    b.config.metrics_nodes = 20;
    b.config.bind_timeout_ms = 3000;
    b.config.card_policy = PACK_SPREAD;
    b.config.node_policy = PACK_SPREAD;
    take();
    ck_assert_uint_eq(b.service.shortlist, 7);
    ck_assert_uint_eq(b.service.metrics.max_nodes, 20);
    ck_assert_uint_eq(b.service.binder->timeout_ms, 3000);
    ck_assert_int_eq(b.service.cache.settings.card_policy, PACK_SPREAD);
    ck_assert_int_eq(b.service.cache.settings.node_policy, PACK_SPREAD);
    bench_close();
}

END_TEST

static void says(const char *body, const char *status)
{
    struct peer p;
    char request[256];
    int n = snprintf(request, sizeof(request),
                     "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu"
                     "\r\n\r\n%s",
                     strlen(body), body);
    dial(&b.site, &p);
    peer_send(&p, (struct str){request, (size_t)n});
    peer_await_end(&p);
    ck_assert_uint_eq(peer_count(&p, status), 1);
    peer_close(&p);
}

START_TEST(a_body_may_be_larger)
{
    bench_open();
    b.config.max_body = 4;
    take();
    says("1234", "HTTP/1.1 200 ");
    says("12345", "HTTP/1.1 413 ");
    b.config.max_body = 5;
    take();
    says("12345", "HTTP/1.1 200 ");
    bench_close();
}

END_TEST

/* A pod whose init container asked for more than what lasts, and is done. */
START_TEST(pods_are_charged_again)
{
    static const struct container_view containers[] = {
        {.name = STR("c"), .mem = STR("4")},
        {.name = STR("i"), .mem = STR("8"), .kind = CONTAINER_INIT},
    };
    struct effect fx;
    struct event node = {.type = EVENT_NODE_SET,
                         .node = {.name = STR("n"), .mem = STR("16"), .count = STR("1")}};
    struct event pod = {.type = EVENT_POD_SET,
                        .pod = {.uid = STR("p"),
                                .namespace = STR("ns"),
                                .name = STR("p"),
                                .node = STR("n"),
                                .phase = STR("Running"),
                                .idx = STR("0"),
                                .initialized = true,
                                .containers = containers,
                                .n_containers = 2,
                                .n_mains = 1}};
    bench_open();
    take();
    ck_assert_int_eq(cache_apply(&b.service.cache, &node, 1, &fx), OK);
    ck_assert_int_eq(cache_apply(&b.service.cache, &pod, 1, &fx), OK);
    ck_assert_int_eq(cache_node(&b.service.cache, STR("n"))->used, 8);
    b.config.shrink_after_init = true;
    take();
    cache_check(&b.service.cache);
    ck_assert_int_eq(cache_node(&b.service.cache, STR("n"))->used, 4);
    b.config.shrink_after_init = false;
    take();
    cache_check(&b.service.cache);
    ck_assert_int_eq(cache_node(&b.service.cache, STR("n"))->used, 8);
    bench_close();
}

END_TEST

START_TEST(evictions_begin_and_end)
{
    bench_open();
    take();
    ck_assert_ptr_null(b.service.evictor);
    b.config.evict_for_cards = true;
    take();
    const struct evictor *e = b.service.evictor;
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->set.after_ms, 1000);
    ck_assert_uint_eq(e->set.keep_ms, 2000);
    b.config.evict_after_ms = 3000;
    b.config.evict_keep_ms = 4000;
    take();
    ck_assert_ptr_eq(b.service.evictor, e); /* rescues that have begun go on */
    ck_assert_uint_eq(e->set.after_ms, 3000);
    ck_assert_uint_eq(e->set.keep_ms, 4000);
    b.config.evict_for_cards = false;
    take();
    ck_assert_ptr_null(b.service.evictor);
    bench_close();
}

END_TEST

/* An embedded cluster has no API server that could evict. */
START_TEST(no_evictions_without_an_api_server)
{
    bench_open();
    b.parts.api = NULL;
    b.config.evict_for_cards = true;
    take();
    ck_assert_ptr_null(b.service.evictor);
    bench_close();
}

END_TEST

static bool all_have_asked(void *ctx)
{
    const struct script_server *server = ctx;
    return server->n_requests >= CACHE_KINDS + 1;
}

/* The lists of the cache and of budgets get the new page size, and a new leader's wait changes. */
START_TEST(lists_have_other_pages)
{
    static const char *const lists[] = {"/nodes?limit=7 ", "/pods?limit=7&", "/configmaps?limit=7",
                                        "/poddisruptionbudgets?limit=7 "};
    char text[4096] = "";
    struct err e = ERR_INIT;
    struct script_server server;
    struct kube_api *api = NULL;
    int log = memfd_create("log", MFD_CLOEXEC);
    bench_open();
    char path[] = "/tmp/cardpack-test-settings-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    log_setup(log, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    script_start(&server, b.site.loop, NULL, 0);
    script_kubeconfig(&server, path);
    struct kube_api_settings by = {.kubeconfig = str_of(path), .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(b.site.loop, &by, &api, &e), &e);
    budgets_init(&b.service.budgets, (struct map_seed){1, 2});
    struct kube_backend_settings kube = {.loop = b.site.loop,
                                         .cache = &b.service.cache,
                                         .api = api,
                                         .page_size = 500,
                                         .start_settle_ms = 3600000};
    struct budget_feed_settings feed = {
        .loop = b.site.loop, .api = api, .budgets = &b.service.budgets, .page_size = 500};
    ck_assert_ok(kube_backend_new(&kube, &b.parts.kube, &e), &e);
    ck_assert_ok(budget_feed_new(&feed, &b.parts.budgets, &e), &e);
    b.config.list_page_size = 7;
    b.config.start_settle_ms = 1;
    take();
    ck_assert_int_gt(pread(log, text, sizeof(text) - 1, 0), 0);
    ck_assert_msg(strstr(text, "start_settle_ms=1 ") != NULL, "%s", text);
    run_until(b.site.loop, all_have_asked, &server);
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        ck_assert_msg(strstr(buf_cstr(&server.heads), lists[i]) != NULL, "%s is not in %s",
                      lists[i], buf_cstr(&server.heads));
    (void)budget_feed_free(b.parts.budgets);
    (void)kube_backend_free(b.parts.kube);
    (void)kube_api_free(api);
    script_stop(&server);
    budgets_done(&b.service.budgets);
    bench_close();
    (void)unlink(path);
}

END_TEST

static enum errc prepare_and_drop(void *ctx)
{
    struct err e = ERR_INIT;
    struct settings_draft draft;
    (void)ctx;
    enum errc code = settings_prepare(&b.parts, &b.config, &draft, &e);
    if (code == OK) {
        ck_assert(draft.guard != NULL && draft.evictor != NULL);
        settings_drop(&draft);
    }
    return code;
}

/* A draft has a guard and an evictor: if memory for the second fails, the first must not leak. */
START_TEST(a_draft_is_whole_or_not_at_all)
{
    struct err e = ERR_INIT;
    char path[] = "/tmp/cardpack-test-settings-XXXXXX";
    struct guard *guard = NULL;
    bench_open();
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "the-token-of-this-test\n", 23), 23);
    (void)close(fd);
    char alias[64];
    (void)snprintf(alias, sizeof(alias), "/tmp/../%s", path + 1);
    b.config.token_file = str_of(path);
    ck_assert_ok(guard_new(b.site.loop, &b.config, &guard, &e), &e);
    b.parts.guard = guard;
    b.config.token_file = str_of(alias);
    b.config.evict_for_cards = true;
    ck_assert_uint_gt(fail_alloc_each(prepare_and_drop, NULL), 1);
    (void)guard_free(guard);
    bench_close();
    (void)unlink(path);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("settings");
    TCase *tc = tcase_create("settings");
    tcase_add_test(tc, each_comes_into_force);
    tcase_add_test(tc, a_body_may_be_larger);
    tcase_add_test(tc, pods_are_charged_again);
    tcase_add_test(tc, evictions_begin_and_end);
    tcase_add_test(tc, no_evictions_without_an_api_server);
    tcase_add_test(tc, lists_have_other_pages);
    tcase_add_test(tc, a_draft_is_whole_or_not_at_all);
    suite_add_tcase(suite, tc);
    return unit_main(suite);
}
