/*
 * Request objects. Each has three holders, three bits. So nothing here depends on the order of
 * libmicrohttpd's callbacks when a peer closes. The answer's bytes go from the handler's buf to the
 * socket without a copy.
 *
 * The object that was freed last is reused first: a steady load on few connections uses few objects
 * with warm memory and allocates nothing. The memory of a rare large request is freed.
 */
#include "http_request.h"

#include "base/mem.h"
#include "io/limit.h"

#define HEADERS_MAX (4 * KIB)
#define TEXT        "text/plain; charset=utf-8"

void exchange_set_init(struct exchange_set *s, size_t max_body)
{
    s->max_body = max_body;
    list_init(&s->waiting);
    list_init(&s->handling);
    list_init(&s->streams);
    list_init(&s->free);
}

static void http_request_free(struct exchange *r)
{
    buf_done(&r->body);
    buf_done(&r->answer);
    buf_done(&r->headers);
    arena_done(&r->arena);
    mem_free(r);
}

void exchange_set_done(struct exchange_set *s)
{
    assert(s->live == 0);
    assert(s->active == 0 && s->unsent == 0);
    assert(list_is_empty(&s->waiting) && list_is_empty(&s->handling) && list_is_empty(&s->streams));
    LIST_FOR_EACH (struct exchange, r, &s->free, link)
        http_request_free(r);
}

static struct exchange *http_request_alloc(struct exchange_set *s)
{
    struct exchange *r = LIST_FIRST(&s->free, struct exchange, link);
    assert((r != NULL) == (s->n_free > 0));
    if (r != NULL) {
        list_remove(&r->link);
        s->n_free--;
        return r;
    }
    r = mem_alloc(sizeof(*r));
    if (r == NULL)
        return NULL;
    buf_init(&r->body, 0); /* exchange_new sets the limit */
    buf_init(&r->answer, LIMIT_REQUEST_ARENA);
    buf_init(&r->headers, HEADERS_MAX);
    arena_init(&r->arena, LIMIT_REQUEST_ARENA);
    r->arena.account = r->body.account = r->answer.account = &r->account;
    return r;
}

struct exchange *exchange_new(struct exchange_set *s, struct MHD_Connection *mhd)
{
    struct exchange *r = http_request_alloc(s);
    if (r == NULL)
        return NULL;
    assert(r->held == 0 && r->mhd == NULL && !list_is_linked(&r->link));
    if (!mem_account_join(&r->account, s->memory, LIMIT_REQUEST_FREE)) {
        /* The budget has no room for the memory that the reused object kept. */
        buf_done(&r->body);
        buf_done(&r->answer);
        arena_done(&r->arena);
        (void)!mem_account_join(&r->account, s->memory, LIMIT_REQUEST_FREE);
    }
    s->live++;
    r->set = s;
    r->mhd = mhd;
    r->held = HELD_BY_LIBRARY;
    r->state = STARTED;
    r->suspended = false;
    r->waits = false;
    r->waited = false;
    r->nul_in_path = false;
    r->dropped = false;
    r->stream = NULL;
    r->refused = 0;
    r->received = 0;
    r->body.max = s->max_body;
    address_print(MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr,
                  r->peer);
    r->pub = (struct http_request){
        .peer = str_of(r->peer),
        .id = ++s->last_id,
        .arena = &r->arena,
        .answer = &r->answer,
    };
    return r;
}

static void http_request_recycle(struct exchange_set *s, struct exchange *r)
{
    assert(r->held == 0 && r->mhd == NULL && !r->waits && s->n_free <= LIMIT_KEEP_REQUESTS);
    if (r->answer.account == NULL) {
        buf_done(&r->answer);
        r->answer.account = &r->account;
    }
    mem_account_leave(&r->account);
    if (s->n_free == LIMIT_KEEP_REQUESTS) {
        http_request_free(r);
        return;
    }
    buf_clear(&r->body, LIMIT_KEEP_BYTES);
    buf_clear(&r->answer, LIMIT_KEEP_BYTES);
    buf_clear(&r->headers, HEADERS_MAX);
    if (r->arena.used > LIMIT_KEEP_BYTES)
        arena_done(&r->arena);
    else
        arena_reset(&r->arena);
    list_push_front(&s->free, &r->link);
    s->n_free++;
}

