/*
 * Reads the cards by NVML's index, which is good for one scan only, and what NVML does not report
 * from the kernel's files: the NUMA node of a card (NVML's own function returns the node of the
 * card's memory, which is another thing), and the device nodes of a slice.
 */
#include "gpu/gpu_scan.h"

#include "base/file.h"
#include "base/mem.h"
#include "gpu/gpu_limit.h"

#include <limits.h>
#include <stdio.h>

#define SMALL_FILE ((size_t)4096)

/* A line for each slice that could be: 32 cards with 14 GPU instances of 8 compute instances. */
#define MIG_MINORS_MAX (256 * KIB)

#define SLICES_MOST 64 /* of a card; NVML's own most is 8 or less */
#define SLICE_TRIES 8  /* the last is taken as it is */

/* What NVML has at an index. */
struct gpu_slice {
    struct nvml_device *device;
    int code; /* NVML_NOT_FOUND: no slice */
    char uuid[GPU_UUID_BYTES];
};

struct gpu_reader {
    const struct nvml *nvml;
    const struct gpu_roots *roots;
    struct gpu_scan *scan;
    struct buf minors; /* the file of device nodes of slices, once asked */
    bool asked;
};

/* parent: as in struct gpu_left. NVML_OK or NVML_MEMORY. */
_printf_(5, 6) static int gpu_scan_leave_out(const struct gpu_reader *r, const char *uuid,
                                             const char *parent, int code, const char *fmt, ...)
{
    va_list args;
    struct gpu_scan *s = r->scan;
    struct gpu_left *grown = mem_resize(s->left, (s->left_out + 1) * sizeof(*grown));
    if (grown == NULL)
        return NVML_MEMORY;
    s->left = grown;
    struct gpu_left *l = &s->left[s->left_out++];
    *l = (struct gpu_left){.code = code};
    (void)snprintf(l->uuid, sizeof(l->uuid), "%s", uuid);
    (void)snprintf(l->parent, sizeof(l->parent), "%s", parent);
    (void)snprintf(l->text, sizeof(l->text), "%s", nvml_text(r->nvml, code));
    va_start(args, fmt);
    (void)vsnprintf(l->why, sizeof(l->why), fmt, args);
    va_end(args);
    return NVML_OK;
}

/* The text of a small file in out; absent if it can't be read. */
static struct str gpu_scan_file(const char *path, char out[SMALL_FILE])
{
    struct buf b = buf_on(out, SMALL_FILE);
    if (file_read_again(str_of(path), &b, NULL) != OK)
        return STR_NULL;
    return buf_str(&b);
}

static int32_t gpu_scan_numa(const struct gpu_roots *roots, const char *pci)
{
    char path[PATH_MAX];
    char text[SMALL_FILE];
    char at[GPU_PCI_BYTES] = "";
    int64_t numa = -1;
    /* The kernel writes "0000:3b:00.0": four digits of the domain where these are enough. */
    size_t skip = strncmp(pci, "0000", 4) == 0 ? 4 : 0;
    for (size_t i = 0; pci[i + skip] != '\0' && i < sizeof(at) - 1; i++) {
        char c = pci[i + skip];
        at[i] = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    }
    (void)snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", roots->sys, at);
    if (!str_to_i64(str_trim(gpu_scan_file(path, text)), &numa) || numa < 0 || numa > INT32_MAX)
        return -1;
    return (int32_t)numa;
}

/* Of the line "gpu0/gi7/ci0/access 67". */
static bool gpu_scan_minor(struct str minors, const char *name, uint32_t *ret)
{
    struct str line;
    uint64_t minor = 0;
    for (struct str rest = minors; rest.p != NULL;) {
        struct str key;
        struct str value;
        (void)str_cut(rest, '\n', &line, &rest);
        if (!str_cut(line, ' ', &key, &value) || !str_eq(key, str_of(name)))
            continue;
        if (!str_to_u64(str_trim(value), UINT32_MAX, &minor))
            return false;
        *ret = (uint32_t)minor;
        return true;
    }
    return false;
}

/* The device nodes of a slice. NVIDIA's container runtime hides /proc/driver/nvidia, which has them
 * too, from a container, but for the slices that there were at the container's start. */
