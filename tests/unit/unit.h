/* Shared by all unit tests: the tests of a program, and assertions for cardpack's types. */
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

/* One more case of the program, for what follows; needed only for a fixture or a time limit. */
TCase *unit_case(const char *name);

/* Runs all tests, those of TEST and TEST_EACH in the latest case; with the variable UNIT_TEST only
 * that one. Prints TAP on standard output;
 * check forks a process for each test unless CK_FORK=no. A program without a main of its own has
 * unit_main.c's, which does this and nothing else. */
int unit_run(void);

struct unit_test {
    const TTest *test;
    int n;
    struct unit_test *next;
};

/* Before main. */
void unit_add(struct unit_test *t);

/* A test, which needs no other mention; with TEST_EACH it runs for each _i from 0 on. */
#define TEST(name) TEST_EACH(name, 1)
#define TEST_EACH(name, times)                                            \
    static void name##_fn(int _i);                                        \
    __attribute__((constructor)) static void name##_add(void)             \
    {                                                                     \
        static const TTest test = {#name, name##_fn, __FILE__, __LINE__}; \
        static struct unit_test one = {.test = &test};                    \
        one.n = (int)(times);                                             \
        unit_add(&one);                                                   \
    }                                                                     \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)
