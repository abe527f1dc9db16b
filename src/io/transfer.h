/*
 * Private to the HTTP client: one libcurl easy handle, set up for a call and judged when it ends.
 */
#pragma once

#include "arena.h"
#include "http_client.h"

#include <curl/curl.h>

/* NUL-terminated copies in an arena; NULL where absent. */
struct transfer_config {
    const char *user_agent;
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    const char *proxy_url;
    const char *tls_server_name;
    struct curl_blob ca_data; /* of length 0 where absent */
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
    struct buf body; /* a copy: a canceled call's memory may be gone before libcurl is done */
    struct buf text; /* scratch */
    char error[CURL_ERROR_SIZE];
    bool reached;      /* a server stood ready for the request: from then on it may have arrived */
    bool head_whole;   /* the last status line's head ended with an empty line */
    bool refused;      /* by on_chunk */
    enum errc failed;  /* by us, not by libcurl */
    const char *why;   /* a literal, with failed */
    uint64_t heard_ms; /* loop time of the last bytes that came */
    struct loop *loop;
    struct transfer **in_chunk; /* the owner's: whose on_chunk is being called, or NULL */
};

/* Copies the settings; false without memory. */
bool transfer_config_init(struct transfer_config *c, struct arena *arena,
                          const struct http_client_settings *s) _must_use_;

bool transfer_init(struct transfer *t, struct loop *l, struct transfer **in_chunk) _must_use_;
void transfer_done(struct transfer *t); /* also of one that could not be made */

/* Everything but the sending. Where that is impossible, t->failed says so. */
void transfer_setup(struct transfer *t, const struct transfer_config *c, struct http_call *call);

/* Fills the call's outcome, status, retry_after_ms and err. CURLE_OK counts before t->failed. */
void transfer_judge(struct transfer *t, CURLcode result);

/* Forgets the call and what was copied from it. */
void transfer_reset(struct transfer *t);