static bool gpu_scan_capabilities(struct gpu_reader *r, struct gpu_found *f)
{
    char name[64];
    char path[PATH_MAX];
    if (!r->asked) {
        (void)snprintf(path, sizeof(path), "%s/driver/nvidia-caps/mig-minors", r->roots->proc);
        r->asked = true;
        if (file_read_again(str_of(path), &r->minors, NULL) != OK)
            buf_clear(&r->minors, MIG_MINORS_MAX);
    }
    (void)snprintf(name, sizeof(name), "gpu%u/gi%u/access", f->minor, f->gpu_instance);
    if (!gpu_scan_minor(buf_str(&r->minors), name, &f->gpu_cap))
        return false;
    (void)snprintf(name, sizeof(name), "gpu%u/gi%u/ci%u/access", f->minor, f->gpu_instance,
                   f->compute_instance);
    return gpu_scan_minor(buf_str(&r->minors), name, &f->compute_cap);
}

/* Whether a call for a card was answered, if only with what the card does not have. */
static bool gpu_scan_answers(int code)
{
    return code == NVML_OK || code == NVML_NOT_SUPPORTED;
}

static bool gpu_scan_lost(int code)
{
    return code == NVML_GPU_IS_LOST || code == NVML_RESET_REQUIRED || code == NVML_UNINITIALIZED ||
           code == NVML_DRIVER_NOT_LOADED || code == NVML_UNKNOWN;
}

/* A device node that may not be opened is one of the first two, depending on the driver. */
static bool gpu_scan_no_way(int code)
{
    return code == NVML_NO_PERMISSION || code == NVML_UNKNOWN || code == NVML_DRIVER_NOT_LOADED ||
           code == NVML_VERSION_MISMATCH;
}

static void gpu_scan_count(int code, uint32_t *shut, uint32_t *away)
{
    *shut += gpu_scan_no_way(code);
    *away += nvml_is_away(code);
}

bool gpu_scan_is_shut(const struct gpu_scan *s)
{
    uint32_t shut = s->shut;
    uint32_t away = s->away;
    for (size_t i = 0; i < s->n; i++)
        if (i == 0 || s->items[i - 1].card != s->items[i].card)
            gpu_scan_count(s->items[i].sample.error, &shut, &away);
    return s->cards > away && shut >= s->cards - away;
}

/* What the card can enforce. */
static void gpu_scan_sample_means(const struct nvml *n, const char *cgroup, struct nvml_device *d,
                                  struct gpu_sample *s)
{
    enum nvml_compute_mode mode = NVML_COMPUTE_DEFAULT;
    s->limits = cgroup == NULL ? GPU_NOT_ASKED : gpu_limit_probe(n, d, cgroup);
    s->compute_mode = nvml_compute_mode(n, d, &mode) == NVML_OK ? (int)mode : GPU_NOT_ASKED;
}

/* NVML reports the memory of a card that is in MIG mode, maybe since the scan, only to a process
 * with a capability (NVIDIA_MIG_MONITOR_DEVICES of the container toolkit). */
static void gpu_scan_sample_card(const struct nvml *n, const char *cgroup, struct nvml_device *d,
                                 struct gpu_sample *s)
{
    struct nvml_memory memory;
    struct nvml_rows rows;
    bool mig = false;
    int code = nvml_mig_mode(n, d, &mig);
    if (!mig)
        code = nvml_memory(n, d, &memory);
    *s = (struct gpu_sample){.error = gpu_scan_answers(code) ? NVML_OK : code};
    code = nvml_rows(n, d, &rows);
    s->rows_known = code == NVML_OK;
    if (s->rows_known) {
        s->rows_pending = rows.pending;
        s->rows_failure = rows.failure;
    } else if (s->error == NVML_OK && gpu_scan_lost(code)) {
        s->error = code;
    }
    code = nvml_uncorrected(n, d, &s->uncorrected);
    s->ecc_known = code == NVML_OK;
    if (s->error == NVML_OK && gpu_scan_lost(code))
        s->error = code;
    if (nvml_pages_pending(n, d, &s->pages_pending) != NVML_OK)
        s->pages_pending = false;
    s->recovery_known = nvml_recovery(n, d, &s->recovery) == NVML_OK;
    gpu_scan_sample_means(n, cgroup, d, s);
    if (s->error != NVML_OK)
        (void)snprintf(s->error_text, sizeof(s->error_text), "%s", nvml_text(n, s->error));
}