void exchange_let_go(struct exchange *r, enum holder who)
{
    struct exchange_set *s = r->set;
    assert((r->held & (unsigned)who) != 0);
    r->held &= ~(unsigned)who;
    if (who == HELD_BY_LIBRARY) {
        if (r->waits)
            list_remove(&r->link);
        assert(r->state < ANSWERED || s->unsent > 0);
        r->waits = false;
        r->mhd = NULL;
        r->suspended = false;
        if (r->state >= ANSWERED)
            s->unsent--;
    }
    if (r->held != 0)
        return;
    assert(s->live > 0);
    s->live--;
    struct http_stream *stream = r->stream;
    if (stream != NULL) {
        list_remove(&r->link);
        /* stream_gone runs after http_request_recycle(), which ends the account. */
        buf_done(&stream->out);
        stream->out.account = NULL;
    }
    http_request_recycle(s, r);
    if (stream != NULL)
        stream_gone(stream);
}

bool exchange_add_body(struct exchange *r, struct str part)
{
    size_t max = r->set->max_body;
    assert(r->body.n <= max);
    r->received += part.n;
    if (r->refused != 0)
        return r->received <= LIMIT_REFUSED_BODY;
    if (r->received <= max && !r->dropped)
        buf_put(&r->body, part);
    r->dropped = r->dropped || buf_failed(&r->body);
    if (r->received > max || r->dropped)
        buf_done(&r->body);
    return true;
}

void exchange_wait(struct exchange *r)
{
    assert(r->state == READING && !r->suspended && !r->waited);
    MHD_suspend_connection(r->mhd);
    r->suspended = r->waits = r->waited = true;
    r->set->run_soon = true;
    list_push_back(&r->set->waiting, &r->link);
}

bool exchange_resume_first(struct exchange_set *s)
{
    struct exchange *r = LIST_FIRST(&s->waiting, struct exchange, link);
    if (r == NULL)
        return false;
    assert(r->waits && r->suspended && r->mhd != NULL && r->state == READING);
    list_remove(&r->link);
    r->suspended = r->waits = false;
    MHD_resume_connection(r->mhd);
    return true;
}

bool exchange_hand_over(struct exchange *r, const char *method, const char *path)
{
    struct exchange_set *s = r->set;
    assert(r->state == READING);
    assert(!r->waits && r->held == HELD_BY_LIBRARY && r->mhd != NULL);
    r->state = HANDLING;
    r->held |= HELD_BY_HANDLER;
    s->counts->active = ++s->active;
    list_push_back(&s->handling, &r->link);

    r->pub.method = arena_dup(&r->arena, str_of(method));
    r->pub.path = arena_dup(&r->arena, str_of(path));
    if (r->received == 0)
        r->pub.body = STR("");
    else if (r->received <= s->max_body)
        r->pub.body = buf_str(&r->body);
    return !arena_failed(&r->arena) && !r->dropped;
}

void http_request_header(struct http_request *r, const char *name, const char *value)
{
    struct exchange *own = CONTAINER_OF(r, struct exchange, pub);
    assert(own->state == HANDLING);
    buf_put(&own->headers, (struct str){name, strlen(name) + 1});
    buf_put(&own->headers, (struct str){value, strlen(value) + 1});
}

struct str http_request_value(struct http_request *r, const char *name)
{
    struct exchange *own = CONTAINER_OF(r, struct exchange, pub);
    assert(own->state == HANDLING);
    return own->mhd == NULL ? STR_NULL
                            : str_of(MHD_lookup_connection_value(own->mhd, MHD_HEADER_KIND, name));
}

struct str http_request_parameter(struct http_request *r, const char *name)
{
    struct exchange *own = CONTAINER_OF(r, struct exchange, pub);
    const char *value = NULL;
    size_t n = 0;
    assert(own->state == HANDLING);
    if (own->mhd == NULL || MHD_lookup_connection_value_n(own->mhd, MHD_GET_ARGUMENT_KIND, name,
                                                          strlen(name), &value, &n) != MHD_YES)
        return STR_NULL;
    return value == NULL ? STR("") : (struct str){value, n};
}

static void http_request_answer_text(struct exchange *r, struct str text)
{
    buf_clear(&r->headers, HEADERS_MAX);
    buf_clear(&r->answer, LIMIT_KEEP_BYTES);
    buf_put(&r->answer, text);
}

