/* Heads that two HTTP readers may read differently: the server answers 400 and reads nothing after
 * them. */
#include "base/limit.h"
#include "http_fixture.h"
#include "seeded.h"

#include <ctype.h>
#include <netinet/tcp.h>

#define RAW(text)                 \
    {                             \
        "" text, sizeof(text) - 1 \
    }
#define TURNS  40 /* none of them sleeps */
#define FIRST  "POST /echo HTTP/1.1\r\nHost: x\r\n"
#define BEHIND "0\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n"

static const struct str refused[] = {
    RAW(FIRST "Content-Length:\r\n 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 4\r\n 2\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length:\r\n\t5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length:\n 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-\r\n Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\r\n Content-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\r\n b\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\r\n \r\nContent-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding:\r\n chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chun\r\n ked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: x,\r\n chunked\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1\r\n Host: x\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1\r\nHost: x\r\n Content-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\0\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\0000\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: \0005\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length\0: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content\0-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "\0Content-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\r\n\0\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\0\0Content-Length\0 5\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\0\0Y: b\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked\0\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked\0, x\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding\0: chunked\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\nContent-Length: 44\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\ncontent-length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5, 5\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" BEHIND),
    RAW(FIRST "transfer-encoding: gzip, chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: chunked, identity\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: identity\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: \"chunked\"\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n" BEHIND),
    RAW(FIRST "Transfer-Encoding:\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length : 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length\t: 5\r\n\r\n" BEHIND),
    RAW(FIRST " Content-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: +5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: -5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 0x5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5x\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length:\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: \r5\r\n\r\n" BEHIND),
    RAW(FIRST "X: a\rContent-Length: 5\r\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\n\r\n" BEHIND),
    RAW(FIRST "Content-Length: 5\r\n\n" BEHIND),
    RAW("POST /echo HTTP/1.1\nHost: x\r\nContent-Length: 5\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1\nHost: x\nContent-Length: 5\n\n" BEHIND),
    RAW("POST /echo HTTP/1.0\n\n" BEHIND),
    RAW("POST /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" BEHIND),
    RAW(FIRST "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" BEHIND),
    RAW(FIRST "authorization:\r\nX: y\r\nAUTHORIZATION: Bearer b\r\n\r\n" BEHIND),
    RAW(FIRST "Origin: http://x\r\nOrigin: http://y\r\n\r\n" BEHIND),
    RAW(FIRST "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1\r\nX-Host: x\r\n\r\n" BEHIND),
    RAW("POST /echo /x HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST  /echo HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.1 \r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST\0 /echo HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("PO\0ST /echo HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("PO(ST /echo HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST\t/echo /x HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST /ec\0ho HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST /ec\tho HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST /ec\rho HTTP/1.1\r\nHost: x\r\n\r\n" BEHIND),
    RAW("POST /echo HTTP/1.2\r\nHost: x\r\n\r\n" BEHIND),
    RAW(FIRST ": 5\r\n\r\n" BEHIND),
    RAW(FIRST "(X): 5\r\n\r\n" BEHIND),
    RAW(FIRST "X: \x7f\r\n\r\n" BEHIND),
    RAW(FIRST "X: \x1b[2J\r\n\r\n" BEHIND),
};

static const struct {
    struct str bytes;
    size_t handled;
} taken[] = {
    {RAW("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"), 1},
    {RAW("GET /echo HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nOrigin: http://x\r\nX: a\r\nX: "
         "b\r\n\r\n"),
     1},
    {RAW("GET /echo HTTP/1.0\r\n\r\n"), 1},
    {RAW("GET /echo HTTP/1.0\r\nX:\r\n\r\n"), 1},
    {RAW("\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n"), 1},
    {RAW("GET /%65cho?a=%20b&c HTTP/1.1\r\nhOST:x\r\n\r\n"), 1},
    {RAW("GET /echo?a=%zz HTTP/1.1\r\nHost:\r\nCookie: a=b; c=\"d\"\r\nX: \t y\xc3\xa4\tz\r\n\r\n"),
     1},
    {RAW(FIRST "Content-Length: 005\r\n\r\nabcde"), 1},
    {RAW(FIRST "Content-Length:5\r\nX: y: z\r\nY:\r\n\r\nabcde" FIRST "\r\n"), 2},
    {RAW("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nabcde"), 1},
    {RAW(FIRST "transfer-encoding: Chunked\r\n\r\n1;x=y\r\na\r\n0\r\nX: y\r\n\r\n" FIRST "\r\n"),
     2},
};

/* Sends all at once, or a byte each turn: bytes that were read stay in place. */
static void send_in_parts(struct http_fixture *s, struct raw_conn *p, struct str bytes, bool each)
{
    int on = 1;
    ck_assert_int_eq(setsockopt(p->fd.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    for (size_t n; bytes.n > 0; bytes = str_skip(bytes, n)) {
        n = each ? 1 : bytes.n;
        raw_conn_send(p, (struct str){bytes.p, n});
        run_turns(s->loop, 3);
    }
    run_turns(s->loop, TURNS);
}

/* libmicrohttpd 0.9.75 would answer by itself, with its head twice. */
TEST(a_request_without_a_host_is_answered_once)
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    raw_conn_send(&p, STR("GET /echo HTTP/1.1\r\n\r\n"));
    raw_conn_await_end(&p);
    ck_assert_uint_eq(s.handled, 0);
    ck_assert_uint_eq(raw_conn_count(&p, "HTTP/1.1 400 Bad Request\r\n"), 1);
    ck_assert_uint_eq(raw_conn_count(&p, "an HTTP/1.1 request must have a Host"), 1);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST_EACH(heads_with_two_readings_are_refused, 2 * COUNT_OF(refused))
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    send_in_parts(&s, &p, refused[_i / 2], _i % 2 == 1);
    ck_assert_msg(p.closed, "%d is not cut", _i / 2);
    ck_assert_uint_eq(s.handled, 0);
    ck_assert_uint_eq(raw_conn_count(&p, " 200 OK\r\n"), 0);
    if (_i % 2 == 0) /* else a cut while bytes are under way may lose the answer */
        ck_assert_uint_gt(raw_conn_count(&p, " 400 Bad Request\r\n"), 0);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

TEST_EACH(heads_with_one_reading_are_taken, 2 * COUNT_OF(taken))
{
    struct http_fixture s;
    struct raw_conn p;
    http_fixture_open(&s);
    dial(&s, &p);
    send_in_parts(&s, &p, taken[_i / 2].bytes, _i % 2 == 1);
    ck_assert_msg(s.handled == taken[_i / 2].handled, "%zu: %.*s", s.handled,
                  STR_ARG(buf_str(&p.in)));
    ck_assert_uint_eq(raw_conn_count(&p, " 200 OK\r\n"), taken[_i / 2].handled);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

/* The head stays in one piece until libmicrohttpd's pool is nearly full. */
TEST(long_heads_are_taken)
{
    struct http_fixture s;
    struct raw_conn p;
    struct buf head;
    http_fixture_open(&s);
    dial(&s, &p);
    buf_init(&head, MIB);
    buf_put(&head, STR(FIRST "Content-Length: 5\r\n"));
    for (int i = 0; i < 90; i++)
        buf_printf(&head, "X-%d: %0*d\r\n", i, (i * 7) % 400, i);
    buf_put(&head, STR("\r\nabcde"));
    for (size_t at = 0; at < head.n; at += 1000) {
        raw_conn_send(&p, (struct str){head.p + at, MIN_OF(head.n - at, (size_t)1000)});
        run_turns(s.loop, 3);
    }
    run_turns(s.loop, TURNS);
    ck_assert_uint_eq(s.handled, 1);
    ck_assert_uint_eq(raw_conn_count(&p, "abcde"), 1);
    buf_done(&head);
    raw_conn_close(&p);
    http_fixture_close(&s);
}

/* ---- compared with a second reader ---- */

#define ASKED_MAX 16

struct asked {
    char target[32];
    size_t body_n;
};

struct reading {
    struct asked asked[ASKED_MAX];
    size_t n;
};

/* Takes one line that ends with CR LF off s; false: there is no whole line. */
static bool take_line(struct str *s, struct str *ret)
{
    for (size_t i = 1; i < s->n; i++) {
        /* libmicrohttpd does not report NUL LF in place of CR LF: see http_head.c. */
        if (s->p[i] != '\n' || (s->p[i - 1] != '\r' && s->p[i - 1] != '\0'))
            continue;
        *ret = (struct str){s->p, i - 1};
        *s = str_skip(*s, i + 1);
        return true;
    }
    return false;
}

static bool all_of(struct str s, bool (*is)(unsigned char c))
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

static bool is_visible(unsigned char c)
{
    return c > 0x20 && c != 0x7f;
}

static bool is_value_char(unsigned char c)
{
    return is_visible(c) || c == ' ' || c == '\t';
}

static bool is_name_char(unsigned char c)
{
    return c < 0x80 && (isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL));
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(unsigned char c)
{
    return c < 0x80 && isxdigit(c);
}

static size_t value_of(char hex)
{
    return is_digit((unsigned char)hex) ? (size_t)(hex - '0') : (size_t)((hex | 0x20) - 'a' + 10);
}

struct framing {
    size_t lengths;
    size_t codings;
    size_t hosts;
    uint64_t length;
};

static bool read_header(struct str line, struct framing *f)
{
    struct str name;
    struct str value;
    if (!str_cut(line, ':', &name, &value) || name.n == 0 || !all_of(name, is_name_char))
        return false;
    while (value.n > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
        value = str_skip(value, 1);
    if (!all_of(value, is_value_char))
        return false;
    f->hosts += str_eq_nocase(name, STR("host")) ? 1 : 0;
    if (str_eq_nocase(name, STR("content-length"))) {
        f->lengths++;
        return value.n > 0 && value.n < 18 && all_of(value, is_digit) &&
               str_to_u64(value, UINT64_MAX, &f->length);
    }
    if (str_eq_nocase(name, STR("transfer-encoding"))) {
        f->codings++;
        return str_eq_nocase(value, STR("chunked"));
    }
    return true;
}

/* Reads chunks as libmicrohttpd does: it accepts a bare LF there, and does not report it either. */
static bool read_chunks(struct str *s, size_t *ret_n)
{
    for (*ret_n = 0;;) {
        const char *end = memchr(s->p, '\n', s->n);
        struct str digits = {s->p, 0};
        if (end == NULL)
            return false;
        while (is_hex((unsigned char)digits.p[digits.n]))
            digits.n++;
        size_t size = 0;
        for (size_t i = 0; i < MIN_OF(digits.n, (size_t)8); i++)
            size = size * 16 + value_of(digits.p[i]);
        *s = str_skip(*s, (size_t)(end - s->p) + 1);
        if (digits.n == 0 || digits.n > 8)
            return false;
        if (size == 0)
            break;
        size_t tail = size < s->n && s->p[size] == '\r' ? 2 : 1;
        if (size + tail > s->n || s->p[size + tail - 1] != '\n')
            return false;
        *ret_n += size;
        *s = str_skip(*s, size + tail);
    }
    for (;;) { /* the trailer section */
        const char *end = memchr(s->p, '\n', s->n);
        if (end == NULL)
            return false;
        bool last = s->p[0] == '\n' || s->p[0] == '\r' || s->p[0] == '\0';
        *s = str_skip(*s, (size_t)(end - s->p) + 1);
        if (last)
            return true;
    }
}

static bool read_request(struct str *s, struct asked *ret)
{
    struct framing f = {.lengths = 0};
    struct str line;
    struct str method;
    struct str target;
    struct str version;
    /* Skips lines before the request line as libmicrohttpd does; it does not report them. */
    while (s->n > 0 && (s->p[0] == '\r' || s->p[0] == '\n' || s->p[0] == '\0')) {
        const char *end = memchr(s->p, '\n', s->n);
        if (end == NULL || (s->p[0] == '\r' && end != s->p + 1))
            return false;
        *s = str_skip(*s, (size_t)(end - s->p) + 1);
    }
    if (!take_line(s, &line) || !str_cut(line, ' ', &method, &target) ||
        !str_cut(target, ' ', &target, &version) || method.n == 0 || target.n == 0 ||
        !all_of(method, is_name_char) || !all_of(target, is_visible))
        return false;
    bool old = str_eq(version, STR("HTTP/1.0"));
    if (!old && !str_eq(version, STR("HTTP/1.1")))
        return false;
    for (;;) {
        if (!take_line(s, &line))
            return false;
        if (line.n == 0)
            break;
        if (!read_header(line, &f))
            return false;
    }
    if (f.lengths + f.codings > 1 || f.hosts > 1 || (!old && f.hosts == 0) ||
        (old && f.codings > 0))
        return false;
    (void)snprintf(ret->target, sizeof(ret->target), "%.*s", STR_ARG(target));
    if (f.codings > 0)
        return read_chunks(s, &ret->body_n);
    if (f.length > s->n)
        return false;
    ret->body_n = f.length;
    *s = str_skip(*s, f.length);
    return true;
}

static void record(void *ctx, struct http_request *r)
{
    struct reading *here = ctx;
    ck_assert_uint_lt(here->n, ASKED_MAX);
    struct asked *a = &here->asked[here->n++];
    (void)snprintf(a->target, sizeof(a->target), "%.*s", STR_ARG(r->path));
    a->body_n = r->body.n;
    http_request_respond(r, 200, "text/plain");
}

/* Pieces of a stream of requests; mostly valid ones, so that many requests are accepted. */
static const struct str pieces[] = {
    RAW("\r\n"),
    RAW("\r\n"),
    RAW("\r\n\r\n"),
    RAW("\r\n\r\n"),
    RAW(" "),
    RAW("\t"),
    RAW("\n"),
    RAW("\r"),
    RAW("\0"),
    RAW(":"),
    RAW("Content-Length: 5"),
    RAW("Content-Length: 5\r\n"),
    RAW("Content-Length:"),
    RAW("Content-Length"),
    RAW("Transfer-Encoding: chunked\r\n"),
    RAW("Transfer-Encoding:"),
    RAW("chunked"),
    RAW("Host: x\r\n"),
    RAW("X: y\r\n"),
    RAW("GET /b HTTP/1.1\r\nHost: x\r\n"),
    RAW("POST /c HTTP/1.0\r\n"),
    RAW("POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde"),
    RAW("1\r\na\r\n0\r\n\r\n"),
    RAW("0\r\n\r\n"),
    RAW("5"),
    RAW("abcde"),
    RAW("\x0b"),
    RAW("+"),
    RAW(","),
};

static const struct str seeds[] = {
    RAW("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde"),
    RAW("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"),
    RAW("POST /a HTTP/1.0\r\nContent-Length: 5\r\nX: y\r\n\r\nabcde"),
    RAW("GET /a HTTP/1.1\r\nHost: x\r\nX: y\r\nY: z\r\n\r\n"),
};

static void mutate(struct buf *out, uint64_t *seed)
{
    struct buf next;
    size_t at = seeded_draw(seed, (uint32_t)out->n + 1);
    size_t drop = seeded_draw(seed, (uint32_t)3) == 0 ? seeded_draw(seed, (uint32_t)4) : 0;
    struct str piece = pieces[seeded_draw(seed, (uint32_t)COUNT_OF(pieces))];
    buf_init(&next, MIB);
    buf_put(&next, (struct str){out->p, at});
    buf_put(&next, piece);
    buf_put(&next, str_skip(buf_str(out), MIN_OF(at + drop, out->n)));
    buf_done(out);
    *out = next;
}

/* What the server accepts a strict reader accepts too, as the same requests with bodies of the same
 * length. */
TEST_EACH(nothing_is_taken_that_a_strict_reader_reads_otherwise, 4)
{
    size_t requests = 0;
    uint64_t seed = (uint64_t)_i * 7919 + 1;
    for (int round = 0; round < 500; round++) {
        struct http_fixture s = {.handled = 0};
        struct reading here = {.n = 0};
        struct raw_conn p;
        struct buf bytes;
        struct http_server_settings set = settings(&s);
        struct err e = ERR_INIT;
        set.handle = record;
        set.answered = NULL;
        set.ctx = &here;
        s.loop = loop_make();
        ck_assert_ok(http_server_new(s.loop, &set, &s.server, &e), &e);
        buf_init(&bytes, MIB);
        buf_put(&bytes, seeds[seeded_draw(&seed, (uint32_t)COUNT_OF(seeds))]);
        buf_put(&bytes, STR("GET /z HTTP/1.1\r\nHost: x\r\n\r\n"));
        for (size_t n = seeded_draw(&seed, (uint32_t)4); n > 0; n--)
            mutate(&bytes, &seed);
        dial(&s, &p);
        raw_conn_send(&p, buf_str(&bytes));
        run_turns(s.loop, 12);
        struct str rest = buf_str(&bytes);
        for (size_t i = 0; i < here.n; i++) {
            struct asked a = {.body_n = 0};
            ck_assert_msg(read_request(&rest, &a), "seed %d round %d: request %zu is none", _i,
                          round, i);
            ck_assert_str_eq(a.target, here.asked[i].target);
            ck_assert_uint_eq(a.body_n, here.asked[i].body_n);
        }
        requests += here.n;
        buf_done(&bytes);
        raw_conn_close(&p);
        s.server = http_server_free(s.server);
        s.loop = loop_free(s.loop);
    }
    ck_assert_uint_gt(requests, 250); /* otherwise the test proves nothing */
}
