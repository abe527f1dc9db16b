/*
 * Any name stays one segment of a URL's path: decoding gives the name, and libcurl's parser finds
 * as many segments as were written.
 */
#include "base/limit.h"
#include "kube/kube_api.h"
#include "rules.h"

#include <curl/curl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void unescapes_to(struct str segment, struct str name)
{
    size_t n = 0;
    for (size_t i = 0; i < segment.n; i++, n++) {
        char c = segment.p[i];
        check(c > ' ' && c < 0x7f && strchr("/?#\\:@;&=+", c) == NULL, "nothing that means more");
        if (c == '%') {
            check(i + 2 < segment.n && digit(segment.p[i + 1]) >= 0 && digit(segment.p[i + 2]) >= 0,
                  "a whole escape");
            c = (char)(digit(segment.p[i + 1]) * 16 + digit(segment.p[i + 2]));
            i += 2;
        }
        check(n < name.n && name.p[n] == c, "the name's own bytes");
    }
    check(n == name.n, "all of them");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str name = {(const char *)data, size};
    struct buf url;
    char *path = NULL;
    if (size == 0 || size > KIB)
        return 0;
    buf_init(&url, 16 * KIB);
    buf_put(&url, STR("https://127.0.0.1:6443"));
    size_t at = url.n;
    buf_put(&url, STR("/api/v1/namespaces/"));
    size_t segment = url.n;
    kube_put_segment(&url, name);
    unescapes_to(str_skip(buf_str(&url), segment), name);
    buf_put(&url, STR("/pods/x/binding"));
    CURLU *u = curl_url();
    check(u != NULL && curl_url_set(u, CURLUPART_URL, buf_cstr(&url), 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK,
          "libcurl takes the URL");
    check(str_eq(str_of(path), str_skip(buf_str(&url), at)), "and goes by that path");
    curl_free(path);
    curl_url_cleanup(u);
    buf_done(&url);
    return 0;
}