static void gpu_scan_sample(const struct nvml *n, const struct gpu_roots *roots, struct gpu_scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct gpu_found *f = &s->items[i];
        if (i > 0 && s->items[i - 1].card == f->card)
            f->sample = s->items[i - 1].sample;
        else
            gpu_scan_sample_card(n, roots->cgroup, f->card, &f->sample);
    }
}

/* A zeroed item at the end of the scan; NULL: no memory, or too many. */
static struct gpu_found *gpu_scan_add(struct gpu_scan *s)
{
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 16 : s->cap * 2;
        struct gpu_found *grown = mem_resize(s->items, cap * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        s->items = grown;
        s->cap = cap;
    }
    struct gpu_found *f = &s->items[s->n++];
    memset(f, 0, sizeof(*f));
    return f;
}

/* Fills most entries. */
static void gpu_scan_list_slices(const struct gpu_reader *r, const struct gpu_found *card,
                                 uint32_t most, struct gpu_slice *ret)
{
    for (uint32_t i = 0; i < most; i++) {
        ret[i] = (struct gpu_slice){.device = NULL};
        ret[i].code = nvml_mig_device(r->nvml, card->device, i, &ret[i].device);
        if (ret[i].code == NVML_OK)
            ret[i].code = nvml_uuid(r->nvml, ret[i].device, ret[i].uuid);
    }
}

static bool gpu_scan_same_slices(const struct gpu_slice *a, const struct gpu_slice *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].code != b[i].code || strcmp(a[i].uuid, b[i].uuid) != 0)
            return false;
    return true;
}

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb": the text behind MIG; else from the sizes, as NVML makes it.
 */
static void gpu_scan_profile(const struct nvml *n, struct gpu_found *f,
                             const struct nvml_attributes *a)
{
    char name[GPU_NAME_BYTES];
    const char *profile = nvml_name(n, f->device, name) == NVML_OK ? strstr(name, " MIG ") : NULL;
    if (profile != NULL)
        (void)snprintf(f->profile, sizeof(f->profile), "%s", profile + strlen(" MIG "));
    else
        (void)snprintf(f->profile, sizeof(f->profile), "%ug.%llugb", a->gpu_slices,
                       (unsigned long long)((a->memory_bytes + ((uint64_t)1 << 30) - 1) >> 30));
}

static int gpu_scan_slice(struct gpu_reader *r, const struct gpu_found *card,
                          const struct gpu_slice *slice)
{
    const struct nvml *n = r->nvml;
    struct nvml_attributes a = {.gpu_slices = 0};
    struct gpu_found f = *card;
    f.device = slice->device;
    f.mig = true;
    memcpy(f.parent, card->uuid, sizeof(f.parent));
    memcpy(f.uuid, slice->uuid, sizeof(f.uuid));
    int code = nvml_instances(n, f.device, &f.gpu_instance, &f.compute_instance);
    if (code == NVML_OK)
        code = nvml_attributes(n, f.device, &a);
    if (code != NVML_OK || a.memory_bytes == 0)
        return gpu_scan_leave_out(r, f.uuid, card->uuid, code, "%s of %s: %s", f.uuid, card->uuid,
                                  code == NVML_OK ? "no memory" : nvml_text(n, code));
    f.total_bytes = f.memory_bytes = a.memory_bytes;
    gpu_scan_profile(n, &f, &a);
    if (!gpu_scan_capabilities(r, &f))
        return gpu_scan_leave_out(r, f.uuid, card->uuid, NVML_OK,
                                  "%s: %s/driver/nvidia-caps/mig-minors does not name its nodes",
                                  f.uuid, r->roots->proc);
    struct gpu_found *at = gpu_scan_add(r->scan);
    if (at == NULL)
        return NVML_MEMORY;
    *at = f;
    return NVML_OK;
}

