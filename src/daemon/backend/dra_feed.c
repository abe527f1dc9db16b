/*
 * Runs one reflector for each resource. At first it asks for the group itself, which each client
 * may read: an API server checks rights before it looks whether it serves a path, so one without
 * DRA would deny the lists. If the group is absent the reflectors end, and it asks again later: a
 * reflector by itself would ask every half minute.
 *
 * A 404 may come from a load balancer, from an API server that is starting, or from the old one of
 * two versions. So a list's 404 only makes it ask for the group, and after a complete list the
 * group is absent only if it is twice, a minute apart, and no list or watch is served meanwhile.
 */
#include "daemon/backend/dra_feed.h"

#include "base/limit.h"
#include "base/log.h"
#include "base/mem.h"

#define WATCH_QUIET_MS 180000
#define AGAIN_MS       60000
#define PROBE_MS       10000

struct dra_part {
    struct dra_feed *feed;
    enum dra_feed_kind kind;
    struct reflector *reflector;
    struct ingest_loss loss;
    bool logged;       /* the log says why it can't be read */
    struct err denied; /* the last 403; code OK: none since the last list */
};

struct dra_feed {
    struct dra_feed_settings s;
    struct dra_part parts[DRA_FEED_KINDS];
    struct kube_call probe; /* of the group */
    bool probing;
    bool looking;        /* the probe decides whether the reflectors begin */
    bool doubted;        /* the last probe got a 404, and `again` asks a second time */
    bool told_absent;    /* the log says that the API server does not serve them */
    struct timer again;  /* asks for the group, and begins the reflectors if it is there */
    struct timer relist; /* armed when the cache lacks an object */
};

static const struct {
    struct str resource;
    struct str path;
    struct str list;
    struct str missing;
    enum cache_kind kind;
    void (*ingest)(struct ingest *in, struct str json, bool gone);
} table[DRA_FEED_KINDS] = {
    [DRA_FEED_CLAIMS] = {STR("resourceclaims"), STR("/apis/resource.k8s.io/v1/resourceclaims"),
                         STR("ResourceClaimList"),
                         STR("the first list of ResourceClaims is not in yet"), CACHE_CLAIMS,
                         ingest_claim},
    [DRA_FEED_SLICES] = {STR("resourceslices"), STR("/apis/resource.k8s.io/v1/resourceslices"),
                         STR("ResourceSliceList"),
                         STR("the first list of ResourceSlices is not in yet"), CACHE_SLICES,
                         ingest_slice},
    [DRA_FEED_CLASSES] = {STR("deviceclasses"), STR("/apis/resource.k8s.io/v1/deviceclasses"),
                          STR("DeviceClassList"),
                          STR("the first list of DeviceClasses is not in yet"), CACHE_CLASSES,
                          ingest_class},
};

struct str dra_feed_resource(enum dra_feed_kind kind)
{
    return table[kind].resource;
}

static void dra_feed_note_loss(struct dra_part *p)
{
    struct dra_feed *f = p->feed;
    uint64_t again_ms = ingest_note_loss(f->s.ingest, table[p->kind].kind, &p->loss);
    if (again_ms > 0 && !timer_armed(&f->relist))
        timer_arm(f->s.loop, &f->relist, again_ms);
}

static void dra_feed_relist(struct timer *t)
{
    struct dra_feed *f = CONTAINER_OF(t, struct dra_feed, relist);
    for (size_t i = 0; i < COUNT_OF(f->parts); i++) {
        if (f->parts[i].reflector != NULL)
            reflector_relist(f->parts[i].reflector);
    }
}

static void dra_feed_on_begin(void *ctx)
{
    struct dra_part *p = ctx;
    p->loss.in_list = false;
    ingest_list_begin(p->feed->s.ingest, table[p->kind].kind);
    dra_feed_note_loss(p);
}

static void dra_feed_on_change(void *ctx, enum reflector_change change, struct str object)
{
    struct dra_part *p = ctx;
    table[p->kind].ingest(p->feed->s.ingest, object, change == REFLECTOR_GONE);
    dra_feed_note_loss(p);
}

