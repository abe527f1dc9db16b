/* The file is replaced as a whole, so only an administrator leaves a line that is not understood.
 */
#include "gpu_faults.h"

#include "base/file.h"

#include <limits.h>
#include <stdio.h>

void gpu_faults_boot(const char *proc, struct buf *out)
{
    char path[PATH_MAX];
    char bytes[128];
    struct buf id = BUF_ON(bytes);
    (void)snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc);
    if (file_read_again(str_of(path), &id, NULL) != OK)
        buf_clear(&id, 0);
    buf_printf(out, "cardpack-faults 1 %.*s", STR_ARG(str_trim(buf_str(&id))));
}

static void gpu_faults_take(struct gpu_list *l, struct str line, uint64_t now_ms)
{
    struct str uuid;
    struct str xid;
    uint64_t number = 0;
    if (!str_cut(line, ' ', &uuid, &xid) || !str_to_u64(xid, UINT64_MAX, &number))
        return;
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(uuid, str_of(l->entries[i].found.uuid)))
            (void)gpu_health_xid(&l->entries[i].health, &l->rules, number, now_ms);
}

void gpu_faults_load(const char *path, struct str boot, struct gpu_list *l, uint64_t now_ms)
{
    struct buf text;
    struct str line;
    buf_init(&text, LIMIT_GPU_STATE_BYTES);
    struct str rest = file_read_again(str_of(path), &text, NULL) == OK ? buf_str(&text) : STR_NULL;
    (void)str_cut(rest, '\n', &line, &rest);
    if (!str_eq(line, boot))
        rest = STR_NULL;
    while (rest.p != NULL) {
        (void)str_cut(rest, '\n', &line, &rest);
        gpu_faults_take(l, line, now_ms);
    }
    buf_done(&text);
}

void gpu_faults_write(const struct gpu_list *l, struct str boot, struct buf *out)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct gpu_health *h = &l->entries[i].health;
        if (h->xid == 0 || h->was_away)
            continue;
        if (out->n == 0)
            buf_printf(out, "%.*s\n", STR_ARG(boot));
        buf_printf(out, "%s %llu\n", l->entries[i].found.uuid, (unsigned long long)h->xid);
    }
}
