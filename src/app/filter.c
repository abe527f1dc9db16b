/*
 * Filter is pure: it reads the cache and promises nothing; bind reserves. Every node that is left
 * out is named with its reason, because schedulers since 1.31 take a node without one for hopeless.
 */
#include "extender.h"
#include "log.h"
#include "policy.h"
#include "service.h"

struct filter {
    const struct service *service;
    const struct filter_args *args;
    struct request request;
    struct err bad_request;  /* code OK: the request can be read */
    unsigned char *verdicts; /* enum verdict of each candidate; in the request's arena */
    struct buf scratch;      /* of the last reason */
    char scratch_bytes[512];
};

static struct filter_answer answer(void *ctx, size_t i)
{
    struct filter *f = ctx;
    enum verdict v = (enum verdict)f->verdicts[i];
    if (v == VERDICT_FITS)
        return (struct filter_answer){.fits = true};
    struct filter_answer a = {.unresolvable = verdict_unresolvable(v)};
    a.reason = v == VERDICT_BAD_REQUEST
                   ? str_of(f->bad_request.text)
                   : verdict_reason(v, f->args->candidates[i].name, &f->scratch);
    return a;
}

/* How many candidates got each verdict, as one line for a person. */
static void report(const struct filter *f)
{
    unsigned counts[VERDICT_COUNT] = {0};
    char bytes[512];
    struct buf text = {.p = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) - 1};
    for (size_t i = 0; i < f->args->n; i++)
        counts[f->verdicts[i]]++;
    for (unsigned v = VERDICT_FITS + 1; v < VERDICT_COUNT; v++) {
        if (counts[v] > 0)
            buf_printf(&text, "%s%s: %u", text.n == 0 ? "" : ", ", verdict_name((enum verdict)v),
                       counts[v]);
    }
    if (counts[VERDICT_FITS] == 0)
        log_info("pod fits on no node", kv_str("namespace", f->args->pod.namespace),
                 kv_str("pod", f->args->pod.name), kv_int("mem", f->request.mem),
                 kv_uint("nodes", f->args->n), kv_str("because", buf_str(&text)),
                 kv_cstr("error", f->bad_request.text));
    else
        log_debug("filtered", kv_str("namespace", f->args->pod.namespace),
                  kv_str("pod", f->args->pod.name), kv_int("mem", f->request.mem),
                  kv_uint("nodes", f->args->n), kv_uint("fit", counts[VERDICT_FITS]));
}

/*
 * A pod that holds a card already is asked about again when its Binding is in doubt, or when the
 * scheduler (1.20 does) requeues a pod that was bound. It has its place: that node, where a bind
 * will succeed or settle it, and no other.
 */
static void judge(struct filter *f)
{
    const struct cache *cache = &f->service->cache;
    bool readable = request_read(&f->args->pod, &f->request, &f->bad_request) == OK;
    const struct pod *p = cache_pod(cache, f->args->pod.uid);
    const struct node *held = p != NULL && pod_holds(p) ? p->node : NULL;
    for (size_t i = 0; i < f->args->n; i++) {
        const struct node *n = cache_node(cache, f->args->candidates[i].name);
        enum verdict v = VERDICT_BAD_REQUEST;
        if (readable && held != NULL && n != NULL)
            v = n == held ? VERDICT_FITS : VERDICT_HELD_ELSEWHERE;
        else if (readable)
            v = policy_fit(n, &f->request);
        f->verdicts[i] = (unsigned char)v;
    }
}

static void fail(struct http_request *r, struct str error)
{
    extender_write_filter_error(r->answer, error);
    http_request_respond(r, 200, "application/json");
}

void filter_handle(struct service *s, struct http_request *r)
{
    struct filter_args args;
    struct str missing;
    struct err e = ERR_INIT;
    if (extender_read_filter(r->body, r->arena, &args, &e) != OK) {
        log_warn("bad filter request", kv_str("peer", r->peer), kv_cstr("error", e.text));
        fail(r, str_of(e.text));
        return;
    }
    if (!service_ready(s, &missing)) {
        (void)err_set(&e, ERR_UNAVAILABLE, "cardpack is not ready: %.*s", STR_ARG(missing));
        fail(r, str_of(e.text));
        return;
    }
    struct filter f = {.service = s, .args = &args};
    f.scratch = (struct buf){
        .p = f.scratch_bytes, .cap = sizeof(f.scratch_bytes), .max = sizeof(f.scratch_bytes) - 1};
    f.verdicts = arena_alloc(r->arena, args.n);
    if (f.verdicts == NULL) {
        fail(r, STR("cardpack is out of memory"));
        return;
    }
    judge(&f);
    report(&f);
    extender_write_filter(r->answer, &args, answer, &f);
    http_request_respond(r, 200, "application/json");
}
