/*
 * Whether a browser sends a request for a page of somebody else: such a page may send what it likes
 * to any address that its reader's browser reaches, a forwarded port among them, with the reader's
 * certificate. It can read no answer, so only what is not a GET is looked at.
 */
#pragma once

#include "http_server.h"

/* What speaks against it, a literal; NULL: nothing. For a route of that method. */
const char *cross_site_fault(const char *method, struct http_request *r);

/*
 * The same by the headers, absent where they are: Sec-Fetch-Site says it; a browser that does not
 * send it (plain HTTP, but for loopback) sends Origin, which must be the Host, and that an address
 * or localhost: a name may have been bent to us by who answers for it.
 */
const char *cross_site_judge(struct str site, struct str origin, struct str host);
