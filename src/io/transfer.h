/*
 * Private to the HTTP client: one libcurl easy handle, set up for a call; sets the call's outcome
 * at its end.
 */
#pragma once

#include "base/arena.h"
#include "io/http_client.h"

#include <curl/curl.h>

/* NUL-terminated copies in an arena; NULL where absent. */
struct transfer_config {
    const char *user_agent;
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    const char *proxy_url;
    const char *socket;
    const char *tls_server_name;
    struct curl_blob ca_data; /* length 0 if absent */
    struct curl_blob cert_data;
    struct curl_blob key_data;
    bool insecure;
    bool allow_http;
};

struct transfer {
    CURL *easy;
    struct http_call *call; /* NULL: canceled */
    const struct transfer_config *config;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    struct buf body; /* a copy: a canceled call's memory may be freed before libcurl ends */
    struct buf text; /* scratch */
    char error[CURL_ERROR_SIZE];
    bool reached;      /* a connection was ready for the request: a server may have received it */
    bool head_whole;   /* the last head was received to its empty line */
    bool refused;      /* by on_chunk */
    enum errc failed;  /* the failure of our own code, not of libcurl */
    const char *why;   /* a literal, with failed */
    uint64_t heard_ms; /* loop time of the last received bytes */
    struct loop *loop;
    struct transfer *
        *in_chunk; /* the owner's: the transfer whose on_chunk is being called, or NULL */
};

/* Copies the settings; false: no memory. */
bool transfer_config_init(struct transfer_config *c, struct arena *arena,
                          const struct http_client_settings *s) _must_use_;

bool transfer_init(struct transfer *t, struct loop *l, struct transfer **in_chunk) _must_use_;
void transfer_done(struct transfer *t); /* also allowed after a failed transfer_init */

/* Prepares everything except the start. t->failed is set if that is impossible. */
void transfer_setup(struct transfer *t, const struct transfer_config *c, struct http_call *call);

/* Sets outcome, status, retry_after_ms and err of the call. CURLE_OK wins over t->failed. */
void transfer_set_outcome(struct transfer *t, CURLcode result);

/* Drops the call and the copies of its fields. */
void transfer_reset(struct transfer *t);
