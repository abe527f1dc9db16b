/*
 * Finds names for completion. Nodes come from the daemon, which knows the nodes with cards, or from
 * the API server if the daemon is not available. Pods and namespaces come from the API server's
 * lists. With --daemon-url no API server is known, and an API server may deny the list of
 * namespaces to a viewer: then the names come from the daemon's pods on cards, which is better than
 * no names.
 */
#include "kubectl/names.h"

#include "base/limit.h"
#include "kubectl/ask.h"
#include "kubectl/figures.h"
#include "kubectl/paged_list.h"
#include "objects/kube.h"

#include <stdlib.h>

struct name {
    struct str name;
    struct str text; /* description */
};

struct names {
    struct kubectl_client *client;
    struct kubectl_args args; /* the client's, with the remaining time */
    uint64_t end_ms;
    struct arena *arena;
    struct name *items;
    size_t n;
    size_t cap;
    struct str needle; /* of a list: text that an object must contain; absent: none */
    struct str text;   /* of a list: each name's description */
};

static bool names_is_clean(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || memchr("-._", c, 3) == NULL))
            return false;
    }
    return s.n > 0;
}

static void names_add(struct names *x, struct str name, struct str text)
{
    struct name *items = arena_grow(x->arena, x->items, x->n, &x->cap, sizeof(*items));
    if (items == NULL)
        return;
    x->items = items;
    items[x->n++] = (struct name){name, text};
}

/* Sets the timeout of the next call to the remaining time. False: no time remains. */
static bool names_hurry(struct names *x)
{
    uint64_t now = loop_clock_ms(x->client->loop);
    if (now >= x->end_ms)
        return false;
    x->args.timeout_ms = x->end_ms - now;
    return true;
}

/* ---- lists of the API server ---- */

static struct str names_name_of(struct str json, struct arena *a)
{
    struct jread r;
    jread_init(&r, json, a);
    struct str name = kube_read_of(&r, STR("metadata"), STR("name"));
    return jread_finish(&r, NULL) == OK ? name : STR_NULL;
}

static enum errc names_on_object(void *ctx, struct str json, struct err *e)
{
    struct names *x = ctx;
    bool wanted = x->needle.p == NULL || memmem(json.p, json.n, x->needle.p, x->needle.n) != NULL;
    struct str name = wanted ? names_name_of(json, x->arena) : STR_NULL;
    (void)e;
    if (name.n > 0)
        names_add(x, arena_dup(x->arena, name), x->text);
    return OK;
}

static void names_on_begin(void *ctx)
{
    struct names *x = ctx;
    x->n = 0;
}

static enum errc names_on_request(void *ctx, struct err *e)
{
    struct names *x = ctx;
    return names_hurry(x) ? OK : err_set(e, ERR_TIMEOUT, "no time is left");
}

/* The whole list or nothing: with half a list the shell might complete a word to a wrong name. */
static bool names_list(struct names *x, struct str path, struct str kind, struct str needle,
                       struct str text)
{
    struct err unsaid = ERR_INIT;
    struct kubectl_list l = {.path = path,
                             .kind = kind,
                             .begin = names_on_begin,
                             .request = names_on_request,
                             .take = names_on_object,
                             .ctx = x};
    x->needle = needle;
    x->text = text;
    bool good = kubectl_list_read(x->client, &l, &unsaid) == OK;
    x->n = good ? x->n : 0;
    return good;
}

/* ---- the daemon's answer ---- */

static bool names_ask_daemon(struct names *x, struct figures *ret)
{
    struct kubectl_question q = {.command = KUBECTL_CARDS};
    struct str answer = STR_NULL;
    return x->args.way != KUBECTL_DIRECT && names_hurry(x) &&
           kubectl_ask_daemon(x->client, &q, x->arena, &answer, &(struct err){.code = OK}) == OK &&
           figures_read(answer, x->arena, ret, NULL) == OK;
}

