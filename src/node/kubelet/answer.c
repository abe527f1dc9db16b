/* Environment, device nodes and mounts of a container. */
#include "node/kubelet/answer.h"

#include "base/file.h"
#include "core/dialect/gpushare.h"
#include "core/request/request.h"
#include "gpu/limit.h"
#include "kubelet/cdi.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define ENV_VISIBLE       STR("NVIDIA_VISIBLE_DEVICES")
#define ENV_CONTAINER     STR("ALIYUN_COM_GPU_MEM_CONTAINER")
#define ENV_CGPU_DISABLE  STR("CGPU_DISABLE")
#define ENV_LIMIT_REQUEST STR("NVIDIA_GPU_MEMORY_REQUEST")
#define ENV_LIMIT         STR("NVIDIA_GPU_MEMORY_LIMIT")

#define ENV_MPS_PIPE    STR("CUDA_MPS_PIPE_DIRECTORY")
#define ENV_MPS_MEMORY  STR("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")
#define ENV_MPS_THREADS STR("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")

#define MAX_ENVS          12
#define MAX_MOUNTS        2
#define NODES_OF_ALL      3         /* /dev/nvidiactl, ... */
#define NODES_OF_CARD     3         /* the card, and two capabilities of a slice */
#define TEXT_BYTES        (MIB / 4) /* UUIDs of 1024 cards and paths of their nodes */
#define ARENA_BYTES       MIB
#define DEVICES_BYTES_MAX MIB /* of /proc/devices */

struct answer {
    struct arena *arena;
    struct plugin_pair envs[MAX_ENVS];
    size_t n_envs;
    struct plugin_node *nodes;
    size_t n_nodes;
    struct plugin_mount mounts[MAX_MOUNTS];
    size_t n_mounts;
};

static void answer_put_env(struct answer *r, struct str name, struct str value)
{
    assert(r->n_envs < MAX_ENVS);
    r->envs[r->n_envs++] = (struct plugin_pair){name, value};
}

static void answer_put_number(struct answer *r, struct str name, int64_t value)
{
    char text[24];
    struct buf b = BUF_ON(text);
    buf_put_i64(&b, value);
    answer_put_env(r, name, arena_dup(r->arena, buf_str(&b)));
}

/* The cards with commas, by UUID or by index. */
static struct str answer_join(struct answer *r, const struct answer_want *w, bool by_uuid)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES);
    for (size_t i = 0; i < w->n_cards; i++) {
        if (i > 0)
            buf_putc(&b, ',');
        if (by_uuid)
            buf_put(&b, w->cards[i]->uuid);
        else
            buf_put_u64(&b, w->cards[i]->index);
    }
    return arena_keep(r->arena, &b);
}

/* MiB of each card, rounded down. */
static int64_t answer_limit_mib(const struct answer_settings *s, const struct answer_want *w)
{
    int64_t bytes;
    if (__builtin_mul_overflow(w->limit_units, s->unit.bytes, &bytes))
        bytes = INT64_MAX;
    return bytes / (int64_t)MIB;
}

static bool answer_has_slice(const struct answer_want *w)
{
    for (size_t i = 0; i < w->n_cards; i++) {
        if (w->cards[i]->mig)
            return true;
    }
    return false;
}

/* A path below the folder of MPS. */
static struct str answer_mps_path(struct answer *r, struct str dir, struct str uuid,
                                  const char *end)
{
    char path[PATH_MAX];
    struct buf b = BUF_ON(path);
    buf_printf(&b, "%.*s/%.*s%s", STR_ARG(dir), STR_ARG(uuid), end);
    return buf_failed(&b) ? STR_NULL : arena_dup(r->arena, buf_str(&b));
}

static void answer_put_mps(struct answer *r, const struct answer_settings *s,
                           const struct answer_want *w)
{
    char text[32];
    struct buf limit = BUF_ON(text);
    struct str pipe = answer_mps_path(r, s->mps_dir, w->cards[0]->uuid, "");
    struct str shm = answer_mps_path(r, s->mps_dir, w->cards[0]->uuid, ".shm");
    buf_printf(&limit, "0=%lldM", (long long)answer_limit_mib(s, w));
    answer_put_env(r, ENV_MPS_PIPE, pipe);
    answer_put_env(r, ENV_MPS_MEMORY, arena_dup(r->arena, buf_str(&limit)));
    if (w->cores > 0 && w->cores < REQUEST_CORES_MAX)
        answer_put_number(r, ENV_MPS_THREADS, w->cores);
    r->mounts[r->n_mounts++] = (struct plugin_mount){.container_path = pipe, .host_path = pipe};
    r->mounts[r->n_mounts++] =
        (struct plugin_mount){.container_path = STR("/dev/shm"), .host_path = shm};
}