/* Drops slices of one card, from `first` on, that share a GPU instance. */
static int gpu_scan_drop_shared(const struct gpu_reader *r, size_t first)
{
    struct gpu_scan *s = r->scan;
    size_t kept = first;
    int code = NVML_OK;
    for (size_t i = first; i < s->n; i++) {
        bool shares = false;
        for (size_t j = first; j < s->n; j++)
            shares = shares || (i != j && s->items[i].gpu_instance == s->items[j].gpu_instance);
        s->items[i].sample.error = shares ? -1 : 0;
    }
    for (size_t i = first; i < s->n && code == NVML_OK; i++) {
        if (s->items[i].sample.error == 0) {
            s->items[kept++] = s->items[i];
            continue;
        }
        code =
            gpu_scan_leave_out(r, s->items[i].uuid, s->items[i].parent, NVML_OK,
                               "%s: other compute instances use the same memory", s->items[i].uuid);
        if (code == NVML_OK)
            s->left[s->left_out - 1].shared = true;
    }
    s->n = kept;
    return code;
}

static int gpu_scan_describe_slices(struct gpu_reader *r, const struct gpu_found *card,
                                    const struct gpu_slice *slices, uint32_t n)
{
    int code = NVML_OK;
    size_t first = r->scan->n;
    for (uint32_t i = 0; code == NVML_OK && i < n; i++) {
        if (slices[i].code == NVML_OK)
            code = gpu_scan_slice(r, card, &slices[i]);
        else if (slices[i].code != NVML_NOT_FOUND)
            code =
                gpu_scan_leave_out(r, card->uuid, card->uuid, slices[i].code, "slice %u of %s: %s",
                                   i, card->uuid, nvml_text(r->nvml, slices[i].code));
    }
    return code == NVML_OK ? gpu_scan_drop_shared(r, first) : code;
}

/*
 * A slice that is made or removed meanwhile moves the others to other indices, so that one of them
 * would be missing from the list, and unhealthy for the cooldown. The list is right if it is the
 * same after the slices have been read.
 */
static int gpu_scan_slices(struct gpu_reader *r, const struct gpu_found *card)
{
    struct gpu_slice before[SLICES_MOST];
    struct gpu_slice after[SLICES_MOST];
    struct gpu_scan *s = r->scan;
    uint32_t most = 0;
    int code = nvml_mig_count(r->nvml, card->device, &most);
    if (code == NVML_MEMORY)
        return code;
    if (code != NVML_OK)
        return gpu_scan_leave_out(r, card->uuid, card->uuid, code, "the slices of %s: %s",
                                  card->uuid, nvml_text(r->nvml, code));
    most = MIN_OF(most, (uint32_t)SLICES_MOST);
    size_t n = s->n;
    uint32_t left_out = s->left_out;
    gpu_scan_list_slices(r, card, most, before);
    for (unsigned tries = 0; tries < SLICE_TRIES; tries++) {
        s->n = n;
        s->left_out = left_out;
        code = gpu_scan_describe_slices(r, card, before, most);
        gpu_scan_list_slices(r, card, most, after);
        if (code != NVML_OK || gpu_scan_same_slices(before, after, most))
            break;
        memcpy(before, after, sizeof(before));
    }
    return code;
}

/* Of a card that is not in MIG mode. Its memory is 0: not known, and it is left out. */
static int gpu_scan_size(const struct gpu_reader *r, struct gpu_found *f)
{
    struct nvml_memory memory = {.total = 0};
    int code = nvml_memory(r->nvml, f->device, &memory);
    bool none = code == NVML_NOT_SUPPORTED || (code == NVML_OK && memory.total == 0);
    f->total_bytes = none ? r->roots->card_bytes : memory.total;
    f->memory_bytes = f->total_bytes - MIN_OF(memory.reserved, f->total_bytes);
    if ((code == NVML_OK || none) && f->memory_bytes > 0)
        return NVML_OK;
    gpu_scan_count(code, &r->scan->shut, &r->scan->away);
    return gpu_scan_leave_out(r, f->uuid, "", code, "%s: nvmlDeviceGetMemoryInfo: %s%s", f->uuid,
                              code == NVML_OK ? "0 bytes" : nvml_text(r->nvml, code),
                              none ? ": set --card-memory" : "");
}

/* Not NVML_OK: the card can't be offered. */
static int gpu_scan_describe(const struct gpu_reader *r, struct gpu_found *f)
{
    const struct nvml *n = r->nvml;
    int code = nvml_uuid(n, f->device, f->uuid);
    if (code == NVML_OK)
        code = nvml_pci(n, f->device, f->pci);
    if (code == NVML_OK)
        code = nvml_minor(n, f->device, &f->minor);
    if (code == NVML_OK)
        code = nvml_name(n, f->device, f->model);
    if (code == NVML_OK)
        f->numa = gpu_scan_numa(r->roots, f->pci);
    return code;
}

