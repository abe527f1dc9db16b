/* Checks of answers against the objects of the API server; see answers.h. */
#include "answers.h"

#include "base/macro.h"
#include "base/str.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): they are answer_fn */

static uint64_t number_of(const char *text)
{
    uint64_t n = 0;
    bool valid = str_to_u64(str_of(text), INT32_MAX, &n);
    assert(valid);
    return n;
}

static json_t *parse(const struct answer *a)
{
    json_error_t error;
    json_t *json = json_loadb(a->body, a->n, 0, &error);
    if (json == NULL)
        world_fail("the answer is no JSON: %s: %.*s", error.text, (int)a->n, a->body);
    return json;
}

bool is_ok(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)s;
    *ret_error = a->status == 503;
    return a->status == 200;
}

bool is_not_found(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)s;
    (void)ret_error;
    return a->status == 404;
}

bool is_json(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)ret_error;
    json_decref(parse(a));
    return a->status == 200 && (s->expected == NULL || (strlen(s->expected) == a->n &&
                                                        memcmp(s->expected, a->body, a->n) == 0));
}

/* Whether the pod fits, by the API server's objects. */
static bool fits(const char *node, int mem)
{
    for (int card = 0; card < 16; card++) {
        int left = api_free(node, card);
        if (left >= 0 && left >= mem)
            return true;
    }
    return false;
}

static bool named(const json_t *names, const char *node)
{
    size_t i = 0;
    const json_t *name = NULL;
    json_array_foreach(names, i, name)
    {
        if (strcmp(json_string_value(name), node) == 0)
            return true;
    }
    return false;
}

/* Each node is in exactly one of the two lists; if the expected result is known, in the right
 * one. */
bool is_filtered(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    static const char *const nodes[] = {"n1", "n2", "n3", "cpu-only"};
    json_t *json = parse(a);
    const char *error = json_string_value(json_object_get(json, "Error"));
    const json_t *names = json_object_get(json, "NodeNames");
    const json_t *failed = json_object_get(json, "FailedNodes");
    bool right = a->status == 200 && error != NULL;
    *ret_error = right && error[0] != '\0';
    right = right && error[0] == '\0';
    for (size_t i = 0; right && i < COUNT_OF(nodes); i++) {
        bool there = named(names, nodes[i]);
        right = there != (json_object_get(failed, nodes[i]) != NULL);
        if (right && s->expected != NULL && (w->recovering || !interpose_hit()))
            right = there == (w->scenario->cluster != NULL ? strcmp(nodes[i], "n1") == 0
                                                           : fits(nodes[i], s->expected[0] - '0'));
    }
    json_decref(json);
    return right;
}

/* In any case a list: empty, all zeros, or, if the expected result is known, with points for the
 * feasible nodes. */
bool is_prioritized(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    json_t *json = parse(a);
    size_t i = 0;
    const json_t *one = NULL;
    bool right = a->status == 200 && json_is_array(json);
    bool sure = w->recovering || !interpose_hit();
    *ret_error = right && json_array_size(json) == 0;
    right = right && json_array_size(json) == 4;
    json_array_foreach(json, i, one)
    {
        const char *host = json_string_value(json_object_get(one, "Host"));
        json_int_t points = json_integer_value(json_object_get(one, "Score"));
        bool good = host != NULL && fits(host, s->expected[0] - '0');
        right = right && host != NULL && points >= 0 && points <= 10 && (good || points == 0) &&
                (!sure || good == (points > 0));
    }
    json_decref(json);
    return right;
}

static const char *member(const char *body, const char *key, char out[64])
{
    json_t *json = json_loads(body, 0, NULL);
    (void)snprintf(out, 64, "%s", json_string_value(json_object_get(json, key)));
    json_decref(json);
    return out;
}

