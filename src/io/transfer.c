/*
 * What a request looks like to libcurl, and what its end means.
 *
 * Not sent or unknown: libcurl calls us right before it sends a request on a connection that is
 * ready, TLS included, for every attempt of its own (CURLOPT_PREREQFUNCTION in MSTATE_DO). Once
 * that happened, a failure is "unknown". It errs on the safe side: a request that died on a kept
 * connection counts as perhaps received. libcurl would then send it again by itself; a POST is not
 * let go twice, since the answer to the second copy says nothing of the first.
 * CURLINFO_REQUEST_SIZE was rejected: it counts a proxy's
 * CONNECT as well.
 *
 * A session that TLS resumes is not verified anew and keeps the identity of the old one, so
 * sessions are not kept: a rotated CA or certificate counts from the next connection on.
 *
 * A server name for TLS other than the address goes into the URL, where libcurl takes it for SNI
 * and verification; CURLOPT_CONNECT_TO then leads to the address, and Host names that, too.
 */
#include "transfer.h"

#include "file.h"
#include "limit.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define TEXT_MAX          (64 * KIB)
#define KEEPALIVE_IDLE_S  30L
#define KEEPALIVE_EVERY_S 10L
#define LIFETIME_S        600L /* of a connection: spreads us over API servers again */

/* The kernel sends again for 15 minutes what nobody acknowledges; a Binding must not come so late.
 */
#define UNACKNOWLEDGED_MS 4000

#define RETRY_AFTER_MAX_S 86400

/* Of a body that is read as it comes: a list's hundreds of megabytes, where every turn of the loop
 * for 16 KiB of them costs as much as their bytes. */
#define STREAM_BYTES (128L * KIB)

/* Needs `CURL *easy` and `CURLcode code`; does nothing after the first failure. */
#define SET(option, value)                                \
    do {                                                  \
        if (code == CURLE_OK)                             \
            code = curl_easy_setopt(easy, option, value); \
    } while (0)

static const char *copy_z(struct arena *a, struct str s)
{
    if (s.p == NULL || s.n == 0)
        return NULL;
    char *z = arena_alloc(a, s.n + 1);
    if (z != NULL)
        memcpy(z, s.p, s.n);
    return z;
}

static struct curl_blob copy_blob(struct arena *a, struct str s)
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
        .user_agent = copy_z(arena, s->user_agent),
        .ca_file = copy_z(arena, s->ca_file),
        .cert_file = copy_z(arena, s->cert_file),
        .key_file = copy_z(arena, s->key_file),
        .proxy_url = copy_z(arena, s->proxy_url),
        .tls_server_name = copy_z(arena, s->tls_server_name),
        .ca_data = copy_blob(arena, s->ca_data),
        .cert_data = copy_blob(arena, s->cert_data),
        .key_data = copy_blob(arena, s->key_data),
        .insecure = s->insecure,
        .allow_http = s->allow_http,
    };
    return !arena_failed(arena);
}

