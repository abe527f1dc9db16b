/*
 * Writes the JSON of filter, prioritize and bind. Thousands of names and refusals are copied from
 * the request and from the text that is written already, without a branch for each length.
 */
#include "extender/extender.h"

#include <limits.h>

/* Candidates that are looked at together. */
#define GATHER_MAX ((size_t)512)

/* How much of a string is copied at once. */
#define COPY_STEP 32

/* Longest text that is escaped; the rest is cut off. */
#define REASON_MAX ((size_t)4 * KIB)

/* What an entry of a HostPriorityList has beside its name. */
#define PRIORITY_BYTES (sizeof("{\"Host\":\"\",\"Score\":255},"))

/*
 * Writes a text that kube-scheduler shows to users. It uses the text as a format without arguments:
 * up to 1.36 at least for the event (EventRecorder.Eventf), and 1.20 also when it makes an error of
 * the text (fmt.Errorf). A reason that quotes the annotation "25%" would reach the user as
 * 25%!"(MISSING). "%%" does not help: the pod's condition shows the text without formatting.
 * kubectl describe shows the text to a terminal, so what could steer that is escaped.
 */
static void extender_write_reason(struct jwrite *w, struct str text)
{
    char bytes[REASON_MAX] _uninitialized_;
    struct buf shown = BUF_ON(bytes);
    size_t plain = 0;
    while (plain < text.n && text.p[plain] >= ' ' && text.p[plain] < 0x7f && text.p[plain] != '%')
        plain++;
    if (plain == text.n) {
        jwrite_str(w, text);
        return;
    }
    buf_put_printable(&shown, text);
    jwrite_str_replacing(w, buf_str(&shown), '%', STR(" percent"));
}

void extender_write_filter_error(struct buf *out, struct str error)
{
    static const char *const empty[] = {"Nodes", "NodeNames", "FailedNodes",
                                        "FailedAndUnresolvableNodes"};
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    for (size_t i = 0; i < COUNT_OF(empty); i++) {
        jwrite_key(&w, str_of(empty[i]));
        jwrite_null(&w);
    }
    jwrite_key(&w, STR("Error"));
    extender_write_reason(&w, error);
    jwrite_object_end(&w);
}

/* A plain name with its quotes, which are in the body around it. */
static struct str extender_write_quoted(struct str name)
{
    return (struct str){name.p - 1, name.n + 2};
}

/* Copies whole steps, so that up to COPY_STEP - 1 bytes behind both strings are touched: most names
 * and reasons are too short for a branch by their length. */
static inline char *extender_write_copy_over(char *to, const char *from, size_t n)
{
    typedef char half __attribute__((vector_size(COPY_STEP / 2), aligned(1), may_alias));
    for (size_t i = 0; i < n; i += COPY_STEP) {
        half first = *(const half *)(from + i);
        half second = *(const half *)(from + i + COPY_STEP / 2);
        *(half *)(to + i) = first;
        *(half *)(to + i + COPY_STEP / 2) = second;
    }
    return to + n;
}

/* Behind a plain name that ends before this come COPY_STEP bytes of other names. */
static inline const char *extender_write_safe_end(const struct filter_args *args)
{
    const struct str *last = &args->names[args->n - 1];
    return last->p + last->n - COPY_STEP;
}

/* A plain name with one of its quotes or both. `to` has room for COPY_STEP bytes more. */
static inline char *extender_write_copy_name(char *to, struct str quoted, const char *safe_end)
{
    if (quoted.p + quoted.n < safe_end)
        return extender_write_copy_over(to, quoted.p, quoted.n);
    return str_copy(to, quoted);
}

static void extender_write_key(struct jwrite *w, const struct filter_args *args, size_t i)
{
    if (!args->plain)
        jwrite_key(w, args->names[i]);
    else
        jwrite_raw_key(w, extender_write_quoted(args->names[i]));
}

/* ---- refusals ---- */

/* A reason that was written already, from the quote behind its node's name on. */
struct written {
    size_t at;  /* where it is in the answer */
    uint32_t n; /* 0: it was not written, or is not common */
};

struct written_texts {
    struct written of[UCHAR_MAX + 1]; /* by the candidate's kind */
    size_t longest;
};

#define BEFORE_REASON 2 /* the quote and the colon */

static struct written extender_write_refusal(struct jwrite *w, const struct filter_args *args,
                                             size_t i, struct str text)
{
    extender_write_key(w, args, i);
    size_t at = w->out->n - MIN_OF(w->out->n, (size_t)BEFORE_REASON);
    extender_write_reason(w, text);
    return (struct written){.at = at, .n = (uint32_t)(w->out->n - at)};
}

/* Whether none of eight candidates has an offer from `from` on, or `from` itself if that is
 * OFFER_FITS. */