static void http_request_no_memory_text(struct exchange *r)
{
    assert(r->stream == NULL);
    struct exchange_set *s = r->set;
    s->counts->no_memory++;
    s->refuses = true;
    if (s->no_memory != NULL)
        s->no_memory(s->ctx, &r->pub);
    buf_done(&r->body);
    buf_done(&r->answer);
    r->answer.account = NULL; /* do not count this text: it must always fit */
    http_request_answer_text(
        r, STR("memory-budget is spent by other requests, or too small for this one: ask "
               "again\n"));
    http_request_header(&r->pub, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

void http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    struct exchange *own = CONTAINER_OF(r, struct exchange, pub);
    assert(own->state == HANDLING && status >= 200 && status <= 999);
    assert((own->held & HELD_BY_HANDLER) != 0 && own->set->active > 0 && content_type != NULL);
    assert(!own->suspended || own->mhd != NULL);
    if (own->account.refused && own->stream == NULL) {
        /* The answer was built while memory was refused, so it is not complete. */
        http_request_no_memory_text(own);
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
        content_type = TEXT;
    }
    own->state = ANSWERED;
    own->status = status;
    own->content_type = content_type;
    list_remove(&own->link);
    if (own->stream != NULL)
        list_push_back(&own->set->streams, &own->link);
    own->set->active--;
    own->set->counts->active = own->set->active;
    if (own->set->answered != NULL)
        own->set->answered(own->set->ctx, r, status);
    if (own->mhd != NULL)
        own->set->unsent++;
    if (own->suspended) {
        MHD_resume_connection(own->mhd);
        own->set->run_soon = true;
    }
    own->suspended = false;
    exchange_let_go(own, HELD_BY_HANDLER);
}

void exchange_respond_text(struct exchange *r, unsigned status, const char *text)
{
    http_request_answer_text(r, str_of(text));
    http_request_respond(&r->pub, status, TEXT);
}

void exchange_respond_refusal(struct exchange *r)
{
    assert(r->refused >= 400);
    const char *text = "this client is not admitted\n";
    if (r->refused == MHD_HTTP_UNAUTHORIZED)
        text = "a token or a certificate is missing, or is not the right one\n";
    else if (r->refused == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
        text = "too many headers\n";
    http_request_answer_text(r, str_of(text));
    if (r->refused == MHD_HTTP_UNAUTHORIZED)
        http_request_header(&r->pub, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (!r->set->closing)
        http_request_header(&r->pub, MHD_HTTP_HEADER_CONNECTION, "close");
    http_request_respond(&r->pub, r->refused, TEXT);
}

void exchange_respond_bad(struct exchange *r, const char *fault)
{
    http_request_answer_text(r, str_of(fault));
    buf_putc(&r->answer, '\n');
    if (!r->set->closing)
        http_request_header(&r->pub, MHD_HTTP_HEADER_CONNECTION, "close");
    http_request_respond(&r->pub, MHD_HTTP_BAD_REQUEST, TEXT);
}

void exchange_response_gone(void *request)
{
    struct exchange *r = request;
    assert(r->state == SENDING && r->set->counts->unsent_bytes >= r->unsent);
    r->set->counts->unsent_bytes -= r->unsent;
    exchange_let_go(r, HELD_BY_RESPONSE);
}

static bool http_request_response_headers(const struct exchange *r, struct MHD_Response *m)
{
    if (r->set->closing &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CONNECTION, "close") != MHD_YES)
        return false;
    for (size_t at = 0; at < r->headers.n;) {
        const char *name = r->headers.p + at;
        const char *value = name + strlen(name) + 1;
        if (MHD_add_response_header(m, name, value) != MHD_YES)
            return false;
        at = (size_t)(value - r->headers.p) + strlen(value) + 1;
    }
    return MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->content_type) == MHD_YES;
}

enum MHD_Result exchange_send(struct exchange *r)
{
    assert(r->state == ANSWERED);
    assert(r->mhd != NULL && !r->suspended && r->status >= 200 && r->content_type != NULL);
    bool whole = !buf_failed(&r->answer) && !buf_failed(&r->headers);
    if (!whole) {
        http_request_answer_text(r, STR("the answer did not fit into memory\n"));
        r->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        r->content_type = TEXT;
    }
    r->state = SENDING;
    r->held |= HELD_BY_RESPONSE;
    struct MHD_Response *m = whole && r->stream != NULL
                                 ? stream_response(r)
                                 : MHD_create_response_from_buffer_with_free_callback_cls(
                                       r->answer.n, r->answer.p, exchange_response_gone, r);
    if (m == NULL) {
        exchange_let_go(r, HELD_BY_RESPONSE);
        return MHD_NO;
    }
    r->unsent = r->answer.n;
    r->set->counts->unsent_bytes += r->unsent;
    enum MHD_Result result = MHD_NO;
    if (http_request_response_headers(r, m))
        result = MHD_queue_response(r->mhd, r->status, m);
    MHD_destroy_response(m);
    return result;
}
