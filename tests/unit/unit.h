/* Shared by all unit tests: the main of a suite, and assertions for cardpack's types. */
#pragma once

#include "base/err.h"

#include <check.h>
#include <stdlib.h>

#define ck_assert_str_is(s, literal)                                                       \
    do {                                                                                   \
        struct str is_ = (s);                                                              \
        ck_assert_msg(str_eq(is_, str_of(literal)), "%s is \"%.*s\", expected \"%s\"", #s, \
                      STR_ARG(is_), (literal));                                            \
    } while (0)

#define ck_assert_ok(call, e)                                                         \
    do {                                                                              \
        enum errc code_ = (call);                                                     \
        ck_assert_msg(code_ == OK, "%s: %s: %s", #call, errc_name(code_), (e)->text); \
    } while (0)

/* Prints TAP on standard output; check forks a process for each test unless CK_FORK=no. */
static inline int unit_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
