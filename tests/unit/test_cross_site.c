/* Requests that a browser sends from another site are refused. */
#include "daemon/cross_site.h"

#include "unit.h"

static const struct {
    const char *site; /* NULL: the client does not send it */
    const char *origin;
    const char *host;
    const char *fault; /* a part of the fault; NULL: none */
} asked[] = {
    {NULL, NULL, "10.0.0.7:32766", NULL}, /* curl, kube-scheduler */
    {NULL, NULL, NULL, NULL},
    {"same-origin", "http://127.0.0.1:39999", "127.0.0.1:39999", NULL},
    {"same-origin", "http://127.0.0.1:8001", "cardpack", NULL}, /* behind kubectl proxy */
    {"same-origin", NULL, "127.0.0.1:39999", NULL},
    {"same-origin", "http://127.0.0.1:8001", "api.example:6443", NULL},    /* likewise */
    {"same-origin", "https://cardpack.example", "cardpack.example", NULL}, /* an Ingress */
    {"same-origin", NULL, "evil.example:39999", "is a name"},
    {"same-origin", NULL, NULL, "is a name"},
    {"same-origin", "http://evil.example:39999", "evil.example:39999", "is a name"},
    {"same-origin", "http://evil.example:39999", "127.0.0.1:39999", "is a name"},
    {"same-origin", "null", "127.0.0.1:39999", "is a name"},
    {"none", NULL, "127.0.0.1:39999", NULL},
    {"cross-site", "http://evil.example", "127.0.0.1:39999", "Sec-Fetch-Site"},
    {"same-site", "http://localhost:8080", "localhost:39999", "Sec-Fetch-Site"},
    {"", NULL, "127.0.0.1:39999", "Sec-Fetch-Site"},
    {NULL, "http://evil.example", "127.0.0.1:39999", "Origin is not this Host"},
    {NULL, "http://127.0.0.1:8080", "127.0.0.1:39999", "Origin is not this Host"},
    {NULL, "null", "127.0.0.1:39999", "Origin is not this Host"},
    {NULL, "http://127.0.0.1:39999", NULL, "Origin is not this Host"},
    {NULL, "", "127.0.0.1:39999", "Origin is not this Host"},
    {NULL, "", "", "Origin is a name"},
    {NULL, "http://127.0.0.1:39999", "127.0.0.1:39999", NULL},
    {NULL, "http://10.0.0.7:32766", "10.0.0.7:32766", NULL},
    {NULL, "http://[fe80::1]:32766", "[fe80::1]:32766", NULL},
    {NULL, "http://LOCALHOST:39999", "localhost:39999", NULL},
    {NULL, "http://evil.example:39999", "evil.example:39999", "Origin is a name"},
    {NULL, "http://localhost.evil.example", "localhost.evil.example", "Origin is a name"},
    {NULL, "http://7.evil", "7.evil", "Origin is a name"},
    {NULL, "http://:39999", ":39999", "Origin is a name"},
    {NULL, "https://10.0.0.7:32766", "10.0.0.7:32766", NULL},
    {NULL, "https://evil.example", "evil.example", "Origin is a name"}, /* a form posts to http */
    {NULL, "https://evil.example", "cardpack.example", "Origin is not this Host"},
};

TEST_EACH(who_may_ask, COUNT_OF(asked))
{
    const char *fault = cross_site_fault_of(str_of(asked[_i].site), str_of(asked[_i].origin),
                                            str_of(asked[_i].host));
    if (asked[_i].fault == NULL)
        ck_assert_ptr_null(fault);
    else
        ck_assert_msg(fault != NULL && strstr(fault, asked[_i].fault) != NULL, "%d: %s", _i,
                      fault == NULL ? "none" : fault);
}
