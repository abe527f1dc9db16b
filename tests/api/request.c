/* Reads the paths of requests, and writes what answers have in common; see request.h. */
#include "api/store.h"

const char *const api_kind_names[API_KINDS] = {[CACHE_NODES] = "Node",
                                               [CACHE_PODS] = "Pod",
                                               [CACHE_HEALTH] = "ConfigMap",
                                               [CACHE_SLICES] = "ResourceSlice",
                                               [CACHE_CLAIMS] = "ResourceClaim",
                                               [CACHE_CLASSES] = "DeviceClass",
                                               [API_BUDGETS] = "PodDisruptionBudget"};

static const struct str collections[API_KINDS] = {
    [CACHE_NODES] = STR("/api/v1/nodes"),
    [CACHE_PODS] = STR("/api/v1/pods"),
    [CACHE_HEALTH] = STR("/api/v1/namespaces/kube-system/configmaps"),
    [CACHE_SLICES] = STR("/apis/resource.k8s.io/v1/resourceslices"),
    [CACHE_CLAIMS] = STR("/apis/resource.k8s.io/v1/resourceclaims"),
    [CACHE_CLASSES] = STR("/apis/resource.k8s.io/v1/deviceclasses"),
    [API_BUDGETS] = STR("/apis/policy/v1/poddisruptionbudgets"),
};

/* "NS/pods/NAME", "NS/pods/NAME/binding", "NS/pods/NAME/eviction", "NS/events" */
static enum api_verb read_namespaced(struct str path, struct api_request *r)
{
    bool get = str_eq(r->method, STR("GET"));
    struct str rest;
    struct str part;
    (void)str_cut(path, '/', &r->ns, &rest);
    if (!str_cut(rest, '/', &part, &rest) || !str_eq(part, STR("pods")))
        return str_eq(part, STR("events")) && !get ? API_EVENT : API_UNKNOWN;
    (void)str_cut(rest, '/', &r->name, &part);
    if (!get && str_eq(part, STR("binding")))
        return API_BIND;
    if (!get && str_eq(part, STR("eviction")))
        return API_EVICT;
    return get && part.n == 0 ? API_GET : API_UNKNOWN;
}

static enum api_verb read_verb(struct str path, struct api_request *r)
{
    static const struct str core = STR("/api/v1/namespaces/");
    static const struct str leases = STR("/apis/coordination.k8s.io/v1/namespaces/");
    struct str rest;
    if (str_starts(path, STR("/apis/resource.k8s.io/")) && !store.serves_dra)
        return API_ABSENT;
    for (unsigned i = 0; i < API_KINDS; i++) {
        if (!str_eq(path, collections[i]))
            continue;
        struct text watch = {.p = NULL};
        bool watches =
            query_get(r->query, "watch", &watch) && str_eq(text_str(&watch), STR("true"));
        text_done(&watch);
        r->kind = i;
        return watches ? API_WATCH : API_LIST;
    }
    if (str_eq(path, STR("/apis/policy/v1beta1/poddisruptionbudgets")))
        return API_ABSENT;
    if (str_eq(path, STR("/apis/resource.k8s.io/v1")))
        return API_GROUP;
    if (str_starts(path, leases)) {
        (void)str_cut(str_skip(path, leases.n), '/', &r->ns, &rest);
        (void)str_cut(rest, '/', &rest, &r->name);
        return str_eq(rest, STR("leases")) ? API_LEASE : API_UNKNOWN;
    }
    if (str_starts(path, STR("/api/v1/nodes/"))) {
        r->name = str_skip(path, STR("/api/v1/nodes/").n);
        return API_NODE;
    }
    if (str_eq(r->method, STR("PATCH")))
        return API_EVENT;
    return str_starts(path, core) ? read_namespaced(str_skip(path, core.n), r) : API_UNKNOWN;
}

struct api_request api_request_read(struct str method, struct str target)
{
    struct str path;
    struct api_request r = {.method = method};
    (void)str_cut(target, '?', &path, &r.query);
    r.verb = read_verb(path, &r);
    return r;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool query_get(struct str query, const char *key, struct text *ret)
{
    struct str part;
    struct str name;
    struct str value;
    while (query.n > 0) {
        (void)str_cut(query, '&', &part, &query);
        if (!str_cut(part, '=', &name, &value) || !str_eq(name, str_of(key)))
            continue;
        ret->n = 0;
        for (size_t i = 0; i < value.n; i++) {
            char c = value.p[i];
            if (c == '%' && i + 2 < value.n) {
                c = (char)(hex_digit(value.p[i + 1]) * 16 + hex_digit(value.p[i + 2]));
                i += 2;
            }
            text_put(ret, (struct str){&c, 1});
        }
        return true;
    }
    return false;
}

uint64_t query_number(struct str query, const char *key, uint64_t otherwise)
{
    struct text value = {.p = NULL};
    if (query_get(query, key, &value))
        api_check(str_to_u64(text_str(&value), UINT64_MAX, &otherwise));
    text_done(&value);
    return otherwise;
}

void status_write(struct text *t, unsigned code, const char *reason, const char *message,
                  const char *more)
{
    t->n = 0;
    text_f(t, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"%s\",",
           code < 300 ? "Success" : "Failure");
    text_z(t, "\"message\":");
    text_quoted(t, str_of(message));
    text_f(t, ",\"reason\":\"%s\"%s,\"code\":%u}\n", reason, more, code);
}

void list_head_write(struct text *t, unsigned kind, uint64_t version, const char *token,
                     uint64_t left)
{
    text_f(t,
           "{\"kind\":\"%sList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%llu\"",
           api_kind_names[kind], (unsigned long long)version);
    if (left > 0)
        text_f(t, ",\"continue\":\"%s\",\"remainingItemCount\":%llu", token,
               (unsigned long long)left);
    text_z(t, "},\"items\":[");
}
