/* Events about what cardpack can't use of a pod's object: once, and only while the pod is pending.
 */
#include "daemon/advise.h"

#include "unit.h"

#include <stdio.h>

static struct advise advise;
static unsigned posted;
static char last[1024]; /* "REASON: message" */

/* Replaces events.h's function. */
void events_post(struct events *ev, const struct event_subject *pod, enum event_level level,
                 struct str reason, struct str message)
{
    ck_assert_ptr_null(ev);
    ck_assert_str_is(pod->namespace, "ns");
    ck_assert_str_is(pod->name, "p");
    ck_assert_int_eq(level, EVENT_WARNING);
    (void)snprintf(last, sizeof(last), "%.*s: %.*s", STR_ARG(reason), STR_ARG(message));
    posted++;
}

static void set_up(void)
{
    advise = (struct advise){.seed = {1, 2}};
    posted = 0;
}

static struct pod_view pod_of(const char *uid, const char *unknown)
{
    return (struct pod_view){.uid = str_of(uid),
                             .namespace = STR("ns"),
                             .name = STR("p"),
                             .phase = STR("Pending"),
                             .unknown = str_of(unknown)};
}

static void shown(struct pod_view pod, const char *fault)
{
    struct err e = ERR_INIT;
    if (fault != NULL)
        (void)err_set(&e, ERR_RANGE, "%s", fault);
    advise_pod(&advise, NULL, &pod, &e);
}

TEST(names_the_annotation_and_the_nearest_one)
{
    shown(pod_of("u", "cardpack.io/card-modell"), NULL);
    ck_assert_str_eq(last, "UnknownAnnotation: annotation cardpack.io/card-modell has no effect: "
                           "cardpack does not know it; did you mean cardpack.io/card-model?");
    shown(pod_of("u", "cardpack.io/owner"), NULL);
    ck_assert_str_eq(last,
                     "UnknownAnnotation: annotation cardpack.io/owner has no effect: cardpack "
                     "does not know it");
    ck_assert_uint_eq(posted, 2);
}

TEST(tells_of_a_request_that_is_not_valid)
{
    shown(pod_of("u", NULL), "container \"c\": too much");
    ck_assert_str_eq(last, "InvalidRequest: container \"c\": too much");
    shown(pod_of("u", "cardpack.io/x"), "container \"c\": too much");
    ck_assert_uint_eq(posted, 2);
    ck_assert_str_eq(last,
                     "UnknownAnnotation: annotation cardpack.io/x has no effect: cardpack does "
                     "not know it");
}

/* Its node is closed: that concerns others, too, though it is bound. */
TEST(tells_of_a_bound_pod_that_can_not_be_read)
{
    struct pod_view pod = pod_of("u", NULL);
    pod.fault = STR("it is odd");
    pod.node = STR("n");
    for (unsigned i = 0; i < 3; i++)
        shown(pod, "it can't be read: it is odd");
    ck_assert_uint_eq(posted, 1);
    ck_assert_str_eq(last, "UnreadablePod: it can't be read: it is odd");
}

TEST(tells_once)
{
    for (unsigned i = 0; i < 3; i++)
        shown(pod_of("u", "cardpack.io/x"), NULL);
    ck_assert_uint_eq(posted, 1);
    shown(pod_of("v", "cardpack.io/x"), NULL); /* another pod */
    ck_assert_uint_eq(posted, 2);
    shown(pod_of("u", "cardpack.io/y"), NULL);
    ck_assert_uint_eq(posted, 3);
}

TEST(is_silent_about_other_pods)
{
    struct pod_view bound = pod_of("b", "cardpack.io/x");
    struct pod_view deleting = pod_of("d", "cardpack.io/x");
    struct pod_view ended = pod_of("e", "cardpack.io/x");
    bound.node = STR("n");
    deleting.deleting = true;
    ended.phase = STR("Failed");
    shown(bound, "not valid");
    shown(deleting, "not valid");
    shown(ended, "not valid");
    shown(pod_of("good", NULL), NULL);
    ck_assert_uint_eq(posted, 0);
}

TEST(cuts_a_long_name)
{
    char key[400];
    (void)snprintf(key, sizeof(key), "cardpack.io/%0300d", 7);
    shown(pod_of("u", key), NULL);
    ck_assert_ptr_nonnull(strstr(last, "000... has no effect"));
    ck_assert_uint_lt(strlen(last), 256);
}

int main(void)
{
    TCase *tc = unit_case("advise");
    tcase_add_checked_fixture(tc, set_up, NULL);
    return unit_run();
}
