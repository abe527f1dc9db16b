/* Calls filter and prioritize without HTTP; see verbs_fixture.h. */
#include "verbs_fixture.h"

#include "base/log.h"
#include "io/limit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned last_status;

void __wrap_http_request_respond(struct http_request *r, unsigned status, const char *content_type);

void __wrap_http_request_respond(struct http_request *r, unsigned status, const char *content_type)
{
    (void)r;
    (void)content_type;
    last_status = status;
}

/* An empty embedded cluster makes the service ready. */
void verbs_open(struct verbs_fixture *d)
{
    struct err e = ERR_INIT;
    log_setup(STDERR_FILENO, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    *d = (struct verbs_fixture){.service.shortlist = 0};
    if (loop_new(&d->service.loop, &e) != OK)
        abort();
    cache_init(&d->service.cache, (struct map_seed){0x0123456789abcdef, 0xfedcba9876543210});
    measured_init(&d->service.measured, (struct map_seed){0x0123456789abcdef, 0xfedcba9876543210},
                  0);
    if (embedded_new(d->service.loop, &d->service.cache, &d->service.measured,
                     STR("{\"kind\":\"List\",\"items\":[]}"), STR("bench"), &d->service.embedded,
                     &e) != OK) {
        (void)fprintf(stderr, "%s\n", e.text);
        abort();
    }
    d->service.backend = embedded_interface(d->service.embedded);
    arena_init(&d->arena, LIMIT_REQUEST_ARENA);
    buf_init(&d->request, LIMIT_REQUEST_ARENA);
    buf_init(&d->answer, LIMIT_REQUEST_ARENA);
}

void verbs_close(struct verbs_fixture *d)
{
    buf_done(&d->request);
    buf_done(&d->answer);
    arena_done(&d->arena);
    d->service.embedded = embedded_free(d->service.embedded);
    measured_done(&d->service.measured);
    evaluation_memo_done(&d->service.evaluation_memo);
    cache_done(&d->service.cache);
    d->service.loop = loop_free(d->service.loop);
}

void verbs_ask(struct verbs_fixture *d, handler *handle, struct str body)
{
    struct http_request r = {.method = STR("POST"),
                             .body = body,
                             .peer = STR("127.0.0.1:51234"),
                             .id = 1,
                             .arena = &d->arena,
                             .answer = &d->answer};
    buf_clear(&d->answer, LIMIT_KEEP_BYTES);
    if (d->arena.used > LIMIT_KEEP_BYTES)
        arena_done(&d->arena);
    else
        arena_reset(&d->arena);
    last_status = 0;
    handle(&d->service, &r);
    if ((last_status != 200 && !d->may_fail) || buf_failed(&d->answer))
        abort();
}

void verbs_count(const struct verbs_fixture *d, size_t *ret_fit, size_t *ret_failed)
{
    json_error_t error;
    json_t *answer = json_loadb(d->answer.p, d->answer.n, 0, &error);
    bool is_list = json_is_array(answer);
    const char *wrong = json_string_value(json_object_get(answer, "Error"));
    if (answer == NULL || (wrong != NULL && *wrong != '\0')) {
        (void)fprintf(stderr, "%s\n", wrong == NULL ? error.text : wrong);
        abort();
    }
    *ret_fit = json_array_size(is_list ? answer : json_object_get(answer, "NodeNames"));
    *ret_failed = json_object_size(json_object_get(answer, "FailedNodes"));
    json_decref(answer);
}
