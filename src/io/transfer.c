/*
 * Sets up a libcurl request, and decides its outcome.
 *
 * Not sent or unknown: libcurl calls transfer_on_ready_to_send right before it sends a request on a
 * ready connection, TLS included, also for each retry of its own (CURLOPT_PREREQFUNCTION in
 * MSTATE_DO). After that call a failure counts as "unknown". This is the safe choice: a request
 * that failed on a kept-alive connection may have been received. libcurl would send such a request
 * again by itself. A POST is not sent twice, because the answer to the second copy says nothing
 * about the first. Rejected: CURLINFO_REQUEST_SIZE, because it also counts a proxy's CONNECT.
 *
 * TLS sessions are not cached: a resumed session is not verified again and keeps its old identity.
 * So a rotated CA or certificate takes effect with the next connection.
 *
 * If the TLS server name differs from the address, the URL contains the name, which libcurl uses
 * for SNI and verification. CURLOPT_CONNECT_TO leads to the address, and the Host header names the
 * address.
 */
#include "transfer.h"

#include "base/file.h"
#include "io/limit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define TEXT_MAX          (64 * KIB)
#define KEEPALIVE_IDLE_S  30L
#define KEEPALIVE_EVERY_S 10L
#define LIFETIME_S        600L /* then reconnect: this spreads the load over API servers */

#define RETRY_AFTER_MAX_S 86400

/*
 * The buffer of a bulk call. A list may have hundreds of megabytes; with libcurl's 16 KiB a turn,
 * the turns would cost as much as the bytes. libcurl keeps the buffer until the call ends, so a
 * watch does not get one: seven of them are a megabyte.
 */
#define BULK_BYTES (128L * KIB)

/* Needs `CURL *easy` and `CURLcode code`; does nothing after a failure. */
#define SET(option, value)                                \
    do {                                                  \
        if (code == CURLE_OK)                             \
            code = curl_easy_setopt(easy, option, value); \
    } while (0)

static const char *transfer_copy_z(struct arena *a, struct str s)
{
    if (s.p == NULL || s.n == 0)
        return NULL;
    char *z = arena_alloc(a, s.n + 1);
    if (z != NULL)
        memcpy(z, s.p, s.n);
    return z;
}

static struct curl_blob transfer_copy_blob(struct arena *a, struct str s)
{
    void *data = s.n == 0 ? NULL : arena_alloc(a, s.n);
    if (data == NULL)
        return (struct curl_blob){.data = NULL};
    memcpy(data, s.p, s.n);
    return (struct curl_blob){.data = data, .len = s.n, .flags = CURL_BLOB_NOCOPY};
}

bool transfer_config_init(struct transfer_config *c, struct arena *arena,
                          const struct http_client_settings *s)
{
    *c = (struct transfer_config){
        .user_agent = transfer_copy_z(arena, s->user_agent),
        .ca_file = transfer_copy_z(arena, s->ca_file),
        .cert_file = transfer_copy_z(arena, s->cert_file),
        .key_file = transfer_copy_z(arena, s->key_file),
        .proxy_url = transfer_copy_z(arena, s->proxy_url),
        .socket = transfer_copy_z(arena, s->socket),
        .tls_server_name = transfer_copy_z(arena, s->tls_server_name),
        .ca_data = transfer_copy_blob(arena, s->ca_data),
        .cert_data = transfer_copy_blob(arena, s->cert_data),
        .key_data = transfer_copy_blob(arena, s->key_data),
        .insecure = s->insecure,
        .allow_http = s->allow_http,
    };
    return !arena_failed(arena);
}

bool transfer_init(struct transfer *t, struct loop *l, struct transfer **in_chunk)
{
    assert(l != NULL && in_chunk != NULL);
    t->loop = l;
    t->in_chunk = in_chunk;
    t->easy = curl_easy_init();
    buf_init(&t->body, LIMIT_REPLY_BYTES); /* we send no larger body than we accept */
    buf_init(&t->text, TEXT_MAX);
    return t->easy != NULL;
}

void transfer_done(struct transfer *t)
{
    transfer_reset(t);
    curl_easy_cleanup(t->easy);
    buf_done(&t->body);
    buf_done(&t->text);
}

