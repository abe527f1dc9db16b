/* A request over HTTP and the echo that it is compared with; see http_side.h. */
#include "http_side.h"

#include "base/limit.h"

#include <stdio.h>
#include <unistd.h>

#define TEXT_MAX (1024 * MIB)

size_t http_side_ask(void *ctx)
{
    struct http_side *side = ctx;
    client_do(&side->client, buf_str(&side->requests[side->turn++ % HTTP_SIDE_ORDERS]));
    if (side->client.status != 200 || side->client.body.n != side->answer_n)
        die("another answer than before: %u, %zu bytes", side->client.status, side->client.body.n);
    return 1;
}

/* Puts the names of the request, all of which are as long as the first one, into another order. */
static void shuffle(struct buf *request, uint64_t random)
{
    static const char begin[] = "\"NodeNames\":[\"";
    char one[64];
    char *list = memmem(request->p, request->n, begin, sizeof(begin) - 1);
    if (list == NULL)
        return;
    list += sizeof(begin) - 2;
    char *end = memchr(list, ']', request->n - (size_t)(list - request->p));
    size_t step = (size_t)((char *)memchr(list + 1, '"', sizeof(one)) + 2 - list);
    for (size_t i = (size_t)(end + 1 - list) / step; i > 1; i--) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        char *a = list + (i - 1) * step;
        char *b = list + (size_t)((random >> 32) % i) * step;
        memcpy(one, a, step - 1);
        memcpy(a, b, step - 1);
        memcpy(b, one, step - 1);
    }
}

void http_side_open(struct http_side *side, const struct http_child *server, const char *path,
                    struct str body)
{
    side->turn = 0;
    for (unsigned i = 0; i < HTTP_SIDE_ORDERS; i++) {
        buf_init(&side->requests[i], TEXT_MAX);
        client_request(&side->requests[i], path, body);
        if (i > 0)
            shuffle(&side->requests[i], i);
    }
    client_open(&side->client, server->port);
    client_do(&side->client, buf_str(&side->requests[0]));
    side->answer_n = side->client.body.n;
}

void http_side_open_echo(struct http_side *side, const struct http_child *server, struct str body,
                         const struct http_side *other)
{
    char path[32];
    size_t n = other->answer_n;
    (void)snprintf(path, sizeof(path), "/%zu", n);
    http_side_open(side, server, path, body);
    struct str got = side->client.body;
    if (side->client.status != 200 || got.n != n || memcmp(got.p, body.p, MIN_OF(body.n, n)) != 0)
        die("an echo answers %zu bytes instead of %zu, or other ones", got.n, n);
}

void http_side_close(struct http_side *side)
{
    client_close(&side->client);
    for (unsigned i = 0; i < HTTP_SIDE_ORDERS; i++)
        buf_done(&side->requests[i]);
}

size_t http_side_count(struct str in, const char *text)
{
    size_t n = 0;
    size_t text_n = strlen(text);
    const char *at;
    while ((at = memmem(in.p, in.n, text, text_n)) != NULL) {
        in = str_skip(in, (size_t)(at - in.p) + text_n);
        n++;
    }
    return n;
}

void http_side_store(char path[static TEMP_PATH], struct str bytes)
{
    int fd = temp_open(path);
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0)
            die("%s can't be written", path);
        bytes = str_skip(bytes, (size_t)n);
    }
    (void)close(fd);
}