static void answer_put_envs(struct answer *r, const struct answer_settings *s,
                            const struct answer_want *w)
{
    answer_put_env(r, ENV_VISIBLE, answer_join(r, w, true));
    answer_put_env(r, GPUSHARE_ANNOTATION_IDX, answer_join(r, w, false));
    answer_put_number(r, GPUSHARE_ANNOTATION_POD, w->pod_units);
    answer_put_number(r, ENV_CONTAINER, w->container_units);
    answer_put_number(r, GPUSHARE_ANNOTATION_DEV, w->dev_total[0]);
    if (s->disable_cgpu)
        answer_put_env(r, ENV_CGPU_DISABLE, STR("true"));
    if (s->limits && !answer_has_slice(w)) {
        int64_t mib = answer_limit_mib(s, w);
        answer_put_number(r, ENV_LIMIT_REQUEST, 0);
        answer_put_number(r, ENV_LIMIT, mib);
    }
    if (s->mps_dir.p != NULL && w->n_cards == 1 && !answer_has_slice(w))
        answer_put_mps(r, s, w);
}

/* ---- device nodes ---- */

/* Once: slices of one card share its node. */
static void answer_put_node(struct answer *r, struct str path)
{
    for (size_t i = 0; i < r->n_nodes; i++) {
        if (str_eq(r->nodes[i].host_path, path))
            return;
    }
    struct str kept = arena_dup(r->arena, path);
    r->nodes[r->n_nodes++] = (struct plugin_node){kept, kept, STR("rw")};
}