bool transfer_init(struct transfer *t, struct loop *l, struct transfer **in_chunk)
{
    t->loop = l;
    t->in_chunk = in_chunk;
    t->easy = curl_easy_init();
    buf_init(&t->body, LIMIT_REPLY_BYTES); /* nobody sends more than they read */
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

static int on_ready_to_send(void *cls, char *server_ip, char *local_ip, int server_port,
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

/* libcurl opens them for each connection, and would wait for a pipe's writer. */
static bool may_block(const struct transfer_config *c)
{
    return file_may_block(str_of(c->ca_file)) || file_may_block(str_of(c->cert_file)) ||
           file_may_block(str_of(c->key_file));
}

static int on_socket(void *cls, curl_socket_t fd, curlsocktype purpose)
{
    unsigned ms = UNACKNOWLEDGED_MS;
    struct transfer *t = cls;
    (void)purpose;
    if (may_block(t->config)) {
        t->failed = ERR_UNAVAILABLE;
        t->why = "a file of its CA, certificate or key is no regular file";
        return CURL_SOCKOPT_ERROR;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    return CURL_SOCKOPT_OK;
}

static size_t on_header(char *p, size_t size, size_t n, void *cls)
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

static bool collect_reply(struct transfer *t, struct str chunk)
{
    buf_put(&t->call->reply, chunk);
    if (!buf_failed(&t->call->reply))
        return true;
    bool large = t->call->reply.n + chunk.n > t->call->reply.max;
    t->failed = large ? ERR_LIMIT : ERR_NOMEM;
    t->why = large ? "the answer is too large" : "no memory for the answer";
    return false;
}

static size_t on_body(char *p, size_t size, size_t n, void *cls)
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
        return collect_reply(t, chunk) ? chunk.n : chunk.n + 1;
    *t->in_chunk = t;
    enum errc code = call->on_chunk(call, chunk, &call->err);
    *t->in_chunk = NULL;
    if (code == OK)
        return chunk.n;
    t->refused = true;
    if (call->err.code == OK)
        (void)err_set(&call->err, code, "%s", errc_name(code));
    return chunk.n + 1;
}

/* NOLINTEND(readability-non-const-parameter) */

/* ---- setting up ---- */

static CURLcode setup_common(struct transfer *t, const struct transfer_config *c)
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
    SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(CURLOPT_SOCKOPTDATA, (void *)t);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, c->user_agent);
    if (c->proxy_url != NULL)
        SET(CURLOPT_PROXY, c->proxy_url);
    SET(CURLOPT_PRIVATE, (void *)t);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_PREREQFUNCTION, on_ready_to_send);
    SET(CURLOPT_PREREQDATA, (void *)t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, (void *)t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, (void *)t);
    return code;
}

static CURLcode setup_tls(struct transfer *t, const struct transfer_config *c)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    if (c->ca_file != NULL)
        SET(CURLOPT_CAINFO, c->ca_file);
    if (c->ca_data.len > 0)
        SET(CURLOPT_CAINFO_BLOB, &c->ca_data);
    if (c->cert_file != NULL)
        SET(CURLOPT_SSLCERT, c->cert_file);
    if (c->cert_data.len > 0)
        SET(CURLOPT_SSLCERT_BLOB, &c->cert_data);
    if (c->key_file != NULL)
        SET(CURLOPT_SSLKEY, c->key_file);
    if (c->key_data.len > 0)
        SET(CURLOPT_SSLKEY_BLOB, &c->key_data);
    return code;
}

/* Both in one C string, valid until the next; NULL with t->failed where it is none. */
static const char *text_of(struct transfer *t, const char *prefix, struct str s)
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

static CURLcode add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = line == NULL ? NULL : curl_slist_append(*list, line);
    if (longer == NULL)
        return CURLE_OUT_OF_MEMORY;
    *list = longer;
    return CURLE_OK;
}

static CURLcode setup_request(struct transfer *t, const struct http_call *call)
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
    /* Refused, for no harm, by a handle that kept its buffer when its last transfer could not
     * begin. */
    if (call->on_chunk != NULL)
        (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, STREAM_BYTES);
    if (str_eq(method, STR("HEAD")))
        SET(CURLOPT_NOBODY, 1L);
    else
        SET(CURLOPT_CUSTOMREQUEST, call->method);
    if (code == CURLE_OK && call->body.p != NULL)
        code = add_line(&t->headers, text_of(t, "Content-Type: ", type));
    /* Bodies are small, and waiting for a "100 Continue" takes a second where it is not known. */
    if (code == CURLE_OK)
        code = add_line(&t->headers, "Expect:");
    for (size_t i = 0; i < call->n_headers && code == CURLE_OK; i++)
        code = add_line(&t->headers, text_of(t, "", call->headers[i]));
    return code;
}

static CURLcode setup_identity(struct transfer *t, const struct http_call *call)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    if (call->bearer.n > 0) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        SET(CURLOPT_XOAUTH2_BEARER, text_of(t, "", call->bearer));
    } else if (call->username.n > 0) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, text_of(t, "", call->username));
        SET(CURLOPT_PASSWORD, text_of(t, "", call->password));
    }
    return code;
}

