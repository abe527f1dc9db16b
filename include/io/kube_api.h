/*
 * One Kubernetes API server: its address, its credentials, and calls to it. Knows how a request
 * gets there and who we are, nothing of what is asked.
 */
#pragma once

#include "http_client.h"
#include "kube_credentials.h"

struct kube_api;

/* struct kube_api_settings is in kube_credentials.h. No byte is sent. */
enum errc kube_api_new(struct loop *l, const struct kube_api_settings *s, struct kube_api **ret,
                       struct err *reterr) _must_use_;
struct kube_api *kube_api_free(struct kube_api *a); /* returns NULL */

/* "https://10.0.0.1:443 (in cluster)", "https://... (kubeconfig /etc/...)". */
struct str kube_api_origin(const struct kube_api *a);

/* Of the service account or of the kubeconfig's context; absent where neither says. */
struct str kube_api_namespace(const struct kube_api *a);

/* What kube_call_start sets of `http` is: method, url, bearer, username, password, headers. */
struct kube_call {
    struct http_call http;
    struct buf url;
};

/*
 * Starts a call: sets url (base + path, path with its query, already encoded; copied),
 * authentication and impersonation headers, and passes on the rest. The call must be zero at first;
 * it may be started again from its on_done, after kube_call_done (which keeps what the caller set)
 * or without. The token file is re-read when it was read 50 s ago or more; a 401 makes
 * kube_api_refresh worth calling once before a retry. Must not outlive the api.
 */
void kube_call_start(struct kube_api *a, struct kube_call *c, const char *method, struct str path);
void kube_call_cancel(struct kube_call *c);
void kube_call_done(struct kube_call *c);

/*
 * OK for a 2xx. Else what went wrong, for people: "GET https://.../pods: 403: pods is forbidden",
 * with ERR_DENIED for 401 and 403, ERR_NOTFOUND for 404 and 410, ERR_CONFLICT for 409, ERR_TIMEOUT
 * for 504, ERR_UNAVAILABLE for 429, other 5xx and no answer.
 */
enum errc kube_call_result(const struct kube_call *c, struct err *reterr);

/*
 * Reads the token anew at once, keeping the old one where the file is unreadable, and closes idle
 * connections if a certificate or CA file has changed; that alone is done every 5 minutes, too.
 */
void kube_api_refresh(struct kube_api *a);

/* s as a value in a query: all but the unreserved characters of RFC 3986 is escaped. */
void kube_put_escaped(struct buf *out, struct str s);

/* The same as one segment of a path, which it stays: names are DNS labels, and "." or ".." none. */
void kube_put_segment(struct buf *out, struct str name);

/* The message of a Status body, else the body's first 200 bytes, on one line. */
struct str kube_status_message(struct str body, struct arena *arena);
