/* Which pod a container belongs to, over lists, changes and ends of pods. */
#include "node/containers/containers.h"

#include "fail_alloc.h"
#include "unit.h"

#include <stdio.h>

#define HEX63 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID(c) c HEX63

static struct containers c;

static void set_up(void)
{
    containers_init(&c, (struct map_seed){1, 2});
}

static void tear_down(void)
{
    fail_alloc_disarm();
    containers_done(&c);
}

static void set_deleting(const char *uid, const char *status, const char *phase, bool deleting)
{
    char json[4096];
    char name[64];
    (void)snprintf(json, sizeof(json), "{\"kind\":\"Pod\",\"status\":%s,\"spec\":{}}", status);
    (void)snprintf(name, sizeof(name), "pod-%s", uid);
    const struct pod_view v = {.uid = str_of(uid),
                               .namespace = STR("ns"),
                               .name = str_of(name),
                               .phase = str_of(phase),
                               .deleting = deleting};
    containers_set(&c, &v, str_of(json));
}

static void set(const char *uid, const char *status, const char *phase)
{
    set_deleting(uid, status, phase, false);
}

/* "pod/container", or "-" */
static void is(const char *id, const char *expected)
{
    char text[128] = "-";
    const struct container *found = containers_find(&c, str_of(id));
    if (found != NULL)
        (void)snprintf(text, sizeof(text), "%.*s/%.*s/%.*s/%.*s", STR_ARG(found->pod->uid),
                       STR_ARG(found->pod->namespace), STR_ARG(found->pod->name),
                       STR_ARG(found->name));
    ck_assert_str_eq(text, expected);
}

#define IN_STATE(name, id, state) \
    "{\"name\":\"" name "\",\"containerID\":\"" id "\",\"state\":{\"" state "\":{}}}"
#define STATUS(name, id) IN_STATE(name, id, "running")

START_TEST(over_a_life)
{
    containers_begin(&c);
    set("u1",
        "{\"initContainerStatuses\":[" STATUS(
            "side",
            "cri-o://" ID("1")) "],"
                                "\"containerStatuses\":[" STATUS(
                                    "main",
                                    "containerd://" ID(
                                        "2")) ","
                                              "{\"name\":\"waits\",\"state\":{\"waiting\":{}}}],"
                                              "\"ephemeralContainerStatuses\":[" STATUS(
                                                  "debug", "containerd://" ID("3")) "]}",
        "Running");
    set("u2", "{\"containerStatuses\":[" STATUS("only", "docker://" ID("4")) "]}", "Running");
    set("u3", "{}", "Pending");
    containers_end(&c);
    is(ID("1"), "u1/ns/pod-u1/side");
    is(ID("2"), "u1/ns/pod-u1/main");
    is(ID("3"), "u1/ns/pod-u1/debug");
    is(ID("4"), "u2/ns/pod-u2/only");
    ck_assert_uint_eq(containers_pod(&c, STR("u1"))->n, 3);
    ck_assert_uint_eq(containers_pod(&c, STR("u3"))->n, 0);
    /* it started again */
    set("u2", "{\"containerStatuses\":[" STATUS("only", "docker://" ID("5")) "]}", "Running");
    is(ID("4"), "-");
    is(ID("5"), "u2/ns/pod-u2/only");
    set("u1", "{\"containerStatuses\":[" STATUS("main", "containerd://" ID("2")) "]}", "Failed");
    is(ID("2"), "-");
    ck_assert_ptr_null(containers_pod(&c, STR("u1")));
    containers_gone(&c, STR("u2"));
    containers_gone(&c, STR("absent"));
    is(ID("5"), "-");
    ck_assert_uint_eq(c.left_out, 0);
}

START_TEST(lists)
{
    containers_begin(&c);
    set("a", "{\"containerStatuses\":[" STATUS("x", "docker://" ID("1")) "]}", "Running");
    set("b", "{\"containerStatuses\":[" STATUS("x", "docker://" ID("2")) "]}", "Running");
    containers_end(&c);
    containers_begin(&c); /* fails midway */
    containers_begin(&c);
    is(ID("1"), "a/ns/pod-a/x");
    set("b", "{\"containerStatuses\":[" STATUS("x", "docker://" ID("2")) "]}", "Running");
    containers_end(&c);
    is(ID("1"), "-");
    is(ID("2"), "b/ns/pod-b/x");
    ck_assert_ptr_null(containers_pod(&c, STR("a")));
}

static const char *const no_ids[] = {
    "null",
    "\"\"",
    "\"" ID("1") "\"",
    "\"containerd://\"",
    "\"containerd://x" ID("1") "\"",
    "\"podman://" ID("1") "\"",
    "\"containerd://" ID("G") "\"",
    "\"containerd://../../" ID("1") "\"",
    "\"containerd:///" ID("1") "\"",
};

START_TEST(not_an_id)
{
    char status[512];
    (void)snprintf(status, sizeof(status),
                   "{\"containerStatuses\":[{\"name\":\"x\",\"containerID\":%s}]}", no_ids[_i]);
    set("a", status, "Running");
    ck_assert_uint_eq(containers_pod(&c, STR("a"))->n, 0);
    is(ID("1"), "-");
}

