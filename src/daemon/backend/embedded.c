/*
 * Stores each pod as JSON and passes it to the cache in the same way as the watch of a real
 * cluster. A bind edits that JSON.
 */
#include "daemon/backend/embedded.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/request/request.h"
#include "daemon/backend/pod_edit.h"
#include "daemon/limit.h"
#include "kube/ingest.h"
#include "json/yaml.h"

struct stored_pod {
    struct str key; /* NAMESPACE/NAME; key and uid are stored behind the struct */
    struct str uid;
    struct buf json; /* the whole Pod */
};

struct embedded {
    struct backend interface;
    struct loop *loop;
    struct ingest ingest;
    struct map pods; /* struct stored_pod by key */
    struct arena arena;
    struct buf text; /* YAML converted to JSON */
};

static struct str embedded_make_key(struct arena *a, struct str namespace, struct str name)
{
    char *p = arena_alloc(a, namespace.n + 1 + name.n);
    if (p == NULL)
        return STR_NULL;
    struct str key = {p, namespace.n + 1 + name.n};
    (void)str_store(&p, namespace);
    (void)str_store(&p, STR("/"));
    (void)str_store(&p, name);
    return key;
}

struct uid_text {
    char bytes[37];
};

/* A version 4 UUID, written into *out. */
static struct str embedded_make_uid(struct loop *l, struct uid_text *out)
{
    uint64_t a = loop_random(l);
    uint64_t b = loop_random(l);
    struct buf text = BUF_ON(out->bytes);
    buf_printf(&text, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
               (unsigned)(a >> 16) & 0xffffU, (unsigned)a & 0xfffU,
               0x8000U | ((unsigned)(b >> 48) & 0x3fffU), (unsigned long long)b & 0xffffffffffffU);
    return buf_str(&text);
}

static void embedded_stored_free(struct stored_pod *p)
{
    if (p == NULL)
        return;
    buf_done(&p->json);
    mem_free(p);
}

static enum errc embedded_read_pod(struct embedded *c, struct str json, struct pod_view *ret,
                                   struct err *reterr)
{
    struct jread r;
    jread_init(&r, json, &c->arena);
    if (jread_type(&r) != JTYPE_OBJECT)
        jread_fail(&r, ERR_SYNTAX, "a Pod must be an object");
    kube_read_pod(&r, &c->arena, ret);
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && ret->name.n == 0)
        code = err_set(reterr, ERR_SYNTAX, "metadata.name is missing");
    else if (code == OK && (ret->name.n > 253 || memchr(ret->name.p, '/', ret->name.n) != NULL))
        code = err_set(reterr, ERR_SYNTAX, "metadata.name is not a name");
    return code;
}

/* Of a pod that is bound, the cache charges what can be read; of one that has ended, nothing. */
static enum errc embedded_check_request(const struct pod_view *v, struct err *reterr)
{
    struct request request;
    enum errc code =
        pod_view_bound(v) || pod_view_terminal(v) ? OK : request_read(v, &request, reterr);
    return code == OK ? OK : err_wrap(reterr, "pod \"%.*s\"", STR_ARG(v->name));
}

/*
 * Passes an object to the cache. The embedded cluster has no relist that could repair the cache
 * later, so an object that the cache cannot take is refused.
 */
static enum errc embedded_taken_in(struct embedded *c,
                                   void (*ingest)(struct ingest *in, struct str json, bool gone),
                                   struct str json, bool gone, struct err *reterr)
{
    struct ingest *in = &c->ingest;
    size_t unreadable = in->n_unreadable;
    in->lost = false;
    ingest(in, json, gone);
    if (in->lost)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    if (in->n_unreadable > unreadable)
        return err_set(reterr, ERR_LIMIT, "the object is too large or can't be read");
    return OK;
}