/* The URL names `name` instead of its host, and the connection goes to the host all the same. */
static CURLcode rename_host(struct transfer *t, CURLU *u, const char *name)
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
        code = add_line(&t->connect_to, buf_cstr(&t->text));
        buf_clear(&t->text, KIB);
        buf_printf(&t->text, "Host: %s%s%s", host, shown_port == NULL ? "" : ":",
                   shown_port == NULL ? "" : shown_port);
        if (code == CURLE_OK)
            code = add_line(&t->headers, buf_cstr(&t->text));
    }
    curl_free(host);
    curl_free(port);
    curl_free(shown_port);
    CURL *easy = t->easy;
    SET(CURLOPT_CONNECT_TO, t->connect_to);
    return code;
}

static CURLcode setup_url(struct transfer *t, const struct transfer_config *c, struct str url)
{
    CURL *easy = t->easy;
    CURLcode code = CURLE_OK;
    const char *z = text_of(t, "", url);
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
        code = rename_host(t, u, c->tls_server_name);
    if (code == CURLE_OK && curl_url_get(u, CURLUPART_URL, &whole, 0) != CURLUE_OK)
        code = CURLE_OUT_OF_MEMORY;
    SET(CURLOPT_URL, whole);
    curl_free(whole);
    curl_url_cleanup(u);
    return code;
}

void transfer_setup(struct transfer *t, const struct transfer_config *c, struct http_call *call)
{
    CURL *easy = t->easy;
    t->call = call;
    t->config = c;
    t->reached = t->head_whole = t->refused = false;
    t->heard_ms = loop_now_ms(t->loop);
    t->failed = OK;
    t->error[0] = '\0';
    CURLcode code = setup_common(t, c);
    if (code == CURLE_OK)
        code = setup_tls(t, c);
    if (code == CURLE_OK)
        code = setup_request(t, call);
    if (code == CURLE_OK)
        code = setup_identity(t, call);
    if (code == CURLE_OK)
        code = setup_url(t, c, call->url);
    SET(CURLOPT_HTTPHEADER, t->headers);
    if (code != CURLE_OK && t->failed == OK) {
        t->failed = code == CURLE_OUT_OF_MEMORY   ? ERR_NOMEM
                    : code == CURLE_URL_MALFORMAT ? ERR_SYNTAX
                                                  : ERR_INTERNAL;
        t->why = curl_easy_strerror(code);
    }
}

/* ---- the end ---- */

static enum errc errc_of(CURLcode result)
{
    if (result == CURLE_OPERATION_TIMEDOUT)
        return ERR_TIMEOUT;
    if (result == CURLE_OUT_OF_MEMORY)
        return ERR_NOMEM;
    if (result == CURLE_URL_MALFORMAT || result == CURLE_UNSUPPORTED_PROTOCOL)
        return ERR_SYNTAX;
    return ERR_UNAVAILABLE;
}

static uint64_t retry_after_ms(CURL *easy)
{
    struct curl_header *h = NULL;
    uint64_t seconds = 0;
    if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &h) != CURLHE_OK ||
        !str_to_u64(str_trim(str_of(h->value)), RETRY_AFTER_MAX_S, &seconds))
        return 0;
    return seconds * 1000;
}

/* libcurl quotes the URL of a proxy that it can't use, the environment's as well as ours. */
static const char *reason(const struct transfer *t, CURLcode result)
{
    if (t->failed != OK)
        return t->why;
    if (str_starts(str_of(t->error), STR("Unsupported proxy")))
        return "the URL of its proxy cannot be used";
    /* Whatever else may be quoted: a user's password stands before an '@'. */
    if (t->error[0] == '\0' || strchr(t->error, '@') != NULL)
        return curl_easy_strerror(result);
    return t->error;
}

void transfer_judge(struct transfer *t, CURLcode result)
{
    struct http_call *call = t->call;
    struct str url = call->url;
    (void)str_cut(url, '?', &url, &(struct str){0});
    if (t->refused) {
        call->outcome = HTTP_REFUSED;
        (void)err_wrap(&call->err, "%s %.*s", call->method, STR_ARG(url));
        return;
    }
    /* libcurl takes a head that was cut off for a whole answer without a body. */
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
        call->retry_after_ms = retry_after_ms(t->easy);
        return;
    }
    call->outcome = t->reached ? HTTP_UNKNOWN : HTTP_NOT_SENT;
    (void)err_set(&call->err, t->failed != OK ? t->failed : errc_of(result), "%s %.*s: %s",
                  call->method, STR_ARG(url), reason(t, result));
}