/* What another pod has stays with it; what can't be read is left out. */
START_TEST(left_out)
{
    set("a", "{\"containerStatuses\":[" STATUS("x", "docker://" ID("1")) "]}", "Running");
    set("b",
        "{\"containerStatuses\":[" STATUS("y", "docker://" ID("1")) "," STATUS(
            "z", "docker://" ID("2")) "]}",
        "Running");
    is(ID("1"), "a/ns/pod-a/x");
    is(ID("2"), "b/ns/pod-b/z");
    ck_assert_uint_eq(c.left_out, 1);
    containers_gone(&c, STR("b"));
    is(ID("1"), "a/ns/pod-a/x");
    set("a", "{\"containerStatuses\":7}", "Running");
    is(ID("1"), "-");
    ck_assert_uint_eq(c.left_out, 2);
}

START_TEST(too_many)
{
    char uid[16];
    for (size_t i = 0; i < CONTAINERS_PODS_MAX + 3; i++) {
        (void)snprintf(uid, sizeof(uid), "u%zu", i);
        set(uid, "{}", "Running");
    }
    ck_assert_uint_eq(c.pods.n, CONTAINERS_PODS_MAX);
    ck_assert_uint_eq(c.left_out, 3);
}

/* One that has run is known to its pod, and takes no room among those that run. */
START_TEST(one_that_has_run)
{
    set("a",
        "{\"containerStatuses\":[" IN_STATE("x", "docker://" ID("1"),
                                            "terminated") "," STATUS("y", "docker://" ID("2")) "]}",
        "Running");
    is(ID("1"), "-");
    is(ID("2"), "a/ns/pod-a/y");
    const struct container_pod *p = containers_pod(&c, STR("a"));
    ck_assert_uint_eq(p->n, 2);
    ck_assert(!p->items[0].running && p->items[1].running);
    /* an ID that another pod's container had, and has not any more */
    set("b", "{\"containerStatuses\":[" STATUS("x", "docker://" ID("1")) "]}", "Running");
    is(ID("1"), "b/ns/pod-b/x");
    containers_gone(&c, STR("a"));
    is(ID("1"), "b/ns/pod-b/x");
    is(ID("2"), "-");
    ck_assert_uint_eq(c.left_out, 0);
}

/* A pod that is being deleted is over when none of its containers runs, whatever their IDs. */
START_TEST(over)
{
    const char *runs = "{\"containerStatuses\":[" STATUS("x", "docker://" ID("1")) "]}";
    const char *ended =
        "{\"containerStatuses\":[" IN_STATE("x", "docker://" ID("1"), "terminated") "]}";
    const char *unknown = "{\"containerStatuses\":[" STATUS("x", "podman://" ID("1")) "]}";
    set("a", ended, "Running");
    ck_assert(!containers_over(&c, STR("a")));
    set_deleting("a", runs, "Running", true);
    ck_assert(!containers_over(&c, STR("a")));
    set_deleting("a", unknown, "Running", true);
    ck_assert(!containers_over(&c, STR("a")));
    set_deleting("a", ended, "Running", true);
    ck_assert(containers_over(&c, STR("a")));
    ck_assert(!containers_over(&c, STR("absent")));
}

#define EACH ((size_t)9)

/* Pods with EACH containers, in this state. */
static void crowd(size_t from, size_t pods, const char *state)
{
    for (size_t i = from; i < from + pods; i++) {
        char uid[16];
        char status[4096] = "{\"containerStatuses\":[";
        for (size_t k = 0; k < EACH; k++) {
            size_t n = strlen(status);
            (void)snprintf(status + n, sizeof(status) - n,
                           "%s{\"name\":\"c%zu\",\"containerID\":\"docker://%064zx\","
                           "\"state\":{\"%s\":{}}}",
                           k == 0 ? "" : ",", k, i * EACH + k, state);
        }
        size_t n = strlen(status);
        (void)snprintf(status + n, sizeof(status) - n, "]}");
        (void)snprintf(uid, sizeof(uid), "u%zu", i);
        set(uid, status, "Running");
    }
}

START_TEST(too_many_that_run)
{
    crowd(0, 100, "terminated");
    ck_assert_uint_eq(c.by_id.n, 0);
    crowd(100, CONTAINERS_MAX / EACH, "running");
    ck_assert_uint_eq(c.left_out, 0);
    crowd(0, 1, "running");
    ck_assert_uint_eq(c.by_id.n, CONTAINERS_MAX);
    ck_assert_uint_eq(c.left_out, EACH - CONTAINERS_MAX % EACH);
}

static enum errc scenario(void *ctx)
{
    (void)ctx;
    set_up();
    set("a",
        "{\"containerStatuses\":[" STATUS("\\u0078", "docker://" ID("1")) "," STATUS(
            "y", "docker://" ID("2")) "]}",
        "Running");
    bool whole = containers_find(&c, STR(ID("1"))) != NULL &&
                 containers_find(&c, STR(ID("2"))) != NULL && containers_pod(&c, STR("a")) != NULL;
    ck_assert(whole == (c.left_out == 0));
    containers_done(&c);
    return whole ? OK : ERR_NOMEM;
}

START_TEST(without_memory)
{
    ck_assert_uint_ge(fail_alloc_each(scenario, NULL), 3);
}

int main(void)
{
    TCase *t = unit_case("containers");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, over_a_life);
    tcase_add_test(t, lists);
    tcase_add_loop_test(t, not_an_id, 0, COUNT_OF(no_ids));
    tcase_add_test(t, left_out);
    tcase_add_test(t, too_many);
    tcase_add_test(t, one_that_has_run);
    tcase_add_test(t, over);
    tcase_add_test(t, too_many_that_run);
    t = unit_case("memory");
    tcase_add_test(t, without_memory);
    return unit_run();
}