void transfer_reset(struct transfer *t)
{
    assert(t->in_chunk == NULL || *t->in_chunk != t);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    t->headers = t->connect_to = NULL;
    t->call = NULL;
    buf_clear(&t->body, LIMIT_KEEP_BYTES);
    if (t->easy != NULL)
        curl_easy_reset(t->easy);
}

/* ---- libcurl's callbacks ---- */

/* NOLINTBEGIN(readability-non-const-parameter): libcurl's signatures */

static int transfer_on_ready_to_send(void *cls, char *server_ip, char *local_ip, int server_port,
                                     int local_port)
{
    struct transfer *t = cls;
    (void)server_ip;
    (void)local_ip;
    (void)server_port;
    (void)local_port;
    if (t->call != NULL && t->call->may_send != NULL && !t->call->may_send(t->call)) {
        t->failed = ERR_CANCELED;
        t->why = "not sent, because it may not be any more";
        return CURL_PREREQFUNC_ABORT;
    }
    if (t->reached && str_eq(str_of(t->call == NULL ? "" : t->call->method), STR("POST"))) {
        t->failed = ERR_UNAVAILABLE;
        t->why = "the connection was lost, and what became of the request is not known";
        return CURL_PREREQFUNC_ABORT;
    }
    t->reached = true;
    return CURL_PREREQFUNC_OK;
}

/* libcurl opens the files for each connection, and would block on a pipe without a writer. */
static bool transfer_may_block(const struct transfer_config *c)
{
    return file_may_block(str_of(c->ca_file)) || file_may_block(str_of(c->cert_file)) ||
           file_may_block(str_of(c->key_file));
}

static int transfer_on_socket(void *cls, curl_socket_t fd, curlsocktype purpose)
{
    unsigned ms = (unsigned)LIMIT_UNACKNOWLEDGED_MS;
    struct transfer *t = cls;
    assert(t->config != NULL);
    (void)purpose;
    if (transfer_may_block(t->config)) {
        t->failed = ERR_UNAVAILABLE;
        t->why = "a file of its CA, certificate or key is no regular file";
        return CURL_SOCKOPT_ERROR;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static size_t transfer_on_header(char *p, size_t size, size_t n, void *cls)
{
    struct transfer *t = cls;
    struct str line = {p, size * n};
    t->heard_ms = loop_now_ms(t->loop);
    if (str_starts(line, STR("HTTP/")))
        t->head_whole = false;
    else if (str_trim(line).n == 0)
        t->head_whole = true;
    return t->call == NULL ? line.n + 1 : line.n;
}

static bool transfer_collect_reply(struct transfer *t, struct str chunk)
{
    buf_put(&t->call->reply, chunk);
    if (!buf_failed(&t->call->reply))
        return true;
    bool large = t->call->reply.n + chunk.n > t->call->reply.max;
    t->failed = large ? ERR_LIMIT : ERR_NOMEM;
    t->why = large ? "the answer is too large" : "no memory for the answer";
    return false;
}

static size_t transfer_on_body(char *p, size_t size, size_t n, void *cls)
{
    struct transfer *t = cls;
    struct http_call *call = t->call;
    struct str chunk = {p, size * n};
    long status = 0;
    t->heard_ms = loop_now_ms(t->loop);
    if (call == NULL || t->failed != OK)
        return chunk.n + 1;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (call->on_chunk == NULL || status != 200)
        return transfer_collect_reply(t, chunk) ? chunk.n : chunk.n + 1;
    assert(*t->in_chunk == NULL);
    *t->in_chunk = t;
    enum errc code = call->on_chunk(call, chunk, &call->err);
    *t->in_chunk = NULL;
    if (code == OK)
        return chunk.n;
    assert(t->call == call); /* on_chunk must not cancel it */
    t->refused = true;
    if (call->err.code == OK)
        (void)err_set(&call->err, code, "%s", errc_name(code));
    return chunk.n + 1;
}

/* NOLINTEND(readability-non-const-parameter) */

/* ---- setting up ---- */

static CURLcode transfer_setup_common(struct transfer *t, const struct transfer_config *c)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_PROTOCOLS_STR, c->allow_http ? "http,https" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
    SET(CURLOPT_MAXLIFETIME_CONN, LIFETIME_S);
    SET(CURLOPT_SOCKOPTFUNCTION, transfer_on_socket);
    SET(CURLOPT_SOCKOPTDATA, (void *)t);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, c->user_agent);
    /* NULL: the proxies of the environment; empty: no proxy. */
    SET(CURLOPT_PROXY, c->socket != NULL ? "" : c->proxy_url);
    SET(CURLOPT_UNIX_SOCKET_PATH, c->socket);
    SET(CURLOPT_PRIVATE, (void *)t);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_PREREQFUNCTION, transfer_on_ready_to_send);
    SET(CURLOPT_PREREQDATA, (void *)t);
    SET(CURLOPT_HEADERFUNCTION, transfer_on_header);
    SET(CURLOPT_HEADERDATA, (void *)t);
    SET(CURLOPT_WRITEFUNCTION, transfer_on_body);
    SET(CURLOPT_WRITEDATA, (void *)t);
    return code;
}

