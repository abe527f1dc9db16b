/*
 * Checks the URLs of API servers and proxies. For an API server, plain http is accepted on the
 * loopback only.
 */
#include "objects/kubeconfig_server.h"

/* "localhost", 127.0.0.0/8 or [::1], with or without a port. */
static bool kubeconfig_server_is_loopback(struct str authority)
{
    struct str host = authority;
    struct str port = STR_NULL;
    if (str_starts(authority, STR("[::1]")))
        return authority.n == 5 || authority.p[5] == ':';
    (void)str_cut(authority, ':', &host, &port);
    if (str_eq_nocase(host, STR("localhost")))
        return true;
    size_t octets = 0;
    for (struct str part, rest = host; rest.p != NULL; octets++) {
        uint64_t octet = 0;
        (void)str_cut(rest, '.', &part, &rest);
        if (!str_to_u64(part, 255, &octet) || (octets == 0 && octet != 127))
            return false;
    }
    return octets == 4;
}

static bool kubeconfig_server_url_is_clean(struct str rest)
{
    for (size_t i = 0; i < rest.n; i++) {
        if (strchr(" \"<>?#@\\", rest.p[i]) != NULL)
            return false;
    }
    return rest.n > 0 && rest.p[0] != '/' && rest.p[0] != ':';
}

enum errc kubeconfig_server_check(struct str *server, struct err *reterr)
{
    struct str given = *server;
    struct str scheme = str_starts(given, STR("http://")) ? STR("http://") : STR("https://");
    struct str rest = str_skip(given, scheme.n);
    struct str authority;
    struct str path;
    /* Not quoted in the error: the part before '@' or after '?' may be a secret. */
    if (memchr(given.p, '@', given.n) != NULL)
        return err_set(reterr, ERR_SYNTAX, "a URL with a user (\"@\") is not supported");
    if (memchr(given.p, '?', given.n) != NULL)
        return err_set(reterr, ERR_SYNTAX, "a URL with a query (\"?\") is not supported");
    if (!str_starts(given, scheme))
        return err_set(reterr, ERR_SYNTAX, "\"%.*s\" must begin with \"https://\"", STR_ARG(given));
    if (!kubeconfig_server_url_is_clean(rest))
        return err_set(reterr, ERR_SYNTAX,
                       "\"%.*s\" must be https://, a host, a port and a path, no more",
                       STR_ARG(given));
    (void)str_cut(rest, '/', &authority, &path);
    if (scheme.n == strlen("http://") && !kubeconfig_server_is_loopback(authority))
        return err_set(reterr, ERR_DENIED,
                       "\"%.*s\" would send credentials in the clear; https is a must "
                       "but for loopback",
                       STR_ARG(given));
    while (str_ends(given, STR("/")))
        given.n--;
    *server = given;
    return OK;
}

enum errc kubeconfig_proxy_check(struct str url, struct err *reterr)
{
    if (url.n == 0 || str_starts(url, STR("http://")) || str_starts(url, STR("https://")) ||
        str_starts(url, STR("socks5://")))
        return OK;
    /* Not quoted in the error: the URL may contain a password. */
    return err_set(reterr, ERR_SYNTAX, "proxy-url: must begin with http://, https:// or socks5://");
}