static inline bool extender_write_has_none(const unsigned char *offers, enum offer from)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t eight;
    memcpy(&eight, offers, sizeof(eight));
    if (from == OFFER_FITS)
        return ((eight - ones) & ~eight & ones << 7) == 0;
    return (eight & ones << 1) == 0;
}

/*
 * The candidates with an offer from `from` to `to`, of the next GATHER_MAX from *at on. Their
 * numbers are gathered without a branch for each: which of them are offered is not predictable.
 */
static inline size_t extender_write_gather(const unsigned char *offers, size_t n, enum offer from,
                                           enum offer to, size_t *at,
                                           uint32_t ret[static GATHER_MAX])
{
    size_t count = 0;
    size_t i = *at;
    size_t end = MIN_OF(n, i + GATHER_MAX);
    while (i < end) {
        size_t next = MIN_OF(end, i + 8);
        if (next - i == 8 && extender_write_has_none(offers + i, from))
            i = next;
        for (; i < next; i++) {
            ret[count] = (uint32_t)i;
            count += (unsigned)(offers[i] - from) <= (unsigned)(to - from) ? 1 : 0;
        }
    }
    *at = i;
    return count;
}

static bool extender_write_has_offers(const unsigned char *offers, size_t n, enum offer from)
{
    unsigned char most = 0;
    for (size_t i = 0; i < n; i++)
        most = MAX_OF(most, offers[i]);
    return most >= from;
}

/* Makes room for n bytes, which may be more than are needed: so the buf does not fail if they would
 * exceed its ceiling or memory-budget. */
static bool extender_write_has_room(struct buf *out, size_t n)
{
    bool there = n < out->cap - out->n;
    return n <= out->max - out->n && (there || mem_account_fits(out->account, n + 1)) &&
           buf_reserve(out, n);
}

/* Writes the first of these candidates, n of them, whose names are plain and whose reasons were
 * written before. Returns how many. */
static size_t extender_write_again(struct buf *out, const struct filter_args *args,
                                   const unsigned char *kinds, const struct written_texts *texts,
                                   const uint32_t *found, size_t n)
{
    const struct str *names = args->names;
    const struct str *last = &names[found[n - 1]];
    const char *safe_end = extender_write_safe_end(args);
    size_t room = (size_t)(last->p + last->n - names[found[0]].p) + n * (texts->longest + 2);
    size_t k = 0;
    if (texts->longest == 0 || !extender_write_has_room(out, room + COPY_STEP))
        return 0;
    char *to = out->p + out->n;
    for (; k < n; k++) {
        const struct written *text = &texts->of[kinds[found[k]]];
        if (text->n == 0)
            break;
        struct str name = names[found[k]];
        *to++ = ',';
        to = extender_write_copy_name(to, (struct str){name.p - 1, name.n + 1}, safe_end);
        to = extender_write_copy_over(to, out->p + text->at, text->n);
    }
    out->n = (size_t)(to - out->p);
    return k;
}

/* The refusals of a question. */
struct refusals {
    const struct filter_args *args;
    const unsigned char *offers;
    const unsigned char *kinds;
    filter_reason_fn *reason;
    void *ctx;
};

/* Writes the map of the candidates with an offer from `from` on. */
static void extender_write_refused(struct jwrite *w, const struct refusals *r, enum offer from)
{
    const struct filter_args *args = r->args;
    struct written_texts texts _uninitialized_;
    uint32_t found[GATHER_MAX] _uninitialized_;
    jwrite_object_begin(w);
    memset(&texts, 0, sizeof(texts));
    for (size_t at = extender_write_has_offers(r->offers, args->n, from) ? 0 : args->n;
         at < args->n;) {
        size_t n = extender_write_gather(r->offers, args->n, from, OFFER_UNRESOLVABLE, &at, found);
        for (size_t k = 0; k < n; k++) {
            if (args->plain)
                k += extender_write_again(w->out, args, r->kinds, &texts, found + k, n - k);
            if (k == n)
                break;
            bool common = false;
            struct str text = r->reason(r->ctx, found[k], &common);
            struct written written = extender_write_refusal(w, args, found[k], text);
            if (!common)
                continue;
            texts.of[r->kinds[found[k]]] = written;
            texts.longest = MAX_OF(texts.longest, (size_t)written.n);
        }
    }
    jwrite_object_end(w);
}

/* ---- filter ---- */

static void extender_write_some_names(struct jwrite *w, const struct filter_args *args,
                                      const unsigned char *offers)
{
    uint32_t found[GATHER_MAX] _uninitialized_;
    for (size_t at = 0; at < args->n;) {
        size_t n = extender_write_gather(offers, args->n, OFFER_FITS, OFFER_FITS, &at, found);
        for (size_t k = 0; k < n; k++) {
            struct str name = args->names[found[k]];
            if (args->plain)
                jwrite_raw_short(w, extender_write_quoted(name));
            else
                jwrite_str(w, name);
        }
    }
}