/*
 * libcurl has a default directory of system CAs, which it uses in addition to a given file or text.
 * With a given CA, no other CA must count, also for a proxy with TLS, as in client-go. Without one,
 * the system's CAs count.
 */
static CURLcode transfer_setup_trust(CURL *easy, const struct transfer_config *c)
{
    CURLcode code = CURLE_OK;
    const struct curl_blob *text = c->ca_data.len > 0 ? &c->ca_data : NULL;
    const char *file = text == NULL ? c->ca_file : NULL;
    if (text == NULL && file == NULL)
        return code;
    SET(CURLOPT_CAPATH, NULL);
    SET(CURLOPT_CAINFO, file);
    SET(CURLOPT_CAINFO_BLOB, text);
    SET(CURLOPT_SSL_OPTIONS, 0L); /* do not use the system's native CA store */
    SET(CURLOPT_PROXY_CAPATH, NULL);
    SET(CURLOPT_PROXY_CAINFO, file);
    SET(CURLOPT_PROXY_CAINFO_BLOB, text);
    SET(CURLOPT_PROXY_SSL_OPTIONS, 0L);
    return code;
}

static CURLcode transfer_setup_tls(struct transfer *t, const struct transfer_config *c)
{
    CURL *easy = t->easy;
    CURLcode code = transfer_setup_trust(easy, c);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    SET(CURLOPT_SSLCERT, c->cert_file);
    SET(CURLOPT_SSLKEY, c->key_file);
    if (c->cert_data.len > 0)
        SET(CURLOPT_SSLCERT_BLOB, &c->cert_data);
    if (c->key_data.len > 0)
        SET(CURLOPT_SSLKEY_BLOB, &c->key_data);
    return code;
}

/* Prefix and s as one C string, valid until the next call. NULL: t->failed is set. */
static const char *transfer_text_of(struct transfer *t, const char *prefix, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f) {
            t->failed = ERR_SYNTAX;
            t->why = "a control character in the URL, a header or a credential";
            return NULL;
        }
    }
    buf_clear(&t->text, KIB);
    buf_put(&t->text, str_of(prefix));
    buf_put(&t->text, s);
    const char *z = buf_cstr(&t->text);
    if (z == NULL) {
        t->failed = s.n + strlen(prefix) > TEXT_MAX ? ERR_LIMIT : ERR_NOMEM;
        t->why = "the URL, a header or a credential does not fit into memory";
    }
    return z;
}

static CURLcode transfer_add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = line == NULL ? NULL : curl_slist_append(*list, line);
    if (longer == NULL)
        return CURLE_OUT_OF_MEMORY;
    *list = longer;
    return CURLE_OK;
}

static CURLcode transfer_setup_request(struct transfer *t, const struct http_call *call)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    struct str method = str_of(call->method);
    struct str type = call->content_type.n > 0 ? call->content_type : STR("application/json");
    if (call->body.p != NULL || str_eq(method, STR("POST"))) {
        buf_put(&t->body, call->body);
        if (buf_failed(&t->body))
            return CURLE_OUT_OF_MEMORY;
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDS, t->body.n == 0 ? "" : t->body.p);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.n);
    }
    /* A handle that kept its buffer after a failed start refuses this option: harmless. */
    if (call->bulk)
        (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BULK_BYTES);
    if (str_eq(method, STR("HEAD")))
        SET(CURLOPT_NOBODY, 1L);
    else
        SET(CURLOPT_CUSTOMREQUEST, call->method);
    if (code == CURLE_OK && call->body.p != NULL)
        code = transfer_add_line(&t->headers, transfer_text_of(t, "Content-Type: ", type));
    /*
     * Bodies are small, and servers that do not know "100 Continue" would cost a second of waiting.
     */
    if (code == CURLE_OK)
        code = transfer_add_line(&t->headers, "Expect:");
    for (size_t i = 0; i < call->n_headers && code == CURLE_OK; i++)
        code = transfer_add_line(&t->headers, transfer_text_of(t, "", call->headers[i]));
    return code;
}

