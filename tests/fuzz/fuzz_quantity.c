/*
 * A quantity means the same in each spelling: with a sign, with leading zeros, with a point or an
 * exponent that change nothing. Plain digits mean their number.
 */
#include "core/quantity.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct str text, const struct quantity *q, const char *before, const char *behind,
                 bool negated)
{
    char copy[256];
    struct quantity r;
    int n = snprintf(copy, sizeof(copy), "%s%.*s%s", before, STR_ARG(text), behind);
    if (quantity_parse((struct str){copy, (size_t)n}, &r) != OK)
        abort();
    if (r.whole != q->whole || (r.saturated != q->saturated && q->value != INT64_MAX))
        abort();
    int64_t expected = q->value == INT64_MIN ? INT64_MAX : -q->value;
    bool at_the_edge = q->value == INT64_MAX || q->value == INT64_MIN;
    if (!at_the_edge && r.value != (negated ? expected : q->value))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct quantity q;
    uint64_t plain = 0;
    enum errc code = quantity_parse(text, &q);
    if (code != OK && code != ERR_SYNTAX && code != ERR_RANGE)
        abort();
    if (str_to_u64(text, INT64_MAX, &plain) && size <= 128 &&
        (code != OK || q.value != (int64_t)plain || !q.whole || q.saturated))
        abort();
    if (code != OK || size == 0 || size > 100)
        return 0;
    if (q.saturated && q.value != INT64_MAX && q.value != INT64_MIN)
        abort();
    char last = text.p[size - 1];
    bool is_signed = text.p[0] == '-' || text.p[0] == '+';
    bool no_suffix = (last >= '0' && last <= '9') || last == '.';
    if (!is_signed) {
        same(text, &q, "+", "", false);
        same(text, &q, "-", "", true);
        same(text, &q, "000", "", false);
    }
    if (no_suffix && memchr(text.p, 'e', size) == NULL && memchr(text.p, 'E', size) == NULL) {
        same(text, &q, "", "e0", false);
        same(text, &q, "", memchr(text.p, '.', size) == NULL ? ".000" : "000", false);
        same(text, &q, "", memchr(text.p, '.', size) == NULL ? ".0e-0" : "E+00", false);
    }
    return 0;
}
