/*
 * Whole answers of an API server go through kube_api, reflectors, cutter, decoders and ingest into
 * the cache. The cache must be equal for every way to chunk the bodies, and consistent after each
 * chunk. The answers are in the order of the requests, separated by a line "%%". Each begins with a
 * line "STATUS HOW", with HOW e (whole), c (the connection breaks after it) or n (the request was
 * never sent). Later requests get no answer.
 *
 * This file replaces the HTTP client.
 */
#include "cache_text.h"
#include "core/cache/cache.h"
#include "daemon/backend/kube_backend.h"
#include "rules.h"
#include "spoken.h"
#include "still.h"

#include <sys/mman.h>
#include <unistd.h>

#define CALLS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct http_client {
    struct deferred answer;
    struct loop *loop;
    struct http_call *calls[CALLS]; /* sorted by start */
    size_t n;
    struct str input;
    unsigned seed; /* for the sizes of chunks; 0: whole bodies */
    struct cache *cache;
};

static struct http_client client;

/* ---- in place of the HTTP client ---- */

enum errc http_client_new(struct loop *l, const struct http_client_settings *s,
                          struct http_client **ret, struct err *reterr)
{
    (void)s;
    (void)reterr;
    client.loop = l;
    *ret = &client;
    return OK;
}

struct http_client *http_client_free(struct http_client *c)
{
    deferred_cancel(&c->answer);
    check(c->n == 0, "every call has ended");
    return NULL;
}

void http_client_forget_connections(struct http_client *c)
{
    (void)c;
}

void http_call_start(struct http_client *c, struct http_call *call)
{
    check(c->n < CALLS && call->client == NULL, "a call at a time");
    call->client = c;
    call->outcome = HTTP_NOT_SENT;
    call->status = 0;
    call->retry_after_ms = 0;
    call->err = (struct err)ERR_INIT;
    buf_clear(&call->reply, SIZE_MAX);
    call->reply.max = call->max_reply;
    c->calls[c->n++] = call;
    if (c->input.n > 0)
        loop_defer(c->loop, &c->answer);
}

void http_call_cancel(struct http_call *call)
{
    for (size_t i = 0; i < client.n; i++) {
        if (client.calls[i] != call)
            continue;
        memmove(&client.calls[i], &client.calls[i + 1],
                (client.n - i - 1) * sizeof(struct http_call *));
        client.n--;
        call->client = NULL;
        return;
    }
}

void http_call_done(struct http_call *call)
{
    buf_done(&call->reply);
}

/* ---- answers ---- */

static struct str next_answer(struct http_client *c)
{
    static const char line[] = "\n%%\n";
    const char *end = memmem(c->input.p, c->input.n, line, sizeof(line) - 1);
    struct str one = {c->input.p, end == NULL ? c->input.n : (size_t)(end - c->input.p)};
    c->input = end == NULL ? STR_NULL : str_skip(c->input, one.n + sizeof(line) - 1);
    return one;
}

/* A chunk is a block of its own, so that ASan sees an access outside it, or after it is freed. */
static bool say(struct http_client *c, struct http_call *call, struct str chunk)
{
    char *copy = malloc(chunk.n);
    check(copy != NULL, "there is memory");
    memcpy(copy, chunk.p, chunk.n);
    bool good = call->on_chunk(call, (struct str){copy, chunk.n}, &call->err) == OK;
    free(copy);
    cache_check(c->cache);
    return good;
}

static bool say_all(struct http_client *c, struct http_call *call, struct str body)
{
    while (body.n > 0) {
        size_t n = body.n;
        if (c->seed != 0) {
            c->seed = c->seed * 1103515245U + 12345U;
            n = MIN_OF((size_t)(c->seed >> 16) % 40 + 1, n);
        }
        if (!say(c, call, (struct str){body.p, n}))
            return false;
        body = str_skip(body, n);
    }
    return true;
}

static void answer(struct deferred *d)
{
    struct http_client *c = CONTAINER_OF(d, struct http_client, answer);
    struct str head;
    struct str body;
    struct str status;
    struct str how;
    uint64_t code = 0;
    if (c->n == 0)
        return;
    struct http_call *call = c->calls[0];
    (void)str_cut(next_answer(c), '\n', &head, &body);
    (void)str_cut(head, ' ', &status, &how);
    (void)str_to_u64(status, 999, &code);
    bool refused = false;
    if (str_eq(how, STR("n"))) {
        (void)err_set(&call->err, ERR_UNAVAILABLE, "not sent");
    } else {
        call->status = (unsigned)code;
        call->outcome = str_eq(how, STR("c")) ? HTTP_UNKNOWN : HTTP_ANSWERED;
        if (code == 200 && call->on_chunk != NULL)
            refused = !say_all(c, call, body);
        else
            buf_put(&call->reply, body);
        if (call->outcome == HTTP_UNKNOWN)
            (void)err_set(&call->err, ERR_UNAVAILABLE, "cut");
    }
    if (refused)
        call->outcome = HTTP_REFUSED;
    http_call_cancel(call);
    if (c->n > 0 && c->input.n > 0)
        loop_defer(c->loop, &c->answer);
    call->on_done(call);
}

/* ---- a run ---- */

/* A kubeconfig without a file name. */
static struct str kubeconfig(void)
{
    static char path[64];
    static const char text[] = "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                               "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:1\"}}]\n"
                               "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                               "users: [{name: u, user: {token: t}}]\n";
    if (path[0] == '\0') {
        int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
        check(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)(sizeof(text) - 1),
              "a file");
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    return str_of(path);
}

static void run(struct str input, unsigned seed, struct buf *out)
{
    struct loop *l = still_loop();
    struct cache cache;
    struct kube_api *api = NULL;
    struct kube_backend *backend = NULL;
    cache_init(&cache, (struct map_seed){1, 2});
    client = (struct http_client){
        .answer = {.run = answer}, .input = input, .seed = seed, .cache = &cache};
    const struct kube_api_settings settings = {.kubeconfig = kubeconfig(), .user_agent = STR("f")};
    struct err e = ERR_INIT;
    check(kube_api_new(l, &settings, &api, &e) == OK, e.text);
    const struct kube_backend_settings b = {
        .loop = l, .cache = &cache, .api = api, .page_size = 2, .start_settle_ms = 1000};
    check(kube_backend_new(&b, &backend, NULL) == OK, "its client");
    for (int i = 0; i < 200 && still_next(l, 60000) && (client.input.n > 0 || client.n < 3); i++)
        cache_check(&cache);
    cache_text(&cache, out);
    backend = kube_backend_free(backend);
    api = kube_api_free(api);
    cache_done(&cache);
    (void)loop_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = {(const char *)data, size};
    struct buf whole;
    struct buf parts;
    quiet();
    buf_init(&whole, 16 * MIB);
    buf_init(&parts, 16 * MIB);
    run(input, 0, &whole);
    run(input, 1 + (unsigned)size, &parts);
    check(str_eq(buf_str(&whole), buf_str(&parts)), "the same cache however chunked");
    buf_done(&whole);
    buf_done(&parts);
    return 0;
}
