/*
 * Turns each source into the text of one kubeconfig, so that one reader applies all rules about
 * servers, certificates and tokens. Only the service account of a pod is left to kube_credentials.
 */
#include "kubectl/config.h"

#include "base/limit.h"
#include "codec/jwrite.h"
#include "codec/kubeconfig_merge.h"
#include "codec/kubeconfig_server.h"

/* Limit of the files in KUBECONFIG. kubectl has none; more files are taken for a mistake. */
#define FILES_MAX 64

static enum errc read_text(struct str path, struct arena *a, struct str *ret, struct err *e)
{
    struct buf text;
    buf_init(&text, LIMIT_FILE_BYTES);
    enum errc code = file_read(path, &text, e);
    if (code != OK) {
        buf_done(&text);
        return code;
    }
    *ret = arena_keep(a, &text);
    return ret->p == NULL ? err_set(e, ERR_NOMEM, "%.*s: out of memory", STR_ARG(path)) : OK;
}

static enum errc merge(const struct kubeconfig_file *files, size_t n, struct str name,
                       struct str context, struct arena *a, struct kube_api_settings *ret,
                       struct err *e)
{
    struct buf text;
    buf_init(&text, LIMIT_FILE_BYTES);
    enum errc code = kubeconfig_merge(files, n, context, a, &text, e);
    ret->kubeconfig = name;
    ret->kubeconfig_text = arena_keep(a, &text);
    if (code == OK && ret->kubeconfig_text.p == NULL)
        code = err_set(e, ERR_LIMIT, "the kubeconfig files are too large");
    return code;
}

/* As in kubectl missing files are left out. It is an error if all files are missing. */
static enum errc find_in_list(struct str list, struct str context, struct arena *a,
                              struct kube_api_settings *ret, struct err *e)
{
    struct kubeconfig_file files[FILES_MAX];
    size_t n = 0;
    for (struct str path, rest = list; rest.p != NULL;) {
        (void)str_cut(rest, ':', &path, &rest);
        if (path.n == 0)
            continue;
        if (n == COUNT_OF(files))
            return err_set(e, ERR_LIMIT, "more than %d kubeconfig files are named", FILES_MAX);
        files[n].path = path;
        enum errc code = read_text(path, a, &files[n].text, e);
        if (code != OK && code != ERR_NOTFOUND)
            return err_wrap(e, "kubeconfig");
        n += code == OK ? 1 : 0;
    }
    if (n == 0)
        return err_set(e, ERR_NOTFOUND, "KUBECONFIG: there is no such file: %.*s", STR_ARG(list));
    return merge(files, n, n == 1 ? files[0].path : list, context, a, ret, e);
}

static enum errc find_in_file(struct str path, struct str context, struct arena *a,
                              struct kube_api_settings *ret, struct err *e)
{
    struct kubeconfig_file file = {.path = path};
    enum errc code = read_text(path, a, &file.text, e);
    return code == OK ? merge(&file, 1, path, context, a, ret, e) : code;
}

static void put_member(struct jwrite *w, const char *key, struct str value)
{
    if (value.n == 0)
        return;
    jwrite_key(w, str_of(key));
    jwrite_str(w, value);
}

/* LIST: [{"name": "here", WHAT: {...}}]; the caller writes the members of WHAT. */
static void entry_begin(struct jwrite *w, const char *list, const char *what)
{
    jwrite_key(w, str_of(list));
    jwrite_array_begin(w);
    jwrite_object_begin(w);
    put_member(w, "name", STR("here"));
    jwrite_key(w, str_of(what));
    jwrite_object_begin(w);
}

static void entry_end(struct jwrite *w)
{
    jwrite_object_end(w);
    jwrite_object_end(w);
    jwrite_array_end(w);
}

static enum errc make(const struct kubectl_args *a, struct arena *arena,
                      struct kube_api_settings *ret, struct err *e)
{
    bool daemon = a->daemon_url.n > 0;
    struct str url = daemon ? a->daemon_url : a->server;
    struct jwrite w;
    struct buf text;
    if (a->token_file.n > 0 && !str_starts(url, STR("https://")))
        return err_set(e, ERR_DENIED, "--token-file: a token is sent over https only, not to %.*s",
                       STR_ARG(url));
    if (kubeconfig_server_check(&url, e) != OK)
        return err_wrap(e, "%s", daemon ? "--daemon-url" : "--server");
    buf_init(&text, LIMIT_FILE_BYTES);
    jwrite_init(&w, &text);
    jwrite_object_begin(&w);
    put_member(&w, "current-context", STR("here"));
    entry_begin(&w, "contexts", "context");
    put_member(&w, "cluster", STR("here"));
    put_member(&w, "user", STR("here"));
    entry_end(&w);
    entry_begin(&w, "clusters", "cluster");
    put_member(&w, "server", url);
    put_member(&w, "certificate-authority", a->certificate_authority);
    entry_end(&w);
    entry_begin(&w, "users", "user");
    put_member(&w, "tokenFile", a->token_file);
    entry_end(&w);
    jwrite_object_end(&w);
    ret->kubeconfig = daemon ? STR("--daemon-url") : STR("--server");
    ret->kubeconfig_text = arena_keep(arena, &text);
    return ret->kubeconfig_text.p == NULL ? err_set(e, ERR_LIMIT, "the command line is too large")
                                          : OK;
}

static struct str home_file(struct str home, struct arena *a)
{
    struct buf path;
    buf_init(&path, LIMIT_FILE_BYTES);
    buf_put(&path, home);
    buf_put(&path, STR("/.kube/config"));
    return arena_keep(a, &path);
}

enum errc kubectl_config_find(const struct kubectl_args *a, const struct kubectl_env *env,
                              struct arena *arena, struct kube_api_settings *ret,
                              struct err *reterr)
{
    struct err missing = ERR_INIT;
    *ret = (struct kube_api_settings){.service_host = env->service_host,
                                      .service_port = env->service_port,
                                      .service_account = env->service_account,
                                      .user_agent = STR("kubectl-cardpack/" CARDPACK_VERSION)};
    if (a->server.n > 0 || a->daemon_url.n > 0)
        return make(a, arena, ret, reterr);
    if (a->kubeconfig.n > 0)
        return find_in_file(a->kubeconfig, a->context, arena, ret, reterr);
    if (env->kubeconfig.n > 0)
        return find_in_list(env->kubeconfig, a->context, arena, ret, reterr);
    enum errc code = ERR_NOTFOUND;
    if (env->home.n > 0)
        code = find_in_file(home_file(env->home, arena), a->context, arena, ret, &missing);
    if (code != ERR_NOTFOUND) {
        if (reterr != NULL && code != OK)
            *reterr = missing;
        return code;
    }
    if (a->context.n > 0)
        return err_set(reterr, ERR_NOTFOUND, "--context \"%.*s\": there is no kubeconfig",
                       STR_ARG(a->context));
    if (env->service_host.n > 0 && env->service_port.n > 0)
        return OK;
    return err_set(reterr, ERR_NOTFOUND,
                   "no kubeconfig: --kubeconfig and KUBECONFIG are not set, there is no "
                   "~/.kube/config, and this is no pod");
}