/* Often all candidates are offered: then this is one copy of the received list. */
static void extender_write_names(struct jwrite *w, const struct filter_args *args,
                                 const unsigned char *offers)
{
    if (!args->plain || args->n == 0 ||
        extender_write_has_offers(offers, args->n, OFFER_LEFT_OUT)) {
        extender_write_some_names(w, args, offers);
        return;
    }
    const char *begin = args->names[0].p - 1;
    const struct str *last = &args->names[args->n - 1];
    jwrite_raw(w, (struct str){begin, (size_t)(last->p + last->n + 1 - begin)});
}

static void extender_write_objects(struct jwrite *w, const struct filter_args *args,
                                   const unsigned char *offers)
{
    for (size_t i = 0; i < args->n; i++) {
        if (offers[i] == OFFER_FITS)
            jwrite_raw(w, args->objects[i]);
    }
}

void extender_write_filter(struct buf *out, const struct filter_args *args,
                           const unsigned char *offers, const unsigned char *kinds,
                           filter_reason_fn *reason, void *ctx)
{
    struct refusals r = {
        .args = args, .offers = offers, .kinds = kinds, .reason = reason, .ctx = ctx};
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Nodes"));
    if (args->by_name) {
        jwrite_null(&w);
        jwrite_key(&w, STR("NodeNames"));
        jwrite_array_begin(&w);
        extender_write_names(&w, args, offers);
        jwrite_array_end(&w);
    } else {
        jwrite_object_begin(&w);
        jwrite_key(&w, STR("metadata"));
        jwrite_raw(&w, STR("{}"));
        jwrite_key(&w, STR("items"));
        jwrite_array_begin(&w);
        extender_write_objects(&w, args, offers);
        jwrite_array_end(&w);
        jwrite_object_end(&w);
        jwrite_key(&w, STR("NodeNames"));
        jwrite_null(&w);
    }
    jwrite_key(&w, STR("FailedNodes"));
    extender_write_refused(&w, &r, OFFER_REFUSED);
    jwrite_key(&w, STR("FailedAndUnresolvableNodes"));
    extender_write_refused(&w, &r, OFFER_UNRESOLVABLE);
    jwrite_key(&w, STR("Error"));
    jwrite_str(&w, STR(""));
    jwrite_object_end(&w);
}

/* ---- prioritize and bind ---- */

/* The end of an entry: ,"Score":10} and a comma. */
struct rank_text {
    char bytes[16];
    size_t n;
};

static void extender_write_make_rank(struct rank_text *t, unsigned score)
{
    struct buf text = BUF_ON(t->bytes);
    buf_put(&text, STR(",\"Score\":"));
    buf_put_u64(&text, score);
    buf_put(&text, STR("},"));
    assert(!buf_failed(&text));
    t->n = text.n;
}

/* All entries in one piece. */
static void extender_write_plain_priorities(struct buf *out, const struct filter_args *args,
                                            const unsigned char *scores)
{
    struct rank_text ranks[UCHAR_MAX + 1] _uninitialized_;
    bool made[UCHAR_MAX + 1] = {false};
    const struct str *last = &args->names[args->n - 1];
    size_t names = (size_t)(last->p + last->n - args->names[0].p);
    if (!buf_reserve(out, names + args->n * PRIORITY_BYTES + COPY_STEP))
        return;
    const char *safe_end = extender_write_safe_end(args);
    char *to = out->p + out->n;
    for (size_t i = 0; i < args->n; i++) {
        struct rank_text *rank = &ranks[scores[i]];
        if (!made[scores[i]])
            extender_write_make_rank(rank, scores[i]);
        made[scores[i]] = true;
        memcpy(to, "{\"Host\":", 8);
        to = extender_write_copy_name(to + 8, extender_write_quoted(args->names[i]), safe_end);
        memcpy(to, rank->bytes, sizeof(rank->bytes));
        to += rank->n;
    }
    out->n = (size_t)(to - out->p) - 1; /* without the last comma */
}

void extender_write_priorities(struct buf *out, const struct filter_args *args,
                               const unsigned char *scores)
{
    buf_putc(out, '[');
    if (args->plain && args->n > 0)
        extender_write_plain_priorities(out, args, scores);
    for (size_t i = 0; !args->plain && i < args->n; i++) {
        struct jwrite name;
        if (i > 0)
            buf_putc(out, ',');
        jwrite_init(&name, out);
        buf_put(out, STR("{\"Host\":"));
        jwrite_str(&name, args->names[i]);
        buf_put(out, STR(",\"Score\":"));
        buf_put_u64(out, scores[i]);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

void extender_write_no_priorities(struct buf *out)
{
    buf_put(out, STR("[]"));
}

void extender_write_bind(struct buf *out, struct str error)
{
    struct jwrite w;
    jwrite_init(&w, out);
    jwrite_object_begin(&w);
    jwrite_key(&w, STR("Error"));
    extender_write_reason(&w, error);
    jwrite_object_end(&w);
}