static void dra_feed_on_end(void *ctx)
{
    struct dra_part *p = ctx;
    (void)ingest_list_end(p->feed->s.ingest, table[p->kind].kind);
    dra_feed_note_loss(p);
    p->loss.lacks = p->loss.in_list;
    p->logged = false;
    p->denied.code = OK;
    p->feed->told_absent = p->feed->doubted = false;
    p->feed->s.counts->states[p->kind] = DRA_FEED_SYNCED;
}

static void dra_feed_tell_denied(struct dra_part *p)
{
    const char *must = p->feed->s.dra == CONFIG_DRA_ON ? "nothing is decided" : "cards are shared";
    p->logged = true;
    log_warn("no right to read DRA's objects: cards that DRA gives out are not known",
             kv_str("resource", table[p->kind].resource), kv_cstr("group", "resource.k8s.io"),
             kv_cstr("verbs", "list, watch"), kv_cstr("then", must),
             kv_cstr("error", p->denied.text));
}

/* Once in a row of failures. */
static void dra_feed_tell_absent(struct dra_feed *f)
{
    if (f->told_absent)
        return;
    f->told_absent = true;
    if (f->s.dra == CONFIG_DRA_ON)
        log_warn("the API server does not serve resource.k8s.io/v1, and dra is on");
    else
        log_debug("the API server does not serve resource.k8s.io/v1");
}

static enum errc dra_feed_begin(struct dra_feed *f, struct err *reterr);

static void dra_feed_stop(struct dra_feed *f)
{
    for (size_t i = 0; i < COUNT_OF(f->parts); i++)
        f->parts[i].reflector = reflector_free(f->parts[i].reflector);
}

/* The probe got a 404. */
static bool dra_feed_is_absent(struct dra_feed *f)
{
    bool known = false;
    bool refused = true;
    for (size_t i = 0; i < COUNT_OF(f->parts); i++) {
        const struct reflector *r = f->parts[i].reflector;
        known |= f->s.counts->feeds[i].synced;
        refused &= r == NULL || reflector_absent(r) || reflector_denied(r);
    }
    return !known || (f->doubted && refused);
}

/* The objects in the cache stay: cards that are in use must not be set free. An API server that was
 * set back to a version without DRA is a case for a restart. */
static void dra_feed_end(struct dra_feed *f)
{
    dra_feed_stop(f);
    for (size_t i = 0; i < COUNT_OF(f->parts); i++)
        f->s.counts->states[i] = DRA_FEED_ABSENT;
    dra_feed_tell_absent(f);
}

static void dra_feed_probed(struct http_call *http)
{
    struct dra_feed *f = CONTAINER_OF(http, struct dra_feed, probe.http);
    bool missed = http->outcome == HTTP_ANSWERED && http->status == 404;
    bool served = http->outcome == HTTP_ANSWERED && http->status == 200;
    kube_call_done(&f->probe);
    f->probing = false;
    if (missed && dra_feed_is_absent(f))
        dra_feed_end(f);
    if (missed || (f->looking && dra_feed_begin(f, NULL) != OK))
        timer_arm(f->s.loop, &f->again, f->s.again_ms);
    f->doubted = missed;
    f->looking = false;
    for (size_t i = 0; !missed && i < COUNT_OF(f->parts); i++) {
        if (served && f->s.counts->states[i] == DRA_FEED_ABSENT)
            f->s.counts->states[i] = DRA_FEED_WAITS;
        if (f->parts[i].denied.code != OK && !f->parts[i].logged)
            dra_feed_tell_denied(&f->parts[i]);
    }
}

static void dra_feed_probe(struct dra_feed *f)
{
    if (f->probing || timer_armed(&f->again))
        return;
    f->probing = true;
    f->probe.http = (struct http_call){.timeout_ms = PROBE_MS, .on_done = dra_feed_probed};
    kube_call_start(f->s.api, &f->probe, "GET", STR("/apis/resource.k8s.io/v1"));
}