static int gpu_scan_card(struct gpu_reader *r, uint32_t i)
{
    bool mig = false;
    struct gpu_found f = {.gpu_instance = NVML_NO_INSTANCE, .compute_instance = NVML_NO_INSTANCE};
    int code = nvml_card(r->nvml, i, &f.device);
    if (code == NVML_OK)
        code = gpu_scan_describe(r, &f);
    if (code != NVML_OK) {
        gpu_scan_count(code, &r->scan->shut, &r->scan->away);
        return gpu_scan_leave_out(r, f.uuid, "", code, "card %u of NVML: %s", i,
                                  nvml_text(r->nvml, code));
    }
    f.card = f.device;
    if (nvml_mig_mode(r->nvml, f.device, &mig) == NVML_OK && mig)
        return gpu_scan_slices(r, &f);
    code = gpu_scan_size(r, &f);
    if (code != NVML_OK || f.memory_bytes == 0)
        return code;
    struct gpu_found *at = gpu_scan_add(r->scan);
    if (at == NULL)
        return NVML_MEMORY;
    *at = f;
    return NVML_OK;
}

int gpu_scan_read(const struct nvml *n, const struct gpu_roots *roots, struct gpu_scan *ret)
{
    struct gpu_reader r = {.nvml = n, .roots = roots, .scan = ret};
    assert(ret->items == NULL && ret->n == 0);
    buf_init(&r.minors, MIG_MINORS_MAX);
    if (nvml_driver(n, ret->driver) != NVML_OK)
        ret->driver[0] = '\0';
    int code = nvml_count(n, &ret->cards);
    for (uint32_t i = 0; code == NVML_OK && i < ret->cards; i++)
        code = gpu_scan_card(&r, i);
    buf_done(&r.minors);
    if (code != NVML_OK) {
        gpu_scan_done(ret);
        return code;
    }
    gpu_scan_sample(n, roots, ret);
    return NVML_OK;
}

/* Whether every card of `before` is in `now`. */
static bool gpu_scan_has_all(const struct gpu_scan *now, const struct gpu_scan *before)
{
    for (size_t i = 0; i < before->n; i++) {
        bool there = false;
        for (size_t j = 0; j < now->n && !there; j++)
            there = strcmp(before->items[i].uuid, now->items[j].uuid) == 0;
        if (!there)
            return false;
    }
    return true;
}

bool gpu_scan_lacks_faulty(const struct nvml *n, const struct gpu_roots *roots,
                           const struct gpu_scan *now, struct gpu_scan *before)
{
    if (gpu_scan_has_all(now, before))
        return false;
    gpu_scan_sample(n, roots, before);
    for (size_t i = 0; i < before->n; i++)
        if (before->items[i].sample.error != NVML_OK)
            return true;
    return false;
}

const struct gpu_left *gpu_scan_left(const struct gpu_scan *s, const char *uuid, const char *whole)
{
    const struct gpu_left *any = NULL;
    for (uint32_t i = 0; i < s->left_out; i++) {
        const struct gpu_left *l = &s->left[i];
        if (strcmp(l->uuid, uuid) == 0 || strcmp(l->uuid, whole) == 0)
            return l;
        /* Of those without a UUID, rather one that is there than one that is lost. */
        if (l->uuid[0] == '\0' && (any == NULL || nvml_is_away(any->code)))
            any = l;
    }
    return any;
}

bool gpu_scan_copy(const struct gpu_scan *from, struct gpu_scan *to)
{
    *to = *from;
    to->cap = from->n;
    to->items = mem_alloc(MAX_OF(from->n, (size_t)1) * sizeof(*to->items));
    to->left = mem_alloc(MAX_OF(from->left_out, 1U) * sizeof(*to->left));
    if (to->items == NULL || to->left == NULL) {
        gpu_scan_done(to);
        return false;
    }
    if (from->n > 0)
        memcpy(to->items, from->items, from->n * sizeof(*to->items));
    if (from->left_out > 0)
        memcpy(to->left, from->left, from->left_out * sizeof(*to->left));
    return true;
}

void gpu_scan_done(struct gpu_scan *s)
{
    mem_free(s->left);
    mem_free(s->items);
    *s = (struct gpu_scan){.n = 0};
}
