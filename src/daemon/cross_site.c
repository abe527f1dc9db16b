/*
 * Protects the verbs and the embedded cluster from other sites' pages (CSRF and DNS rebinding), by
 * the headers that browsers set.
 */
#include "daemon/cross_site.h"

#include <string.h>

/* "10.0.0.7:32766", "[::1]:39999", "localhost": a host that no DNS server resolves. */
static bool cross_site_is_address(struct str host)
{
    bool digits = true;
    if (str_starts(host, STR("[")))
        return true;
    struct str name = host;
    for (size_t i = 0; i < host.n; i++) {
        if (host.p[i] == ':') {
            name.n = i;
            break;
        }
        digits = digits && ((host.p[i] >= '0' && host.p[i] <= '9') || host.p[i] == '.');
    }
    return name.n > 0 && (digits || str_eq_nocase(name, STR("localhost")));
}

/*
 * Sec-Fetch-Site is same-origin. The browser compares names, and the page's author may own a name
 * that resolves to cardpack. With https that is impossible: the certificate would not match. Origin
 * is preferred to Host, because a proxy may replace Host.
 */
static const char *cross_site_same_origin_fault(struct str origin, struct str host)
{
    struct str page = origin.p == NULL ? host : origin;
    if (str_starts(page, STR("https://")))
        return NULL;
    if (str_starts(page, STR("http://")))
        page = str_skip(page, strlen("http://"));
    return cross_site_is_address(page)
               ? NULL
               : "a page may ask over plain HTTP by an address or as localhost only "
                 "(its Origin or Host is a name)";
}

const char *cross_site_fault_of(struct str site, struct str origin, struct str host)
{
    struct str from = origin;
    if (site.p != NULL && str_eq(site, STR("same-origin")))
        return cross_site_same_origin_fault(origin, host);
    if (site.p != NULL)
        return str_eq(site, STR("none")) ? NULL : "a page of another site asks (Sec-Fetch-Site)";
    if (origin.p == NULL)
        return NULL;
    if (str_starts(origin, STR("https://")))
        from = str_skip(origin, strlen("https://"));
    else if (str_starts(origin, STR("http://")))
        from = str_skip(origin, strlen("http://"));
    if (!str_eq_nocase(from, host))
        return "a page of another site asks (its Origin is not this Host)";
    return cross_site_is_address(host)
               ? NULL
               : "a page may ask over plain HTTP by an address or as localhost only "
                 "(its Origin is a name)";
}

const char *cross_site_fault(const char *method, struct http_request *r)
{
    if (strcmp(method, "GET") == 0)
        return NULL;
    struct str site = http_request_value(r, "Sec-Fetch-Site");
    struct str origin = http_request_value(r, "Origin");
    if (site.p == NULL && origin.p == NULL)
        return NULL;
    return cross_site_fault_of(site, origin, http_request_value(r, "Host"));
}
