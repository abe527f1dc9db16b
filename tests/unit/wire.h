/* Requests that real schedulers sent. */
#pragma once

#include "base/buf.h"
#include "base/limit.h"
#include "unit.h"

#include <stdio.h>

/* Reads a file of tests/golden/wire into a buf that the caller frees. */
static inline void wire_load(struct buf *body, const char *name)
{
    char path[512];
    buf_init(body, MIB);
    (void)snprintf(path, sizeof(path), "%s/tests/golden/wire/%s", getenv("CARDPACK_SOURCE"), name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "can't open %s", path);
    while (buf_reserve(body, 4096)) {
        size_t n = fread(body->p + body->n, 1, 4096, file);
        body->n += n;
        if (n == 0)
            break;
    }
    (void)fclose(file);
}