static CURLcode transfer_setup_identity(struct transfer *t, const struct http_call *call)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    if (call->bearer.n > 0) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        SET(CURLOPT_XOAUTH2_BEARER, transfer_text_of(t, "", call->bearer));
    } else if (call->username.n > 0) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, transfer_text_of(t, "", call->username));
        SET(CURLOPT_PASSWORD, transfer_text_of(t, "", call->password));
    }
    return code;
}

/* Puts `name` into the URL in place of the host; the connection still goes to the host. */
static CURLcode transfer_rename_host(struct transfer *t, CURLU *u, const char *name)
{
    char *host = NULL;
    char *port = NULL;
    char *shown_port = NULL;
    CURLcode code = CURLE_URL_MALFORMAT;
    if (curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_HOST, name, 0) == CURLUE_OK) {
        (void)curl_url_get(u, CURLUPART_PORT, &shown_port, CURLU_NO_DEFAULT_PORT);
        buf_clear(&t->text, KIB);
        buf_printf(&t->text, "::%s:%s", host, port);
        code = transfer_add_line(&t->connect_to, buf_cstr(&t->text));
        buf_clear(&t->text, KIB);
        buf_printf(&t->text, "Host: %s%s%s", host, shown_port == NULL ? "" : ":",
                   shown_port == NULL ? "" : shown_port);
        if (code == CURLE_OK)
            code = transfer_add_line(&t->headers, buf_cstr(&t->text));
    }
    curl_free(host);
    curl_free(port);
    curl_free(shown_port);
    CURL *easy = t->easy;
    SET(CURLOPT_CONNECT_TO, t->connect_to);
    return code;
}

static CURLcode transfer_setup_url(struct transfer *t, const struct transfer_config *c,
                                   struct str url)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    const char *z = transfer_text_of(t, "", url);
    if (z == NULL || c->tls_server_name == NULL) {
        SET(CURLOPT_URL, z);
        return code;
    }
    char *whole = NULL;
    CURLU *u = curl_url();
    if (u == NULL)
        return CURLE_OUT_OF_MEMORY;
    if (curl_url_set(u, CURLUPART_URL, z, 0) != CURLUE_OK)
        code = CURLE_URL_MALFORMAT;
    if (code == CURLE_OK)
        code = transfer_rename_host(t, u, c->tls_server_name);
    if (code == CURLE_OK && curl_url_get(u, CURLUPART_URL, &whole, 0) != CURLUE_OK)
        code = CURLE_OUT_OF_MEMORY;
    SET(CURLOPT_URL, whole);
    curl_free(whole);
    curl_url_cleanup(u);
    return code;
}

/*
 * The path and the query as a text of our own, which libcurl copies or refuses. libcurl before
 * 8.18.0 ignores a failed allocation of the URL's query, so a Binding would be sent without its
 * deadline. The target of a request through a plain HTTP proxy is the whole URL: libcurl uses no
 * such proxy for https or a Unix socket.
 */
static CURLcode transfer_setup_target(struct transfer *t, const struct transfer_config *c,
                                      struct str url)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    char *path = NULL;
    char *query = NULL;
    if (memchr(url.p, '?', url.n) == NULL ||
        (c->socket == NULL && !str_starts(url, STR("https://"))))
        return CURLE_OK;
    CURLU *u = curl_url();
    CURLUcode parsed = u == NULL ? CURLUE_OUT_OF_MEMORY
                                 : curl_url_set(u, CURLUPART_URL, transfer_text_of(t, "", url), 0);
    if (parsed == CURLUE_OK)
        parsed = curl_url_get(u, CURLUPART_PATH, &path, CURLU_URLENCODE);
    if (parsed == CURLUE_OK)
        parsed = curl_url_get(u, CURLUPART_QUERY, &query, 0);
    if (parsed == CURLUE_OK) {
        buf_clear(&t->text, KIB);
        buf_printf(&t->text, "%s?%s", path, query);
        const char *target = buf_cstr(&t->text);
        code = target == NULL ? CURLE_OUT_OF_MEMORY : CURLE_OK;
        SET(CURLOPT_REQUEST_TARGET, target);
    } else if (parsed != CURLUE_OUT_OF_MEMORY) {
        code = CURLE_OK; /* libcurl refuses this URL itself, and says why */
    }
    curl_free(path);
    curl_free(query);
    curl_url_cleanup(u);
    return code;
}