static void names_add_nodes(struct names *x, const struct figures *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct figures_node *n = &f->nodes[i];
        char bytes[96];
        struct buf b = BUF_ON(bytes);
        size_t cards = 0;
        for (size_t k = 0; k < n->n_cards; k++)
            cards += n->cards[k].id >= 0 ? 1 : 0;
        buf_printf(&b, "%zu card%s, %lld of %lld used", cards, cards == 1 ? "" : "s",
                   (long long)n->used, (long long)n->total);
        if (cards > 0)
            names_add(x, n->name, arena_dup(x->arena, buf_str(&b)));
    }
}

/* Adds the names of the pods on cards in that namespace; absent: adds their namespaces. */
static void names_add_pods(struct names *x, const struct figures *f, struct str namespace)
{
    for (size_t i = 0; i < f->n; i++) {
        for (size_t k = 0; k < f->nodes[i].n_cards; k++) {
            const struct figures_card *c = &f->nodes[i].cards[k];
            for (size_t m = 0; m < c->n_pods; m++) {
                const struct figures_pod *p = &c->pods[m];
                if (namespace.p == NULL)
                    names_add(x, p->namespace, STR("namespace"));
                else if (str_eq(p->namespace, namespace))
                    names_add(x, p->name, STR("pod"));
            }
        }
    }
}

/* ---- nodes, pods, namespaces ---- */

static bool names_may_list(const struct names *x)
{
    return x->args.daemon_url.n == 0;
}

static void names_find_nodes(struct names *x)
{
    struct figures f;
    if (names_ask_daemon(x, &f))
        names_add_nodes(x, &f);
    else if (names_may_list(x) && x->args.way != KUBECTL_DAEMON_ONLY)
        (void)names_list(x, STR("/api/v1/nodes"), STR("NodeList"), STR("\"aliyun.com/gpu-mem\""),
                         STR("node"));
}

static void names_find_pods(struct names *x)
{
    struct figures f;
    struct str namespace;
    struct buf path;
    if (!names_hurry(x) || kubectl_client_namespace(x->client, x->arena, &namespace, NULL) != OK)
        return;
    buf_init(&path, LIMIT_FILE_BYTES);
    buf_put(&path, STR("/api/v1/namespaces/"));
    kube_put_segment(&path, namespace);
    buf_put(&path, STR("/pods"));
    if (names_may_list(x))
        (void)names_list(x, buf_str(&path), STR("PodList"), STR_NULL, STR("pod"));
    else if (names_ask_daemon(x, &f))
        names_add_pods(x, &f, namespace);
    buf_done(&path);
}

static void names_find_namespaces(struct names *x)
{
    struct figures f;
    if (names_may_list(x) &&
        names_list(x, STR("/api/v1/namespaces"), STR("NamespaceList"), STR_NULL, STR("namespace")))
        return;
    if (names_ask_daemon(x, &f))
        names_add_pods(x, &f, STR_NULL);
}

static int names_by_name(const void *a, const void *b)
{
    const struct name *x = a;
    const struct name *y = b;
    return str_cmp(x->name, y->name);
}

static void names_offer(struct names *x, const struct kubectl_wish *w, struct buf *out)
{
    if (x->n > 1)
        qsort(x->items, x->n, sizeof(*x->items), names_by_name);
    for (size_t i = 0; i < x->n; i++) {
        const struct name *it = &x->items[i];
        bool again = i > 0 && str_eq(it->name, x->items[i - 1].name);
        if (!again && names_is_clean(it->name) && str_starts(it->name, w->current))
            buf_printf(out, "%.*s%.*s\t%.*s\n", STR_ARG(w->prefix), STR_ARG(it->name),
                       STR_ARG(it->text));
    }
}

void kubectl_names(struct kubectl_client *c, const struct kubectl_wish *w, uint64_t timeout_ms,
                   struct arena *a, struct buf *out)
{
    const struct kubectl_args *args = c->args;
    struct names x = {
        .client = c, .args = *args, .end_ms = loop_clock_ms(c->loop) + timeout_ms, .arena = a};
    x.args.timeout_given = true;
    c->args = &x.args;
    if (w->names == KUBECTL_NODE_NAMES)
        names_find_nodes(&x);
    else if (w->names == KUBECTL_POD_NAMES)
        names_find_pods(&x);
    else
        names_find_namespaces(&x);
    c->args = args;
    if (!arena_failed(a))
        names_offer(&x, w, out);
}
