/*
 * Accepted input becomes JSON that the strict reader accepts, within the ceiling; a refusal has a
 * text. The lowest bit of the first byte chooses between one document and many.
 */
#include "codec/jread.h"
#include "codec/yaml.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(struct str json)
{
    static struct jread r;
    struct err err = ERR_INIT;
    struct arena arena;
    arena_init(&arena, MIB);
    jread_init(&r, json, &arena);
    jread_skip(&r);
    /* YAML may contain a NUL; cardpack's strings may not. */
    if (jread_finish(&r, &err) != OK && memmem(json.p, json.n, "\\u0000", 6) == NULL)
        abort();
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct buf out;
    if (size == 0)
        return 0;
    bool lines = (data[0] & 1) != 0;
    struct str text = {(const char *)data + 1, size - 1};
    bool copied = str_starts(str_trim(text), STR("{"));
    buf_init(&out, 256 * KIB);
    enum errc code = lines ? yaml_to_json_lines(text, &out, &err) : yaml_to_json(text, &out, &err);
    if ((code == OK) != (err.text[0] == '\0') || out.n > out.max)
        abort();
    for (struct str line, rest = buf_str(&out); code == OK && !copied && rest.n > 0;) {
        (void)str_cut(rest, '\n', &line, &rest);
        check_json(line);
    }
    buf_done(&out);
    return 0;
}
