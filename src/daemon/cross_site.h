/*
 * Refuses requests that a browser sends for a page of another site. Such a page can make its
 * reader's browser send requests to every address that the browser reaches, a forwarded port for
 * example, and with the reader's client certificate. The page cannot read the answer, so GET
 * requests are not checked.
 */
#pragma once

#include "io/http_server.h"

/* Why r must be refused, a literal; NULL: it may be served. method: that of the route. */
const char *cross_site_fault(const char *method, struct http_request *r);

/*
 * The same from the values of the headers Sec-Fetch-Site, Origin and Host; absent where the request
 * has none.
 *
 * - Sec-Fetch-Site says whether the page is of this site. Over plain HTTP it counts only where
 *   the page's address is an IP address or localhost: the owner of a DNS name can make the name
 *   resolve to cardpack (DNS rebinding).
 * - A browser that does not send it (plain HTTP to other than loopback) sends Origin. Origin must
 *   equal Host, and Host must be an IP address or localhost, for the same reason.
 */
const char *cross_site_fault_of(struct str site, struct str origin, struct str host);