/* A success must be true. `expected`: the bind must be refused, and the error must contain this. */
bool is_bound(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    char pod[64];
    char node[64];
    json_t *json = parse(a);
    const char *error = json_string_value(json_object_get(json, "Error"));
    bool right = a->status == 200 && error != NULL && error[0] == '\0' && s->expected == NULL;
    if (right && w->scenario->cluster == NULL) {
        unsigned slot = api_slot(CACHE_PODS, member(s->body, "PodName", pod));
        right = strcmp(store.pods[slot].node.z, member(s->body, "Node", node)) == 0 &&
                api_card_of(&store.pods[slot]) >= 0;
    } else if (a->status == 200 && error != NULL && error[0] != '\0') {
        right = s->expected != NULL && strstr(error, s->expected) != NULL;
        bool lie = w->scenario->cluster != NULL && w->created == 1 &&
                   (strstr(error, "not found") != NULL || strstr(error, "not exist") != NULL);
        *ret_error = !right && !lie;
    }
    json_decref(json);
    return right;
}

/* As many nodes are feasible as the API server's objects say, for a pod that asks for
 * `expected`. */
bool is_explained(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    static const char *const nodes[] = {"n1", "n2", "n3"};
    json_int_t n = 0;
    (void)w;
    *ret_error = a->status == 500 || a->status == 502 || a->status == 503;
    if (a->status != 200)
        return false;
    json_t *json = parse(a);
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        n += fits(nodes[i], (int)number_of(s->expected)) ? 1 : 0;
    bool right = json_integer_value(json_object_get(json, "fit")) == n &&
                 json_array_size(json_object_get(json, "verdicts")) == COUNT_OF(nodes);
    json_decref(json);
    return right;
}

/* `expected` replicas, each with a place. */
bool is_fitted(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    *ret_error = a->status == 500 || a->status == 503;
    if (a->status != 200)
        return false;
    json_t *json = parse(a);
    bool right =
        json_integer_value(json_object_get(json, "fit")) == (json_int_t)number_of(s->expected) &&
        json_array_size(json_object_get(json, "placements")) == number_of(s->expected);
    json_decref(json);
    return right;
}

/* The API server does not have this pod; cardpack must ask it. */
bool is_of_nobody(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)s;
    *ret_error = a->status == 500 || a->status == 502;
    return a->status == 404;
}

bool is_created(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)s;
    json_decref(parse(a));
    bool right = a->status == 201 || (a->status == 409 && w->created != 0);
    *ret_error = a->status == 503;
    if (right)
        w->created = 1;
    return right;
}

bool is_deleted(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)s;
    json_decref(parse(a));
    bool right = a->status == 200 || (a->status == 404 && w->created != 1);
    *ret_error = a->status == 503;
    if (right)
        w->created = 0;
    return right;
}

/* A file of the page, or the redirect to it. */
bool is_asset(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    (void)w;
    (void)s;
    *ret_error = a->status == 503;
    return (a->status == 200 || a->status == 303) && a->n > 0;
}

/* ---- the page's events ---- */

struct shown {
    json_t *nodes; /* what the page knows, keyed by name */
    bool greeted;
    bool ready;
};

static size_t hex(struct str digits)
{
    size_t n = 0;
    for (size_t i = 0; i < digits.n; i++)
        n = n * 16 +
            (size_t)(digits.p[i] <= '9' ? digits.p[i] - '0' : (digits.p[i] | 32) - 'a' + 10);
    return n;
}

/* The content of all whole chunks; of the last chunk a part may be missing. */
static char *dechunk(struct str in, bool *ret_ended)
{
    struct str size;
    struct str rest;
    char *out = malloc(in.n + 1);
    size_t used = 0;
    assert(out != NULL);
    *ret_ended = false;
    while (!*ret_ended && str_cut(in, '\n', &size, &rest)) {
        size_t n = hex(str_trim(size));
        if (n + 2 > rest.n)
            break;
        memcpy(out + used, rest.p, n);
        used += n;
        *ret_ended = n == 0;
        in = str_skip(rest, n + 2);
    }
    out[used] = '\0';
    return out;
}