static void dra_feed_on_note(void *ctx, const char *what, const struct err *err,
                             uint64_t retry_in_ms)
{
    struct dra_part *p = ctx;
    struct dra_feed *f = p->feed;
    bool failed = err != NULL && err->code != OK;
    bool absent = failed && err->code == ERR_NOTFOUND && reflector_absent(p->reflector);
    bool denied = failed && !absent && reflector_denied(p->reflector);
    if (absent) {
        f->s.counts->states[p->kind] = DRA_FEED_WAITS;
        dra_feed_probe(f);
    }
    if (denied) {
        f->s.counts->states[p->kind] = DRA_FEED_DENIED;
        p->denied = *err;
        if (!p->logged)
            dra_feed_probe(f);
    }
    if (!failed || denied)
        log_debug(what, kv_str("of", table[p->kind].resource),
                  kv_cstr("error", failed ? err->text : ""));
    else
        log_warn(what, kv_str("of", table[p->kind].resource), kv_cstr("error", err->text),
                 kv_uint("retry_in_ms", retry_in_ms));
}

static enum errc dra_feed_begin(struct dra_feed *f, struct err *reterr)
{
    for (size_t i = 0; i < COUNT_OF(f->parts); i++) {
        struct dra_part *p = &f->parts[i];
        const struct reflector_settings settings = {.path = table[i].path,
                                                    .kind = table[i].list,
                                                    .page_size = f->s.page_size,
                                                    .quiet_ms = WATCH_QUIET_MS,
                                                    .backoff = f->s.backoff,
                                                    .counts = &f->s.counts->feeds[i]};
        const struct reflector_sink sink = {.begin = dra_feed_on_begin,
                                            .change = dra_feed_on_change,
                                            .end = dra_feed_on_end,
                                            .note = dra_feed_on_note,
                                            .ctx = p};
        p->feed = f;
        p->kind = (enum dra_feed_kind)i;
        enum errc code = p->reflector != NULL ? OK
                                              : reflector_new(f->s.loop, f->s.api, &settings, &sink,
                                                              &p->reflector, reterr);
        if (code != OK)
            return code;
    }
    return OK;
}

static void dra_feed_look(struct dra_feed *f)
{
    f->looking = true;
    dra_feed_probe(f);
}

static void dra_feed_look_again(struct timer *t)
{
    dra_feed_look(CONTAINER_OF(t, struct dra_feed, again));
}

enum errc dra_feed_new(const struct dra_feed_settings *s, struct dra_feed **ret, struct err *reterr)
{
    struct dra_feed *f = mem_alloc(sizeof(*f));
    assert(s->dra != CONFIG_DRA_OFF);
    if (f == NULL)
        return err_set(reterr, ERR_NOMEM, "no memory for the feed of DRA's objects");
    *f = (struct dra_feed){
        .s = *s, .again = {.fire = dra_feed_look_again}, .relist = {.fire = dra_feed_relist}};
    if (f->s.again_ms == 0)
        f->s.again_ms = AGAIN_MS;
    dra_feed_look(f);
    *ret = f;
    return OK;
}

struct dra_feed *dra_feed_free(struct dra_feed *f)
{
    if (f == NULL)
        return NULL;
    dra_feed_stop(f);
    kube_call_cancel(&f->probe);
    kube_call_done(&f->probe);
    timer_cancel(&f->again);
    timer_cancel(&f->relist);
    mem_free(f);
    return NULL;
}

struct str dra_feed_missing(const struct dra_feed *f)
{
    for (size_t i = 0; f != NULL && i < COUNT_OF(f->parts); i++) {
        enum dra_feed_state state = f->s.counts->states[i];
        if (state == DRA_FEED_WAITS)
            return f->s.counts->feeds[i].synced
                       ? STR("resource.k8s.io/v1 was served before, and a list got a 404 since")
                       : table[i].missing;
        if (state == DRA_FEED_ABSENT && f->s.dra == CONFIG_DRA_ON)
            return STR("dra is on, and the API server does not serve resource.k8s.io/v1");
        if (state == DRA_FEED_DENIED && f->s.dra == CONFIG_DRA_ON)
            return STR("dra is on, and cardpack has no right to read DRA's objects");
    }
    return STR("");
}

struct str dra_feed_lost(const struct dra_feed *f)
{
    for (size_t i = 0; f != NULL && i < COUNT_OF(f->parts); i++) {
        if (f->parts[i].loss.lacks)
            return f->parts[i].loss.torn
                       ? STR("an object of resource.k8s.io/v1 can't be read: the log names it")
                       : STR("memory was short, and the API server's objects are read again");
    }
    return STR("");
}
