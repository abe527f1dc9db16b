/* The tests of a program, in the order of the file, and how they run. */
#include "unit.h"

#include <string.h>

static Suite *suite;
static TCase *latest;
static struct unit_test *tests;
static struct unit_test **end = &tests;

TCase *unit_case(const char *name)
{
    latest = tcase_create(name);
    if (suite == NULL)
        suite = suite_create(name);
    suite_add_tcase(suite, latest);
    return latest;
}

void unit_add(struct unit_test *t)
{
    *end = t;
    end = &t->next;
}

int unit_run(void)
{
    const char *only = getenv("UNIT_TEST");
    if (latest == NULL)
        (void)unit_case("all");
    for (const struct unit_test *t = tests; t != NULL; t = t->next) {
        if (only == NULL || strcmp(only, t->test->name) == 0)
            tcase_add_loop_test(latest, t->test, 0, t->n);
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