/* Adds a pod, and sets its namespace and UID where they are missing. Does not reset the arena. */
static enum errc embedded_add_pod(struct embedded *c, struct str json, struct str namespace,
                                  struct stored_pod **ret, struct err *reterr)
{
    struct pod_view view;
    struct uid_text uid;
    enum errc code = embedded_read_pod(c, json, &view, reterr);
    if (code == OK)
        code = embedded_check_request(&view, reterr);
    if (code != OK)
        return code;
    struct pod_edit edit = {.namespace = namespace, .uid = view.uid};
    if (edit.namespace.n == 0)
        edit.namespace = view.namespace.n > 0 ? view.namespace : STR("default");
    if (view.namespace.n > 0 && !str_eq(view.namespace, edit.namespace))
        return err_set(reterr, ERR_SYNTAX, "metadata.namespace is \"%.*s\", the path says \"%.*s\"",
                       STR_ARG(view.namespace), STR_ARG(edit.namespace));
    if (edit.uid.n == 0)
        edit.uid = embedded_make_uid(c->loop, &uid);
    struct str key = embedded_make_key(&c->arena, edit.namespace, view.name);
    if (key.p != NULL && map_get(&c->pods, key) != NULL)
        return err_set(reterr, ERR_CONFLICT, "pod \"%.*s\" is there already", STR_ARG(key));
    /* With the same UID the cache would move the other pod's usage to this pod. */
    if (view.uid.n > 0 && cache_pod(c->ingest.cache, view.uid) != NULL)
        return err_set(reterr, ERR_CONFLICT,
                       "pod \"%.*s\": another pod has its metadata.uid \"%.*s\"",
                       STR_ARG(view.name), STR_ARG(view.uid));
    struct stored_pod *p = key.p == NULL ? NULL : mem_alloc(sizeof(*p) + key.n + edit.uid.n);
    if (p == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for another pod");
    char *at = (char *)(p + 1);
    p->key = str_store(&at, key);
    p->uid = str_store(&at, edit.uid);
    buf_init(&p->json, LIMIT_OBJECT_BYTES);
    code = pod_edit_write(json, &edit, &c->arena, &p->json, reterr);
    if (code == OK && map_put(&c->pods, p) != OK)
        code = err_set(reterr, ERR_NOMEM, "no memory for another pod");
    if (code != OK) {
        embedded_stored_free(p);
        return code;
    }
    code = embedded_taken_in(c, ingest_pod, buf_str(&p->json), false, reterr);
    if (code != OK) {
        (void)map_del(&c->pods, p->key);
        embedded_stored_free(p);
        return code;
    }
    *ret = p;
    return OK;
}

/* ---- the file ---- */

static enum errc embedded_load_object(struct embedded *c, struct str json, struct str list_kind,
                                      struct err *reterr);

static enum errc embedded_load_items(struct embedded *c, struct str json, struct str list_kind,
                                     struct err *reterr)
{
    struct jread r;
    struct str key;
    enum errc code = OK;
    unsigned index = 0;
    jread_init(&r, json, &c->arena);
    jread_object (&r, key) {
        if (!str_eq(key, STR("items"))) {
            jread_skip(&r);
            continue;
        }
        jread_array (&r) {
            struct str item = jread_raw(&r);
            if (code == OK && item.p != NULL) {
                code = embedded_load_object(c, item, list_kind, reterr);
                if (code != OK)
                    (void)err_wrap(reterr, "items[%u]", index);
            }
            index++;
        }
    }
    return code != OK ? code : jread_finish(&r, reterr);
}

static enum errc embedded_load_node(struct embedded *c, struct str json, struct err *reterr)
{
    struct jread r;
    struct node_view view;
    jread_init(&r, json, &c->arena);
    kube_read_node(&r, &c->arena, &view);
    enum errc code = jread_finish(&r, reterr);
    if (code == OK && view.name.n == 0)
        code = err_set(reterr, ERR_SYNTAX, "a Node without metadata.name");
    return code == OK ? embedded_taken_in(c, ingest_node, json, false, reterr) : code;
}

/* A pod of the file that can't be stored. If it is bound and can't be read, no pod is placed on its
 * node: it must not look free. The UID may be missing, or be another pod's. */
static enum errc embedded_leave_out(struct embedded *c, struct str json, struct err *e)
{
    struct cache_event event = {.type = CACHE_POD_SET};
    struct effect effect;
    struct uid_text uid;
    struct err unread = ERR_INIT;
    log_warn("a pod of the cluster file is left out", kv_cstr("error", e->text));
    *e = (struct err)ERR_INIT;
    enum errc code = embedded_read_pod(c, json, &event.pod, &unread);
    if (code == OK || code == ERR_NOMEM)
        return code == OK ? OK : err_set(e, code, "%s", unread.text);
    kube_read_pod_anyway(json, &c->arena, str_of(unread.text), &event.pod);
    if (!pod_view_bound(&event.pod))
        return OK;
    event.pod.uid = embedded_make_uid(c->loop, &uid);
    if (cache_apply(c->ingest.cache, &event, loop_wall_ns(c->loop), &effect) != OK)
        return err_set(e, ERR_NOMEM, "out of memory");
    log_error("a pod can't be read: if it is bound, its node gets no new pods",
              kv_str("namespace", event.pod.namespace), kv_str("pod", event.pod.name),
              kv_str("node", event.pod.node), kv_cstr("error", unread.text));
    return OK;
}

/* The kind of an item in a PodList, which has none of its own, follows from list_kind. */
static enum errc embedded_load_object(struct embedded *c, struct str json, struct str list_kind,
                                      struct err *reterr)
{
    static const struct {
        struct str kind;
        void (*ingest)(struct ingest *in, struct str json, bool gone);
    } others[] = {{STR("ConfigMap"), ingest_configmap},
                  {STR("ResourceSlice"), ingest_slice},
                  {STR("ResourceClaim"), ingest_claim},
                  {STR("DeviceClass"), ingest_class}};

