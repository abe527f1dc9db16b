/* Errors: their texts, contexts and cuts. */
#include "base/err.h"

#include "unit.h"

#include <signal.h>

TEST(sets)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(err_set(&e, ERR_RANGE, "%d is over %s", 12, "ten"), ERR_RANGE);
    ck_assert_int_eq(e.code, ERR_RANGE);
    ck_assert_str_eq(e.text, "12 is over ten");
}

TEST(wraps_outermost_first)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_SYNTAX, "expected a digit at offset %d", 3);
    ck_assert_int_eq(err_wrap(&e, "limits"), ERR_SYNTAX);
    ck_assert_int_eq(err_wrap(&e, "pod %s/%s", "team-a", "train-0"), ERR_SYNTAX);
    ck_assert_str_eq(e.text, "pod team-a/train-0: limits: expected a digit at offset 3");
}

TEST(works_without_an_err)
{
    ck_assert_int_eq(err_set(NULL, ERR_LIMIT, "%s", "no one reads this"), ERR_LIMIT);
    ck_assert_int_eq(err_wrap(NULL, "%s", "nor this"), ERR_INTERNAL);
}

/* The new text may quote the old text of the same error. */
TEST(may_quote_itself)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_SYNTAX, "inner");
    (void)err_set(&e, ERR_DENIED, "outer (%s) and (%s)", e.text, e.text);
    ck_assert_str_eq(e.text, "outer (inner) and (inner)");
    (void)err_wrap(&e, "<%s>", e.text);
    ck_assert_str_eq(e.text, "<outer (inner) and (inner)>: outer (inner) and (inner)");
}

/* i bytes of context around j bytes of text: too long a line is cut, with a NUL at its end. */
TEST(cuts_what_is_too_long)
{
    struct err e;
    const size_t sizes[] = {0, 1, 127, 253, 254, 255, 256, 300, 600};
    char text[601];
    char expected[1300];
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (size_t j = 0; j < COUNT_OF(sizes); j++) {
            memset(text, 'a', sizeof(text));
            (void)err_set(&e, ERR_NOTFOUND, "%.*s", (int)sizes[j], text);
            ck_assert_uint_eq(strlen(e.text), MIN_OF(sizes[j], sizeof(e.text) - 1));
            memset(expected, 0, sizeof(expected));
            memset(text, 'b', sizeof(text));
            memset(expected, 'b', sizes[i]);
            size_t used = MIN_OF(sizes[i], sizeof(e.text) - 1);
            expected[used] = ':';
            expected[used + 1] = ' ';
            memset(expected + used + 2, 'a', sizes[j]);
            expected[sizeof(e.text) - 1] = '\0';
            expected[used + 2 + MIN_OF(sizes[j], sizeof(e.text) - 1)] = '\0';
            (void)err_wrap(&e, "%.*s", (int)sizes[i], text);
            ck_assert_str_eq(e.text, expected);
        }
    }
}

/* A function that fails without setting e must not look like a success to its callers. */
START_TEST(will_not_wrap_a_success)
{
    struct err e = ERR_INIT;
    (void)err_wrap(&e, "context");
}

TEST(every_code_is_in_the_table)
{
    ck_assert_str_eq(errc_name(OK), "ok");
    for (int code = OK; code < ERRC_COUNT; code++) {
        ck_assert_ptr_nonnull(errc_name((enum errc)code));
        unsigned status = errc_http_status((enum errc)code);
        ck_assert(code == OK ? status == 200 : status >= 400 && status < 600);
        for (int other = OK; other < code; other++)
            ck_assert_str_ne(errc_name((enum errc)code), errc_name((enum errc)other));
    }
}

int main(void)
{
    TCase *tc = unit_case("err");
    tcase_add_test_raise_signal(tc, will_not_wrap_a_success, SIGABRT);
    return unit_run();
}
