/*
 * Serves the page. The build writes the files' bytes into ui_rows.inc (scripts/embed). A browser
 * asks again each time, and gets 304 while the bytes are the same: so a page never runs with the
 * script of an older program.
 */
#include "daemon/page/ui.h"

#include "daemon/page/ui_feed.h"

#define POLICY                                                                  \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct ui_asset assets[] = {
#include "ui_rows.inc"
};

const struct ui_asset *ui_asset(struct str name)
{
    struct str wanted = name.n == 0 ? STR("index.html") : name;
    for (size_t i = 0; i < COUNT_OF(assets); i++) {
        if (str_eq(wanted, str_of(assets[i].name)))
            return &assets[i];
    }
    return NULL;
}

/* Accepts a weak etag too: a proxy that compresses makes the etag weak. */
static bool ui_has_etag(struct str list, struct str etag)
{
    while (list.p != NULL) {
        struct str one;
        (void)str_cut(list, ',', &one, &list);
        one = str_trim(one);
        if (str_starts(one, STR("W/")))
            one = str_skip(one, 2);
        if (str_eq(one, etag) || str_eq(one, STR("*")))
            return true;
    }
    return false;
}

static void ui_put_headers(struct http_request *r)
{
    http_request_header(r, "Content-Security-Policy", POLICY);
    http_request_header(r, "X-Content-Type-Options", "nosniff");
    http_request_header(r, "Referrer-Policy", "no-referrer");
}

static void ui_respond_text(struct http_request *r, unsigned status, struct str text)
{
    buf_put(r->answer, text);
    http_request_respond(r, status, "text/plain; charset=utf-8");
}

void ui_handle(struct service *s, struct http_request *r)
{
    ui_put_headers(r);
    if (str_eq(r->path, STR("/ui"))) {
        /* relative, because a proxy may serve the page under a longer path */
        http_request_header(r, "Location", "ui/");
        ui_respond_text(r, 308, STR("see ui/\n"));
        return;
    }
    if (str_eq(r->rest, STR("events"))) {
        ui_feed_handle(s->ui, r);
        return;
    }
    const struct ui_asset *a = ui_asset(r->rest);
    if (a == NULL) {
        ui_respond_text(r, 404, STR("the page has no such file\n"));
        return;
    }
    http_request_header(r, "ETag", a->etag);
    http_request_header(r, "Cache-Control", "no-cache");
    if (ui_has_etag(http_request_value(r, "If-None-Match"), str_of(a->etag))) {
        http_request_respond(r, 304, a->content_type);
        return;
    }
    buf_put(r->answer, (struct str){(const char *)a->bytes, a->n});
    http_request_respond(r, 200, a->content_type);
}
