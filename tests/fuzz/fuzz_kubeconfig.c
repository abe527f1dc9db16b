/*
 * Any bytes give a complete kubeconfig, or an error that names the file, within the arena's
 * ceiling. A caller that accepts an exec gets one that can be run, and accepts all that other
 * callers accept; other callers never get an exec.
 */
#include "codec/kubeconfig.h"

#include "base/limit.h"

#include <stdlib.h>

static bool is_argument(struct str s)
{
    return s.p != NULL && (s.n == 0 || memchr(s.p, '\0', s.n) == NULL);
}

static bool is_runnable(const struct kubeconfig_exec *e)
{
    bool good = is_argument(e->command) && e->command.n > 0 && e->user.n > 0 &&
                (str_eq(e->version, EXEC_VERSION_V1) || str_eq(e->version, EXEC_VERSION_V1BETA1));
    for (size_t i = 0; i < e->n_args; i++)
        good = good && is_argument(e->args[i]);
    for (size_t i = 0; i < e->n_env; i++)
        good = good && is_argument(e->env_values[i]) && is_argument(e->env_names[i]) &&
               e->env_names[i].n > 0 && memchr(e->env_names[i].p, '=', e->env_names[i].n) == NULL;
    return good;
}

static void take_exec(struct str text, enum errc without)
{
    struct arena arena;
    struct kubeconfig k;
    struct kubeconfig_exec e;
    arena_init(&arena, MIB);
    enum errc code = kubeconfig_read_merged(text, STR("conf"), &arena, &k, &e, NULL);
    if (code == OK && without != ERR_LIMIT && without != (e.user.p == NULL ? OK : ERR_DENIED))
        abort();
    if (code == OK && e.user.p != NULL && !is_runnable(&e))
        abort();
    if (without == OK && code != OK && code != ERR_SYNTAX && code != ERR_LIMIT)
        abort();
    arena_done(&arena);
}

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
    take_exec(text, code);
    return 0;
}
