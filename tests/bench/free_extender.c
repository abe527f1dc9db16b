/*
 * An extender without any cost of its own, to measure what each extender costs kube-scheduler at
 * least. filter returns the request's NodeNames unread, or the first FEW of them; bind posts a
 * Binding without annotations. It decides and checks nothing. GET /counts returns the numbers of
 * requests.
 *
 * free_extender PORT https://API-SERVER CA.crt TOKEN-FILE [FEW]
 *
 * It has a thread for each connection, so that any number of Bindings can be under way, each on a
 * kept connection to the API server.
 */
#include <curl/curl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    CLIENTS_MAX = 1024,
    NAMES_MAX = 1000000,
    CONN_MEMORY_BYTES = 256 << 10,
};

static struct {
    const char *api;
    const char *ca;
    size_t few; /* names in an answer; 0: all */
    struct curl_slist *headers;
    pthread_mutex_t lock;
    CURL *idle[CLIENTS_MAX];
    size_t n_idle;
    atomic_ulong filters;
    atomic_ulong binds;
    atomic_ulong refused;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct request {
    char *body; /* NUL-terminated */
    size_t n;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "free_extender: %s\n", what);
    exit(1);
}

static void body_add(struct request *r, const char *bytes, size_t n)
{
    r->body = realloc(r->body, r->n + n + 1);
    if (r->body == NULL)
        die("out of memory");
    memcpy(r->body + r->n, bytes, n);
    r->n += n;
    r->body[r->n] = '\0';
}

/* Points to the value of the last member with this name; NULL: none. */
static const char *member(const char *body, const char *quoted)
{
    const char *found = NULL;
    for (const char *at = body; at != NULL && (at = strstr(at, quoted)) != NULL;)
        found = at += strlen(quoted);
    return found;
}

/* ---- the API server ---------------------------------------------------------------------- */

static size_t ignore(const char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * n;
}

static CURL *client_new(void)
{
    CURL *c = curl_easy_init();
    if (c == NULL || curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_CAINFO, g.ca) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_HTTPHEADER, g.headers) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, ignore) != CURLE_OK)
        die("no client");
    return c;
}

static CURL *client_take(void)
{
    (void)pthread_mutex_lock(&g.lock);
    CURL *c = g.n_idle > 0 ? g.idle[--g.n_idle] : NULL;
    (void)pthread_mutex_unlock(&g.lock);
    return c != NULL ? c : client_new();
}

static void client_keep(CURL *c)
{
    (void)pthread_mutex_lock(&g.lock);
    bool kept = g.n_idle < CLIENTS_MAX;
    if (kept)
        g.idle[g.n_idle++] = c;
    (void)pthread_mutex_unlock(&g.lock);
    if (!kept)
        curl_easy_cleanup(c);
}

/* Returns the status; 0: no answer. */
static long post(const char *url, const char *body)
{
    long status = 0;
    CURL *c = client_take();
    if (curl_easy_setopt(c, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body) != CURLE_OK ||
        curl_easy_perform(c) != CURLE_OK ||
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK)
        status = 0;
    client_keep(c);
    return status;
}

/* ---- the verbs --------------------------------------------------------------------------- */

/* The length of a string without escapes, as in names of objects. */
static int length(const char *text)
{
    const char *end = text == NULL ? NULL : strchr(text, '"');
    return end == NULL ? 0 : (int)(end - text);
}

static long bind_pod(const char *body)
{
    const char *name = member(body, "\"PodName\":\"");
    const char *namespace = member(body, "\"PodNamespace\":\"");
    const char *uid = member(body, "\"PodUID\":\"");
    const char *node = member(body, "\"Node\":\"");
    char url[1024];
    char binding[2048];
    (void)snprintf(url, sizeof(url), "%s/api/v1/namespaces/%.*s/pods/%.*s/binding", g.api,
                   length(namespace), namespace, length(name), name);
    (void)snprintf(binding, sizeof(binding),
                   "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%.*s\","
                   "\"namespace\":\"%.*s\",\"uid\":\"%.*s\"},\"target\":{\"apiVersion\":\"v1\","
                   "\"kind\":\"Node\",\"name\":\"%.*s\"}}",
                   length(name), name, length(namespace), namespace, length(uid), uid, length(node),
                   node);
    return post(url, binding);
}

static char *answer_bind(const struct request *r)
{
    long status = bind_pod(r->body);
    char *text = NULL;
    g.binds++;
    g.refused += status != 201;
    int n = status == 201 ? asprintf(&text, "{\"Error\":\"\"}")
                          : asprintf(&text, "{\"Error\":\"status %ld\"}", status);
    return n < 0 ? NULL : text;
}

