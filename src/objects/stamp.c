/* Reads and prints metav1.Time in whole seconds. */
#include "objects/stamp.h"

#include "objects/lease.h"

static bool stamp_digits(struct str text, size_t at, size_t n, uint64_t *ret)
{
    return str_to_u64((struct str){text.p + at, n}, UINT32_MAX, ret);
}

/* Days since 1970. The year begins in March, so that the length of February does not matter. */
static uint64_t stamp_days_of(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t y = month <= 2 ? year - 1 : year;
    uint64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

bool stamp_read(struct str text, uint32_t *ret_s)
{
    static const char form[] = "0000-00-00T00:00:00";
    uint64_t v[6];
    size_t at[] = {0, 5, 8, 11, 14, 17};
    size_t n = sizeof(form) - 1;
    if (text.n <= n || text.p[text.n - 1] != 'Z' || (text.n > n + 1 && text.p[n] != '.'))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (form[i] != '0' && text.p[i] != form[i])
            return false;
    }
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        if (!stamp_digits(text, at[i], i == 0 ? 4 : 2, &v[i]))
            return false;
    }
    if (v[0] < 1970 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 || v[3] > 23 || v[4] > 59 ||
        v[5] > 60)
        return false;
    uint64_t s = stamp_days_of(v[0], v[1], v[2]) * 86400 + v[3] * 3600 + v[4] * 60 + v[5];
    if (s > UINT32_MAX)
        return false;
    *ret_s = (uint32_t)s;
    return true;
}

struct str stamp_print(uint32_t unix_s, char text[static STAMP_BYTES])
{
    char micro[MICRO_TIME_BYTES];
    (void)micro_time_print((uint64_t)unix_s * 1000000000, micro);
    memcpy(text, micro, STAMP_BYTES - 2);
    text[STAMP_BYTES - 2] = 'Z';
    text[STAMP_BYTES - 1] = '\0';
    return (struct str){text, STAMP_BYTES - 1};
}
