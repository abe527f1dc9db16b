/*
 * For any output of a login program: a credential that can be sent, a certificate with its key, or
 * an error with a text.
 */
#include "codec/exec_credential.h"

#include "base/limit.h"
#include "rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has(struct str s, const char *what)
{
    return s.n > 0 && memmem(s.p, s.n, what, strlen(what)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct err err = ERR_INIT;
    struct arena arena;
    struct exec_credential c;
    arena_init(&arena, MIB);
    enum errc code = exec_credential_read(text, EXEC_VERSION_V1, &arena, &c, &err);
    if (code == OK) {
        check(c.token.n + c.cert.n > 0, "there is something to show");
        check((c.cert.n > 0) == (c.key.n > 0), "a certificate and its key");
        check(c.cert.n == 0 || has(c.cert, "-----BEGIN "), "the certificate is PEM");
        for (size_t i = 0; i < c.token.n; i++)
            check(c.token.p[i] > 0x20 && c.token.p[i] < 0x7f, "the token fits into a header");
    } else {
        check(err.code == code && err.text[0] != '\0', "the error says why");
    }
    arena_done(&arena);
    return 0;
}
