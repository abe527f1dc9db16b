/*
 * Accepted input becomes JSON, within the ceiling; a refusal has a
 * text. The lowest bit of the first byte chooses between one document and many.
 */
#include "base/limit.h"
#include "rules.h"
#include "json/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        json_decref(answer_reads(line));
    }
    buf_done(&out);
    return 0;
}