static bool answer_sees(const struct answer_settings *s, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", s->dev == NULL ? "/dev" : s->dev, name);
    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

/* NVIDIA's runtime gives a container without the capability `compute`, as ours is, no
 * /dev/nvidia-uvm: the kernel says whether the host has one. */
static bool answer_has_uvm(const struct answer_settings *s)
{
    char path[PATH_MAX];
    struct buf devices;
    bool found = answer_sees(s, "nvidia-uvm");
    (void)snprintf(path, sizeof(path), "%s/devices", s->proc == NULL ? "/proc" : s->proc);
    buf_init(&devices, DEVICES_BYTES_MAX);
    if (!found && file_read_again(str_of(path), &devices, NULL) == OK) {
        for (struct str line, rest = buf_str(&devices); rest.p != NULL && !found;) {
            (void)str_cut(rest, '\n', &line, &rest);
            found = str_ends(str_trim(line), STR(" nvidia-uvm"));
        }
    }
    buf_done(&devices);
    return found;
}

/* Nodes of all cards. A container with a node that the host lacks does not start, and CUDA does not
 * start without the first two. */
static enum errc answer_put_common(struct answer *r, const struct answer_settings *s,
                                   struct err *reterr)
{
    if (!answer_has_uvm(s))
        return err_set(reterr, ERR_UNAVAILABLE,
                       "device-nodes is on, and the node has no /dev/nvidia-uvm, which CUDA needs: "
                       "run nvidia-modprobe -c 0 -u there");
    answer_put_node(r, STR("/dev/nvidiactl"));
    answer_put_node(r, STR("/dev/nvidia-uvm"));
    if (answer_sees(s, "nvidia-uvm-tools"))
        answer_put_node(r, STR("/dev/nvidia-uvm-tools"));
    return OK;
}

static void answer_put_numbered(struct answer *r, const char *before, uint32_t number)
{
    char path[64];
    struct buf b = BUF_ON(path);
    buf_put(&b, str_of(before));
    buf_put_u64(&b, number);
    answer_put_node(r, buf_str(&b));
}

static enum errc answer_put_nodes(struct answer *r, const struct answer_settings *s,
                                  const struct answer_want *w, struct err *reterr)
{
    r->nodes = arena_array(r->arena, NODES_OF_ALL + w->n_cards * NODES_OF_CARD, sizeof(*r->nodes));
    if (r->nodes == NULL)
        return OK; /* the arena knows */
    enum errc code = answer_put_common(r, s, reterr);
    if (code != OK)
        return code;
    for (size_t i = 0; i < w->n_cards; i++) {
        const struct gpu_card *c = w->cards[i];
        if (!c->seen)
            return err_set(reterr, ERR_UNAVAILABLE,
                           "the device node of card %" PRIu32
                           " is not known: NVML has not listed %.*s yet",
                           c->index, STR_ARG(c->uuid));
        answer_put_numbered(r, "/dev/nvidia", c->minor);
        if (c->mig) {
            answer_put_numbered(r, "/dev/nvidia-caps/nvidia-cap", c->gpu_cap);
            answer_put_numbered(r, "/dev/nvidia-caps/nvidia-cap", c->compute_cap);
        }
    }
    return OK;
}

/* The variables, nodes and mounts; `texts`: also each variable as "NAME=value". */
static enum errc answer_collect(struct answer *r, const struct answer_settings *s,
                                const struct answer_want *w, struct str *texts, struct err *reterr)
{
    assert(w->n_cards > 0 && w->n_cards <= LIMIT_GPU_CARDS && s->unit.bytes > 0);
    answer_put_envs(r, s, w);
    for (size_t i = 0; i < r->n_envs && texts != NULL; i++) {
        struct buf b;
        buf_init(&b, TEXT_BYTES);
        buf_put(&b, r->envs[i].name);
        buf_putc(&b, '=');
        buf_put(&b, r->envs[i].value);
        texts[i] = arena_keep(r->arena, &b);
    }
    enum errc code = s->device_nodes ? answer_put_nodes(r, s, w, reterr) : OK;
    if (code == OK && arena_failed(r->arena))
        code = err_set(reterr, arena_fault(r->arena), "no memory for a container's cards");
    return code;
}

enum errc answer_write(struct buf *out, const struct answer_settings *s,
                       const struct answer_want *w, struct err *reterr)
{
    struct arena a;
    struct answer r = {.arena = &a};
    arena_init(&a, ARENA_BYTES);
    enum errc code = answer_collect(&r, s, w, NULL, reterr);
    if (code == OK) {
        struct allocate_grant g = {.envs = r.envs,
                                   .n_envs = r.n_envs,
                                   .mounts = r.mounts,
                                   .n_mounts = r.n_mounts,
                                   .nodes = r.nodes,
                                   .n_nodes = r.n_nodes};
        allocate_response_write(out, &g, 1);
    }
    arena_done(&a);
    return code;
}

enum errc answer_write_spec(struct buf *out, const struct answer_settings *s,
                            const struct answer_want *w, struct str id, struct err *reterr)
{
    struct arena a;
    struct str texts[MAX_ENVS];
    struct answer r = {.arena = &a};
    arena_init(&a, ARENA_BYTES);
    enum errc code = answer_collect(&r, s, w, texts, reterr);
    if (code == OK) {
        struct cdi_device d = {.kind = STR(ANSWER_CDI_KIND),
                               .name = id,
                               .envs = texts,
                               .n_envs = r.n_envs,
                               .nodes = r.nodes,
                               .n_nodes = r.n_nodes,
                               .mounts = r.mounts,
                               .n_mounts = r.n_mounts};
        cdi_write(out, &d);
    }
    arena_done(&a);
    return code;
}

/* What follows "/dev/nvidia" in the path of a card's or a slice's node; empty: it is of all cards.
 */
static struct str answer_card_node(struct str path)
{
    static const struct str before = STR("/dev/nvidia");
    struct str rest = str_starts(path, before) ? str_skip(path, before.n) : STR("");
    bool card = rest.n > 0 && rest.p[0] >= '0' && rest.p[0] <= '9';
    return card || str_starts(rest, STR("-caps/")) ? rest : STR("");
}

static bool answer_has_node(struct str node, const struct gpu_card *c)
{
    char text[64];
    const uint32_t caps[] = {c->gpu_cap, c->compute_cap};
    (void)snprintf(text, sizeof(text), "%" PRIu32, c->minor);
    bool found = str_eq(node, str_of(text));
    for (size_t i = 0; c->mig && !found && i < COUNT_OF(caps); i++) {
        (void)snprintf(text, sizeof(text), "-caps/nvidia-cap%" PRIu32, caps[i]);
        found = str_eq(node, str_of(text));
    }
    return found;
}

const char *answer_find_stale(struct str kept, const struct gpu_card *const *cards, size_t n,
                              struct str mps_dir)
{
    char text[PATH_MAX];
    struct buf pipe = BUF_ON(text);
    struct str path;
    for (size_t i = 0; (path = allocate_answer_node(kept, i)).p != NULL; i++) {
        struct str node = answer_card_node(path);
        bool found = node.n == 0;
        for (size_t k = 0; k < n && !found; k++)
            found = answer_has_node(node, cards[k]);
        if (!found)
            return "it would get a device node that is another card's by now";
    }
    if (mps_dir.p == NULL)
        return NULL;
    buf_printf(&pipe, "%.*s/%.*s", STR_ARG(mps_dir), STR_ARG(cards[0]->uuid));
    if (allocate_answer_env(kept, ENV_MPS_PIPE, &path, NULL) == OK && str_eq(path, buf_str(&pipe)))
        return NULL;
    return "it got its cards before MPS served them there, and would run without a limit";
}

void answer_write_late(struct buf *out, struct str id)
{
    char text[sizeof(ANSWER_CDI_KIND) + ANSWER_ID_MAX + 1];
    struct buf b = BUF_ON(text);
    buf_put(&b, STR(ANSWER_CDI_KIND "="));
    buf_put(&b, id);
    assert(!buf_failed(&b));
    struct str name = buf_str(&b);
    struct plugin_pair env = {ENV_VISIBLE, STR("void")};
    struct allocate_grant g = {.envs = &env, .n_envs = 1, .cdi = &name, .n_cdi = 1};
    allocate_response_write(out, &g, 1);
}
