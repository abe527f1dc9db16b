/*
 * Writes metrics. Bucket bounds have a decimal point, because Prometheus 3 rewrites le="1" to
 * le="1.0": so the series have the same labels in every version.
 *
 * Almost all label values need no escape and are copied at once. A NUL is replaced too, because
 * some readers end the text there.
 */
#include "report/expo.h"

#include "json/jscan.h"

#define NS_DECIMALS  9
#define DECIMALS_MAX 18

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S  (1000 * MS)

const uint64_t expo_bounds_ns[EXPO_BOUNDS] = {
    100 * US, 250 * US, 500 * US, 1 * MS,    2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS,
    100 * MS, 250 * MS, 500 * MS, 1000 * MS, 2500 * MS, 5 * S,  10 * S,  30 * S,
};

void expo_init(struct expo *x, struct buf *out)
{
    *x = (struct expo){.out = out};
}

/* quotes: whether to escape quotes. In a help line they are not escaped. */
static void expo_put_escaped(struct buf *out, struct str s, bool quotes)
{
    if (s.n == 0)
        return;
    const char *end = s.p + s.n;
    for (const char *p = s.p; p < end;) {
        const char *plain = jscan_plain(p, end);
        buf_put(out, (struct str){p, (size_t)(plain - p)});
        p = plain;
        if (p == end)
            return;
        unsigned char c = (unsigned char)*p;
        size_t n = jscan_utf8(p, end);
        if (c == '\n')
            buf_put(out, STR("\\n"));
        else if (c == '\\')
            buf_put(out, STR("\\\\"));
        else if (c == '"' && quotes)
            buf_put(out, STR("\\\""));
        else
            buf_put(out, n == 0 || c == '\0' ? STR("\xef\xbf\xbd") : (struct str){p, n});
        p += MAX_OF(n, (size_t)1);
    }
}

static void expo_put_meta(const struct expo *x, const char *what)
{
    buf_put(x->out, STR("# "));
    buf_put(x->out, str_of(what));
    buf_putc(x->out, ' ');
    buf_put(x->out, x->name);
    buf_putc(x->out, ' ');
}

void expo_family(struct expo *x, enum expo_type type, const char *name, const char *help)
{
    static const char *const types[] = {
        [EXPO_GAUGE] = "gauge", [EXPO_COUNTER] = "counter", [EXPO_HISTOGRAM] = "histogram"};
    x->type = type;
    x->name = str_of(name);
    expo_put_meta(x, "HELP");
    expo_put_escaped(x->out, str_of(help), false);
    buf_putc(x->out, '\n');
    expo_put_meta(x, "TYPE");
    buf_put(x->out, str_of(types[type]));
    buf_putc(x->out, '\n');
}

static void expo_put_label(struct buf *out, const char *key, struct str value)
{
    buf_put(out, str_of(key));
    buf_put(out, STR("=\""));
    expo_put_escaped(out, value, true);
    buf_putc(out, '"');
}

/* Writes a sample without its value; `le` absent: no such label. */
static void expo_put_head(const struct expo *x, struct str suffix, const struct expo_label *labels,
                          size_t n, struct str le)
{
    buf_put(x->out, x->name);
    buf_put(x->out, suffix);
    for (size_t i = 0; i < n; i++) {
        buf_putc(x->out, i == 0 ? '{' : ',');
        expo_put_label(x->out, labels[i].key, labels[i].value);
    }
    if (le.p != NULL) {
        buf_putc(x->out, n == 0 ? '{' : ',');
        expo_put_label(x->out, "le", le);
    }
    if (n > 0 || le.p != NULL)
        buf_putc(x->out, '}');
    buf_putc(x->out, ' ');
}

static void expo_put_fixed(struct buf *out, int64_t v, unsigned decimals, unsigned at_least)
{
    char digits[DECIMALS_MAX];
    uint64_t whole = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    unsigned n = decimals;
    assert(decimals <= DECIMALS_MAX);
    for (unsigned i = decimals; i-- > 0; whole /= 10)
        digits[i] = (char)('0' + (char)(whole % 10));
    while (n > at_least && digits[n - 1] == '0')
        n--;
    if (v < 0)
        buf_putc(out, '-');
    buf_put_u64(out, whole);
    if (n == 0)
        return;
    buf_putc(out, '.');
    buf_put(out, (struct str){digits, n});
}

void expo_u64(struct expo *x, const struct expo_label *labels, size_t n, uint64_t v)
{
    expo_put_head(x, STR(""), labels, n, STR_NULL);
    buf_put_u64(x->out, v);
    buf_putc(x->out, '\n');
}

void expo_i64(struct expo *x, const struct expo_label *labels, size_t n, int64_t v)
{
    expo_fixed(x, labels, n, v, 0);
}

void expo_fixed(struct expo *x, const struct expo_label *labels, size_t n, int64_t v,
                unsigned decimals)
{
    expo_put_head(x, STR(""), labels, n, STR_NULL);
    expo_put_fixed(x->out, v, decimals, 0);
    buf_putc(x->out, '\n');
}

void expo_observe(struct expo_histogram *h, uint64_t ns)
{
    size_t i = 0;
    while (i < EXPO_BOUNDS && ns > expo_bounds_ns[i])
        i++;
    h->counts[i]++;
    h->sum_ns += ns;
}

void expo_histogram(struct expo *x, const struct expo_label *labels, size_t n,
                    const struct expo_histogram *h)
{
    uint64_t count = 0;
    assert(x->type == EXPO_HISTOGRAM);
    for (size_t i = 0; i <= EXPO_BOUNDS; i++) {
        char bytes[32];
        struct buf le = BUF_ON(bytes);
        if (i < EXPO_BOUNDS)
            expo_put_fixed(&le, (int64_t)expo_bounds_ns[i], NS_DECIMALS, 1);
        else
            buf_put(&le, STR("+Inf"));
        count += h->counts[i];
        expo_put_head(x, STR("_bucket"), labels, n, buf_str(&le));
        buf_put_u64(x->out, count);
        buf_putc(x->out, '\n');
    }
    expo_put_head(x, STR("_sum"), labels, n, STR_NULL);
    expo_put_fixed(x->out, (int64_t)h->sum_ns, NS_DECIMALS, 0);
    buf_putc(x->out, '\n');
    expo_put_head(x, STR("_count"), labels, n, STR_NULL);
    buf_put_u64(x->out, count);
    buf_putc(x->out, '\n');
}
