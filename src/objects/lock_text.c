/* Reads the lock of a node. HAMi's and Volcano's schedulers write their local time:
 * "2023-11-15T00:08:19+02:00". */
#include "objects/lock_text.h"

#include "objects/stamp.h"

static bool lock_text_read_time(struct str text, uint32_t *ret_s)
{
    char bytes[64];
    struct buf utc = BUF_ON(bytes);
    uint64_t hours = 0;
    uint64_t minutes = 0;
    uint32_t local = 0;
    if (text.n < 6 || text.p[text.n - 1] == 'Z')
        return stamp_read(text, ret_s);
    struct str zone = str_skip(text, text.n - 6);
    bool east = zone.p[0] == '+';
    if ((!east && zone.p[0] != '-') || zone.p[3] != ':' ||
        !str_to_u64((struct str){zone.p + 1, 2}, 23, &hours) ||
        !str_to_u64((struct str){zone.p + 4, 2}, 59, &minutes))
        return false;
    buf_put(&utc, (struct str){text.p, text.n - zone.n});
    buf_put(&utc, STR("Z"));
    if (buf_failed(&utc) || !stamp_read(buf_str(&utc), &local))
        return false;
    int64_t ahead_s = (int64_t)(hours * 3600 + minutes * 60);
    int64_t s = (int64_t)local - (east ? ahead_s : -ahead_s);
    *ret_s = (uint32_t)s;
    return s >= 0 && s <= UINT32_MAX;
}

void lock_text_read(struct str text, struct lock_view *ret)
{
    struct str time;
    struct str pod;
    *ret = (struct lock_view){.text = text};
    if (!str_cut(text, ',', &time, &pod) || !str_cut(pod, ',', &ret->namespace, &ret->name))
        ret->namespace = ret->name = STR_NULL;
    if (text.p == NULL || !lock_text_read_time(time, &ret->since_s))
        ret->since_s = 0;
}