static void show_nodes(struct shown *p, const json_t *data)
{
    size_t i = 0;
    json_t *one = NULL;
    json_array_foreach(json_object_get(data, "nodes"), i, one)
    {
        json_object_set(p->nodes, json_string_value(json_object_get(one, "name")), one);
    }
    json_array_foreach(json_object_get(data, "gone"), i, one)
    {
        json_object_del(p->nodes, json_string_value(one));
    }
}

/* Takes "event: NAME\ndata: JSON", or the ":" of a heartbeat. */
static void take_event(struct shown *p, const char *event)
{
    static const char *const names[] = {"hello",  "nodes",  "ready",  "pods",
                                        "status", "quotas", "history"};
    struct str name;
    struct str text;
    bool known = false;
    if (strcmp(event, ":") == 0)
        return;
    bool whole = str_cut(str_of(event), '\n', &name, &text) && str_starts(name, STR("event: ")) &&
                 str_starts(text, STR("data: "));
    name = whole ? str_skip(name, 7) : STR_NULL;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        known = known || str_eq(name, str_of(names[i]));
    json_t *data = whole ? json_loadb(text.p + 6, text.n - 6, 0, NULL) : NULL;
    bool hello = str_eq(name, STR("hello"));
    if (!known || data == NULL || (!p->greeted && !hello))
        world_fail("a wrong event: %s", event);
    if (hello)
        json_object_clear(p->nodes);
    p->greeted = true;
    p->ready = str_eq(name, STR("ready")) || (p->ready && !hello);
    show_nodes(p, data);
    json_decref(data);
}

static bool shows_card(const char *node, const json_t *card)
{
    int left = api_free(node, (int)json_integer_value(json_object_get(card, "id")));
    json_int_t total = json_integer_value(json_object_get(card, "total"));
    json_int_t used = json_integer_value(json_object_get(card, "used"));
    const json_t *state = json_object_get(card, "state");
    bool unhealthy = state != NULL && strcmp(json_string_value(state), "unhealthy") == 0;
    return unhealthy ? left == -1 : left == (int)(total - used);
}

static bool shows_node(const struct shown *p, const char *name)
{
    const json_t *cards = json_object_get(json_object_get(p->nodes, name), "cards");
    const json_t *card = NULL;
    size_t i = 0;
    bool right = api_free(name, (int)json_array_size(cards)) == -2;
    json_array_foreach(cards, i, card)
    {
        right = right && shows_card(name, card);
    }
    return right;
}

static bool shows_truth(const struct shown *p)
{
    bool right = json_object_size(p->nodes) == api_count(CACHE_NODES);
    for (unsigned i = 0; i < store.n_nodes; i++)
        right = right && (!store.nodes[i].exists || shows_node(p, store.nodes[i].name.z));
    return right;
}

static struct shown read_page(const char *stream, size_t n, bool *ret_ended)
{
    struct shown p = {.nodes = json_object()};
    char *text = dechunk((struct str){stream, n}, ret_ended);
    char *event = text;
    for (char *end = strstr(event, "\n\n"); end != NULL; end = strstr(event, "\n\n")) {
        *end = '\0';
        take_event(&p, event);
        event = end + 2;
    }
    if (*ret_ended && event[0] != '\0')
        world_fail("it ends inside an event: %s", event);
    free(text);
    return p;
}

bool shows_all(const char *stream, size_t n)
{
    bool ended = false;
    struct shown p = read_page(stream, n, &ended);
    bool all = p.ready && shows_truth(&p);
    json_decref(p.nodes);
    return all;
}

/*
 * The stream must hold only whole events. `expected`: it must also show everything; for a page that
 * never lacked memory. Without it the stream may have been cut.
 */
bool is_page(struct world *w, const struct step *s, const struct answer *a, bool *ret_error)
{
    bool ended = false;
    (void)w;
    *ret_error = a->status == 503;
    if (a->status != 200)
        return false;
    struct shown p = read_page(a->body, a->n, &ended);
    bool sure = s->expected != NULL || !interpose_hit();
    bool right = !sure || (p.ready && shows_truth(&p));
    json_decref(p.nodes);
    return right;
}

/* NOLINTEND(readability-non-const-parameter) */
