/* The leader's label against an API server with a few pods. Only one file of a test program may
 * include it. */
#pragma once

#include "daemon/backend/leader_label.h"

#include "api/request.h"
#include "base/log.h"
#include "daemon/backend/leader_label_step.h"
#include "fail_alloc.h"
#include "fake_net.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#define PODS  3
#define OWN   0
#define ROUND 100 /* ms that let every call of a round end */

static struct {
    struct loop *loop;
    struct kube_api *api;
    struct leader_label *label;
    bool leads;
    int log;

    struct {
        const char *name;
        const char *uid; /* NULL: there is no such pod */
        char value[64];  /* of the label; "": none */
    } pods[PODS];

    unsigned patches; /* requests since the start */
    unsigned lists;
    unsigned refuse;      /* answers with this status */
    const char *reason;   /* of it; NULL: without a Status */
    const char *why;      /* its message */
    const char *refused;  /* the method that is refused; NULL: all */
    bool lost;            /* carries requests out, without an answer */
    bool silent;          /* does not answer */
    bool drops;           /* answers 200, and leaves the label out */
    unsigned uid_status;  /* how it refuses another UID */
    const char *uid_says; /* the message of that */
    const char *note;     /* an annotation of each pod; NULL: none */
    bool odd;             /* pod b's UID can't be read */
} t;

void api_fail(const char *file, int line, const char *why)
{
    ck_abort_msg("%s:%d: %s", file, line, why);
}

/* ---- the API server ---- */

static inline void say_status(struct http_call *c, unsigned code, const char *reason,
                              const char *why)
{
    struct text s = {.p = NULL};
    status_write(&s, code, reason, why, ",\"details\":{\"kind\":\"pods\"}");
    text_put(&s, (struct str){"", 1});
    fake_answer(c, code, s.p);
    text_done(&s);
}

static inline void label_pod(int i, const char *value)
{
    (void)snprintf(t.pods[i].value, sizeof(t.pods[i].value), "%s", value);
}

static inline int pod_of(struct str url)
{
    for (int i = 0; i < PODS; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/api/v1/namespaces/ns/pods/%s/status", t.pods[i].name);
        if (t.pods[i].uid != NULL && str_ends(url, str_of(path)))
            return i;
    }
    return -1;
}

static inline json_t *pod_json(int i)
{
    json_t *labels = json_object();
    json_object_set_new(labels, "app", json_string("cardpack"));
    if (t.pods[i].value[0] != '\0')
        json_object_set_new(labels, LEADER_LABEL_KEY, json_string(t.pods[i].value));
    json_t *notes = json_object();
    if (t.note != NULL)
        json_object_set_new(notes, "note", json_string(t.note));
    return json_pack("{s:{s:s, s:o, s:o, s:o}, s:{}}", "metadata", "name", t.pods[i].name, "uid",
                     t.odd && i == 1 ? json_integer(7) : json_string(t.pods[i].uid), "labels",
                     labels, "annotations", notes, "spec");
}

static inline void say_json(struct http_call *c, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    ck_assert_ptr_nonnull(text);
    if (t.lost)
        fake_land(c, HTTP_UNKNOWN, 0);
    else
        fake_answer(c, 200, text);
    free(text);
    json_decref(body);
}

static inline void serve_list(struct http_call *c)
{
    t.lists++;
    ck_assert(str_ends(c->url, STR("/api/v1/namespaces/ns/pods?labelSelector="
                                   "cardpack.io%2Fleader-of%3Dlease&limit=20")));
    json_t *items = json_array();
    for (int i = 0; i < PODS; i++) {
        if (t.pods[i].uid != NULL && strcmp(t.pods[i].value, "lease") == 0)
            json_array_append_new(items, pod_json(i));
    }
    say_json(c, json_pack("{s:s, s:{}, s:o}", "kind", "PodList", "metadata", "items", items));
}

