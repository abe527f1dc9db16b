/*
 * One Kubernetes API server: its address, its credentials, and calls to it. It handles transport
 * and authentication, and knows nothing of the content of a request.
 */
#pragma once

#include "io/http_client.h"
#include "kube/kube_credentials.h"

struct kube_api;

/* struct kube_api_settings is in kube_credentials.h. Sends nothing. */
enum errc kube_api_new(struct loop *l, const struct kube_api_settings *s, struct kube_api **ret,
                       struct err *reterr) _must_use_;
struct kube_api *kube_api_free(struct kube_api *a); /* returns NULL */

/* "https://10.0.0.1:443 (in cluster)", "https://... (kubeconfig /etc/...)". */
struct str kube_api_origin(const struct kube_api *a);

/* The namespace of the service account or of the kubeconfig's context; absent: none is named. */
struct str kube_api_namespace(const struct kube_api *a);

/* kube_call_start sets of `http`: method, url, bearer, username, password, headers. */
struct kube_call {
    struct http_call http;
    struct buf url;
};

/*
 * Starts a call. Sets the URL (base + path; path includes the encoded query and is copied), the
 * authentication and the impersonation headers; the caller sets the other fields. The call must be
 * zero at first. Its on_done may start it again, with or without kube_call_done before, which keeps
 * the caller's fields. The token file is read again if the last read was 50 s ago or more. After a
 * 401 the caller should call kube_api_refresh once before a retry. The call must not outlive the
 * api.
 */
void kube_call_start(struct kube_api *a, struct kube_call *c, const char *method, struct str path);
void kube_call_cancel(struct kube_call *c);
void kube_call_done(struct kube_call *c);

/*
 * OK for a 2xx. Otherwise an error text such as "GET https://.../pods: 403: pods is forbidden",
 * with ERR_DENIED for 401 and 403, ERR_NOTFOUND for 404 and 410, ERR_CONFLICT for 409, ERR_TIMEOUT
 * for 504, ERR_UNAVAILABLE for 429, other 5xx and no answer.
 */
enum errc kube_call_result(const struct kube_call *c, struct err *reterr);

/*
 * Reads the token file again now; keeps the old token if the file is unreadable. Closes idle
 * connections if a certificate, key or CA file has changed. A timer does this second part every
 * 5 minutes too.
 */
void kube_api_refresh(struct kube_api *a);

/* s as a value in a query: escapes all but the unreserved characters of RFC 3986. */
void kube_put_escaped(struct buf *out, struct str s);

/* name as exactly one path segment. Also escapes "." and "..", which are no names of objects and
 * would change the path. */
void kube_put_segment(struct buf *out, struct str name);

/* The message of a Status body, otherwise the body's first 200 bytes, on one line. */
struct str kube_status_message(struct str body, struct arena *arena);
