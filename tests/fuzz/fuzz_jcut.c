/*
 * The cutter's pieces and its result are the same for every way to chunk a body. Valid JSON is cut
 * into valid pieces. The input's first byte chooses the
 * mode ('0' list, '1' lines) and, by its higher bits, the ceiling; the second byte seeds the sizes
 * of the chunks.
 */
#include "rules.h"
#include "json/jcut.h"
#include "json/jread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct buf text; /* the pieces, then the error */
    bool valid;      /* every piece has one value */
    bool json;       /* the body is */
    enum errc code;
};

static bool is_skipped(struct str json)
{
    static struct jread r;
    jread_init(&r, json, NULL);
    jread_skip(&r);
    return jread_finish(&r, NULL) == OK;
}

static enum errc on_piece(void *ctx, enum jcut_piece kind, struct str piece, struct err *reterr)
{
    struct outcome *o = ctx;
    (void)reterr;
    static const char letters[] = {[JCUT_ITEM] = 'i', [JCUT_KIND] = 'k', [JCUT_METADATA] = 'm'};
    buf_putc(&o->text, letters[kind]);
    buf_put(&o->text, piece);
    buf_putc(&o->text, '\n');
    if (!is_skipped(piece) || (o->json && !is_json(piece)))
        o->valid = false;
    return OK;
}

/* A chunk is a block of its own, so that ASan sees an access outside it, or after it is freed. */
static void push_copy(struct jcut *c, struct str chunk)
{
    char *copy = malloc(chunk.n);
    if (copy == NULL)
        abort();
    memcpy(copy, chunk.p, chunk.n);
    enum errc code = jcut_push(c, (struct str){copy, chunk.n}, NULL);
    free(copy);
    if (code != c->err.code)
        abort();
}

/* Sizes are 1 to 16, or large; seed 0: a single chunk. */
static struct outcome cut(enum jcut_mode mode, size_t max_piece, struct str body, unsigned seed)
{
    struct outcome o = {.valid = true, .json = mode == JCUT_LIST && is_json(body)};
    struct err e = ERR_INIT;
    struct jcut c;
    unsigned state = seed;
    buf_init(&o.text, 64 * MIB);
    jcut_init(&c, mode, max_piece, on_piece, &o);
    while (body.n > 0) {
        size_t n = body.n;
        if (seed != 0) {
            state = state * 1103515245U + 12345U;
            n = (state >> 16) % 16 + 1;
            n = (state >> 20) % 8 == 0 ? n * 37 : n;
        }
        n = MIN_OF(n, body.n);
        push_copy(&c, (struct str){body.p, n});
        body = str_skip(body, n);
    }
    o.code = jcut_finish(&c, &e);
    buf_put(&o.text, str_of(e.text));
    jcut_done(&c);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str body = {(const char *)data + 2, size - 2};
    enum jcut_mode mode = (data[0] & 1) != 0 ? JCUT_LINES : JCUT_LIST;
    size_t max_piece = (data[0] & 0x80) != 0 ? (data[0] >> 1) & 0x3f : MIB;
    struct outcome whole = cut(mode, max_piece, body, 0);
    struct outcome parts = cut(mode, max_piece, body, 1U + data[1]);

    check(whole.code == parts.code, "the same code however chunked");
    check(str_eq(buf_str(&whole.text), buf_str(&parts.text)), "the same pieces however chunked");
    if (mode == JCUT_LIST) {
        check(!whole.json || whole.valid, "the pieces of valid JSON are valid");
        check(whole.code != OK || !whole.valid || is_skipped(body),
              "valid pieces and no failure are one value");
    }
    buf_done(&whole.text);
    buf_done(&parts.text);
    return 0;
}
