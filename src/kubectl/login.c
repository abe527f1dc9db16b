/*
 * Prepares and runs the credential plugin: its environment, KUBERNETES_EXEC_INFO and standard
 * input; then reads the ExecCredential that it prints.
 */
#include "kubectl/login.h"

#include "codec/exec_credential.h"
#include "codec/limit.h"
#include "kubectl/ask.h"
#include "kubectl/exec.h"

#include <time.h>
#include <unistd.h>

#define EXEC_INFO STR("KUBERNETES_EXEC_INFO")

struct login {
    const struct kubectl_login *way;
    struct arena *arena;
    struct kubeconfig config;
    struct kubeconfig_exec exec;
    bool interactive;
};

static bool is_known(const struct kubeconfig *k)
{
    return k->token.n + k->token_file.n + k->username.n > 0 ||
           k->client_cert_file.n + k->client_cert_data.n > 0;
}

/* The cluster's CA in base64 for the plugin; reads the CA file if the data is not inline. */
static enum errc encode_ca(struct login *l, struct str *ret, struct err *e)
{
    struct buf pem;
    struct buf text;
    enum errc code = OK;
    buf_init(&pem, LIMIT_FILE_BYTES);
    buf_init(&text, 2 * LIMIT_FILE_BYTES);
    if (l->config.ca_data.n > 0)
        buf_put(&pem, l->config.ca_data);
    else if (l->config.ca_file.n > 0)
        code = file_read(l->config.ca_file, &pem, e);
    base64_encode(buf_str(&pem), &text);
    *ret = arena_dup(l->arena, buf_str(&text));
    if (code == OK && (buf_failed(&pem) || buf_failed(&text) || arena_failed(l->arena)))
        code = err_set(e, ERR_NOMEM, "out of memory");
    buf_done(&text);
    buf_done(&pem);
    return code;
}

static enum errc choose_input(struct login *l, struct err *e)
{
    const char *taken = l->way->input_taken;
    bool terminal = isatty(STDIN_FILENO) == 1;
    l->interactive = l->exec.interactive != EXEC_NEVER && taken == NULL && terminal;
    if (l->exec.interactive != EXEC_ALWAYS || l->interactive)
        return OK;
    return err_set(e, ERR_DENIED, "interactiveMode is Always, and standard input is %s",
                   taken != NULL ? taken : "no terminal");
}

/* The kubeconfig's variables, then KUBERNETES_EXEC_INFO with the content that client-go gives. */
static enum errc add_info(struct login *l, struct kubectl_program *p, struct err *e)
{
    size_t n = l->exec.n_env;
    struct str ca = STR_NULL;
    struct buf info;
    enum errc code = l->exec.provide_cluster_info ? encode_ca(l, &ca, e) : OK;
    if (code != OK) {
        (void)err_wrap(e, "certificate-authority");
        return code;
    }
    struct str *names = arena_array(l->arena, n + 1, sizeof(*names));
    struct str *values = arena_array(l->arena, n + 1, sizeof(*values));
    buf_init(&info, 4 * LIMIT_FILE_BYTES);
    exec_credential_write(&l->exec, &l->config, ca, l->interactive, &info);
    struct str text = buf_failed(&info) ? STR_NULL : arena_dup(l->arena, buf_str(&info));
    buf_done(&info);
    if (names == NULL || values == NULL || text.p == NULL)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (n > 0) {
        memcpy(names, l->exec.env_names, n * sizeof(*names));
        memcpy(values, l->exec.env_values, n * sizeof(*values));
    }
    names[n] = EXEC_INFO;
    values[n] = text;
    p->names = names;
    p->values = values;
    p->n_env = n + 1;
    return OK;
}

/* Warns of an expired answer. As in client-go the answer is used: the local clock may be wrong. */
static void tell_expired(const struct login *l, uint32_t expires_s)
{
    time_t now = time(NULL);
    if (expires_s > 0 && now > (time_t)expires_s && !l->way->quiet)
        kubectl_say("user \"%.*s\": exec \"%.*s\": its answer has expired %lld s ago, by "
                    "status.expirationTimestamp",
                    STR_ARG(l->exec.user), STR_ARG(l->exec.command),
                    (long long)(now - (time_t)expires_s));
}

static enum errc ask(struct login *l, struct kube_login *ret, struct str *ret_hint, struct err *e)
{
    struct exec_credential answer;
    struct buf printed;
    struct kubectl_program program = {.command = l->exec.command,
                                      .args = l->exec.args,
                                      .n_args = l->exec.n_args,
                                      .environment = l->way->environment,
                                      .path = l->way->path,
                                      .quiet = l->way->quiet,
                                      .timeout_ms = l->way->timeout_ms};
    enum errc code = choose_input(l, e);
    if (code == OK)
        code = add_info(l, &program, e);
    if (code != OK)
        return code;
    program.input = l->interactive;
    buf_init(&printed, LIMIT_LOGIN_BYTES);
    code = kubectl_exec(&program, l->arena, &printed, e);
    if (code == ERR_NOTFOUND)
        *ret_hint = l->exec.hint;
    if (code == OK) {
        code = exec_credential_read(buf_str(&printed), l->exec.version, l->arena, &answer, e);
        if (code != OK)
            (void)err_wrap(e, "what it prints is no ExecCredential");
    }
    buf_done(&printed);
    if (code != OK)
        return code;
    tell_expired(l, answer.expires_s);
    *ret = (struct kube_login){.token = answer.token, .cert = answer.cert, .key = answer.key};
    return OK;
}

enum errc kubectl_login(const struct kubectl_login *l, struct arena *a,
                        struct kube_api_settings *settings, struct str *ret_hint,
                        struct err *reterr)
{
    struct login login = {.way = l, .arena = a};
    *ret_hint = STR_NULL;
    if (settings->kubeconfig_text.p == NULL)
        return OK;
    enum errc code = kubeconfig_read_merged(settings->kubeconfig_text, settings->kubeconfig, a,
                                            &login.config, &login.exec, reterr);
    if (code != OK || login.exec.user.p == NULL)
        return code;
    struct kube_login *ret = arena_alloc(a, sizeof(*ret));
    if (ret == NULL)
        return err_set(reterr, ERR_NOMEM, "out of memory");
    settings->login = ret;
    if (is_known(&login.config) || !str_starts(login.config.server, STR("https://")))
        return OK;
    code = ask(&login, ret, ret_hint, reterr);
    if (code != OK)
        (void)err_wrap(reterr, "user \"%.*s\": exec \"%.*s\"", STR_ARG(login.exec.user),
                       STR_ARG(login.exec.command));
    return code;
}