static inline void serve_patch(struct http_call *c)
{
    t.patches++;
    ck_assert_str_is(c->content_type, "application/merge-patch+json");
    int i = pod_of(c->url);
    if (i < 0) {
        say_status(c, 404, "NotFound", "pods not found");
        return;
    }
    json_t *patch = json_loadb(c->body.p, c->body.n, 0, NULL);
    const char *uid = NULL;
    json_t *value = NULL;
    ck_assert_int_eq(json_unpack_ex(patch, NULL, JSON_STRICT, "{s:{s:s, s:{s:o}}}", "metadata",
                                    "uid", &uid, "labels", LEADER_LABEL_KEY, &value),
                     0);
    if (strcmp(uid, t.pods[i].uid) != 0) {
        json_decref(patch);
        say_status(c, t.uid_status, "Conflict", t.uid_says);
        return;
    }
    if (!t.drops)
        label_pod(i, json_is_null(value) ? "" : json_string_value(value));
    json_decref(patch);
    say_json(c, pod_json(i));
}

static inline void serve_one(struct http_call *c)
{
    if (c->url.n == 0) { /* no memory for it */
        fake_land(c, HTTP_NOT_SENT, 0);
        return;
    }
    if (t.refuse == 0 || (t.refused != NULL && strcmp(t.refused, c->method) != 0)) {
        if (strcmp(c->method, "PATCH") == 0)
            serve_patch(c);
        else
            serve_list(c);
        return;
    }
    t.patches += strcmp(c->method, "PATCH") == 0 ? 1 : 0;
    t.lists += strcmp(c->method, "GET") == 0 ? 1 : 0;
    if (t.reason != NULL)
        say_status(c, t.refuse, t.reason, t.why);
    else
        fake_answer(c, t.refuse, "<html>");
}

static inline void pass(uint64_t ms)
{
    for (uint64_t at = 0; at <= ms; at += 10) {
        fake_turn(t.loop);
        while (!t.silent && !list_is_empty(&fake_calls))
            serve_one(LIST_FIRST(&fake_calls, struct http_call, link));
        t.loop->clock_ms += 10;
    }
}

static inline bool leads(void *ctx)
{
    (void)ctx;
    return t.leads;
}

static inline void set_up(void)
{
    struct err e = ERR_INIT;
    memset(&t, 0, sizeof(t));
    t.pods[0].name = "cardpack-a";
    t.pods[1].name = "cardpack-b";
    t.pods[2].name = "cardpack-c";
    t.pods[0].uid = "uid-a";
    t.pods[1].uid = "uid-b";
    t.uid_status = 409;
    t.uid_says = "Precondition failed: UID in precondition: x, UID in object meta: y";
    t.log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(t.log, 0);
    log_setup(t.log, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    t.loop = fake_loop();
    struct kubeconfig config = {.server = STR("https://api"), .token = STR("s3cret")};
    struct kube_api_settings api = {.config = &config, .user_agent = STR("test/1")};
    ck_assert_ok(kube_api_new(t.loop, &api, &t.api, &e), &e);
}

static inline enum errc try_open(struct err *e)
{
    struct leader_label_settings s = {.loop = t.loop,
                                      .api = t.api,
                                      .namespace = STR("ns"),
                                      .pod = STR("cardpack-a"),
                                      .uid = STR("uid-a"),
                                      .lease = STR("lease"),
                                      .leads = leads};
    return leader_label_new(&s, &t.label, e);
}

static inline void open_label(void)
{
    struct err e = ERR_INIT;
    ck_assert_ok(try_open(&e), &e);
}

static inline void tear_down(void)
{
    fail_alloc_disarm();
    t.label = leader_label_free(t.label);
    t.api = kube_api_free(t.api);
    t.loop = loop_free(t.loop);
    log_setup(2, LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    (void)close(t.log);
}

static inline void lead(bool yes)
{
    t.leads = yes;
    leader_label_look(t.label);
}

static inline void labelled(const char *a, const char *b, const char *c)
{
    ck_assert_str_eq(t.pods[0].value, a);
    ck_assert_str_eq(t.pods[1].value, b);
    ck_assert_str_eq(t.pods[2].value, c);
}

/* How often the log has this text. */
static inline unsigned told(const char *text)
{
    static char log[65536];
    unsigned n = 0;
    ssize_t size = pread(t.log, log, sizeof(log) - 1, 0);
    ck_assert_int_ge(size, 0);
    log[size] = '\0';
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text))
        n++;
    return n;
}

static inline void trouble_is(const char *part)
{
    struct str trouble = leader_label_trouble(t.label);
    ck_assert_msg(part[0] == '\0' ? trouble.n == 0
                                  : memmem(trouble.p, trouble.n, part, strlen(part)) != NULL,
                  "\"%.*s\" is not \"%s\"", STR_ARG(trouble), part);
}