/* The list's length without its end: of all names, or of the first few. */
static size_t names_length(const char *names)
{
    const char *end = strchr(names, ']');
    if (end == NULL)
        die("NodeNames is not a list");
    const char *comma = names;
    for (size_t i = 0; i < g.few; i++)
        if ((comma = strchr(comma + 1, ',')) == NULL || comma > end)
            return (size_t)(end - names);
    return (size_t)((g.few > 0 ? comma : end) - names);
}

static char *answer_filter(const struct request *r)
{
    static const char tail[] = "],\"Error\":\"\"}";
    static const char head[] = "{\"NodeNames\":";
    const char *names = member(r->body, "\"NodeNames\":");
    if (names == NULL)
        die("filter without NodeNames");
    size_t n = names_length(names);
    char *text = malloc(sizeof(head) + n + sizeof(tail));
    if (text == NULL)
        return NULL;
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + sizeof(head) - 1, names, n);
    memcpy(text + sizeof(head) - 1 + n, tail, sizeof(tail));
    g.filters++;
    return text;
}

static char *answer_counts(void)
{
    char *text = NULL;
    int n = asprintf(&text, "{\"filter\":%lu,\"bind\":%lu,\"refused\":%lu}\n",
                     atomic_load(&g.filters), atomic_load(&g.binds), atomic_load(&g.refused));
    return n < 0 ? NULL : text;
}

static char *answer(const char *url, const struct request *r)
{
    const char *verb = strrchr(url, '/');
    if (verb == NULL || strcmp(verb, "/counts") == 0 || r->body == NULL)
        return answer_counts();
    return strcmp(verb, "/bind") == 0 ? answer_bind(r) : answer_filter(r);
}

/* ---- libmicrohttpd ----------------------------------------------------------------------- */

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *bytes,
                                 size_t *n, void **ret_request)
{
    (void)ctx;
    (void)method;
    (void)version;
    struct request *r = *ret_request;
    if (r == NULL) {
        *ret_request = calloc(1, sizeof(*r));
        return *ret_request != NULL ? MHD_YES : MHD_NO;
    }
    if (*n > 0) {
        body_add(r, bytes, *n);
        *n = 0;
        return MHD_YES;
    }
    char *text = answer(url, r);
    if (text == NULL)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why)
{
    (void)ctx;
    (void)connection;
    (void)why;
    struct request *r = *request;
    if (r != NULL)
        free(r->body);
    free(r);
    *request = NULL;
}

static void read_token(const char *path)
{
    char token[8192] = "";
    char line[8300];
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(token, sizeof(token), file) == NULL)
        die("no token");
    (void)fclose(file);
    token[strcspn(token, "\n")] = '\0';
    (void)snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
    g.headers = curl_slist_append(NULL, line);
    g.headers = curl_slist_append(g.headers, "Content-Type: application/json");
}

static struct MHD_Daemon *serve(const char *port)
{
    struct addrinfo *at = NULL;
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    if (getaddrinfo("127.0.0.1", port, &wanted, &at) != 0)
        die("no such port");
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_access, NULL, MHD_OPTION_SOCK_ADDR, at->ai_addr, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY_BYTES,
        MHD_OPTION_END);
    freeaddrinfo(at);
    if (daemon == NULL)
        die("cannot listen");
    return daemon;
}

static size_t number(const char *text)
{
    const char *at = text;
    size_t n = 0;
    for (; *at >= '0' && *at <= '9' && n <= NAMES_MAX; at++)
        n = n * 10 + (size_t)(*at - '0');
    if (at == text || *at != '\0' || n > NAMES_MAX)
        die("FEW is not a number of names");
    return n;
}

int main(int argc, char **argv)
{
    sigset_t ends;
    int signo = 0;
    if (argc != 5 && argc != 6)
        die("usage: free_extender PORT API-SERVER CA TOKEN-FILE [FEW]");
    g.few = argc == 6 ? number(argv[5]) : 0;
    g.api = argv[2];
    g.ca = argv[3];
    (void)signal(SIGPIPE, SIG_IGN);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        die("no libcurl");
    read_token(argv[4]);
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before threads start */
    struct MHD_Daemon *daemon = serve(argv[1]);
    (void)sigwait(&ends, &signo);
    MHD_stop_daemon(daemon);
    return 0;
}