    struct jread r;
    struct stored_pod *ignored = NULL;
    jread_init(&r, json, &c->arena);
    struct str kind = jread_member(&r, STR("kind"));
    enum errc code = jread_finish(&r, reterr);
    if (code != OK)
        return code;
    if (kind.n == 0 && str_ends(list_kind, STR("List")))
        kind = (struct str){list_kind.p, list_kind.n - STR("List").n};
    if (str_eq(kind, STR("Node")))
        return embedded_load_node(c, json, reterr);
    if (str_eq(kind, STR("Pod"))) {
        code = embedded_add_pod(c, json, STR_NULL, &ignored, reterr);
        return code == OK || code == ERR_NOMEM ? code : embedded_leave_out(c, json, reterr);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (str_eq(kind, others[i].kind))
            return embedded_taken_in(c, others[i].ingest, json, false, reterr);
    }
    if (kind.n == 0)
        return err_set(reterr, ERR_SYNTAX, "an object without kind");
    if (str_ends(kind, STR("List")) && list_kind.p == NULL)
        return embedded_load_items(c, json, kind, reterr);
    log_debug("left out of the cluster file", kv_str("kind", kind));
    return OK;
}

static enum errc embedded_load(struct embedded *c, struct str text, struct err *reterr)
{
    struct str line;
    struct str rest;
    enum errc code = yaml_to_json_lines(text, &c->text, reterr);
    rest = buf_str(&c->text);
    while (code == OK && rest.n > 0) {
        (void)str_cut(rest, '\n', &line, &rest);
        if (line.n > 0)
            code = embedded_load_object(c, line, STR_NULL, reterr);
    }
    arena_reset(&c->arena);
    buf_done(&c->text);
    buf_init(&c->text, LIMIT_OBJECT_BYTES); /* from now on it holds one pod */
    return code;
}

/* ---- the backend ---- */

static void embedded_call_later(struct deferred *d)
{
    struct backend_call *call = CONTAINER_OF(d, struct backend_call, later);
    call->done(call);
}

static void embedded_answer_later(struct embedded *c, struct backend_call *call)
{
    call->retry_after_ms = 0;
    call->later.run = embedded_call_later;
    loop_defer(c->loop, &call->later);
}

static enum errc embedded_bind_pod(struct embedded *c, const struct binding *b, struct err *reterr)
{
    struct pod_view view;
    struct buf json;
    struct str key = embedded_make_key(&c->arena, b->namespace, b->name);
    if (key.p == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    struct stored_pod *p = map_get(&c->pods, key);
    if (p == NULL)
        return err_set(reterr, ERR_NOTFOUND, "pods \"%.*s\" not found", STR_ARG(b->name));
    if (!str_eq(p->uid, b->uid))
        return err_set(reterr, ERR_CONFLICT,
                       "Precondition failed: UID in precondition: %.*s, UID in "
                       "object meta: %.*s",
                       STR_ARG(b->uid), STR_ARG(p->uid));
    enum errc code = embedded_read_pod(c, buf_str(&p->json), &view, reterr);
    if (code == OK && pod_view_bound(&view))
        code = err_set(reterr, ERR_CONFLICT, "pod %.*s is already assigned to node \"%.*s\"",
                       STR_ARG(b->name), STR_ARG(view.node));
    if (code != OK)
        return code;
    struct pod_edit edit = {.namespace = b->namespace, .uid = b->uid, .binding = b};
    buf_init(&json, LIMIT_OBJECT_BYTES);
    code = pod_edit_write(buf_str(&p->json), &edit, &c->arena, &json, reterr);
    if (code != OK) {
        buf_done(&json);
        return code;
    }
    buf_done(&p->json);
    p->json = json;
    ingest_pod(&c->ingest, buf_str(&p->json), false);
    return OK;
}

static void embedded_post(struct backend *interface, struct backend_call *call,
                          const struct binding *b)
{
    struct embedded *c = CONTAINER_OF(interface, struct embedded, interface);
    call->err = (struct err)ERR_INIT;
    enum errc code = embedded_bind_pod(c, b, &call->err);
    call->post = code == OK ? POST_CREATED : code == ERR_NOMEM ? POST_NOT_SENT : POST_REFUSED;
    call->unsent = code != OK; /* no proxy exists that could have sent a copy */
    arena_reset(&c->arena);
    embedded_answer_later(c, call);
}

static void embedded_get(struct backend *interface, struct backend_call *call, struct str namespace,
                         struct str name)
{
    struct embedded *c = CONTAINER_OF(interface, struct embedded, interface);
    struct jread r;
    arena_reset(&call->arena);
    call->err = (struct err)ERR_INIT;
    struct str key = embedded_make_key(&call->arena, namespace, name);
    const struct stored_pod *p = key.p == NULL ? NULL : map_get(&c->pods, key);
    call->get = p == NULL ? GET_GONE : GET_FOUND;
    if (key.p == NULL) {
        call->get = GET_FAILED;
        (void)err_set(&call->err, ERR_NOMEM, "out of memory");
    } else if (p == NULL) {
        (void)err_set(&call->err, ERR_NOTFOUND, "pods \"%.*s\" not found", STR_ARG(name));
    } else {
        /* Copies the JSON: the pod may change or be deleted before the caller reads the answer. */
        jread_init(&r, arena_dup(&call->arena, buf_str(&p->json)), &call->arena);
        kube_read_pod(&r, &call->arena, &call->pod);
        if (jread_finish(&r, &call->err) != OK)
            call->get = GET_FAILED;
    }
    embedded_answer_later(c, call);
}

static void embedded_cancel(struct backend_call *call)
{
    deferred_cancel(&call->later);
}

static bool embedded_ready(struct backend *interface, struct str *ret_missing)
{
    (void)interface;
    *ret_missing = STR("");
    return true;
}

/* The embedded cluster has one replica, so the term never changes. */
static uint64_t embedded_term(struct backend *interface)
{
    (void)interface;
    return 1;
}

static void embedded_asked(struct backend *interface)
{
    (void)interface;
}

static void embedded_refresh(struct backend *interface)
{
    (void)interface;
}

enum errc embedded_new(struct loop *l, struct cache *cache, struct measured *measured,
                       struct str text, struct str path, struct embedded **ret, struct err *reterr)
{
    struct embedded *c = mem_alloc(sizeof(*c));
    if (c == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the embedded cluster");
    *c = (struct embedded){
        .interface = {.post = embedded_post,
                      .get = embedded_get,
                      .cancel = embedded_cancel,
                      .ready = embedded_ready,
                      .stands_by = embedded_ready,
                      .term = embedded_term,
                      .asked = embedded_asked,
                      .refresh = embedded_refresh},
        .loop = l,
    };
    struct map_seed seed = {loop_random(l), loop_random(l)};
    map_init(&c->pods, offsetof(struct stored_pod, key), seed);
    arena_init(&c->arena, LIMIT_CLUSTER_FILE_BYTES);
    buf_init(&c->text, LIMIT_CLUSTER_FILE_BYTES);
    ingest_init(&c->ingest, l, cache);
    c->ingest.measured = measured;
    enum errc code = embedded_load(c, text, reterr);
    if (code != OK) {
        embedded_free(c);
        return err_wrap(reterr, "cluster file \"%.*s\"", STR_ARG(path));
    }
    *ret = c;
    return OK;
}

struct embedded *embedded_free(struct embedded *c)
{
    if (c == NULL)
        return NULL;
    size_t cursor = 0;
    for (struct stored_pod *p = map_next(&c->pods, &cursor); p != NULL;
         p = map_next(&c->pods, &cursor))
        embedded_stored_free(p);
    map_done(&c->pods);
    arena_done(&c->arena);
    buf_done(&c->text);
    ingest_done(&c->ingest);
    mem_free(c);
    return NULL;
}

struct backend *embedded_interface(struct embedded *c)
{
    return &c->interface;
}

/* ---- pods that come and go ---- */

static void embedded_respond_status(struct http_request *r, unsigned code, struct str message)
{
    struct jwrite w;
    buf_clear(r->answer, SIZE_MAX);
    jwrite_init(&w, r->answer);
    jwrite_object_begin(&w);
    jwrite_str_at(&w, STR("kind"), STR("Status"));
    jwrite_str_at(&w, STR("apiVersion"), STR("v1"));
    jwrite_str_at(&w, STR("status"), code < 300 ? STR("Success") : STR("Failure"));
    jwrite_str_at(&w, STR("message"), message);
    jwrite_u64_at(&w, STR("code"), code);
    jwrite_object_end(&w);
    buf_putc(r->answer, '\n');
    http_request_respond(r, code, "application/json");
}

static void embedded_create(struct embedded *c, struct http_request *r, struct str namespace)
{
    struct err e = ERR_INIT;
    struct stored_pod *p = NULL;
    buf_clear(&c->text, LIMIT_KEEP_BYTES);
    enum errc code = yaml_to_json(r->body, &c->text, &e);
    if (code == OK)
        code = embedded_add_pod(c, buf_str(&c->text), namespace, &p, &e);
    if (code != OK || p == NULL) {
        embedded_respond_status(r, code == ERR_CONFLICT ? 409 : errc_http_status(code),
                                str_of(e.text));
    } else {
        buf_put(r->answer, buf_str(&p->json));
        buf_putc(r->answer, '\n');
        http_request_respond(r, 201, "application/json");
    }
    arena_reset(&c->arena);
}

static void embedded_delete(struct embedded *c, struct http_request *r, struct str namespace,
                            struct str name)
{
    struct err e = ERR_INIT;
    struct str key = embedded_make_key(&c->arena, namespace, name);
    struct stored_pod *p = key.p == NULL ? NULL : map_get(&c->pods, key);
    if (key.p == NULL) {
        embedded_respond_status(r, 503, STR("out of memory"));
    } else if (p == NULL) {
        embedded_respond_status(r, 404, STR("no such pod"));
    } else if (embedded_taken_in(c, ingest_pod, buf_str(&p->json), true, &e) != OK) {
        embedded_respond_status(r, errc_http_status(e.code), str_of(e.text));
    } else {
        (void)map_del(&c->pods, key);
        embedded_stored_free(p);
        embedded_respond_status(r, 200, STR("deleted"));
    }
    arena_reset(&c->arena);
}

void embedded_handle(struct embedded *c, struct http_request *r, struct str rest)
{
    struct str namespace;
    struct str resource;
    struct str name;
    (void)str_cut(rest, '/', &namespace, &rest);
    (void)str_cut(rest, '/', &resource, &name);
    bool post_method = str_eq(r->method, STR("POST"));
    if (namespace.n == 0 || !str_eq(resource, STR("pods")) || post_method != (name.n == 0))
        embedded_respond_status(r, 404,
                                STR("only POST .../namespaces/NS/pods and DELETE "
                                    ".../namespaces/NS/pods/NAME are served"));
    else if (post_method)
        embedded_create(c, r, namespace);
    else
        embedded_delete(c, r, namespace, name);
}
