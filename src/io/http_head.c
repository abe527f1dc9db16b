/*
 * Refuses request heads that two HTTP readers can understand differently. libmicrohttpd 0.9.75
 * reads some heads differently from other readers. A proxy in front and this server would then see
 * different requests in the same bytes: the proxy forwards as a body what is a Binding request
 * here. libmicrohttpd 0.9.75
 *   - joins a folded line to the header's name, so that "Content-Length:\r\n 42" is no length;
 *   - takes NUL as the end of a value, and a line that begins with NUL as the end of the head;
 *   - takes a bare LF as the end of a line, and several blanks as one in the first line;
 *   - reads chunks in HTTP/1.0, the first of several lengths, and lengths beside chunks.
 *
 * libmicrohttpd reports only the parsed names and values, which show little of that. But it parses
 * in place: names and values point into the received head. There a NUL has replaced each colon, the
 * blank on each side of the target, and both bytes of each CR LF. So this module walks the head
 * from its first byte to its last, and checks that each name and each value is where a strict
 * reader finds it. It cannot detect NUL LF in place of CR LF, nor bytes before the first line.
 *
 * Later versions are strict themselves and may parse in another way. For those versions only names
 * and values are checked.
 */
#include "http_head.h"

#include "base/str.h"

#define VERSION_BYTES 8 /* "HTTP/1.1" */

static const char odd_line[] =
    "a line of the head is folded, has a control character, or does not end with CR LF";

/* Of two, one reader takes the first and another the last. */
static const struct str once_headers[] = {STR("Host"), STR("Authorization"), STR("Origin"),
                                          STR("Sec-Fetch-Site")};

struct walk {
    const char *at; /* where the next line must begin; NULL: positions are not checked */
    bool chunks;    /* the HTTP version allows chunks */
    unsigned lengths;
    unsigned codings;
    unsigned once[COUNT_OF(once_headers)]; /* how often each of once_headers is there */
    const char *fault;
};

/* 0.9.75 with any suffix of a distribution. */
static bool http_head_reads_in_place(void)
{
    return str_starts(str_of(MHD_get_version()), STR("0.9.75"));
}

int http_head_strictness(void)
{
    return http_head_reads_in_place() ? 0 : 1;
}

static bool http_head_is_token(struct str s)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        if (!letter && !(c >= '0' && c <= '9') && memchr(marks, c, sizeof(marks) - 1) == NULL)
            return false;
    }
    return s.n > 0;
}

static bool http_head_is_text(struct str s, const char *blanks)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c <= 0x20 && memchr(blanks, c, strlen(blanks)) == NULL) || c == 0x7f)
            return false;
    }
    return true;
}

void http_head_begin(struct http_head *h, const char *target)
{
    struct str s = str_of(target);
    h->target = target;
    h->version = target + s.n + 1;
    h->fault = s.n > 0 && http_head_is_text(s, "")
                   ? NULL
                   : "the request's target is empty or has a blank or a control character";
}

/* Whether the header is where a strict reader finds it; moves w->at to the next line. */
static bool http_head_is_in_place(struct walk *w, struct str name, struct str value)
{
    if (w->at == NULL)
        return true;
    if (name.p != w->at)
        return false;
    const char *at = name.p + name.n + 1;
    while (*at == ' ' || *at == '\t')
        at++;
    if (value.p != at || at[value.n] != '\0' || at[value.n + 1] != '\0')
        return false;
    w->at = at + value.n + 2;
    return true;
}

static const char *http_head_header_fault(struct walk *w, struct str name, struct str value)
{
    uint64_t length = 0;
    if (!http_head_is_token(name))
        return "a header's name is empty or has a character that no name has";
    if (!http_head_is_in_place(w, name, value) || !http_head_is_text(value, " \t"))
        return odd_line;
    for (size_t i = 0; i < COUNT_OF(once_headers); i++) {
        if (str_eq_nocase(name, once_headers[i]) && ++w->once[i] > 1)
            return "there are several Hosts, Authorizations, Origins or Sec-Fetch-Sites";
    }
    if (str_eq_nocase(name, STR("Content-Length"))) {
        w->lengths++;
        if (!str_to_u64(value, INT64_MAX, &length))
            return "Content-Length is not a number";
    } else if (str_eq_nocase(name, STR("Transfer-Encoding"))) {
        w->codings++;
        if (!w->chunks)
            return "HTTP/1.0 has no Transfer-Encoding";
        if (!str_eq_nocase(value, STR("chunked")))
            return "Transfer-Encoding is not chunked";
    }
    return w->lengths + w->codings > 1
               ? "there are several Content-Lengths or Transfer-Encodings, or both"
               : NULL;
}

static enum MHD_Result http_head_look_at_header(void *cls, enum MHD_ValueKind kind,
                                                const char *name, size_t name_n, const char *value,
                                                size_t value_n)
{
    struct walk *w = cls;
    (void)kind;
    w->fault = http_head_header_fault(
        w, (struct str){name, name_n},
        (struct str){value == NULL ? "" : value, value == NULL ? 0 : value_n});
    return w->fault == NULL ? MHD_YES : MHD_NO;
}

/* Whether the first line has one blank on each side of its target, and CR LF at its end. */
static bool http_head_first_line_is_in_place(const struct http_head *h, const char *method,
                                             const char *version)
{
    return h->target == method + strlen(method) + 1 && h->version == version &&
           version[VERSION_BYTES] == '\0' && version[VERSION_BYTES + 1] == '\0';
}

const char *http_head_fault(const struct http_head *h, struct MHD_Connection *mhd,
                            const char *method, const char *version)
{
    struct str v = str_of(version);
    bool places = http_head_reads_in_place();
    struct walk w = {.chunks = str_eq(v, STR("HTTP/1.1"))};
    assert(h->target != NULL); /* after http_head_begin */
    if (h->fault != NULL)
        return h->fault;
    if (!w.chunks && !str_eq(v, STR("HTTP/1.0")))
        return "the version is neither HTTP/1.1 nor HTTP/1.0";
    if (!http_head_is_token(str_of(method)) ||
        (places && !http_head_first_line_is_in_place(h, method, version)))
        return "the first line is not METHOD TARGET VERSION, with one blank between, and CR LF";
    if (places)
        w.at = version + VERSION_BYTES + 2;
    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, http_head_look_at_header, &w);
    if (w.fault == NULL && w.chunks && w.once[0] == 0)
        return "an HTTP/1.1 request must have a Host";
    if (w.fault != NULL || !places)
        return w.fault;
    size_t n = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    /* Only the empty line may remain. */
    return w.at + 2 == method + n && w.at[0] == '\0' && w.at[1] == '\0' ? NULL : odd_line;
}
