/*
 * Every kube-scheduler configuration of the project, and the chart, lists each resource that
 * cardpack reads on a pod's containers: kube-scheduler binds a pod without any of them itself.
 */
#include "base/file.h"
#include "base/limit.h"
#include "objects/kube.h"
#include "unit.h"
#include "json/yaml.h"

#include <ftw.h>
#include <jansson.h>
#include <stdio.h>

#define RESOURCES_MAX 8
#define DEFINITION    "#define GPUSHARE_RESOURCE_"

static char *resources[RESOURCES_MAX]; /* those on containers */
static size_t n_resources;
static unsigned n_lists;
static unsigned n_files;

static void load(struct buf *out, const char *path)
{
    struct err e = ERR_INIT;
    buf_init(out, MIB);
    ck_assert_ok(file_read(str_of(path), out, &e), &e);
}

static const char *in_source(char path[static 512], const char *name)
{
    const char *root = getenv("CARDPACK_SOURCE");
    ck_assert_msg(root != NULL, "CARDPACK_SOURCE is not set: run it through meson test");
    (void)snprintf(path, 512, "%s/%s", root, name);
    return path;
}

/* A container that cardpack does not count is not in the view of its pod. */
static bool is_on_containers(struct str resource)
{
    char text[256];
    struct arena arena;
    struct jread r;
    struct pod_view pod = {.n_containers = 0};
    struct err e = ERR_INIT;
    (void)snprintf(text, sizeof(text),
                   "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"%.*s\":\"1\"}}}]}}",
                   STR_ARG(resource));
    arena_init(&arena, MIB);
    jread_init(&r, str_of(text), &arena);
    kube_read_pod(&r, &arena, &pod);
    ck_assert_ok(jread_finish(&r, &e), &e);
    size_t n = pod.n_containers;
    arena_done(&arena);
    return n > 0;
}

/* Reads the names from the header, so that a resource that is added there is not forgotten here. */
static void find_resources(void)
{
    char path[512];
    struct buf text;
    unsigned defined = 0;
    n_resources = 0;
    load(&text, in_source(path, "include/core/dialect/gpushare.h"));
    for (struct str line, rest = buf_str(&text); rest.p != NULL;) {
        struct str name;
        (void)str_cut(rest, '\n', &line, &rest);
        if (!str_starts(line, STR(DEFINITION)))
            continue;
        ck_assert(str_cut(line, '"', &line, &name) && str_cut(name, '"', &name, &line));
        defined++;
        if (!is_on_containers(name))
            continue;
        ck_assert_uint_lt(n_resources, RESOURCES_MAX);
        resources[n_resources++] = strndup(name.p, name.n);
    }
    ck_assert_uint_gt(defined, n_resources); /* gpu-count is only on nodes */
    /* The one further name of NVIDIA's plugin that has no size of a slice in it. */
    ck_assert(is_on_containers(STR("nvidia.com/gpu.shared")) && n_resources < RESOURCES_MAX);
    resources[n_resources++] = strdup("nvidia.com/gpu.shared");
    ck_assert_uint_ge(n_resources, 3);
    buf_done(&text);
}

static void forget_resources(void)
{
    while (n_resources > 0)
        free(resources[--n_resources]);
}

/* An element is a name, as in the chart, or an object with a name. */
static void check_list(const char *path, const json_t *list)
{
    bool listed[RESOURCES_MAX] = {false};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const json_t *name = json_is_string(one) ? one : json_object_get(one, "name");
        const json_t *ignored = json_object_get(one, "ignoredByScheduler");
        size_t at = 0;
        ck_assert_msg(json_is_string(name), "%s: element %zu has no name", path, i);
        while (at < n_resources && strcmp(resources[at], json_string_value(name)) != 0)
            at++;
        ck_assert_msg(at < n_resources && !listed[at], "%s lists %s, which is unknown or twice",
                      path, json_string_value(name));
        ck_assert_msg(json_is_string(one) || json_is_false(ignored),
                      "%s: kube-scheduler must compare the nodes' sums of %s itself", path,
                      json_string_value(name));
        listed[at] = true;
    }
    for (size_t k = 0; k < n_resources; k++)
        ck_assert_msg(listed[k], "%s does not list %s", path, resources[k]);
    n_lists++;
}

static void check_value(const char *path, json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        check_value(path, json_array_get(value, i));
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at)) {
        json_t *member = json_object_iter_value(at);
        if (strcmp(json_object_iter_key(at), "managedResources") == 0)
            check_list(path, member);
        else
            check_value(path, member);
    }
}

static bool has_list(const char *path, struct str text)
{
    bool named = memmem(text.p, text.n, "managedResources:", 17) != NULL;
    bool scheduler = memmem(text.p, text.n, "\nextenders:", 11) != NULL;
    ck_assert_msg(named || !scheduler, "%s has an extender without managedResources", path);
    return named;
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    size_t n = strlen(path);
    struct buf text;
    struct buf json;
    struct err e = ERR_INIT;
    if (type != FTW_F || n < 5 || strcmp(path + n - 5, ".yaml") != 0 ||
        strstr(path, "/templates/") != NULL)
        return 0;
    (void)where;
    load(&text, path);
    if (has_list(path, buf_str(&text))) {
        unsigned before = n_lists;
        buf_init(&json, MIB);
        ck_assert_ok(yaml_to_json(buf_str(&text), &json, &e), &e);
        json_t *root = json_loadb(json.p, json.n, 0, NULL);
        ck_assert_ptr_nonnull(root);
        check_value(path, root);
        ck_assert_uint_eq(n_lists, before + 1);
        json_decref(root);
        buf_done(&json);
        n_files++;
    }
    buf_done(&text);
    return 0;
}

TEST(every_scheduler_asks_about_every_resource)
{
    static const char *const folders[] = {"config", "manifests"};
    char path[512];
    find_resources();
    n_lists = n_files = 0;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        ck_assert_int_eq(nftw(in_source(path, folders[i]), visit, 16, FTW_PHYS), 0);
    /* config/, kubeadm's overlay and the second scheduler, for three versions each; the chart. */
    ck_assert_uint_ge(n_files, 10);
    forget_resources();
}

/* Helm refuses a name of which cardpack would never hear. */
TEST(the_chart_accepts_these_alone)
{
    static const char *const keys[] = {"properties", "secondScheduler", "properties",
                                       "managedResources", "items"};
    char path[512];
    struct buf text;
    find_resources();
    load(&text, in_source(path, "manifests/helm/cardpack/values.schema.json"));
    json_t *root = json_loadb(text.p, text.n, 0, NULL);
    const json_t *at = root;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        at = json_object_get(at, keys[i]);
    at = json_array_get(json_object_get(at, "anyOf"), 0);
    ck_assert(json_is_array(json_object_get(at, "enum")));
    check_list(path, json_object_get(at, "enum"));
    json_decref(root);
    buf_done(&text);
    forget_resources();
}
