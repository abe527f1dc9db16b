/*
 * Compares tokens in constant time: the duration depends on the length of the sent token and on the
 * tokens in the file, and not on how many bytes match.
 */
#include "daemon/token.h"

#include "daemon/limit.h"

#define TOKEN_MIN_BYTES 16

static void token_forget(struct buf *text)
{
    if (text->p != NULL)
        explicit_bzero(text->p, text->cap);
    buf_done(text);
}

/* Accepts all printable ASCII characters but space. RFC 6750 allows fewer. */
static bool token_is_token(struct str token)
{
    for (size_t i = 0; i < token.n; i++) {
        unsigned char c = (unsigned char)token.p[i];
        if (c <= 0x20 || c >= 0x7f)
            return false;
    }
    return true;
}

static enum errc token_check(struct str text, struct str file, struct err *reterr)
{
    struct str line;
    size_t n = 0;
    while (text.p != NULL) {
        (void)str_cut(text, '\n', &line, &text);
        line = str_trim(line);
        if (line.n == 0)
            continue;
        n++;
        if (!token_is_token(line))
            return err_set(reterr, ERR_SYNTAX, "%.*s: holds a character that no token has",
                           STR_ARG(file));
        if (line.n < TOKEN_MIN_BYTES)
            return err_set(reterr, ERR_RANGE,
                           "%.*s: a token of %zu characters can be guessed: %d at least",
                           STR_ARG(file), line.n, TOKEN_MIN_BYTES);
    }
    return n > 0 ? OK : err_set(reterr, ERR_SYNTAX, "%.*s: holds no token", STR_ARG(file));
}

static enum errc token_load(struct tokens *t, struct err *reterr)
{
    struct buf text;
    buf_init(&text, LIMIT_TOKEN_BYTES);
    enum errc code = OK;
    if (!buf_reserve(&text, LIMIT_TOKEN_BYTES)) /* so that the buffer never grows and leaves no copy
                                                   of a token in freed memory */
        code = err_set(reterr, ERR_NOMEM, "%.*s: out of memory", STR_ARG(t->file));
    if (code == OK)
        code =
            t->again ? file_read_again(t->file, &text, reterr) : file_read(t->file, &text, reterr);
    if (code == OK)
        code = token_check(buf_str(&text), t->file, reterr);
    if (code != OK) {
        token_forget(&text);
        return code;
    }
    token_forget(&t->text);
    t->text = text;
    return OK;
}

enum errc tokens_open(struct tokens *t, struct str file, bool again, struct err *reterr)
{
    *t = (struct tokens){.file = file, .again = again, .stamp = file_stamp(file)};
    enum errc code = token_load(t, reterr);
    t->again = true;
    if (code != OK)
        (void)err_wrap(reterr, "token-file");
    return code;
}

void tokens_done(struct tokens *t)
{
    token_forget(&t->text);
}

enum tokens_news tokens_refresh(struct tokens *t, struct err *reterr)
{
    struct file_stamp now = file_stamp(t->file); /* before the read: a later change shows */
    if (file_stamp_eq(now, t->stamp))
        return TOKENS_SAME;
    if (token_load(t, reterr) == OK) {
        t->stamp = now;
        return TOKENS_TAKEN;
    }
    bool logged = file_stamp_eq(now, t->refused);
    t->refused = now;
    return logged ? TOKENS_SAME : TOKENS_REFUSED;
}

static bool token_same(struct str sent, struct str token)
{
    unsigned differs = sent.n == token.n ? 0 : 1;
    for (size_t i = 0; i < sent.n; i++)
        differs |= (unsigned char)(sent.p[i] ^ token.p[i % token.n]);
    return differs == 0;
}

bool tokens_admit(const struct tokens *t, struct str authorization)
{
    struct str scheme;
    struct str sent;
    struct str line;
    bool admits = false;
    if (authorization.p == NULL || !str_cut(authorization, ' ', &scheme, &sent) ||
        !str_eq_nocase(scheme, STR("Bearer")))
        return false;
    sent = str_trim(sent);
    for (struct str rest = buf_str(&t->text); rest.p != NULL;) {
        (void)str_cut(rest, '\n', &line, &rest);
        line = str_trim(line);
        if (line.n > 0 && token_same(sent, line))
            admits = true;
    }
    return admits;
}
