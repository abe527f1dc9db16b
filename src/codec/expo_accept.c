/*
 * Chooses between two media types by the Accept header (RFC 9110). For each type, the q of the most
 * specific matching range counts. All parameters except q and version are ignored.
 */
#include "codec/expo.h"

/* q in thousandths, the precision of the RFC. */
#define Q_FULL 1000

struct range {
    struct str type;
    struct str version; /* absent: any */
    unsigned q;
};

/* Reads "0.75"; an invalid number counts as 1, as if it were absent. */
static unsigned read_q(struct str s)
{
    unsigned q = 0;
    unsigned digit = Q_FULL;
    if (s.n == 0 || (s.p[0] != '0' && s.p[0] != '1'))
        return Q_FULL;
    for (size_t i = 0; i < s.n && digit > 0; i++) {
        if (i == 1) {
            if (s.p[i] != '.')
                return Q_FULL;
            continue;
        }
        if (s.p[i] < '0' || s.p[i] > '9')
            return Q_FULL;
        q += (unsigned)(s.p[i] - '0') * digit;
        digit /= 10;
    }
    return MIN_OF(q, (unsigned)Q_FULL);
}

static struct str unquoted(struct str s)
{
    if (s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"')
        return (struct str){s.p + 1, s.n - 2};
    return s;
}

static struct range read_range(struct str text)
{
    struct range r = {.q = Q_FULL};
    struct str rest;
    bool more = str_cut(text, ';', &r.type, &rest);
    r.type = str_trim(r.type);
    while (more) {
        struct str parameter;
        struct str key;
        struct str value;
        more = str_cut(rest, ';', &parameter, &rest);
        if (!str_cut(parameter, '=', &key, &value))
            continue;
        key = str_trim(key);
        value = unquoted(str_trim(value));
        if (str_eq_nocase(key, STR("q")))
            r.q = read_q(value);
        else if (str_eq_nocase(key, STR("version")))
            r.version = value;
    }
    return r;
}

/*
 * How exactly the range matches this type: 0 no match, 1 any type, 2 any subtype, 3 by name, 4 with
 * the version.
 */
static unsigned specificity(const struct range *r, struct str kind, struct str type,
                            struct str version)
{
    if (str_eq_nocase(r->type, type))
        return r->version.p == NULL ? 3 : str_eq(r->version, version) ? 4 : 0;
    if (str_eq_nocase(r->type, kind))
        return 2;
    return str_eq(r->type, STR("*/*")) ? 1 : 0;
}

struct taste {
    unsigned specificity;
    unsigned q;
};

static void taste(struct taste *t, unsigned specificity, unsigned q)
{
    if (specificity > t->specificity || (specificity == t->specificity && q > t->q))
        *t = (struct taste){specificity, q};
}

enum expo_format expo_negotiate(struct str accept)
{
    struct taste open = {0};
    struct taste text = {0};
    bool more = accept.n > 0;
    while (more) {
        struct str one;
        more = str_cut(accept, ',', &one, &accept);
        struct range r = read_range(one);
        taste(&open,
              specificity(&r, STR("application/*"), STR("application/openmetrics-text"),
                          STR("1.0.0")),
              r.q);
        taste(&text, specificity(&r, STR("text/*"), STR("text/plain"), STR("0.0.4")), r.q);
    }
    /*
     * OpenMetrics needs its name in the header; a wildcard, as browsers and curl send it, is not
     * enough.
     */
    bool by_name = open.specificity >= 3 && open.q > 0;
    return by_name && open.q >= text.q ? EXPO_OPENMETRICS : EXPO_TEXT;
}
