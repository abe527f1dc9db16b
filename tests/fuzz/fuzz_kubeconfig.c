/* Any bytes give a complete kubeconfig, or an error that names the file, within the arena's
 * ceiling. */
#include "objects/kubeconfig.h"

#include "base/limit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct err err = ERR_INIT;
    struct arena arena;
    struct kubeconfig k;
    arena_init(&arena, MIB);
    enum errc code = kubeconfig_read(text, STR("dir/conf"), &arena, &k, &err);
    if (code != OK && !str_starts(str_of(err.text), STR("kubeconfig \"dir/conf\": ")))
        abort();
    if (code == OK && !str_starts(k.server, STR("https://")) &&
        !str_starts(k.server, STR("http://127.")) && !str_starts(k.server, STR("http://[::1]")) &&
        !str_starts(k.server, STR("http://l")) && !str_starts(k.server, STR("http://L")))
        abort();
    if (code == OK && k.client_cert_file.n + k.client_cert_data.n > 0 &&
        k.client_key_file.n + k.client_key_data.n == 0)
        abort();
    arena_done(&arena);
    return 0;
}