void transfer_setup(struct transfer *t, const struct transfer_config *c, struct http_call *call)
{
    CURL *easy = t->easy;
    assert(t->call == NULL && t->headers == NULL && t->connect_to == NULL && t->body.n == 0);
    t->call = call;
    t->config = c;
    t->reached = t->head_whole = t->refused = false;
    t->heard_ms = loop_now_ms(t->loop);
    t->failed = OK;
    t->error[0] = '\0';
    CURLcode code = transfer_setup_common(t, c);
    if (code == CURLE_OK)
        code = transfer_setup_tls(t, c);
    if (code == CURLE_OK)
        code = transfer_setup_request(t, call);
    if (code == CURLE_OK)
        code = transfer_setup_identity(t, call);
    if (code == CURLE_OK)
        code = transfer_setup_url(t, c, call->url);
    if (code == CURLE_OK && t->failed == OK)
        code = transfer_setup_target(t, c, call->url);
    SET(CURLOPT_HTTPHEADER, t->headers);
    if (code != CURLE_OK && t->failed == OK) {
        t->failed = code == CURLE_OUT_OF_MEMORY   ? ERR_NOMEM
                    : code == CURLE_URL_MALFORMAT ? ERR_SYNTAX
                                                  : ERR_INTERNAL;
        t->why = curl_easy_strerror(code);
    }
}

/* ---- the end ---- */

static enum errc transfer_errc_of(CURLcode result)
{
    if (result == CURLE_OPERATION_TIMEDOUT)
        return ERR_TIMEOUT;
    if (result == CURLE_OUT_OF_MEMORY)
        return ERR_NOMEM;
    if (result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL)
        return ERR_SYNTAX;
    return ERR_UNAVAILABLE;
}

static uint64_t transfer_retry_after_ms(CURL *easy)
{
    struct curl_header *h = NULL;
    uint64_t seconds = 0;
    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &h) != CURLHE_OK ||
        !str_to_u64(str_trim(str_of(h->value)), RETRY_AFTER_MAX_S, &seconds))
        return 0;
    return seconds * 1000;
}

/*
 * libcurl's error quotes the URL of an unusable proxy, from the environment or from the settings.
 */
static const char *transfer_reason(const struct transfer *t, CURLcode result)
{
    if (t->failed != OK)
        return t->why;
    if (str_starts(str_of(t->error), STR("Unsupported proxy")))
        return "the URL of its proxy cannot be used";
    /* For any other quoted URL: a user's password is before an '@'. */
    if (t->error[0] == '\0' || strchr(t->error, '@') != NULL)
        return curl_easy_strerror(result);
    return t->error;
}

void transfer_set_outcome(struct transfer *t, CURLcode result)
{
    struct http_call *call = t->call;
    assert(call != NULL && call->client != NULL);
    assert(t->failed == OK || t->why != NULL);
    struct str url = call->url;
    (void)str_cut(url, '?', &url, &(struct str){0});
    if (t->refused) {
        call->outcome = HTTP_REFUSED;
        (void)err_wrap(&call->err, "%s %.*s", call->method, STR_ARG(url));
        return;
    }
    /* libcurl reports a truncated head as a complete answer without a body. */
    if (result == CURLE_OK && !t->head_whole) {
        t->failed = ERR_UNAVAILABLE;
        t->why = "the answer ends within its head";
        result = CURLE_RECV_ERROR;
    }
    if (result == CURLE_OK) {
        long status = 0;
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        call->outcome = HTTP_ANSWERED;
        call->status = (unsigned)status;
        call->retry_after_ms = transfer_retry_after_ms(t->easy);
        return;
    }
    call->outcome = t->reached ? HTTP_UNKNOWN : HTTP_NOT_SENT;
    (void)err_set(&call->err, t->failed != OK ? t->failed : transfer_errc_of(result), "%s %.*s: %s",
                  call->method, STR_ARG(url), transfer_reason(t, result));
}
